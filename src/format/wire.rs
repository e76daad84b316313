//! Reading and writing little-endian fields, bounds-checked.

use crate::error::Damage;

/// XXH3-64 with seed 0 (SPEC.md §1).
#[inline]
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// A cursor over the bytes of one structure; `what` names the structure in messages.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Fields { rest: bytes, what }
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Damage> {
        let (head, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| Damage::new(format!("{} ends too early", self.what)))?;
        self.rest = rest;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| Damage::new(format!("{} ends too early", self.what)))?;
        self.rest = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Damage> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Damage> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Damage> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Damage> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// `count` 64-bit numbers.
    pub(super) fn dims(&mut self, count: usize) -> Result<crate::shape::Dims, Damage> {
        (0..count).map(|_| self.u64()).collect()
    }

    /// Passes over reserved bytes.
    pub(super) fn skip(&mut self, len: usize) -> Result<(), Damage> {
        self.bytes(len).map(|_| ())
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), Damage> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Damage::new(format!("{} has {} bytes too many", self.what, self.rest.len())))
        }
    }
}
