//! Lists of free space (SPEC.md §13).
//!
//! | offset | size | what |
//! | --- | --- | --- |
//! | 0 | 16 | frame header |
//! | 16 | 40 | pointer to the list before |
//! | 56 | 8 | number n of entries |
//! | 64 | 32 n | entries: offset, length, birth, freed |
//! | | | reserved |

use super::pointer::{Bounds, Extent, Kind, Pointer};
use super::wire::Fields;
use crate::error::Damage;

const ENTRIES_AT: usize = 64;
const ENTRY_LEN: usize = 32;

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

/// What one commit said of free space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeList {
    /// What commits before said, of which this is a correction.
    pub(crate) before: Pointer,
    /// By ascending offset: the extent that is free there, or that none begins there any more.
    pub(crate) entries: Vec<(u64, Option<Free>)>,
}

impl FreeList {
    /// Bytes of a list with `entries` entries.
    #[cfg(feature = "write")]
    pub(crate) const fn len_of(entries: usize) -> usize {
        ENTRIES_AT + ENTRY_LEN * entries
    }

    pub(crate) fn parse(frame: &[u8], bounds: Bounds) -> Result<FreeList, Damage> {
        let mut fields = Fields::new(frame, "list of free space");
        fields.skip(super::FRAME_HEADER_LEN)?;
        let before = Pointer::parse(&fields.array()?, bounds)?.expect(Kind::Free)?;
        let count = fields.u64()?;
        let room = frame.len().saturating_sub(ENTRIES_AT) / ENTRY_LEN;
        let count = usize::try_from(count).ok().filter(|count| *count <= room).ok_or_else(|| {
            Damage::new(format!("a list of free space of {count} entries with room for {room}"))
        })?;
        let mut entries: Vec<(u64, Option<Free>)> = Vec::with_capacity(count);
        for _ in 0..count {
            let (offset, len, birth, freed) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
            if entries.last().is_some_and(|(last, _)| *last >= offset) {
                return Err(Damage::new("a list of free space whose offsets do not ascend"));
            }
            let extent = Extent::checked(offset, len, bounds)?;
            if extent.padded_len() != len || birth > freed || freed > bounds.generation {
                return Err(Damage::new(format!(
                    "free space of {len} bytes at {offset}, born in generation {birth} and freed in {freed}, which cannot be"
                )));
            }
            entries.push((offset, (len > 0).then_some(Free { len, birth, freed })));
        }
        Ok(FreeList { before, entries })
    }

    /// The frame, with room for its header.
    #[cfg(feature = "write")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut frame = vec![0; super::FRAME_HEADER_LEN];
        frame.extend_from_slice(&self.before.encode());
        frame.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        for (offset, free) in &self.entries {
            let Free { len, birth, freed } = free.unwrap_or(Free { len: 0, birth: 0, freed: 0 });
            [*offset, len, birth, freed]
                .iter()
                .for_each(|number| frame.extend_from_slice(&number.to_le_bytes()));
        }
        frame
    }
}
