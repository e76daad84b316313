//! What becomes of one chunk: which of its frames stay, and what each block of the new one is made of.
//!
//! A chunk that grows along the first dimension is kept as pieces, each a frame of some rows. Pieces that end before the
//! first changed row stay as they are. Of those that would, as many are taken into the new frame as keep their number
//! logarithmic: [`FEWER`] of one size class become one of the next. So a row that was appended alone is written again a
//! few times until its chunk is full, not once for each row that follows.

use super::filter::recorded;
use super::{Change, Target, Writing};
use crate::array::read::{Touched, block_at, parts_within, read_chunk_header};
use crate::codec::{Coding, Filter};
use crate::error::{Damage, Result};
use crate::format::{BlockEntry, ChunkHeader, Kind, PieceEntry, Pieces, Pointer};
use crate::num::saturating_usize;
use crate::selection::Part;
use crate::shape::{self, Dims};
use crate::store::ChunkIndex;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// Pieces of one size class that are joined: more of them are read, fewer are written again more often.
const FEWER: u32 = 4;

/// A new frame, and what it is made from.
pub(super) struct Plan<'a> {
    pub(super) chunk: Dims,
    /// Row of the chunk that the frame starts at: 0 unless pieces before it stay.
    pub(super) first_row: u64,
    /// Its first item in the array.
    pub(super) origin: Dims,
    /// Its shape.
    pub(super) valid: Dims,
    pub(super) grid: Dims,
    /// The pieces before it.
    pub(super) kept: Vec<PieceEntry>,
    /// What the items were that the change does not touch.
    old: Old<'a>,
    /// What the frame before was encoded with.
    pub(super) recorded: Option<Filter>,
    pub(super) filter: Filter,
    /// Whether it was seen to be the right one.
    pub(super) seen: bool,
    /// The blocks that are made, by number.
    pub(super) blocks: Vec<Mutex<Option<Block>>>,
    touched: SmallVec<[Touched; 4]>,
}

/// A block of a new frame.
pub(super) enum Block {
    New {
        coding: Coding,
        bytes: Vec<u8>,
        checksum: u64,
    },
    /// As it stands in an older frame.
    Stored(BlockEntry),
}

enum Old<'a> {
    /// All items are this one.
    Item(SmallVec<[u8; 16]>),
    /// Frames, each with its first item in the array.
    Frames(SmallVec<[(Dims, ChunkHeader<'a>); 1]>),
}

/// What the items of a block are.
pub(super) enum Items<'s> {
    /// As stored.
    Stored(BlockEntry),
    /// One item that is repeated.
    One(SmallVec<[u8; 16]>),
    /// All from the change.
    Changed(SmallVec<[Part<'s>; 4]>),
    /// Old ones, of which the change replaces these.
    Mixed(SmallVec<[Part<'s>; 4]>),
    /// Old ones, in blocks of other shapes or another coding.
    Old,
}

impl<'s> Change<'s> {
    /// What it makes of the box at `corner`; `None` if it does not touch it.
    pub(super) fn items(&self, corner: &[u64], shape: &[u64]) -> Option<Items<'s>> {
        let parts = parts_within(self.selection, corner, shape)?;
        let mut axes = self.selection.axes().iter().zip(corner.iter().zip(shape));
        let whole = axes.all(|(axis, (&low, &len))| axis.covers(low, low + len));
        Some(if whole { Items::Changed(parts) } else { Items::Mixed(parts) })
    }
}

impl<'a> Writing<'a> {
    /// Looks at what there is of a chunk.
    pub(super) fn plan(&self, target: &Target, change: Option<&Change<'_>>) -> Result<Plan<'a>> {
        let record = &self.array.record;
        let chunk = &target.chunk;
        let (origin, limit) = (record.chunk_origin(chunk), record.chunk_limit(chunk));
        let entry = self.array.index.entry(self.frames, record.key(chunk))?;
        record.check_entry(&entry, &limit).map_err(|damage| self.frames.damage(damage, None))?;
        let pieces = self.pieces_of(&entry, &limit)?;
        let stored = pieces.last().map_or(0, |last| last.first_row + last.rows);
        let mut valid = target.cut.clone().unwrap_or_else(|| limit.clone());
        let mut kept = 0;
        let touched_rows = change.and_then(|change| {
            let (axis, (&origin, &limit)) =
                (change.selection.axes().first()?, origin.first().zip(limit.first())?);
            axis.span(origin, origin + limit).map(|(low, high)| (low - origin, high + 1 - origin))
        });
        if let Some((low, high)) = touched_rows {
            // A constant says what all rows are.
            let constant = matches!(entry, Pointer::Constant(_));
            valid[0] = if constant { limit[0] } else { stored.max(high) };
            if valid[0] < record.chunks[0] {
                kept = pieces_kept(&pieces, low, valid[0]);
            }
        }
        let first_row = kept.checked_sub(1).map_or(0, |last| pieces[last].first_row + pieces[last].rows);
        let mut start = origin.clone();
        if first_row > 0 {
            start[0] += first_row;
            valid[0] -= first_row;
        }
        let mut known = None;
        let old = match entry {
            Pointer::Null => Old::Item(record.fill.clone()),
            Pointer::Constant(item) => {
                Old::Item(item.get(..record.dtype.itemsize()).unwrap_or(&record.fill).into())
            }
            Pointer::Frame { .. } => {
                let mut frames = SmallVec::new();
                // Of those that stay, the last one tells what its like is encoded with.
                for (n, piece) in pieces.iter().enumerate().skip(kept.saturating_sub(1)) {
                    let (mut origin, mut limit) = (origin.clone(), limit.clone());
                    if let (Some(origin), Some(limit)) = (origin.first_mut(), limit.first_mut()) {
                        *origin += piece.first_row;
                        *limit = piece.rows;
                    }
                    let header = read_chunk_header(self.frames, record, &piece.frame, &limit)?;
                    known = recorded(record, &header).or(known);
                    if n >= kept {
                        frames.push((origin, header));
                    }
                }
                Old::Frames(frames)
            }
        };
        let grid = shape::grid(&valid, &record.blocks);
        let count = saturating_usize(shape::product(&grid).unwrap_or(u64::MAX));
        let touched = change.and_then(|change| {
            let axes = change.selection.axes().iter().zip(&start).zip(valid.iter().zip(&record.blocks));
            axes.map(|((axis, &origin), (&len, &block))| Touched::of(axis, origin, len, block)).collect()
        });
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(count).map_err(|_| crate::Error::TooLarge {
            what: format!("a chunk of {count} blocks; there is not that much memory"),
        })?;
        blocks.resize_with(count, || Mutex::new(None));
        Ok(Plan {
            chunk: chunk.clone(),
            first_row,
            origin: start,
            valid,
            grid,
            kept: pieces.into_iter().take(kept).collect(),
            old,
            recorded: known,
            filter: Filter::RAW,
            seen: false,
            blocks,
            touched: touched.unwrap_or_default(),
        })
    }

    /// The frames behind the entry of a chunk, as pieces.
    fn pieces_of(&self, entry: &Pointer, limit: &[u64]) -> Result<Vec<PieceEntry>> {
        let Pointer::Frame { kind, extent, .. } = *entry else { return Ok(Vec::new()) };
        if kind == Kind::Pieces {
            let mut buf = Vec::new();
            let page = self.frames.checked(entry, &mut buf)?;
            let pieces = Pieces::parse(page, self.frames.bounds(), limit);
            return Ok(pieces.map_err(|damage: Damage| self.frames.damage(damage, Some(extent.offset)))?.0);
        }
        let header = read_chunk_header(self.frames, &self.array.record, entry, limit)?;
        let rows = header.valid.first().copied().unwrap_or(1);
        Ok(vec![PieceEntry { first_row: 0, rows, frame: *entry }])
    }
}

/// How many of the pieces stay when the rows from `low` on change and there are then `rows` of them.
fn pieces_kept(pieces: &[PieceEntry], low: u64, rows: u64) -> usize {
    let class = |rows: u64| rows.max(1).ilog(u64::from(FEWER));
    let mut kept = pieces.partition_point(|piece| piece.first_row + piece.rows <= low);
    loop {
        let start = kept.checked_sub(1).map_or(0, |last| pieces[last].first_row + pieces[last].rows);
        let class_now = class(rows - start);
        let like = pieces[..kept].iter().rev().take_while(|piece| class(piece.rows) <= class_now).count();
        if like == 0 || (like as u32) < FEWER - 1 {
            return kept;
        }
        kept -= like;
    }
}

impl Plan<'_> {
    /// Bytes of all items.
    pub(super) fn bytes(&self, itemsize: usize) -> u64 {
        shape::product(&self.valid).unwrap_or(u64::MAX).saturating_mul(itemsize as u64)
    }

    /// How many blocks the change touches.
    pub(super) fn touched_count(&self) -> u64 {
        if self.touched.len() < self.grid.len() {
            return 0;
        }
        let counts = self.touched.iter().try_fold(1u64, |count, touched| count.checked_mul(touched.count()));
        counts.unwrap_or(u64::MAX)
    }

    /// The number of a touched block, or, if none is, of any.
    pub(super) fn nth_touched(&self, n: u64) -> u64 {
        match self.touched_count() {
            0 => n,
            _ => shape::linear_index(&block_at(&self.touched, n), &self.grid).unwrap_or(u64::MAX),
        }
    }

    /// Corner of a block in the array, and its shape.
    pub(super) fn place_of(&self, blocks: &[u64], number: u64) -> (Dims, Dims) {
        let at = shape::coordinates(number, &self.grid).unwrap_or_default();
        let corner: Dims = at.iter().zip(blocks).map(|(at, len)| at * len).collect();
        let shape = shape::clip(&corner, blocks, &self.valid);
        (corner.iter().zip(&self.origin).map(|(corner, origin)| corner + origin).collect(), shape)
    }

    /// What the items of a block at `corner` are.
    pub(super) fn items<'s>(
        &self,
        change: Option<&Change<'s>>,
        blocks: &[u64],
        itemsize: usize,
        corner: &[u64],
        shape: &[u64],
    ) -> Result<Items<'s>, Damage> {
        if let Some(items) = change.and_then(|change| change.items(corner, shape)) {
            return Ok(items);
        }
        match &self.old {
            Old::Item(item) => Ok(Items::One(item.clone())),
            Old::Frames(frames) => {
                for (origin, header) in frames {
                    if let Some(entry) = self.stored(origin, header, blocks, itemsize, corner, shape)? {
                        return Ok(Items::Stored(entry));
                    }
                }
                Ok(Items::Old)
            }
        }
    }

    /// The block of an older frame that is the box at `corner`, if there is one that can be taken as it is.
    fn stored(
        &self,
        origin: &[u64],
        header: &ChunkHeader<'_>,
        blocks: &[u64],
        itemsize: usize,
        corner: &[u64],
        shape: &[u64],
    ) -> Result<Option<BlockEntry>, Damage> {
        if (header.word, header.stride) != (self.filter.word, self.filter.recorded_stride()) {
            return Ok(None);
        }
        let mut at = Dims::new();
        for ((&corner, &origin), &block) in corner.iter().zip(origin).zip(blocks) {
            match corner.checked_sub(origin) {
                Some(distance) if distance.is_multiple_of(block) => at.push(distance / block),
                _ => return Ok(None),
            }
        }
        let Some(number) = shape::linear_index(&at, &header.block_grid) else { return Ok(None) };
        let from: Dims = at.iter().zip(blocks).map(|(at, len)| at * len).collect();
        if *shape::clip(&from, blocks, &header.valid) != *shape {
            return Ok(None);
        }
        let bytes = shape::product(shape).unwrap_or(u64::MAX).saturating_mul(itemsize as u64);
        header.block(number, bytes).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that come one at a time, or some at a time, are few pieces at all times, and are written again few times.
    #[test]
    fn pieces_stay_few_and_rows_are_rarely_written_again() {
        for at_once in [1, 3, 100] {
            let (mut pieces, mut rows, mut written) = (Vec::<PieceEntry>::new(), 0, 0);
            while rows < 30_000 {
                let low = rows;
                rows += at_once;
                pieces.truncate(pieces_kept(&pieces, low, rows));
                let first_row = pieces.last().map_or(0, |last| last.first_row + last.rows);
                written += rows - first_row;
                pieces.push(PieceEntry { first_row, rows: rows - first_row, frame: Pointer::Null });
                assert!(pieces.len() <= 30, "{} pieces of {rows} rows", pieces.len());
            }
            assert!(written / rows <= 9, "{rows} rows were written as {written}");
        }
    }

    /// A change of rows that are there leaves the pieces before them.
    #[test]
    fn pieces_before_a_change_stay() {
        let piece = |first_row, rows| PieceEntry { first_row, rows, frame: Pointer::Null };
        let pieces = [piece(0, 1000), piece(1000, 100), piece(1100, 1)];
        assert_eq!(pieces_kept(&pieces, 1101, 1102), 3);
        assert_eq!(pieces_kept(&pieces, 1100, 1101), 2);
        assert_eq!(pieces_kept(&pieces, 1050, 1101), 1);
        assert_eq!(pieces_kept(&pieces, 999, 1101), 0);
        assert_eq!(pieces_kept(&pieces, 0, 1101), 0);
    }
}
