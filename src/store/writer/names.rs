//! Names in a transaction: listing, deleting and renaming them.
//!
//! The keys of a name and of what is below it are not one range of the catalog: `a`, `a` and a zero byte, and all that
//! begins with `a/` belong together, but `a-b` stands between them. So each is looked up for itself.

use super::{Staged, StagedArray, Writer, let_go};
use crate::error::{Damage, Error, Result};
use crate::format::Record;
use crate::store::snapshot::{Entry, EntryKind, NAMES_COMPARED};
use crate::store::{Fate, path, tree};
use std::ops::ControlFlow;

/// Keys that are changed together, since the catalog cannot be changed while it is walked.
const KEYS_AT_ONCE: usize = 1024;

impl Writer {
    /// Every group and array, in the order of their paths, as staged. Reads the whole catalog.
    ///
    /// # Errors
    ///
    /// As [`Writer::entries_below`].
    ///
    /// ```
    /// use brickmap::{EntryKind, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-all-entries-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("names.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_group("run")?;
    /// assert_eq!(writer.entries()?[0].kind, EntryKind::Group);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.entries_below("")
    }

    /// Every group and array below the group `group`, at any depth, in the order of their paths, as staged. Reads the
    /// part of the catalog that lists them.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with a near name if there is no such group, [`Error::Corrupt`] if the catalog is damaged.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-entries-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("names.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("run/pressure", &ArraySpec::new(Dtype::F32, [100]))?;
    /// assert_eq!(writer.entries_below("run")?[0].path, "run/pressure");
    /// assert_eq!(writer.entries()?.len(), 2);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn entries_below(&self, group: &str) -> Result<Vec<Entry>> {
        let group = path::normalize(group);
        if self.kind(group)?.is_none() {
            return Err(self.not_found(group));
        }
        let bounds = self.bounds();
        let mut entries = Vec::new();
        self.for_each_below(group, &mut |key, cell| {
            let (path, attributes) = self.name_of(key)?;
            if !attributes && !path.is_empty() {
                let kind = EntryKind::of_value(&tree::value(&self.frames, cell)?, bounds);
                entries.push(Entry { path: path.to_owned(), kind });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(entries)
    }

    /// Deletes an array or a ragged array, or a group with everything below it, and their attributes. The name is free
    /// at once. Snapshots keep what they have; the space is used again when nobody reads them any more.
    ///
    /// Reads the part of the catalog that lists what goes, and the offsets indices of the arrays, but no chunk; holds one
    /// array's index page of each level.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with a near name if there is nothing of that name; [`Error::InvalidArgument`] for the empty path,
    /// since the root group is always there; [`Error::Unsupported`] if there is something of a later version, whose space
    /// cannot be accounted for; [`Error::Corrupt`] for a record that is damaged: all these before anything is
    /// changed. [`Error::Corrupt`] and [`Error::Io`] if an index cannot be read; then the writer can only be dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-delete-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("names.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("run/pressure", &ArraySpec::new(Dtype::F32, [100]))?;
    /// writer.create_array("run/deep/velocity", &ArraySpec::new(Dtype::F32, [100, 3]))?;
    /// writer.delete("run")?;
    /// assert!(writer.commit()?.entries()?.is_empty());
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn delete(&mut self, path: &str) -> Result<()> {
        let path = path::normalize(path);
        self.check_there(path)?;
        self.for_each_of(path, &mut |key, cell| {
            let (name, attributes) = self.name_of(key)?;
            if !attributes {
                let value = tree::value(&self.frames, cell)?;
                let record = Record::parse(&value, self.bounds());
                if let Record::Unknown(what) = record.map_err(|damage| damage.at(self.place(name)))? {
                    return Err(Error::Unsupported {
                        what: format!("deleting '{name}', which is {what}, of a later version"),
                    });
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let outcome = self.change_all_of(path, |writer, key| {
            if !key.ends_with(b"\0") {
                writer.empty(key)?;
            }
            writer.catalog.remove(&writer.frames, &mut writer.space, key).map(|_| ())
        });
        self.finish(outcome)
    }

    /// Gives an array, or a group with everything below it, another name; their attributes come with them. Groups above
    /// the new name that are not there are created. What is of a later version is renamed as it is.
    ///
    /// Reads and writes the part of the catalog that lists them, and no array, whatever its size.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with a near name if there is nothing of the name `from`; [`Error::AlreadyExists`] if `to` is taken;
    /// [`Error::InvalidArgument`] for the empty path, for a name that cannot be, and for one that is below `from` or
    /// below an array; [`Error::TooLarge`] if a path would be longer than 1024 bytes: all these before anything is
    /// changed. [`Error::Corrupt`] and [`Error::Io`] if the catalog cannot be read; then the writer can only be dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-rename-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("names.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("new/pressure", &ArraySpec::new(Dtype::F32, [100]))?;
    /// writer.rename("new", "runs/first")?;
    /// assert_eq!(writer.commit()?.array("runs/first/pressure")?.shape(), [100]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (path::normalize(from), path::normalize(to));
        self.check_there(from)?;
        if to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
            return Err(Error::invalid(format!("'{from}' cannot go below itself, to '{to}'")));
        }
        self.check_free(to)?;
        self.for_each_of(from, &mut |key, _| {
            let (name, _) = self.name_of(key)?;
            let len = name.len() - from.len() + to.len();
            if len > path::MAX_PATH_LEN {
                return Err(Error::TooLarge {
                    what: format!(
                        "the name of {len} bytes that '{name}' would get; at most {} can be",
                        path::MAX_PATH_LEN
                    ),
                });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let outcome = self.add_parents(to).and_then(|()| {
            self.change_all_of(from, |writer, key| {
                let rest = key.get(from.len()..).unwrap_or_default();
                let renamed = [to.as_bytes(), rest].concat();
                writer.catalog.rename(&writer.frames, &mut writer.space, key, &renamed).map(|_| ())
            })
        });
        self.finish(outcome)?;
        let below = format!("{from}/");
        let moves = |path: &&String| *path == from || path.starts_with(&below);
        let staged: Vec<String> = self.staged.keys().filter(moves).cloned().collect();
        for path in staged {
            if let Some(staged) = self.staged.remove(&path) {
                self.staged.insert(format!("{to}{}", path.get(from.len()..).unwrap_or_default()), staged);
            }
        }
        Ok(())
    }

    /// The error for a name that is not there, with one that is nearly the same.
    pub(super) fn not_found(&self, path: &str) -> Error {
        Error::NotFound { name: path.to_owned(), near: self.near(path) }
    }

    pub(super) fn near(&self, path: &str) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        // What cannot be listed cannot be offered either.
        let _ = self.catalog.entries(&self.frames, b"", &mut |key, _| {
            if let Ok((name, false)) = path::of_key(key) {
                names.push(name.to_owned());
            }
            Ok(if names.len() < NAMES_COMPARED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        path::nearest(path, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// That `path` is there and not the root group.
    fn check_there(&self, path: &str) -> Result<()> {
        if path.is_empty() {
            let what = "the root group has no other name and is always there; name what is in it";
            return Err(Error::invalid(what));
        }
        if self.kind(path)?.is_none() { Err(self.not_found(path)) } else { Ok(()) }
    }

    /// What a key of the catalog names, and whether it is the key of its attributes.
    fn name_of<'a>(&self, key: &'a [u8]) -> Result<(&'a str, bool)> {
        path::of_key(key).map_err(|damage| self.frames.damage(damage, None))
    }

    /// Ends a change of names. If it failed midway, the writer is done for.
    fn finish(&mut self, outcome: Result<()>) -> Result<()> {
        match &outcome {
            Ok(()) => self.note_change(),
            Err(error) => self.poison(error),
        }
        outcome
    }

    /// Calls `visit` for the keys below a group, in their order, until it returns `Break`.
    fn for_each_below(&self, group: &str, visit: &mut tree::VisitEntry<'_>) -> Result<()> {
        let prefix = prefix_of(group);
        self.catalog.entries(&self.frames, &prefix, &mut |key, cell| {
            if key.starts_with(&prefix) { visit(key, cell) } else { Ok(ControlFlow::Break(())) }
        })
    }

    /// As [`Writer::for_each_below`], and before for the keys of the record and the attributes of `path` itself.
    fn for_each_of(&self, path: &str, visit: &mut tree::VisitEntry<'_>) -> Result<()> {
        for own in [path.as_bytes().to_vec(), path::attributes_key(path)] {
            let mut step = ControlFlow::Continue(());
            self.catalog.entries(&self.frames, &own, &mut |key, cell| {
                if key == own {
                    step = visit(key, cell)?;
                }
                Ok(ControlFlow::Break(()))
            })?;
            if step.is_break() {
                return Ok(());
            }
        }
        self.for_each_below(path, visit)
    }

    /// Does `change` with every key of `path` and of what is below it. It takes the key out of the catalog.
    fn change_all_of(
        &mut self,
        path: &str,
        mut change: impl FnMut(&mut Writer, &[u8]) -> Result<()>,
    ) -> Result<()> {
        loop {
            let mut keys: Vec<Vec<u8>> = Vec::new();
            self.for_each_of(path, &mut |key, _| {
                keys.push(key.to_vec());
                Ok(if keys.len() < KEYS_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            if keys.is_empty() {
                return Ok(());
            }
            keys.iter().try_for_each(|key| change(self, key))?;
        }
    }

    /// Lets go of everything that is stored of an array.
    fn empty(&mut self, key: &[u8]) -> Result<()> {
        let (path, _) = self.name_of(key)?;
        if self.kind(path)? == Some(EntryKind::Group) {
            return Ok(());
        }
        // What was gathered to append goes too.
        self.stage_unsettled(path)?;
        let mut arrays: Vec<StagedArray> = match self.staged.remove(path) {
            Some(Staged::Array(array)) => vec![*array],
            Some(Staged::Ragged(ragged)) => vec![ragged.offsets, ragged.values],
            None => Vec::new(),
        };
        for StagedArray { record, index, .. } in &mut arrays {
            let (frames, before) = (&self.frames, record.clone());
            index.prune(frames, &mut self.space, &|_, _| Fate::Drop, &mut |space, key, entry, _| {
                let chunk = before.coordinates(key).ok_or_else(|| {
                    frames.damage(Damage::new("an index entry outside the chunk grid"), None)
                })?;
                let_go(record, frames, space, &chunk, &entry)
            })?;
        }
        Ok(())
    }
}

/// What the keys below a group begin with.
fn prefix_of(group: &str) -> Vec<u8> {
    match group {
        "" => Vec::new(),
        group => [group.as_bytes(), b"/"].concat(),
    }
}
