//! The map of a file. The one place where memory that others may change is taken for a slice.

use super::Source;
use crate::num::saturating_usize;
use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;

/// A read-only map of the start of a file.
pub(super) struct MapSource(Mmap);

impl MapSource {
    /// Maps the first `end` bytes. The map may be longer than the file, but what is behind the file's end must not be
    /// touched; pointers are kept to the logical end for that.
    pub(super) fn new(file: &File, end: u64) -> io::Result<MapSource> {
        let len = saturating_usize(end);
        // SAFETY: the map is read-only and shared. Writers of brickmap never overwrite what a root reaches while it may
        // be read, and never truncate a file. That no other program does either is the documented condition of
        // `Backend::Mmap`; `Backend::Pread` is for files where it does not hold.
        let map = unsafe { MmapOptions::new().len(len).map(file)? };
        Ok(MapSource(map))
    }
}

impl Source for MapSource {
    #[inline]
    fn borrow(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.0.get(saturating_usize(offset)..)?.get(..len)
    }
}
