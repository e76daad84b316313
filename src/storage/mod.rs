//! Where the bytes of a store are: a file that is mapped or read, or memory.
//!
//! # Overview of types
//!
//! [`Storage`] is a file as a whole: its length, root pages, and, for a writer, writes and syncs. A [`Source`] gives the
//! extents that one snapshot reaches. Both speak of ranges, so that a backend may map, read or fetch them; only
//! [`Source::borrow`] says whether a range can be had without a copy. What needs the operating system is in this
//! folder and nowhere else.

mod boot;
mod file;
pub(crate) mod fork;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod locks;
mod memory;
#[cfg(feature = "mmap")]
mod mmap;
#[cfg(feature = "write")]
mod naming;
mod pages;
#[cfg(feature = "write")]
mod target;

pub(crate) use file::FileStorage;
pub(crate) use memory::MemoryStorage;
pub(crate) use pages::prepare_destination;
#[cfg(feature = "write")]
pub(crate) use target::Target;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// How the bytes of a file are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The file is mapped into memory: the fastest, and what [`Array::view`](crate::Array::view) needs. It trusts that
    /// only brickmap writes to the file: if another program truncates it, the process gets SIGBUS; if another program
    /// changes bytes between check and use, the values read are undefined.
    #[cfg(feature = "mmap")]
    #[cfg_attr(feature = "mmap", default)]
    Mmap,
    /// Each range is read into memory, checked there and then used. For network file systems and files that others
    /// may write to.
    #[cfg_attr(not(feature = "mmap"), default)]
    Pread,
}

/// A file as a whole.
pub(crate) trait Storage: Send + Sync {
    /// The file's name, for messages.
    fn name(&self) -> &Path;

    fn len(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset`; a file that ends before is an error of kind `UnexpectedEof`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// The first `end` bytes as a source of extents. It must not be asked for what the file does not have. A `copying`
    /// source lends nothing: each range is read into memory, for when a writer may reuse what is being read.
    fn source(&self, end: u64, copying: bool) -> io::Result<Arc<dyn Source>>;

    /// Locks the byte `at` for this open file, alone or together with others; `false` if another open file holds it. A
    /// byte may be far beyond the file's end. An error of kind `Unsupported` if there are no such locks.
    fn lock(&self, at: u64, alone: bool) -> io::Result<bool>;

    /// Lets the byte `at` go.
    fn unlock(&self, at: u64) -> io::Result<()>;

    /// One of the locked ranges of other open files that meet `range`. Which one is not said.
    fn conflict(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>>;

    /// Processes that hold the byte `at` alone, as far as that can be known.
    fn holders(&self, _at: u64) -> Vec<u32> {
        Vec::new()
    }

    /// Locks the file as a whole against others that do so, where single bytes cannot be locked.
    #[cfg(feature = "write")]
    fn lock_whole(&self) -> io::Result<bool>;

    /// Lets the whole file go.
    #[cfg(feature = "write")]
    fn unlock_whole(&self) -> io::Result<()>;

    /// The same file, opened anew: locks and the like are those of the one that is returned.
    fn reopen(&self, write: bool) -> io::Result<Arc<dyn Storage>>;

    /// The id of this boot of the system; zero if it cannot be known.
    fn boot_id(&self) -> [u8; 16];

    /// Whether the name under which the file was opened still stands for it.
    fn is_in_place(&self) -> io::Result<bool>;

    /// Writes all of `bytes` at `offset`.
    #[cfg(feature = "write")]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Whether it is only counted how far is written, so that what would be written need not be read.
    #[cfg(feature = "write")]
    fn only_counts(&self) -> bool {
        false
    }

    /// Waits until what was written is on the disk.
    #[cfg(feature = "write")]
    fn sync_data(&self) -> io::Result<()>;

    /// Gives a new file the name that it was made for: one that is free, or that of the file `over`, whose permissions it
    /// gets. An error of kind `AlreadyExists` if a name that was free is not any more.
    #[cfg(feature = "write")]
    fn take_name(&self, over: Option<&dyn Storage>) -> io::Result<()>;

    /// The name that the file has now.
    fn present_path(&self) -> &Path;

    /// The permissions of the file.
    #[cfg(feature = "write")]
    fn permissions(&self) -> io::Result<std::fs::Permissions>;

    /// Removes the file under the name that it has.
    #[cfg(feature = "write")]
    fn remove(&self) -> io::Result<()>;

    /// Waits until the file's name is on the disk.
    #[cfg(feature = "write")]
    fn sync_directory(&self) -> io::Result<()>;
}

/// The extents of one snapshot.
pub(crate) trait Source: Send + Sync {
    /// The range itself, where the backend has it in memory for as long as the source lives.
    fn borrow(&self, offset: u64, len: usize) -> Option<&[u8]>;

    /// Fills `buf` from `offset`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = self.borrow(offset, buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

/// `len` bytes at `offset`: borrowed if the backend can, else read into `buf`, which only ever grows. Memory that
/// there is not is an error of kind `OutOfMemory`.
pub(crate) fn fetch<'a>(
    source: &'a dyn Source,
    offset: u64,
    len: usize,
    buf: &'a mut Vec<u8>,
) -> io::Result<&'a [u8]> {
    if let Some(bytes) = source.borrow(offset, len) {
        return Ok(bytes);
    }
    if buf.len() < len {
        buf.try_reserve_exact(len - buf.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        buf.resize(len, 0);
    }
    let bytes = &mut buf[..len];
    source.read_at(offset, bytes)?;
    Ok(bytes)
}
