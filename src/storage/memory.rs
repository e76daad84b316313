//! A store that is already in memory.

use super::{Source, Storage};
use crate::num::saturating_usize;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes in memory, shared with whoever owns them. They cannot be written.
pub(crate) struct MemoryStorage(Owner);

impl MemoryStorage {
    pub(crate) fn new(owner: Owner) -> MemoryStorage {
        MemoryStorage(owner)
    }
}

impl Storage for MemoryStorage {
    fn name(&self) -> &Path {
        Path::new("<memory>")
    }

    fn len(&self) -> io::Result<u64> {
        Ok((*self.0).as_ref().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        MemorySource(self.0.clone()).read_at(offset, buf)
    }

    fn source(&self, _end: u64, _copying: bool) -> io::Result<Arc<dyn Source>> {
        Ok(Arc::new(MemorySource(self.0.clone())))
    }

    fn lock(&self, _at: u64, _alone: bool) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self, _at: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn conflict(&self, _range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(feature = "write")]
    fn lock_whole(&self) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(feature = "write")]
    fn unlock_whole(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reopen(&self, _write: bool) -> io::Result<Arc<dyn Storage>> {
        Ok(Arc::new(MemoryStorage(self.0.clone())))
    }

    fn boot_id(&self) -> [u8; 16] {
        super::boot::id()
    }

    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    #[cfg(feature = "write")]
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    #[cfg(feature = "write")]
    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    #[cfg(feature = "write")]
    fn take_name(&self, _over: Option<&dyn Storage>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn present_path(&self) -> &Path {
        self.name()
    }

    #[cfg(feature = "write")]
    fn permissions(&self) -> io::Result<std::fs::Permissions> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(feature = "write")]
    fn remove(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(feature = "write")]
    fn sync_directory(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

struct MemorySource(Owner);

impl Source for MemorySource {
    fn borrow(&self, offset: u64, len: usize) -> Option<&[u8]> {
        (*self.0).as_ref().get(saturating_usize(offset)..)?.get(..len)
    }
}
