//! Whole stores written anew, without what is free: to a file, or to memory.
//!
//! There is one way to do it: everything is copied to an empty store. Where the size must be known beforehand, that is
//! done once more, before, with a store that only counts.

use crate::array::filled;
use crate::copy::CopyOptions;
use crate::error::{Error, Result};
use crate::num::saturating_usize;
use crate::progress::ProgressCallback;
use crate::storage::{Target, prepare_destination};
use crate::store::{Snapshot, Store, Writer};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;

/// The start of a store, which its writer reads again.
const HEAD: usize = crate::format::DATA_START as usize;

impl Store {
    /// Writes the newest state to a fresh file, without what is free, which takes the place of this one, and opens that with
    /// the options of this handle. What is stored of a raw array is one run again.
    ///
    /// The writer's lock is held all the time. The new file is made beside the old one, under a temporary name, and synced
    /// before it gets the name; if anything fails the old one stays as it was. It has a new id and the permissions of the old
    /// one. Snapshots, and other handles, keep the old file, which goes with the last of them; their writers are told
    /// [`Error::Replaced`]. Everything is checked and copied as by [`Snapshot::copy_to`].
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let path = std::env::temp_dir().join(format!("brickmap-compact-{}.brick", std::process::id()));
    /// let store = Store::create(&path)?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("a", &ArraySpec::new(Dtype::U8, [1000]))?;
    /// for n in 0..9u8 {
    ///     writer.write("a", &Selection::all(), &[n; 1000])?;
    ///     writer.commit()?;
    /// }
    /// drop(writer);
    /// let before = store.refresh()?;
    /// let store = store.compact(None)?;
    /// assert_eq!(store.snapshot().free_bytes()?, 0);
    /// assert!(store.snapshot().file_bytes() < before.file_bytes());
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Store::writer`], and [`Error::InvalidState`] for a store that has no name yet;
    /// [`Error::Corrupt`] names the array, chunk and block that is damaged; [`Error::Unsupported`] for what a later version stored;
    /// [`Error::Io`] if the new file cannot be written; [`Error::Cancelled`] if the progress callback said so.
    pub fn compact(&self, progress: Option<&ProgressCallback<'_>>) -> Result<Store> {
        self.rebuild(|state, writer| copy_all(state, writer, progress))
    }
}

impl Snapshot {
    /// Writes this state to a new file at `path`, without anything else, and opens that for writing, else with the options of the
    /// handle that the snapshot comes from. The file appears when it is whole. It is on the disk then, unless that handle
    /// has [`Durability::None`](crate::Durability::None). The handle need not be one for writing. Costs as
    /// [`Store::compact`].
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if there is something at `path`, else as [`Store::compact`].
    pub fn compact_into(
        &self,
        path: impl AsRef<Path>,
        progress: Option<&ProgressCallback<'_>>,
    ) -> Result<Store> {
        self.rebuild_at(path.as_ref(), |writer| copy_all(self, writer, progress))
    }

    /// The bytes of a store with this state and nothing else, as [`Store::from_bytes`] takes them and as a file may hold
    /// them. Their number is known before any array is read; each is written once, straight to the result, by the
    /// threads of the store.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let path = std::env::temp_dir().join(format!("brickmap-to-bytes-{}.brick", std::process::id()));
    /// let store = Store::create(&path)?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("a", &ArraySpec::new(Dtype::U16, [3]))?;
    /// writer.write("a", &Selection::all(), &[1u16, 2, 3])?;
    /// let bytes = writer.commit()?.to_bytes()?;
    ///
    /// let items: Vec<u16> = Store::from_bytes(bytes)?.array("a")?.read(&Selection::all())?;
    /// assert_eq!(items, [1, 2, 3]);
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] names the array, chunk and block that is damaged; [`Error::Unsupported`] for what a later version stored;
    /// [`Error::TooLarge`] if there is not that much memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        filled(self.compact_len()?, |memory| {
            prepare_destination(memory, &self.shared()?.pool);
            self.write_to(memory).map(|_| ())
        })
    }

    /// As [`Snapshot::to_bytes`], into memory of the caller's. `allocate` is called once with the exact number of bytes, and
    /// may give more: the bytes stand at the start. A store that is opened from them by address, as by
    /// [`Array::view`](crate::Array::view), needs memory at a multiple of 64.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::to_bytes`]; [`Error::InvalidArgument`] if the memory is too small, and whatever `allocate` returns. What is in
    /// the memory then is not defined.
    pub fn to_bytes_with<'a>(
        &self,
        allocate: impl FnOnce(u64) -> Result<&'a mut [MaybeUninit<u8>]>,
    ) -> Result<&'a mut [u8]> {
        let len = self.compact_len()?;
        let memory = allocate(len)?;
        let given = memory.len();
        let memory = memory
            .get_mut(..saturating_usize(len))
            .ok_or_else(|| Error::invalid(format!("memory of {given} bytes for a store of {len}")))?;
        self.write_to(memory)
    }

    /// How long a store with this state and nothing else is. Reads the catalog and the indexes, and of raw arrays the
    /// checksums.
    fn compact_len(&self) -> Result<u64> {
        self.rebuild_in(Arc::new(Target::measure(HEAD)), Some(1), |writer| copy_all(self, writer, None))
    }

    fn write_to<'a>(&self, memory: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let len = memory.len() as u64;
        let threads = self.threads()?;
        let changed = || Error::InvalidState {
            what: "the store is not as long as was said; was its file changed meanwhile?".into(),
        };
        let bytes = Target::fill(memory, HEAD, |target| {
            let end = self.rebuild_in(target, threads, |writer| copy_all(self, writer, None))?;
            if end == len { Ok(()) } else { Err(changed()) }
        })?;
        bytes.ok_or_else(changed)
    }
}

fn copy_all(state: &Snapshot, writer: &mut Writer, progress: Option<&ProgressCallback<'_>>) -> Result<()> {
    let options = CopyOptions::new();
    state.copy_to("", writer, "", progress.map_or(options.clone(), |callback| options.progress(callback)))
}
