//! Running sums of zigzag codes with AVX2, for strides that divide half a vector.
//!
//! Stride times word width is then 1, 2, 4, 8 or 16 bytes. Within each half of a vector the sums take a logarithmic
//! number of shifted additions, none of which waits for the vector before; only one addition per vector does. A loop over
//! words waits once per word.

use std::arch::x86_64::*;

/// Bytes of a vector.
const VECTOR: usize = 32;

/// The last `B` bytes of each half of a vector over and over.
#[inline]
#[target_feature(enable = "avx2")]
fn last_of_halves<const B: usize>(x: __m256i) -> __m256i {
    if B == 16 {
        return x;
    }
    let from: [u8; 16] = std::array::from_fn(|i| (16 - B + i % B) as u8);
    // SAFETY: the array is valid for reads of 16 bytes.
    let from = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(from))
}

macro_rules! sums {
    ($($sum:ident, $step:ident, $add:ident, $sub:ident, $shift:ident, $one:expr, $halved:expr;)*) => {$(
        /// Writes the running sums of zigzag codes that stand `B` bytes apart, `len` bytes of them, on top of `last`: the
        /// sums before, over and over. Returns those at the end.
        ///
        /// What is read and written is rounded up to whole vectors, unless that would pass `room` bytes: then the last
        /// vector goes through a buffer.
        ///
        /// # Safety
        ///
        /// The processor must have AVX2. `codes` must be valid for reads of `len` bytes, rounded up to whole vectors, and
        /// `dst` for writes of `room`, which is at least `len`. `len` must be a whole number of vectors unless this is the
        /// last call.
        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $sum<const B: usize>(
            codes: *const u8,
            len: usize,
            dst: *mut u8,
            room: usize,
            mut last: __m256i,
        ) -> __m256i {
            for at in (0..len).step_by(VECTOR) {
                // SAFETY: reads end before `len` rounded up; writes end before `room`.
                unsafe {
                    let (sums, total) = $step::<B>(_mm256_loadu_si256(codes.add(at).cast()));
                    let sums = $add(sums, last);
                    if at + VECTOR <= room {
                        _mm256_storeu_si256(dst.add(at).cast(), sums);
                    } else {
                        let mut bytes = [0u8; VECTOR];
                        _mm256_storeu_si256(bytes.as_mut_ptr().cast(), sums);
                        dst.add(at).copy_from_nonoverlapping(bytes.as_ptr(), room - at);
                    }
                    last = $add(last, total);
                }
            }
            last
        }

        /// The running sums within one vector, and the last `B` bytes of them over and over.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $step<const B: usize>(codes: __m256i) -> (__m256i, __m256i) {
            let sign = $sub(_mm256_setzero_si256(), _mm256_and_si256(codes, $one));
            let halved = _mm256_and_si256($shift::<1>(codes), $halved);
            let mut x = _mm256_xor_si256(halved, sign);
            if B <= 1 {
                x = $add(x, _mm256_slli_si256::<1>(x));
            }
            if B <= 2 {
                x = $add(x, _mm256_slli_si256::<2>(x));
            }
            if B <= 4 {
                x = $add(x, _mm256_slli_si256::<4>(x));
            }
            if B <= 8 {
                x = $add(x, _mm256_slli_si256::<8>(x));
            }
            let halves = last_of_halves::<B>(x);
            let lower = _mm256_permute2x128_si256::<0x00>(halves, halves);
            let upper = _mm256_permute2x128_si256::<0x11>(halves, halves);
            let sums = $add(x, _mm256_permute2x128_si256::<0x08>(halves, halves));
            (sums, $add(lower, upper))
        }
    )*};
}
sums! {
    sum1, step1, _mm256_add_epi8, _mm256_sub_epi8, _mm256_srli_epi16, _mm256_set1_epi8(1), _mm256_set1_epi8(0x7f);
    sum2, step2, _mm256_add_epi16, _mm256_sub_epi16, _mm256_srli_epi16, _mm256_set1_epi16(1), _mm256_set1_epi8(-1);
    sum4, step4, _mm256_add_epi32, _mm256_sub_epi32, _mm256_srli_epi32, _mm256_set1_epi32(1), _mm256_set1_epi8(-1);
    sum8, step8, _mm256_add_epi64, _mm256_sub_epi64, _mm256_srli_epi64, _mm256_set1_epi64x(1), _mm256_set1_epi8(-1);
}
