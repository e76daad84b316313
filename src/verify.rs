//! Walking a whole file: every byte is accounted for and everything that has a checksum is compared with it.

use crate::array::Ragged;
use crate::codec::{Coding, Filter, with_decoder};
use crate::error::{Damage, Error, Place, Result};
use crate::format::{
    ArrayRecord, ChunkHeader, DATA_START, Extent, Kind, Pieces, Pointer, RAW_SPAN, RawTable, Record,
    TreeCell, root_offset, twin,
};
use crate::num::saturating_usize;
use crate::progress::{Progress, ProgressCallback};
use crate::shape::{self, Dims};
use crate::store::free::FreeSpace;
use crate::store::{EntryKind, Frames, Snapshot, Store, index, parse_attributes, path, tree};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

/// How many times the file's length the offsets and the text of a ragged array may have to be all checked.
const RAGGED_EXCESS: u64 = 4096;

/// What [`Store::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is damaged, in the order in which it was met.
    pub findings: Vec<Finding>,
    /// Groups, without the root group.
    pub groups: u64,
    /// Arrays and ragged arrays.
    pub arrays: u64,
    /// Chunks that are stored.
    pub chunks: u64,
    /// Blocks, and spans of raw chunks, that were compared with their checksums.
    pub blocks: u64,
    /// Bytes that the newest state reaches.
    pub live_bytes: u64,
    /// Bytes that can be reused.
    pub free_bytes: u64,
    /// Bytes behind the logical end, which a writer left that died before its commit.
    pub tail_bytes: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Store {
    /// Reads the whole newest state and reports all that is damaged: it compares every checksum, decodes every block, and
    /// accounts for every byte up to the logical end. Reads the file once; memory grows with the number of chunks, not
    /// with their size.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the first pages cannot be read, and [`Error::Corrupt`] if there is no root in them. Damage is not an
    /// error here, and neither are places further on that cannot be read: they are findings.
    pub fn verify(&self) -> Result<Report> {
        self.verify_with(None)
    }

    /// As [`Store::verify`], with a callback for the progress.
    ///
    /// # Errors
    ///
    /// As [`Store::verify`]; [`Error::Cancelled`] if the callback said so.
    pub fn verify_with(&self, progress: Option<&ProgressCallback<'_>>) -> Result<Report> {
        let snapshot = self.follow()?;
        let end = snapshot.file_bytes();
        let mut walk = Walk {
            snapshot: &snapshot,
            frames: snapshot.frames()?,
            progress,
            done: Progress { done: 0, total: end },
            report: Report::default(),
            extents: BTreeMap::new(),
        };
        self.twin_pages(&mut walk)?;
        walk.catalog()?;
        walk.free_space();
        walk.account();
        walk.report.tail_bytes = self.file_len()?.saturating_sub(end);
        Ok(walk.report)
    }

    /// Both copies of the superblock and of each root.
    fn twin_pages(&self, walk: &mut Walk<'_>) -> Result<()> {
        for (page, name) in (0..4).zip(["superblock", "root 0", "root 1", "root 2"]) {
            let offset = if page == 0 { 0 } else { root_offset(page - 1) };
            for (copy, valid) in self.valid_copies(offset)?.into_iter().enumerate() {
                if !valid {
                    let place =
                        Place { offset: Some(offset + (copy * twin::RECORD_LEN) as u64), ..walk.place() };
                    walk.find(place, format!("copy {} of the {name} does not have its checksum", copy + 1));
                }
            }
        }
        Ok(())
    }
}

struct Walk<'a> {
    snapshot: &'a Snapshot,
    frames: &'a Frames,
    progress: Option<&'a ProgressCallback<'a>>,
    done: Progress,
    report: Report,
    /// What has been met, by offset: the length with its padding, and what it is.
    extents: BTreeMap<u64, (Extent, String)>,
}

impl<'a> Walk<'a> {
    fn place(&self) -> Place {
        Place { file: self.frames.file().to_path_buf(), ..Place::default() }
    }

    fn find(&mut self, place: Place, what: String) {
        self.report.findings.push(Finding { place, what });
    }

    /// Notes an error, with the array and chunk it belongs to.
    fn lost(&mut self, error: Error, array: Option<&str>, chunk: Option<&[u64]>) {
        let (mut place, what) = match error {
            Error::Corrupt { place, what } => (*place, what),
            other => (self.place(), other.to_string()),
        };
        place.array = place.array.or_else(|| array.map(str::to_owned));
        place.chunk = place.chunk.or_else(|| chunk.map(<[u64]>::to_vec));
        self.find(place, what);
    }

    /// Notes that an extent is used; `false` if it was before, in which case what is behind it is left out.
    fn use_extent(&mut self, extent: Extent, what: &str) -> bool {
        if self.extents.contains_key(&extent.offset) {
            let place = Place { offset: Some(extent.offset), ..self.place() };
            self.find(place, format!("two things are stored at one place, one of them {what}"));
            return false;
        }
        self.extents.insert(extent.offset, (extent, what.to_owned()));
        true
    }

    fn use_pointer(&mut self, pointer: &Pointer, what: &str) -> bool {
        match pointer {
            Pointer::Frame { extent, .. } => self.use_extent(*extent, what),
            _ => true,
        }
    }

    fn tell(&mut self, bytes: u64) -> Result<()> {
        self.done.done = self.done.done.saturating_add(bytes).min(self.done.total);
        self.done.tell(self.progress)
    }

    /// The catalog, and every array in it.
    fn catalog(&mut self) -> Result<()> {
        let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let root = self.snapshot.root();
        tree::scan(self.frames, &root.catalog, b"", &mut |met| {
            match met {
                tree::Met::Page(pointer) => {
                    if !self.use_pointer(pointer, "a catalog page") {
                        return ControlFlow::Break(());
                    }
                }
                tree::Met::Lost(error) => self.lost(error, None, None),
                tree::Met::Entry { key, cell } => {
                    // What is met twice is left out, so that a file cannot make more of a value than it holds.
                    let new = match cell {
                        TreeCell::Blob(blob) => self.use_pointer(blob, "a blob of the catalog"),
                        _ => true,
                    };
                    if new {
                        match tree::value(self.frames, cell) {
                            Ok(value) => entries.push((key.to_vec(), value)),
                            Err(error) => self.lost(error, None, None),
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        let mut groups: HashSet<String> = HashSet::from([String::new()]);
        let mut named: HashSet<String> = groups.clone();
        for (key, value) in entries {
            self.entry(&key, &value, &mut groups, &mut named)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        key: &[u8],
        value: &[u8],
        groups: &mut HashSet<String>,
        named: &mut HashSet<String>,
    ) -> Result<()> {
        let (path, attributes) = match path::of_key(key) {
            Ok(named) => named,
            Err(Damage(what)) => {
                self.find(self.place(), what);
                return Ok(());
            }
        };
        let place = Place { array: Some(path.to_owned()), ..self.place() };
        if attributes {
            if !named.contains(path) {
                self.find(place, "attributes of something that is not there".into());
            } else if let Err(damage) = parse_attributes(value) {
                self.find(place, damage.0);
            }
            return Ok(());
        }
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !groups.contains(parent) {
            self.find(place.clone(), format!("it is below '{parent}', which is not a group"));
        }
        named.insert(path.to_owned());
        match Record::parse(value, self.frames.bounds()) {
            Err(damage) => self.find(place, damage.0),
            Ok(Record::Group) => {
                groups.insert(path.to_owned());
                self.report.groups += 1;
            }
            Ok(Record::Unknown(what)) => self.find(place, format!("{what}, of a later version")),
            Ok(Record::Array(record)) => {
                self.report.arrays += 1;
                self.array(path, &record)?;
            }
            Ok(Record::Ragged(record)) => {
                self.report.arrays += 1;
                let before = self.report.findings.len();
                self.array(path, &record.offsets)?;
                self.array(path, &record.values)?;
                if self.report.findings.len() == before
                    && self.snapshot.kind(path)? == Some(EntryKind::Ragged)
                {
                    self.ragged(path, &self.snapshot.ragged(path)?);
                }
            }
        }
        Ok(())
    }

    /// One array: its index, and everything that its index leads to.
    fn array(&mut self, path: &str, record: &ArrayRecord) -> Result<()> {
        let (mut chunks, mut bytes) = (0u64, 0u64);
        let frames = self.frames;
        index::walk(frames, record.index, record.index_levels(), 0, &mut |met| match met {
            index::Met::Page(pointer) => {
                Ok(self.use_pointer(&pointer, &format!("an index page of '{path}'")))
            }
            index::Met::Lost(error) => {
                self.lost(error, Some(path), None);
                Ok(true)
            }
            index::Met::Chunk { key, entry } => {
                chunks += 1;
                match record.coordinates(key) {
                    Some(chunk) => bytes += self.chunk(path, record, &chunk, &entry)?,
                    None => {
                        let place = Place { array: Some(path.to_owned()), ..self.place() };
                        self.find(
                            place,
                            format!("an index entry with the key {key}, outside the chunk grid"),
                        );
                    }
                }
                Ok(true)
            }
        })?;
        self.report.chunks += chunks;
        if (chunks, bytes) != (record.stored_chunks, record.stored_bytes) && self.report.is_clean() {
            let place = Place { array: Some(path.to_owned()), ..self.place() };
            let what = format!(
                "the array says that {} chunks of {} bytes are stored, but there are {chunks} of {bytes}",
                record.stored_chunks, record.stored_bytes
            );
            self.find(place, what);
        }
        Ok(())
    }

    /// One chunk; returns its stored bytes.
    fn chunk(&mut self, path: &str, record: &ArrayRecord, chunk: &Dims, entry: &Pointer) -> Result<u64> {
        let (frames, limit) = (self.frames, record.chunk_limit(chunk));
        if let Err(Damage(what)) = record.check_entry(entry, &limit) {
            let place = Place { array: Some(path.to_owned()), chunk: Some(chunk.to_vec()), ..self.place() };
            self.find(place, what);
            return Ok(0);
        }
        let Pointer::Frame { kind, extent, .. } = *entry else { return Ok(0) };
        if !self.use_extent(extent, &format!("a {} of '{path}'", kind.name())) {
            return Ok(extent.len);
        }
        let mut stored = extent.len;
        let here = |damage: Damage| frames.damage(damage, Some(extent.offset));
        let outcome = match kind {
            Kind::Chunk => self.blocks(path, record, chunk, entry, &limit, None),
            Kind::RawTable => match frames.checked_cow(entry).and_then(|frame| {
                RawTable::parse(frame, frames.bounds(), &limit, record.dtype.itemsize()).map_err(here)
            }) {
                Ok(table) => {
                    stored += table.payload.len;
                    if self.use_extent(table.payload, &format!("raw items of '{path}'")) {
                        self.spans(path, chunk, &table)
                    } else {
                        Ok(())
                    }
                }
                Err(error) => Err(error),
            },
            Kind::Pieces => {
                stored = 0;
                let frame = frames.checked_cow(entry);
                match frame.and_then(|frame| Pieces::parse(&frame, frames.bounds(), &limit).map_err(here)) {
                    Ok(pieces) => {
                        for piece in pieces.0 {
                            if let Pointer::Frame { extent, .. } = piece.frame {
                                stored += extent.len;
                                if !self.use_extent(extent, &format!("a piece of '{path}'")) {
                                    continue;
                                }
                            }
                            let mut limit = limit.clone();
                            if let Some(rows) = limit.first_mut() {
                                *rows = piece.rows;
                            }
                            if let Err(error) =
                                self.blocks(path, record, chunk, &piece.frame, &limit, Some(piece.rows))
                            {
                                self.lost_or_stop(error, path, chunk)?;
                            }
                        }
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
            _ => Err(here(Damage::new("an index entry of the wrong kind"))),
        };
        if let Err(error) = outcome {
            self.lost_or_stop(error, path, chunk)?;
        }
        Ok(stored)
    }

    /// Notes damage; hands on what ends the walk.
    fn lost_or_stop(&mut self, error: Error, path: &str, chunk: &[u64]) -> Result<()> {
        match error {
            Error::Cancelled => Err(error),
            error => {
                self.lost(error, Some(path), Some(chunk));
                Ok(())
            }
        }
    }

    /// The blocks of one chunk frame.
    fn blocks(
        &mut self,
        path: &str,
        record: &ArrayRecord,
        chunk: &[u64],
        pointer: &Pointer,
        limit: &[u64],
        rows: Option<u64>,
    ) -> Result<()> {
        let frames = self.frames;
        let Pointer::Frame { extent, .. } = *pointer else { return Ok(()) };
        let header = ChunkHeader::parse(frames.checked_cow(pointer)?, extent, limit, &record.blocks)
            .map_err(|damage| frames.damage(damage, Some(extent.offset)))?;
        if rows.is_some() && header.valid.first().copied() != rows {
            let what = Damage::new("a piece whose rows are not those of its frame");
            return Err(frames.damage(what, Some(extent.offset)));
        }
        let count = header.block_count();
        let failures = parking_lot::Mutex::new(Vec::new());
        self.snapshot.shared()?.pool.for_each(saturating_usize(count), |number| {
            if let Err(error) = check_block(frames, record, &header, number as u64) {
                failures.lock().push((number as u64, error));
            }
        });
        let mut failures = failures.into_inner();
        failures.sort_by_key(|(number, _)| *number);
        for (number, mut error) in failures {
            if let Error::Corrupt { place, .. } = &mut error {
                place.block = Some(number);
            }
            self.lost(error, Some(path), Some(chunk));
        }
        self.report.blocks += count;
        self.tell(extent.len)
    }

    /// The spans of one raw payload.
    fn spans(&mut self, path: &str, chunk: &[u64], table: &RawTable<'_>) -> Result<()> {
        let frames = self.frames;
        let mut buf = Vec::new();
        for span in 0..table.payload.len.div_ceil(RAW_SPAN) {
            let start = span * RAW_SPAN;
            let extent =
                Extent { offset: table.payload.offset + start, len: RAW_SPAN.min(table.payload.len - start) };
            let sum = table.checksum(span).map_err(|damage| frames.damage(damage, Some(extent.offset)))?;
            if let Err(error) = frames.summed(extent, sum, &mut buf) {
                self.lost(error, Some(path), Some(chunk));
            }
            self.report.blocks += 1;
            self.tell(extent.len)?;
        }
        Ok(())
    }

    /// The offsets, and the text of strings, of one ragged array.
    fn ragged(&mut self, path: &str, ragged: &Ragged) {
        // What a few stored bytes stand for can be without end.
        let mut budget = self.snapshot.file_bytes().saturating_mul(RAGGED_EXCESS).saturating_add(1 << 30);
        let outcome = ragged
            .runs_to_check()
            .and_then(|runs| runs.into_iter().try_for_each(|run| ragged.check_run(run, &mut budget)));
        if let Err(error) = outcome {
            self.lost(error, Some(path), None);
        }
    }

    /// The lists of free space, and what they say.
    fn free_space(&mut self) {
        match FreeSpace::read(self.frames, &self.snapshot.root().free) {
            Ok(free) => {
                for list in &free.lists {
                    self.use_pointer(list, "a list of free space");
                }
                for (offset, free) in free.extents {
                    self.report.free_bytes = self.report.free_bytes.saturating_add(free.len);
                    self.use_extent(Extent { offset, len: free.len }, "free space");
                }
            }
            Err(error) => self.lost(error, None, None),
        }
    }

    /// That the extents fill the file up to its logical end, and that padding is zero.
    fn account(&mut self) {
        let (frames, end) = (self.frames, self.snapshot.file_bytes());
        let mut at = DATA_START;
        let mut lost_space = 0;
        for (extent, what) in std::mem::take(&mut self.extents).into_values() {
            let place = Place { offset: Some(extent.offset), ..self.place() };
            if extent.offset < at {
                self.find(place, format!("{what} overlaps what stands before it"));
            } else {
                lost_space += extent.offset - at;
                let padding =
                    Extent { offset: extent.offset + extent.len, len: extent.padded_len() - extent.len };
                let mut buf = Vec::new();
                if padding.len > 0 {
                    match frames.unchecked(padding, &mut buf) {
                        Ok(bytes) if bytes.iter().all(|&byte| byte == 0) => {}
                        Ok(_) => self.find(place, format!("the padding of {what} is not zero")),
                        Err(error) => self.lost(error, None, None),
                    }
                }
            }
            at = at.max(extent.padded_end());
        }
        lost_space += end.saturating_sub(at);
        if lost_space > 0 && self.report.is_clean() {
            self.find(
                self.place(),
                format!("{lost_space} bytes belong to nothing and are not listed as free"),
            );
        }
        self.report.live_bytes = end.saturating_sub(self.report.free_bytes);
    }
}

fn check_block(frames: &Frames, record: &ArrayRecord, header: &ChunkHeader<'_>, number: u64) -> Result<()> {
    let here = |damage: Damage| frames.damage(damage, None);
    let at = shape::coordinates(number, &header.block_grid).unwrap_or_default();
    let corner: Dims = at.iter().zip(&record.blocks).map(|(at, len)| at * len).collect();
    let items = shape::product(&shape::clip(&corner, &record.blocks, &header.valid)).unwrap_or(u64::MAX);
    let (count, itemsize) = (saturating_usize(items), record.dtype.itemsize());
    let entry = header.block(number, items.saturating_mul(itemsize as u64)).map_err(here)?;
    let here = |damage: Damage| frames.damage(damage, Some(entry.extent.offset));
    let mut buf = Vec::new();
    let stored = frames.summed(entry.extent, entry.checksum, &mut buf)?;
    let coding = Coding::from_id(entry.coding).map_err(here)?;
    let filter = Filter { coding, word: header.word, stride: header.stride };
    with_decoder(|decoder| {
        decoder.open(stored, coding, filter, itemsize, count, 0..count).map(|_| ()).map_err(here)
    })
}
