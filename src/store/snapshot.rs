//! One committed state.

use super::frames::Frames;
use super::free::FreeSpace;
use super::pins::Pin;
use super::{Shared, path, snapshot_again, tree};
use crate::error::{Damage, Error, Place, Result};
use crate::format::{Bounds, Record, Root};
use once_cell::race::OnceBox;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Attributes of a group or array: a JSON object.
pub type Attributes = serde_json::Map<String, serde_json::Value>;

/// Names that are compared with one that is not there, so that looking for it in vain stays cheap.
pub(super) const NAMES_COMPARED: usize = 4096;

/// Everything that one commit published, and nothing later. Cloning counts a reference.
///
/// All reads through one snapshot see the same generation, however many arrays they touch.
#[derive(Clone)]
pub struct Snapshot(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    root: Root,
    frames: Frames,
    pin: Option<Pin>,
    /// The same state, in a process that was forked from the one that this belongs to.
    heir: OnceBox<Snapshot>,
}

/// What a name in a store stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A group, which has others below it.
    Group,
    /// An n-d array.
    Array,
    /// An array of variable-length items: strings or runs of values.
    Ragged,
    /// Something of a later version.
    Unknown,
}

/// Attributes as the catalog has them.
pub(crate) fn parse_attributes(json: &[u8]) -> Result<Attributes, Damage> {
    serde_json::from_slice(json)
        .map_err(|error| Damage::new(format!("attributes that are not a JSON object: {error}")))
}

impl EntryKind {
    fn of(record: &Record) -> EntryKind {
        match record {
            Record::Group => EntryKind::Group,
            Record::Array(_) => EntryKind::Array,
            Record::Ragged(_) => EntryKind::Ragged,
            Record::Unknown(_) => EntryKind::Unknown,
        }
    }

    /// What a value of the catalog is. Damage within a record is met when the array is opened, and keeps nothing else
    /// from being listed.
    pub(super) fn of_value(value: &[u8], bounds: Bounds) -> EntryKind {
        match Record::parse(value, bounds) {
            Ok(record) => EntryKind::of(&record),
            Err(_) => EntryKind::of_first_byte(value),
        }
    }

    /// What a record was meant to be.
    pub(super) fn of_first_byte(record: &[u8]) -> EntryKind {
        match record.first() {
            Some(1) => EntryKind::Group,
            Some(2) => EntryKind::Array,
            Some(3) => EntryKind::Ragged,
            _ => EntryKind::Unknown,
        }
    }
}

/// A name in a store and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path, without a leading `/`.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
}

impl Snapshot {
    pub(super) fn new(shared: Arc<Shared>, root: Root, frames: Frames, pin: Option<Pin>) -> Snapshot {
        Snapshot(Arc::new(Inner { shared, root, frames, pin, heir: OnceBox::new() }))
    }

    /// Whether a lock keeps writers from reusing what this snapshot reads. Where the file system has no such locks, or
    /// they were not wanted, a read after later commits may report damage.
    pub fn is_pinned(&self) -> bool {
        self.0.pin.is_some()
    }

    /// Number of the commit that this is the state of.
    pub fn generation(&self) -> u64 {
        self.0.root.generation
    }

    /// Bytes of the file that belong to this state or can be reused: its logical end.
    pub fn file_bytes(&self) -> u64 {
        self.0.root.end
    }

    /// Bytes of the file that this state does not use: they are used again as soon as nobody reads an older one that
    /// does. Reads all that is said of free space.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if that is damaged.
    pub fn free_bytes(&self) -> Result<u64> {
        let free = FreeSpace::read(self.frames()?, &self.0.root.free)?;
        Ok(free.extents.values().fold(0, |total, free| total.saturating_add(free.len)))
    }

    /// Every group and array, in the order of their paths; reads the whole catalog.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the catalog is damaged.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.entries_below("")
    }

    /// Every group and array below the group `group`, at any depth, in the order of their paths. Reads the part of
    /// the catalog that lists them.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such group, [`Error::Corrupt`] if the catalog is damaged.
    pub fn entries_below(&self, group: &str) -> Result<Vec<Entry>> {
        let group = path::normalize(group);
        let mut prefix = group.as_bytes().to_vec();
        if !group.is_empty() {
            self.record(group)?;
            prefix.push(b'/');
        }
        let mut entries = Vec::new();
        tree::entries(self.frames()?, &self.0.root.catalog, &prefix, |key, cell| {
            if !key.starts_with(&prefix) {
                return Ok(ControlFlow::Break(()));
            }
            let (path, attributes) = path::of_key(key).map_err(|damage| damage.at(self.place("")))?;
            if !attributes && !path.is_empty() {
                let value = tree::value(self.frames()?, cell)?;
                let kind = EntryKind::of_value(&value, self.0.root.bounds());
                entries.push(Entry { path: path.to_owned(), kind });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(entries)
    }

    /// What `path` stands for; `None` if there is nothing of that name.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the catalog is damaged.
    pub fn kind(&self, path: &str) -> Result<Option<EntryKind>> {
        let path = path::normalize(path);
        if path.is_empty() {
            return Ok(Some(EntryKind::Group));
        }
        Ok(self.find(path)?.map(|record| EntryKind::of(&record)))
    }

    /// The attributes of a group or array; the empty path is the store itself.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is nothing of that name, [`Error::Corrupt`] if the catalog is damaged.
    pub fn attributes(&self, path: &str) -> Result<Attributes> {
        let path = path::normalize(path);
        let Some(json) = tree::get(self.frames()?, &self.0.root.catalog, &path::attributes_key(path))? else {
            if !path.is_empty() {
                self.record(path)?;
            }
            return Ok(Attributes::new());
        };
        parse_attributes(&json).map_err(|damage| damage.at(self.place(path)))
    }

    /// The record of `path`.
    pub(crate) fn record(&self, path: &str) -> Result<Record> {
        match self.find(path)? {
            Some(record) => Ok(record),
            None => Err(self.not_found(self.frames()?, path)),
        }
    }

    fn find(&self, path: &str) -> Result<Option<Record>> {
        let Some(bytes) = tree::get(self.frames()?, &self.0.root.catalog, path.as_bytes())? else {
            return Ok(None);
        };
        Record::parse(&bytes, self.0.root.bounds()).map(Some).map_err(|damage| damage.at(self.place(path)))
    }

    /// The error for a name that is not there, with one that is nearly the same.
    fn not_found(&self, frames: &Frames, path: &str) -> Error {
        let mut names: Vec<String> = Vec::new();
        // What cannot be listed cannot be offered either; the error is that there is no such name.
        let _ = tree::entries(frames, &self.0.root.catalog, b"", |key, _| {
            if let Ok((name, false)) = path::of_key(key) {
                names.push(name.to_owned());
            }
            Ok(if names.len() < NAMES_COMPARED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        let near = path::nearest(path, names.iter().map(String::as_str)).map(str::to_owned);
        Error::NotFound { name: path.to_owned(), near }
    }

    /// Where damage to what `path` names is; the empty path is the store as a whole.
    pub(crate) fn place(&self, path: &str) -> Place {
        let array = Some(path).filter(|path| !path.is_empty()).map(str::to_owned);
        Place { file: self.0.frames.file().to_path_buf(), array, ..Place::default() }
    }

    pub(super) fn file_id(&self) -> [u8; 16] {
        self.0.shared.superblock.file_id
    }

    pub(crate) fn root(&self) -> &Root {
        &self.0.root
    }

    /// The frames, for this process to read. After a fork the first call pins the generation for the child.
    pub(crate) fn frames(&self) -> Result<&Frames> {
        Ok(&self.here()?.0.frames)
    }

    pub(crate) fn shared(&self) -> Result<&Shared> {
        Ok(&self.here()?.0.shared)
    }

    pub(super) fn is_ours(&self) -> bool {
        self.0.shared.is_ours()
    }

    /// The snapshot that this process uses in place of this one.
    fn here(&self) -> Result<&Snapshot> {
        let mut snapshot = self;
        while !snapshot.is_ours() {
            snapshot = match snapshot.0.heir.get() {
                Some(heir) => heir,
                None => {
                    let heir = snapshot_again(snapshot.0.shared.here()?, snapshot.0.root.clone())?;
                    snapshot.0.heir.get_or_init(|| Box::new(heir))
                }
            };
        }
        Ok(snapshot)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("file", &self.0.frames.file())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
