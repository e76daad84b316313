//! Appending: small records are gathered until a chunk is full, so that each chunk is encoded once.

use super::write::{Source, WriteOptions, Writing};
use super::{check_dtype, destination, resize};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::format::ArrayRecord;
use crate::num::saturating_usize;
use crate::selection::ResolvedSelection;
use crate::shape::{self, Dims};
use crate::store::{Gathered, Staged, StagedArray, Staging, Writer};

/// Gathered items are written when they are so many bytes, though no chunk is full.
const MOST_GATHERED: u64 = 32 << 20;
/// Records of so many bytes are written at once, without a copy.
const LARGE: usize = 1 << 20;

impl Writer {
    /// Adds items at the end of an array along a dimension, which grows by as many as they fill. They are given in C
    /// order, with all other dimensions as long as those of the array.
    ///
    /// Small records are gathered in memory (up to a chunk, or 32 MiB) until a chunk is full, the array is looked at, or a
    /// commit. Along the first dimension a chunk that is not full at a commit is kept as pieces: later records are written
    /// beside it and joined now and then, so that a row costs the writing of a few rows, not of a chunk. In the raw layout,
    /// and along other dimensions, a commit writes the last chunks anew.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] and [`Error::DtypeMismatch`]; [`Error::InvalidArgument`] for a dimension that there is not, for items
    /// that do not fill a whole number of its places, and where [`Writer::resize`] refuses the longer shape, all before
    /// anything is changed. [`Error::Io`] and [`Error::Corrupt`] as for [`Writer::write`]; then the writer can only be
    /// dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-append-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("probe.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("probe", &ArraySpec::new(Dtype::F32, [0, 3]))?;
    /// for step in 0..100 {
    ///     writer.append("probe", 0, &[step as f32, 0.5, 0.25])?;
    /// }
    /// assert_eq!(writer.commit()?.array("probe")?.shape(), [100, 3]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn append<T: Element>(&mut self, path: &str, axis: usize, items: &[T]) -> Result<()> {
        check_dtype::<T>(&array_of(self.stage_unsettled(path)?.staged, path)?.record.dtype, path)?;
        self.append_bytes(path, axis, bytemuck::cast_slice(items))
    }

    /// As [`Writer::append`], for items of whatever dtype, given as their little-endian bytes.
    ///
    /// # Errors
    ///
    /// As [`Writer::append`].
    pub fn append_bytes(&mut self, path: &str, axis: usize, bytes: &[u8]) -> Result<()> {
        let mut array = array_of(self.stage_unsettled(path)?.staged, path)?;
        let large = bytes.len() >= LARGE;
        if array.gathered.as_ref().is_some_and(|gathered| gathered.axis != axis || large) {
            array = array_of(self.stage(path)?.staged, path)?;
        }
        let (more, place) = places(&array.record, path, axis, bytes)?;
        let mut shape = array.record.shape.clone();
        let gathered = array.gathered.as_ref().map_or(0, |gathered| gathered.len);
        shape[axis] = shape[axis].saturating_add(gathered).saturating_add(more);
        resize::check(&array.record, path, &shape)?;
        if more == 0 {
            return Ok(());
        }
        self.note_change();
        if large {
            return self.stage_write(path, |staging| put(staging, path, axis, more, bytes));
        }
        let array = array_of(self.stage_unsettled(path)?.staged, path)?;
        let (len, chunk) = (array.record.shape[axis], array.record.chunks[axis]);
        let outer = saturating_usize(shape::product(&shape[..axis]).unwrap_or(u64::MAX));
        let mut gathered = array.gathered.take().unwrap_or_else(|| Gathered {
            axis,
            len: 0,
            records: Vec::new(),
            append: append_gathered,
        });
        gathered.push(more, bytes, outer);
        // Up to the end of the last chunk that is full.
        let due = ((len + gathered.len) / chunk * chunk).saturating_sub(len);
        let due = if due == 0 && gathered.memory(place) >= MOST_GATHERED { gathered.len } else { due };
        if due == 0 {
            array.gathered = Some(gathered);
            return Ok(());
        }
        let rest = gathered.split_off(due, outer);
        array.gathered = Some(rest).filter(|rest| rest.len > 0);
        self.append_gathered(path, gathered)
    }
}

impl Gathered {
    /// Bytes of memory, where a place of the dimension takes `place` of them.
    fn memory(&self, place: u64) -> u64 {
        let each = size_of::<(u64, Vec<u8>)>() as u64;
        self.len.saturating_mul(place).saturating_add(self.records.len() as u64 * each)
    }

    /// Adds a record that fills `len` places, in `outer` runs of bytes.
    fn push(&mut self, len: u64, bytes: &[u8], outer: usize) {
        self.len += len;
        match self.records.last_mut().filter(|_| outer == 1) {
            Some((before, all)) => {
                *before += len;
                all.extend_from_slice(bytes);
            }
            None => self.records.push((len, bytes.to_vec())),
        }
    }

    /// Leaves the first `len` places, and returns the others.
    fn split_off(&mut self, len: u64, outer: usize) -> Gathered {
        let mut rest = Gathered { len: self.len - len, records: Vec::new(), ..*self };
        self.len = len;
        let mut room = len;
        for (places, bytes) in std::mem::take(&mut self.records) {
            let taken = places.min(room);
            room -= taken;
            if taken == places {
                self.records.push((places, bytes));
            } else if taken == 0 {
                rest.records.push((places, bytes));
            } else {
                let run = bytes.len() / outer;
                let at = run / saturating_usize(places) * saturating_usize(taken);
                let part = |from: usize, to: usize| -> Vec<u8> {
                    bytes.chunks_exact(run).flat_map(|run| &run[from..to]).copied().collect()
                };
                self.records.push((taken, part(0, at)));
                rest.records.push((places - taken, part(at, run)));
            }
        }
        rest
    }

    /// All items in C order.
    fn join(mut self, outer: usize) -> Vec<u8> {
        if let [(_, bytes)] = &mut self.records[..] {
            return std::mem::take(bytes);
        }
        let mut joined = Vec::with_capacity(self.records.iter().map(|(_, bytes)| bytes.len()).sum());
        for n in 0..outer {
            for (_, bytes) in &self.records {
                let run = bytes.len() / outer;
                joined.extend_from_slice(&bytes[n * run..(n + 1) * run]);
            }
        }
        joined
    }
}

fn append_gathered(gathered: Gathered, path: &str, staging: Staging<'_>) -> Result<()> {
    let (axis, len) = (gathered.axis, gathered.len);
    let shape = &array_of(staging.staged, path)?.record.shape;
    let outer = saturating_usize(shape::product(&shape[..axis]).unwrap_or(u64::MAX));
    put(staging, path, axis, len, &gathered.join(outer))
}

/// Makes an array longer by `len` places of a dimension and puts these items there.
fn put(staging: Staging<'_>, path: &str, axis: usize, len: u64, bytes: &[u8]) -> Result<()> {
    let Staging { shared, frames, space, staged } = staging;
    let array = array_of(staged, path)?;
    let mut shape = array.record.shape.clone();
    let mut origin = Dims::from_elem(0, shape.len());
    origin[axis] = shape[axis];
    shape[axis] += len;
    Writing::new(shared, frames, space, array, path).resize(&shape)?;
    shape[axis] = len;
    let strides = destination::byte_strides(&shape, array.record.dtype.itemsize());
    Writing::new(shared, frames, space, array, path).write(
        &ResolvedSelection::of_box(&origin, &shape),
        &Source::new(bytes, 0, strides),
        WriteOptions::new(),
    )
}

pub(super) fn array_of<'a>(staged: &'a mut Staged, path: &str) -> Result<&'a mut StagedArray> {
    match staged {
        Staged::Array(array) => Ok(array),
        Staged::Ragged(_) => Err(ragged(path)),
    }
}

/// The error for a ragged array where another one is needed.
pub(super) fn ragged(path: &str) -> Error {
    Error::invalid(format!(
        "'{path}' is a ragged array, which append_strings, append_runs and resize change: delete it and create it anew for \
         anything else"
    ))
}

/// How many places of a dimension these bytes fill, and how many bytes one takes.
fn places(record: &ArrayRecord, path: &str, axis: usize, bytes: &[u8]) -> Result<(u64, u64)> {
    if axis >= record.shape.len() {
        return Err(Error::invalid(format!(
            "an append along dimension {axis} of the array '{path}', which has {}",
            record.shape.len()
        )));
    }
    let mut place = record.shape.clone();
    place[axis] = 1;
    let items = shape::product(&place).unwrap_or(u64::MAX);
    let place = items.saturating_mul(record.dtype.itemsize() as u64);
    let len = bytes.len() as u64;
    match len.checked_rem(place) {
        Some(0) => Ok((len / place, place)),
        _ => Err(Error::invalid(format!(
            "{len} bytes to append along dimension {axis} of the array '{path}' of shape {:?}, where one place takes \
             {place} bytes",
            record.shape
        ))),
    }
}
