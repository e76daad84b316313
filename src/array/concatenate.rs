//! Arrays at the end of others: frames as they are stored where the grids line up, else items anew.

use super::append::array_of;
use super::copy::{are_stored_alike, copy_chunks};
use super::read::for_each_chunk;
use super::write::{Source, WriteOptions, Writing};
use super::{Array, ArraySpec, destination, resize};
use crate::error::{Error, Result};
use crate::format::{ArrayRecord, Layout};
use crate::selection::ResolvedSelection;
use crate::shape::Dims;
use crate::store::{NewArray, Staging, Writer};

impl Writer {
    /// Adds the items of another array, of this or another store, at the end of an array along a dimension. All other
    /// dimensions must be as long.
    ///
    /// Where the end is the end of a chunk and both arrays are cut and coded alike, with the same fill value, chunks are
    /// copied as they are stored: nothing is decoded, and absent and constant chunks stay so. Elsewhere items are read and
    /// written, a chunk at a time.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::DtypeMismatch`] for another dtype, [`Error::InvalidArgument`] for a dimension that there is
    /// not, for shapes that do not go together, and where [`Writer::resize`] refuses the longer shape: all before anything is
    /// changed. [`Error::Corrupt`] names what is damaged, [`Error::Io`] is of either file; then the writer can only be
    /// dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-append-array-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("runs.brick"))?;
    /// let mut writer = store.writer()?;
    /// for (name, value) in [("monday", 1i16), ("tuesday", 2)] {
    ///     writer.create_array(name, &ArraySpec::new(Dtype::I16, [2]).chunks([2]))?;
    ///     writer.fill(name, &Selection::all(), value)?;
    /// }
    /// let snapshot = writer.commit()?;
    /// let (monday, tuesday) = (snapshot.array("monday")?, snapshot.array("tuesday")?);
    /// writer.append_array("monday", 0, &tuesday)?;
    /// writer.concatenate("all", 0, &[&monday, &tuesday])?;
    /// assert_eq!(writer.read::<i16>("monday", &Selection::all())?, [1, 1, 2, 2]);
    /// assert_eq!(writer.read::<i16>("all", &Selection::all())?, [1, 1, 2, 2]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn append_array(&mut self, path: &str, axis: usize, from: &Array) -> Result<()> {
        let record = &array_of(self.stage(path)?.staged, path)?.record;
        check(record, path, axis, from)?;
        let mut shape = record.shape.clone();
        shape[axis] = shape[axis].saturating_add(from.shape()[axis]);
        resize::check(record, path, &shape)?;
        if from.is_empty() && shape == record.shape {
            return Ok(());
        }
        self.stage_write(path, |staging| append(staging, path, axis, from, &shape))
    }

    /// Creates an array of the items of others, one behind the other along a dimension. It is cut and coded as the first of
    /// them, without attributes; the items come as with [`Writer::append_array`].
    ///
    /// # Errors
    ///
    /// As [`Writer::create_array`] and [`Writer::append_array`]; [`Error::InvalidArgument`] also for no array at all.
    pub fn concatenate(&mut self, path: &str, axis: usize, arrays: &[&Array]) -> Result<()> {
        let Some(first) = arrays.first() else {
            return Err(Error::invalid("a concatenation of no arrays, of which the dtype is not known"));
        };
        let record = &first.record;
        arrays.iter().try_for_each(|array| check(record, path, axis, array))?;
        let total = arrays.iter().fold(0u64, |total, array| total.saturating_add(array.shape()[axis]));
        let (mut shape, mut chunks) = (record.shape.to_vec(), record.chunks.to_vec());
        shape[axis] = total;
        if record.layout == Layout::Raw && axis > 0 {
            chunks[axis] = chunks[axis].max(total);
        }
        let spec = |shape: Vec<u64>| {
            let spec =
                ArraySpec::new(record.dtype.clone(), shape).codec(first.codec()).chunks(chunks.clone());
            spec.blocks(record.blocks.to_vec()).fill_bytes(&record.fill)
        };
        // What cannot be is said before there is anything of it.
        spec(shape.clone()).record()?;
        shape[axis] = 0;
        self.create_array(path, &spec(shape))?;
        arrays.iter().try_for_each(|array| self.append_array(path, axis, array))
    }
}

/// That the items of `from` may go to the end of an array.
fn check(record: &ArrayRecord, path: &str, axis: usize, from: &Array) -> Result<()> {
    if *from.dtype() != record.dtype {
        return Err(Error::DtypeMismatch {
            array: path.to_owned(),
            stored: record.dtype.to_string(),
            wanted: from.dtype().to_string(),
        });
    }
    let same = |(dim, (one, other)): (usize, (&u64, &u64))| dim == axis || one == other;
    let goes =
        from.ndim() == record.shape.len() && record.shape.iter().zip(from.shape()).enumerate().all(same);
    if axis < record.shape.len() && goes {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "an array of shape {:?} at the end of '{path}' of shape {:?} along dimension {axis}",
        from.shape(),
        record.shape
    )))
}

fn append(staging: Staging<'_>, path: &str, axis: usize, from: &Array, shape: &Dims) -> Result<()> {
    let Staging { shared, frames, space, staged } = staging;
    let array = array_of(staged, path)?;
    let (end, chunk) = (array.record.shape[axis], array.record.chunks[axis]);
    Writing::new(shared, frames, space, array, path).resize(shape)?;
    let reading = from.reading()?;
    let alike = are_stored_alike(&from.record, &array.record) && from.record.fill == array.record.fill;
    let mut shift = Dims::from_elem(0, shape.len());
    if alike && end.is_multiple_of(chunk) {
        shift[axis] = end / chunk;
        return copy_chunks(&reading, NewArray { shared, frames, space, array }, shift);
    }
    shift[axis] = end;
    let added = ResolvedSelection::of_box(&shift, from.shape());
    let chunks = array.record.chunks.clone();
    let itemsize = array.record.dtype.itemsize();
    for_each_chunk(&added, &chunks, &mut |at| {
        let record = &array.record;
        // The part of the chunk that is added, here and where it comes from.
        let mut origin = record.chunk_origin(at);
        let mut part = record.chunk_limit(at);
        let before = end.saturating_sub(origin[axis]);
        origin[axis] += before;
        part[axis] -= before;
        let mut there = origin.clone();
        there[axis] -= end;
        let bytes = reading.read_box(&there, &part)?;
        let source = Source::new(&bytes, 0, destination::byte_strides(&part, itemsize));
        let selection = ResolvedSelection::of_box(&origin, &part);
        Writing::new(shared, frames, space, array, path).write(&selection, &source, WriteOptions::new())
    })
}
