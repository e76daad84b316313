//! Telling a process from the one that it was forked from.

use std::sync::atomic::{AtomicU64, Ordering};

/// Forks between the first process that called [`watch`] and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many forks lie between the first process that called [`watch`] and this one: what has another number was made in
/// another process.
pub(crate) fn generation() -> u64 {
    FORKS.load(Ordering::Relaxed)
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
