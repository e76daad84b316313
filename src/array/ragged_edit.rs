//! Ragged arrays that grow and shrink along their first dimension: offsets and values change together.
//!
//! Offsets are what they are in the file, also where the first is not 0: what is added goes on from the last one.

use super::destination::{self, Destination};
use super::read::Reading;
use super::resize::check;
use super::write::{Source, WriteOptions, Writing};
use crate::dtype::Element;
use crate::error::{Damage, Error, Place, Result};
use crate::format::{RaggedElement, RaggedRecord};
use crate::selection::{ResolvedSelection, Selection};
use crate::shape::{self, Dims};
use crate::store::{Staged, StagedArray, StagedRagged, Staging, Writer};
use smallvec::smallvec;

/// One of the two arrays that a ragged array is.
#[derive(Clone, Copy)]
enum Part {
    Offsets,
    Values,
}

impl Writer {
    /// Adds strings behind those that an array of strings has: a whole number of rows, in C order; a row is what has one
    /// index in the first dimension.
    ///
    /// Writes the last chunks of the offsets and of the text anew, and those that come behind. Copies the strings once.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::DtypeMismatch`] for an array of runs; [`Error::InvalidArgument`] for something else, for an
    /// array without dimensions, and for a number of strings that is no whole number of rows; [`Error::TooLarge`] past the
    /// limits of shapes; [`Error::Corrupt`] for a last offset that cannot be: all these before anything is changed.
    /// [`Error::Io`] and [`Error::Corrupt`] if a chunk cannot be written or read; then the writer can only be dropped.
    ///
    /// ```
    /// use brickmap::{Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-append-strings-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("log.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_strings("log", &[0], &[""; 0])?;
    /// writer.append_strings("log", &["begun", "ended"])?;
    /// let log = writer.commit()?.ragged("log")?;
    /// assert_eq!(log.read_strings(&Selection::from(1))?.get(0), Some("ended"));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn append_strings<S: AsRef<str>>(&mut self, path: &str, strings: &[S]) -> Result<()> {
        let runs = strings.iter().map(|string| string.as_ref().as_bytes());
        self.append_items(path, RaggedElement::Strings, runs)
    }

    /// Adds runs of values behind those that a ragged array has, as [`Writer::append_strings`] does with strings.
    ///
    /// # Errors
    ///
    /// As [`Writer::append_strings`]; [`Error::DtypeMismatch`] for an array of strings or of other values.
    ///
    /// ```
    /// use brickmap::{Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-append-runs-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("cells.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_ragged("cells", &[1], &[vec![0u32, 1, 2]])?;
    /// writer.append_runs("cells", &[vec![2u32, 1, 3, 4]])?;
    /// let cells = writer.commit()?.ragged("cells")?;
    /// assert_eq!(cells.shape(), [2]);
    /// assert_eq!(cells.read_runs::<u32>(&Selection::from(1))?.get(0), Some(&[2, 1, 3, 4][..]));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn append_runs<T: Element, R: AsRef<[T]>>(&mut self, path: &str, runs: &[R]) -> Result<()> {
        self.append_items(path, RaggedElement::Values, runs.iter().map(|run| run.as_ref()))
    }

    fn append_items<'a, T: Element>(
        &mut self,
        path: &str,
        element: RaggedElement,
        runs: impl ExactSizeIterator<Item = &'a [T]>,
    ) -> Result<()> {
        let record = self.ragged_record(path)?;
        check_element::<T>(&record, element, path)?;
        let count = runs.len() as u64;
        let mut shape = record.shape.clone();
        let Some((rows, rest)) = shape.split_first_mut() else {
            return Err(Error::invalid(format!("'{path}' has no dimensions, and so no rows to append to")));
        };
        let row = shape::product(rest).unwrap_or(u64::MAX);
        match count.checked_div(row) {
            Some(more) if more * row == count => *rows = rows.saturating_add(more),
            None if count == 0 => {}
            _ => {
                return Err(Error::invalid(format!(
                    "{count} items are no whole number of rows of the ragged array '{path}': a row has {row}"
                )));
            }
        }
        if count == 0 {
            return Ok(());
        }
        Selection::all().resolve(&shape)?;
        let items = record.offsets.shape.first().copied().unwrap_or(1).saturating_sub(1);
        check(&record.offsets, path, &[items.saturating_add(count).saturating_add(1)])?;
        let last = self.offset(path, items)?;
        let mut values: Vec<T> = Vec::new();
        let mut offsets: Vec<i64> = Vec::new();
        for run in runs {
            values.extend_from_slice(run);
            let end = last.saturating_add(values.len() as u64);
            offsets.push(i64::try_from(end).unwrap_or(i64::MAX));
        }
        let end = last.saturating_add(values.len() as u64);
        check(&record.values, path, &[end])?;
        // Values behind the last offset belong to no item: those that are added stand in their place.
        self.change_part(path, Part::Values, |mut values| values.resize(&[end]))?;
        self.write_part(path, Part::Values, last, bytemuck::cast_slice(&values), size_of::<T>())?;
        self.change_part(path, Part::Offsets, |mut offsets| offsets.resize(&[items + count + 1]))?;
        let bytes = bytemuck::cast_slice(&offsets);
        self.write_part(path, Part::Offsets, items + 1, bytes, size_of::<i64>())?;
        self.set_ragged_shape(path, &shape)
    }

    /// [`Writer::resize`] for a ragged array.
    pub(super) fn resize_ragged(&mut self, path: &str, shape: &[u64]) -> Result<()> {
        let record = self.ragged_record(path)?;
        if record.shape[..] == *shape {
            return Ok(());
        }
        if shape.len() != record.shape.len() {
            return Err(Error::invalid(format!(
                "a shape of {} dimensions for the ragged array '{path}' of {}",
                shape.len(),
                record.shape.len()
            )));
        }
        if shape.get(1..) != record.shape.get(1..) {
            return Err(Error::Unsupported {
                what: format!(
                    "the shape {shape:?} for the ragged array '{path}' of shape {:?}: its first dimension only can get \
                     another length; create it anew with all its items",
                    record.shape
                ),
            });
        }
        let items = Selection::all().resolve(shape)?.len();
        check(&record.offsets, path, &[items.saturating_add(1)])?;
        let before = record.offsets.shape.first().copied().unwrap_or(1).saturating_sub(1);
        let last = self.offset(path, before.min(items))?;
        self.change_part(path, Part::Offsets, |mut offsets| offsets.resize(&[items + 1]))?;
        if items < before {
            self.change_part(path, Part::Values, |mut values| values.resize(&[last]))?;
        } else if record.offsets.fill[..] != last.to_le_bytes() {
            // New items are empty. The one offset stands for all of them: it is repeated by a stride of 0.
            self.change_part(path, Part::Offsets, |offsets| {
                let item = last.to_le_bytes();
                let source = Source::repeated(&item, 1);
                let new = ResolvedSelection::of_box(&[before + 1], &[items - before]);
                if new.is_empty() { Ok(()) } else { offsets.write(&new, &source, WriteOptions::new()) }
            })?;
        }
        self.set_ragged_shape(path, shape)
    }

    /// The record of a ragged array, as staged.
    fn ragged_record(&mut self, path: &str) -> Result<RaggedRecord> {
        let StagedRagged { record, offsets, values } = ragged(self.stage(path)?.staged, path)?;
        Ok(RaggedRecord {
            element: record.element,
            shape: record.shape.clone(),
            offsets: offsets.record.clone(),
            values: values.record.clone(),
        })
    }

    /// Where the values of an item start, or those of the last one end.
    fn offset(&mut self, path: &str, item: u64) -> Result<u64> {
        let Staging { shared, frames, staged, .. } = self.stage(path)?;
        let StagedRagged { offsets: StagedArray { record, index, .. }, values, .. } = &*ragged(staged, path)?;
        let read = destination::filled::<i64>(1, |memory| {
            let destination = Destination::contiguous(memory, &[1], size_of::<i64>())?;
            let reading = Reading { shared, frames, record, index, path, cached: false };
            reading.read(&ResolvedSelection::of_box(&[item], &[1]), &destination)
        })?;
        let offset = read.first().and_then(|&offset| u64::try_from(offset).ok());
        offset.filter(|offset| values.record.shape.first().is_some_and(|len| offset <= len)).ok_or_else(
            || {
                let place = Place {
                    file: frames.file().to_path_buf(),
                    array: Some(path.to_owned()),
                    ..Place::default()
                };
                Damage::new("an offset outside the values").at(place)
            },
        )
    }

    fn change_part(
        &mut self,
        path: &str,
        part: Part,
        work: impl FnOnce(Writing<'_>) -> Result<()>,
    ) -> Result<()> {
        self.stage_write(path, |Staging { shared, frames, space, staged }| {
            let ragged = ragged(staged, path)?;
            let array = match part {
                Part::Offsets => &mut ragged.offsets,
                Part::Values => &mut ragged.values,
            };
            work(Writing::new(shared, frames, space, array, path))
        })
    }

    fn write_part(&mut self, path: &str, part: Part, at: u64, bytes: &[u8], itemsize: usize) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.change_part(path, part, |writing| {
            let selection = ResolvedSelection::of_box(&[at], &[(bytes.len() / itemsize) as u64]);
            let source = Source::new(bytes, 0, smallvec![itemsize as isize]);
            writing.write(&selection, &source, WriteOptions::new())
        })
    }

    fn set_ragged_shape(&mut self, path: &str, shape: &[u64]) -> Result<()> {
        self.stage_write(path, |Staging { staged, .. }| {
            ragged(staged, path)?.record.shape = Dims::from(shape);
            Ok(())
        })
    }
}

fn ragged<'a>(staged: &'a mut Staged, path: &str) -> Result<&'a mut StagedRagged> {
    match staged {
        Staged::Ragged(ragged) => Ok(ragged),
        Staged::Array(_) => Err(Error::invalid(format!("'{path}' is not a ragged array"))),
    }
}

/// That a ragged array has items of this kind, of values of type `T`.
fn check_element<T: Element>(record: &RaggedRecord, element: RaggedElement, path: &str) -> Result<()> {
    if record.element == element && T::matches(&record.values.dtype) {
        return Ok(());
    }
    let stored = match record.element {
        RaggedElement::Strings => "strings".to_owned(),
        RaggedElement::Values => format!("runs of {}", record.values.dtype),
    };
    let wanted = match element {
        RaggedElement::Strings => "strings".to_owned(),
        RaggedElement::Values => format!("runs of {}", T::NAME),
    };
    Err(Error::DtypeMismatch { array: path.to_owned(), stored, wanted })
}
