//! Writing what is free.
//!
//! A commit writes what it changed, as a correction of what the commits before wrote. When the corrections are longer than what
//! they correct, all is written anew. So a commit writes what it changed, and as much again for that; and nothing that is said
//! of free space moves other things about.

use super::Space;
use super::space::PageBatch;
use crate::error::{Damage, Result};
use crate::format::{Free, FreeList, Kind, Pointer};
use crate::store::Frames;
use crate::store::free::FreeSpace;
use std::collections::BTreeMap;

/// Entries of a list: with these it has 4096 bytes.
const ENTRIES: usize = 126;
/// Corrections of fewer bytes than these are worth no new beginning.
const FEW: u64 = 16 << 10;

/// The lists that stand in the file.
pub(super) struct FreeLists {
    /// The newest one comes last.
    lists: Vec<Pointer>,
    /// Bytes of those that a new beginning wrote, and of the corrections since.
    first: u64,
    corrections: u64,
}

impl FreeLists {
    /// Reads the lists of a root into `space`. Extents that overlap are damage.
    pub(super) fn load(frames: &Frames, newest: &Pointer, space: &mut Space) -> Result<FreeLists> {
        let FreeSpace { mut lists, extents } = FreeSpace::read(frames, newest)?;
        check_disjoint(frames, &extents)?;
        extents.into_iter().for_each(|(offset, free)| space.load(offset, free));
        lists.reverse();
        let begun = lists.first().map(birth);
        let (mut first, mut corrections) = (0, 0);
        for list in &lists {
            *(if Some(birth(list)) == begun { &mut first } else { &mut corrections }) += len(list);
        }
        Ok(FreeLists { lists, first, corrections })
    }

    /// Puts what `space` has become into `batch`, and gives the pointer to the newest list.
    pub(super) fn flush(&mut self, space: &mut Space, batch: &mut PageBatch) -> Result<Pointer> {
        let changed = space.touched_len();
        if changed == 0 {
            return Ok(self.newest());
        }
        let anew = self.lists.is_empty()
            || self.corrections + FreeList::len_of(changed) as u64 > self.first.max(FEW);
        if anew {
            self.lists.drain(..).for_each(|list| space.release_frame(&list));
        }
        if anew && space.extent_count() == 0 {
            space.take_all();
            return Ok(Pointer::Null);
        }
        // Taking space for a list cuts a free extent, or uses it up: that changes what is said of two offsets, and makes no more extents.
        let (most, per_list) = if anew { (space.extent_count(), ENTRIES) } else { (changed, ENTRIES - 2) };
        let mut left = most;
        let mut extents = Vec::new();
        loop {
            let entries = left.min(per_list);
            let room = entries + if anew { 0 } else { 2 };
            extents.push((space.take(FreeList::len_of(room) as u64)?, room));
            left -= entries;
            if left == 0 {
                break;
            }
        }
        let entries = if anew { space.take_all() } else { space.take_touched() };
        let mut rest = &entries[..];
        let mut written = 0;
        for (extent, room) in extents {
            let (here, after) = rest.split_at(room.min(rest.len()));
            rest = after;
            let list = FreeList { before: self.newest(), entries: here.to_vec() };
            let mut frame = list.encode();
            frame.resize(FreeList::len_of(room), 0);
            self.lists.push(batch.add_at(space, Kind::Free, frame, extent)?);
            written += extent.len;
        }
        debug_assert!(rest.is_empty());
        (self.first, self.corrections) =
            if anew { (written, 0) } else { (self.first, self.corrections + written) };
        Ok(self.newest())
    }

    fn newest(&self) -> Pointer {
        self.lists.last().copied().unwrap_or(Pointer::Null)
    }
}

fn birth(list: &Pointer) -> u64 {
    if let Pointer::Frame { birth, .. } = list { *birth } else { 0 }
}

fn len(list: &Pointer) -> u64 {
    if let Pointer::Frame { extent, .. } = list { extent.len } else { 0 }
}

fn check_disjoint(frames: &Frames, extents: &BTreeMap<u64, Free>) -> Result<()> {
    let mut end = 0;
    for (&offset, free) in extents {
        if offset < end {
            return Err(frames.damage(Damage::new("free extents that overlap"), Some(offset)));
        }
        end = offset + free.len;
    }
    Ok(())
}
