//! The one read path: from a selection to the regions of frames that it touches, to their blocks, to the destination.

use super::destination::Destination;
use super::raw;
use crate::codec::{Coding, Filter, OpenBlock, with_decoder};
use crate::error::{Damage, Error, Result};
use crate::format::{ArrayRecord, ChunkHeader, Kind, Pieces, Pointer, RawTable};
use crate::num::saturating_usize;
use crate::selection::{AxisSelection, Part, ResolvedSelection};
use crate::shape::{self, Dims};
use crate::store::{BlockKey, ChunkIndex, Frames, Lookup, Shared};
use smallvec::SmallVec;
use std::sync::Arc;

/// Reads that touch fewer decoded bytes than this stay on the calling thread: waking a pool costs about as much
/// as decoding them (benches/README.md, "Threads").
pub(super) const PARALLEL_FROM: u64 = 1 << 20;

/// Regions that are planned before their blocks are decoded, so that the plan of a large read stays small.
const REGIONS_AT_ONCE: usize = 4096;

/// An array, and how to reach it.
pub(super) struct Reading<'a> {
    pub(super) shared: &'a Shared,
    pub(super) frames: &'a Frames,
    pub(super) record: &'a ArrayRecord,
    pub(super) index: &'a dyn ChunkIndex,
    pub(super) path: &'a str,
    /// Whether decoded blocks may be kept: not those of frames that are not committed.
    pub(super) cached: bool,
}

/// A box of the array that one frame, or a fill value, gives the items of.
struct Region<'a> {
    chunk: Dims,
    origin: Dims,
    shape: Dims,
    items: Items<'a>,
    /// Units of work: blocks, rows of raw items, or the whole.
    units: usize,
}

enum Items<'a> {
    Fill(SmallVec<[u8; 16]>),
    Blocks { header: ChunkHeader<'a>, touched: SmallVec<[Touched; 4]> },
    Raw(RawTable<'a>),
}

/// The blocks that a selection touches along one dimension of a region.
pub(super) enum Touched {
    Run { first: u64, count: u64 },
    Listed(Vec<u64>),
}

impl Touched {
    pub(super) fn of(axis: &AxisSelection, origin: u64, len: u64, block: u64) -> Option<Touched> {
        let part = axis.within(origin, origin.saturating_add(len))?;
        let blocks = match part {
            Part::Range { first, step, len, .. } => {
                let reach = step.unsigned_abs().saturating_mul(len - 1);
                let low = if step < 0 { first - reach } else { first };
                if step.unsigned_abs() <= block {
                    let first = (low - origin) / block;
                    return Some(Touched::Run { first, count: (low + reach - origin) / block - first + 1 });
                }
                (0..len).map(|n| (low + n * step.unsigned_abs() - origin) / block).collect()
            }
            Part::List(list) => {
                let mut blocks: Vec<u64> = list.iter().map(|(index, _)| (index - origin) / block).collect();
                blocks.dedup();
                blocks
            }
        };
        Some(Touched::Listed(blocks))
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            Touched::Run { count, .. } => *count,
            Touched::Listed(blocks) => blocks.len() as u64,
        }
    }

    fn nth(&self, n: u64) -> u64 {
        match self {
            Touched::Run { first, .. } => first + n,
            Touched::Listed(blocks) => blocks.get(saturating_usize(n)).copied().unwrap_or(u64::MAX),
        }
    }
}

/// The coordinates of touched block `n`, counted in C order.
pub(super) fn block_at(touched: &[Touched], n: u64) -> Dims {
    let (mut at, mut rest) = (Dims::from_elem(0, touched.len()), n);
    for (at, touched) in at.iter_mut().zip(touched).rev() {
        *at = touched.nth(rest % touched.count());
        rest /= touched.count();
    }
    at
}

/// The parts of a selection in the box at `origin`; `None` if it does not meet the box.
pub(super) fn parts_within<'s>(
    selection: &'s ResolvedSelection,
    origin: &[u64],
    shape: &[u64],
) -> Option<SmallVec<[Part<'s>; 4]>> {
    let axes = selection.axes().iter().zip(origin.iter().zip(shape));
    axes.map(|(axis, (&low, &len))| axis.within(low, low.saturating_add(len))).collect()
}

/// Calls `visit` with the coordinates of each chunk that a selection touches, in C order.
pub(super) fn for_each_chunk(
    selection: &ResolvedSelection,
    chunks: &[u64],
    visit: &mut dyn FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    fn along(
        axes: &[AxisSelection],
        chunks: &[u64],
        at: &mut Dims,
        visit: &mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let dim = at.len();
        let (Some(axis), Some(&chunk)) = (axes.get(dim), chunks.get(dim)) else { return visit(at) };
        for number in axis.touched(chunk) {
            at.push(number);
            along(axes, chunks, at, visit)?;
            at.pop();
        }
        Ok(())
    }
    if selection.is_empty() {
        return Ok(());
    }
    along(selection.axes(), chunks, &mut Dims::new(), visit)
}

impl<'a> Reading<'a> {
    /// Reads the items of `selection` into `destination`, all of them.
    pub(super) fn read(&self, selection: &ResolvedSelection, destination: &Destination<'_>) -> Result<()> {
        let mut regions: SmallVec<[Region<'a>; 1]> = SmallVec::new();
        for_each_chunk(selection, &self.record.chunks, &mut |chunk| {
            self.plan(selection, chunk, &mut |region| regions.push(region))?;
            if regions.len() >= REGIONS_AT_ONCE {
                self.run(selection, &regions, destination)?;
                regions.clear();
            }
            Ok(())
        })?;
        self.run(selection, &regions, destination)
    }

    /// The items of a box, in C order.
    #[cfg(feature = "write")]
    pub(super) fn read_box(&self, origin: &[u64], shape: &[u64]) -> Result<Vec<u8>> {
        let itemsize = self.record.dtype.itemsize();
        let items = shape::product(shape).and_then(|items| items.checked_mul(itemsize as u64));
        super::destination::filled(items.unwrap_or(u64::MAX), |memory| {
            let destination = Destination::contiguous(memory, shape, itemsize)?;
            self.read(&ResolvedSelection::of_box(origin, shape), &destination)
        })
    }

    /// Finds what the items of one chunk come from.
    fn plan(
        &self,
        selection: &ResolvedSelection,
        chunk: &[u64],
        push: &mut dyn FnMut(Region<'a>),
    ) -> Result<()> {
        let here = |error: Error| self.locate(error, chunk, None);
        let record = self.record;
        let (origin, limit) = (record.chunk_origin(chunk), record.chunk_limit(chunk));
        let entry = self.index.entry(self.frames, record.key(chunk)).map_err(here)?;
        let fill = |origin: Dims, shape: Dims, item: &[u8]| Region {
            chunk: chunk.into(),
            origin,
            shape,
            items: Items::Fill(item.into()),
            units: 1,
        };
        // What is not valid of a box at `origin`, as far as it is selected.
        let fill_rest = |origin: &[u64], valid: &[u64], limit: &[u64], push: &mut dyn FnMut(Region<'a>)| {
            for_each_rest(valid, limit, &mut |corner, shape| {
                let origin = add(origin, &corner);
                if parts_within(selection, &origin, &shape).is_some() {
                    push(fill(origin, shape, &record.fill));
                }
            });
        };
        record.check_entry(&entry, &limit).map_err(|damage| here(self.frames.damage(damage, None)))?;
        let Pointer::Frame { kind, extent, .. } = entry else {
            let item = match &entry {
                Pointer::Constant(item) => item.get(..record.dtype.itemsize()).unwrap_or(&record.fill),
                _ => &record.fill,
            };
            push(fill(origin, limit, item));
            return Ok(());
        };
        let damaged = |damage: Damage| here(self.frames.damage(damage, Some(extent.offset)));
        // What is valid, from the chunk's first corner; the rest of the chunk reads as the fill value.
        let valid = match kind {
            Kind::Chunk => {
                let header = read_chunk_header(self.frames, record, &entry, &limit).map_err(here)?;
                let valid = header.valid.clone();
                push_blocks(record, selection, chunk, &origin, header, push);
                valid
            }
            Kind::RawTable => {
                let frame = self.frames.checked_cow(&entry).map_err(here)?;
                let itemsize = record.dtype.itemsize();
                let table =
                    RawTable::parse(frame, self.frames.bounds(), &limit, itemsize).map_err(damaged)?;
                let valid = table.valid.clone();
                let units = raw::units(&table);
                let (chunk, origin) = (chunk.into(), origin.clone());
                push(Region { chunk, origin, shape: valid.clone(), items: Items::Raw(table), units });
                valid
            }
            Kind::Pieces => {
                let frame = self.frames.checked_cow(&entry).map_err(here)?;
                let pieces = Pieces::parse(&frame, self.frames.bounds(), &limit).map_err(damaged)?.0;
                let mut valid = limit.clone();
                valid[0] = 0;
                for piece in pieces {
                    let (mut origin, mut limit) = (origin.clone(), limit.clone());
                    origin[0] += piece.first_row;
                    limit[0] = piece.rows;
                    valid[0] = piece.first_row + piece.rows;
                    let header =
                        read_chunk_header(self.frames, record, &piece.frame, &limit).map_err(here)?;
                    if header.valid[0] != piece.rows {
                        return Err(damaged(Damage::new("a piece whose rows are not those of its frame")));
                    }
                    fill_rest(&origin, &header.valid, &limit, push);
                    push_blocks(record, selection, chunk, &origin, header, push);
                }
                valid
            }
            _ => return Err(damaged(Damage::new("an index entry of the wrong kind"))),
        };
        fill_rest(&origin, &valid, &limit, push);
        Ok(())
    }

    /// Decodes and copies, in parallel where there is enough to do.
    fn run(
        &self,
        selection: &ResolvedSelection,
        regions: &[Region<'a>],
        destination: &Destination<'_>,
    ) -> Result<()> {
        let block_bytes = shape::product(&self.record.blocks).unwrap_or(u64::MAX);
        let block_bytes = block_bytes.saturating_mul(self.record.dtype.itemsize() as u64);
        let mut ends: SmallVec<[usize; 4]> = SmallVec::new();
        let (mut units, mut bytes) = (0usize, 0u64);
        for region in regions {
            units = units.saturating_add(region.units);
            ends.push(units);
            bytes = bytes.saturating_add(match &region.items {
                Items::Blocks { .. } => block_bytes.saturating_mul(region.units as u64),
                Items::Raw(table) => table.payload.len,
                Items::Fill(_) => self.record.dtype.itemsize() as u64,
            });
        }
        let cached = self.cached && bytes <= self.shared.cache.largest_read();
        let work = |unit: usize| {
            let at = ends.partition_point(|end| *end <= unit);
            let (Some(region), Some(end)) = (regions.get(at), ends.get(at)) else { return Ok(()) };
            self.unit(selection, region, unit + region.units - end, destination, cached)
        };
        let selected = selection.len().saturating_mul(self.record.dtype.itemsize() as u64);
        if bytes.max(selected) >= PARALLEL_FROM {
            self.shared.pool.try_for_each(units, work)
        } else {
            (0..units).try_for_each(work)
        }
    }

    fn unit(
        &self,
        selection: &ResolvedSelection,
        region: &Region<'_>,
        unit: usize,
        destination: &Destination<'_>,
        cached: bool,
    ) -> Result<()> {
        match &region.items {
            Items::Fill(item) => {
                if let Some(parts) = parts_within(selection, &region.origin, &region.shape) {
                    // SAFETY: the regions and units of one read are disjoint boxes of the array, and a selection gives each
                    // position of the destination to one index, so no other thread writes to these positions.
                    unsafe { destination.fill(item, &parts) };
                }
                Ok(())
            }
            Items::Raw(table) => {
                let (frames, itemsize) = (self.frames, self.record.dtype.itemsize());
                raw::read_unit(frames, table, itemsize, &region.origin, selection, unit, destination)
                    .map_err(|error| self.locate(error, &region.chunk, None))
            }
            Items::Blocks { header, touched } => {
                let at = block_at(touched, unit as u64);
                let number = shape::linear_index(&at, &header.block_grid).unwrap_or(u64::MAX);
                self.block(selection, region, header, &at, number, destination, cached)
                    .map_err(|error| self.locate(error, &region.chunk, Some(number)))
            }
        }
    }

    /// Reads one block: checks it, decodes what is needed, and copies what is selected.
    #[expect(
        clippy::too_many_arguments,
        reason = "the innermost step; bundling would only rename the arguments"
    )]
    fn block(
        &self,
        selection: &ResolvedSelection,
        region: &Region<'_>,
        header: &ChunkHeader<'_>,
        at: &[u64],
        number: u64,
        destination: &Destination<'_>,
        cached: bool,
    ) -> Result<()> {
        let corner: Dims = at.iter().zip(&self.record.blocks).map(|(at, len)| at * len).collect();
        let block_shape = shape::clip(&corner, &self.record.blocks, &header.valid);
        let origin = add(&region.origin, &corner);
        let Some(parts) = parts_within(selection, &origin, &block_shape) else { return Ok(()) };
        let items = shape::product(&block_shape).unwrap_or(u64::MAX);
        let (count, itemsize) = (saturating_usize(items), self.record.dtype.itemsize());
        let bytes = items.saturating_mul(itemsize as u64);
        let entry = header.block(number, bytes).map_err(|damage| self.frames.damage(damage, None))?;
        let here = |damage: Damage| self.frames.damage(damage, Some(entry.extent.offset));
        let receive = |block: &mut OpenBlock<'_>| {
            // SAFETY: as for `fill` in `unit`.
            unsafe { destination.receive(block, &origin, &block_shape, &parts) };
        };
        let coding = Coding::from_id(entry.coding).map_err(here)?;
        let filter = Filter { coding, word: header.word, stride: header.stride };
        let key = BlockKey { offset: entry.extent.offset, checksum: entry.checksum, filter, bytes };
        let known = if cached { self.shared.cache.get(key) } else { Lookup::Miss };
        if let Lookup::Hit(items) = &known {
            return with_decoder(|decoder| {
                let mut block =
                    decoder.open(items, Coding::Raw, Filter::RAW, itemsize, count, 0..count).map_err(here)?;
                receive(&mut block);
                Ok(())
            });
        }
        let keep = matches!(known, Lookup::Seen);
        let needed = if keep { 0..count } else { span(&origin, &block_shape, &parts) };
        with_buffer(|buf| {
            let stored = self.frames.summed(entry.extent, entry.checksum, buf)?;
            with_decoder(|decoder| {
                let mut block =
                    decoder.open(stored, coding, filter, itemsize, count, needed).map_err(here)?;
                receive(&mut block);
                if keep {
                    self.shared.cache.insert(key, whole(&mut block, count, itemsize)?);
                }
                Ok(())
            })
        })
    }

    /// Adds what is known of the place to an error.
    pub(super) fn locate(&self, error: Error, chunk: &[u64], block: Option<u64>) -> Error {
        locate(error, self.path, chunk, block)
    }
}

/// Adds what is known of the place to an error.
pub(super) fn locate(mut error: Error, path: &str, chunk: &[u64], block: Option<u64>) -> Error {
    if let Error::Corrupt { place, .. } = &mut error {
        place.array.get_or_insert_with(|| path.to_owned());
        place.chunk.get_or_insert_with(|| chunk.to_vec());
        place.block = place.block.or(block);
    }
    error
}

/// The header of the chunk frame that `entry` leads to; `limit` is what of it lies inside the array.
pub(super) fn read_chunk_header<'a>(
    frames: &'a Frames,
    record: &ArrayRecord,
    entry: &Pointer,
    limit: &[u64],
) -> Result<ChunkHeader<'a>> {
    let Pointer::Frame { extent, .. } = *entry else {
        return Err(frames.damage(Damage::new("a chunk without a frame"), None));
    };
    ChunkHeader::parse(frames.checked_cow(entry)?, extent, limit, &record.blocks)
        .map_err(|damage| frames.damage(damage, Some(extent.offset)))
}

/// The part of a chunk that is stored, from its first corner: nothing of a chunk that is absent, all of a constant one.
pub(super) fn stored_part(
    frames: &Frames,
    record: &ArrayRecord,
    entry: &Pointer,
    limit: &[u64],
) -> Result<Dims> {
    record.check_entry(entry, limit).map_err(|damage| frames.damage(damage, None))?;
    let Pointer::Frame { kind, extent, .. } = *entry else {
        let nothing = Dims::from_elem(0, limit.len());
        return Ok(if *entry == Pointer::Null { nothing } else { limit.into() });
    };
    let here = |damage: Damage| frames.damage(damage, Some(extent.offset));
    let frame = frames.checked_cow(entry)?;
    match kind {
        Kind::RawTable => {
            let table = RawTable::parse(frame, frames.bounds(), limit, record.dtype.itemsize());
            Ok(table.map_err(here)?.valid)
        }
        Kind::Pieces => {
            let mut whole = Dims::from_elem(0, limit.len());
            for piece in Pieces::parse(&frame, frames.bounds(), limit).map_err(here)?.0 {
                let part = stored_part(frames, record, &piece.frame, limit)?;
                whole.iter_mut().zip(&part).for_each(|(whole, part)| *whole = (*whole).max(*part));
                if let Some(rows) = whole.first_mut() {
                    *rows = piece.first_row + piece.rows;
                }
            }
            Ok(whole)
        }
        _ => Ok(ChunkHeader::parse(frame, extent, limit, &record.blocks).map_err(here)?.valid),
    }
}

/// The blocks of a frame at `origin`, if the selection meets it.
fn push_blocks<'a>(
    record: &ArrayRecord,
    selection: &ResolvedSelection,
    chunk: &[u64],
    origin: &Dims,
    header: ChunkHeader<'a>,
    push: &mut dyn FnMut(Region<'a>),
) {
    let dims = selection.axes().iter().zip(origin).zip(header.valid.iter().zip(&record.blocks));
    let touched: Option<SmallVec<[Touched; 4]>> =
        dims.map(|((axis, &origin), (&len, &block))| Touched::of(axis, origin, len, block)).collect();
    if let Some(touched) = touched {
        let units = touched.iter().try_fold(1u64, |units, touched| units.checked_mul(touched.count()));
        let units = saturating_usize(units.unwrap_or(u64::MAX));
        let shape = header.valid.clone();
        let items = Items::Blocks { header, touched };
        push(Region { chunk: chunk.into(), origin: origin.clone(), shape, items, units });
    }
}

/// Calls `visit` with the corner and shape of disjoint boxes that make up what is in `limit` and not in `valid`, both
/// from the same first corner.
fn for_each_rest(valid: &[u64], limit: &[u64], visit: &mut dyn FnMut(Dims, Dims)) {
    for dim in 0..valid.len() {
        if valid[dim] < limit[dim] {
            let mut corner = Dims::from_elem(0, valid.len());
            corner[dim] = valid[dim];
            let mut shape = Dims::from_slice(limit);
            shape[..dim].copy_from_slice(&valid[..dim]);
            shape[dim] -= valid[dim];
            visit(corner, shape);
        }
    }
}

fn add(a: &[u64], b: &[u64]) -> Dims {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// The items of a block from the first to the last that `parts` select, in C order.
pub(super) fn span(origin: &[u64], block_shape: &[u64], parts: &[Part<'_>]) -> std::ops::Range<usize> {
    let (mut low, mut high, mut items) = (0u64, 0u64, 1u64);
    for ((part, origin), len) in parts.iter().zip(origin).zip(block_shape).rev() {
        let (first, last) = match *part {
            Part::Range { first, step, len, .. } => {
                let reach = step.unsigned_abs() * (len - 1);
                if step < 0 { (first - reach, first) } else { (first, first + reach) }
            }
            Part::List(list) => match (list.first(), list.last()) {
                (Some((first, _)), Some((last, _))) => (*first, *last),
                _ => return 0..0,
            },
        };
        low += (first - origin) * items;
        high += (last - origin) * items;
        items *= len;
    }
    saturating_usize(low)..saturating_usize(high + 1)
}

/// All items of a block, for the cache.
fn whole(block: &mut OpenBlock<'_>, count: usize, itemsize: usize) -> Result<Arc<[u8]>> {
    let shape = [count as u64];
    let items = super::destination::filled::<u8>((count * itemsize) as u64, |memory| {
        let destination = Destination::contiguous(memory, &shape, itemsize)?;
        let all = [Part::Range { first: 0, step: 1, len: shape[0], out: 0 }];
        // SAFETY: nobody else has this memory.
        unsafe { destination.receive(block, &[0], &shape, &all) };
        Ok(())
    })?;
    Ok(items.into())
}

/// A buffer of this thread for stored bytes that the source cannot lend.
pub(super) fn with_buffer<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static BUFFER: std::cell::Cell<Vec<u8>> = const { std::cell::Cell::new(Vec::new()) };
    }
    let mut buffer = BUFFER.take();
    let result = work(&mut buffer);
    BUFFER.set(buffer);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Boxes that overlapped would be written by two threads at once.
        #[test]
        fn the_rest_of_a_chunk_is_disjoint_boxes(axes in prop::collection::vec((1..6u64, 0..4u64), 0..4)) {
            let valid: Dims = axes.iter().map(|(valid, _)| *valid).collect();
            let limit: Dims = axes.iter().map(|(valid, more)| valid + more).collect();
            let mut boxes = vec![(Dims::from_elem(0, valid.len()), valid.clone())];
            for_each_rest(&valid, &limit, &mut |corner, shape| boxes.push((corner, shape)));
            for n in 0..shape::product(&limit).unwrap() {
                let at = shape::coordinates(n, &limit).unwrap();
                let holds = |(corner, shape): &&(Dims, Dims)| {
                    (0..at.len()).all(|dim| corner[dim] <= at[dim] && at[dim] < corner[dim] + shape[dim])
                };
                prop_assert_eq!(boxes.iter().filter(holds).count(), 1);
            }
        }
    }
}
