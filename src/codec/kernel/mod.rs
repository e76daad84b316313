//! The loops that take words apart into byte planes and put them together again.
//!
//! Each loop is written once in portable Rust (`generic`), in a form that the compiler vectorises, and once more for
//! AVX2 (`avx2`) where a measurement shows a gain; [`Isa`] says which ones run. `scalar` says in the plainest way what
//! they all must compute, and the tests compare them with it. `copy` holds the copies that know nothing of planes.
//!
//! Safe callers can rely on this: [`split`] and [`differences`] check their slices, and the functions that write
//! to memory given by pointer say what they need.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_stream;
#[cfg(target_arch = "x86_64")]
mod avx2_sums;
mod copy;
mod generic;
#[cfg(test)]
mod scalar;
#[cfg(test)]
mod tests;

pub(super) use copy::{copy_items, pick, repeat};

/// One byte of every word of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plane<'a> {
    /// The byte of word `i` at index `i`.
    Bytes(&'a [u8]),
    /// The same for all words.
    Constant(u8),
}

/// Runs of words of a block: run `r` has `len` words from `first + r * step` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Word at which the first run starts.
    pub(crate) first: usize,
    /// Words of a run, at least 1.
    pub(crate) len: usize,
    /// Number of runs, at least 1.
    pub(crate) rows: usize,
    /// Words from one run's start to the next one's.
    pub(crate) step: usize,
}

impl Rows {
    /// Whether all runs lie within these planes.
    fn within(&self, planes: &[Plane<'_>]) -> bool {
        let end = self.first + (self.rows - 1) * self.step + self.len;
        planes.iter().all(|plane| match plane {
            Plane::Bytes(bytes) => end <= bytes.len(),
            Plane::Constant(_) => true,
        })
    }
}

/// How a destination is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Through the caches: it will be read soon, or fits them.
    Cached,
    /// Past the caches, where the processor can.
    Streaming,
}

/// The instructions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// What every processor of the target has.
    Generic,
    /// x86-64 with AVX2. Exists only where the processor has it: [`Isa::detect`] makes it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    /// The best that this processor has. The standard library asks the processor once and remembers.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Isa::Avx2;
        }
        Isa::Generic
    }
}

/// A plane as the loops read it: byte `i` is at `start + (i & mask)`. A constant plane is 64 equal bytes and a mask of
/// zero, so that a loop loads up to 64 bytes from either kind without a branch.
#[derive(Clone, Copy)]
struct Lane {
    start: *const u8,
    mask: usize,
}

/// Each byte value 64 times.
static REPEATED: [[u8; 64]; 256] = {
    let mut table = [[0; 64]; 256];
    let mut value = 0;
    while value < 256 {
        table[value] = [value as u8; 64];
        value += 1;
    }
    table
};

impl Lane {
    fn new(plane: Plane<'_>) -> Self {
        match plane {
            Plane::Bytes(bytes) => Lane { start: bytes.as_ptr(), mask: usize::MAX },
            Plane::Constant(value) => Lane { start: REPEATED[usize::from(value)].as_ptr(), mask: 0 },
        }
    }

    /// Where to read bytes from `i` on: as many as the plane has there, and at least 64 of a constant plane.
    ///
    /// # Safety
    ///
    /// The plane must have a byte `i`, or end there.
    #[inline(always)]
    unsafe fn at(self, i: usize) -> *const u8 {
        // SAFETY: the offset is `i`, for which the caller vouches, or 0.
        unsafe { self.start.add(i & self.mask) }
    }
}

/// The lanes of exactly `W` planes.
fn lanes<const W: usize>(planes: &[Plane<'_>]) -> [Lane; W] {
    std::array::from_fn(|k| Lane::new(planes[k]))
}

/// Writes runs of words, whose bytes come from `planes`: run `r` goes to `dst + r * dst_stride`.
///
/// # Safety
///
/// The runs must lie within the planes. `dst + r * dst_stride` must be valid for writes of `rows.len` words for each
/// `r`, and none of that may overlap the planes.
pub(super) unsafe fn interleave(
    isa: Isa,
    planes: &[Plane<'_>],
    rows: Rows,
    dst: *mut u8,
    dst_stride: isize,
    stores: Stores,
) {
    debug_assert!(rows.within(planes));
    // SAFETY: the conditions are the caller's, and `Isa::Avx2` exists only where the processor has it.
    unsafe {
        match (planes.len(), isa) {
            (1, _) => match planes[0] {
                Plane::Bytes(bytes) => {
                    let mut src = bytes.as_ptr().add(rows.first);
                    for r in 0..rows.rows {
                        dst.offset(r as isize * dst_stride).copy_from_nonoverlapping(src, rows.len);
                        src = src.wrapping_add(rows.step);
                    }
                }
                Plane::Constant(value) => repeat(&[value], rows.len, rows.rows, dst, dst_stride),
            },
            #[cfg(target_arch = "x86_64")]
            (2, Isa::Avx2) => match stores {
                Stores::Cached => avx2::interleave2(lanes(planes), rows, dst, dst_stride),
                Stores::Streaming => avx2::stream2(lanes(planes), rows, dst, dst_stride),
            },
            #[cfg(target_arch = "x86_64")]
            (4, Isa::Avx2) => match stores {
                Stores::Cached => avx2::interleave4(lanes(planes), rows, dst, dst_stride),
                Stores::Streaming => avx2::stream4(lanes(planes), rows, dst, dst_stride),
            },
            #[cfg(target_arch = "x86_64")]
            (8, Isa::Avx2) => match stores {
                Stores::Cached => avx2::interleave8(lanes(planes), rows, dst, dst_stride),
                Stores::Streaming => avx2::stream8(lanes(planes), rows, dst, dst_stride),
            },
            (2, _) => generic::interleave::<u16, 2>(lanes(planes), rows, dst, dst_stride),
            (4, _) => generic::interleave::<u32, 4>(lanes(planes), rows, dst, dst_stride),
            (8, _) => generic::interleave::<u64, 8>(lanes(planes), rows, dst, dst_stride),
            _ => generic::interleave_any(planes, rows, dst, dst_stride),
        }
    }
}

/// Writes the first `len` words of a block whose differences, `stride` words apart, have these planes.
///
/// # Safety
///
/// There must be 1, 2, 4 or 8 planes with at least `len` bytes each, `stride` must not be 0, and `dst` must be valid
/// for writes of `len` words, none of which may overlap the planes.
pub(super) unsafe fn undo_differences(
    isa: Isa,
    planes: &[Plane<'_>],
    stride: usize,
    len: usize,
    dst: *mut u8,
) {
    debug_assert!(len == 0 || Rows { first: 0, len, rows: 1, step: 0 }.within(planes));
    debug_assert!(stride != 0 && matches!(planes.len(), 1 | 2 | 4 | 8));
    // SAFETY: the conditions are the caller's, and `Isa::Avx2` exists only where the processor has it.
    unsafe {
        match (planes.len(), isa) {
            #[cfg(target_arch = "x86_64")]
            (1, Isa::Avx2) => avx2::undo1(lanes(planes), stride, len, dst),
            #[cfg(target_arch = "x86_64")]
            (2, Isa::Avx2) => avx2::undo2(lanes(planes), stride, len, dst),
            #[cfg(target_arch = "x86_64")]
            (4, Isa::Avx2) => avx2::undo4(lanes(planes), stride, len, dst),
            #[cfg(target_arch = "x86_64")]
            (_, Isa::Avx2) => avx2::undo8(lanes(planes), stride, len, dst),
            (1, _) => generic::undo::<u8, 1>(lanes(planes), stride, len, dst),
            (2, _) => generic::undo::<u16, 2>(lanes(planes), stride, len, dst),
            (4, _) => generic::undo::<u32, 4>(lanes(planes), stride, len, dst),
            _ => generic::undo::<u64, 8>(lanes(planes), stride, len, dst),
        }
    }
}

/// Takes words of `word` bytes apart: byte `k` of word `i` goes to `planes[k * n + i]`, `n` being the number of
/// words.
///
/// # Panics
///
/// If the two slices differ in length or do not hold whole words.
#[cfg(feature = "write")]
pub(super) fn split(isa: Isa, items: &[u8], word: usize, planes: &mut [u8]) {
    assert!(
        items.len() == planes.len() && items.len().is_multiple_of(word),
        "planes hold the bytes of whole words"
    );
    match (word, isa) {
        (1, _) => planes.copy_from_slice(items),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Isa::Avx2` exists only where the processor has it.
        (2, Isa::Avx2) => unsafe { avx2::split2(items, planes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (4, Isa::Avx2) => unsafe { avx2::split4(items, planes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (8, Isa::Avx2) => unsafe { avx2::split8(items, planes) },
        (2, _) => generic::split::<u16, 2>(items, planes),
        (4, _) => generic::split::<u32, 4>(items, planes),
        (8, _) => generic::split::<u64, 8>(items, planes),
        _ => generic::split_any(items, word, planes),
    }
}

/// Writes the zigzag code of the difference between each word and the one `stride` before it, taking 0 where there is
/// none.
///
/// # Panics
///
/// If the two slices differ in length, do not hold whole words, the words are not of 1, 2, 4 or 8 bytes, or `stride`
/// is 0.
#[cfg(feature = "write")]
pub(super) fn differences(isa: Isa, items: &[u8], word: usize, stride: usize, out: &mut [u8]) {
    assert!(
        items.len() == out.len() && items.len().is_multiple_of(word) && stride != 0,
        "differences of whole words"
    );
    let before = stride.saturating_mul(word).min(items.len());
    match (word, isa) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Isa::Avx2` exists only where the processor has it.
        (1, Isa::Avx2) => unsafe { avx2::differences1(items, before, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (2, Isa::Avx2) => unsafe { avx2::differences2(items, before, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (4, Isa::Avx2) => unsafe { avx2::differences4(items, before, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (8, Isa::Avx2) => unsafe { avx2::differences8(items, before, out) },
        (1, _) => generic::differences::<u8, 1>(items, before, out),
        (2, _) => generic::differences::<u16, 2>(items, before, out),
        (4, _) => generic::differences::<u32, 4>(items, before, out),
        (8, _) => generic::differences::<u64, 8>(items, before, out),
        _ => panic!("differences of words of {word} bytes"),
    }
}
