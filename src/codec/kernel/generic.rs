//! The loops in portable Rust, written so that the compiler vectorises them.
//!
//! They are always inlined: called from a function with more target features, they are compiled with those.

use std::ops::{BitOr, Shl};

use super::{Lane, Plane, Rows};

/// Words that go through the first-level cache at a time when differences are undone: 6 KiB of 8-byte words, and
/// whole rows of the most common strides.
pub(super) const TILE: usize = 768;

/// Strides up to this many words keep the last row in registers.
const NARROW: usize = 16;

/// Bytes of a constant plane that can be loaded at once.
const RUN: usize = 64;

/// [`interleave`](super::interleave) for words `T` of `W` bytes.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(super) unsafe fn interleave<T: Word, const W: usize>(
    lanes: [Lane; W],
    rows: Rows,
    dst: *mut u8,
    dst_stride: isize,
) {
    for r in 0..rows.rows {
        // SAFETY: the caller vouches for the words of each run and their places.
        unsafe {
            let (first, dst) = (rows.first + r * rows.step, dst.offset(r as isize * dst_stride));
            let mut done = 0;
            while done + RUN <= rows.len {
                interleave_whole_run::<T, W>(lanes, first + done, dst.add(done * W));
                done += RUN;
            }
            if done < rows.len {
                interleave_run(lanes, first + done, rows.len - done, dst.add(done * W));
            }
        }
    }
}

/// Writes [`RUN`] words from `first` on.
///
/// Compilers make vectors of shifts and ors of whole words, between arrays that they know to be apart; of bytes put side by
/// side they do not.
///
/// # Safety
///
/// The words must lie within the lanes' planes, and `dst` must be valid for writes of them.
#[inline(always)]
unsafe fn interleave_whole_run<T: Word, const W: usize>(lanes: [Lane; W], first: usize, dst: *mut u8) {
    const { assert!(size_of::<T>() == W) };
    // SAFETY: the caller vouches for the words; constant planes have `RUN` bytes.
    let planes = lanes.map(|lane| unsafe { lane.at(first).cast::<[u8; RUN]>().read() });
    let words = T::from_planes(&planes);
    // SAFETY: the caller vouches for the places of the words.
    unsafe { dst.cast::<[T; RUN]>().write_unaligned(words.map(T::le)) };
}

/// Writes `len` words from `first` on, at most [`RUN`].
///
/// # Safety
///
/// The words must lie within the lanes' planes, and `dst` must be valid for writes of them.
#[inline(always)]
pub(super) unsafe fn interleave_run<const W: usize>(
    lanes: [Lane; W],
    first: usize,
    len: usize,
    dst: *mut u8,
) {
    // SAFETY: the caller vouches for the words and their places; constant planes have `RUN` bytes.
    unsafe {
        let src = lanes.map(|lane| lane.at(first));
        for i in 0..len {
            for (k, src) in src.iter().enumerate() {
                *dst.add(i * W + k) = *src.add(i);
            }
        }
    }
}

/// [`interleave`](super::interleave) for any number of planes.
///
/// # Safety
///
/// As there.
pub(super) unsafe fn interleave_any(planes: &[Plane<'_>], rows: Rows, dst: *mut u8, dst_stride: isize) {
    let word = planes.len();
    for r in 0..rows.rows {
        // SAFETY: the caller vouches for the words of each run and their places.
        unsafe {
            let (first, dst) = (rows.first + r * rows.step, dst.offset(r as isize * dst_stride));
            // A run at a time, so that the words being put together stay in the first-level cache.
            for done in (0..rows.len).step_by(RUN) {
                for (k, plane) in planes.iter().enumerate() {
                    let src = Lane::new(*plane).at(first + done);
                    for i in 0..RUN.min(rows.len - done) {
                        *dst.add((done + i) * word + k) = *src.add(i);
                    }
                }
            }
        }
    }
}

/// An unsigned machine word in wrapping arithmetic.
pub(super) trait Word: Copy {
    const ZERO: Self;
    /// The words whose bytes these are, the least significant first.
    fn from_planes(planes: &[[u8; RUN]]) -> [Self; RUN];
    /// Byte `k`.
    fn byte(self, k: usize) -> u8;
    fn plus(self, other: Self) -> Self;
    fn zigzag_minus(self, other: Self) -> Self;
    fn unzigzag(self) -> Self;
    fn le(self) -> Self;
}

macro_rules! word {
    ($($unsigned:ty, $signed:ty, $from_planes:expr;)*) => {$(
        impl Word for $unsigned {
            const ZERO: Self = 0;
            #[inline(always)]
            fn from_planes(planes: &[[u8; RUN]]) -> [Self; RUN] {
                $from_planes(planes)
            }
            #[inline(always)]
            fn byte(self, k: usize) -> u8 {
                (self >> (8 * k)) as u8
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn zigzag_minus(self, other: Self) -> Self {
                let x = self.wrapping_sub(other);
                (x << 1) ^ (x as $signed >> (Self::BITS - 1)) as Self
            }
            #[inline(always)]
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
            #[inline(always)]
            fn le(self) -> Self {
                Self::from_le(self)
            }
        }
    )*};
}
word! {
    u8, i8, |planes: &[[u8; RUN]]| planes[0];
    u16, i16, double::<u8, u16>;
    u32, i32, double::<u16, u32>;
    u64, i64, double::<u32, u64>;
}

/// Words `T` made of a lower and an upper half `H`, each of half of the planes.
#[inline(always)]
fn double<H: Word, T: From<H> + Shl<u32, Output = T> + BitOr<Output = T>>(planes: &[[u8; RUN]]) -> [T; RUN] {
    let (lower, upper) = planes.split_at(size_of::<H>());
    let (lower, upper) = (H::from_planes(lower), H::from_planes(upper));
    std::array::from_fn(|i| T::from(lower[i]) | T::from(upper[i]) << (8 * size_of::<H>() as u32))
}

/// [`undo_differences`](super::undo_differences) for words `T` of `W` bytes.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(super) unsafe fn undo<T: Word, const W: usize>(
    lanes: [Lane; W],
    stride: usize,
    len: usize,
    dst: *mut u8,
) {
    const { assert!(size_of::<T>() == W) };
    let tiles = |first: usize, len: usize, tile: *mut T| {
        // SAFETY: `undo_tiles` asks for differences of its first `len` words, which the planes have.
        unsafe { interleave::<T, W>(lanes, Rows { first, len, rows: 1, step: 0 }, tile.cast(), 0) };
    };
    // SAFETY: the conditions are the caller's.
    unsafe { undo_tiles(stride, len, dst.cast::<T>(), tiles) }
}

/// Writes the first `len` words of a block whose differences are put together by `tiles`, some hundreds at a time, and
/// summed up while they are in the first-level cache.
///
/// # Safety
///
/// `dst` must be valid for writes of `len` words and `stride` must not be 0; `tiles(first, n, tile)` must write the `n`
/// differences from `first` on to `tile` if they lie before `len`.
#[inline(always)]
pub(super) unsafe fn undo_tiles<T: Word>(
    stride: usize,
    len: usize,
    dst: *mut T,
    tiles: impl Fn(usize, usize, *mut T),
) {
    // SAFETY: the conditions are the caller's, and `P` is at least the stride.
    unsafe {
        match stride {
            1 => undo_narrow::<T, 1>(stride, len, dst, tiles),
            2 => undo_narrow::<T, 2>(stride, len, dst, tiles),
            3..=4 => undo_narrow::<T, 4>(stride, len, dst, tiles),
            5..=8 => undo_narrow::<T, 8>(stride, len, dst, tiles),
            9..=NARROW => undo_narrow::<T, NARROW>(stride, len, dst, tiles),
            _ => undo_wide(stride, len, dst, tiles),
        }
    }
}

/// Undoes differences with a stride of at most `P` words: the row before is in registers.
///
/// Rows are handled as if they had `P` words, which is a whole number of vectors. What this writes past a row's end is
/// overwritten by the next row; near the end of `dst` rows are written exactly.
///
/// # Safety
///
/// `dst` must be valid for writes of `len` words and `stride` in `1..=P`; `tiles(first, len, tile)` must write `len`
/// differences from `first` on to `tile`.
#[inline(always)]
unsafe fn undo_narrow<T: Word, const P: usize>(
    stride: usize,
    len: usize,
    dst: *mut T,
    tiles: impl Fn(usize, usize, *mut T),
) {
    let mut tile = [T::ZERO; TILE + NARROW];
    let mut last = [T::ZERO; P];
    let whole = TILE / stride * stride;
    for first in (0..len).step_by(whole) {
        let here = whole.min(len - first);
        tiles(first, here, tile.as_mut_ptr());
        let mut at = 0;
        // SAFETY: reads end before `here + P`, which is within the tile, and writes before `len`.
        unsafe {
            while at < here && first + at + P <= len {
                for (j, last) in last.iter_mut().enumerate() {
                    *last = last.plus((*tile.as_ptr().add(at + j)).le().unzigzag());
                }
                for (j, last) in last.iter().enumerate() {
                    dst.add(first + at + j).write_unaligned(last.le());
                }
                at += stride;
            }
            while at < here {
                for (j, last) in last.iter_mut().enumerate().take(stride.min(here - at)) {
                    *last = last.plus((*tile.as_ptr().add(at + j)).le().unzigzag());
                    dst.add(first + at + j).write_unaligned(last.le());
                }
                at += stride;
            }
        }
    }
}

/// Undoes differences with any stride: the row before is read back from `dst`.
///
/// # Safety
///
/// `dst` must be valid for writes of `len` words; `tiles(first, len, tile)` must write `len` differences from `first`
/// on to `tile`.
#[inline(always)]
unsafe fn undo_wide<T: Word>(stride: usize, len: usize, dst: *mut T, tiles: impl Fn(usize, usize, *mut T)) {
    let mut tile = [T::ZERO; TILE];
    for first in (0..len).step_by(TILE) {
        let here = TILE.min(len - first);
        tiles(first, here, tile.as_mut_ptr());
        let mut at = 0;
        while at < here {
            let i = first + at;
            let run = stride.min(here - at);
            let differences = &tile[at..at + run];
            // SAFETY: word `i + j` is before `len`, and word `i + j - stride` has been written.
            unsafe {
                if i < stride {
                    let run = run.min(stride - i);
                    for (j, difference) in differences[..run].iter().enumerate() {
                        dst.add(i + j).write_unaligned(difference.le().unzigzag().le());
                    }
                    at += run;
                    continue;
                }
                let before = dst.add(i - stride);
                for (j, difference) in differences.iter().enumerate() {
                    let before = before.add(j).read_unaligned().le();
                    dst.add(i + j).write_unaligned(before.plus(difference.le().unzigzag()).le());
                }
            }
            at += run;
        }
    }
}

/// [`split`](super::split) for words `T` of `W` bytes.
#[cfg(feature = "write")]
#[inline(always)]
pub(super) fn split<T: Word + bytemuck::Pod, const W: usize>(items: &[u8], planes: &mut [u8]) {
    const { assert!(size_of::<T>() == W) };
    let n = items.len() / W;
    for (r, run) in items.chunks(RUN * W).enumerate() {
        let mut words = [T::zeroed(); RUN];
        bytemuck::bytes_of_mut(&mut words)[..run.len()].copy_from_slice(run);
        for k in 0..W {
            let bytes = words.map(|word| word.le().byte(k));
            let plane = &mut planes[k * n + r * RUN..][..run.len() / W];
            plane.copy_from_slice(&bytes[..run.len() / W]);
        }
    }
}

/// [`split`](super::split) for words of any width.
#[cfg(feature = "write")]
pub(super) fn split_any(items: &[u8], word: usize, planes: &mut [u8]) {
    let n = items.len() / word;
    // A run at a time, so that the words being taken apart stay in the first-level cache.
    for done in (0..n).step_by(RUN) {
        let words = &items[done * word..n.min(done + RUN) * word];
        for k in 0..word {
            let plane = &mut planes[k * n + done..];
            for (byte, word) in plane.iter_mut().zip(words.chunks_exact(word)) {
                *byte = word[k];
            }
        }
    }
}

/// [`differences`](super::differences) for words `T` of `W` bytes; `before` is the stride in bytes, at most all.
#[cfg(feature = "write")]
#[inline(always)]
pub(super) fn differences<T: Word + bytemuck::Pod, const W: usize>(
    items: &[u8],
    before: usize,
    out: &mut [u8],
) {
    let code = |word: &[u8; W], before: T, out: &mut [u8; W]| {
        let word: T = bytemuck::pod_read_unaligned(word);
        let code = word.le().zigzag_minus(before.le()).le();
        out.copy_from_slice(bytemuck::bytes_of(&code));
    };
    let (words, _) = items.as_chunks::<W>();
    let (out, _) = out.as_chunks_mut::<W>();
    let (start, rest) = out.split_at_mut(before / W);
    for (out, word) in start.iter_mut().zip(words) {
        code(word, T::ZERO, out);
    }
    for ((out, word), before) in rest.iter_mut().zip(&words[before / W..]).zip(words) {
        code(word, bytemuck::pod_read_unaligned(before), out);
    }
}
