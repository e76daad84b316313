//! What a stored block costs its reader: the time until its bytes are there, and the time to decode them.
//!
//! How fast zstd decodes depends on what it found: literals that it coded, matches, or nothing at all. Most of that
//! stands in the headers of a frame's blocks, so the time is estimated from them (RFC 8878, section 3.1.1), not from
//! the compression ratio alone. What they do not say is how near the matches are, see [`close_repeats`]. The figures are nanoseconds measured once on one core and fixed here, so that the same
//! data always gives the same file whatever machine writes it.

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
    pub(super) blocks: u32,
    /// Huffman codes that must be set up.
    pub(super) codes: u32,
    /// Tables of literal lengths, match lengths or offsets that must be set up.
    pub(super) tables: u32,
    /// Literals that are Huffman coded.
    pub(super) literals: u32,
    /// Matches, each with the literals before it.
    pub(super) sequences: u32,
    /// Bytes that are copied from close before.
    pub(super) close: u32,
    /// Decoded bytes.
    pub(super) bytes: u32,
}

impl Work {
    /// Nanoseconds of zstd.
    pub(super) fn time(self) -> f64 {
        FRAME
            + BLOCK * f64::from(self.blocks)
            + CODE * f64::from(self.codes)
            + TABLE * f64::from(self.tables)
            + LITERAL * f64::from(self.literals)
            + SEQUENCE * f64::from(self.sequences)
            + CLOSE * f64::from(self.close)
            + BYTE * f64::from(self.bytes)
    }

    /// Reads the headers of a frame of these bytes without content size and dictionary, as [`Encoder`](super::Encoder)
    /// writes them.
    pub(super) fn of(frame: &[u8], bytes: &[u8]) -> Self {
        /// Magic number, frame header descriptor, window descriptor.
        const HEADER: usize = 6;
        let mut work = Work { bytes: bytes.len() as u32, ..Work::default() };
        // Only where nearly all is copied do the copies matter beside the rest.
        if frame.len() < bytes.len() / 16 {
            work.close = close_repeats(bytes);
        }
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

    /// Adds a compressed block: the header of its literals says where they end; the number of sequences and how their
    /// parts are coded follow.
    fn add_block(&mut self, block: &[u8]) {
        let header = block.first_chunk().map_or(0, |bytes: &[u8; 5]| {
            u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], 0, 0, 0])
        });
        let (kind, format) = (header & 3, header >> 2 & 3);
        let (header_len, shift, bits) = match (kind, format) {
            (0 | 1, 0 | 2) => (1, 3, 5),
            (0 | 1, 1) => (2, 4, 12),
            (0 | 1, _) => (3, 4, 20),
            (_, 0 | 1) => (3, 4, 10),
            (_, 2) => (4, 4, 14),
            (_, _) => (5, 4, 18),
        };
        let literals = (header >> shift & ((1 << bits) - 1)) as u32;
        let stored = match kind {
            0 => literals as usize,
            1 => 1,
            _ => (header >> (shift + bits) & ((1 << bits) - 1)) as usize,
        };
        let (sequences, modes) = match block.get(header_len + stored..) {
            Some(&[255, b, c, modes, ..]) => (u32::from(b) + (u32::from(c) << 8) + 0x7f00, modes),
            Some(&[a, b, modes, ..]) if a >= 128 => (((u32::from(a) - 128) << 8) + u32::from(b), modes),
            Some(&[a, modes, ..]) => (u32::from(a), modes),
            _ => (0, 0),
        };
        self.blocks += 1;
        self.sequences += sequences;
        if kind >= 2 {
            self.literals += literals;
            self.codes += u32::from(kind == 2);
        }
        if sequences > 0 {
            self.tables += [2, 4, 6].iter().map(|at| u32::from(modes >> at & 3 == 2)).sum::<u32>();
        }
    }
}

/// Nanoseconds for what [`Work`] counts, and for each frame and decoded byte.
const FRAME: f64 = 140.0;
const BLOCK: f64 = 140.0;
const CODE: f64 = 1680.0;
const TABLE: f64 = 750.0;
const LITERAL: f64 = 0.58;
const SEQUENCE: f64 = 8.6;
const CLOSE: f64 = 0.3;
const BYTE: f64 = 0.036;

/// Nanoseconds to decode a run, more for one of several stores, whose number the processor cannot foresee, and for each
/// byte of a plane of runs.
pub(super) const RUN: f64 = 2.0;
pub(super) const LONG_RUN: f64 = 3.5;
pub(super) const RUN_BYTE: f64 = 0.03;

/// Nanoseconds to read one byte of a raw stream beyond what the coding costs anyway.
pub(super) const RAW_BYTE: f64 = 0.045;

/// How many bytes are in stretches that repeat with a period of 17 to 31 bytes and none below.
///
/// zstd copies a match 16 bytes at a time. If they come from 20 bytes before, a part of them is in one store and a part
/// in another, both still under way, which is presumably why such planes decode at 2.7 GB/s and others that repeat at 15
/// GB/s and more. The cells of a regular mesh make them.
fn close_repeats(bytes: &[u8]) -> u32 {
    /// Bytes that are looked at together.
    const STRETCH: usize = 128;
    const LONGEST: usize = 31;
    let period = |stretch: &[u8]| {
        (1..=LONGEST).find(|period| stretch[LONGEST..] == stretch[LONGEST - period..STRETCH - period])
    };
    let close = |stretch: &&[u8]| period(stretch).is_some_and(|period| period > 16);
    (bytes.chunks_exact(STRETCH).filter(close).count() * STRETCH) as u32
}

/// Nanoseconds to write one item byte when a block is copied out whole, zstd and reading raw streams aside.
fn byte_time(coding: Coding, filter: Filter) -> f64 {
    match (coding, filter.word, filter.stride) {
        (Coding::Raw | Coding::Constant | Coding::Zstd, ..) => 0.03,
        (Coding::Planes, 1..=4, _) => 0.045,
        (Coding::Planes, 5..=8, _) => 0.035,
        (Coding::Planes, ..) => 0.25,
        (Coding::Delta, 1..=4, 1..=16) => 0.08,
        (Coding::Delta, 1..=4, _) => 0.06,
        (Coding::Delta, ..) => 0.055,
    }
}

/// Nanoseconds until a block of `len` item bytes, stored as `stored` bytes, is there and decoded whole on one core, if
/// its streams take `stream_time`.
pub(super) fn block(
    profile: Profile,
    coding: Coding,
    filter: Filter,
    stored: usize,
    len: usize,
    stream_time: f64,
) -> f64 {
    profile.byte_time() * stored as f64 + stream_time + byte_time(coding, filter) * len as f64
}
