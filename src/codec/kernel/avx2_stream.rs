//! Writing runs past the caches, for destinations that are larger than these.
//!
//! An ordinary store first reads its cache line from memory. A streaming store of a whole line does not, which takes a
//! third of the memory traffic off a large read. The lines at a run's ends, of which it has a part, are written by
//! ordinary stores; they are asked for some runs ahead, since runs stand too far apart for the processor to foresee them.

use std::arch::x86_64::*;

use super::Rows;

const LINE: usize = 64;
/// Words that are put together at once.
const STEP: usize = 16;
/// Runs between asking for the ends of one and writing them.
const AHEAD: usize = 8;

/// Writes the runs of `rows`. `zip(first)` gives the [`STEP`] words from `first` on; `plain(run, dst)` writes one run
/// with ordinary stores, for those that have no line of their own.
///
/// # Safety
///
/// As for [`super::interleave`], and the processor must have AVX2. `zip` and `plain` are called for words of the runs.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn interleave_by<const W: usize>(
    rows: Rows,
    dst: *mut u8,
    dst_stride: isize,
    zip: impl Fn(usize) -> [__m128i; W],
    plain: impl Fn(Rows, *mut u8),
) {
    let len = rows.len * W;
    for r in 0..AHEAD.min(rows.rows) {
        expect_ends(dst.wrapping_offset(r as isize * dst_stride), len);
    }
    for r in 0..rows.rows {
        let dst = dst.wrapping_offset(r as isize * dst_stride);
        if r + AHEAD < rows.rows {
            expect_ends(dst.wrapping_offset(AHEAD as isize * dst_stride), len);
        }
        let first = rows.first + r * rows.step;
        let head = dst.addr().wrapping_neg() % LINE;
        if rows.len < 2 * STEP || len < head + LINE || !head.is_multiple_of(W) {
            plain(Rows { first, len: rows.len, rows: 1, step: 0 }, dst);
            continue;
        }
        let body = head / W;
        // SAFETY: a run has at least two steps of words and a head less than that, so that there is a step from wherever the
        // head is taken, and one before the end. The body starts at a multiple of 64 bytes, so its vectors are aligned, and all stores stay below the run's end.
        unsafe {
            for done in (0..body).step_by(STEP) {
                store_part(zip(first + done), 0, W * STEP.min(body - done), dst.add(done * W));
            }
            let mut done = body;
            while done + STEP <= rows.len {
                for (n, vector) in zip(first + done).into_iter().enumerate() {
                    _mm_stream_si128(dst.add(done * W + 16 * n).cast(), vector);
                }
                done += STEP;
            }
            let last = rows.len - STEP;
            store_part(zip(first + last), W * (done - last), W * STEP, dst.add(last * W));
        }
    }
    // The streaming stores become visible before anything that this thread says about them.
    _mm_sfence();
}

/// Asks for the cache lines of the first and the last byte of a run, to write to them.
#[inline(always)]
fn expect_ends(run: *mut u8, len: usize) {
    for end in [run, run.wrapping_add(len - 1)] {
        // SAFETY: a prefetch has no effect but on the caches, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(end.cast()) };
    }
}

/// Writes the bytes `from` to `to` of the words in `vectors` to where they belong if the first word belongs to `dst`.
///
/// Whole vectors are stored one by one: of a loop over bytes the compiler makes a call, which takes longer than all else
/// that is done for a short run.
///
/// # Safety
///
/// `from..to` must be within the vectors, and `dst + from` valid for writes up to `dst + to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_part<const W: usize>(vectors: [__m128i; W], from: usize, to: usize, dst: *mut u8) {
    debug_assert!(from <= to && to <= 16 * W);
    for (n, vector) in vectors.into_iter().enumerate() {
        let (start, end) = (from.max(16 * n), to.min(16 * n + 16));
        if start >= end {
            continue;
        }
        let place = dst.wrapping_add(start);
        // SAFETY: the bytes are between `from` and `to`, and of the vector.
        unsafe {
            if end - start == 16 {
                _mm_storeu_si128(place.cast(), vector);
            } else {
                let bytes = std::ptr::from_ref(&vector).cast::<u8>();
                place.copy_from_nonoverlapping(bytes.add(start - 16 * n), end - start);
            }
        }
    }
}
