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
    /// Offsets of which the lists of free space may not say what is so here.
    touched: BTreeSet<u64>,
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
        }
    }

    /// Adds what a list of free space says.
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

    /// How many offsets there are of which the lists of free space may say something else.
    pub(super) fn touched_len(&self) -> usize {
        self.touched.len()
    }

    /// What is free, or will be, at the offsets of which the lists may say something else; from here on they are right.
    pub(super) fn take_touched(&mut self) -> Vec<(u64, Option<Free>)> {
        let touched = std::mem::take(&mut self.touched);
        let free = |offset| self.free.get(&offset).or_else(|| self.held.get(&offset)).copied();
        touched.into_iter().map(|offset| (offset, free(offset))).collect()
    }

    /// How many extents are free, or will be.
    pub(super) fn extent_count(&self) -> usize {
        self.free.len() + self.held.len()
    }

    /// All of them, by offset; from here on the lists are right.
    pub(super) fn take_all(&mut self) -> Vec<(u64, Option<Free>)> {
        self.touched.clear();
        let mut all: Vec<_> =
            self.free.iter().chain(&self.held).map(|(&offset, &free)| (offset, Some(free))).collect();
        all.sort_unstable_by_key(|(offset, _)| *offset);
        all
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
    pub(super) fn add(&mut self, space: &mut Space, kind: Kind, frame: Vec<u8>) -> Result<Pointer> {
        let extent = space.take(frame.len() as u64)?;
        self.add_at(space, kind, frame, extent)
    }

    /// As [`PageBatch::add`], in an extent of the frame's length that was taken before.
    pub(super) fn add_at(
        &mut self,
        space: &Space,
        kind: Kind,
        mut frame: Vec<u8>,
        extent: Extent,
    ) -> Result<Pointer> {
        let pointer = seal_frame(&mut frame, kind, extent.offset, extent.len, space.generation())
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
