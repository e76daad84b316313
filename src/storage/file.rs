//! A file of the operating system.

use super::{Backend, Source, Storage};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is read and written at offsets.
#[cfg(unix)]
struct Positioned(File);

#[cfg(unix)]
impl Positioned {
    fn new(file: File) -> Positioned {
        Positioned(file)
    }

    fn with<R>(&self, work: impl FnOnce(&File) -> R) -> R {
        work(&self.0)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buf, offset)
    }

    #[cfg(feature = "write")]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }
}

/// A file that is read and written at offsets, one call after the other: elsewhere a file has but one position.
#[cfg(not(unix))]
struct Positioned(parking_lot::Mutex<File>);

#[cfg(not(unix))]
impl Positioned {
    fn new(file: File) -> Positioned {
        Positioned(parking_lot::Mutex::new(file))
    }

    fn with<R>(&self, work: impl FnOnce(&File) -> R) -> R {
        work(&self.0.lock())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        use std::io::{Read, Seek};
        let mut file = self.0.lock();
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }

    #[cfg(feature = "write")]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, Write};
        let mut file = self.0.lock();
        file.seek(io::SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }
}

/// An open file.
pub(crate) struct FileStorage {
    file: Arc<Positioned>,
    path: PathBuf,
    backend: Backend,
}

impl FileStorage {
    pub(crate) fn new(file: File, path: &Path, backend: Backend) -> io::Result<FileStorage> {
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            Ok(FileStorage { file: Arc::new(Positioned::new(file)), path: path.to_path_buf(), backend })
        } else if kind.is_dir() {
            Err(io::Error::from(io::ErrorKind::IsADirectory))
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a device or a pipe, and a store needs a regular file",
            ))
        }
    }
}

impl Storage for FileStorage {
    fn name(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> io::Result<u64> {
        self.file.with(|file| Ok(file.metadata()?.len()))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buf)
    }

    #[cfg_attr(not(feature = "mmap"), expect(unused_variables, reason = "only a map has an end"))]
    fn source(&self, end: u64) -> io::Result<Arc<dyn Source>> {
        match self.backend {
            #[cfg(feature = "mmap")]
            Backend::Mmap => Ok(Arc::new(self.file.with(|file| super::mmap::MapSource::new(file, end))?)),
            Backend::Pread => Ok(Arc::new(PreadSource(self.file.clone()))),
        }
    }

    #[cfg(feature = "write")]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    #[cfg(feature = "write")]
    fn sync_data(&self) -> io::Result<()> {
        self.file.with(File::sync_data)
    }
}

/// Reads each range when it is asked for.
struct PreadSource(Arc<Positioned>);

impl Source for PreadSource {
    fn borrow(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
}
