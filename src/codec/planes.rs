//! The directory of a planes block: one 32-bit entry per byte of the word, then the streams.
//!
//! ```text
//! bits 30..32  what the stream is: 0 constant, 1 raw, 2 zstd, 3 runs
//! bits  0..30  stored length of the stream; for a constant the byte value
//! ```

use smallvec::SmallVec;

use super::kernel::Plane;
use crate::error::Damage;

/// Bytes of a directory entry.
pub(super) const ENTRY: usize = 4;

/// The planes of one block, least significant byte first; words of up to 16 bytes need no allocation.
pub(super) type Planes<'a> = SmallVec<[Plane<'a>; 16]>;

/// One stream as the directory describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream<'a> {
    /// Every byte is this one; nothing is stored.
    Constant(u8),
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// A zstd frame.
    Zstd(&'a [u8]),
    /// Pairs of a value and the length of its run.
    Runs(&'a [u8]),
}

impl Stream<'_> {
    /// The directory entry of this stream.
    #[cfg(feature = "write")]
    pub(super) fn entry(self) -> [u8; ENTRY] {
        let (kind, low) = match self {
            Stream::Constant(value) => (0, usize::from(value)),
            Stream::Raw(bytes) => (1, bytes.len()),
            Stream::Zstd(frame) => (2, frame.len()),
            Stream::Runs(pairs) => (3, pairs.len()),
        };
        // A block has at most 2^24 bytes and a stream is never stored larger than its plane.
        debug_assert!(low < 1 << 30);
        (kind << 30 | low as u32).to_le_bytes()
    }
}

/// The streams of a planes block of `n` words of `word` bytes: checks that the directory makes sense and that the
/// lengths add up to what is stored.
pub(super) fn streams(
    stored: &[u8],
    word: usize,
    n: usize,
) -> Result<impl Iterator<Item = Result<Stream<'_>, Damage>>, Damage> {
    let (directory, mut rest) = stored.split_at_checked(word * ENTRY).ok_or_else(|| {
        Damage::new(format!("a block of {} bytes has no room for its directory", stored.len()))
    })?;
    let mut left = word;
    Ok(directory.chunks_exact(ENTRY).map(move |entry| {
        let entry = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        let (kind, low) = (entry >> 30, entry & ((1 << 30) - 1));
        let mut take = |len: u32| {
            let (stream, after) = rest
                .split_at_checked(len as usize)
                .ok_or_else(|| Damage::new("a byte plane reaches past the end of its block"))?;
            rest = after;
            Ok::<_, Damage>(stream)
        };
        let stream = match kind {
            0 => Stream::Constant(
                u8::try_from(low).map_err(|_| Damage::new("a constant byte plane has stray bits"))?,
            ),
            1 => Stream::Raw(take(low)?),
            2 => Stream::Zstd(take(low)?),
            _ => Stream::Runs(take(low)?),
        };
        if let Stream::Raw(bytes) = stream
            && bytes.len() != n
        {
            return Err(Damage::new(format!("a raw byte plane has {} bytes instead of {n}", bytes.len())));
        }
        left -= 1;
        if left == 0 && !rest.is_empty() {
            return Err(Damage::new(format!("{} bytes follow the last byte plane", rest.len())));
        }
        Ok(stream)
    }))
}
