//! What a stored block costs its reader: the time until its bytes are there, and the time to decode them.
//!
//! How fast zstd decodes depends on what it found: literals that it coded, matches, or nothing at all. All of that
//! stands in the headers of a frame's blocks, so the time is estimated from them (RFC 8878, section 3.1.1), not from
//! the compression ratio alone. The figures are nanoseconds measured once on one core and fixed here, so that the same
//! data always gives the same file whatever machine writes it.

use super::planes::{Stream, streams};
use super::{Coding, Filter};

/// What the reader is short of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Profile {
    /// Stored bytes come at 400 MB/s: a SATA disk, a network mount.
    #[default]
    Balanced,
    /// Stored bytes come at 2 GB/s: an NVMe disk, the page cache.
    Fast,
    /// Stored bytes come at 40 MB/s: a remote store, an archive.
    Small,
}

impl Profile {
    /// Nanoseconds until one stored byte is there.
    pub(super) fn byte_time(self) -> f64 {
        match self {
            Profile::Balanced => 2.5,
            Profile::Fast => 0.5,
            Profile::Small => 25.0,
        }
    }
}

/// What zstd has to do for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Compressed blocks.
    pub(super) blocks: f64,
    /// Literals that are Huffman coded.
    pub(super) literals: f64,
    /// Matches, each with the literals before it.
    pub(super) sequences: f64,
}

impl Work {
    /// Nanoseconds of zstd for a frame of `len` decoded bytes.
    pub(super) fn time(self, len: usize) -> f64 {
        300.0 + 500.0 * self.blocks + 0.5 * self.literals + 4.0 * self.sequences + 0.05 * len as f64
    }

    /// Reads the headers of a frame without content size and dictionary, as [`Encoder`](super::Encoder) writes them.
    pub(super) fn of(frame: &[u8]) -> Self {
        /// Magic number, frame header descriptor, window descriptor.
        const HEADER: usize = 6;
        let mut work = Work::default();
        let mut rest = frame.get(HEADER..).unwrap_or_default();
        while let Some((&[a, b, c], block)) = rest.split_first_chunk() {
            let header = u32::from_le_bytes([a, b, c, 0]);
            let stored = match header >> 1 & 3 {
                1 => 1,
                _ => (header >> 3) as usize,
            };
            if header >> 1 & 3 == 2 {
                work.add_block(block);
            }
            rest = block.get(stored..).unwrap_or_default();
        }
        work
    }

    /// Adds a compressed block: the header of its literals, which says where they end, and the number of sequences,
    /// which follows them.
    fn add_block(&mut self, block: &[u8]) {
        let header = block.first_chunk().map_or(0, |bytes: &[u8; 5]| {
            u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], 0, 0, 0])
        });
        let (kind, format) = (header & 3, header >> 2 & 3);
        let compressed = kind >= 2;
        let (header_len, bits) = match (compressed, format) {
            (false, 0 | 2) => (1, 5),
            (false, 1) => (2, 12),
            (false, _) => (3, 20),
            (true, 0 | 1) => (3, 10),
            (true, 2) => (4, 14),
            (true, _) => (5, 18),
        };
        let shift = if bits == 5 { 3 } else { 4 };
        let literals = header >> shift & ((1 << bits) - 1);
        let stored = match kind {
            0 => literals,
            1 => 1,
            _ => header >> (shift + bits) & ((1 << bits) - 1),
        };
        let sequences = match block.get(header_len + stored as usize..) {
            Some(&[a, b, c, ..]) if a == 255 => u32::from(b) + (u32::from(c) << 8) + 0x7f00,
            Some(&[a, b, ..]) if a >= 128 => ((u32::from(a) - 128) << 8) + u32::from(b),
            Some(&[a, ..]) => u32::from(a),
            _ => 0,
        };
        self.blocks += 1.0;
        self.literals += if compressed { literals as f64 } else { 0.0 };
        self.sequences += f64::from(sequences);
    }
}

/// Nanoseconds to read one byte of a raw stream beyond what the coding costs anyway.
const RAW_BYTE: f64 = 0.02;

/// Whether a frame of `len` decoded bytes comes to the reader sooner than these bytes themselves.
pub(super) fn pays(profile: Profile, frame: &[u8], len: usize) -> bool {
    let raw = (profile.byte_time() + RAW_BYTE) * len as f64;
    frame.len() < len && profile.byte_time() * frame.len() as f64 + Work::of(frame).time(len) < raw
}

/// Nanoseconds to write one item byte when a block is copied out whole, zstd and reading raw streams aside.
fn byte_time(coding: Coding, filter: Filter) -> f64 {
    match (coding, filter.word) {
        (Coding::Raw | Coding::Constant | Coding::Zstd, _) => 0.05,
        (Coding::Planes, 1 | 2 | 4 | 8) => 0.07,
        (Coding::Planes, _) => 0.5,
        (Coding::Delta, _) => 0.12,
    }
}

/// Nanoseconds until a block of `len` bytes is there and decoded whole on one core. `stored` is what the encoder made.
pub(super) fn block(profile: Profile, coding: Coding, filter: Filter, stored: &[u8], len: usize) -> f64 {
    let stream_time = match coding {
        Coding::Raw | Coding::Constant => RAW_BYTE * stored.len() as f64,
        Coding::Zstd => Work::of(stored).time(len),
        Coding::Planes | Coding::Delta => {
            let n = len / usize::from(filter.word);
            let streams = streams(stored, filter.word.into(), n).into_iter().flatten().flatten();
            let time = |stream| match stream {
                Stream::Constant(_) => 0.0,
                Stream::Raw(bytes) => RAW_BYTE * bytes.len() as f64,
                Stream::Zstd(frame) => Work::of(frame).time(n),
            };
            streams.map(time).sum()
        }
    };
    profile.byte_time() * stored.len() as f64 + stream_time + byte_time(coding, filter) * len as f64
}
