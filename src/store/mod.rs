//! Committed states and how they come about: opening, snapshots, transactions.
//!
//! # Overview of types
//!
//! A [`Store`] is an open file. It hands out [`Snapshot`]s: everything that one generation's root reaches, immutable.
//! [`Frames`] takes checked frames out of a snapshot; [`tree`] and [`index`] find catalog records and chunks with it.
//! A [`Writer`] stages changes in edited copies of those trees and publishes them with a commit.

mod accept;
mod cache;
mod changes;
#[cfg(feature = "write")]
mod create;
mod doubt;
mod frames;
pub(crate) mod free;
mod head;
pub(crate) mod index;
#[cfg(feature = "write")]
mod listing;
mod options;
pub(crate) mod path;
mod pins;
#[cfg(all(test, feature = "write"))]
mod power_loss;
#[cfg(feature = "write")]
mod rebuild;
mod snapshot;
mod token;
pub(crate) mod tree;
#[cfg(feature = "write")]
mod writer;

use accept::{newest_snapshot, snapshot_again};
#[cfg(feature = "write")]
use accept::{snapshot_of, trusted_snapshot};
pub(crate) use cache::{BlockCache, BlockKey, Lookup};
pub use changes::{Change, ChangeKind};
pub(crate) use frames::Frames;
pub(crate) use index::{ChunkIndex, StoredIndex};
#[cfg(feature = "write")]
pub(crate) use listing::{Listed, Listing};
#[cfg(feature = "write")]
pub use options::Durability;
pub use options::OpenOptions;
pub(crate) use snapshot::parse_attributes;
pub use snapshot::{Attributes, Entry, EntryKind, Snapshot};
#[cfg(feature = "write")]
pub use writer::Writer;
#[cfg(feature = "write")]
pub(crate) use writer::{
    EncodedWith, Fate, Gathered, IndexEdit, NewArray, Space, Staged, StagedArray, StagedRagged, Staging,
    let_go,
};

use self::head::{Head, Roots};
use crate::error::{Error, Result};
use crate::format::twin::PAGE_LEN;
use crate::format::{Root, Superblock};
use crate::pool::Pool;
use crate::storage::{FileStorage, MemoryStorage, Storage, fork};
use arc_swap::ArcSwap;
use once_cell::race::OnceBox;
use std::io;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "write")]
use std::sync::atomic::Ordering;

/// An open `.brick` file, or the bytes of one.
///
/// The handle can be shared between threads. It holds the newest [`Snapshot`] as of opening or of the last
/// [`Store::refresh`]; arrays and views hold the snapshot that they came from. While a snapshot is held its space in the
/// file is kept, also that of the handle itself: one that writes again and again should refresh now and then.
///
/// ```
/// use brickmap::{ArraySpec, Dtype, Selection, Store};
///
/// let path = std::env::temp_dir().join(format!("brickmap-doc-{}.brick", std::process::id()));
/// let store = Store::create(&path)?;
/// let mut writer = store.writer()?;
/// writer.create_array("velocity/x", &ArraySpec::new(Dtype::F32, [100, 200]))?;
/// writer.write("velocity/x", &Selection::all(), &vec![1.5f32; 20_000])?;
/// writer.commit()?;
///
/// let array = Store::open(&path)?.array("velocity/x")?;
/// let part: Vec<f32> = array.read(&"[10:20, ::-1]".parse()?)?;
/// assert_eq!(part.len(), 10 * 200);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), brickmap::Error>(())
/// ```
pub struct Store {
    shared: Arc<Shared>,
    /// Without a lock, which another thread might hold when the process forks.
    current: ArcSwap<Snapshot>,
}

/// What all snapshots of an open store share.
pub(crate) struct Shared {
    /// The process that this belongs to.
    process: fork::Process,
    /// What a process that was forked from that one has instead.
    heir: OnceBox<Arc<Shared>>,
    options: OpenOptions,
    storage: Arc<dyn Storage>,
    superblock: Superblock,
    pub(crate) cache: BlockCache,
    pub(crate) pool: Pool,
    pins: Arc<pins::Pins>,
    /// A deferred commit of another boot or system, and whether it is whole.
    verdict: parking_lot::Mutex<Option<((u64, u64), bool)>>,
    writable: bool,
    /// The root pages as this handle left them: the synced ones are on the disk, unless nothing is.
    #[cfg(feature = "write")]
    settled: parking_lot::Mutex<Option<[Root; 3]>>,
    /// Whether this handle created the store and never waited for the disk.
    #[cfg(feature = "write")]
    unsynced: std::sync::atomic::AtomicBool,
    /// That the store has no name yet.
    #[cfg(feature = "write")]
    unnamed: parking_lot::Mutex<Option<create::Unnamed>>,
    /// Where a compact store is made of this one.
    #[cfg(feature = "write")]
    making: parking_lot::Mutex<Option<std::path::PathBuf>>,
    /// Whether this handle published a commit that was deferred and not synced since.
    #[cfg(feature = "write")]
    deferred: std::sync::atomic::AtomicBool,
    /// Whether the [`Store`] was let go.
    #[cfg(feature = "write")]
    closed: std::sync::atomic::AtomicBool,
    /// Whether a [`Writer`] of this handle is alive.
    #[cfg(feature = "write")]
    writing: std::sync::atomic::AtomicBool,
}

impl Shared {
    fn new(
        storage: Arc<dyn Storage>,
        superblock: Superblock,
        options: &OpenOptions,
        writable: bool,
    ) -> Result<Arc<Shared>> {
        fork::watch();
        Ok(Arc::new(Shared {
            process: fork::Process::this(),
            heir: OnceBox::new(),
            pins: pins::Pins::new(storage.clone(), options.locking),
            storage,
            superblock,
            cache: BlockCache::new(options.cache_bytes),
            pool: Pool::new(options.threads)?,
            options: options.clone(),
            verdict: parking_lot::Mutex::new(None),
            writable,
            #[cfg(feature = "write")]
            settled: parking_lot::Mutex::new(None),
            #[cfg(feature = "write")]
            unsynced: std::sync::atomic::AtomicBool::new(false),
            #[cfg(feature = "write")]
            unnamed: parking_lot::Mutex::new(None),
            #[cfg(feature = "write")]
            making: parking_lot::Mutex::new(None),
            #[cfg(feature = "write")]
            deferred: std::sync::atomic::AtomicBool::new(false),
            #[cfg(feature = "write")]
            closed: std::sync::atomic::AtomicBool::new(false),
            #[cfg(feature = "write")]
            writing: std::sync::atomic::AtomicBool::new(false),
        }))
    }

    /// Whether this was made in this process, and not in one that it was forked from.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    /// What this process uses in place of `self`: after a fork an open file of its own, since locks belong to open files,
    /// and caches and threads of its own, since another thread may have held them.
    pub(crate) fn here(self: &Arc<Self>) -> Result<&Arc<Shared>> {
        let mut shared = self;
        while !shared.is_ours() {
            shared = match shared.heir.get() {
                Some(heir) => heir,
                None => {
                    let heir = shared.reopened()?;
                    shared.heir.get_or_init(|| Box::new(heir))
                }
            };
        }
        Ok(shared)
    }

    fn reopened(&self) -> Result<Arc<Shared>> {
        let storage = self.storage.reopen(self.writable).map_err(|source| Error::Io {
            action: "open again, after a fork,".into(),
            file: self.storage.name().to_path_buf(),
            source,
        })?;
        Shared::new(storage, self.superblock, &self.options, self.writable)
    }

    fn roots(&self) -> Result<Roots> {
        Head::read(&*self.storage)?.roots(self.storage.name(), self.options.recover)
    }
}

#[cfg(feature = "write")]
impl Drop for Store {
    fn drop(&mut self) {
        // Whoever wants to know calls `Store::close`. A writer that is still there syncs when it goes.
        let _ = self.settle();
    }
}

impl Store {
    /// Opens the store at `path` for reading, with the default options.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Store> {
        OpenOptions::new().open(path)
    }

    /// Opens a store that is in memory, with the default options and without a copy.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Store> {
        OpenOptions::new().from_bytes(bytes)
    }

    /// Creates a store with nothing in it. The name must be free.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::create`].
    #[cfg(feature = "write")]
    pub fn create(path: impl AsRef<Path>) -> Result<Store> {
        OpenOptions::new().create(path)
    }

    /// Creates a store that takes the place of what is at `path` with its first commit.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::replace`].
    #[cfg(feature = "write")]
    pub fn replace(path: impl AsRef<Path>) -> Result<Store> {
        OpenOptions::new().replace(path)
    }

    /// The state that this handle shows now. Cheap: a reference is counted.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::clone(&self.current.load())
    }

    /// Moves the handle on to the newest commit and returns it. What was opened before keeps its snapshot. Reads the
    /// three root pages.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`]; [`Error::Replaced`] if the name now stands for another file or none. The handle then
    /// stays on what it shows.
    pub fn refresh(&self) -> Result<Snapshot> {
        check_in_place(&*self.shared.here()?.storage)?;
        self.follow()
    }

    /// As [`Store::refresh`], whatever the name stands for now.
    pub(crate) fn follow(&self) -> Result<Snapshot> {
        let shared = self.shared.here()?;
        let newest = newest_snapshot(shared, shared.roots()?)?;
        self.current.rcu(|current| {
            let follows = newest.generation() > current.generation() || !current.is_ours();
            if follows { Arc::new(newest.clone()) } else { current.clone() }
        });
        Ok(self.snapshot())
    }

    /// The generations that others are reading now, ascending: those that other handles of this file have pinned, in this
    /// process or another. `None` where the file system has no locks that tell, or they were not wanted.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the locks or the roots cannot be read.
    pub fn readers(&self) -> Result<Option<Vec<u64>>> {
        let shared = self.shared.here()?;
        let newest = shared.roots()?.newest.generation;
        Ok(shared.pins.others(newest)?.map(|pinned| pinned.into_iter().collect()))
    }

    /// The random id that the file got when it was created.
    pub fn file_id(&self) -> [u8; 16] {
        self.shared.superblock.file_id
    }

    /// The name of the file, or `<memory>`.
    pub fn path(&self) -> &Path {
        self.shared.storage.name()
    }

    /// Where the file is while it has not got its name: from [`OpenOptions::replace`] or
    /// [`OpenOptions::create_on_commit`] to the first commit. While [`Store::compact`] or [`Snapshot::compact_into`] are at
    /// work, as the progress callback is called, where the new file is. For removing it when the process is interrupted.
    #[cfg(feature = "write")]
    pub fn temporary_path(&self) -> Option<std::path::PathBuf> {
        let unnamed = self.shared.unnamed.lock().as_ref().map(|unnamed| unnamed.path().to_path_buf());
        unnamed.or_else(|| self.shared.making.lock().clone())
    }

    /// Starts a transaction. A store has one writer at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if this handle has a writer already; [`Error::InvalidState`] for a store in memory or one
    /// that was opened without write permission.
    #[cfg(feature = "write")]
    pub fn writer(&self) -> Result<Writer> {
        Writer::begin(self.shared.here()?)
    }

    /// Waits until all commits that this handle made are on the disk, as [`Writer::sync`] does for a writer.
    ///
    /// # Errors
    ///
    /// As [`Store::writer`] and [`Writer::sync`], unless there is nothing to wait for.
    #[cfg(feature = "write")]
    pub fn sync(&self) -> Result<()> {
        let shared = self.shared.here()?;
        if shared.unsynced.load(Ordering::Acquire) { self.writer()?.sync() } else { Writer::settle(shared) }
    }

    /// Lets the store go, after waiting for the commits that were deferred. Dropping it does the same, and hides errors.
    /// Snapshots and arrays stay as they are; a writer that is still there waits when it goes.
    ///
    /// # Errors
    ///
    /// As [`Store::sync`]: [`Error::Locked`] if there is a writer and something to wait for.
    #[cfg(feature = "write")]
    pub fn close(self) -> Result<()> {
        self.settle()
    }

    #[cfg(feature = "write")]
    fn settle(&self) -> Result<()> {
        let mut shared = &self.shared;
        while !shared.is_ours() {
            let Some(heir) = shared.heir.get() else { return Ok(()) };
            shared = heir;
        }
        shared.closed.store(true, Ordering::SeqCst);
        Writer::settle(shared)
    }

    /// Length of the file.
    pub(crate) fn file_len(&self) -> Result<u64> {
        let storage = &*self.shared.storage;
        storage.len().map_err(|source| Error::Io {
            action: "measure".into(),
            file: storage.name().into(),
            source,
        })
    }

    /// Which of the two records of the twin page at `offset` have their checksum.
    pub(crate) fn valid_copies(&self, offset: u64) -> Result<[bool; 2]> {
        let storage = &*self.shared.storage;
        let mut page = [0; PAGE_LEN];
        storage.read_at(offset, &mut page).map_err(|source| Error::Io {
            action: format!("read the page at {offset}"),
            file: storage.name().into(),
            source,
        })?;
        let magic = if offset == 0 { crate::format::SUPERBLOCK_MAGIC } else { crate::format::ROOT_MAGIC };
        Ok(crate::format::twin::valid_copies(&page, magic).map(|copy| copy.is_some()))
    }

    /// Opens a file, in the state of the root `at` if there is one, of the file with that id.
    fn open_file(path: &Path, options: &OpenOptions, at: Option<([u8; 16], Root)>) -> Result<Store> {
        let failed =
            |source: io::Error| Error::Io { action: "open".into(), file: path.to_path_buf(), source };
        #[cfg(feature = "write")]
        let write = options.write;
        #[cfg(not(feature = "write"))]
        let write = false;
        if write && options.recover {
            let what = "a store is opened either to recover what is readable or to write to it, not both";
            return Err(Error::invalid(what));
        }
        let storage = FileStorage::open(path, write, options.backend).map_err(failed)?;
        let Some((file_id, root)) = at else { return Store::open_storage(Arc::new(storage), options, write) };
        let superblock = Head::read(&storage)?.superblock(path)?;
        if superblock.file_id != file_id {
            return Err(Error::Replaced { file: path.to_path_buf() });
        }
        let shared = Shared::new(Arc::new(storage), superblock, options, write)?;
        let snapshot = snapshot_again(&shared, root)?;
        Ok(Store { shared, current: ArcSwap::from_pointee(snapshot) })
    }

    fn open_memory(owner: Arc<dyn AsRef<[u8]> + Send + Sync>, options: &OpenOptions) -> Result<Store> {
        Store::open_storage(Arc::new(MemoryStorage::new(owner)), options, false)
    }

    fn open_storage(storage: Arc<dyn Storage>, options: &OpenOptions, writable: bool) -> Result<Store> {
        let head = Head::read(&*storage)?;
        let superblock = head.superblock(storage.name())?;
        let roots = head.roots(storage.name(), options.recover)?;
        let shared = Shared::new(storage, superblock, options, writable)?;
        let snapshot = newest_snapshot(&shared, roots)?;
        Ok(Store { shared, current: ArcSwap::from_pointee(snapshot) })
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// That the name of an open file still stands for it.
fn check_in_place(storage: &dyn Storage) -> Result<()> {
    let file = storage.name().to_path_buf();
    match storage.is_in_place() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Replaced { file }),
        Err(source) => Err(Error::Io { action: "look up the name".into(), file, source }),
    }
}
