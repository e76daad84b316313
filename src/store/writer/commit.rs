//! Publishing: what is written in which order, and what is waited for.

use super::space::PageBatch;
use super::{Staged, StagedRagged, Writer, WriterLock, ids};
use crate::error::{Error, Result};
use crate::format::{MAX_GENERATION, Record, Root, root_offset};
use crate::store::create::Unnamed;
use crate::store::head::{Head, Roots};
use crate::store::{Durability, Shared, Snapshot, snapshot_of, trusted_snapshot};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The roots, once they are surely on the disk: the writer before may have died, or failed, between writing a root and
/// its sync, and readers see that root already. So the pages are written back as they count, and synced with the name of
/// the file, unless this handle left them so and nobody has written one since. Returns whether it did.
pub(super) fn settled_roots(shared: &Shared) -> Result<([Root; 3], bool)> {
    let storage = &*shared.storage;
    let head = Head::read(storage)?;
    let slots = head.slots(storage.name())?;
    let mut settled = shared.settled.lock();
    let ours = settled.as_ref() == Some(&slots);
    if !ours {
        let pages = head.root_pages().map(|page| Root::mended_page(&page));
        storage.write_at(root_offset(0), pages.as_flattened()).and_then(|()| storage.sync_data()).map_err(
            |source| Error::Io {
                action: "write the roots back".into(),
                file: storage.name().to_path_buf(),
                source,
            },
        )?;
        // A store without a name gets its own with its first commit.
        if shared.unnamed.lock().is_none() {
            storage.sync_directory().map_err(|source| Error::Io {
                action: "sync the directory".into(),
                file: storage.name().to_path_buf(),
                source,
            })?;
            shared.unsynced.store(false, Ordering::Release);
        }
        *settled = Some(slots.clone());
    }
    Ok((slots, ours))
}

/// The state that a transaction starts from. The writer's lock keeps it what it is.
pub(super) fn base_of(shared: &Arc<Shared>, slots: &[Root; 3]) -> Result<Snapshot> {
    let roots = Roots::among(slots.iter());
    let roots = roots.ok_or_else(|| Error::InvalidState { what: "there is no root".into() })?;
    let mut doubted = None;
    loop {
        let root = roots.best(doubted, shared.storage.name())?;
        let (id, pin) = (root.id(), shared.pins.pin(root.generation)?);
        match trusted_snapshot(shared, root, pin, &roots)? {
            Some(snapshot) => return Ok(snapshot),
            None => doubted = Some(id),
        }
    }
}

/// The generations that may still be read when `base` is the newest root that counts; `None` if that cannot be known.
pub(super) fn kept_generations(
    shared: &Shared,
    slots: &[Root; 3],
    base: &Root,
    lock: &WriterLock,
) -> Result<Option<BTreeSet<u64>>> {
    if !lock.is_sure() {
        return Ok(None);
    }
    let newest = slots.iter().map(|root| root.generation).max().unwrap_or(base.generation);
    let Some(mut kept) = shared.pins.list(newest)? else { return Ok(None) };
    kept.insert(base.generation);
    kept.extend(base.alive.iter().map(|(generation, _)| *generation));
    kept.extend(synced_generation(slots));
    Ok(Some(kept))
}

/// The generation of the newest synced root.
pub(super) fn synced_generation(slots: &[Root; 3]) -> Option<u64> {
    slots.iter().filter(|root| root.deferred.is_none()).map(|root| root.generation).max()
}

impl Writer {
    /// Publishes everything that was staged, as durable as [`OpenOptions::durability`](crate::OpenOptions::durability)
    /// says: by default it is on the disk when this returns. The writer goes on from the new state.
    /// Without changes nothing is written, and the state of the last commit is returned.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit_with`].
    pub fn commit(&mut self) -> Result<Snapshot> {
        self.commit_with(self.shared.options.durability)
    }

    /// As [`Writer::commit`], with a durability of its own. A commit with [`Durability::Full`] also syncs those before
    /// it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written or synced. The writer can then not be used any more. Readers see
    /// the old state, or, if the error came after the root was written, either the old or the new one, whole.
    /// [`Error::InvalidState`] for [`Durability::None`] in a store that was created with a sync or by another handle, or was
    /// synced since.
    pub fn commit_with(&mut self, durability: Durability) -> Result<Snapshot> {
        self.check_usable()?;
        if durability == Durability::None && !self.shared.unsynced.load(Ordering::Acquire) {
            let what = "a commit without a sync needs a store that this handle created without one and did not sync since; \
                use Durability::Deferred";
            return Err(Error::InvalidState { what: what.into() });
        }
        if !self.changed && self.shared.unnamed.lock().is_none() {
            if durability == Durability::Full {
                self.sync()?;
            }
            return self.base_snapshot();
        }
        if self.space.generation() > MAX_GENERATION {
            return Err(Error::TooLarge { what: format!("more than {MAX_GENERATION} generations") });
        }
        let outcome = self.publish(durability);
        if let Err(error) = &outcome {
            self.poison(error);
        }
        outcome
    }

    /// Waits until all commits so far are on the disk. What is staged stays staged.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written or synced. The writer can then not be used any more.
    pub fn sync(&mut self) -> Result<()> {
        self.check_usable()?;
        if self.shared.unnamed.lock().is_some() {
            // Nothing was committed yet.
            return Ok(());
        }
        if self.base.deferred.is_none() && !self.shared.unsynced.load(Ordering::Acquire) {
            return Ok(());
        }
        let outcome = self.make_durable();
        if let Err(error) = &outcome {
            self.poison(error);
        }
        outcome
    }

    /// Syncs, and publishes the newest root once more, as a synced one.
    pub(super) fn make_durable(&mut self) -> Result<()> {
        self.sync_data()?;
        if self.base.deferred.is_some() {
            self.write_root(Root { deferred: None, ..self.base.clone() })?;
            self.sync_data()?;
        }
        self.settle_name()?;
        *self.shared.settled.lock() = Some(self.slots.clone());
        self.shared.deferred.store(false, Ordering::SeqCst);
        // What only the last synced root saw can be used again.
        let kept = kept_generations(&self.shared, &self.slots, &self.base, &self.lock)?;
        self.space.settle(kept.as_ref());
        Ok(())
    }

    fn publish(&mut self, mut durability: Durability) -> Result<Snapshot> {
        let replaces = self.shared.unnamed.lock().as_ref().map(Unnamed::replaces);
        if replaces.is_some() && durability == Durability::Deferred {
            durability = Durability::Full;
        }
        if durability == Durability::Deferred && self.shared.unsynced.load(Ordering::Acquire) {
            // A power loss goes back to the last synced root, so there must be one.
            self.sync_data()?;
            self.settle_name()?;
        }
        self.append_all_gathered()?;
        let mut batch = PageBatch::default();
        for (path, staged) in std::mem::take(&mut self.staged) {
            let record = match staged {
                Staged::Array(mut array) => {
                    if let Some(encoded_with) = array.encoded_with {
                        self.encoded_with.insert(path.clone(), encoded_with);
                    }
                    Record::Array(Box::new(array.flush(&mut self.space, &mut batch)?.clone()))
                }
                Staged::Ragged(ragged) => {
                    let StagedRagged { mut record, mut offsets, mut values } = *ragged;
                    record.offsets = offsets.flush(&mut self.space, &mut batch)?.clone();
                    record.values = values.flush(&mut self.space, &mut batch)?.clone();
                    Record::Ragged(Box::new(record))
                }
            };
            self.catalog.insert(&self.frames, &mut self.space, path.as_bytes(), record.encode())?;
        }
        let catalog = self.catalog.flush(&mut self.space, &mut batch)?;
        let free = self.free_lists.flush(&mut self.space, &mut batch)?;
        for (offset, bytes) in batch.runs() {
            self.write_at(*offset, bytes)?;
        }
        let full = durability == Durability::Full;
        if full {
            self.sync_data()?;
        }
        let failed = |source: io::Error| self.failed("draw a commit id", source);
        let commit_id = ids::commit_id().map_err(failed)?;
        let deferred = (durability == Durability::Deferred).then(|| self.shared.storage.boot_id());
        let alive = self.alive_generations()?;
        self.write_root(Root {
            catalog,
            free,
            end: self.space.end(),
            alive,
            deferred,
            ..Root::empty(self.space.generation(), commit_id)
        })?;
        if full || replaces == Some(true) {
            self.sync_data()?;
        }
        if let Some(unnamed) = self.shared.unnamed.lock().take() {
            unnamed.take_name()?;
        }
        if full {
            self.settle_name()?;
        }
        *self.shared.settled.lock() = Some(self.slots.clone());
        if durability != Durability::None {
            self.shared.deferred.store(!full, Ordering::SeqCst);
        }
        let snapshot = self.base_snapshot()?;
        self.frames = snapshot.frames()?.clone();
        self.reach = self.base.end;
        // Pins are listed again: one that came since the root was prepared may be of a generation that it let go of.
        let kept = kept_generations(&self.shared, &self.slots, &self.base, &self.lock)?;
        self.space.advance(kept.as_ref());
        self.changed = false;
        Ok(snapshot)
    }

    /// Makes the name of a file durable that was created without waiting.
    fn settle_name(&self) -> Result<()> {
        if self.shared.unsynced.load(Ordering::Acquire) {
            let synced = self.shared.storage.sync_directory();
            synced.map_err(|source| self.failed("sync the directory", source))?;
            self.shared.unsynced.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// The newest state, which this writer published or began with: while it holds its lock no pin can come too late.
    pub(in crate::store) fn base_snapshot(&self) -> Result<Snapshot> {
        let pin = self.shared.pins.pin(self.base.generation)?;
        snapshot_of(&self.shared, self.base.clone(), pin)
    }

    /// The older generations that the next root lists: those that are pinned and were the newest or listed before. A
    /// pin alone proves nothing, since its space may be gone already.
    fn alive_generations(&self) -> Result<Vec<(u64, u64)>> {
        let Some(pinned) = self.shared.pins.list(self.base.generation)? else { return Ok(Vec::new()) };
        let known = self.base.alive.iter().copied().chain([self.base.id()]);
        Ok(known.filter(|(generation, _)| pinned.contains(generation)).collect())
    }

    /// Publishes `root`: for readers it is the newest from here on.
    fn write_root(&mut self, root: Root) -> Result<()> {
        let slot = spare_page(&self.slots);
        *self.shared.settled.lock() = None;
        self.write_at(root_offset(slot), &root.encode())?;
        self.slots[slot] = root.clone();
        self.base = root;
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.shared
            .storage
            .write_at(offset, bytes)
            .map_err(|source| self.failed(&format!("write {} bytes at {offset}", bytes.len()), source))
    }

    fn sync_data(&self) -> Result<()> {
        self.shared.storage.sync_data().map_err(|source| self.failed("sync", source))
    }
}

/// The root page that is written next: neither that of the newest root nor that of the newest synced one, and of the
/// others the oldest.
fn spare_page(slots: &[Root; 3]) -> usize {
    let newest_of = |pages: &mut dyn Iterator<Item = usize>| pages.max_by_key(|&page| slots[page].rank());
    let newest = newest_of(&mut (0..3).rev());
    let synced = newest_of(&mut (0..3).rev().filter(|&page| slots[page].deferred.is_none()));
    let others = (0..3).filter(|&page| Some(page) != newest && Some(page) != synced);
    others.min_by_key(|&page| slots[page].generation).unwrap_or(0)
}
