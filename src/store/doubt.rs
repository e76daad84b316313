//! Whether a deferred commit of another boot or system came to the disk whole.
//!
//! Nobody waited for its bytes, so a power loss may have left any part of them. What stood below the newest synced root was
//! on the disk before; so everything younger is compared with its checksums.

use super::{Frames, Snapshot, index, tree};
use crate::error::{Damage, Error, Result};
use crate::format::{
    ArrayRecord, ChunkHeader, Extent, FreeList, Kind, Pieces, Pointer, RAW_SPAN, RawTable, Record, TreeCell,
};
use crate::num::saturating_usize;
use crate::shape::{self, Dims};
use crate::storage::Storage;
use std::cell::Cell;
use std::ops::ControlFlow;

/// Whether everything in `snapshot` that was born after generation `since` has its checksum.
pub(super) fn is_whole(snapshot: &Snapshot, since: u64) -> Result<bool> {
    match Check::new(snapshot, since, None).and_then(|check| check.run()) {
        Ok(()) => Ok(true),
        Err(Error::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes everything in `snapshot` that was born after generation `since` back as it is, so that the next sync waits for it:
/// after a sync that failed the system takes what it could not write for written. What does not have its checksum is an
/// error.
#[cfg(feature = "write")]
pub(super) fn write_back(snapshot: &Snapshot, since: u64) -> Result<()> {
    Check::new(snapshot, since, Some(&*snapshot.shared()?.storage))?.run()
}

/// Bytes that are written back at once.
#[cfg(feature = "write")]
const STEP: u64 = 1 << 20;

struct Check<'a> {
    snapshot: &'a Snapshot,
    frames: &'a Frames,
    since: u64,
    /// Where what is looked at is written back, if it is.
    #[cfg_attr(not(feature = "write"), expect(dead_code, reason = "only writers write back"))]
    back: Option<&'a dyn Storage>,
    /// Bytes that may still be looked at: a file cannot make more of them than it has.
    budget: Cell<u64>,
}

impl<'a> Check<'a> {
    fn new(snapshot: &'a Snapshot, since: u64, back: Option<&'a dyn Storage>) -> Result<Check<'a>> {
        let budget = Cell::new(snapshot.file_bytes());
        Ok(Check { snapshot, frames: snapshot.frames()?, since, back, budget })
    }

    fn run(&self) -> Result<()> {
        let root = self.snapshot.root();
        self.free_space(&root.free)?;
        self.tree(&root.catalog, |cell| {
            if let TreeCell::Blob(blob) = cell
                && !self.is_new(blob)?
            {
                return Ok(());
            }
            let value = tree::value(self.frames, cell)?;
            // An attribute is text, and no record; what it says does not matter here.
            match Record::parse(&value, self.frames.bounds()) {
                Ok(Record::Array(record)) => self.array(&record),
                Ok(Record::Ragged(record)) => {
                    self.array(&record.offsets)?;
                    self.array(&record.values)
                }
                _ => Ok(()),
            }
        })
    }

    /// Whether what is behind `pointer` has to be looked at.
    fn is_new(&self, pointer: &Pointer) -> Result<bool> {
        match pointer {
            Pointer::Frame { birth, extent, .. } if *birth > self.since => {
                self.visit(*extent)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn visit(&self, extent: Extent) -> Result<()> {
        let left =
            self.budget.get().checked_sub(extent.len).ok_or_else(|| {
                self.frames.damage(Damage::new("more is stored than the file has bytes"), None)
            })?;
        self.budget.set(left);
        #[cfg(feature = "write")]
        if let Some(storage) = self.back {
            let mut buf = Vec::new();
            let len = extent.padded_len();
            for start in (0..len).step_by(saturating_usize(STEP)) {
                let part = Extent { offset: extent.offset + start, len: STEP.min(len - start) };
                let bytes = self.frames.unchecked(part, &mut buf)?;
                storage.write_at(part.offset, bytes).map_err(|source| Error::Io {
                    action: format!("write {} bytes at {} back", part.len, part.offset),
                    file: self.frames.file().to_path_buf(),
                    source,
                })?;
            }
        }
        Ok(())
    }

    /// The lists of free space that are new: those before an old one are older.
    fn free_space(&self, newest: &Pointer) -> Result<()> {
        let mut pointer = *newest;
        let mut buf = Vec::new();
        while self.is_new(&pointer)? {
            let list = FreeList::parse(self.frames.checked(&pointer, &mut buf)?, self.frames.bounds());
            pointer = list.map_err(|damage| self.frames.damage(damage, None))?.before;
        }
        Ok(())
    }

    /// The pages of a tree that are new, and `visit` for the entries in them.
    fn tree(&self, root: &Pointer, mut visit: impl FnMut(&TreeCell<'_>) -> Result<()>) -> Result<()> {
        let mut outcome = Ok(());
        tree::scan(self.frames, root, b"", &mut |met| {
            let step = match met {
                tree::Met::Page(page) => match self.is_new(page) {
                    Ok(false) => return ControlFlow::Break(()),
                    outcome => outcome.map(|_| ()),
                },
                tree::Met::Entry { cell, .. } => visit(cell),
                tree::Met::Lost(error) => Err(error),
            };
            step.map_or_else(
                |error| {
                    outcome = Err(error);
                    ControlFlow::Break(())
                },
                ControlFlow::Continue,
            )
        });
        outcome
    }

    fn array(&self, record: &ArrayRecord) -> Result<()> {
        let frames = self.frames;
        index::walk(frames, record.index, record.index_levels(), 0, &mut |met| match met {
            index::Met::Page(page) => self.is_new(&page),
            index::Met::Lost(error) => Err(error),
            index::Met::Chunk { key, entry } => {
                if self.is_new(&entry)? {
                    let chunk = record.coordinates(key).ok_or_else(|| {
                        frames.damage(Damage::new("an index entry outside the chunk grid"), None)
                    })?;
                    self.chunk(record, &entry, record.chunk_limit(&chunk))?;
                }
                Ok(true)
            }
        })
    }

    fn chunk(&self, record: &ArrayRecord, entry: &Pointer, mut limit: Dims) -> Result<()> {
        let frames = self.frames;
        record.check_entry(entry, &limit).map_err(|damage| frames.damage(damage, None))?;
        let Pointer::Frame { kind, extent, .. } = *entry else { return Ok(()) };
        let here = |damage: Damage| frames.damage(damage, Some(extent.offset));
        match kind {
            Kind::RawTable => {
                let frame = frames.checked_cow(entry)?;
                let table = RawTable::parse(frame, frames.bounds(), &limit, record.dtype.itemsize());
                self.spans(&table.map_err(here)?)
            }
            Kind::Pieces => {
                let frame = frames.checked_cow(entry)?;
                for piece in Pieces::parse(&frame, frames.bounds(), &limit).map_err(here)?.0 {
                    if let Some(rows) = limit.first_mut() {
                        *rows = piece.rows;
                    }
                    if self.is_new(&piece.frame)? {
                        self.blocks(record, &piece.frame, &limit)?;
                    }
                }
                Ok(())
            }
            _ => self.blocks(record, entry, &limit),
        }
    }

    fn blocks(&self, record: &ArrayRecord, pointer: &Pointer, limit: &[u64]) -> Result<()> {
        let frames = self.frames;
        let Pointer::Frame { extent, .. } = *pointer else { return Ok(()) };
        let here = |damage: Damage| frames.damage(damage, Some(extent.offset));
        let header = ChunkHeader::parse(frames.checked_cow(pointer)?, extent, limit, &record.blocks);
        let header = header.map_err(here)?;
        let pool = &self.snapshot.shared()?.pool;
        pool.try_for_each(saturating_usize(header.block_count()), |number| {
            let at = shape::coordinates(number as u64, &header.block_grid).unwrap_or_default();
            let corner: Dims = at.iter().zip(&record.blocks).map(|(at, len)| at * len).collect();
            let items =
                shape::product(&shape::clip(&corner, &record.blocks, &header.valid)).unwrap_or(u64::MAX);
            let bytes = items.saturating_mul(record.dtype.itemsize() as u64);
            let block = header.block(number as u64, bytes).map_err(here)?;
            frames.summed(block.extent, block.checksum, &mut Vec::new()).map(|_| ())
        })
    }

    fn spans(&self, table: &RawTable<'_>) -> Result<()> {
        let (frames, len) = (self.frames, table.payload.len);
        self.visit(table.payload)?;
        let pool = &self.snapshot.shared()?.pool;
        pool.try_for_each(saturating_usize(len.div_ceil(RAW_SPAN)), |span| {
            let start = span as u64 * RAW_SPAN;
            let extent = Extent { offset: table.payload.offset + start, len: RAW_SPAN.min(len - start) };
            let sum =
                table.checksum(span as u64).map_err(|damage| frames.damage(damage, Some(extent.offset)))?;
            frames.summed(extent, sum, &mut Vec::new()).map(|_| ())
        })
    }
}
