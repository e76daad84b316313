//! Makes the checksums of a damaged store right again.
//!
//! A change to a store almost always breaks a checksum, and the reader says so and looks no further. A hostile file has
//! right checksums and wrong numbers. This walks a store as SPEC.md describes it, from the roots down, and seals what it
//! finds: whatever cannot be followed is left as it is. Frame headers are made to agree with the pointers to them as well.

use std::collections::HashSet;
use twox_hash::XxHash3_64;

/// Extents that are looked at, at most: pages can be made to point to each other over and over.
const MOST_EXTENTS: usize = 10_000;

/// Where extents may start.
const DATA_START: usize = 16384;
const SUPERBLOCK_MAGIC: &[u8] = b"\x89BRK\r\n\x1a\n";
const ROOT_MAGIC: &[u8] = b"BRKROOT\0";
/// The two copies of the record in a page, and what of each its checksum covers.
const RECORD_LEN: usize = 2048;
const RECORD_CHECKED: usize = 2040;

/// Seals `bytes`. Returns whether that changed anything.
pub(crate) fn reseal(bytes: &mut [u8]) -> bool {
    let before = XxHash3_64::oneshot(bytes);
    let mut store = Store { bytes, seen: HashSet::new() };
    for copy in (0..8).map(|copy| copy * RECORD_LEN) {
        // A record that lacks its magic, or all that a damaged file still has of it, is not used anyway.
        let _ = store.record(copy);
    }
    before != XxHash3_64::oneshot(store.bytes)
}

struct Store<'a> {
    bytes: &'a mut [u8],
    /// The extents that are sealed, with the kind of pointer that led there.
    seen: HashSet<(usize, u8)>,
}

impl Store<'_> {
    fn get<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn byte(&self, at: usize) -> Option<usize> {
        Some(self.get::<1>(at)?[0].into())
    }

    fn u32(&self, at: usize) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.get(at)?)).ok()
    }

    fn u64(&self, at: usize) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.get(at)?)).ok()
    }

    fn put(&mut self, at: usize, value: &[u8]) -> Option<()> {
        self.bytes.get_mut(at..at.checked_add(value.len())?)?.copy_from_slice(value);
        Some(())
    }

    /// Writes the checksum of `len` bytes at `start` to `at`.
    fn seal(&mut self, at: usize, start: usize, len: usize) -> Option<()> {
        let sum = XxHash3_64::oneshot(self.bytes.get(start..start.checked_add(len)?)?);
        self.put(at, &sum.to_le_bytes())
    }

    /// A copy of the superblock or of a root, with everything below it.
    fn record(&mut self, at: usize) -> Option<()> {
        match &self.get::<8>(at)?[..] {
            ROOT_MAGIC => {
                self.pointer(at + 32);
                self.pointer(at + 72);
            }
            SUPERBLOCK_MAGIC => {}
            _ => return None,
        }
        self.seal(at + RECORD_CHECKED, at, RECORD_CHECKED)
    }

    /// The pointer at `at`, with everything below it.
    fn pointer(&mut self, at: usize) -> Option<()> {
        let (offset, len) = (self.u64(at)?, self.u64(at.checked_add(8)?)?);
        let (checked, kind) = (self.u32(at + 32)?, self.get::<1>(at + 36)?[0]);
        if offset < DATA_START || kind == 3 {
            // Null, a value, or nothing that is right.
            return None;
        }
        if self.seen.len() < MOST_EXTENTS && self.seen.insert((offset, kind)) {
            self.put(offset.checked_add(4)?, &u32::try_from(checked).ok()?.to_le_bytes())?;
            self.put(offset + 8, &(len as u64).to_le_bytes())?;
            let _ = match kind {
                1 => self.index_page(offset),
                2 => self.chunk(offset),
                4 => self.pieces(offset),
                5 => self.raw_table(offset),
                6 => self.tree_page(offset),
                // A list of free space leads to the one before.
                8 => self.pointer(offset + 16),
                _ => None,
            };
        }
        self.seal(at + 24, offset, checked)
    }

    fn tree_page(&mut self, page: usize) -> Option<()> {
        let level = self.byte(page + 16)?;
        for cell in 0..self.u32(page + 20)? {
            let cell = page.checked_add(self.u32(page + 24 + 4 * cell)?)?;
            let key_len = usize::from(u16::from_le_bytes(self.get(cell)?));
            let value = cell + 2 + key_len;
            if level > 0 {
                self.pointer(value);
                continue;
            }
            let in_blob = self.u32(value)? >> 31 == 1;
            let record = if in_blob { self.u64(value + 4)?.checked_add(16)? } else { value + 4 };
            self.catalog_record(record);
            if in_blob {
                self.pointer(value + 4);
            }
        }
        Some(())
    }

    fn catalog_record(&mut self, at: usize) -> Option<()> {
        match self.byte(at)? {
            2 => self.pointer(at.checked_add(32)?),
            3 => {
                let offsets = at.checked_add(8 + 8 * self.byte(at + 2)?)?;
                let values = (offsets + 4).checked_add(self.u32(offsets)?)?;
                self.pointer(offsets + 4 + 32);
                self.pointer(values + 4 + 32)
            }
            _ => None,
        }
    }

    fn index_page(&mut self, page: usize) -> Option<()> {
        for entry in 0..usize::try_from(self.u64(page + 32)?.count_ones()).ok()? {
            self.pointer(page + 40 + 40 * entry);
        }
        Some(())
    }

    fn chunk(&mut self, frame: usize) -> Option<()> {
        let (dimensions, blocks) = (self.byte(frame + 17)?, self.u64(frame + 24)?);
        let table = frame + 32 + 8 * dimensions;
        let stored = table.checked_add(blocks.checked_mul(16)?)?;
        let mut start = 0;
        for block in 0..blocks {
            let entry = table + 16 * block;
            let end = self.u64(entry)? & ((1 << 56) - 1);
            self.seal(entry + 8, stored.checked_add(start)?, end.checked_sub(start)?)?;
            start = end;
        }
        Some(())
    }

    fn pieces(&mut self, page: usize) -> Option<()> {
        for piece in 0..self.u32(page + 16)? {
            self.pointer(page.checked_add(32 + 48 * piece + 8)?)?;
        }
        Some(())
    }

    fn raw_table(&mut self, table: usize) -> Option<()> {
        const SPAN: usize = 65536;
        let sums = table + 40 + 8 * self.byte(table + 16)?;
        let (payload, len) = (self.u64(table + 24)?, self.u64(table + 32)?);
        for span in 0..len.div_ceil(SPAN) {
            let start = span.checked_mul(SPAN)?;
            self.seal(sums + 8 * span, payload.checked_add(start)?, SPAN.min(len - start))?;
        }
        Some(())
    }
}
