//! Copies of items to strided places.

use std::mem::MaybeUninit;

use super::{Isa, Lane, Plane, Rows, Stores, interleave};

/// Bytes of the buffer through which items go from planes to scattered places. It stays in the first-level cache.
const TILE: usize = 4096;

/// Steps up to this many items are taken by interleaving everything between as well, which is faster than collecting
/// the bytes of each item.
const DENSE: usize = 8;

/// Writes `rows` runs of `len` copies of `item`, run `r` to `dst + r * dst_stride`.
///
/// # Safety
///
/// `dst + r * dst_stride` must be valid for writes of `len` items for each `r`; the runs must overlap neither each
/// other nor `item`.
pub(in super::super) unsafe fn repeat(item: &[u8], len: usize, rows: usize, dst: *mut u8, dst_stride: isize) {
    let bytes = item.len() * len;
    // SAFETY: all writes go to the runs, and what is read from `dst` has been written before.
    unsafe {
        if item.iter().all(|byte| *byte == item[0]) {
            for r in 0..rows {
                dst.offset(r as isize * dst_stride).write_bytes(item[0], bytes);
            }
            return;
        }
        dst.copy_from_nonoverlapping(item.as_ptr(), item.len());
        let mut done = item.len();
        while done < bytes {
            let more = done.min(bytes - done);
            dst.add(done).copy_from_nonoverlapping(dst, more);
            done += more;
        }
        for r in 1..rows {
            dst.offset(r as isize * dst_stride).copy_from_nonoverlapping(dst, bytes);
        }
    }
}

/// Copies `len` items of `size` bytes from `src + i * src_stride` to `dst + i * dst_stride`.
///
/// # Safety
///
/// Each `src + i * src_stride` must be valid for reads and each `dst + i * dst_stride` for writes of one item, and they
/// must not overlap.
pub(in super::super) unsafe fn copy_items(
    size: usize,
    len: usize,
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
) {
    // SAFETY: the conditions are the caller's.
    unsafe {
        match size {
            1 => copy_sized::<1>(len, src, src_stride, dst, dst_stride),
            2 => copy_sized::<2>(len, src, src_stride, dst, dst_stride),
            4 => copy_sized::<4>(len, src, src_stride, dst, dst_stride),
            8 => copy_sized::<8>(len, src, src_stride, dst, dst_stride),
            16 => copy_sized::<16>(len, src, src_stride, dst, dst_stride),
            _ => {
                for i in 0..len as isize {
                    dst.offset(i * dst_stride).copy_from_nonoverlapping(src.offset(i * src_stride), size);
                }
            }
        }
    }
}

/// [`copy_items`] with the item size known to the compiler, so that a copy is one load and one store.
///
/// # Safety
///
/// As for [`copy_items`].
unsafe fn copy_sized<const N: usize>(
    len: usize,
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
) {
    for i in 0..len as isize {
        // SAFETY: the caller vouches for each of the `len` items.
        unsafe { dst.offset(i * dst_stride).copy_from_nonoverlapping(src.offset(i * src_stride), N) };
    }
}

/// Copies the `len` items of `size` bytes `first`, `first + step`, ... of a block in planes to `dst + i * dst_stride`.
///
/// # Safety
///
/// The items must lie within the planes, whose number must divide `size`. Each `dst + i * dst_stride` must be valid for
/// writes of one item and not overlap the planes.
#[allow(clippy::too_many_arguments, reason = "a source and a destination, each with its stride")]
pub(in super::super) unsafe fn pick(
    isa: Isa,
    planes: &[Plane<'_>],
    size: usize,
    first: usize,
    step: isize,
    len: usize,
    dst: *mut u8,
    dst_stride: isize,
) {
    let words = size / planes.len();
    let distance = step.unsigned_abs().max(1);
    let item = |i: usize| first.wrapping_add_signed(i as isize * step);
    if len == 1 || distance > DENSE || size * (DENSE + 1) > TILE {
        for i in 0..len {
            // SAFETY: the caller vouches for the item and its place.
            unsafe { collect(planes, item(i) * words, words, dst.offset(i as isize * dst_stride)) };
        }
        return;
    }
    let mut tile = MaybeUninit::<[u8; TILE]>::uninit();
    let tile = tile.as_mut_ptr().cast::<u8>();
    // So many that what lies between them fits into the tile as well; at least two.
    let most = (TILE / size - 1) / distance + 1;
    for start in (0..len).step_by(most) {
        let taken = most.min(len - start);
        let (a, b) = (item(start), item(start + taken - 1));
        let low = a.min(b);
        let run = a.max(b) - low + 1;
        let rows = Rows { first: low * words, len: run * words, rows: 1, step: 0 };
        // SAFETY: the run lies between two of the items that the caller vouches for and is at most
        // `(most - 1) * distance + 1 <= TILE / size` items, so it fits into the tile.
        unsafe {
            interleave(isa, planes, rows, tile, 0, Stores::Cached);
            let src = tile.add((a - low) * size);
            let to = dst.offset(start as isize * dst_stride);
            copy_items(size, taken, src, step * size as isize, to, dst_stride);
        }
    }
}

/// Writes the `words` words from `word` on, byte by byte.
///
/// # Safety
///
/// The words must lie within the planes, and `dst` must be valid for writes of them.
unsafe fn collect(planes: &[Plane<'_>], word: usize, words: usize, dst: *mut u8) {
    for (k, plane) in planes.iter().enumerate() {
        let lane = Lane::new(*plane);
        for i in 0..words {
            // SAFETY: the word lies within the plane and its place within the destination.
            unsafe { *dst.add(i * planes.len() + k) = *lane.at(word + i) };
        }
    }
}
