//! The one write path: from a selection to the chunks that it touches, encoded in parallel, written, and entered in the
//! array's staged index.

use super::read::{Reading, for_each_chunk, parts_within};
use super::spec::ArraySpec;
use super::{check_dtype, destination};
use crate::codec::{Coding, Encoder, Filter, Profile, choose, with_encoder};
use crate::dtype::Element;
use crate::error::{Damage, Error, Result};
use crate::format::{
    ALIGNMENT, ArrayRecord, CODING_CHOSEN, Extent, Kind, Layout, Pointer, RAW_SPAN, Record, checksum,
    encode_chunk_header, encode_raw_table, seal_frame,
};
use crate::num::{round_up, saturating_usize};
use crate::progress::{Progress, ProgressCallback};
use crate::selection::{Part, ResolvedSelection, Selection};
use crate::shape::{self, Dims};
use crate::store::{Frames, Shared, Space, Staged, StagedArray, Staging, Writer};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Decoded bytes of the chunks that are encoded at once: the bound on the memory of a write, beside one chunk.
const BATCH_BYTES: u64 = 64 << 20;
/// Blocks of a chunk on which the codings are tried.
const SAMPLES: u64 = 6;

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
    /// A chunk that the selection covers is encoded from `items`; of another one the present items are read and the
    /// chunk is written anew. Uses memory for some chunks (64 MiB before compression) and for those that are
    /// covered in part.
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
                "{} bytes for {} items of {itemsize} bytes in the shape {:?}",
                bytes.len(),
                selection.len(),
                selection.out_shape()
            )));
        }
        let strides = destination::byte_strides(&selection.full_shape(), itemsize);
        let source = Source { bytes, strides };
        self.stage_write(path, |staging| match staging.staged {
            Staged::Array(array) => Writing::new(staging.shared, staging.frames, staging.space, array, path)
                .write(&selection, &source, options),
            Staged::Ragged(_) => Err(Error::invalid(format!("'{path}' is a ragged array"))),
        })
    }

    /// Reads the items of a selection as staged, in C order.
    ///
    /// # Errors
    ///
    /// As [`Array::read`](crate::Array::read).
    pub fn read<T: Element>(&mut self, path: &str, selection: &Selection) -> Result<Vec<T>> {
        check_dtype::<T>(&self.array_record(path)?.dtype, path)?;
        let Staging { shared, frames, staged, .. } = self.stage(path)?;
        let Staged::Array(array) = &*staged else {
            return Err(Error::invalid(format!("'{path}' is a ragged array")));
        };
        let StagedArray { record, index } = &**array;
        let selection = selection.resolve(&record.shape)?;
        destination::filled(selection.len(), |memory| {
            let destination = destination::Destination::contiguous(
                memory,
                &selection.full_shape(),
                record.dtype.itemsize(),
            )?;
            Reading { shared, frames, record, index, path, cached: false }.read(&selection, &destination)
        })
    }

    fn array_record(&mut self, path: &str) -> Result<ArrayRecord> {
        match self.stage(path)?.staged {
            Staged::Array(array) => Ok(array.record.clone()),
            Staged::Ragged(_) => Err(Error::invalid(format!("'{path}' is a ragged array"))),
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

/// Where the items of a write come from: bytes in which the item at a position of the selection starts at the sum of
/// position times stride.
pub(super) struct Source<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) strides: SmallVec<[isize; 4]>,
}

/// A write to one array.
pub(super) struct Writing<'a> {
    shared: &'a Shared,
    pub(super) frames: &'a Frames,
    pub(super) space: &'a mut Space,
    pub(super) array: &'a mut StagedArray,
    pub(super) path: &'a str,
    /// In the raw layout: the places of the payloads that are still to be written.
    payloads: VecDeque<Extent>,
}

/// A chunk as it will stand in the file, without its place there.
pub(super) enum Encoded {
    /// Every item is the fill value.
    Absent,
    Constant(Pointer),
    Frame {
        filter: Filter,
        valid: Dims,
        blocks: Vec<EncodedBlock>,
    },
    Raw {
        valid: Dims,
        payload: Vec<u8>,
    },
}

pub(super) struct EncodedBlock {
    coding: Coding,
    bytes: Vec<u8>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        frames: &'a Frames,
        space: &'a mut Space,
        array: &'a mut StagedArray,
        path: &'a str,
    ) -> Self {
        Writing { shared, frames, space, array, path, payloads: VecDeque::new() }
    }

    pub(super) fn write(
        mut self,
        selection: &ResolvedSelection,
        source: &Source<'_>,
        options: WriteOptions<'_>,
    ) -> Result<()> {
        let at_once = self.chunks_at_once();
        let itemsize = self.array.record.dtype.itemsize() as u64;
        if self.array.record.layout == Layout::Raw {
            let record = &self.array.record;
            let mut items = Vec::new();
            for_each_chunk(selection, &record.chunks, &mut |chunk| {
                items.push(shape::product(&record.chunk_limit(chunk)).unwrap_or(u64::MAX));
                Ok(())
            })?;
            self.reserve_payloads(items)?;
        }
        let mut progress = Progress { done: 0, total: selection.len().saturating_mul(itemsize) };
        let chunks = self.array.record.chunks.clone();
        let mut batch: Vec<Dims> = Vec::new();
        let mut flush = |batch: &mut Vec<Dims>| {
            for chunk in batch.iter() {
                progress.done += self.selected_bytes(selection, chunk);
            }
            self.write_chunks(batch, &|this, chunk| this.encode(selection, source, &batch[chunk]))?;
            batch.clear();
            progress.tell(options.progress)
        };
        for_each_chunk(selection, &chunks, &mut |chunk| {
            batch.push(chunk.into());
            if batch.len() < at_once { Ok(()) } else { flush(&mut batch) }
        })?;
        if batch.is_empty() { Ok(()) } else { flush(&mut batch) }
    }

    /// How many chunks are encoded at once.
    pub(super) fn chunks_at_once(&self) -> usize {
        let record = &self.array.record;
        let itemsize = record.dtype.itemsize() as u64;
        let chunk_bytes = shape::product(&record.chunks).unwrap_or(u64::MAX).saturating_mul(itemsize);
        let array_bytes = shape::product(&record.shape).unwrap_or(u64::MAX).saturating_mul(itemsize);
        saturating_usize((BATCH_BYTES / chunk_bytes.min(array_bytes).max(1)).clamp(1, 4096))
    }

    /// Takes the space of the raw payloads that are to be written as one run, so that they follow each other; their
    /// tables come behind. `items` are the numbers of their items.
    pub(super) fn reserve_payloads(&mut self, items: impl IntoIterator<Item = u64>) -> Result<()> {
        let itemsize = self.array.record.dtype.itemsize() as u64;
        let mut whole: u64 = 0;
        for items in items {
            let len = items.saturating_mul(itemsize);
            self.payloads.push_back(Extent { offset: whole, len });
            whole = round_up(len, ALIGNMENT).and_then(|len| whole.checked_add(len)).unwrap_or(u64::MAX);
        }
        if !self.payloads.is_empty() {
            let run = self.space.take(whole)?;
            self.payloads.iter_mut().for_each(|payload| payload.offset += run.offset);
        }
        Ok(())
    }

    fn selected_bytes(&self, selection: &ResolvedSelection, chunk: &[u64]) -> u64 {
        let record = &self.array.record;
        let parts = parts_within(selection, &record.chunk_origin(chunk), &record.chunk_limit(chunk));
        let items = parts.map_or(0, |parts| parts.iter().map(part_len).product::<u64>());
        items.saturating_mul(record.dtype.itemsize() as u64)
    }

    /// Encodes chunks in parallel, then gives them space in their order, so that the same data gives the same file
    /// whatever the number of threads, and writes them in parallel. `encode` gets the place of a chunk in `chunks`.
    pub(super) fn write_chunks(
        &mut self,
        chunks: &[Dims],
        encode: &(dyn Fn(&Self, usize) -> Result<Encoded> + Sync),
    ) -> Result<()> {
        let results: Vec<parking_lot::Mutex<Option<Encoded>>> =
            chunks.iter().map(|_| parking_lot::Mutex::new(None)).collect();
        self.shared.pool.try_for_each(chunks.len(), |n| {
            *results[n].lock() = Some(encode(self, n)?);
            Ok(())
        })?;
        let mut placed = Vec::new();
        for (chunk, encoded) in chunks.iter().zip(results) {
            let encoded = encoded.into_inner().unwrap_or(Encoded::Absent);
            self.place(chunk, encoded, &mut placed)?;
        }
        let shared = self.shared;
        shared.pool.try_for_each(placed.len(), |n| {
            let (offset, bytes): &(u64, Vec<u8>) = &placed[n];
            Staging::write(shared, *offset, bytes)
        })
    }

    /// Takes space for a chunk, enters it in the index, and adds what is to be written to `placed`.
    fn place(&mut self, chunk: &[u64], encoded: Encoded, placed: &mut Vec<(u64, Vec<u8>)>) -> Result<()> {
        let too_large = |Damage(what)| Error::TooLarge { what };
        let generation = self.space.generation();
        let (entry, stored) = match encoded {
            Encoded::Absent => (Pointer::Null, 0),
            Encoded::Constant(pointer) => (pointer, 0),
            Encoded::Frame { filter, valid, blocks } => {
                let table = blocks
                    .iter()
                    .map(|block| (block.coding.id(), block.bytes.len() as u64, checksum(&block.bytes)));
                let stride = if filter.coding == Coding::Delta { filter.stride } else { 0 };
                let mut frame = encode_chunk_header(filter.coding.id(), filter.word, stride, &valid, table);
                let head = frame.len();
                let len = blocks.iter().fold(head, |len, block| len + block.bytes.len());
                frame.reserve_exact(padded(len) - head);
                blocks.iter().for_each(|block| frame.extend_from_slice(&block.bytes));
                let extent = self.space.take(len as u64)?;
                let entry =
                    seal_frame(&mut frame[..head], Kind::Chunk, extent.offset, extent.len, generation)
                        .map_err(too_large)?;
                frame.resize(padded(len), 0);
                placed.push((extent.offset, frame));
                (entry, extent.len)
            }
            Encoded::Raw { valid, mut payload } => {
                let sums: Vec<u64> = payload.chunks(RAW_SPAN as usize).map(checksum).collect();
                let extent = self.payloads.pop_front().filter(|extent| extent.len == payload.len() as u64);
                let extent = extent
                    .ok_or_else(|| Error::InvalidState { what: "a raw chunk without a place".into() })?;
                payload.resize(padded(payload.len()), 0);
                placed.push((extent.offset, payload));
                let mut table = encode_raw_table(extent, &valid, &sums);
                let place = self.space.take(table.len() as u64)?;
                let entry = seal_frame(&mut table, Kind::RawTable, place.offset, place.len, generation)
                    .map_err(too_large)?;
                table.resize(padded(table.len()), 0);
                placed.push((place.offset, table));
                (entry, extent.len + place.len)
            }
        };
        self.array.put(self.frames, self.space, chunk, entry, stored)
    }

    /// Encodes one chunk with what the selection changes in it.
    fn encode(&self, selection: &ResolvedSelection, source: &Source<'_>, chunk: &[u64]) -> Result<Encoded> {
        let record = &self.array.record;
        let (origin, valid) = (record.chunk_origin(chunk), record.chunk_limit(chunk));
        let Some(parts) = parts_within(selection, &origin, &valid) else { return Ok(Encoded::Absent) };
        let itemsize = record.dtype.itemsize();
        let covered = selection
            .axes()
            .iter()
            .zip(origin.iter().zip(&valid))
            .all(|(axis, (&low, &len))| axis.covers(low, low + len));
        if covered && let Some(items) = source.window(&parts) {
            return encode_items(record, &valid, &items);
        }
        // The chunk as it is, changed: its items in C order.
        let items =
            shape::product(&valid).and_then(|items| items.checked_mul(itemsize as u64)).unwrap_or(u64::MAX);
        let mut bytes = if covered {
            let mut bytes: Vec<u8> = Vec::new();
            bytes.try_reserve_exact(saturating_usize(items)).map_err(|_| Error::TooLarge {
                what: format!("a chunk of {items} bytes; there is not that much memory"),
            })?;
            bytes.resize(saturating_usize(items), 0);
            bytes
        } else {
            self.read_box(&origin, &valid)?
        };
        let strides = destination::byte_strides(&valid, itemsize);
        scatter(source, &mut bytes, &origin, &strides, itemsize, &parts);
        encode_items(record, &valid, &Items { bytes: &bytes, offset: 0, strides })
    }

    /// Encodes the box of items at `origin`, as they are, as a chunk of this shape.
    pub(super) fn encode_box(&self, origin: &[u64], shape: &Dims) -> Result<Encoded> {
        self.encode_items_of(&self.reading(), origin, shape)
    }

    /// Encodes the box of items at `origin` of another array, as a chunk of this one.
    pub(super) fn encode_items_of(
        &self,
        reading: &Reading<'_>,
        origin: &[u64],
        shape: &Dims,
    ) -> Result<Encoded> {
        let bytes = reading.read_box(origin, shape)?;
        let strides = destination::byte_strides(shape, self.array.record.dtype.itemsize());
        encode_items(&self.array.record, shape, &Items { bytes: &bytes, offset: 0, strides })
    }

    /// The items of a box of the array as staged, in C order.
    fn read_box(&self, origin: &[u64], shape: &[u64]) -> Result<Vec<u8>> {
        self.reading().read_box(origin, shape)
    }

    /// The array as staged.
    fn reading(&self) -> Reading<'_> {
        let StagedArray { record, index } = &*self.array;
        let (shared, frames, path) = (self.shared, self.frames, self.path);
        Reading { shared, frames, record, index, path, cached: false }
    }
}

fn padded(len: usize) -> usize {
    saturating_usize(round_up(len as u64, ALIGNMENT).unwrap_or(u64::MAX))
}

fn part_len(part: &Part<'_>) -> u64 {
    match part {
        Part::Range { len, .. } => *len,
        Part::List(list) => list.len() as u64,
    }
}

/// The items of a chunk in somebody's memory.
struct Items<'a> {
    bytes: &'a [u8],
    offset: isize,
    strides: SmallVec<[isize; 4]>,
}

impl Source<'_> {
    /// The items of `parts`, if they are ranges of step 1.
    fn window(&self, parts: &[Part<'_>]) -> Option<Items<'_>> {
        let mut offset = 0;
        for (part, stride) in parts.iter().zip(&self.strides) {
            match *part {
                Part::Range { step, len, out, .. } if step == 1 || len == 1 => {
                    offset += stride * saturating_usize(out) as isize;
                }
                _ => return None,
            }
        }
        Some(Items { bytes: self.bytes, offset, strides: self.strides.clone() })
    }
}

/// Copies the items of `parts` from `source` to their places in a chunk at `origin`.
fn scatter(
    source: &Source<'_>,
    chunk: &mut [u8],
    origin: &[u64],
    strides: &[isize],
    itemsize: usize,
    parts: &[Part<'_>],
) {
    let Some((part, rest)) = parts.split_first() else {
        if let (Some(to), Some(from)) = (chunk.get_mut(..itemsize), source.bytes.get(..itemsize)) {
            to.copy_from_slice(from);
        }
        return;
    };
    let mut walk = Scatter { source, chunk, itemsize };
    walk.dimension(part, rest, origin, strides, &source.strides, 0, 0);
}

struct Scatter<'a, 'b> {
    source: &'a Source<'a>,
    chunk: &'b mut [u8],
    itemsize: usize,
}

impl Scatter<'_, '_> {
    #[expect(clippy::too_many_arguments, reason = "the state of a recursive walk over dimensions")]
    fn dimension(
        &mut self,
        part: &Part<'_>,
        rest: &[Part<'_>],
        origin: &[u64],
        to_strides: &[isize],
        from_strides: &[isize],
        to: isize,
        from: isize,
    ) {
        let size = self.itemsize as isize;
        if let (Part::Range { first, step: 1, len, out }, [], [to_stride], [from_stride]) =
            (part, rest, to_strides, from_strides)
            && *to_stride == size
            && *from_stride == size
        {
            let index = saturating_usize(first - origin[0]) as isize;
            self.copy(
                to + index * size,
                from + saturating_usize(*out) as isize * size,
                saturating_usize(*len),
            );
            return;
        }
        let mut each = |index: u64, out: u64| {
            let to = to + saturating_usize(index - origin[0]) as isize * to_strides[0];
            let from = from + saturating_usize(out) as isize * from_strides[0];
            match rest.split_first() {
                None => self.copy(to, from, 1),
                Some((part, rest)) => {
                    self.dimension(part, rest, &origin[1..], &to_strides[1..], &from_strides[1..], to, from);
                }
            }
        };
        match *part {
            Part::Range { first, step, len, out } => {
                for n in 0..len {
                    each(first.wrapping_add_signed(step.wrapping_mul(n.cast_signed())), out + n);
                }
            }
            // In the order of positions, so that of an index that is listed twice the last value stays.
            Part::List(list) => {
                let mut list: Vec<_> = list.to_vec();
                list.sort_unstable_by_key(|(_, out)| *out);
                list.into_iter().for_each(|(index, out)| each(index, out));
            }
        }
    }

    fn copy(&mut self, to: isize, from: isize, items: usize) {
        let len = items * self.itemsize;
        let range = |start: isize| {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            start..start.saturating_add(len)
        };
        if let (Some(to), Some(from)) = (self.chunk.get_mut(range(to)), self.source.bytes.get(range(from))) {
            to.copy_from_slice(from);
        }
    }
}

/// Encodes the items of a chunk of shape `valid`.
fn encode_items(record: &ArrayRecord, valid: &Dims, items: &Items<'_>) -> Result<Encoded> {
    let itemsize = record.dtype.itemsize();
    let mut gathered = Vec::new();
    if record.layout == Layout::Raw {
        gather(items, &Dims::from_elem(0, valid.len()), valid, itemsize, &mut gathered)?;
        return Ok(Encoded::Raw { valid: valid.clone(), payload: gathered });
    }
    let grid = shape::grid(valid, &record.blocks);
    let count = shape::product(&grid).unwrap_or(u64::MAX);
    let block = |number: u64, gathered: &mut Vec<u8>| {
        let at = shape::coordinates(number, &grid).unwrap_or_default();
        let corner: Dims = at.iter().zip(&record.blocks).map(|(at, len)| at * len).collect();
        gather(items, &corner, &shape::clip(&corner, &record.blocks, valid), itemsize, gathered)
    };
    let profile = profile_of(record);
    let level = i32::from(record.level);
    let filter = if record.coding == CODING_CHOSEN {
        choose_filter(record, count, &block, profile, level)?
    } else {
        asked_filter(record)
    };
    with_encoder(|encoder: &mut Encoder| {
        let mut blocks = Vec::with_capacity(saturating_usize(count));
        for number in 0..count {
            block(number, &mut gathered)?;
            let mut bytes = Vec::new();
            let coding = encoder.encode(filter, profile, level, &gathered, itemsize, &mut bytes);
            blocks.push(EncodedBlock { coding, bytes });
        }
        Ok(collapse(record, valid, filter, blocks))
    })
}

/// A chunk of one repeated item needs no frame: it is absent if that is the fill value, and stands in the index if the
/// chunk is whole, since a constant there is one for all items that the chunk may ever have.
fn collapse(record: &ArrayRecord, valid: &Dims, filter: Filter, blocks: Vec<EncodedBlock>) -> Encoded {
    let item = match blocks.first() {
        Some(first) if first.coding == Coding::Constant => first.bytes.clone(),
        _ => return Encoded::Frame { filter, valid: valid.clone(), blocks },
    };
    if blocks.iter().all(|block| block.coding == Coding::Constant && block.bytes == item) {
        if *item == *record.fill {
            return Encoded::Absent;
        }
        if *valid == record.chunks
            && let Some(pointer) = Pointer::constant(&item)
        {
            return Encoded::Constant(pointer);
        }
    }
    Encoded::Frame { filter, valid: valid.clone(), blocks }
}

fn profile_of(record: &ArrayRecord) -> Profile {
    match record.profile {
        1 => Profile::Fast,
        2 => Profile::Small,
        _ => Profile::Balanced,
    }
}

/// The filter that the array's record asks for. A record may ask for what cannot be (SPEC.md §9): then zstd will do.
fn asked_filter(record: &ArrayRecord) -> Filter {
    let filter = match Coding::from_id(record.coding) {
        Ok(Coding::Planes) => Filter::planes(record.word),
        Ok(Coding::Delta) => Filter::delta(record.word, record.stride),
        _ => Filter::ZSTD,
    };
    if filter.fits(record.dtype.itemsize()) { filter } else { Filter::ZSTD }
}

/// Tries the codings on some blocks of a chunk.
fn choose_filter(
    record: &ArrayRecord,
    count: u64,
    block: &dyn Fn(u64, &mut Vec<u8>) -> Result<()>,
    profile: Profile,
    level: i32,
) -> Result<Filter> {
    let mut samples: Vec<Vec<u8>> = Vec::new();
    let taken = count.min(SAMPLES);
    for n in 0..taken {
        let mut bytes = Vec::new();
        // Spread over the chunk, the one in the middle first.
        let n = (n + taken / 2) % taken;
        block((2 * n + 1) * count / (2 * taken), &mut bytes)?;
        samples.push(bytes);
    }
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let (itemsize, component) = (record.dtype.itemsize(), record.dtype.component_size());
    Ok(choose(&samples, itemsize, component, &strides(record), profile, level))
}

/// Rows of at most this many components are taken for the columns of a table.
const TABLE_COLUMNS: u64 = 64;

/// Distances in components at which differences are tried. In a table: to the row before, and to rows further up, since
/// meshes repeat after as many cells as a grid cell was cut into. In a volume: to the item, row and plane before.
fn strides(record: &ArrayRecord) -> SmallVec<[u32; 8]> {
    let parts = (record.dtype.itemsize() / record.dtype.component_size().max(1)).max(1) as u64;
    let row = record.blocks.last().copied().unwrap_or(1).saturating_mul(parts);
    let distances: [u64; 6] = match record.blocks.len() {
        0 | 1 => [parts, 2 * parts, 3 * parts, 1, 1, 1],
        2 if row <= TABLE_COLUMNS => [1, row, 2 * row, 3 * row, 5 * row, 6 * row],
        dims => [1, parts, row, row.saturating_mul(record.blocks[dims - 2]), 1, 1],
    };
    let mut strides = SmallVec::new();
    for distance in distances {
        if let Ok(distance) = u32::try_from(distance)
            && !strides.contains(&distance)
        {
            strides.push(distance);
        }
    }
    strides
}

/// The items of the box at `corner` of a chunk, in C order.
fn gather(
    items: &Items<'_>,
    corner: &[u64],
    shape: &[u64],
    itemsize: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    let total =
        shape::product(shape).map_or(usize::MAX, |len| saturating_usize(len).saturating_mul(itemsize));
    out.try_reserve(total).map_err(|_| Error::TooLarge {
        what: format!("a buffer of {total} bytes; there is not that much memory"),
    })?;
    let start = corner
        .iter()
        .zip(&items.strides)
        .fold(items.offset, |at, (&corner, stride)| at + saturating_usize(corner) as isize * stride);
    // Trailing dimensions without gaps are one run.
    let (mut dims, mut run) = (shape.len(), itemsize);
    while dims > 0 && items.strides[dims - 1] == run as isize {
        run *= saturating_usize(shape[dims - 1]);
        dims -= 1;
    }
    gather_runs(items, &shape[..dims], &items.strides[..dims], start, run, out);
    debug_assert_eq!(out.len(), total);
    Ok(())
}

fn gather_runs(
    items: &Items<'_>,
    shape: &[u64],
    strides: &[isize],
    at: isize,
    run: usize,
    out: &mut Vec<u8>,
) {
    match (shape.split_first(), strides.split_first()) {
        (Some((&len, shape)), Some((stride, strides))) => {
            for n in 0..saturating_usize(len) as isize {
                gather_runs(items, shape, strides, at + n * stride, run, out);
            }
        }
        _ => {
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            if let Some(bytes) = items.bytes.get(start..start.saturating_add(run)) {
                out.extend_from_slice(bytes);
            }
        }
    }
}
