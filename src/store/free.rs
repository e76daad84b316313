//! Reading what is free.

use super::Frames;
use crate::error::{Damage, Result};
use crate::format::{Free, FreeList, Pointer};
use std::collections::BTreeMap;

/// The free space of a root.
pub(crate) struct FreeSpace {
    /// The lists that say so, from the newest to the oldest.
    pub(crate) lists: Vec<Pointer>,
    /// What is free, by offset.
    pub(crate) extents: BTreeMap<u64, Free>,
}

impl FreeSpace {
    /// Reads all lists from the newest one, `newest`, on.
    pub(crate) fn read(frames: &Frames, newest: &Pointer) -> Result<FreeSpace> {
        let mut lists = Vec::new();
        // Newer lists come first, and what they say of an offset counts.
        let mut said: BTreeMap<u64, Option<Free>> = BTreeMap::new();
        let mut pointer = *newest;
        let mut budget = frames.bounds().end;
        let mut buf = Vec::new();
        while let Pointer::Frame { extent, .. } = pointer {
            // All of them together cannot be longer than the file, unless they go round in a circle.
            budget = budget.checked_sub(extent.len).ok_or_else(|| {
                frames.damage(Damage::new("lists of free space without end"), Some(extent.offset))
            })?;
            let list = FreeList::parse(frames.checked(&pointer, &mut buf)?, frames.bounds())
                .map_err(|damage| frames.damage(damage, Some(extent.offset)))?;
            for (offset, free) in list.entries {
                said.entry(offset).or_insert(free);
            }
            lists.push(pointer);
            pointer = list.before;
        }
        let extents = said.into_iter().filter_map(|(offset, free)| Some((offset, free?))).collect();
        Ok(FreeSpace { lists, extents })
    }
}
