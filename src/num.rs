//! Conversions between integer sizes, the one place where they may lose something, and say how.

/// A length or offset as `usize`. What does not fit (on 32-bit targets only) becomes `usize::MAX`, which no slice
/// reaches, so that the bounds check that follows refuses it.
#[inline]
pub(crate) fn saturating_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// `value` rounded up to a multiple of `unit`, a power of two; `None` on overflow.
#[inline]
pub(crate) fn round_up(value: u64, unit: u64) -> Option<u64> {
    Some(value.checked_add(unit - 1)? & !(unit - 1))
}
