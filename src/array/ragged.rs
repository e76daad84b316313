//! Arrays of variable-length items: offsets and values, two arrays seen as one.

use super::{Array, read};
use crate::dtype::{Dtype, Element};
use crate::error::{Damage, Error, Result};
use crate::format::{Pointer, RaggedElement, Record};
use crate::num::saturating_usize;
use crate::selection::{AxisSelection, ResolvedSelection, Selection};
use crate::shape::Dims;
use crate::store::{Snapshot, Store, index};
use std::ops::Range;

/// Items whose offsets are checked together.
const ITEMS_AT_ONCE: u64 = 1 << 20;
/// Bytes of text that are checked together, unless it is that of one string.
const TEXT_AT_ONCE: u64 = 64 << 20;

/// An array of strings, or of runs of values, in one snapshot of a store.
///
/// Reading a selection reads the offsets of its items and then their values; runs of items are read at once.
pub struct Ragged {
    element: RaggedElement,
    shape: Dims,
    offsets: Array,
    values: Array,
}

/// Strings that were read, one after the other in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
}

/// Runs of values that were read, one after the other in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RaggedItems<T> {
    values: Vec<T>,
    ends: Vec<usize>,
}

fn range(ends: &[usize], n: usize) -> Option<Range<usize>> {
    Some(if n == 0 { 0 } else { *ends.get(n - 1)? }..*ends.get(n)?)
}

impl Strings {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `n`, counted in C order of the selection.
    pub fn get(&self, n: usize) -> Option<&str> {
        self.text.get(range(&self.ends, n)?)
    }

    /// All strings, in C order of the selection.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|n| self.get(n).unwrap_or_default())
    }
}

impl<T> RaggedItems<T> {
    /// Number of runs.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Run `n`, counted in C order of the selection.
    pub fn get(&self, n: usize) -> Option<&[T]> {
        self.values.get(range(&self.ends, n)?)
    }

    /// All runs, in C order of the selection.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.len()).map(|n| self.get(n).unwrap_or_default())
    }
}

impl Store {
    /// The ragged array `path` in the state that this handle shows now.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::ragged`].
    pub fn ragged(&self, path: &str) -> Result<Ragged> {
        self.snapshot().ragged(path)
    }
}

impl Snapshot {
    /// The ragged array `path`.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::array`].
    pub fn ragged(&self, path: &str) -> Result<Ragged> {
        let path = path.trim_matches('/');
        match self.record(path)? {
            Record::Ragged(record) => Ok(Ragged {
                element: record.element,
                shape: record.shape,
                offsets: Array::new(self.clone(), path.to_owned(), record.offsets),
                values: Array::new(self.clone(), path.to_owned(), record.values),
            }),
            Record::Unknown(what) => {
                Err(Error::Unsupported { what: format!("'{path}' is {what}, of a later version") })
            }
            Record::Group | Record::Array(_) => {
                Err(Error::invalid(format!("'{path}' is not a ragged array")))
            }
        }
    }
}

impl Ragged {
    /// Length in each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether the items are strings; else they are runs of values.
    pub fn is_strings(&self) -> bool {
        self.element == RaggedElement::Strings
    }

    /// What the values are; bytes of UTF-8 for strings.
    pub fn value_dtype(&self) -> &Dtype {
        self.values.dtype()
    }

    /// Number of values of all items together.
    pub fn value_count(&self) -> u64 {
        self.values.len()
    }

    /// Bytes of the file that hold the array's chunks.
    pub fn stored_bytes(&self) -> u64 {
        self.offsets.stored_bytes().saturating_add(self.values.stored_bytes())
    }

    /// Reads the strings of a selection.
    ///
    /// # Errors
    ///
    /// As [`Array::read`]; [`Error::Corrupt`] also for offsets that are out of order and for bytes that are not UTF-8.
    pub fn read_strings(&self, selection: &Selection) -> Result<Strings> {
        if !self.is_strings() {
            return Err(Error::DtypeMismatch {
                array: self.values.path().to_owned(),
                stored: format!("runs of {}", self.value_dtype()),
                wanted: "strings".to_owned(),
            });
        }
        self.strings(self.read_runs::<u8>(selection)?)
    }

    fn strings(&self, runs: RaggedItems<u8>) -> Result<Strings> {
        let RaggedItems { values, ends } = runs;
        let text = String::from_utf8(values).map_err(|_| self.damage("a string that is not UTF-8"))?;
        if ends.iter().all(|&end| text.is_char_boundary(end)) {
            Ok(Strings { text, ends })
        } else {
            Err(self.damage("a string that ends within a character"))
        }
    }

    /// Reads the runs of values of a selection.
    ///
    /// # Errors
    ///
    /// As [`Array::read`]; [`Error::Corrupt`] also for offsets that are out of order.
    pub fn read_runs<T: Element>(&self, selection: &Selection) -> Result<RaggedItems<T>> {
        super::check_dtype::<T>(self.value_dtype(), self.values.path())?;
        let selection = selection.resolve(&self.shape)?;
        let mut items = RaggedItems { values: Vec::new(), ends: Vec::new() };
        items.ends.try_reserve_exact(saturating_usize(selection.len())).map_err(|_| Error::TooLarge {
            what: format!("{} items; there is not that much memory", selection.len()),
        })?;
        self.for_each_run(&selection, |run| self.read_run(run, &mut items))?;
        Ok(items)
    }

    /// The items that must be checked to know that all are right, in runs: those whose offsets are stored, and those at the
    /// borders. All offsets in between are equal, since they are one fill value or one constant.
    pub(crate) fn runs_to_check(&self) -> Result<Vec<Range<u64>>> {
        let items = self.offsets.len().saturating_sub(1);
        let (frames, record) = (self.offsets.snapshot().frames()?, &self.offsets.record);
        let mut runs = Vec::new();
        // Item n has the offsets n and n + 1: what is said of offsets is said of the item before them too.
        let mut push = |first: u64, after: u64| {
            let run = first.saturating_sub(1)..after.min(items);
            if !run.is_empty() {
                runs.push(run);
            }
        };
        push(0, 1);
        index::walk(frames, record.index, record.index_levels(), 0, &mut |met| {
            if let index::Met::Chunk { key, entry } = met
                && let Some(chunk) = record.coordinates(key)
            {
                let (origin, limit) = (record.chunk_origin(&chunk), record.chunk_limit(&chunk));
                let (Some(&origin), Some(&len)) = (origin.first(), limit.first()) else { return Ok(true) };
                let stored = match entry {
                    Pointer::Constant(_) => 0,
                    _ => read::stored_part(frames, record, &entry, &limit)?.first().copied().unwrap_or(0),
                };
                push(origin, origin + stored);
                push(origin + stored, origin + stored + 1);
                push(origin + len, origin + len + 1);
            }
            Ok(true)
        })?;
        Ok(runs)
    }

    /// That the offsets of the items `run` are in order and inside the values, and that strings are text. Of `budget`
    /// it takes the bytes that it reads.
    pub(crate) fn check_run(&self, run: Range<u64>, budget: &mut u64) -> Result<()> {
        let count = run.end - run.start;
        if count > ITEMS_AT_ONCE {
            return self.check_halves(run, budget);
        }
        self.spend((count + 1) * 8, budget)?;
        let offsets = self.read_offsets(run.clone())?;
        let (Some(low), Some(high)) = (offsets.first(), offsets.last()) else { return Ok(()) };
        let text = (high - low).cast_unsigned();
        if !self.is_strings() || text == 0 {
            return Ok(());
        }
        if text > TEXT_AT_ONCE && count > 1 {
            return self.check_halves(run, budget);
        }
        self.spend(text, budget)?;
        let mut runs = RaggedItems { values: Vec::new(), ends: Vec::new() };
        self.read_run::<u8>(run, &mut runs)?;
        self.strings(runs).map(|_| ())
    }

    fn check_halves(&self, run: Range<u64>, budget: &mut u64) -> Result<()> {
        let middle = run.start + (run.end - run.start) / 2;
        self.check_run(run.start..middle, budget)?;
        self.check_run(middle..run.end, budget)
    }

    fn spend(&self, bytes: u64, budget: &mut u64) -> Result<()> {
        *budget = budget.checked_sub(bytes).ok_or_else(|| Error::TooLarge {
            what: "items that claim far more bytes than are stored, too many to check".into(),
        })?;
        Ok(())
    }

    /// Calls `visit` with the numbers of items that follow each other: one read of offsets and one of values.
    fn for_each_run(
        &self,
        selection: &ResolvedSelection,
        mut visit: impl FnMut(Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let mut wanted = numbers(selection, &self.shape).peekable();
        while let Some(first) = wanted.next() {
            let mut after = first + 1;
            while wanted.next_if_eq(&after).is_some() {
                after += 1;
            }
            visit(first..after)?;
        }
        Ok(())
    }

    /// The offsets at which the items `run` start, and where the last one ends.
    fn read_offsets(&self, run: Range<u64>) -> Result<Vec<i64>> {
        let bound = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let offsets: Vec<i64> = self.offsets.read(&Selection::from(bound(run.start)..bound(run.end + 1)))?;
        let ascends = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let inside = offsets.first().is_some_and(|&low| low >= 0)
            && offsets.last().is_some_and(|high| high.cast_unsigned() <= self.values.len());
        if ascends && inside {
            Ok(offsets)
        } else {
            Err(self.damage("offsets that are out of order or outside the values"))
        }
    }

    /// Reads the items `run`, counted in C order, and adds them to `items`.
    fn read_run<T: Element>(&self, run: Range<u64>, items: &mut RaggedItems<T>) -> Result<()> {
        let offsets = self.read_offsets(run)?;
        let (Some(&low), Some(&high)) = (offsets.first(), offsets.last()) else { return Ok(()) };
        let base = items.values.len();
        let mut values = self.values.read(&Selection::from(low..high))?;
        items.values.try_reserve(values.len()).map_err(|_| Error::TooLarge {
            what: format!("{} values; there is not that much memory", base + values.len()),
        })?;
        if base == 0 {
            items.values = values
        } else {
            items.values.append(&mut values)
        }
        let ends = offsets[1..].iter().map(|offset| base + saturating_usize((offset - low).cast_unsigned()));
        items.ends.extend(ends);
        Ok(())
    }

    fn damage(&self, what: &str) -> Error {
        Damage::new(what).at(self.values.snapshot().place(self.values.path()))
    }
}

/// The numbers, in C order of the array, of the items of a selection, in C order of the selection.
fn numbers<'a>(selection: &'a ResolvedSelection, shape: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    let indices: Vec<Indices> = selection.axes().iter().map(Indices::of).collect();
    (0..selection.len()).map(move |n| {
        let (mut rest, mut number, mut items) = (n, 0, 1);
        for (indices, len) in indices.iter().zip(shape).rev() {
            let count = indices.len();
            number += indices.at(rest % count) * items;
            rest /= count;
            items *= len;
        }
        number
    })
}

/// The indices along one dimension, in the order of their positions.
enum Indices {
    Range { start: u64, step: i64, len: u64 },
    List(Vec<u64>),
}

impl Indices {
    fn of(axis: &AxisSelection) -> Indices {
        match axis {
            AxisSelection::Range { start, step, len } => {
                Indices::Range { start: *start, step: *step, len: *len }
            }
            AxisSelection::List { sorted } => {
                let mut by_position: Vec<(u64, u64)> =
                    sorted.iter().map(|(index, out)| (*out, *index)).collect();
                by_position.sort_unstable();
                Indices::List(by_position.into_iter().map(|(_, index)| index).collect())
            }
        }
    }

    fn len(&self) -> u64 {
        match self {
            Indices::Range { len, .. } => *len,
            Indices::List(indices) => indices.len() as u64,
        }
    }

    fn at(&self, n: u64) -> u64 {
        match self {
            Indices::Range { start, step, .. } => {
                start.wrapping_add_signed(step.wrapping_mul(n.cast_signed()))
            }
            Indices::List(indices) => indices[saturating_usize(n)],
        }
    }
}

#[cfg(feature = "write")]
mod write {
    use super::super::spec::ArraySpec;
    use super::super::write::{Source, WriteOptions, Writing};
    use crate::dtype::{Dtype, Element};
    use crate::error::{Error, Result};
    use crate::format::{ArrayRecord, RaggedElement, RaggedRecord, Record};
    use crate::selection::{ResolvedSelection, Selection};
    use crate::shape::Dims;
    use crate::store::{Staged, Staging, Writer};
    use smallvec::smallvec;

    impl Writer {
        /// Creates an array of strings and writes all of them, in C order.
        ///
        /// # Errors
        ///
        /// As [`Writer::create_array`] and [`Writer::write`]; [`Error::InvalidArgument`] if the number of strings is not that
        /// of the shape, [`Error::TooLarge`] for a shape past the limits.
        pub fn create_strings<S: AsRef<str>>(
            &mut self,
            path: &str,
            shape: &[u64],
            strings: &[S],
        ) -> Result<()> {
            let runs = strings.iter().map(|string| string.as_ref().as_bytes());
            self.create_runs(path, shape, RaggedElement::Strings, Dtype::U8, runs)
        }

        /// Creates a ragged array of runs of values and writes all of them, in C order.
        ///
        /// # Errors
        ///
        /// As [`Writer::create_array`] and [`Writer::write`]; [`Error::InvalidArgument`] if the number of runs is not that
        /// of the shape, [`Error::TooLarge`] for a shape past the limits.
        pub fn create_ragged<T: Element, R: AsRef<[T]>>(
            &mut self,
            path: &str,
            shape: &[u64],
            runs: &[R],
        ) -> Result<()> {
            let runs = runs.iter().map(|run| run.as_ref());
            self.create_runs(path, shape, RaggedElement::Values, T::dtype(), runs)
        }

        fn create_runs<'a, T: Element>(
            &mut self,
            path: &str,
            shape: &[u64],
            element: RaggedElement,
            dtype: Dtype,
            runs: impl ExactSizeIterator<Item = &'a [T]>,
        ) -> Result<()> {
            // The limits of shapes, of ragged arrays as of others, are those of what can be selected.
            if Selection::all().resolve(shape)?.len() != runs.len() as u64 {
                return Err(Error::invalid(format!(
                    "{} items for a ragged array of shape {shape:?}",
                    runs.len()
                )));
            }
            let mut offsets = vec![0i64];
            let mut values: Vec<T> = Vec::new();
            for run in runs {
                values.extend_from_slice(run);
                offsets.push(i64::try_from(values.len()).unwrap_or(i64::MAX));
            }
            let record = RaggedRecord {
                element,
                shape: Dims::from(shape),
                offsets: part(Dtype::I64, offsets.len())?,
                values: part(dtype, values.len())?,
            };
            self.add_array(path, Record::Ragged(Box::new(record)))?;
            self.stage_write(path, |Staging { shared, frames, space, staged }| {
                let Staged::Ragged(ragged) = staged else {
                    return Err(Error::invalid(format!("'{path}' is not a ragged array")));
                };
                let parts: [(_, &[u8], usize); 2] = [
                    (&mut ragged.offsets, bytemuck::cast_slice(&offsets), size_of::<i64>()),
                    (&mut ragged.values, bytemuck::cast_slice(&values), size_of::<T>()),
                ];
                for (array, bytes, itemsize) in parts {
                    let selection = ResolvedSelection::of_box(&[0], &array.record.shape);
                    let source = Source::new(bytes, 0, smallvec![itemsize as isize]);
                    Writing::new(shared, frames, space, array, path).write(
                        &selection,
                        &source,
                        WriteOptions::new(),
                    )?;
                }
                Ok(())
            })
        }
    }

    /// One of the two arrays that a ragged array is, cut into chunks as one that may become long.
    fn part(dtype: Dtype, len: usize) -> Result<ArrayRecord> {
        let (chunks, blocks) = ArraySpec::new(dtype.clone(), [0]).resolved_shapes()?;
        ArraySpec::new(dtype, [len as u64]).chunks(chunks).blocks(blocks).record()
    }
}
