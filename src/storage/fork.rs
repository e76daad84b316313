//! Telling a process from the one that it was forked from.

use std::sync::atomic::{AtomicU64, Ordering};

/// Forks between the first process that called [`watch`] and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// A process, told from those that were forked from it and those that it was forked from.
#[derive(Clone, Copy)]
pub(crate) struct Process(u64);

impl Process {
    /// The one that calls.
    pub(crate) fn this() -> Process {
        Process(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_this(self) -> bool {
        self.0 == Process::this().0
    }

    /// Whether it was forked from one that had called [`watch`].
    #[cfg(feature = "threads")]
    pub(crate) fn is_fork(self) -> bool {
        self.0 > 0
    }
}

/// Begins to count forks. Called before anything is made whose process matters.
pub(crate) fn watch() {
    #[cfg(unix)]
    {
        use std::sync::atomic::AtomicBool;
        /// Two threads may both find it unset. Then forks count twice, which does no harm; waiting for another thread might,
        /// since a fork leaves it behind.
        static WATCHED: AtomicBool = AtomicBool::new(false);
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        if !WATCHED.load(Ordering::Acquire) {
            // SAFETY: the function is called in the child, where only what is safe in a signal handler may be done: it
            // adds to an atomic number. It is never unloaded while the process runs, unless this library is.
            let _out_of_memory = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            WATCHED.store(true, Ordering::Release);
        }
    }
}
