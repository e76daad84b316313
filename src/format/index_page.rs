//! Index pages (SPEC.md §11): the nodes of the radix tree that finds an array's chunks.
//!
//! | offset | size | what |
//! | --- | --- | --- |
//! | 0 | 16 | frame header |
//! | 16 | 1 | level |
//! | 17 | 7 | reserved |
//! | 24 | 8 | prefix |
//! | 32 | 8 | bitmap |
//! | 40 | 40 each | entries |

use super::pointer::{Bounds, FRAME_HEADER_LEN, Kind, Pointer};
use super::wire::Fields;
use crate::error::Damage;

/// Key bits that one level looks at.
pub(crate) const FANOUT_BITS: u32 = 6;

/// Length of a page that has all entries.
pub(super) const MAX_INDEX_PAGE_LEN: u64 = 40 + 64 * Pointer::LEN as u64;

/// A checked index page over the bytes of its frame. Entries are checked when they are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexPage<'a> {
    level: u8,
    bitmap: u64,
    entries: &'a [u8],
    bounds: Bounds,
}

/// The prefix of the page of `level` on the way to `key`.
fn prefix(key: u64, level: u8) -> u64 {
    key.checked_shr(FANOUT_BITS * (u32::from(level) + 1)).unwrap_or(0)
}

/// The place of `key` in a page of `level`.
fn place(key: u64, level: u8) -> u32 {
    (key.checked_shr(FANOUT_BITS * u32::from(level)).unwrap_or(0) & 63) as u32
}

impl<'a> IndexPage<'a> {
    /// Parses a frame whose checksum and header are right, found on the way to `key` at `level`.
    pub(crate) fn parse(
        frame: &'a [u8],
        bounds: Bounds,
        level: u8,
        key: u64,
    ) -> Result<IndexPage<'a>, Damage> {
        let mut fields = Fields::new(frame, "index page");
        fields.skip(FRAME_HEADER_LEN)?;
        let found = fields.u8()?;
        fields.skip(7)?;
        if found != level || fields.u64()? != prefix(key, level) {
            return Err(Damage::new("an index page that belongs elsewhere"));
        }
        let bitmap = fields.u64()?;
        let entries = fields.rest();
        if bitmap == 0 || entries.len() != bitmap.count_ones() as usize * Pointer::LEN {
            return Err(Damage::new("an index page whose entries are not those of its bitmap"));
        }
        Ok(IndexPage { level, bitmap, entries, bounds })
    }

    /// The entry on the way to `key`; null if there is none.
    pub(crate) fn entry(&self, key: u64) -> Result<Pointer, Damage> {
        let bit = 1u64 << place(key, self.level);
        if self.bitmap & bit == 0 {
            return Ok(Pointer::Null);
        }
        self.nth((self.bitmap & (bit - 1)).count_ones() as usize)
    }

    /// All entries with their places.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<(u64, Pointer), Damage>> + '_ {
        let places = (0..64u64).filter(|&place| self.bitmap & (1 << place) != 0);
        places.enumerate().map(|(n, place)| Ok((place, self.nth(n)?)))
    }

    fn nth(&self, n: usize) -> Result<Pointer, Damage> {
        let bytes = self.entries.get(n * Pointer::LEN..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.ok_or_else(|| Damage::new("an index page that ends too early"))?;
        let pointer = Pointer::parse(bytes, self.bounds)?;
        match pointer {
            Pointer::Null => Err(Damage::new("an index page with an entry for nothing")),
            Pointer::Frame { kind, .. } if (kind == Kind::Index) == (self.level > 0) => Ok(pointer),
            Pointer::Constant(_) if self.level == 0 => Ok(pointer),
            _ => Err(Damage::new("an index page with an entry that belongs to another level")),
        }
    }
}

/// The bytes of an index page, with room for the frame header. `entries` ascend by place.
#[cfg(feature = "write")]
pub(crate) fn encode_index_page(level: u8, key: u64, entries: &[(u64, Pointer)]) -> Vec<u8> {
    let mut page = vec![0; FRAME_HEADER_LEN];
    page.extend_from_slice(&[level, 0, 0, 0, 0, 0, 0, 0]);
    page.extend_from_slice(&prefix(key, level).to_le_bytes());
    page.extend_from_slice(
        &entries.iter().fold(0u64, |bitmap, (place, _)| bitmap | 1 << place).to_le_bytes(),
    );
    for (_, pointer) in entries {
        page.extend_from_slice(&pointer.encode());
    }
    page
}
