//! Arrays: reading and writing selections.
//!
//! # Overview of types
//!
//! An [`Array`] is an array in a snapshot. Its reads resolve a [`Selection`] and go through [`read`], the one read
//! path, to a [`destination`]. An [`ArraySpec`] says what a new array is like; writes go through [`write`], the one write path, and
//! [`append`] gathers small records for it. [`resize`] changes shapes, and [`rows`] moves items; [`copy`] and [`concatenate`] make arrays of others.
//! [`Ragged`] arrays are two arrays seen as one, which [`ragged_edit`] changes together.

#[cfg(feature = "write")]
mod append;
mod codec_spec;
#[cfg(feature = "write")]
mod concatenate;
#[cfg(feature = "write")]
mod copy;
mod destination;
mod ragged;
#[cfg(feature = "write")]
mod ragged_edit;
mod raw;
mod read;
#[cfg(feature = "write")]
mod resize;
#[cfg(feature = "write")]
mod rows;
#[cfg(feature = "write")]
mod spec;
mod strided;
mod view;
#[cfg(feature = "write")]
mod write;

pub use codec_spec::{Codec, Profile};
#[cfg(feature = "write")]
pub(crate) use copy::{Changes, Copied, Tally, bytes_to_tell, copy_array, record_of_copy};
pub(crate) use destination::filled;
pub use ragged::{Ragged, RaggedItems, Strings};
#[cfg(feature = "write")]
pub use spec::ArraySpec;
#[cfg(feature = "write")]
pub use strided::Strided;
pub use strided::StridedMut;
#[cfg(feature = "write")]
pub use write::WriteOptions;

use self::destination::Destination;
use self::read::Reading;
use crate::dtype::{Dtype, Element};
use crate::error::{Error, Result};
use crate::format::{ArrayRecord, Layout, Record};
use crate::selection::{ResolvedSelection, Selection};
use crate::shape;
use crate::storage::prepare_destination;
use crate::store::{Snapshot, Store, StoredIndex};
use std::mem::MaybeUninit;

/// An array in one snapshot of a store.
///
/// The handle can be shared between threads; reads take `&self` and do not wait for each other.
pub struct Array {
    snapshot: Snapshot,
    path: String,
    record: ArrayRecord,
    index: StoredIndex,
}

impl Store {
    /// The array `path` in the state that this handle shows now.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::array`].
    pub fn array(&self, path: &str) -> Result<Array> {
        self.snapshot().array(path)
    }
}

impl Snapshot {
    /// The array `path`. Reads one page of the catalog for each level of its tree.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with a near name if there is no such array, [`Error::InvalidArgument`] if `path` is a group or a
    /// ragged array, [`Error::Corrupt`] if the catalog is damaged.
    pub fn array(&self, path: &str) -> Result<Array> {
        let path = path.trim_matches('/');
        match self.record(path)? {
            Record::Array(record) => Ok(Array::new(self.clone(), path.to_owned(), *record)),
            Record::Group => Err(Error::invalid(format!("'{path}' is a group, not an array"))),
            Record::Ragged(_) => {
                Err(Error::invalid(format!("'{path}' is a ragged array; read it with Snapshot::ragged")))
            }
            Record::Unknown(what) => {
                Err(Error::Unsupported { what: format!("'{path}' is {what}, of a later version") })
            }
        }
    }
}

impl Array {
    pub(crate) fn new(snapshot: Snapshot, path: String, record: ArrayRecord) -> Array {
        let index = StoredIndex::new(&record);
        Array { snapshot, path, record, index }
    }

    /// Path of the array in its store.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The snapshot that the array belongs to.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What the items are.
    pub fn dtype(&self) -> &Dtype {
        &self.record.dtype
    }

    /// Length in each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.record.shape
    }

    /// Chunk length in each dimension.
    pub fn chunks(&self) -> &[u64] {
        &self.record.chunks
    }

    /// Block length in each dimension; in the raw layout that of a chunk.
    pub fn blocks(&self) -> &[u64] {
        &self.record.blocks
    }

    /// Number of dimensions.
    pub fn ndim(&self) -> usize {
        self.record.shape.len()
    }

    /// Number of items.
    pub fn len(&self) -> u64 {
        shape::product(&self.record.shape).unwrap_or(u64::MAX)
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of all items in bytes.
    pub fn nbytes(&self) -> u64 {
        self.len().saturating_mul(self.record.dtype.itemsize() as u64)
    }

    /// Bytes of the file that hold the array's chunks.
    pub fn stored_bytes(&self) -> u64 {
        self.record.stored_bytes
    }

    /// Chunks that are stored; the others read as the fill value.
    pub fn stored_chunks(&self) -> u64 {
        self.record.stored_chunks
    }

    /// The item that reads where nothing was written.
    pub fn fill_value(&self) -> &[u8] {
        &self.record.fill
    }

    /// How the array's chunks are coded when they are written.
    pub fn codec(&self) -> Codec {
        Codec::of_record(&self.record)
    }

    /// Reads the items of a selection, in C order.
    ///
    /// Allocates the result and nothing else of its size. A large result gets huge pages where the system has them.
    ///
    /// # Errors
    ///
    /// [`Error::DtypeMismatch`] if `T` does not hold the array's items, [`Error::OutOfBounds`] and
    /// [`Error::InvalidArgument`] for a selection that does not fit, [`Error::Corrupt`] if what is read does not have its
    /// checksum, [`Error::TooLarge`] if there is no memory for the result.
    pub fn read<T: Element>(&self, selection: &Selection) -> Result<Vec<T>> {
        self.check_dtype::<T>()?;
        let selection = selection.resolve(self.shape())?;
        let reading = self.reading()?;
        filled(selection.len(), |memory| {
            prepare_destination(memory, &reading.shared.pool);
            self.read_resolved(&reading, &selection, memory)
        })
    }

    /// Reads the items of a selection in C order into `items`, which must have exactly their number.
    ///
    /// # Errors
    ///
    /// As [`Array::read`]; [`Error::InvalidArgument`] for a wrong number, before anything is written. After another error
    /// the items have unspecified values.
    pub fn read_into<T: Element>(&self, selection: &Selection, items: &mut [T]) -> Result<()> {
        self.check_dtype::<T>()?;
        let selection = selection.resolve(self.shape())?;
        check_len(&selection, items.len() as u64, "items")?;
        self.read_resolved(&self.reading()?, &selection, destination::as_uninit(items))
    }

    /// Reads the items of a selection into memory with strides. The destination's shape is that of the result.
    ///
    /// # Errors
    ///
    /// As [`Array::read_into`].
    pub fn read_strided<T: Element>(
        &self,
        selection: &Selection,
        destination: StridedMut<'_, T>,
    ) -> Result<()> {
        self.check_dtype::<T>()?;
        let selection = selection.resolve(self.shape())?;
        let destination = destination.resolve(&selection)?;
        self.reading()?.read(&selection, &destination)
    }

    /// Reads the one item at `index`; negative numbers count from the end.
    ///
    /// # Errors
    ///
    /// As [`Array::read`].
    pub fn get<T: Element>(&self, index: &[i64]) -> Result<T> {
        if index.len() != self.ndim() {
            let what = format!("{} indices for an array of {} dimensions", index.len(), self.ndim());
            return Err(Error::OutOfBounds { what });
        }
        let mut item = [T::zeroed()];
        self.read_into(&Selection::new(index.iter().copied()), &mut item)?;
        Ok(item[0])
    }

    /// Reads the items of a selection, of whatever dtype, as their little-endian bytes in C order.
    ///
    /// # Errors
    ///
    /// As [`Array::read`].
    pub fn read_bytes(&self, selection: &Selection) -> Result<Vec<u8>> {
        let selection = selection.resolve(self.shape())?;
        let reading = self.reading()?;
        filled(self.byte_len(&selection)?, |memory| {
            prepare_destination(memory, &reading.shared.pool);
            self.read_resolved(&reading, &selection, memory)
        })
    }

    /// Reads the items of a selection, of whatever dtype, as their bytes in C order into memory that need not be initialised.
    /// When it returns without an error, all of `bytes` is.
    ///
    /// # Errors
    ///
    /// As [`Array::read_into`].
    pub fn read_bytes_into(&self, selection: &Selection, bytes: &mut [MaybeUninit<u8>]) -> Result<()> {
        let selection = selection.resolve(self.shape())?;
        check_len(&selection, bytes.len() as u64 / self.record.dtype.itemsize() as u64, "items")?;
        if self.byte_len(&selection)? != bytes.len() as u64 {
            return Err(Error::invalid(format!("{} bytes are not a whole number of items", bytes.len())));
        }
        self.read_resolved(&self.reading()?, &selection, bytes)
    }

    fn byte_len(&self, selection: &ResolvedSelection) -> Result<u64> {
        selection.len().checked_mul(self.record.dtype.itemsize() as u64).ok_or_else(|| Error::TooLarge {
            what: format!("a result of {} items of {} bytes", selection.len(), self.record.dtype.itemsize()),
        })
    }

    fn read_resolved(
        &self,
        reading: &Reading<'_>,
        selection: &ResolvedSelection,
        memory: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let destination =
            Destination::contiguous(memory, &selection.full_shape(), self.record.dtype.itemsize())?;
        reading.read(selection, &destination)
    }

    fn reading(&self) -> Result<Reading<'_>> {
        Ok(Reading {
            shared: self.snapshot.shared()?,
            frames: self.snapshot.frames()?,
            record: &self.record,
            index: &self.index,
            path: &self.path,
            cached: true,
        })
    }

    fn check_dtype<T: Element>(&self) -> Result<()> {
        check_dtype::<T>(&self.record.dtype, &self.path)
    }

    /// Whether the items stand in the file as they are in memory, so that [`Array::view`] works.
    pub fn is_raw(&self) -> bool {
        self.record.layout == Layout::Raw
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Array")
            .field("path", &self.path)
            .field("dtype", &self.record.dtype.to_string())
            .field("shape", &self.record.shape)
            .field("chunks", &self.record.chunks)
            .field("blocks", &self.record.blocks)
            .finish_non_exhaustive()
    }
}

fn check_dtype<T: Element>(dtype: &Dtype, path: &str) -> Result<()> {
    if T::matches(dtype) {
        return Ok(());
    }
    Err(Error::DtypeMismatch {
        array: path.to_owned(),
        stored: dtype.to_string(),
        wanted: T::NAME.to_owned(),
    })
}

fn check_len(selection: &ResolvedSelection, len: u64, what: &str) -> Result<()> {
    if selection.len() == len {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the selection has {} {what} in the shape {:?}, and the memory has {len}",
        selection.len(),
        selection.out_shape()
    )))
}
