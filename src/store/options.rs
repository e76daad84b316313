//! How a store is opened.

use super::Store;
use crate::error::Result;
use crate::storage::Backend;
use std::path::Path;

/// What a commit waits for.
///
/// | | the process dies | the power fails |
/// | --- | --- | --- |
/// | `Full` | nothing is lost | nothing is lost |
/// | `Deferred` | nothing is lost | the last synced commit is there |
/// | `None` | nothing is lost | the store may be damaged, which opening and reading tell |
///
/// Other processes see a commit at once in each case.
#[cfg(feature = "write")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// The disk has everything before the commit returns.
    #[default]
    Full,
    /// The disk gets it later: with [`Writer::sync`](crate::Writer::sync), [`Store::close`], or the next `Full` commit.
    Deferred,
    /// Nobody waits for the disk at all. Only for a store that this handle created without waiting and did not sync since: for
    /// saving in one go what can be made again.
    None,
}

/// Options of opening and creating a store.
///
/// ```no_run
/// use brickmap::{Backend, OpenOptions};
///
/// let store = OpenOptions::new().backend(Backend::Pread).threads(4).open("volume.brick")?;
/// # Ok::<(), brickmap::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenOptions {
    pub(super) backend: Backend,
    pub(super) threads: Option<usize>,
    pub(super) cache_bytes: usize,
    pub(super) locking: bool,
    pub(super) recover: bool,
    #[cfg(feature = "write")]
    pub(super) lock_timeout: std::time::Duration,
    #[cfg(feature = "write")]
    pub(super) durability: Durability,
    #[cfg(feature = "write")]
    pub(super) write: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            backend: Backend::default(),
            threads: None,
            cache_bytes: 64 << 20,
            locking: true,
            recover: false,
            #[cfg(feature = "write")]
            lock_timeout: std::time::Duration::ZERO,
            #[cfg(feature = "write")]
            durability: Durability::default(),
            #[cfg(feature = "write")]
            write: false,
        }
    }
}

impl OpenOptions {
    /// The defaults: a mapped file, rayon's pool, a cache of 64 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// How the bytes of the file are reached.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Decode and encode with this many threads of the store's own; 1 is the calling thread alone. Without this
    /// option large reads and writes run on the rayon pool that the caller is in, or on the global one.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Bytes of decoded blocks that are kept for repeated small reads; 0 turns the cache off.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether the file is locked; it is by default. A reader locks the generation that it reads, so that a writer does
    /// not reuse its space; a writer locks out other writers, and looks for readers. For file systems on which locking
    /// fails: without it nothing keeps two writers apart, a writer reuses no space, and a reader copies what it reads and
    /// has no views.
    pub fn locking(mut self, locking: bool) -> Self {
        self.locking = locking;
        self
    }

    /// Opens a store of whose three root pages one or two are lost, with the newest root that is left: an older state,
    /// if the newest was lost. Only for reading. Without this option such a file is refused, so that nobody takes an older
    /// state for the newest.
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// How long [`Store::writer`] and [`OpenOptions::create`] wait for a writer of another handle or process; not at all by
    /// default. A second writer of one handle is not waited for.
    #[cfg(feature = "write")]
    pub fn lock_timeout(mut self, timeout: std::time::Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// What [`Writer::commit`](crate::Writer::commit) waits for, and [`OpenOptions::create`].
    #[cfg(feature = "write")]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Opens for writing too, so that [`Store::writer`] works.
    #[cfg(feature = "write")]
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Opens the store at `path`, for reading unless [`OpenOptions::write`] was set. One read of 16 KiB, whatever the store holds.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) if the file cannot be opened, [`Error::NotAStore`](crate::Error::NotAStore) and
    /// [`Error::Corrupt`](crate::Error::Corrupt) by what it holds, [`Error::Unsupported`](crate::Error::Unsupported)
    /// if it needs a later version.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        Store::open_file(path.as_ref(), self, None)
    }

    /// Opens a store that is in memory, without a copy: a vector, an `Arc` of bytes, a map of the caller's.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn from_bytes(&self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Store> {
        Store::open_memory(std::sync::Arc::new(bytes), self)
    }

    /// Creates a store with nothing in it. The name must be free. It stands for a whole store from the start: the file is
    /// made under a temporary name, `.NAME.brick-new`, and renamed. File and directory are synced, unless with
    /// [`Durability::None`].
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`](crate::Error::AlreadyExists) if there is something at `path`;
    /// [`Error::Locked`](crate::Error::Locked) if another process is just making a store of that name.
    #[cfg(feature = "write")]
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store> {
        Store::create_file(path.as_ref(), self)
    }

    /// As [`OpenOptions::create`], but the store appears at `path` with its first commit, which fails with
    /// [`Error::AlreadyExists`](crate::Error::AlreadyExists) if the name is not free any more: for saving in one go.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::create`].
    #[cfg(feature = "write")]
    pub fn create_on_commit(&self, path: impl AsRef<Path>) -> Result<Store> {
        Store::create_on_commit_file(path.as_ref(), self)
    }

    /// Creates a store that takes the place of what is at `path` with its first commit. Until then, and if none comes, what is
    /// there stays as it is, and writers of it are kept out; whoever has it open goes on reading it afterwards. Symbolic links
    /// stay, and the new file gets the permissions of the old one. Without a commit the new file goes with the store, its writers and its
    /// snapshots. If there is nothing at `path`, the store appears there
    /// with its first commit.
    ///
    /// The first commit is synced before it takes a place, whatever [`OpenOptions::durability`] says, unless that is
    /// [`Durability::None`] and the name is free.
    ///
    /// ```
    /// use brickmap::Store;
    ///
    /// # let path = std::env::temp_dir().join(format!("brickmap-replace-{}.brick", std::process::id()));
    /// # drop(Store::create(&path)?);
    /// let store = Store::replace(&path)?;
    /// let mut writer = store.writer()?;
    /// writer.create_group("anew")?;
    /// assert!(Store::open(&path)?.snapshot().entries()?.is_empty(), "the old one");
    /// writer.commit()?;
    /// assert_eq!(Store::open(&path)?.snapshot().entries()?.len(), 1);
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Locked`](crate::Error::Locked) if the store has a writer, or another process is just making one of that name;
    /// [`Error::Io`](crate::Error::Io) if there is something that may not be written or is no regular file. The first commit
    /// fails with [`Error::AlreadyExists`](crate::Error::AlreadyExists) if a name that was free is not any more, and with
    /// [`Error::Replaced`](crate::Error::Replaced) if the old file is not there any more.
    #[cfg(feature = "write")]
    pub fn replace(&self, path: impl AsRef<Path>) -> Result<Store> {
        Store::replace_file(path.as_ref(), self)
    }

    /// Opens the store at `path` for reading and writing, or creates it if there is none.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`] and [`OpenOptions::create`].
    #[cfg(feature = "write")]
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Store> {
        Store::open_or_create_file(path.as_ref(), self)
    }
}
