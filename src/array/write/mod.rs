//! The one write path: from a selection to the chunks that it touches, to their blocks, to the file.
//!
//! The unit of work is the block. For each chunk a [`plan`] says what becomes of it; its blocks are [encoded](encode)
//! from the caller's items, taken as they are stored, or decoded, changed and encoded again, all in parallel; the chunk is
//! [placed](place) and written while the next ones are encoded. [`filter`] settles what it is encoded with, and a [`source`]
//! is where the items come from.

mod encode;
mod filter;
mod place;
mod plan;
mod source;

pub(super) use source::Source;

use self::encode::{Buffers, Encoded};
use self::place::Placed;
use super::append::ragged;
use super::read::{PARALLEL_FROM, Reading, for_each_chunk, locate, parts_within};
use super::spec::ArraySpec;
use super::strided::Strided;
use super::{check_dtype, destination};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::format::{ArrayRecord, Extent, Layout, Record};
use crate::num::saturating_usize;
use crate::progress::{Progress, ProgressCallback};
use crate::selection::{Part, ResolvedSelection, Selection};
use crate::shape::{self, Dims};
use crate::store::{EncodedWith, Frames, Shared, Space, Staged, StagedArray, Staging, Writer};
use std::collections::VecDeque;

/// Decoded bytes of the chunks that are encoded at once. A write needs memory for twice as many encoded ones, and for a
/// chunk if that is larger.
const BATCH_BYTES: u64 = 32 << 20;

/// Options of one write.
#[derive(Clone, Copy, Default)]
#[must_use]
pub struct WriteOptions<'a> {
    progress: Option<&'a ProgressCallback<'a>>,
}

impl<'a> WriteOptions<'a> {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Called on the calling thread after each few chunks. `Break` cancels the write: it returns
    /// [`Error::Cancelled`], and the writer can only be dropped.
    pub fn progress(mut self, callback: &'a ProgressCallback<'a>) -> Self {
        self.progress = Some(callback);
        self
    }
}

impl Writer {
    /// Creates an array, and the groups above it that are not there. All its items read as the fill value.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the name is taken, [`Error::InvalidArgument`] and [`Error::TooLarge`] for a name or an
    /// array that cannot be.
    pub fn create_array(&mut self, path: &str, spec: &ArraySpec) -> Result<()> {
        self.add_array(path, Record::Array(Box::new(spec.record()?)))
    }

    /// Writes the items of a selection, given in C order.
    ///
    /// The unit of work is the block: of a chunk that is there, the blocks that the selection does not touch are copied as
    /// they are stored, those that it covers are encoded from `items`, and only those that it covers in part are decoded.
    /// Uses memory for two batches of encoded chunks (32 MiB of items each, or one chunk).
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::DtypeMismatch`], [`Error::OutOfBounds`] and [`Error::InvalidArgument`] for arguments that do
    /// not fit, before anything is written; [`Error::Io`] if the file cannot be written, [`Error::Corrupt`] if present
    /// items cannot be read. After the latter two the writer can only be dropped.
    pub fn write<T: Element>(&mut self, path: &str, selection: &Selection, items: &[T]) -> Result<()> {
        self.write_with(path, selection, items, WriteOptions::new())
    }

    /// As [`Writer::write`], with options.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`]; [`Error::Cancelled`] if the progress callback said so.
    pub fn write_with<T: Element>(
        &mut self,
        path: &str,
        selection: &Selection,
        items: &[T],
        options: WriteOptions<'_>,
    ) -> Result<()> {
        check_dtype::<T>(&self.array_record(path)?.dtype, path)?;
        self.write_bytes(path, selection, bytemuck::cast_slice(items), options)
    }

    /// Writes the items of a selection, of whatever dtype, given as their little-endian bytes in C order.
    ///
    /// # Errors
    ///
    /// As [`Writer::write_with`].
    pub fn write_bytes(
        &mut self,
        path: &str,
        selection: &Selection,
        bytes: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<()> {
        let record = self.array_record(path)?;
        let (selection, itemsize) = (selection.resolve(&record.shape)?, record.dtype.itemsize());
        let due = selection.len().checked_mul(itemsize as u64);
        if due != Some(bytes.len() as u64) {
            return Err(Error::invalid(format!(
                "{} bytes for the array '{path}', where {} items of {itemsize} bytes in the shape {:?} are selected",
                bytes.len(),
                selection.len(),
                selection.out_shape()
            )));
        }
        let strides = destination::byte_strides(&selection.full_shape(), itemsize);
        self.write_source(path, &selection, &Source::new(bytes, 0, strides), options)
    }

    /// Writes items that stand in memory with strides: a part of a larger array, Fortran order, a reversed axis. Their
    /// shape is that of the selection, or one that goes into it by NumPy's rules of broadcasting: aligned at the last
    /// dimension, missing dimensions and those of length 1 are repeated.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store, Strided, WriteOptions};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-strided-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("matrix.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("matrix", &ArraySpec::new(Dtype::I16, [2, 3]))?;
    /// // The columns of a matrix of 2 rows and 3 columns, one after the other.
    /// let columns = [1i16, 4, 2, 5, 3, 6];
    /// let fortran = Strided::new(&columns, 0, &[2, 3], &[1, 2])?;
    /// writer.write_strided("matrix", &Selection::all(), fortran, WriteOptions::new())?;
    /// assert_eq!(writer.read::<i16>("matrix", &Selection::all())?, [1, 2, 3, 4, 5, 6]);
    /// // One row for all.
    /// let row = Strided::new(&[7i16, 8, 9], 0, &[3], &[1])?;
    /// writer.write_strided("matrix", &Selection::all(), row, WriteOptions::new())?;
    /// assert_eq!(writer.read::<i16>("matrix", &Selection::all())?, [7, 8, 9, 7, 8, 9]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Writer::write_with`].
    pub fn write_strided<T: Element>(
        &mut self,
        path: &str,
        selection: &Selection,
        items: Strided<'_, T>,
        options: WriteOptions<'_>,
    ) -> Result<()> {
        let record = self.array_record(path)?;
        check_dtype::<T>(&record.dtype, path)?;
        let selection = selection.resolve(&record.shape)?;
        let source = items.resolve(&selection)?;
        self.write_source(path, &selection, &source, options)
    }

    /// Sets all items of a selection to `item`. Chunks that are covered need no space, whatever their size.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`].
    pub fn fill<T: Element>(&mut self, path: &str, selection: &Selection, item: T) -> Result<()> {
        check_dtype::<T>(&self.array_record(path)?.dtype, path)?;
        self.fill_bytes(path, selection, bytemuck::bytes_of(&item))
    }

    /// As [`Writer::fill`], for an item of whatever dtype, given as its little-endian bytes.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`].
    pub fn fill_bytes(&mut self, path: &str, selection: &Selection, item: &[u8]) -> Result<()> {
        let record = self.array_record(path)?;
        let (selection, itemsize) = (selection.resolve(&record.shape)?, record.dtype.itemsize());
        if item.len() != itemsize {
            return Err(Error::invalid(format!(
                "an item of {} bytes for the array '{path}' of items of {itemsize}",
                item.len()
            )));
        }
        let source = Source::repeated(item, record.shape.len());
        self.write_source(path, &selection, &source, WriteOptions::new())
    }

    fn write_source(
        &mut self,
        path: &str,
        selection: &ResolvedSelection,
        source: &Source<'_>,
        options: WriteOptions<'_>,
    ) -> Result<()> {
        self.stage_write(path, |staging| match staging.staged {
            Staged::Array(array) => Writing::new(staging.shared, staging.frames, staging.space, array, path)
                .write(selection, source, options),
            Staged::Ragged(_) => Err(ragged(path)),
        })
    }

    /// Reads the items of a selection as staged, in C order.
    ///
    /// # Errors
    ///
    /// As [`Array::read`](crate::Array::read).
    pub fn read<T: Element>(&mut self, path: &str, selection: &Selection) -> Result<Vec<T>> {
        check_dtype::<T>(&self.array_record(path)?.dtype, path)?;
        self.read_staged(path, selection, |selection, _| selection.len())
    }

    /// Reads the items of a selection as staged, of whatever dtype, as their little-endian bytes in C order.
    ///
    /// # Errors
    ///
    /// As [`Array::read_bytes`](crate::Array::read_bytes).
    pub fn read_bytes(&mut self, path: &str, selection: &Selection) -> Result<Vec<u8>> {
        self.read_staged(path, selection, |selection, itemsize| {
            selection.len().saturating_mul(itemsize as u64)
        })
    }

    /// Reads as many `T` as `len` says of the selection and the item size.
    fn read_staged<T: bytemuck::Pod>(
        &mut self,
        path: &str,
        selection: &Selection,
        len: impl FnOnce(&ResolvedSelection, usize) -> u64,
    ) -> Result<Vec<T>> {
        let Staging { shared, frames, staged, .. } = self.stage(path)?;
        let Staged::Array(array) = &*staged else {
            return Err(ragged(path));
        };
        let StagedArray { record, index, .. } = &**array;
        let (selection, itemsize) = (selection.resolve(&record.shape)?, record.dtype.itemsize());
        destination::filled(len(&selection, itemsize), |memory| {
            let destination =
                destination::Destination::contiguous(memory, &selection.full_shape(), itemsize)?;
            Reading { shared, frames, record, index, path, cached: false }.read(&selection, &destination)
        })
    }

    pub(super) fn array_record(&mut self, path: &str) -> Result<ArrayRecord> {
        match self.stage(path)?.staged {
            Staged::Array(array) => Ok(array.record.clone()),
            Staged::Ragged(_) => Err(ragged(path)),
        }
    }

    /// Does `work` on a staged array. If it fails, space may have been taken that nothing reaches, so the writer is
    /// done for.
    pub(super) fn stage_write<R>(
        &mut self,
        path: &str,
        work: impl FnOnce(Staging<'_>) -> Result<R>,
    ) -> Result<R> {
        let outcome = self.stage(path).and_then(work);
        match &outcome {
            Ok(_) => self.note_change(),
            Err(error) => self.poison(error),
        }
        outcome
    }
}

/// Items that are to be in the array, and where.
pub(super) struct Change<'s> {
    selection: &'s ResolvedSelection,
    source: &'s Source<'s>,
}

/// A chunk that is written anew.
pub(super) struct Target {
    pub(super) chunk: Dims,
    /// The part that stays, if the array's edge is to cut it.
    pub(super) cut: Option<Dims>,
}

/// A chunk that is encoded, with its coordinates.
type Made<'s> = (Dims, Encoded<'s>);

/// A write to one array.
pub(super) struct Writing<'a> {
    shared: &'a Shared,
    pub(super) frames: &'a Frames,
    pub(super) space: &'a mut Space,
    pub(super) array: &'a mut StagedArray,
    pub(super) path: &'a str,
    /// In the raw layout: the places of the payloads that are still to be written.
    payloads: VecDeque<Extent>,
    buffers: Buffers,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        frames: &'a Frames,
        space: &'a mut Space,
        array: &'a mut StagedArray,
        path: &'a str,
    ) -> Self {
        let (payloads, buffers) = (VecDeque::new(), Buffers::default());
        Writing { shared, frames, space, array, path, payloads, buffers }
    }

    /// Writes the items of `source` to the places of `selection`.
    pub(super) fn write(
        mut self,
        selection: &ResolvedSelection,
        source: &Source<'_>,
        options: WriteOptions<'_>,
    ) -> Result<()> {
        let itemsize = self.array.record.dtype.itemsize() as u64;
        let chunks = self.array.record.chunks.clone();
        if self.array.record.layout == Layout::Raw {
            let record = &self.array.record;
            let mut items = Vec::new();
            for_each_chunk(selection, &chunks, &mut |chunk| {
                items.push(shape::product(&record.chunk_limit(chunk)).unwrap_or(u64::MAX));
                Ok(())
            })?;
            self.reserve_payloads(items)?;
        }
        let change = Change { selection, source };
        let mut progress = Progress { done: 0, total: selection.len().saturating_mul(itemsize) };
        let mut batch: Vec<Target> = Vec::new();
        let mut waiting = Placed::default();
        let mut left = self.chunks_at_once();
        for_each_chunk(selection, &chunks, &mut |chunk| {
            batch.push(Target { chunk: chunk.into(), cut: None });
            if batch.len() < left {
                return Ok(());
            }
            waiting = self.write_batch(&batch, Some(&change), std::mem::take(&mut waiting))?;
            for target in batch.drain(..) {
                progress.done += self.selected_bytes(selection, &target.chunk);
            }
            left = self.chunks_at_once();
            progress.tell(options.progress)
        })?;
        if !batch.is_empty() {
            waiting = self.write_batch(&batch, Some(&change), waiting)?;
            progress.done = progress.total;
            progress.tell(options.progress)?;
        }
        self.finish(waiting)
    }

    /// Writes all items of one chunk, which are given in C order.
    pub(super) fn write_chunk(&mut self, chunk: &Dims, bytes: &[u8]) -> Result<()> {
        let (origin, shape) = (self.array.record.chunk_origin(chunk), self.array.record.chunk_limit(chunk));
        let selection = ResolvedSelection::of_box(&origin, &shape);
        let strides = destination::byte_strides(&shape, self.array.record.dtype.itemsize());
        let change = Change { selection: &selection, source: &Source::new(bytes, 0, strides) };
        let target = Target { chunk: chunk.clone(), cut: None };
        let placed = self.write_batch(&[target], Some(&change), Placed::default())?;
        self.finish(placed)
    }

    /// Writes chunks anew of which the array's edge is to cut off a part.
    pub(super) fn cut(&mut self, targets: &[Target]) -> Result<()> {
        let mut waiting = Placed::default();
        for batch in targets.chunks(self.chunks_at_once()) {
            waiting = self.write_batch(batch, None, waiting)?;
        }
        self.finish(waiting)
    }

    /// How many chunks are encoded at once: only one before the first choice of a filter, which may do for the others.
    fn chunks_at_once(&self) -> usize {
        let record = &self.array.record;
        if self.array.encoded_with.is_none()
            && record.coding == crate::format::CODING_CHOSEN
            && record.layout == Layout::Blocks
        {
            return 1;
        }
        let itemsize = record.dtype.itemsize() as u64;
        let chunk_bytes = shape::product(&record.chunks).unwrap_or(u64::MAX).saturating_mul(itemsize);
        let array_bytes = shape::product(&record.shape).unwrap_or(u64::MAX).saturating_mul(itemsize);
        saturating_usize((BATCH_BYTES / chunk_bytes.min(array_bytes).max(1)).clamp(1, 4096))
    }

    fn selected_bytes(&self, selection: &ResolvedSelection, chunk: &[u64]) -> u64 {
        let record = &self.array.record;
        let parts = parts_within(selection, &record.chunk_origin(chunk), &record.chunk_limit(chunk));
        let items = parts.map_or(0, |parts| parts.iter().map(part_len).product::<u64>());
        items.saturating_mul(record.dtype.itemsize() as u64)
    }

    /// Encodes chunks, while those that are `waiting` are written, and gives them their places.
    fn write_batch<'s>(
        &mut self,
        targets: &[Target],
        change: Option<&Change<'s>>,
        waiting: Placed<'s>,
    ) -> Result<Placed<'s>> {
        let this = &*self;
        let (encoded, written) =
            this.shared.pool.join(|| this.encode(targets, change), || this.write_placed(&waiting));
        written?;
        self.let_go(waiting);
        let (encoded, encoded_with) = encoded?;
        self.array.encoded_with = encoded_with;
        self.place(encoded)
    }

    fn finish(&mut self, waiting: Placed<'_>) -> Result<()> {
        self.write_placed(&waiting)?;
        self.let_go(waiting);
        Ok(())
    }

    /// Encodes chunks: their plans first, then all their blocks. Says what will do for the next ones.
    fn encode<'s>(
        &self,
        targets: &[Target],
        change: Option<&Change<'s>>,
    ) -> Result<(Vec<Made<'s>>, Option<EncodedWith>)> {
        let chunk_of = |target: &Target| target.chunk.clone();
        if self.array.record.layout == Layout::Raw {
            let encoded =
                self.shared.pool.try_map(targets.len(), |n| self.encode_raw(&targets[n], change))?;
            return Ok((targets.iter().map(chunk_of).zip(encoded).collect(), None));
        }
        let plans = self.shared.pool.try_map(targets.len(), |n| {
            let here = |error| locate(error, self.path, &targets[n].chunk, None);
            let mut plan = self.plan(&targets[n], change).map_err(here)?;
            plan.seen = self.settle_filter(&mut plan, change, n).map_err(here)?;
            Ok(plan)
        })?;
        let mut ends = Vec::new();
        let (mut units, mut bytes) = (0, 0u64);
        for plan in &plans {
            units += plan.blocks.len();
            ends.push(units);
            bytes = bytes.saturating_add(plan.bytes(self.array.record.dtype.itemsize()));
        }
        let work = |unit: usize| {
            let at = ends.partition_point(|end| *end <= unit);
            let Some(plan) = plans.get(at) else { return Ok(()) };
            let number = unit + plan.blocks.len() - ends[at];
            let mut slot = plan.blocks[number].lock();
            if slot.is_none() {
                let block = self.encode_block(plan, change, number as u64);
                let here = |error| locate(error, self.path, &plan.chunk, Some(number as u64));
                *slot = Some(block.map_err(here)?);
            }
            Ok(())
        };
        if bytes >= PARALLEL_FROM {
            self.shared.pool.try_for_each(units, work)?;
        } else {
            (0..units).try_for_each(work)?;
        }
        let encoded_with = self.encoded_with(&plans);
        let encoded: Result<Vec<_>> =
            plans.into_iter().map(|plan| Ok((plan.chunk.clone(), self.finish_frame(plan)?))).collect();
        Ok((encoded?, encoded_with))
    }

    /// The items of a box of the array as staged, in C order.
    fn read_box(&self, origin: &[u64], shape: &[u64]) -> Result<Vec<u8>> {
        let StagedArray { record, index, .. } = &*self.array;
        let (shared, frames, path) = (self.shared, self.frames, self.path);
        Reading { shared, frames, record, index, path, cached: false }.read_box(origin, shape)
    }
}

fn part_len(part: &Part<'_>) -> u64 {
    match part {
        Part::Range { len, .. } => *len,
        Part::List(list) => list.len() as u64,
    }
}
