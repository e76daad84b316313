//! Rows that come between others, and rows that go: what is behind them moves along the first dimension.
//!
//! Where the way that they move is a whole number of chunks, chunks get other keys in the index and stay what they are: a
//! chunk at the edge stays one, since nothing follows it, and a constant stays the constant of a whole chunk. Elsewhere
//! items are read and written, box by box. A box is written after what it covers was moved: inserting goes from the
//! back, removing from the front.

use super::check_dtype;
use super::destination::{self, Destination};
use super::read::{Reading, for_each_chunk};
use super::write::WriteOptions;
use crate::dtype::Element;
use crate::error::{Damage, Error, Result};
use crate::format::{ArrayRecord, Pointer};
use crate::selection::{Axis, ResolvedSelection, Selection};
use crate::shape::{self, Dims};
use crate::store::{ChunkIndex, Fate, Staged, StagedArray, Staging, Writer, let_go};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of the items that move at once, unless a chunk has more.
const MOVED_AT_ONCE: u64 = 16 << 20;

impl Writer {
    /// Puts rows, given in C order, before row `at` of an array, or behind the last one; a row is what has one index in the
    /// first dimension. The rows from `at` on move back.
    ///
    /// If the number of rows is a multiple of the chunk length in the first dimension, the chunks from the next one on are
    /// neither read nor written, only entered anew in the index, and with `at` such a multiple no other item moves. Else all
    /// later items are read and written; that holds about 16 MiB of them, or one chunk, at a time.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::DtypeMismatch`], [`Error::OutOfBounds`] if `at` is more than the number of rows;
    /// [`Error::InvalidArgument`] for an array without dimensions or a ragged one, and for items that are no whole number
    /// of rows; [`Error::TooLarge`] for what [`Writer::create_array`] refuses, too: all these before anything is changed.
    /// [`Error::Io`] and [`Error::Corrupt`] if items cannot be written or read; then the writer can only be dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-insert-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("points.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("points", &ArraySpec::new(Dtype::I32, [2, 3]))?;
    /// writer.write("points", &Selection::all(), &[1, 1, 1, 3, 3, 3])?;
    /// writer.insert("points", 1, &[2, 2, 2])?;
    /// assert_eq!(writer.read::<i32>("points", &Selection::all())?, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn insert<T: Element>(&mut self, path: &str, at: u64, items: &[T]) -> Result<()> {
        check_dtype::<T>(&self.array_record(path)?.dtype, path)?;
        self.insert_bytes(path, at, bytemuck::cast_slice(items))
    }

    /// As [`Writer::insert`], of whatever dtype: the items are given as their little-endian bytes.
    ///
    /// # Errors
    ///
    /// As [`Writer::insert`].
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-insert-bytes-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("names.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("names", &ArraySpec::new(Dtype::Bytes(4), [0]))?;
    /// writer.insert_bytes("names", 0, b"zeroone\0")?;
    /// let names = writer.commit()?.array("names")?;
    /// assert_eq!(names.read_bytes(&Selection::from(1))?, b"one\0");
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn insert_bytes(&mut self, path: &str, at: u64, bytes: &[u8]) -> Result<()> {
        let record = self.array_record(path)?;
        let rows = rows_of(&record, path)?;
        if at > rows {
            return Err(Error::OutOfBounds {
                what: format!("rows before row {at} of the array '{path}', which has {rows}"),
            });
        }
        let count = whole_rows(&record, path, bytes)?;
        if count == 0 {
            return Ok(());
        }
        let shape = with_rows(&record, rows.saturating_add(count));
        self.resize(path, &shape)?;
        self.done_for_if_failed(|writer| {
            let behind = rows_behind(&record, at, count);
            if behind < rows {
                writer.move_chunks(path, behind..behind, count.cast_signed())?;
            }
            writer.move_items(path, at..behind, at.saturating_add(count))?;
            writer.write_bytes(path, &rows_selected(at..at + count), bytes, WriteOptions::new())
        })
    }

    /// Takes rows out of an array; a row is what has one index in the first dimension. The rows behind them move forward.
    ///
    /// If the number of rows is a multiple of the chunk length in the first dimension, the chunks from the next one on are
    /// neither read nor written, only entered anew in the index, and with the first row such a multiple no other item moves.
    /// Else all later items are read and written; that holds about 16 MiB of them, or one chunk, at a time. Removing
    /// the last rows is a [`Writer::resize`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::OutOfBounds`] for rows that are not there; [`Error::InvalidArgument`] for a range that ends
    /// before it starts, an array without dimensions or a ragged one: all these before anything is changed.
    /// [`Error::Io`] and [`Error::Corrupt`] if items cannot be written or read; then the writer can only be dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-remove-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("points.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("points", &ArraySpec::new(Dtype::I32, [5]))?;
    /// writer.write("points", &Selection::all(), &[1, 2, 3, 4, 5])?;
    /// writer.remove("points", 1..3)?;
    /// assert_eq!(writer.read::<i32>("points", &Selection::all())?, [1, 4, 5]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn remove(&mut self, path: &str, rows: Range<u64>) -> Result<()> {
        let record = self.array_record(path)?;
        let all = rows_of(&record, path)?;
        if rows.start > rows.end {
            return Err(Error::invalid(format!(
                "the rows {rows:?} of the array '{path}', which end before they start"
            )));
        }
        if rows.end > all {
            return Err(Error::OutOfBounds {
                what: format!("the rows {rows:?} of the array '{path}', which has {all}"),
            });
        }
        let count = rows.end - rows.start;
        if count == 0 {
            return Ok(());
        }
        let behind = rows_behind(&record, rows.end, count);
        self.done_for_if_failed(|writer| {
            writer.move_items(path, rows.end..behind, rows.start)?;
            if behind < all {
                writer.move_chunks(path, behind - count..behind, -count.cast_signed())?;
            }
            writer.resize(path, &with_rows(&record, all - count))
        })
    }

    fn done_for_if_failed(&mut self, work: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
        let outcome = work(self);
        if let Err(error) = &outcome {
            self.poison(error);
        }
        outcome
    }

    /// Moves the chunks from row `rows.end` on by so many rows, and lets go of those in `rows` before. All three are
    /// multiples of the chunk length, and no chunk is in the way.
    fn move_chunks(&mut self, path: &str, rows: Range<u64>, by: i64) -> Result<()> {
        self.stage_write(path, |Staging { frames, space, staged, .. }| {
            let StagedArray { record, index, .. } = plain(staged, path)?;
            let before = record.clone();
            let chunk = before.chunks.first().copied().unwrap_or(1).max(1);
            let (low, high, by) = (rows.start / chunk, rows.end / chunk, by / chunk.cast_signed());
            let outside = || frames.damage(Damage::new("an index entry outside the chunk grid"), None);
            let fate = |key, free| {
                let (least, largest) = before.key_box(key, free);
                match (least.first(), largest.first()) {
                    (Some(&least), _) if least >= low => Fate::Drop,
                    (_, Some(&largest)) if largest >= low => Fate::Cut,
                    _ => Fate::Keep,
                }
            };
            let mut moved: Vec<(Dims, Pointer)> = Vec::new();
            index.prune(frames, space, &fate, &mut |space, key, entry, _| {
                let mut chunk = before.coordinates(key).ok_or_else(outside)?;
                match chunk.first_mut() {
                    Some(first) if *first >= high => {
                        *first = first.saturating_add_signed(by);
                        moved.push((chunk, entry));
                        Ok(())
                    }
                    _ => let_go(record, frames, space, &chunk, &entry),
                }
            })?;
            for (chunk, entry) in moved {
                index.set(frames, space, record.key(&chunk), entry)?;
            }
            Ok(())
        })
    }

    /// Copies the items of `rows` to the rows from `to` on, which may overlap with them.
    fn move_items(&mut self, path: &str, rows: Range<u64>, to: u64) -> Result<()> {
        let record = self.array_record(path)?;
        if rows.is_empty() || record.shape.contains(&0) {
            return Ok(());
        }
        let step = boxes_at_once(&record);
        let rows_at_once = step.first().copied().unwrap_or(1).max(1);
        let target = to..to + (rows.end - rows.start);
        let boxes = self.boxes_with_items(path, &rows, &target, rows_at_once)?;
        let mut corner = Dims::from_elem(0, record.shape.len());
        loop {
            let mut next = boxes.iter();
            while let Some(number) = if to > rows.start { next.next_back() } else { next.next() } {
                let low = number.saturating_mul(rows_at_once);
                let target = low.max(target.start)..low.saturating_add(rows_at_once).min(target.end);
                let mut shape = shape::clip(&corner, &step, &record.shape);
                let (mut from, mut into) = (corner.clone(), corner.clone());
                if let (Some(len), Some(from), Some(into)) =
                    (shape.first_mut(), from.first_mut(), into.first_mut())
                {
                    *len = target.end - target.start;
                    *from = target.start - to + rows.start;
                    *into = target.start;
                }
                self.move_box(path, &from, &into, &shape)?;
            }
            // The next corner in the other dimensions, in C order.
            let dims = (1..corner.len()).rev();
            let mut dims = dims.skip_while(|&dim| {
                corner[dim] = corner[dim].saturating_add(step[dim]);
                let over = corner[dim] >= record.shape[dim];
                if over {
                    corner[dim] = 0;
                }
                over
            });
            if dims.next().is_none() {
                return Ok(());
            }
        }
    }

    /// The numbers of the boxes of so many rows, of those that `rows` move to, in which something is or comes. Reads the
    /// index, so that what is not there costs nothing, however long the array is.
    fn boxes_with_items(
        &mut self,
        path: &str,
        rows: &Range<u64>,
        target: &Range<u64>,
        rows_at_once: u64,
    ) -> Result<BTreeSet<u64>> {
        let Staging { frames, staged, .. } = self.stage(path)?;
        let StagedArray { record, index, .. } = &*plain(staged, path)?;
        let mut boxes = BTreeSet::new();
        let mut add = |low: u64, high: u64| {
            let (low, high) = (low.max(target.start), high.min(target.end));
            if low < high {
                boxes.extend(low / rows_at_once..high.div_ceil(rows_at_once));
            }
        };
        index.for_each(frames, &mut |key, _| {
            let chunk = record
                .coordinates(key)
                .ok_or_else(|| frames.damage(Damage::new("an index entry outside the chunk grid"), None))?;
            let (origin, limit) = (record.chunk_origin(&chunk), record.chunk_limit(&chunk));
            if let (Some(&low), Some(&len)) = (origin.first(), limit.first()) {
                add(low, low + len);
                let (low, high) = (low.max(rows.start), (low + len).min(rows.end));
                if low < high {
                    add(low - rows.start + target.start, high - rows.start + target.start);
                }
            }
            Ok(())
        })?;
        Ok(boxes)
    }

    fn move_box(&mut self, path: &str, from: &[u64], to: &[u64], shape: &[u64]) -> Result<()> {
        let Staging { shared, frames, staged, .. } = self.stage(path)?;
        let StagedArray { record, index, .. } = &*plain(staged, path)?;
        let source = ResolvedSelection::of_box(from, shape);
        if is_absent(&source, record, index, frames)?
            && is_absent(&ResolvedSelection::of_box(to, shape), record, index, frames)?
        {
            return Ok(());
        }
        let itemsize = record.dtype.itemsize();
        let len = source.len().saturating_mul(itemsize as u64);
        let bytes = destination::filled::<u8>(len, |memory| {
            let destination = Destination::contiguous(memory, shape, itemsize)?;
            Reading { shared, frames, record, index, path, cached: false }.read(&source, &destination)
        })?;
        let axes = to.iter().zip(shape).map(|(&at, &len)| range(at..at.saturating_add(len)));
        self.write_bytes(path, &Selection::new(axes), &bytes, WriteOptions::new())
    }
}

fn plain<'a>(staged: &'a mut Staged, path: &str) -> Result<&'a mut StagedArray> {
    match staged {
        Staged::Array(array) => Ok(array),
        Staged::Ragged(_) => Err(super::append::ragged(path)),
    }
}

/// Whether no chunk that a selection touches is there.
fn is_absent(
    selection: &ResolvedSelection,
    record: &ArrayRecord,
    index: &dyn ChunkIndex,
    frames: &crate::store::Frames,
) -> Result<bool> {
    let mut absent = true;
    for_each_chunk(selection, &record.chunks, &mut |chunk| {
        absent = absent && index.entry(frames, record.key(chunk))? == Pointer::Null;
        Ok(())
    })?;
    Ok(absent)
}

/// The number of rows of an array.
fn rows_of(record: &ArrayRecord, path: &str) -> Result<u64> {
    record.shape.first().copied().ok_or_else(|| {
        Error::invalid(format!("'{path}' has no dimensions, and so no rows that could come or go"))
    })
}

/// How many rows these bytes are.
fn whole_rows(record: &ArrayRecord, path: &str, bytes: &[u8]) -> Result<u64> {
    let row = record.shape.get(1..).and_then(shape::product).unwrap_or(u64::MAX);
    let row = row.saturating_mul(record.dtype.itemsize() as u64);
    let len = bytes.len() as u64;
    match len.checked_div(row) {
        Some(count) if count * row == len => Ok(count),
        None if len == 0 => Ok(0),
        _ => Err(Error::invalid(format!(
            "{len} bytes are no whole number of rows of the array '{path}': a row has {row}"
        ))),
    }
}

/// The shape with another number of rows.
fn with_rows(record: &ArrayRecord, rows: u64) -> Dims {
    let mut shape = record.shape.clone();
    if let Some(first) = shape.first_mut() {
        *first = rows;
    }
    shape
}

/// The row from `at` on from which chunks can move by `count` rows as they are; the number of rows if there is none.
fn rows_behind(record: &ArrayRecord, at: u64, count: u64) -> u64 {
    let (rows, chunk) = match (record.shape.first(), record.chunks.first()) {
        (Some(&rows), Some(&chunk)) => (rows, chunk.max(1)),
        _ => return at,
    };
    let whole = at.checked_next_multiple_of(chunk).filter(|_| count.is_multiple_of(chunk));
    whole.map_or(rows, |whole| whole.min(rows))
}

/// The shape of the boxes that move at once: whole chunks, more of them along the last dimensions first.
fn boxes_at_once(record: &ArrayRecord) -> Dims {
    let mut step: Dims =
        record.chunks.iter().zip(&record.shape).map(|(&chunk, &len)| chunk.min(len)).collect();
    for dim in (0..step.len()).rev() {
        let bytes = shape::product(&step).unwrap_or(u64::MAX);
        let bytes = bytes.saturating_mul(record.dtype.itemsize() as u64).max(1);
        let times = (MOVED_AT_ONCE / bytes).max(1);
        step[dim] = record.chunks[dim].saturating_mul(times).min(record.shape[dim]);
        if step[dim] < record.shape[dim] {
            // Boxes must stay whole chunks.
            break;
        }
    }
    step
}

fn range(range: Range<u64>) -> Axis {
    let bound = |bound: u64| Some(i64::try_from(bound).unwrap_or(i64::MAX));
    Axis::Range { start: bound(range.start), stop: bound(range.end), step: 1 }
}

fn rows_selected(rows: Range<u64>) -> Selection {
    Selection::new([range(rows)])
}
