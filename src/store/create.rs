//! New stores: how they come into being, and take a name.
//!
//! A store is made in a file with a temporary name, whose writer lock is held until the file has its own. Whoever finds
//! such a file and gets its lock knows that nobody is at work there any more.

use super::writer::{WriterLock, ids};
use super::{Durability, Head, OpenOptions, Shared, Store, check_in_place};
use crate::error::{Error, Result};
use crate::format::{Root, SUPERBLOCK_MAGIC, Superblock};
use crate::storage::{FileStorage, Storage};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a name is tried that others create and remove at the same time.
const ATTEMPTS: usize = 100;

/// A file, and the lock that keeps writers out of it.
type Locked = (Arc<dyn Storage>, WriterLock);

/// The same, of a file whose writer has the lock too.
pub(super) type Held = (Arc<dyn Storage>, Arc<WriterLock>);

/// A store that is not to be seen under its name before its first commit.
pub(super) struct Unnamed {
    storage: Arc<dyn Storage>,
    /// Held until the file has its name. The writers of the store have it too.
    pub(super) lock: Arc<WriterLock>,
    /// What has the name, and the lock that keeps its writers out.
    old: Option<Held>,
    named: bool,
}

impl Unnamed {
    /// Whether a file is to be replaced, which must not happen before the new one is on the disk.
    pub(super) fn replaces(&self) -> bool {
        self.old.is_some()
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        self.storage.present_path()
    }

    /// Gives the store its name.
    pub(super) fn take_name(mut self) -> Result<()> {
        let over = self.old.as_ref().map(|(old, _)| &**old);
        over.map_or(Ok(()), check_in_place)?;
        let taken = self.storage.take_name(over);
        taken.map_err(|error| failed(self.storage.name(), "give the new store its name", error))?;
        self.named = true;
        Ok(())
    }
}

/// The error for something that could not be done with a new file.
fn failed(path: &Path, action: &str, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { name: path.display().to_string() },
        _ => Error::Io { action: action.into(), file: path.to_path_buf(), source },
    }
}

impl Store {
    pub(super) fn create_file(path: &Path, options: &OpenOptions) -> Result<Store> {
        let (storage, lock) = make_free_file(path, options)?;
        Store::create_in(storage, lock, options)
    }

    /// Makes a store in a file that is new and locked, and gives it its name.
    pub(super) fn create_in(
        storage: Arc<dyn Storage>,
        lock: WriterLock,
        options: &OpenOptions,
    ) -> Result<Store> {
        let wait = options.durability != Durability::None;
        let made =
            write_new_store(&*storage, wait).map_err(|error| failed(storage.name(), "create a store", error));
        let made = made.and_then(|()| Store::open_new(storage.clone(), options)).and_then(|store| {
            let named = storage.take_name(None);
            let named = named.and_then(|()| if wait { storage.sync_directory() } else { Ok(()) });
            named
                .map(|()| store)
                .map_err(|error| failed(storage.name(), "give the new store its name", error))
        });
        // Unfinished, and ours: it is taken away again if that works.
        let store = made.inspect_err(|_| drop(storage.remove()))?;
        store.shared.unsynced.store(!wait, Ordering::Release);
        drop(lock);
        Ok(store)
    }

    pub(super) fn replace_file(path: &Path, options: &OpenOptions) -> Result<Store> {
        let old = lock_old(path, options)?;
        let (storage, lock) = make_file(path, old.is_some(), options)?;
        Store::replace_in(storage, lock, old, options)
    }

    /// Makes a store in a file that is new and locked, for the name of `old`.
    pub(super) fn replace_in(
        storage: Arc<dyn Storage>,
        lock: WriterLock,
        old: Option<Locked>,
        options: &OpenOptions,
    ) -> Result<Store> {
        Store::replace_held(storage, lock, old.map(|(old, lock)| (old, Arc::new(lock))), options)
    }

    /// As [`Store::replace_in`], of a file whose writer's lock others hold too.
    pub(super) fn replace_held(
        storage: Arc<dyn Storage>,
        lock: WriterLock,
        old: Option<Held>,
        options: &OpenOptions,
    ) -> Result<Store> {
        let lock = Arc::new(lock);
        let unnamed = Unnamed { storage: storage.clone(), lock, old, named: false };
        write_new_store(&*storage, false).map_err(|error| failed(storage.name(), "create a store", error))?;
        let store = Store::open_new(storage, options)?;
        store.shared.unsynced.store(true, Ordering::Release);
        *store.shared.unnamed.lock() = Some(unnamed);
        Ok(store)
    }

    pub(super) fn create_on_commit_file(path: &Path, options: &OpenOptions) -> Result<Store> {
        let (storage, lock) = make_free_file(path, options)?;
        Store::replace_in(storage, lock, None, options)
    }

    pub(super) fn open_or_create_file(path: &Path, options: &OpenOptions) -> Result<Store> {
        let options = options.clone().write(true);
        for _ in 0..ATTEMPTS {
            match Store::open_file(path, &options, None) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                outcome => return outcome,
            }
            match Store::create_file(path, &options) {
                Err(Error::AlreadyExists { .. }) if path.exists() => {}
                outcome => return outcome,
            }
        }
        Err(busy(path))
    }

    /// Opens a store that was just written.
    fn open_new(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Store> {
        let slots = Head::read(&*storage)?.slots(storage.name())?;
        let store = Store::open_storage(storage, options, true)?;
        *store.shared.settled.lock() = Some(slots);
        Ok(store)
    }
}

/// Writes the superblock and the three roots of an empty store.
pub(super) fn write_new_store(storage: &dyn Storage, wait: bool) -> io::Result<()> {
    let mut file_id = [0; 16];
    ids::fill(&mut file_id)?;
    let mut head = Superblock { file_id, optional_features: 0 }.encode().to_vec();
    for generation in [1, 0, 0] {
        head.extend_from_slice(&Root::empty(generation, ids::commit_id()?).encode());
    }
    storage.write_at(0, &head)?;
    if wait { storage.sync_data() } else { Ok(()) }
}

/// As [`make_file`], for a name that must be free.
pub(super) fn make_free_file(path: &Path, options: &OpenOptions) -> Result<Locked> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::AlreadyExists { name: path.display().to_string() });
    }
    make_file(path, false, options)
}

/// Makes a file for `path` under its temporary name, and locks it.
pub(super) fn make_file(path: &Path, private: bool, options: &OpenOptions) -> Result<Locked> {
    for _ in 0..ATTEMPTS {
        let storage: Arc<dyn Storage> = match FileStorage::create(path, private, options.backend) {
            Ok(storage) => Arc::new(storage),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_leftover(path, options)?;
                continue;
            }
            Err(error) => return Err(failed(path, "create a store", error)),
        };
        let lock = WriterLock::take(&storage, options).inspect_err(|error| {
            // Whoever has the lock took the file for a leftover, and removes it.
            if !matches!(error, Error::Locked { .. }) {
                let _ = storage.remove();
            }
        })?;
        // Whoever took it for a leftover has removed it before it was locked.
        match check_in_place(&*storage) {
            Ok(()) => return Ok((storage, lock)),
            Err(Error::Replaced { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(busy(path))
}

/// Removes what a process left under the temporary name of `path` that was killed while it made a store. One that is still
/// at work is [`Error::Locked`].
fn remove_leftover(path: &Path, options: &OpenOptions) -> Result<()> {
    let remove = |error| failed(path, "remove what a killed process left of", error);
    let Some(leftover) = FileStorage::open_temporary(path, options.backend).map_err(remove)? else {
        return Ok(());
    };
    let leftover: Arc<dyn Storage> = Arc::new(leftover);
    if !is_unfinished(&*leftover).map_err(remove)? {
        return Err(Error::AlreadyExists { name: leftover.present_path().display().to_string() });
    }
    let _lock = WriterLock::take(&leftover, options)?;
    match check_in_place(&*leftover) {
        Ok(()) => leftover.remove().map_err(remove),
        Err(Error::Replaced { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a file may be what was left of a store: empty, or with the start of one.
fn is_unfinished(storage: &dyn Storage) -> io::Result<bool> {
    let mut start = [0; SUPERBLOCK_MAGIC.len()];
    let len = start.len().min(crate::num::saturating_usize(storage.len()?));
    storage.read_at(0, &mut start[..len])?;
    Ok(start[..len] == SUPERBLOCK_MAGIC[..len])
}

/// As [`remove_leftover`], for a writer of an open store: whoever would replace it has not got its lock. What cannot be
/// removed stays.
pub(super) fn clean_up(shared: &Shared) {
    let options = shared.options.clone().lock_timeout(std::time::Duration::ZERO);
    if options.locking {
        let _ = remove_leftover(shared.storage.present_path(), &options);
    }
}

/// Locks the file at `path`, if there is one.
fn lock_old(path: &Path, options: &OpenOptions) -> Result<Option<Locked>> {
    for _ in 0..ATTEMPTS {
        let old: Arc<dyn Storage> = match FileStorage::open(path, true, options.backend) {
            Ok(old) => Arc::new(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, "open, to replace it,", error)),
        };
        let lock = WriterLock::take(&old, options)?;
        match check_in_place(&*old) {
            Ok(()) => return Ok(Some((old, lock))),
            Err(Error::Replaced { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(busy(path))
}

fn busy(path: &Path) -> Error {
    Error::Locked { what: format!("{}: others create and remove it all the time", path.display()) }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.named && self.lock.is_ours() {
            let _ = self.storage.remove();
        }
    }
}
