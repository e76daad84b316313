//! Of which root a snapshot may be taken: one whose space is kept, and that is whole.

use super::head::Roots;
use super::{Frames, Shared, Snapshot, doubt, pins};
use crate::error::{Damage, Error, Place, Result};
use crate::format::{DATA_START, Root};
use std::io;
use std::sync::Arc;

/// How often a reader starts again because the writer was faster.
const ATTEMPTS: usize = 1000;

/// The snapshot of the newest root that counts, pinned; `roots` are those that were read last.
///
/// The writer may have published another root between reading this one and pinning it, and looked for pins too early to
/// see ours. So the roots are read again: only if they still keep this one's space is it taken.
pub(super) fn newest_snapshot(shared: &Arc<Shared>, mut roots: Roots) -> Result<Snapshot> {
    let mut doubted = None;
    for _ in 0..ATTEMPTS {
        let root = roots.best(doubted, shared.storage.name())?;
        let pin = shared.pins.pin(root.generation)?;
        if pin.is_some() {
            let now = shared.roots()?;
            if !now.keep(&root) {
                roots = now;
                continue;
            }
        }
        let id = root.id();
        match trusted_snapshot(shared, root, pin, &roots)? {
            Some(snapshot) => return Ok(snapshot),
            None => doubted = Some(id),
        }
    }
    Err(Error::Locked {
        what: format!(
            "{}: commits came faster than a snapshot could be taken, {ATTEMPTS} times",
            shared.storage.name().display()
        ),
    })
}

/// The snapshot of `root`, which a snapshot of this store had that may be gone by now: taken if its space is still kept once
/// it is pinned here.
pub(super) fn snapshot_again(shared: &Arc<Shared>, root: Root) -> Result<Snapshot> {
    let pin = shared.pins.pin(root.generation)?;
    if pin.is_some() {
        let roots = shared.roots()?;
        if !is_sure(shared, &root) {
            return doubted_again(shared, root, pin, roots);
        }
        if !roots.keep(&root) {
            return Err(gone(shared, &root));
        }
    }
    snapshot_of(shared, root, pin)
}

/// As [`snapshot_again`], for a root that was deferred by another boot or system. What the newest root in the
/// file says counts only if it is whole: else the writer goes on from an older one, and keeps nothing that came after that.
fn doubted_again(shared: &Arc<Shared>, root: Root, pin: Option<pins::Pin>, roots: Roots) -> Result<Snapshot> {
    let newest = newest_snapshot(shared, roots)?;
    let gone = gone(shared, &root);
    if newest.root().id() == root.id() {
        return Ok(newest);
    }
    if !newest.root().alive.contains(&root.id()) {
        return Err(gone);
    }
    // That it is kept does not make it whole: it may have been let go before anything of it was on the disk.
    match snapshot_of(shared, root, pin) {
        Ok(snapshot) if doubt::is_whole(&snapshot, 0)? => Ok(snapshot),
        Ok(_) | Err(Error::Corrupt { .. }) => Err(gone),
        Err(error) => Err(error),
    }
}

fn gone(shared: &Shared, root: &Root) -> Error {
    Error::Gone { file: shared.storage.name().to_path_buf(), generation: root.generation }
}

/// Whether `root` was synced, or deferred by this boot of this system.
fn is_sure(shared: &Shared, root: &Root) -> bool {
    let boot_id = shared.storage.boot_id();
    root.deferred.is_none_or(|writer| writer == boot_id && boot_id != [0; 16])
}

/// The snapshot of `root`, unless it was deferred by another boot or system and did not come to the disk whole.
pub(super) fn trusted_snapshot(
    shared: &Arc<Shared>,
    root: Root,
    pin: Option<pins::Pin>,
    roots: &Roots,
) -> Result<Option<Snapshot>> {
    let id = root.id();
    if is_sure(shared, &root) {
        return snapshot_of(shared, root, pin).map(Some);
    }
    // Not locked while it is found out: that takes other threads, which may ask for it too.
    let known = shared.verdict.lock().filter(|(known, _)| *known == id).map(|(_, whole)| whole);
    if known == Some(false) {
        return Ok(None);
    }
    let snapshot = match snapshot_of(shared, root, pin) {
        Ok(snapshot) => snapshot,
        Err(Error::Corrupt { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let since = roots.synced.as_ref().map_or(0, |root| root.generation);
    let whole = known == Some(true) || doubt::is_whole(&snapshot, since)?;
    *shared.verdict.lock() = Some((id, whole));
    Ok(whole.then_some(snapshot))
}

/// The snapshot of `root`, whose bytes the file must have. Without a pin its space may be reused, so that bytes are
/// copied before they are checked.
pub(super) fn snapshot_of(shared: &Arc<Shared>, root: Root, pin: Option<pins::Pin>) -> Result<Snapshot> {
    let storage = &*shared.storage;
    let file = storage.name();
    let failed = |action: &'static str| {
        move |source: io::Error| Error::Io { action: action.into(), file: file.to_path_buf(), source }
    };
    let len = storage.len().map_err(failed("measure"))?;
    if len < root.end.max(DATA_START) {
        let what = format!("the file has {len} bytes of the {} that its root says: it was cut off", root.end);
        return Err(Damage::new(what).at(Place { file: file.to_path_buf(), ..Place::default() }));
    }
    let source = storage.source(root.end, pin.is_none()).map_err(failed("map"))?;
    let mut frames = Frames::new(source, root.bounds(), file.into());
    if pin.is_none() {
        frames = frames.unpinned(shared.clone());
    }
    Ok(Snapshot::new(shared.clone(), root, frames, pin))
}
