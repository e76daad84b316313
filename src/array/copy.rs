//! Copying an array to a new one: frames as they are stored where both are cut and coded alike, else items anew.
//!
//! What is stored goes straight from where the source has it to where it will stand. Frames are given their places in the
//! order of their keys before any is copied, so that the file does not depend on the number of threads; then they are
//! checked and copied in units of about a MiB, of which a large frame has many.

use super::codec_spec::Codec;
use super::read::{Reading, read_chunk_header, with_buffer};
use super::spec::ArraySpec;
use super::write::Writing;
use crate::error::{Damage, Error, Result};
use crate::format::{
    ALIGNMENT, ArrayRecord, ChunkHeader, Extent, Kind, Layout, PieceEntry, Pieces, Pointer, RAW_SPAN,
    RawTable, checksum, encode_pieces_page, encode_raw_table, seal_frame,
};
use crate::num::{round_up, saturating_usize};
use crate::progress::{Progress, ProgressCallback};
use crate::shape::{self, Dims};
use crate::store::{Frames, NewArray, Staging, StoredIndex, index};
use std::ops::Range;

/// Stored bytes of the frames that are placed before they are copied.
const BATCH_BYTES: u64 = 64 << 20;
/// Frames that are placed before they are copied.
const BATCH_FRAMES: usize = 4096;
/// Stored bytes that one thread copies at a time.
const UNIT_BYTES: u64 = 256 << 10;
/// Units that are copied before the caller is told.
const UNITS_AT_ONCE: usize = 256;

/// How far a copy of one or more arrays has come.
pub(crate) struct Tally<'a> {
    progress: Progress,
    callback: Option<&'a ProgressCallback<'a>>,
    /// Stored bytes that the source can still have. Where more are met, something is stored twice at one place.
    left: u64,
}

impl<'a> Tally<'a> {
    /// For a source of `stored` bytes in all; `total` are those that are expected.
    pub(crate) fn new(stored: u64, total: u64, callback: Option<&'a ProgressCallback<'a>>) -> Tally<'a> {
        Tally { progress: Progress { done: 0, total }, callback, left: stored }
    }

    /// Notes that `len` bytes of the source were met.
    pub(crate) fn meet(&mut self, frames: &Frames, len: u64) -> Result<()> {
        let much = || {
            let what = "more is stored than there is room for: things are stored at one place";
            frames.damage(Damage::new(what), None)
        };
        self.left = self.left.checked_sub(len).ok_or_else(much)?;
        Ok(())
    }

    /// Notes that `bytes` more are done, and tells.
    pub(crate) fn tell(&mut self, bytes: u64) -> Result<()> {
        self.progress.done = self.progress.done.saturating_add(bytes).min(self.progress.total);
        self.progress.tell(self.callback)
    }
}

/// What a copy is to be like where it is not to be like the source.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    pub(crate) chunks: Option<Vec<u64>>,
    pub(crate) blocks: Option<Vec<u64>>,
    pub(crate) codec: Option<Codec>,
}

/// The record of a copy without chunks.
pub(crate) fn record_of_copy(record: &ArrayRecord, changes: &Changes) -> Result<ArrayRecord> {
    let Changes { chunks, blocks, codec } = changes;
    let same = ArrayRecord { index: Pointer::Null, stored_bytes: 0, stored_chunks: 0, ..record.clone() };
    if chunks.is_none() && blocks.is_none() && codec.is_none() {
        return Ok(same);
    }
    let codec = codec.unwrap_or_else(|| Codec::of_record(record));
    let mut spec =
        ArraySpec::new(record.dtype.clone(), record.shape.to_vec()).codec(codec).fill_bytes(&record.fill);
    // What suits one layout need not suit the other.
    let stays = (codec == Codec::Raw) == (record.layout == Layout::Raw);
    if let Some(chunks) = chunks.clone().or_else(|| stays.then(|| record.chunks.to_vec())) {
        spec = spec.chunks(chunks);
    }
    if let Some(blocks) = blocks.clone().or_else(|| stays.then(|| record.blocks.to_vec())) {
        spec = spec.blocks(blocks);
    }
    let changed = spec.record()?;
    Ok(if are_stored_alike(record, &changed) { same } else { changed })
}

/// Whether the frames of one array can be those of the other.
pub(super) fn are_stored_alike(one: &ArrayRecord, other: &ArrayRecord) -> bool {
    let coding = |record: &ArrayRecord| {
        (record.layout, record.coding, record.profile, record.level, record.word, record.stride)
    };
    coding(one) == coding(other) && one.chunks == other.chunks && one.blocks == other.blocks
}

/// The bytes that copying an array will tell of.
pub(crate) fn bytes_to_tell(from: &ArrayRecord, to: &ArrayRecord) -> u64 {
    if are_stored_alike(from, to) {
        return from.stored_bytes;
    }
    let bytes = |shape: &[u64]| {
        shape::product(shape).unwrap_or(u64::MAX).saturating_mul(from.dtype.itemsize() as u64)
    };
    bytes(&from.shape).min(bytes(&from.chunks).saturating_mul(from.stored_chunks))
}

/// The array that is copied.
pub(crate) struct Copied<'a> {
    pub(crate) frames: &'a Frames,
    pub(crate) record: &'a ArrayRecord,
    pub(crate) path: &'a str,
}

/// Copies all items of `from` to the new array `to`, which has its shape, dtype and fill value.
pub(crate) fn copy_array(from: &Copied<'_>, to: NewArray<'_>, tally: &mut Tally<'_>) -> Result<()> {
    let index = StoredIndex::new(from.record);
    let Copied { frames, record, path } = *from;
    let reading = Reading { shared: to.shared, frames, record, index: &index, path, cached: false };
    if are_stored_alike(record, &to.array.record) {
        let shift = Dims::from_elem(0, record.shape.len());
        Copying { from: &reading, to, shift, tally, payloads: 0..0, batch: Batch::default() }.run()
    } else {
        copy_anew(&reading, to, tally)
    }
}

/// Copies the chunks of `from`, as they are stored, to places of `to` that are `shift` chunks further, where nothing is. The
/// arrays must be stored alike.
pub(super) fn copy_chunks(from: &Reading<'_>, to: NewArray<'_>, shift: Dims) -> Result<()> {
    let mut tally = Tally::new(from.frames.bounds().end, 0, None);
    Copying { from, to, shift, tally: &mut tally, payloads: 0..0, batch: Batch::default() }.run()
}

/// Calls `visit` for each stored chunk in the order of keys, with what of it lies inside the array.
fn for_each_stored(
    from: &Reading<'_>,
    visit: &mut dyn FnMut(Dims, Dims, Pointer) -> Result<()>,
    mut page: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let (frames, record) = (from.frames, from.record);
    let outcome = index::walk(frames, record.index, record.index_levels(), 0, &mut |met| {
        match met {
            index::Met::Lost(error) => return Err(error),
            index::Met::Page(pointer) => {
                if let Pointer::Frame { extent, .. } = pointer {
                    page(extent.len)?;
                }
            }
            index::Met::Chunk { key, entry } => {
                let outside = || frames.damage(Damage::new("an index entry outside the chunk grid"), None);
                let chunk = record.coordinates(key).ok_or_else(outside)?;
                let limit = record.chunk_limit(&chunk);
                record
                    .check_entry(&entry, &limit)
                    .map_err(|damage| from.locate(frames.damage(damage, None), &chunk, None))?;
                visit(chunk, limit, entry)?;
            }
        }
        Ok(true)
    });
    outcome.map_err(|mut error| {
        if let Error::Corrupt { place, .. } = &mut error {
            place.array.get_or_insert_with(|| from.path.to_owned());
        }
        error
    })
}

/// A copy of frames as they are stored.
struct Copying<'a, 'b, 't> {
    from: &'a Reading<'a>,
    to: NewArray<'b>,
    /// How many chunks further each one goes.
    shift: Dims,
    tally: &'b mut Tally<'t>,
    /// In the raw layout: the run that the payloads of the chunks to come will have.
    payloads: Range<u64>,
    batch: Batch<'a>,
}

/// What has its place already.
#[derive(Default)]
struct Batch<'a> {
    bytes: u64,
    frames: Vec<StoredFrame>,
    raws: Vec<StoredRaw<'a>>,
    /// Frames that lead to others, made anew, with their padding.
    pages: Vec<(u64, Vec<u8>)>,
}

/// A chunk frame, or a piece of one.
struct StoredFrame {
    chunk: Dims,
    limit: Dims,
    /// Of a piece: how many rows it must have.
    rows: Option<u64>,
    pointer: Pointer,
    extent: Extent,
    to: u64,
}

/// A raw payload.
struct StoredRaw<'a> {
    chunk: Dims,
    table: RawTable<'a>,
    to: u64,
}

/// What one thread copies at a time.
enum Unit {
    /// Small frames that will follow each other.
    Frames(Range<usize>),
    /// Blocks of one frame; with the first of them go the header and the table.
    Blocks(usize, Range<u64>),
    /// Spans of one payload.
    Spans(usize, Range<u64>),
}

impl<'a> Copying<'a, '_, '_> {
    fn run(mut self) -> Result<()> {
        let from = self.from;
        if from.record.layout == Layout::Raw {
            self.reserve_payloads()?;
        }
        let mut pages = 0;
        let walked = for_each_stored(
            from,
            &mut |chunk, limit, entry| {
                self.place(&chunk, &limit, &entry)?;
                let Batch { bytes, frames, raws, .. } = &self.batch;
                let full = *bytes >= BATCH_BYTES || frames.len() + raws.len() >= BATCH_FRAMES;
                if full { self.flush() } else { Ok(()) }
            },
            |len| {
                pages += len;
                Ok(())
            },
        );
        walked?;
        self.tally.meet(from.frames, pages)?;
        self.flush()
    }

    /// Takes the space of all raw payloads, so that they follow each other as they do in an array that was written at once.
    fn reserve_payloads(&mut self) -> Result<()> {
        let (from, mut whole) = (self.from, 0u64);
        for_each_stored(
            from,
            &mut |chunk, limit, entry| {
                let len = raw_table(from, &chunk, &limit, &entry)?.payload.padded_len();
                whole = whole.saturating_add(len);
                Ok(())
            },
            |_| Ok(()),
        )?;
        if whole > 0 {
            let offset = self.to.space.take(whole)?.offset;
            self.payloads = offset..offset + whole;
        }
        Ok(())
    }

    /// Gives a chunk its place, and enters it in the new array.
    fn place(&mut self, chunk: &Dims, limit: &Dims, entry: &Pointer) -> Result<()> {
        let (new, stored) = match *entry {
            Pointer::Null | Pointer::Constant(_) => (*entry, 0),
            Pointer::Frame { kind: Kind::RawTable, .. } => self.place_raw(chunk, limit, entry)?,
            Pointer::Frame { kind: Kind::Pieces, .. } => self.place_pieces(chunk, limit, entry)?,
            Pointer::Frame { extent, .. } => {
                (self.place_frame(chunk, limit.clone(), None, entry)?, extent.len)
            }
        };
        let NewArray { array, frames, space, .. } = &mut self.to;
        let chunk: Dims = chunk.iter().zip(&self.shift).map(|(at, shift)| at + shift).collect();
        let gone = array.put(frames, space, &chunk, new, stored, &[])?;
        gone.into_iter().for_each(|(extent, birth)| space.release(extent, birth));
        Ok(())
    }

    fn place_frame(
        &mut self,
        chunk: &Dims,
        limit: Dims,
        rows: Option<u64>,
        pointer: &Pointer,
    ) -> Result<Pointer> {
        let Pointer::Frame { kind, extent, checksum, checked, .. } = *pointer else { return Ok(*pointer) };
        self.tally.meet(self.from.frames, extent.len)?;
        let place = self.to.space.take(extent.len)?;
        let frame =
            StoredFrame { chunk: chunk.clone(), limit, rows, pointer: *pointer, extent, to: place.offset };
        self.batch.bytes = self.batch.bytes.saturating_add(extent.len);
        self.batch.frames.push(frame);
        let birth = self.to.space.generation();
        Ok(Pointer::Frame { kind, extent: place, birth, checksum, checked })
    }

    /// The pieces go where frames go, the page that leads to them is made anew.
    fn place_pieces(&mut self, chunk: &Dims, limit: &Dims, entry: &Pointer) -> Result<(Pointer, u64)> {
        let from = self.from;
        let here = |error| from.locate(error, chunk, None);
        let page = from.frames.checked_cow(entry).map_err(here)?;
        self.tally.meet(from.frames, page.len() as u64)?;
        let pieces = Pieces::parse(&page, from.frames.bounds(), limit)
            .map_err(|damage| here(from.frames.damage(damage, None)))?
            .0;
        let (mut placed, mut rows, mut stored) = (Vec::new(), 0, 0u64);
        for piece in pieces {
            let mut limit = limit.clone();
            if let Some(first) = limit.first_mut() {
                *first = piece.rows;
            }
            let new = self.place_frame(chunk, limit, Some(piece.rows), &piece.frame)?;
            if let Pointer::Frame { extent, .. } = new {
                stored += extent.len;
            }
            rows = piece.first_row + piece.rows;
            placed.push(PieceEntry { frame: new, ..piece });
        }
        Ok((self.place_page(Kind::Pieces, encode_pieces_page(rows, &placed))?, stored))
    }

    fn place_raw(&mut self, chunk: &Dims, limit: &Dims, entry: &Pointer) -> Result<(Pointer, u64)> {
        let from = self.from;
        let table = raw_table(from, chunk, limit, entry)?;
        let damaged = |damage| from.locate(from.frames.damage(damage, None), chunk, None);
        let place = Extent { offset: self.payloads.start, len: table.payload.len };
        if place.padded_end() > self.payloads.end {
            return Err(damaged(Damage::new("a raw table that has changed")));
        }
        self.payloads.start = place.padded_end();
        let sums = (0..table.payload.len.div_ceil(RAW_SPAN)).map(|span| table.checksum(span));
        let sums: Vec<u64> = sums.collect::<Result<_, _>>().map_err(damaged)?;
        let page = encode_raw_table(place, &table.valid, &sums);
        let stored = table.payload.len + page.len() as u64;
        self.tally.meet(from.frames, stored)?;
        self.batch.bytes = self.batch.bytes.saturating_add(stored);
        self.batch.raws.push(StoredRaw { chunk: chunk.clone(), table, to: place.offset });
        Ok((self.place_page(Kind::RawTable, page)?, stored))
    }

    fn place_page(&mut self, kind: Kind, mut page: Vec<u8>) -> Result<Pointer> {
        let place = self.to.space.take(page.len() as u64)?;
        let pointer = seal_frame(&mut page, kind, place.offset, place.len, self.to.space.generation())
            .map_err(|Damage(what)| Error::TooLarge { what })?;
        page.resize(saturating_usize(place.padded_len()), 0);
        self.batch.pages.push((place.offset, page));
        Ok(pointer)
    }

    /// Copies what has its place.
    fn flush(&mut self) -> Result<()> {
        let Batch { frames, raws, pages, .. } = std::mem::take(&mut self.batch);
        let shared = self.to.shared;
        if self.to.only_counts() {
            return Ok(());
        }
        let headers: Vec<_> = frames.iter().map(|_| parking_lot::Mutex::new(None)).collect();
        shared.pool.try_for_each(frames.len(), |n| {
            *headers[n].lock() = Some(header(self.from, &frames[n])?);
            Ok(())
        })?;
        let headers: Vec<ChunkHeader<'a>> =
            headers.into_iter().filter_map(parking_lot::Mutex::into_inner).collect();
        let stored: Vec<(&StoredFrame, &ChunkHeader<'a>)> = frames.iter().zip(&headers).collect();
        let units = self.units(&stored, &raws)?;
        for units in units.chunks(UNITS_AT_ONCE) {
            shared.pool.try_for_each(units.len(), |n| match &units[n].0 {
                Unit::Frames(several) => self.copy_frames(&stored[several.clone()]),
                Unit::Blocks(frame, blocks) => self.copy_blocks(stored[*frame], blocks),
                Unit::Spans(raw, spans) => self.copy_spans(&raws[*raw], spans),
            })?;
            self.tally.tell(units.iter().map(|(_, bytes)| bytes).sum())?;
        }
        pages.iter().try_for_each(|(offset, page)| Staging::write(shared, *offset, page))
    }

    /// The units of a batch, with their stored bytes.
    fn units(
        &self,
        frames: &[(&StoredFrame, &ChunkHeader<'a>)],
        raws: &[StoredRaw<'_>],
    ) -> Result<Vec<(Unit, u64)>> {
        let mut units: Vec<(Unit, u64)> = Vec::new();
        for (n, (frame, header)) in frames.iter().enumerate() {
            let len = frame.extent.len;
            if len > UNIT_BYTES {
                let (mut first, mut start) = (0, frame.extent.offset);
                let count = header.block_count();
                for block in 0..count {
                    let stored = self.block(frame, header, block)?.0;
                    let end = stored.offset + stored.len;
                    if end - start >= UNIT_BYTES || block + 1 == count {
                        units.push((Unit::Blocks(n, first..block + 1), end - start));
                        (first, start) = (block + 1, end);
                    }
                }
                continue;
            }
            // Goes with the frames before if it will stand right behind them.
            let before = n.checked_sub(1).and_then(|before| frames.get(before)).map(|(frame, _)| frame);
            let follows = before.is_some_and(|before| before.to + before.extent.padded_len() == frame.to);
            match units.last_mut() {
                Some((Unit::Frames(several), bytes)) if follows && *bytes + len <= UNIT_BYTES => {
                    several.end = n + 1;
                    *bytes += len;
                }
                _ => units.push((Unit::Frames(n..n + 1), len)),
            }
        }
        for (n, raw) in raws.iter().enumerate() {
            let (payload, step) = (raw.table.payload.len, UNIT_BYTES / RAW_SPAN);
            let count = payload.div_ceil(RAW_SPAN);
            for first in (0..count).step_by(saturating_usize(step)) {
                let spans = first..count.min(first + step);
                let bytes = (spans.end * RAW_SPAN).min(payload) - spans.start * RAW_SPAN;
                units.push((Unit::Spans(n, spans), bytes));
            }
        }
        Ok(units)
    }

    /// Where a block is stored, and its checksum.
    fn block(&self, frame: &StoredFrame, header: &ChunkHeader<'_>, number: u64) -> Result<(Extent, u64)> {
        let record = self.from.record;
        let at = shape::coordinates(number, &header.block_grid).unwrap_or_default();
        let corner: Dims = at.iter().zip(&record.blocks).map(|(at, len)| at * len).collect();
        let items = shape::product(&shape::clip(&corner, &record.blocks, &header.valid)).unwrap_or(u64::MAX);
        let entry = header.block(number, items.saturating_mul(record.dtype.itemsize() as u64));
        let entry = entry.map_err(|damage| {
            let error = self.from.frames.damage(damage, Some(frame.extent.offset));
            self.from.locate(error, &frame.chunk, Some(number))
        })?;
        Ok((entry.extent, entry.checksum))
    }

    /// Checks `bytes`, which stand at `start` of the file: these blocks of a frame, and what belongs to the first.
    fn check(
        &self,
        (frame, header): (&StoredFrame, &ChunkHeader<'_>),
        blocks: &Range<u64>,
        start: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let frames = self.from.frames;
        let part = |extent: Extent| {
            let from = saturating_usize(extent.offset.saturating_sub(start));
            bytes.get(from..).and_then(|rest| rest.get(..saturating_usize(extent.len))).unwrap_or_default()
        };
        if let (0, Pointer::Frame { checked, .. }) = (blocks.start, frame.pointer) {
            let head = part(Extent { len: u64::from(checked), ..frame.extent });
            frame.pointer.check_frame(head).map_err(|damage| {
                self.from.locate(frames.lost(damage, frame.extent.offset), &frame.chunk, None)
            })?;
        }
        for number in blocks.clone() {
            let (extent, sum) = self.block(frame, header, number)?;
            if checksum(part(extent)) != sum {
                let damage = Damage::new("the stored bytes do not have their checksum");
                let error = frames.lost(damage, extent.offset);
                return Err(self.from.locate(error, &frame.chunk, Some(number)));
            }
        }
        Ok(())
    }

    /// Copies frames by way of memory, so that they are written at once.
    fn copy_frames(&self, frames: &[(&StoredFrame, &ChunkHeader<'_>)]) -> Result<()> {
        let [(first, header)] = frames else { return self.gather_frames(frames) };
        self.copy_blocks((first, header), &(0..header.block_count()))
    }

    fn gather_frames(&self, frames: &[(&StoredFrame, &ChunkHeader<'_>)]) -> Result<()> {
        let Some((first, _)) = frames.first() else { return Ok(()) };
        let source = self.from.frames;
        with_buffer(|gathered| {
            gathered.clear();
            for &(frame, header) in frames {
                let (at, len) = (gathered.len(), saturating_usize(frame.extent.len));
                match source.source().borrow(frame.extent.offset, len) {
                    Some(bytes) => gathered.extend_from_slice(bytes),
                    None => {
                        gathered.resize(at + len, 0);
                        source
                            .source()
                            .read_at(frame.extent.offset, &mut gathered[at..])
                            .map_err(|error| source.failed(error, frame.extent))?;
                    }
                }
                let blocks = 0..header.block_count();
                self.check((frame, header), &blocks, frame.extent.offset, &gathered[at..])?;
                gathered.resize(at + saturating_usize(frame.extent.padded_len()), 0);
            }
            Staging::write(self.to.shared, first.to, gathered)
        })
    }

    /// Copies blocks of a frame.
    fn copy_blocks(
        &self,
        (frame, header): (&StoredFrame, &ChunkHeader<'_>),
        blocks: &Range<u64>,
    ) -> Result<()> {
        let whole = frame.extent;
        let start = match blocks.start {
            0 => whole.offset,
            first => self.block(frame, header, first)?.0.offset,
        };
        let last = self.block(frame, header, blocks.end - 1)?.0;
        let part = Extent { offset: start, len: last.offset + last.len - start };
        let is_last = blocks.end == header.block_count();
        self.copy_part(part, is_last, frame.to + (start - whole.offset), |bytes| {
            self.check((frame, header), blocks, start, bytes)
        })
    }

    /// Copies spans of a raw payload.
    fn copy_spans(&self, raw: &StoredRaw<'_>, spans: &Range<u64>) -> Result<()> {
        let (frames, payload) = (self.from.frames, raw.table.payload);
        let start = spans.start * RAW_SPAN;
        let len = (spans.end * RAW_SPAN).min(payload.len) - start;
        let part = Extent { offset: payload.offset + start, len };
        let is_last = start + len == payload.len;
        self.copy_part(part, is_last, raw.to + start, |bytes| {
            for (span, bytes) in spans.clone().zip(bytes.chunks(RAW_SPAN as usize)) {
                let offset = payload.offset + span * RAW_SPAN;
                let sum = raw.table.checksum(span).map_err(|damage| frames.damage(damage, Some(offset)))?;
                if checksum(bytes) != sum {
                    let (from, to) = (span * RAW_SPAN, span * RAW_SPAN + bytes.len() as u64);
                    let what = format!("bytes {from} to {to} of a raw chunk do not have their checksum");
                    return Err(self.from.locate(frames.lost(Damage::new(what), offset), &raw.chunk, None));
                }
            }
            Ok(())
        })
    }

    /// Copies a part of an extent to `to`, once it is checked. With the last part goes the padding, which is zero.
    fn copy_part(
        &self,
        part: Extent,
        is_last: bool,
        to: u64,
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let len = saturating_usize(part.len);
        let end = part.offset + part.len;
        let padding = if is_last { round_up(end, ALIGNMENT).unwrap_or(end) - end } else { 0 };
        with_buffer(|buf| {
            let bytes = self.from.frames.unchecked(Extent { len: part.len + padding, ..part }, buf)?;
            let (items, padding) = bytes.split_at(len);
            check(items)?;
            if padding.iter().all(|&byte| byte == 0) {
                return Staging::write(self.to.shared, to, bytes);
            }
            Staging::write(self.to.shared, to, items)?;
            Staging::write(self.to.shared, to + part.len, &[0; ALIGNMENT as usize][..padding.len()])
        })
    }
}

fn raw_table<'a>(from: &Reading<'a>, chunk: &[u64], limit: &[u64], entry: &Pointer) -> Result<RawTable<'a>> {
    let frames: &'a Frames = from.frames;
    let frame = frames.checked_cow(entry).map_err(|error| from.locate(error, chunk, None))?;
    RawTable::parse(frame, frames.bounds(), limit, from.record.dtype.itemsize())
        .map_err(|damage| from.locate(frames.damage(damage, None), chunk, None))
}

fn header<'a>(from: &Reading<'a>, frame: &StoredFrame) -> Result<ChunkHeader<'a>> {
    let here = |error| from.locate(error, &frame.chunk, None);
    let header = read_chunk_header(from.frames, from.record, &frame.pointer, &frame.limit).map_err(here)?;
    if frame.rows.is_some() && header.valid.first().copied() != frame.rows {
        let damage = Damage::new("a piece whose rows are not those of its frame");
        return Err(here(from.frames.damage(damage, Some(frame.extent.offset))));
    }
    Ok(header)
}

/// Reads and encodes all items that stored chunks have, a new chunk at a time. Absent chunks are not looked at, whatever
/// their number.
fn copy_anew(from: &Reading<'_>, to: NewArray<'_>, tally: &mut Tally<'_>) -> Result<()> {
    let mut stored: Vec<Dims> = Vec::new();
    for_each_stored(
        from,
        &mut |chunk, _, entry| {
            if entry != Pointer::Null {
                stored.push(chunk);
            }
            Ok(())
        },
        |len| tally.meet(from.frames, len),
    )?;
    let NewArray { shared, frames, space, array } = to;
    let record = array.record.clone();
    let touched = Touched { from: from.record, to: &record };
    let grid = shape::grid(&record.shape, &record.chunks);
    let nowhere = Dims::from_elem(0, grid.len());
    let all: Vec<&Dims> = stored.iter().collect();
    let mut writing = Writing::new(shared, frames, space, array, from.path);
    if record.layout == Layout::Raw {
        let mut items = Vec::new();
        touched.visit(&all, &nowhere, &grid, &mut |chunk| {
            items.push(shape::product(&record.chunk_limit(&chunk)).unwrap_or(u64::MAX));
            Ok(())
        })?;
        writing.reserve_payloads(items)?;
    }
    touched.visit(&all, &nowhere, &grid, &mut |chunk| {
        let limit = record.chunk_limit(&chunk);
        let bytes = from.read_box(&record.chunk_origin(&chunk), &limit)?;
        writing.write_chunk(&chunk, &bytes)?;
        tally.tell(bytes.len() as u64)
    })
}

/// Finds the chunks of one array that meet chunks of another one of the same shape.
struct Touched<'a> {
    from: &'a ArrayRecord,
    to: &'a ArrayRecord,
}

impl Touched<'_> {
    /// Calls `visit` for those between `low` and `high` that meet one of `stored`, in C order.
    fn visit(
        &self,
        stored: &[&Dims],
        low: &Dims,
        high: &Dims,
        visit: &mut dyn FnMut(Dims) -> Result<()>,
    ) -> Result<()> {
        let meets = |chunk: &Dims| {
            (0..low.len()).all(|dim| {
                let start = chunk[dim].saturating_mul(self.from.chunks[dim]);
                let end = start.saturating_add(self.from.chunks[dim]);
                start < high[dim].saturating_mul(self.to.chunks[dim])
                    && low[dim].saturating_mul(self.to.chunks[dim]) < end
            })
        };
        let here: Vec<&Dims> = stored.iter().copied().filter(|chunk| meets(chunk)).collect();
        if here.is_empty() {
            return Ok(());
        }
        let Some(dim) = (0..low.len()).find(|&dim| high[dim] - low[dim] > 1) else {
            return visit(low.clone());
        };
        let middle = low[dim] + (high[dim] - low[dim]) / 2;
        let (mut first_high, mut second_low) = (high.clone(), low.clone());
        (first_high[dim], second_low[dim]) = (middle, middle);
        self.visit(&here, low, &first_high, visit)?;
        self.visit(&here, &second_low, high, visit)
    }
}
