//! Pins: which generations are being read, told to the writer by locks on the file.
//!
//! The byte at [`PINS`] plus g is locked, together with others, by whoever reads generation g. Locks belong to an open
//! file, and a second lock of the same byte is no second lock: so the snapshots of one open file are counted here.

use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::storage::fork::Process;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// The byte that the writer locks.
pub(super) const WRITER: u64 = 1 << 62;
/// The byte of generation 0.
pub(super) const PINS: u64 = WRITER + 1;

/// The pins of one open file.
pub(crate) struct Pins {
    storage: Arc<dyn Storage>,
    /// Whether locks are wanted at all.
    locking: bool,
    /// How often each generation is pinned here.
    counts: Mutex<BTreeMap<u64, usize>>,
}

/// One snapshot's hold on its generation, which goes with the last owner.
pub(crate) struct Pin {
    pins: Arc<Pins>,
    generation: u64,
    /// A forked child shares the open file with its parent, and must not let go of what the parent holds.
    process: Process,
}

impl Pins {
    pub(super) fn new(storage: Arc<dyn Storage>, locking: bool) -> Arc<Pins> {
        Arc::new(Pins { storage, locking, counts: Mutex::default() })
    }

    /// Pins a generation; `None` where that is not possible or not wanted.
    pub(super) fn pin(self: &Arc<Pins>, generation: u64) -> Result<Option<Pin>> {
        if !self.locking {
            return Ok(None);
        }
        let mut counts = self.counts.lock();
        if !counts.contains_key(&generation) {
            let locked = self.storage.lock(PINS + generation, false);
            match locked {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
                Ok(false) => return Err(self.failed(io::ErrorKind::WouldBlock.into())),
                Err(error) => return Err(self.failed(error)),
            }
        }
        *counts.entry(generation).or_insert(0) += 1;
        Ok(Some(Pin { pins: self.clone(), generation, process: Process::this() }))
    }

    /// The generations up to `newest` that are pinned, by this open file or another; `None` where that cannot be known.
    #[cfg(feature = "write")]
    pub(super) fn list(&self, newest: u64) -> Result<Option<BTreeSet<u64>>> {
        let mut pinned = self.others(newest)?;
        if let Some(pinned) = &mut pinned {
            pinned.extend(self.counts.lock().keys());
        }
        Ok(pinned)
    }

    /// The generations up to `newest` that other open files have pinned; `None` where that cannot be known.
    pub(super) fn others(&self, newest: u64) -> Result<Option<BTreeSet<u64>>> {
        if !self.locking {
            return Ok(None);
        }
        let mut pinned = BTreeSet::new();
        // The answer to a question is any one lock; others may stand on both sides of it.
        let mut open = Vec::new();
        open.push(PINS..PINS + newest + 1);
        while let Some(range) = open.pop() {
            if range.is_empty() {
                continue;
            }
            match self.storage.conflict(range.clone()) {
                Ok(None) => {}
                Ok(Some(locked)) => {
                    let (from, to) = (locked.start.max(range.start), locked.end.min(range.end));
                    if from >= to {
                        return Err(self.failed(io::ErrorKind::InvalidData.into()));
                    }
                    pinned.extend((from..to).map(|byte| byte - PINS));
                    open.push(range.start..from);
                    open.push(to..range.end);
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(Some(pinned))
    }

    pub(super) fn failed(&self, source: io::Error) -> Error {
        Error::Io {
            action: "lock a generation (OpenOptions::locking(false) does without locks)".into(),
            file: self.storage.name().to_path_buf(),
            source,
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        let mut counts = self.pins.counts.lock();
        if let Some(count) = counts.get_mut(&self.generation) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.generation);
                // Closing the file lets go of it if this does not; until then space is kept, and nothing else is wrong.
                let _ = self.pins.storage.unlock(PINS + self.generation);
            }
        }
    }
}
