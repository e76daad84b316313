//! Transactions: staging changes and publishing them.
//!
//! # Overview of types
//!
//! A [`Writer`] stages changes. Chunks go to the file as they are written, into space that no root reaches; names go
//! into a [`TreeEdit`] of the catalog, and the entries of chunks into an [`IndexEdit`] per array. [`Space`] says where
//! there is room and notes what the new root will not reach. [`Writer::commit`] writes the changed pages, waits for the
//! disk, and publishes a root.

mod commit;
mod copy;
#[cfg(all(test, feature = "mmap", target_pointer_width = "64"))]
mod far;
mod free_lists;
pub(super) mod ids;
mod index_edit;
mod lock;
mod names;
mod space;
mod tree_edit;

pub(crate) use copy::NewArray;
pub(crate) use index_edit::{Fate, IndexEdit};
pub(super) use lock::WriterLock;
pub(crate) use space::Space;

use self::free_lists::FreeLists;
use self::space::PageBatch;
use self::tree_edit::TreeEdit;
use super::{Attributes, EntryKind, Frames, Shared, check_in_place, create, doubt, parse_attributes, path};
use crate::codec::Filter;
use crate::error::{Damage, Error, Place, Result};
use crate::format::{
    ArrayRecord, Bounds, Extent, Kind, PieceEntry, Pieces, Pointer, RaggedRecord, RawTable, Record, Root,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A transaction on a store.
///
/// Changes are staged until [`Writer::commit`] publishes them all at once. Dropping the writer without a commit leaves
/// the store as it was. The writer reads its own staged state.
///
/// A call that fails may have staged a part of what it was asked for; the store itself is untouched, and dropping the
/// writer rolls back.
pub struct Writer {
    shared: Arc<Shared>,
    /// The state that the transaction started from.
    base: Root,
    /// The root pages as they are in the file.
    slots: [Root; 3],
    /// Reads committed and staged frames.
    frames: Frames,
    /// How far the source of the frames reaches.
    reach: u64,
    space: Space,
    free_lists: FreeLists,
    catalog: TreeEdit,
    staged: BTreeMap<String, Staged>,
    /// By path: what the arrays of earlier transactions were encoded with, so that a commit does not make it forgotten.
    encoded_with: BTreeMap<String, EncodedWith>,
    changed: bool,
    lock: Arc<WriterLock>,
    /// Why nothing more can be committed.
    poisoned: Option<String>,
    /// Dropped last: a lock is one for the whole open file, so that the next writer of this handle must not take it before
    /// this one has let it go.
    _turn: Turn,
}

/// Keeps other writers of the same handle out while it lives.
struct Turn(Arc<Shared>);

impl Turn {
    fn take(shared: &Arc<Shared>) -> Result<Turn> {
        if shared.writing.swap(true, Ordering::SeqCst) {
            return Err(Error::Locked {
                what: "this store has a writer already; commit or drop it first".into(),
            });
        }
        Ok(Turn(shared.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.writing.store(false, Ordering::SeqCst);
        if self.0.closed.load(Ordering::SeqCst) {
            // Whoever wants to know calls `Writer::sync`.
            let _ = Writer::settle(&self.0);
        }
    }
}

/// An array with staged changes.
pub(crate) enum Staged {
    Array(Box<StagedArray>),
    Ragged(Box<StagedRagged>),
}

/// The two arrays of a ragged array in a transaction.
pub(crate) struct StagedRagged {
    /// Its shape counts; the records of offsets and values are those of the arrays below.
    pub(crate) record: RaggedRecord,
    pub(crate) offsets: StagedArray,
    pub(crate) values: StagedArray,
}

/// The record and the index of an array in a transaction.
pub(crate) struct StagedArray {
    pub(crate) record: ArrayRecord,
    pub(crate) index: IndexEdit,
    /// Items to append before anybody looks at the array.
    pub(crate) gathered: Option<Gathered>,
    /// What it was encoded with last.
    pub(crate) encoded_with: Option<EncodedWith>,
}

/// A filter, and what is known of the data that it suited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedWith {
    pub(crate) filter: Filter,
    /// Stored bytes for each byte of items, when it was last seen to be right.
    pub(crate) ratio: f64,
    /// Bytes of items that were written by then.
    pub(crate) seen: u64,
    /// Bytes that were written since.
    pub(crate) unseen: u64,
}

/// Items that were appended to an array and are still in memory.
pub(crate) struct Gathered {
    /// The dimension along which they go to the end.
    pub(crate) axis: usize,
    /// How many places of it they fill.
    pub(crate) len: u64,
    /// Items in C order, with the number of places that they fill.
    pub(crate) records: Vec<(u64, Vec<u8>)>,
    /// Appends them: writing items is for a higher layer.
    pub(crate) append: fn(Gathered, &str, Staging<'_>) -> Result<()>,
}

impl StagedArray {
    pub(crate) fn new(record: ArrayRecord) -> StagedArray {
        let index = IndexEdit::new(record.index, record.index_levels());
        StagedArray { record, index, gathered: None, encoded_with: None }
    }

    /// Puts the entry of a chunk in its place. `stored` are the bytes behind the new entry, `kept` those of the pieces
    /// behind the old one that it leads to as well. Returns the other extents of the old one with their births: they are to
    /// be let go.
    pub(crate) fn put(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        coordinates: &[u64],
        entry: Pointer,
        stored: u64,
        kept: &[PieceEntry],
    ) -> Result<Vec<(Extent, u64)>> {
        let old = self.index.set(frames, space, self.record.key(coordinates), entry)?;
        let mut gone = count_out(&mut self.record, frames, coordinates, &old)?;
        let stays = |extent: &Extent| {
            kept.iter()
                .any(|piece| matches!(piece.frame, Pointer::Frame { extent: kept, .. } if kept == *extent))
        };
        gone.retain(|(extent, _)| !stays(extent));
        // A file can claim any number of either.
        self.record.stored_chunks =
            self.record.stored_chunks.saturating_add(u64::from(entry != Pointer::Null));
        self.record.stored_bytes = self.record.stored_bytes.saturating_add(stored);
        Ok(gone)
    }

    fn flush(&mut self, space: &mut Space, batch: &mut PageBatch) -> Result<&ArrayRecord> {
        self.record.index = self.index.flush(space, batch)?;
        Ok(&self.record)
    }
}

/// Lets go of what is behind the entry of a chunk that is taken out of its array's index.
pub(crate) fn let_go(
    record: &mut ArrayRecord,
    frames: &Frames,
    space: &mut Space,
    coordinates: &[u64],
    entry: &Pointer,
) -> Result<()> {
    let gone = count_out(record, frames, coordinates, entry)?;
    gone.into_iter().for_each(|(extent, birth)| space.release(extent, birth));
    Ok(())
}

/// Takes an entry out of what the record counts, and returns the extents behind it with their births.
fn count_out(
    record: &mut ArrayRecord,
    frames: &Frames,
    coordinates: &[u64],
    entry: &Pointer,
) -> Result<Vec<(Extent, u64)>> {
    let limit = record.chunk_limit(coordinates);
    let extents = extents_of_entry(frames, entry, record, &limit)?;
    for (extent, _) in &extents {
        // The page of the pieces is not counted, they are.
        let is_page =
            matches!(entry, Pointer::Frame { kind: Kind::Pieces, extent: page, .. } if page == extent);
        let counted = if is_page { 0 } else { extent.len };
        record.stored_bytes = record.stored_bytes.saturating_sub(counted);
    }
    record.stored_chunks -= u64::from(*entry != Pointer::Null).min(record.stored_chunks);
    Ok(extents)
}

/// The extents behind the entry of a chunk, with their births.
pub(crate) fn extents_of_entry(
    frames: &Frames,
    entry: &Pointer,
    record: &ArrayRecord,
    limit: &[u64],
) -> Result<Vec<(Extent, u64)>> {
    record.check_entry(entry, limit).map_err(|damage| frames.damage(damage, None))?;
    let Pointer::Frame { kind, extent, birth, .. } = *entry else { return Ok(Vec::new()) };
    let mut extents = vec![(extent, birth)];
    let mut buf = Vec::new();
    let here = |damage: Damage| frames.damage(damage, Some(extent.offset));
    match kind {
        Kind::RawTable => {
            let bytes = frames.checked_cow(entry)?;
            let table =
                RawTable::parse(bytes, frames.bounds(), limit, record.dtype.itemsize()).map_err(here)?;
            extents.push((table.payload, birth));
        }
        Kind::Pieces => {
            let bytes = frames.checked(entry, &mut buf)?;
            for piece in Pieces::parse(bytes, frames.bounds(), limit).map_err(here)?.0 {
                if let Pointer::Frame { extent, birth, .. } = piece.frame {
                    extents.push((extent, birth));
                }
            }
        }
        _ => {}
    }
    Ok(extents)
}

impl Writer {
    pub(super) fn begin(shared: &Arc<Shared>) -> Result<Writer> {
        if !shared.writable {
            let what = format!(
                "{} was not opened for writing; see OpenOptions::write",
                shared.storage.name().display()
            );
            return Err(Error::InvalidState { what });
        }
        Writer::begin_in_turn(shared, Turn::take(shared)?)
    }

    /// Waits for the commits that this handle deferred, if there are any.
    pub(super) fn settle(shared: &Arc<Shared>) -> Result<()> {
        if !shared.is_ours() || !shared.deferred.load(Ordering::SeqCst) {
            return Ok(());
        }
        let turn = Turn::take(shared)?;
        if !shared.deferred.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let outcome = Writer::begin_in_turn(shared, turn).and_then(|mut writer| writer.sync());
        outcome.inspect_err(|_| shared.deferred.store(true, Ordering::SeqCst))
    }

    fn begin_in_turn(shared: &Arc<Shared>, turn: Turn) -> Result<Writer> {
        let unnamed = shared.unnamed.lock().as_ref().map(|unnamed| unnamed.lock.clone());
        let lock =
            unnamed.map_or_else(|| WriterLock::take(&shared.storage, &shared.options).map(Arc::new), Ok)?;
        // Whoever held the lock before may have put another file in this one's place, or published another root.
        check_in_place(&*shared.storage)?;
        let (slots, ours) = commit::settled_roots(shared)?;
        let snapshot = commit::base_of(shared, &slots)?;
        let (base, frames) = (snapshot.root().clone(), snapshot.frames()?.clone());
        let reach = base.end;
        let newest = slots.iter().map(|root| root.generation).max().unwrap_or(base.generation);
        let mut space = Space::new(base.end, newest + 1);
        let kept = commit::kept_generations(shared, &slots, &base, &lock)?;
        let free_lists = FreeLists::load(&frames, &base.free, &mut space)?;
        space.settle(kept.as_ref());
        if !ours {
            create::clean_up(shared);
        }
        let deferred = base.deferred.is_some();
        let mut writer = Writer {
            shared: shared.clone(),
            catalog: TreeEdit::new(base.catalog),
            base,
            slots,
            frames,
            reach,
            space,
            free_lists,
            staged: BTreeMap::new(),
            encoded_with: BTreeMap::new(),
            changed: false,
            lock,
            poisoned: None,
            _turn: turn,
        };
        if deferred && !ours {
            // Somebody else's, who may be gone, or whose sync failed: what comes after it must not take it away.
            let since = commit::synced_generation(&writer.slots).unwrap_or(0);
            doubt::write_back(&snapshot, since)?;
            writer.make_durable()?;
        }
        Ok(writer)
    }

    /// The generation that the next commit will publish.
    pub fn next_generation(&self) -> u64 {
        self.space.generation()
    }

    /// Creates a group, and the groups above it that are not there.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the name stands for an array or is a group already,
    /// [`Error::InvalidArgument`] if the name cannot be.
    pub fn create_group(&mut self, path: &str) -> Result<()> {
        let path = path::normalize(path);
        self.check_free(path)?;
        self.add_record(path, Record::Group)
    }

    /// Sets all attributes of a group or array; the empty path is the store itself. An empty object takes them away.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is nothing of that name.
    pub fn set_attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.check_usable()?;
        let path = path::normalize(path);
        if !path.is_empty() && self.kind(path)?.is_none() {
            return Err(Error::NotFound { name: path.to_owned(), near: None });
        }
        let key = path::attributes_key(path);
        self.changed = true;
        if attributes.is_empty() {
            return self.catalog.remove(&self.frames, &mut self.space, &key).map(|_| ());
        }
        let json = serde_json::to_vec(attributes)
            .map_err(|error| Error::invalid(format!("attributes that JSON cannot hold: {error}")))?;
        self.catalog.insert(&self.frames, &mut self.space, &key, json)
    }

    /// The attributes of a group or array, as staged.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is nothing of that name.
    pub fn attributes(&self, path: &str) -> Result<Attributes> {
        self.check_usable()?;
        let path = path::normalize(path);
        if !path.is_empty() && self.kind(path)?.is_none() {
            return Err(Error::NotFound { name: path.to_owned(), near: None });
        }
        let Some(json) = self.catalog.get(&self.frames, &path::attributes_key(path))? else {
            return Ok(Attributes::new());
        };
        parse_attributes(&json).map_err(|damage| damage.at(self.place(path)))
    }

    /// What a name stands for, as staged.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the catalog is damaged.
    pub fn kind(&self, path: &str) -> Result<Option<EntryKind>> {
        self.check_usable()?;
        let path = path::normalize(path);
        if path.is_empty() {
            return Ok(Some(EntryKind::Group));
        }
        Ok(self.catalog.get(&self.frames, path.as_bytes())?.map(|record| EntryKind::of_first_byte(&record)))
    }

    fn failed(&self, action: &str, source: io::Error) -> Error {
        Error::Io { action: action.to_owned(), file: self.frames.file().to_path_buf(), source }
    }

    /// That `path` may be created.
    fn check_free(&self, path: &str) -> Result<()> {
        path::validate(path)?;
        if self.kind(path)?.is_some() {
            return Err(Error::AlreadyExists { name: path.to_owned() });
        }
        for parent in path::parents(path) {
            match self.kind(parent)? {
                None | Some(EntryKind::Group) => {}
                Some(_) => {
                    return Err(Error::invalid(format!(
                        "'{path}' cannot be below '{parent}', which is an array and not a group"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Enters a new name, and the groups above it that are not there.
    fn add_record(&mut self, path: &str, record: Record) -> Result<()> {
        self.changed = true;
        self.add_parents(path)?;
        self.catalog.insert(&self.frames, &mut self.space, path.as_bytes(), record.encode())
    }

    /// Enters the groups above a name that are not there.
    fn add_parents(&mut self, path: &str) -> Result<()> {
        for parent in path::parents(path) {
            if self.kind(parent)?.is_none() {
                let group = Record::Group.encode();
                self.catalog.insert(&self.frames, &mut self.space, parent.as_bytes(), group)?;
            }
        }
        Ok(())
    }

    /// Enters a new array or ragged array.
    pub(crate) fn add_array(&mut self, path: &str, record: Record) -> Result<()> {
        let path = path::normalize(path);
        self.check_free(path)?;
        self.add_record(path, record)
    }

    /// The record of a stored or staged array: it is staged from here on. The frames that read it, and the space for what
    /// is written, come with it. Whoever changes it says so with [`Writer::note_change`].
    pub(crate) fn stage(&mut self, path: &str) -> Result<Staging<'_>> {
        let path = path::normalize(path);
        if let Staged::Array(array) = self.stage_unsettled(path)?.staged
            && let Some(gathered) = array.gathered.take()
        {
            self.append_gathered(path, gathered)?;
        }
        self.stage_unsettled(path)
    }

    /// Appends what was gathered for an array.
    pub(crate) fn append_gathered(&mut self, path: &str, gathered: Gathered) -> Result<()> {
        let append = gathered.append;
        let outcome = self.stage_unsettled(path).and_then(|staging| append(gathered, path, staging));
        outcome.inspect_err(|error| self.poison(error))
    }

    /// Appends what was gathered for any array.
    fn append_all_gathered(&mut self) -> Result<()> {
        let has_gathered =
            |staged: &Staged| matches!(staged, Staged::Array(array) if array.gathered.is_some());
        let paths: Vec<String> = self
            .staged
            .iter()
            .filter(|(_, staged)| has_gathered(staged))
            .map(|(path, _)| path.clone())
            .collect();
        paths.iter().try_for_each(|path| self.stage(path).map(|_| ()))
    }

    /// As [`Writer::stage`]; what was gathered to append stays so.
    pub(crate) fn stage_unsettled(&mut self, path: &str) -> Result<Staging<'_>> {
        self.check_usable()?;
        let path = path::normalize(path);
        if !self.staged.contains_key(path) {
            let Some(bytes) = self.catalog.get(&self.frames, path.as_bytes())? else {
                return Err(self.not_found(path));
            };
            let record =
                Record::parse(&bytes, self.bounds()).map_err(|damage| damage.at(self.place(path)))?;
            let staged = match record {
                Record::Array(record) => {
                    let encoded_with = self.encoded_with.get(path).copied();
                    Staged::Array(Box::new(StagedArray { encoded_with, ..StagedArray::new(*record) }))
                }
                Record::Ragged(record) => Staged::Ragged(Box::new(StagedRagged {
                    offsets: StagedArray::new(record.offsets.clone()),
                    values: StagedArray::new(record.values.clone()),
                    record: *record,
                })),
                Record::Group => return Err(Error::invalid(format!("'{path}' is a group, not an array"))),
                Record::Unknown(what) => {
                    return Err(Error::Unsupported {
                        what: format!("'{path}' is {what}, of a later version"),
                    });
                }
            };
            self.staged.insert(path.to_owned(), staged);
        }
        self.cover_staged()?;
        let Some(staged) = self.staged.get_mut(path) else {
            return Err(Error::NotFound { name: path.to_owned(), near: None });
        };
        Ok(Staging { shared: &self.shared, frames: &self.frames, space: &mut self.space, staged })
    }

    /// Makes the frames reach what was written since. A new source reaches twice as far as it must, so that a long
    /// transaction takes few of them; the bounds keep reads to what was written.
    fn cover_staged(&mut self) -> Result<()> {
        let bounds = self.bounds();
        if self.reach < bounds.end {
            let reach = bounds.end.saturating_mul(2).min(crate::shape::MAX_LEN);
            let source = self
                .shared
                .storage
                .source(reach, false)
                .map_err(|source| self.failed("map what was written", source))?;
            self.frames = Frames::new(source, bounds, self.frames.file().into());
            self.reach = reach;
        }
        self.frames.set_bounds(bounds);
        Ok(())
    }

    /// The bounds of what the transaction has reached so far.
    fn bounds(&self) -> Bounds {
        Bounds { end: self.space.end(), generation: self.space.generation() }
    }

    /// Notes that there is something to commit.
    pub(crate) fn note_change(&mut self) {
        self.changed = true;
    }

    /// That nothing failed that makes further changes unsafe, and that this is no forked child.
    fn check_usable(&self) -> Result<()> {
        match &self.poisoned {
            Some(why) => Err(Error::InvalidState { what: why.clone() }),
            None if !self.shared.is_ours() => Err(Error::InvalidState {
                what: "a writer stays with the process that began it, and this one was forked from it".into(),
            }),
            None => Ok(()),
        }
    }

    /// Refuses everything from here on, because a change was left half done.
    pub(crate) fn poison(&mut self, error: &Error) {
        // Nor does the next writer of this handle know what is on the disk.
        *self.shared.settled.lock() = None;
        self.poisoned =
            Some(format!("the writer cannot be used after a failure ({error}); drop it and start another"));
    }

    fn place(&self, path: &str) -> Place {
        Place { file: self.frames.file().to_path_buf(), array: Some(path.to_owned()), ..Place::default() }
    }
}

/// An array that is being changed, with what changing it takes.
pub(crate) struct Staging<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) frames: &'a Frames,
    pub(crate) space: &'a mut Space,
    pub(crate) staged: &'a mut Staged,
}

impl Staging<'_> {
    /// Writes an extent that was taken from the space, and its padding.
    pub(crate) fn write(shared: &Shared, offset: u64, bytes: &[u8]) -> Result<()> {
        shared.storage.write_at(offset, bytes).map_err(|source| Error::Io {
            action: format!("write {} bytes at {offset}", bytes.len()),
            file: shared.storage.name().to_path_buf(),
            source,
        })
    }
}
