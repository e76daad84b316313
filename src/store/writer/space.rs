//! File space of one transaction: what it takes, and what it no longer reaches.

use crate::error::{Damage, Error, Result};
use crate::format::{ALIGNMENT, Extent, Kind, Pointer, seal_frame};
use crate::num::round_up;
use crate::shape::MAX_LEN;

/// Space that the transaction's root does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    /// With its padding.
    pub(crate) extent: Extent,
    /// The generation that wrote it.
    pub(crate) birth: u64,
}

/// Takes space for new frames at the end of the file, and notes what is let go.
pub(crate) struct Space {
    end: u64,
    generation: u64,
    freed: Vec<Freed>,
}

impl Space {
    /// Space for the transaction that will publish `generation`, from the logical end `end` on.
    pub(super) fn new(end: u64, generation: u64) -> Space {
        Space { end, generation, freed: Vec::new() }
    }

    /// The logical end with what was taken so far.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The generation that the transaction will publish.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes an extent of `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<Extent> {
        let extent = Extent { offset: self.end, len };
        let end = extent.offset.checked_add(len).and_then(|end| round_up(end, ALIGNMENT));
        match end {
            Some(end) if end <= MAX_LEN => {
                self.end = end;
                Ok(extent)
            }
            _ => Err(Error::TooLarge {
                what: format!("a file of {} and {len} bytes; 2^63 - 1 is the limit", self.end),
            }),
        }
    }

    /// Notes that the new root does not reach an extent any more.
    pub(crate) fn release(&mut self, extent: Extent, birth: u64) {
        self.freed.push(Freed { extent: Extent { len: extent.padded_len(), ..extent }, birth });
    }

    /// Notes that the new root does not reach a frame any more.
    pub(crate) fn release_frame(&mut self, pointer: &Pointer) {
        if let Pointer::Frame { extent, birth, .. } = *pointer {
            self.release(extent, birth);
        }
    }

    /// One of the extents that were released and not yet taken from here.
    pub(super) fn pop_freed(&mut self) -> Option<Freed> {
        self.freed.pop()
    }
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
