//! Who does the work of one call: the calling thread, rayon's current pool, or a pool of the store's own.

use crate::error::Result;

/// Threads for one store's reads and writes.
#[derive(Clone, Default)]
pub(crate) enum Pool {
    /// Everything runs on the calling thread.
    #[cfg_attr(not(feature = "threads"), default)]
    Calling,
    /// The rayon pool that the caller is in, or the global one.
    #[cfg(feature = "threads")]
    #[default]
    Current,
    /// Threads of the store's own.
    #[cfg(feature = "threads")]
    Own(std::sync::Arc<rayon::ThreadPool>),
}

impl Pool {
    /// The pool for a `threads` option: `None` shares rayon's pool, 1 is the calling thread.
    pub(crate) fn new(threads: Option<usize>) -> Result<Pool> {
        match threads {
            #[cfg(feature = "threads")]
            None => Ok(Pool::Current),
            #[cfg(not(feature = "threads"))]
            None => Ok(Pool::Calling),
            Some(1) => Ok(Pool::Calling),
            Some(count) => Pool::own(count),
        }
    }

    #[cfg(feature = "threads")]
    fn own(count: usize) -> Result<Pool> {
        const MOST: usize = 1024;
        if count == 0 || count > MOST {
            return Err(crate::Error::invalid(format!("{count} threads: give a number from 1 to {MOST}")));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|n| format!("brickmap-{n}"))
            .build()
            .map_err(|error| crate::Error::InvalidState {
                what: format!("cannot start {count} threads: {error}"),
            })?;
        Ok(Pool::Own(std::sync::Arc::new(pool)))
    }

    #[cfg(not(feature = "threads"))]
    fn own(count: usize) -> Result<Pool> {
        Err(crate::Error::Unsupported { what: format!("{count} threads, without the feature `threads`") })
    }

    /// Calls `work(0)` to `work(count - 1)`, spread over the pool's threads.
    pub(crate) fn for_each(&self, count: usize, work: impl Fn(usize) + Sync + Send) {
        #[cfg(feature = "threads")]
        {
            use rayon::prelude::*;
            let run = || (0..count).into_par_iter().for_each(&work);
            match self {
                Pool::Calling => {}
                _ if count < 2 => {}
                Pool::Current => return run(),
                Pool::Own(pool) => return pool.install(run),
            }
        }
        (0..count).for_each(work);
    }

    /// As [`Pool::for_each`], for work that can fail: the error of the lowest number that failed is returned, and what
    /// has not started by then may be left out.
    pub(crate) fn try_for_each(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let lowest = AtomicUsize::new(usize::MAX);
        let failure = parking_lot::Mutex::new(None);
        self.for_each(count, |n| {
            if n > lowest.load(Ordering::Relaxed) {
                return;
            }
            if let Err(error) = work(n) {
                let mut failure = failure.lock();
                if n < lowest.load(Ordering::Relaxed) {
                    lowest.store(n, Ordering::Relaxed);
                    *failure = Some(error);
                }
            }
        });
        failure.into_inner().map_or(Ok(()), Err)
    }
}
