//! Raw arrays as slices of the map.

use super::{Array, check_dtype};
use crate::dtype::Element;
use crate::error::{Damage, Error, Result};
use crate::format::{Extent, Kind, Layout, Pointer, RawTable};
use crate::num::saturating_usize;
use crate::selection::AxisSelection;
use crate::selection::Selection;
use crate::shape;
use crate::store::ChunkIndex;

impl Array {
    /// The selected items of a raw array, as they stand in the map of the file: no copy, and nothing is read until it is
    /// used. The slice lives as long as the array handle, which holds the snapshot.
    ///
    /// The selection must be one run of items in one run of the file: whole trailing dimensions, and a range of step 1
    /// or an index before them. An array that was written in one go is one run. Looks up each chunk that is touched.
    ///
    /// The items are **not checked** against their checksums: that would mean to read them. [`Array::view_checked`] does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidState`] if the array is not raw, if the backend does not map, if the run is broken or has parts that
    /// were never written, or if the memory is not aligned for `T`; [`Error::Unsupported`] on big-endian systems.
    pub fn view<T: Element>(&self, selection: &Selection) -> Result<&[T]> {
        self.find_view(selection, false)
    }

    /// As [`Array::view`], after the checksums of all bytes in it have been compared.
    ///
    /// # Errors
    ///
    /// As [`Array::view`], and [`Error::Corrupt`].
    pub fn view_checked<T: Element>(&self, selection: &Selection) -> Result<&[T]> {
        self.find_view(selection, true)
    }

    fn find_view<T: Element>(&self, selection: &Selection, check: bool) -> Result<&[T]> {
        check_dtype::<T>(&self.record.dtype, &self.path)?;
        if cfg!(target_endian = "big") && self.record.dtype.component_size() > 1 {
            return Err(Error::Unsupported {
                what: "views of little-endian items on a big-endian system; use read".into(),
            });
        }
        let state = |what: String| Error::InvalidState { what: format!("array '{}': {what}", self.path) };
        if self.record.layout != Layout::Raw {
            return Err(state("a view needs an array of codec raw; use read".into()));
        }
        let items = self.run_of_items(selection)?;
        let (first, len) = (items.start, items.end - items.start);
        if len == 0 {
            return Ok(&[]);
        }
        let itemsize = self.record.dtype.itemsize() as u64;
        let extent = self.run_of_bytes(first * itemsize, len * itemsize, check)?;
        let bytes = self.snapshot.frames()?.source().borrow(extent.offset, saturating_usize(extent.len));
        let bytes = bytes.ok_or_else(|| {
            state(
                "a view needs a store that is mapped or in memory, not one that is read with pread; use read"
                    .into(),
            )
        })?;
        bytemuck::try_cast_slice(bytes)
            .map_err(|_| state(format!("the bytes in memory are not aligned for {}; use read", T::NAME)))
    }

    /// The numbers of the selected items in C order, if they are one run.
    fn run_of_items(&self, selection: &Selection) -> Result<std::ops::Range<u64>> {
        let resolved = selection.resolve(self.shape())?;
        if resolved.is_empty() {
            return Ok(0..0);
        }
        let (mut start, mut whole, mut items) = (0u64, true, 1u64);
        for (axis, &len) in resolved.axes().iter().zip(self.shape()).rev() {
            let AxisSelection::Range { start: first, step, len: count } = *axis else {
                return Err(Error::invalid(
                    "a view of an index list, which is not one run of items; use read",
                ));
            };
            if count > 1 && (step != 1 || !whole) {
                return Err(Error::invalid("a view of a selection that is not one run of items; use read"));
            }
            start += first * items;
            whole &= first == 0 && count == len;
            items *= len;
        }
        Ok(start..start + resolved.len())
    }

    /// The extent in which `len` bytes of the array from byte `first` on stand.
    fn run_of_bytes(&self, first: u64, len: u64, check: bool) -> Result<Extent> {
        let record = &self.record;
        let reading = self.reading()?;
        let frames = reading.frames;
        let broken = |what: String| Error::InvalidState { what: format!("array '{}': {what}", self.path) };
        let itemsize = record.dtype.itemsize() as u64;
        // Chunks may be longer than the array in the other dimensions.
        let row = shape::product(record.shape.get(1..).unwrap_or_default()).unwrap_or(u64::MAX);
        let rows = record.chunks.first().copied().unwrap_or(1);
        let chunk_bytes = rows.saturating_mul(row).saturating_mul(itemsize);
        let mut run: Option<Extent> = None;
        for chunk in first / chunk_bytes..=(first + len - 1) / chunk_bytes {
            let mut coordinates = shape::Dims::from_elem(0, record.shape.len());
            if let Some(along) = coordinates.first_mut() {
                *along = chunk;
            }
            let here = |error| reading.locate(error, &coordinates, None);
            let entry = self.index.entry(frames, record.key(&coordinates)).map_err(here)?;
            let limit = record.chunk_limit(&coordinates);
            record.check_entry(&entry, &limit).map_err(|damage| here(frames.damage(damage, None)))?;
            let Pointer::Frame { kind: Kind::RawTable, extent, .. } = entry else {
                return Err(broken(format!(
                    "chunk {chunk} was never written, so that there is nothing to view; use read"
                )));
            };
            let frame = frames.checked_cow(&entry).map_err(here)?;
            let table = RawTable::parse(frame, frames.bounds(), &limit, record.dtype.itemsize())
                .map_err(|damage| here(frames.damage(damage, Some(extent.offset))))?;
            let start = chunk * chunk_bytes;
            let (low, high) = (first.max(start) - start, (first + len - start).min(chunk_bytes));
            // The array may have grown since the chunk was written.
            if table.valid.get(1..) != limit.get(1..) || high > table.payload.len {
                return Err(broken(format!("chunk {chunk} was written only in part; use read")));
            }
            if check {
                check_spans(self, &table, low, high).map_err(here)?;
            }
            let part = Extent { offset: table.payload.offset + low, len: high - low };
            run = match run {
                None => Some(part),
                Some(run) if run.offset + run.len == part.offset => {
                    Some(Extent { len: run.len + part.len, ..run })
                }
                Some(_) => {
                    return Err(broken(format!(
                        "chunk {chunk} stands elsewhere in the file than the one before; view chunk by chunk, or use read"
                    )));
                }
            };
        }
        run.ok_or_else(|| broken("nothing to view".into()))
    }
}

/// Compares the checksums of the spans that have the bytes `low` to `high` of a raw chunk.
fn check_spans(array: &Array, table: &RawTable<'_>, low: u64, high: u64) -> Result<()> {
    use crate::format::RAW_SPAN;
    let frames = array.snapshot.frames()?;
    for span in low / RAW_SPAN..high.div_ceil(RAW_SPAN) {
        let start = span * RAW_SPAN;
        let extent =
            Extent { offset: table.payload.offset + start, len: RAW_SPAN.min(table.payload.len - start) };
        let sum =
            table.checksum(span).map_err(|damage: Damage| frames.damage(damage, Some(extent.offset)))?;
        frames.summed(extent, sum, &mut Vec::new())?;
    }
    Ok(())
}
