//! Pages of memory for large fresh destinations.
//!
//! Memory that the allocator has just got from the operating system is cleared, page by page, when it is first written to. With 4 KiB
//! pages that costs more than decoding, and two threads that meet in one huge page may each clear it. So a large
//! destination gets huge pages, and they are made before decoding starts, by all threads at once.

use crate::pool::Pool;
use std::mem::MaybeUninit;

/// Destinations below this are left as they are.
const MIN_LEN: usize = 4 << 20;
/// What one thread populates at a time: a multiple of the huge page size.
const STEP: usize = 8 << 20;

/// Asks for huge pages for a fresh destination, and populates them in parallel. Nothing but speed depends on it.
#[cfg(target_os = "linux")]
pub(crate) fn prepare_destination(destination: &mut [MaybeUninit<u8>], pool: &Pool) {
    const HUGE: usize = 2 << 20;
    if destination.len() < MIN_LEN {
        return;
    }
    let start = destination.as_mut_ptr().addr();
    let skip = start.next_multiple_of(HUGE) - start;
    let Some(inner) = destination.get_mut(skip..) else { return };
    let len = inner.len() / HUGE * HUGE;
    let inner = &mut inner[..len];
    if !advise(inner, libc::MADV_HUGEPAGE) {
        return;
    }
    let steps: Vec<_> = inner.chunks_mut(STEP).map(parking_lot::Mutex::new).collect();
    pool.for_each(steps.len(), |n| {
        advise(&mut steps[n].lock(), libc::MADV_POPULATE_WRITE);
    });
}

#[cfg(target_os = "linux")]
fn advise(pages: &mut [MaybeUninit<u8>], advice: libc::c_int) -> bool {
    // SAFETY: the range is whole pages of memory that is borrowed mutably, and neither MADV_HUGEPAGE nor
    // MADV_POPULATE_WRITE changes what the pages hold.
    unsafe { libc::madvise(pages.as_mut_ptr().cast(), pages.len(), advice) == 0 }
}

/// Elsewhere the allocator's pages are taken as they come.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prepare_destination(_destination: &mut [MaybeUninit<u8>], _pool: &Pool) {}
