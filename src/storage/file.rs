//! A file of the operating system.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use super::locks;
#[cfg(feature = "write")]
use super::naming;
use super::{Backend, Source, Storage};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
        check_size_limit(offset.saturating_add(bytes.len() as u64))?;
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }
}

/// That the process may make a file of `len` bytes. Asked beforehand, since writing more ends the process by a signal.
#[cfg(all(target_os = "linux", feature = "write"))]
fn check_size_limit(len: u64) -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit};
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    if len > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "the file would have {len} bytes, and the limit of this process (RLIMIT_FSIZE) is {limit}"
            ),
        ));
    }
    Ok(())
}

#[cfg(all(unix, not(target_os = "linux"), feature = "write"))]
fn check_size_limit(_len: u64) -> io::Result<()> {
    Ok(())
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
    /// The path from the root directory, since the process may change its own.
    full_path: PathBuf,
    /// The name under which a new file is made, and whether it has got the other one.
    temporary: Option<(PathBuf, Arc<AtomicBool>)>,
    backend: Backend,
}

impl FileStorage {
    /// Opens the file at `path`.
    pub(crate) fn open(path: &Path, write: bool, backend: Backend) -> io::Result<FileStorage> {
        let mut options = File::options();
        options.read(true).write(write);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // Else a pipe is waited for that nobody writes to.
            options.custom_flags(libc::O_NONBLOCK);
        }
        FileStorage::new(options.open(path)?, path, std::path::absolute(path)?, None, backend)
    }

    /// Makes a file for `path`, under a temporary name until [`Storage::take_name`]. An error of kind `AlreadyExists` if
    /// that name is taken. `private` keeps it from other users until then.
    #[cfg(feature = "write")]
    pub(crate) fn create(path: &Path, private: bool, backend: Backend) -> io::Result<FileStorage> {
        let full_path = naming::resolve(path)?;
        let temporary = naming::temporary(&full_path);
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if private {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        let file = options.open(&temporary)?;
        FileStorage::new(file, path, full_path, Some((temporary, Arc::default())), backend)
    }

    /// Opens what is there under the temporary name of `path`, if anything.
    #[cfg(feature = "write")]
    pub(crate) fn open_temporary(path: &Path, backend: Backend) -> io::Result<Option<FileStorage>> {
        let full_path = naming::resolve(path)?;
        let temporary = naming::temporary(&full_path);
        let file = match File::options().read(true).write(true).open(&temporary) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if std::fs::metadata(full_path)
            .is_ok_and(|named| file.metadata().is_ok_and(|this| are_same(&named, &this)))
        {
            // A second name of a store that got its own, which locks cannot tell from it.
            std::fs::remove_file(temporary)?;
            return Ok(None);
        }
        FileStorage::new(file, path, temporary, None, backend).map(Some)
    }

    fn new(
        file: File,
        path: &Path,
        full_path: PathBuf,
        temporary: Option<(PathBuf, Arc<AtomicBool>)>,
        backend: Backend,
    ) -> io::Result<FileStorage> {
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            let file = Arc::new(Positioned::new(file));
            Ok(FileStorage { file, path: path.to_path_buf(), full_path, temporary, backend })
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
    fn source(&self, end: u64, copying: bool) -> io::Result<Arc<dyn Source>> {
        match self.backend {
            #[cfg(feature = "mmap")]
            Backend::Mmap if !copying => {
                Ok(Arc::new(self.file.with(|file| super::mmap::MapSource::new(file, end))?))
            }
            _ => Ok(Arc::new(PreadSource(self.file.clone()))),
        }
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn lock(&self, at: u64, alone: bool) -> io::Result<bool> {
        self.file.with(|file| locks::lock(file, at, alone)).map_err(missing_locks)
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn unlock(&self, at: u64) -> io::Result<()> {
        self.file.with(|file| locks::unlock(file, at))
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn conflict(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        self.file.with(|file| locks::conflict(file, range)).map_err(missing_locks)
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn holders(&self, at: u64) -> Vec<u32> {
        self.file.with(|file| locks::holders(file, at))
    }

    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    fn lock(&self, _at: u64, _alone: bool) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    fn unlock(&self, _at: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    fn conflict(&self, _range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(feature = "write")]
    fn lock_whole(&self) -> io::Result<bool> {
        match self.file.with(fs4::FileExt::try_lock) {
            Ok(()) => Ok(true),
            Err(fs4::TryLockError::WouldBlock) => Ok(false),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    #[cfg(feature = "write")]
    fn unlock_whole(&self) -> io::Result<()> {
        self.file.with(fs4::FileExt::unlock)
    }

    fn reopen(&self, write: bool) -> io::Result<Arc<dyn Storage>> {
        let mut options = File::options();
        options.read(true).write(write);
        let file = self.file.with(|file| open_again(file, &options, self.present_path()))?;
        let storage = FileStorage {
            file: Arc::new(Positioned::new(file)),
            path: self.path.clone(),
            full_path: self.full_path.clone(),
            temporary: self.temporary.clone(),
            backend: self.backend,
        };
        let same = are_same(&storage.file.with(File::metadata)?, &self.file.with(File::metadata)?);
        if same { Ok(Arc::new(storage)) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn boot_id(&self) -> [u8; 16] {
        super::boot::id()
    }

    fn is_in_place(&self) -> io::Result<bool> {
        match std::fs::metadata(self.present_path()) {
            Ok(named) => Ok(are_same(&named, &self.file.with(File::metadata)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
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

    #[cfg(feature = "write")]
    fn take_name(&self, over: Option<&dyn Storage>) -> io::Result<()> {
        let Some((temporary, taken)) = &self.temporary else { return Ok(()) };
        match over {
            Some(old) => {
                self.file.with(|file| file.set_permissions(old.permissions()?))?;
                std::fs::rename(temporary, &self.full_path)?;
            }
            None => naming::rename_to_free(temporary, &self.full_path)?,
        }
        taken.store(true, Ordering::Release);
        Ok(())
    }

    fn present_path(&self) -> &Path {
        match &self.temporary {
            Some((path, taken)) if !taken.load(Ordering::Acquire) => path,
            _ => &self.full_path,
        }
    }

    #[cfg(feature = "write")]
    fn permissions(&self) -> io::Result<Permissions> {
        self.file.with(|file| Ok(file.metadata()?.permissions()))
    }

    #[cfg(feature = "write")]
    fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(self.present_path())
    }

    #[cfg(feature = "write")]
    fn sync_directory(&self) -> io::Result<()> {
        naming::sync_directory(&naming::resolve(&self.full_path)?)
    }
}

/// A descriptor of its own for an open file, whatever its name stands for now.
#[cfg(target_os = "linux")]
fn open_again(file: &File, options: &std::fs::OpenOptions, path: &Path) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let open = options.open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    open.or_else(|_| options.open(path))
}

#[cfg(not(target_os = "linux"))]
fn open_again(_file: &File, options: &std::fs::OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path)
}

#[cfg(unix)]
fn are_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Files are told apart by inodes.
#[cfg(not(unix))]
fn are_same(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

/// Gives the errors of file systems without such locks one kind.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn missing_locks(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => {
            io::Error::new(io::ErrorKind::Unsupported, error)
        }
        _ => error,
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
