//! Who does the work of one call: the calling thread, rayon's current pool, or a pool of the store's own.

use crate::error::Result;
#[cfg(feature = "threads")]
use crate::storage::fork::Process;

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
    Own(std::sync::Arc<OwnPool>),
    /// The rayon pool that the caller is in, or this one: a forked process has none of the threads of the global one.
    #[cfg(feature = "threads")]
    Forked(std::sync::Arc<OwnPool>),
}

/// A pool whose threads live in the process that made it.
#[cfg(feature = "threads")]
pub(crate) struct OwnPool {
    /// There until it is dropped.
    pool: Option<rayon::ThreadPool>,
    process: Process,
}

#[cfg(feature = "threads")]
impl OwnPool {
    /// A pool of `count` threads; 0 is one for each core.
    fn new(count: usize) -> Result<OwnPool> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|n| format!("brickmap-{n}"))
            .build()
            .map_err(|error| crate::Error::InvalidState { what: format!("cannot start threads: {error}") })?;
        Ok(OwnPool { pool: Some(pool), process: Process::this() })
    }

    /// The pool that all stores of a forked process share.
    fn of_fork() -> Result<std::sync::Arc<OwnPool>> {
        static POOL: arc_swap::ArcSwapOption<OwnPool> = arc_swap::ArcSwapOption::const_empty();
        let ours =
            |pool: &Option<std::sync::Arc<OwnPool>>| pool.clone().filter(|pool| pool.process.is_this());
        if let Some(pool) = ours(&POOL.load()) {
            return Ok(pool);
        }
        let new = std::sync::Arc::new(OwnPool::new(0)?);
        POOL.rcu(|pool| Some(ours(pool).unwrap_or_else(|| new.clone())));
        Ok(ours(&POOL.load()).unwrap_or(new))
    }
}

#[cfg(feature = "threads")]
impl Drop for OwnPool {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // Ending it would wait for threads that a fork left behind.
            std::mem::forget(self.pool.take());
        }
    }
}

impl Pool {
    /// The pool for a `threads` option: `None` shares rayon's pool, 1 is the calling thread.
    pub(crate) fn new(threads: Option<usize>) -> Result<Pool> {
        match threads {
            #[cfg(feature = "threads")]
            None if Process::this().is_fork() => Ok(Pool::Forked(OwnPool::of_fork()?)),
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
        Ok(Pool::Own(std::sync::Arc::new(OwnPool::new(count)?)))
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
                Pool::Forked(_) if rayon::current_thread_index().is_some() => return run(),
                Pool::Own(own) | Pool::Forked(own) => {
                    if let Some(pool) = &own.pool {
                        return pool.install(run);
                    }
                }
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

    /// What `work(0)` to `work(count - 1)` give; the error as in [`Pool::try_for_each`].
    pub(crate) fn try_map<R: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<R> + Sync + Send,
    ) -> Result<Vec<R>> {
        let results: Vec<parking_lot::Mutex<Option<R>>> =
            (0..count).map(|_| parking_lot::Mutex::new(None)).collect();
        self.try_for_each(count, |n| {
            *results[n].lock() = Some(work(n)?);
            Ok(())
        })?;
        Ok(results.into_iter().filter_map(parking_lot::Mutex::into_inner).collect())
    }

    /// Does both, at the same time where there are threads for it.
    pub(crate) fn join<A: Send, B: Send>(
        &self,
        first: impl FnOnce() -> A + Send,
        second: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        #[cfg(feature = "threads")]
        match self {
            Pool::Calling => {}
            Pool::Current => return rayon::join(first, second),
            Pool::Forked(_) if rayon::current_thread_index().is_some() => return rayon::join(first, second),
            Pool::Own(own) | Pool::Forked(own) => {
                if let Some(pool) = &own.pool {
                    return pool.install(|| rayon::join(first, second));
                }
            }
        }
        (first(), second())
    }
}
