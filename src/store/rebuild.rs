//! New stores that are filled in one go, for the place of another, for a free name, or for memory.

use super::create::{make_file, make_free_file};
use super::writer::WriterLock;
use super::{Durability, OpenOptions, Shared, Snapshot, Store, Writer};
use crate::error::{Error, Result};
use crate::storage::Storage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Store {
    /// Makes a store that takes the place of this one's file, from the newest state, with its writer's lock held all the time.
    pub(crate) fn rebuild(&self, fill: impl FnOnce(&Snapshot, &mut Writer) -> Result<()>) -> Result<Store> {
        let shared = self.shared.here()?;
        let writer = Writer::begin(shared)?;
        if shared.unnamed.lock().is_some() {
            let what = "a store that has no name yet has nothing to compact; commit first";
            return Err(Error::InvalidState { what: what.into() });
        }
        let state = writer.base_snapshot()?;
        let options = shared.options.clone().write(true);
        let (storage, lock) = make_file(&name_of(shared), true, &options)?;
        let old = (shared.storage.clone(), writer.lock());
        let store = Store::replace_held(storage, lock, Some(old), &options)?;
        let _making = Making::note(shared, &store);
        store.fill(|writer| fill(&state, writer))?;
        // The new file has all of it.
        shared.deferred.store(false, Ordering::SeqCst);
        shared.unsynced.store(false, Ordering::Release);
        Ok(store)
    }

    /// Makes the first commit of a new store, and shows it.
    fn fill(&self, fill: impl FnOnce(&mut Writer) -> Result<()>) -> Result<Snapshot> {
        let mut writer = self.writer()?;
        fill(&mut writer)?;
        let snapshot = writer.commit()?;
        self.current.store(Arc::new(snapshot.clone()));
        Ok(snapshot)
    }
}

impl Snapshot {
    /// Makes a store with the free name `path`, with the options of this one.
    pub(crate) fn rebuild_at(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<Store> {
        let shared = self.shared()?;
        let options = shared.options.clone().write(true).recover(false);
        let (storage, lock) = make_free_file(path, &options)?;
        let store = Store::replace_in(storage, lock, None, &options)?;
        let _making = Making::note(shared, &store);
        store.fill(fill)?;
        Ok(store)
    }

    /// Makes a store that is not a file, and returns its logical end.
    pub(crate) fn rebuild_in(
        &self,
        storage: Arc<dyn Storage>,
        threads: Option<usize>,
        fill: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<u64> {
        let options = OpenOptions::new().locking(false).cache_bytes(0).durability(Durability::None);
        let options = OpenOptions { threads, ..options };
        let lock = WriterLock::take(&storage, &options)?;
        Ok(Store::create_in(storage, lock, &options)?.fill(fill)?.file_bytes())
    }

    /// The option of the store that this comes from.
    pub(crate) fn threads(&self) -> Result<Option<usize>> {
        Ok(self.shared()?.options.threads)
    }
}

/// Tells where a new store is made of another one, while it lives.
struct Making<'a>(&'a Shared);

impl<'a> Making<'a> {
    fn note(of: &'a Shared, new: &Store) -> Making<'a> {
        *of.making.lock() = new.temporary_path();
        Making(of)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        *self.0.making.lock() = None;
    }
}

/// The name of a store's file as it was given, unless that stands for another one by now.
fn name_of(shared: &Shared) -> PathBuf {
    let (given, present) = (shared.storage.name(), shared.storage.present_path());
    let same = std::path::absolute(given).is_ok_and(|absolute| absolute == present);
    if same { given.into() } else { present.into() }
}
