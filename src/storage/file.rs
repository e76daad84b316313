//! A file of the operating system.

use super::{Backend, Source, Storage};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file.
pub(crate) struct FileStorage {
    file: Arc<File>,
    path: PathBuf,
    backend: Backend,
}

impl FileStorage {
    pub(crate) fn new(file: File, path: &Path, backend: Backend) -> io::Result<FileStorage> {
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            Ok(FileStorage { file: Arc::new(file), path: path.to_path_buf(), backend })
        } else if kind.is_dir() {
            Err(io::Error::from(io::ErrorKind::IsADirectory))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe, and a store needs a regular file"))
        }
    }
}

impl Storage for FileStorage {
    fn name(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn source(&self, end: u64) -> io::Result<Arc<dyn Source>> {
        match self.backend {
            #[cfg(feature = "mmap")]
            Backend::Mmap => Ok(Arc::new(super::mmap::MapSource::new(&self.file, end)?)),
            Backend::Pread => Ok(Arc::new(PreadSource(self.file.clone()))),
        }
    }

    #[cfg(feature = "write")]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    #[cfg(feature = "write")]
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Reads each range when it is asked for.
struct PreadSource(Arc<File>);

impl Source for PreadSource {
    fn borrow(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }
}
