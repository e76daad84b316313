//! The lock of the one writer.

use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::storage::fork::Process;
use crate::store::OpenOptions;
use crate::store::pins::WRITER;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Waiting for another writer, it is asked for this often.
const RETRY: Duration = Duration::from_millis(5);

/// Keeps other writers out while it lives.
pub(crate) struct WriterLock {
    storage: Arc<dyn Storage>,
    kind: Kind,
    /// A forked child shares the open file with its parent, and must not let go of what the parent holds.
    process: Process,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A byte of the file, as readers lock theirs.
    Byte,
    /// The whole file, where bytes cannot be locked.
    Whole,
    /// Nothing, as the caller wanted.
    Off,
}

impl WriterLock {
    /// Takes the lock of an open file, as far as the options want it, and waits for it as long as they say.
    pub(crate) fn take(storage: &Arc<dyn Storage>, options: &OpenOptions) -> Result<WriterLock> {
        let made = |kind| WriterLock { storage: storage.clone(), kind, process: Process::this() };
        if !options.locking {
            return Ok(made(Kind::Off));
        }
        let timeout = options.lock_timeout;
        let start = Instant::now();
        let mut kind = Kind::Byte;
        loop {
            let locked = match kind {
                Kind::Byte => storage.lock(WRITER, true),
                _ => storage.lock_whole(),
            };
            match locked {
                Ok(true) => return Ok(made(kind)),
                Ok(false) if start.elapsed() < timeout => {
                    std::thread::sleep(RETRY.min(timeout.saturating_sub(start.elapsed())));
                }
                Ok(false) => return Err(held(&**storage)),
                Err(error) if error.kind() == io::ErrorKind::Unsupported && kind == Kind::Byte => {
                    kind = Kind::Whole;
                }
                Err(source) => {
                    return Err(Error::Io {
                        action: "lock the file (OpenOptions::locking(false) does without locks)".into(),
                        file: storage.name().to_path_buf(),
                        source,
                    });
                }
            }
        }
    }

    /// Whether this was taken in this process, and not in one that it was forked from.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    /// Whether it is known what readers hold, beside other writers.
    pub(super) fn is_sure(&self) -> bool {
        self.kind == Kind::Byte
    }
}

fn held(storage: &dyn Storage) -> Error {
    let holders: Vec<String> = storage
        .holders(WRITER)
        .iter()
        .map(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("process {pid} ({})", name.trim_end())
        })
        .collect();
    let by = if holders.is_empty() { String::from("another process") } else { holders.join(", ") };
    Error::Locked {
        what: format!(
            "{} is being written by {by}; wait for it, for example with OpenOptions::lock_timeout",
            storage.name().display()
        ),
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        // Closing the file lets go of the lock if this does not.
        let _ = match self.kind {
            Kind::Byte => self.storage.unlock(WRITER),
            Kind::Whole => self.storage.unlock_whole(),
            Kind::Off => Ok(()),
        };
    }
}
