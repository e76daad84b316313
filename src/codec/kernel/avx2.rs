//! The loops for x86-64 with AVX2.
//!
//! Putting words together and taking them apart is written by hand: what the compiler makes of the portable loops takes
//! several times as many shuffles. The sums and differences are the portable loops, compiled with AVX2.

use std::arch::x86_64::*;

use super::{Lane, Rows, avx2_stream, avx2_sums, generic};

/// Words that a vector of bytes belongs to.
const VECTOR: usize = 32;

/// Writes the runs of `rows` with `group`, which handles exactly `VECTOR` words, and `half`, which handles half as
/// many. What is left of a run at its end is written by a group that starts earlier and repeats some words.
///
/// # Safety
///
/// As for [`super::interleave`]; `group(first, dst)` and `half(first, dst)` must write their words from `first` on to
/// `dst` and touch nothing else.
#[inline(always)]
unsafe fn interleave_by<const W: usize>(
    lanes: [Lane; W],
    rows: Rows,
    dst: *mut u8,
    dst_stride: isize,
    group: impl Fn(usize, *mut u8),
    half: impl Fn(usize, *mut u8),
) {
    for r in 0..rows.rows {
        // SAFETY: the caller vouches for the places of each run.
        let dst = unsafe { dst.offset(r as isize * dst_stride) };
        let (first, len) = (rows.first + r * rows.step, rows.len);
        // SAFETY: `i` is at most the length of a run, for whose place the caller vouches.
        let place = |i: usize| unsafe { dst.add(i * W) };
        if len >= VECTOR {
            for i in (0..len - VECTOR + 1).step_by(VECTOR) {
                group(first + i, place(i));
            }
            let left = len % VECTOR;
            if left > VECTOR / 2 {
                group(first + len - VECTOR, place(len - VECTOR));
            } else if left > 0 {
                half(first + len - VECTOR / 2, place(len - VECTOR / 2));
            }
        } else if len >= VECTOR / 2 {
            half(first, place(0));
            if len > VECTOR / 2 {
                half(first + len - VECTOR / 2, place(len - VECTOR / 2));
            }
        } else {
            // SAFETY: the run lies within the planes and the caller vouches for its place.
            unsafe { generic::interleave_run(lanes, first, len, dst) };
        }
    }
}

/// Loads 32 bytes of each lane from word `i` on.
///
/// # Safety
///
/// The planes must have 32 bytes from `i` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const W: usize>(lanes: [Lane; W], i: usize) -> [__m256i; W] {
    // SAFETY: the caller vouches for the bytes; constant planes have 64.
    lanes.map(|lane| unsafe { _mm256_loadu_si256(lane.at(i).cast()) })
}

/// Loads 16 bytes of each lane from word `i` on.
///
/// # Safety
///
/// The planes must have 16 bytes from `i` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_half<const W: usize>(lanes: [Lane; W], i: usize) -> [__m128i; W] {
    // SAFETY: the caller vouches for the bytes; constant planes have 64.
    lanes.map(|lane| unsafe { _mm_loadu_si128(lane.at(i).cast()) })
}

/// Writes vectors whose lower halves belong together, and after them their upper halves.
///
/// # Safety
///
/// `dst` must be valid for writes of all of them.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store<const W: usize>(dst: *mut u8, vectors: [__m256i; W]) {
    for (j, pair) in vectors.chunks_exact(2).enumerate() {
        let lower = _mm256_permute2x128_si256::<0x20>(pair[0], pair[1]);
        let upper = _mm256_permute2x128_si256::<0x31>(pair[0], pair[1]);
        // SAFETY: the caller vouches for `W` vectors.
        unsafe {
            _mm256_storeu_si256(dst.add(32 * j).cast(), lower);
            _mm256_storeu_si256(dst.add(32 * j + 16 * W).cast(), upper);
        }
    }
}

/// Writes vectors one after the other.
///
/// # Safety
///
/// `dst` must be valid for writes of all of them.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_half<const W: usize>(dst: *mut u8, vectors: [__m128i; W]) {
    for (j, vector) in vectors.into_iter().enumerate() {
        // SAFETY: the caller vouches for `W` vectors.
        unsafe { _mm_storeu_si128(dst.add(16 * j).cast(), vector) };
    }
}

/// Defines, in terms of the unpack instructions of one vector width, the interleaving of 2, 4 and 8 vectors of bytes.
/// Within each 128-bit part, the results one after the other are the words of that part.
macro_rules! zips {
    ($zip2:ident, $zip4:ident, $zip8:ident, $vector:ty,
     $lo8:ident, $hi8:ident, $lo16:ident, $hi16:ident, $lo32:ident, $hi32:ident) => {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $zip2([a, b]: [$vector; 2]) -> [$vector; 2] {
            [$lo8(a, b), $hi8(a, b)]
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn $zip4([a, b, c, d]: [$vector; 4]) -> [$vector; 4] {
            let ([x0, x1], [y0, y1]) = ($zip2([a, b]), $zip2([c, d]));
            [$lo16(x0, y0), $hi16(x0, y0), $lo16(x1, y1), $hi16(x1, y1)]
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn $zip8([a, b, c, d, e, f, g, h]: [$vector; 8]) -> [$vector; 8] {
            let ([x0, x1, x2, x3], [y0, y1, y2, y3]) = ($zip4([a, b, c, d]), $zip4([e, f, g, h]));
            [
                $lo32(x0, y0),
                $hi32(x0, y0),
                $lo32(x1, y1),
                $hi32(x1, y1),
                $lo32(x2, y2),
                $hi32(x2, y2),
                $lo32(x3, y3),
                $hi32(x3, y3),
            ]
        }
    };
}
zips!(
    zip2,
    zip4,
    zip8,
    __m256i,
    _mm256_unpacklo_epi8,
    _mm256_unpackhi_epi8,
    _mm256_unpacklo_epi16,
    _mm256_unpackhi_epi16,
    _mm256_unpacklo_epi32,
    _mm256_unpackhi_epi32
);
zips!(
    zip2_half,
    zip4_half,
    zip8_half,
    __m128i,
    _mm_unpacklo_epi8,
    _mm_unpackhi_epi8,
    _mm_unpacklo_epi16,
    _mm_unpackhi_epi16,
    _mm_unpacklo_epi32,
    _mm_unpackhi_epi32
);

macro_rules! interleave {
    ($($name:ident, $stream:ident, $w:literal, $zip:ident, $zip_half:ident;)*) => {$(
        #[doc = concat!("[`interleave`](super::interleave) of ", $w, " planes.")]
        ///
        /// # Safety
        ///
        /// As there, and the processor must have AVX2.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name(lanes: [Lane; $w], rows: Rows, dst: *mut u8, dst_stride: isize) {
            // SAFETY: `interleave_by` asks for words within the run, for which the caller vouches.
            let group = |i: usize, dst: *mut u8| unsafe { store(dst, $zip(load(lanes, i))) };
            // SAFETY: as above.
            let half = |i: usize, dst: *mut u8| unsafe { store_half(dst, $zip_half(load_half(lanes, i))) };
            // SAFETY: the conditions are the caller's.
            unsafe { interleave_by(lanes, rows, dst, dst_stride, group, half) };
        }

        #[doc = concat!("As [`", stringify!($name), "`], past the caches.")]
        ///
        /// # Safety
        ///
        /// As there.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $stream(lanes: [Lane; $w], rows: Rows, dst: *mut u8, dst_stride: isize) {
            // SAFETY: `avx2_stream` asks for words within the runs, for which the caller vouches.
            let zip = |first: usize| unsafe { $zip_half(load_half(lanes, first)) };
            // SAFETY: the conditions are the caller's.
            let plain = |run: Rows, dst: *mut u8| unsafe { $name(lanes, run, dst, 0) };
            // SAFETY: as above.
            unsafe { avx2_stream::interleave_by(rows, dst, dst_stride, zip, plain) };
        }
    )*};
}
interleave! {
    interleave2, stream2, 2, zip2, zip2_half;
    interleave4, stream4, 4, zip4, zip4_half;
    interleave8, stream8, 8, zip8, zip8_half;
}

macro_rules! undo {
    ($($name:ident, $word:ty, $w:literal, $interleave:path, $sum:ident, [$($halves:literal),*];)*) => {$(
        #[doc = concat!("[`undo_differences`](super::undo_differences) for words of ", $w, " bytes.")]
        ///
        /// # Safety
        ///
        /// As there, and the processor must have AVX2.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name(lanes: [Lane; $w], stride: usize, len: usize, dst: *mut u8) {
            let tiles = |first: usize, len: usize, tile: *mut $word| {
                // SAFETY: `undo_tiles` and the loop below ask for differences of the first `len` words, which the planes
                // have.
                unsafe { $interleave(lanes, Rows { first, len, rows: 1, step: 0 }, tile.cast(), 0) };
            };
            match stride.saturating_mul($w) {
                $($halves => {
                    let mut tile = [0; generic::TILE];
                    let mut last = _mm256_setzero_si256();
                    for first in (0..len).step_by(generic::TILE) {
                        let here = generic::TILE.min(len - first);
                        tiles(first, here, tile.as_mut_ptr());
                        // SAFETY: a tile is a whole number of vectors; `dst` has room for the words from `first` on.
                        unsafe {
                            let (dst, room) = (dst.add(first * $w), (len - first) * $w);
                            last = avx2_sums::$sum::<$halves>(tile.as_ptr().cast(), here * $w, dst, room, last);
                        }
                    }
                })*
                // SAFETY: the conditions are the caller's.
                _ => unsafe { generic::undo_tiles(stride, len, dst.cast(), tiles) },
            }
        }
    )*};
}
undo! {
    undo1, u8, 1, generic::interleave::<u8, 1>, sum1, [1, 2, 4, 8, 16];
    undo2, u16, 2, interleave2, sum2, [2, 4, 8, 16];
    undo4, u32, 4, interleave4, sum4, [4, 8, 16];
    undo8, u64, 8, interleave8, sum8, [8, 16];
}

/// Loads the 16 bytes from `low` and from `high` on as one vector.
#[cfg(feature = "write")]
#[inline]
#[target_feature(enable = "avx2")]
fn load_pair(low: &[u8; 16], high: &[u8; 16]) -> __m256i {
    // SAFETY: the references are valid for reads of 16 bytes.
    unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) }
}

/// Takes 32 words apart: within each 128-bit part of `vectors` stand 16 of them one after the other.
#[cfg(feature = "write")]
#[inline]
#[target_feature(enable = "avx2")]
fn unzip2([a, b]: [__m256i; 2]) -> [__m256i; 2] {
    let even_first =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    let (a, b) = (_mm256_shuffle_epi8(a, even_first), _mm256_shuffle_epi8(b, even_first));
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
}

/// As [`unzip2`], for words of 4 bytes.
#[cfg(feature = "write")]
#[inline]
#[target_feature(enable = "avx2")]
fn unzip4(vectors: [__m256i; 4]) -> [__m256i; 4] {
    let by_byte =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    let [a, b, c, d] = vectors.map(|vector| _mm256_shuffle_epi8(vector, by_byte));
    let (x0, x1) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (y0, y1) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(x0, y0),
        _mm256_unpackhi_epi64(x0, y0),
        _mm256_unpacklo_epi64(x1, y1),
        _mm256_unpackhi_epi64(x1, y1),
    ]
}

/// As [`unzip2`], for words of 8 bytes.
#[cfg(feature = "write")]
#[inline]
#[target_feature(enable = "avx2")]
fn unzip8(vectors: [__m256i; 8]) -> [__m256i; 8] {
    let by_byte =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    let pairs = vectors.map(|vector| _mm256_shuffle_epi8(vector, by_byte));
    // Two words each: bytes 0 to 3 of both in the lower, 4 to 7 in the upper half of each 128-bit part.
    let quarter = |a, b, c, d| {
        let (x0, x1) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
        let (y0, y1) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
        [
            _mm256_unpacklo_epi32(x0, y0),
            _mm256_unpackhi_epi32(x0, y0),
            _mm256_unpacklo_epi32(x1, y1),
            _mm256_unpackhi_epi32(x1, y1),
        ]
    };
    let [a, b, c, d, e, f, g, h] = pairs;
    let (x, y) = (quarter(a, b, c, d), quarter(e, f, g, h));
    std::array::from_fn(|k| match k % 2 {
        0 => _mm256_unpacklo_epi64(x[k / 2], y[k / 2]),
        _ => _mm256_unpackhi_epi64(x[k / 2], y[k / 2]),
    })
}

macro_rules! split {
    ($($name:ident, $w:literal, $unzip:ident;)*) => {$(
        #[doc = concat!("[`split`](super::split) for words of ", $w, " bytes.")]
        #[cfg(feature = "write")]
        #[target_feature(enable = "avx2")]
        pub(super) fn $name(items: &[u8], planes: &mut [u8]) {
            let n = items.len() / $w;
            let (parts, _) = items.as_chunks::<16>();
            let groups = n / VECTOR;
            for (group, parts) in parts.chunks_exact(2 * $w).enumerate() {
                let vectors = std::array::from_fn(|j| load_pair(&parts[j], &parts[$w + j]));
                for (k, vector) in $unzip(vectors).into_iter().enumerate() {
                    let plane = &mut planes[k * n + group * VECTOR..][..VECTOR];
                    // SAFETY: the reference is valid for writes of one vector.
                    unsafe { _mm256_storeu_si256(plane.as_mut_ptr().cast(), vector) };
                }
            }
            let done = groups * VECTOR;
            for (i, word) in items[done * $w..].chunks_exact($w).enumerate() {
                for (k, byte) in word.iter().enumerate() {
                    planes[k * n + done + i] = *byte;
                }
            }
        }
    )*};
}
split! {
    split2, 2, unzip2;
    split4, 4, unzip4;
    split8, 8, unzip8;
}

macro_rules! differences {
    ($($name:ident, $word:ty, $w:literal;)*) => {$(
        #[doc = concat!("[`differences`](super::differences) of words of ", $w, " bytes.")]
        #[cfg(feature = "write")]
        #[target_feature(enable = "avx2")]
        pub(super) fn $name(items: &[u8], before: usize, out: &mut [u8]) {
            generic::differences::<$word, $w>(items, before, out);
        }
    )*};
}
differences! {
    differences1, u8, 1;
    differences2, u16, 2;
    differences4, u32, 4;
    differences8, u64, 8;
}
