//! Entries of the free-space tree (SPEC.md §13).

use super::pointer::{Bounds, Extent};
use super::tree_page::TreeCell;
use crate::error::Damage;

/// A run of file space that the root does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    /// A multiple of the alignment.
    pub(crate) len: u64,
    /// The generation that wrote it.
    pub(crate) birth: u64,
    /// The generation whose commit let it go.
    pub(crate) freed: u64,
}

impl Free {
    /// The offset and the rest of an entry.
    pub(crate) fn parse(key: &[u8], cell: &TreeCell<'_>, bounds: Bounds) -> Result<(u64, Free), Damage> {
        let wrong = || Damage::new("an entry of the free-space tree that is not one");
        let TreeCell::Inline(value) = *cell else { return Err(wrong()) };
        let offset = u64::from_be_bytes(key.try_into().map_err(|_| wrong())?);
        let numbers: &[u8; 24] = value.try_into().map_err(|_| wrong())?;
        let number = |at: usize| {
            numbers.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
        };
        let (Some(len), Some(birth), Some(freed)) = (number(0), number(8), number(16)) else {
            return Err(wrong());
        };
        let extent = Extent::checked(offset, len, bounds)?;
        if len == 0 || extent.padded_len() != len || birth > freed || freed > bounds.generation {
            return Err(Damage::new(format!(
                "free space of {len} bytes at {offset}, born in generation {birth} and freed in {freed}, which cannot be"
            )));
        }
        Ok((offset, Free { len, birth, freed }))
    }

    /// The value of an entry.
    #[cfg(feature = "write")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        [self.len, self.birth, self.freed].iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}
