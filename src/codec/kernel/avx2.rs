//! The loops for x86-64 with AVX2.

use super::generic;
use super::{Lane, Rows};

/// Compiles a portable loop with AVX2.
macro_rules! with_avx2 {
    ($($(#[$attribute:meta])* $name:ident = $loop:expr, ($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        ///
        /// The processor must have AVX2; otherwise as for the portable loop.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name($($argument: $type),*) {
            #[allow(unused_unsafe, reason = "some of the loops are safe")]
            // SAFETY: the conditions of the loop are the caller's.
            unsafe { $loop($($argument),*) }
        }
    )*};
}

with_avx2! {
    /// [`generic::interleave`] of two planes.
    interleave2 = generic::interleave::<2>, (lanes: [Lane; 2], rows: Rows, dst: *mut u8, dst_stride: isize);
    /// [`generic::interleave`] of four planes.
    interleave4 = generic::interleave::<4>, (lanes: [Lane; 4], rows: Rows, dst: *mut u8, dst_stride: isize);
    /// [`generic::interleave`] of eight planes.
    interleave8 = generic::interleave::<8>, (lanes: [Lane; 8], rows: Rows, dst: *mut u8, dst_stride: isize);
    /// [`generic::undo`] of words of 1 bytes.
    undo1 = generic::undo::<u8, 1>, (lanes: [Lane; 1], stride: usize, len: usize, dst: *mut u8);
    /// [`generic::undo`] of words of 2 bytes.
    undo2 = generic::undo::<u16, 2>, (lanes: [Lane; 2], stride: usize, len: usize, dst: *mut u8);
    /// [`generic::undo`] of words of 4 bytes.
    undo4 = generic::undo::<u32, 4>, (lanes: [Lane; 4], stride: usize, len: usize, dst: *mut u8);
    /// [`generic::undo`] of words of 8 bytes.
    undo8 = generic::undo::<u64, 8>, (lanes: [Lane; 8], stride: usize, len: usize, dst: *mut u8);
    /// [`generic::split`] of words of 2 bytes.
    #[cfg(feature = "write")]
    split2 = generic::split::<2>, (items: &[u8], planes: &mut [u8]);
    /// [`generic::split`] of words of 4 bytes.
    #[cfg(feature = "write")]
    split4 = generic::split::<4>, (items: &[u8], planes: &mut [u8]);
    /// [`generic::split`] of words of 8 bytes.
    #[cfg(feature = "write")]
    split8 = generic::split::<8>, (items: &[u8], planes: &mut [u8]);
    /// [`generic::differences`] of words of 1 bytes.
    #[cfg(feature = "write")]
    differences1 = generic::differences::<u8, 1>, (items: &[u8], before: usize, out: &mut [u8]);
    /// [`generic::differences`] of words of 2 bytes.
    #[cfg(feature = "write")]
    differences2 = generic::differences::<u16, 2>, (items: &[u8], before: usize, out: &mut [u8]);
    /// [`generic::differences`] of words of 4 bytes.
    #[cfg(feature = "write")]
    differences4 = generic::differences::<u32, 4>, (items: &[u8], before: usize, out: &mut [u8]);
    /// [`generic::differences`] of words of 8 bytes.
    #[cfg(feature = "write")]
    differences8 = generic::differences::<u64, 8>, (items: &[u8], before: usize, out: &mut [u8]);
}
