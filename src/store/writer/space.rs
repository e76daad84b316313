//! File space of one transaction: what it takes, and what it no longer reaches.
//!
//! An extent that a commit let go of is free once no generation that may still be read can see it, and stays so: a
//! generation that could see it would have to be the newest, or be listed as alive. So free extents that touch are
//! joined, and their births are forgotten.

use crate::error::{Damage, Error, Result};
use crate::format::{ALIGNMENT, Extent, Free, Kind, Pointer, seal_frame};
use crate::num::round_up;
use crate::shape::MAX_LEN;
use std::collections::{BTreeMap, BTreeSet};

/// Takes space for new frames, and notes what is let go.
pub(crate) struct Space {
    end: u64,
    generation: u64,
    /// By offset: what can be taken.
    free: BTreeMap<u64, Free>,
    /// (length, offset) of the same extents.
    by_len: BTreeSet<(u64, u64)>,
    /// By offset: what some generation may still see.
    held: BTreeMap<u64, Free>,
    /// Offsets whose entries in the free-space tree may not be as they are here.
    touched: BTreeSet<u64>,
    /// Where the next extents come from, if their space was set aside.
    reserved: Option<(u64, u64)>,
}

impl Space {
    /// Space for the transaction that will publish `generation`, from the logical end `end` on.
    pub(super) fn new(end: u64, generation: u64) -> Space {
        Space {
            end,
            generation,
            free: BTreeMap::new(),
            by_len: BTreeSet::new(),
            held: BTreeMap::new(),
            touched: BTreeSet::new(),
            reserved: None,
        }
    }

    /// Adds an entry of the free-space tree.
    pub(super) fn load(&mut self, offset: u64, free: Free) {
        self.held.insert(offset, free);
    }

    /// Goes on to the next transaction, after its generation was published. `kept` are the generations that may still
    /// be read, ascending; `None` if that is not known, and nothing becomes free.
    pub(super) fn advance(&mut self, kept: Option<&BTreeSet<u64>>) {
        self.generation += 1;
        self.settle(kept);
    }

    /// Finds out what can be taken.
    pub(super) fn settle(&mut self, kept: Option<&BTreeSet<u64>>) {
        let Some(kept) = kept else { return };
        let unseen: Vec<u64> = self
            .held
            .iter()
            .filter(|(_, free)| kept.range(free.birth..free.freed).next().is_none())
            .map(|(offset, _)| *offset)
            .collect();
        for offset in unseen {
            if let Some(free) = self.held.remove(&offset) {
                self.give(offset, free);
            }
        }
    }

    /// The logical end with what was taken so far.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The generation that the transaction will publish.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes an extent of `len` bytes: from the smallest free one that has them, else at the end.
    pub(crate) fn take(&mut self, len: u64) -> Result<Extent> {
        let padded = round_up(len, ALIGNMENT).filter(|&len| len <= MAX_LEN).ok_or_else(|| self.full(len))?;
        if let Some((from, to)) = self.reserved {
            if to - from < padded {
                return Err(Error::InvalidState { what: "too little space was set aside for pages".into() });
            }
            self.reserved = Some((from + padded, to));
            return Ok(Extent { offset: from, len });
        }
        if let Some(&(_, offset)) = self.by_len.range((padded, 0)..).next()
            && let Some(free) = self.remove(offset)
        {
            if free.len > padded {
                self.insert(offset + padded, Free { len: free.len - padded, ..free });
            }
            return Ok(Extent { offset, len });
        }
        // A free extent at the end need not be large enough, since more can follow it.
        let last = self.free.last_key_value().map(|(&offset, free)| (offset, free.len));
        let offset = match last.filter(|(offset, len)| offset + len == self.end) {
            Some((offset, _)) => offset,
            None => self.end,
        };
        let end = offset.checked_add(padded).filter(|&end| end <= MAX_LEN).ok_or_else(|| self.full(len))?;
        self.remove(offset);
        self.end = end;
        Ok(Extent { offset, len })
    }

    fn full(&self, len: u64) -> Error {
        Error::TooLarge { what: format!("a file of {} and {len} bytes; 2^63 - 1 is the limit", self.end) }
    }

    /// Notes that the new root does not reach an extent any more. What the transaction itself wrote is free at once.
    pub(crate) fn release(&mut self, extent: Extent, birth: u64) {
        let free = Free { len: extent.padded_len(), birth, freed: self.generation };
        self.touched.insert(extent.offset);
        if birth == self.generation {
            self.give(extent.offset, free);
        } else {
            self.held.insert(extent.offset, free);
        }
    }

    /// Notes that the new root does not reach a frame any more.
    pub(crate) fn release_frame(&mut self, pointer: &Pointer) {
        if let Pointer::Frame { extent, birth, .. } = *pointer {
            self.release(extent, birth);
        }
    }

    /// One of the offsets whose entry in the free-space tree may have to change, and what it is to be.
    pub(super) fn pop_touched(&mut self) -> Option<(u64, Option<Free>)> {
        let offset = self.touched.pop_first()?;
        Some((offset, self.free.get(&offset).or_else(|| self.held.get(&offset)).copied()))
    }

    /// A free extent that stays when `len` bytes are taken from it.
    pub(super) fn donor(&self, len: u64) -> Option<(u64, Free)> {
        let &(_, offset) = self.by_len.range((len + 1, 0)..).next()?;
        Some((offset, *self.free.get(&offset)?))
    }

    /// Sets `len` bytes aside for the next extents: from the end of the free extent at `donor`, whose entry is
    /// returned, or at the end of the file.
    pub(super) fn reserve(&mut self, donor: Option<u64>, len: u64) -> Result<Option<Free>> {
        if let Some(offset) = donor
            && let Some(free) = self.free.get(&offset).copied().filter(|free| free.len > len)
        {
            let rest = Free { len: free.len - len, ..free };
            self.by_len.remove(&(free.len, offset));
            self.by_len.insert((rest.len, offset));
            self.free.insert(offset, rest);
            self.reserved = Some((offset + rest.len, offset + free.len));
            return Ok(Some(rest));
        }
        let end = self.end.checked_add(len).filter(|&end| end <= MAX_LEN).ok_or_else(|| self.full(len))?;
        self.reserved = Some((self.end, end));
        self.end = end;
        Ok(None)
    }

    /// Ends what [`Space::reserve`] began; all of it must have been taken.
    pub(super) fn end_reserve(&mut self) -> Result<()> {
        match self.reserved.take() {
            Some((from, to)) if from < to => Err(Error::InvalidState {
                what: format!("{} bytes were set aside for pages and not used", to - from),
            }),
            _ => Ok(()),
        }
    }

    /// Adds a free extent, joined with its neighbours.
    fn give(&mut self, offset: u64, free: Free) {
        let before = self.free.range(..offset).next_back().map(|(&at, free)| (at, *free));
        let before = before.filter(|(at, left)| at + left.len == offset);
        let after = self.remove(offset + free.len);
        if before.is_none() && after.is_none() {
            // Its entry, if it has one, stays as it is.
            self.place(offset, free);
            return;
        }
        let (mut start, mut whole) = (offset, free);
        if let Some((at, left)) = before {
            self.remove(at);
            self.touched.insert(offset);
            (start, whole) = (at, joined(left, whole));
        }
        if let Some(right) = after {
            whole = joined(whole, right);
        }
        self.insert(start, whole);
    }

    fn place(&mut self, offset: u64, free: Free) {
        self.by_len.insert((free.len, offset));
        self.free.insert(offset, free);
    }

    fn insert(&mut self, offset: u64, free: Free) {
        self.touched.insert(offset);
        self.place(offset, free);
    }

    fn remove(&mut self, offset: u64) -> Option<Free> {
        let free = self.free.remove(&offset)?;
        self.by_len.remove(&(free.len, offset));
        self.touched.insert(offset);
        Some(free)
    }
}

fn joined(left: Free, right: Free) -> Free {
    let freed = left.freed.max(right.freed);
    Free { len: left.len + right.len, birth: freed, freed }
}

/// Pages on their way to the file, gathered so that neighbours are written at once.
#[derive(Default)]
pub(crate) struct PageBatch {
    runs: Vec<(u64, Vec<u8>)>,
}

impl PageBatch {
    /// Adds a frame, all of which its checksum covers, and gives the pointer to it.
    pub(super) fn add(&mut self, space: &mut Space, kind: Kind, mut frame: Vec<u8>) -> Result<Pointer> {
        let len = frame.len() as u64;
        let extent = space.take(len)?;
        let pointer = seal_frame(&mut frame, kind, extent.offset, len, space.generation())
            .map_err(|Damage(what)| Error::TooLarge { what })?;
        frame.resize(crate::num::saturating_usize(extent.padded_len()), 0);
        match self.runs.last_mut() {
            Some((offset, bytes)) if *offset + bytes.len() as u64 == extent.offset => {
                bytes.append(&mut frame)
            }
            _ => self.runs.push((extent.offset, frame)),
        }
        Ok(pointer)
    }

    /// The bytes to write, with their offsets.
    pub(super) fn runs(&self) -> &[(u64, Vec<u8>)] {
        &self.runs
    }
}
