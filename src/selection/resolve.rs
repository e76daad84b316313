//! Selections against a shape.

use smallvec::SmallVec;

use super::{Axis, AxisSelection, Selection};
use crate::error::{Error, Result};
use crate::shape::{Dims, MAX_LEN, MAX_NDIM, product};

/// A [`Selection`] whose bounds were checked against a shape: one [`AxisSelection`] per dimension of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedSelection {
    axes: SmallVec<[AxisSelection; 4]>,
    out_shape: Dims,
    /// For each dimension of the result the one of the array that it comes from; `None` for a new one.
    out_axes: SmallVec<[Option<usize>; 4]>,
    len: u64,
}

impl ResolvedSelection {
    /// The box of `shape` at `origin`, which must lie inside the array.
    #[cfg(feature = "write")]
    pub(crate) fn of_box(origin: &[u64], shape: &[u64]) -> Self {
        ResolvedSelection {
            axes: origin
                .iter()
                .zip(shape)
                .map(|(&start, &len)| AxisSelection::range(start, 1, len))
                .collect(),
            out_shape: shape.into(),
            out_axes: (0..shape.len()).map(Some).collect(),
            len: product(shape).unwrap_or(u64::MAX),
        }
    }

    /// What is selected along each dimension of the array.
    pub(crate) fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// Shape of the result: without the dimensions of single indices, with the new ones.
    pub(crate) fn out_shape(&self) -> &[u64] {
        &self.out_shape
    }

    /// For each dimension of the result the one of the array that it comes from; `None` for a new one.
    pub(crate) fn out_axes(&self) -> &[Option<usize>] {
        &self.out_axes
    }

    /// Number of selected indices along each dimension of the array. In C order it numbers the same items as
    /// [`out_shape`](Self::out_shape), which differs in dimensions of length 1 only.
    pub(crate) fn full_shape(&self) -> Dims {
        self.axes.iter().map(AxisSelection::len).collect()
    }

    /// Number of items in the result.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Selection {
    /// Checks the selection against an array's shape. Allocates for index lists only, up to four dimensions.
    pub(crate) fn resolve(&self, shape: &[u64]) -> Result<ResolvedSelection> {
        if shape.len() > MAX_NDIM || shape.iter().any(|&length| length > MAX_LEN) {
            return Err(Error::TooLarge {
                what: format!(
                    "an array of shape {shape:?}; at most {MAX_NDIM} dimensions of at most {MAX_LEN}"
                ),
            });
        }
        if self.axes.iter().filter(|axis| matches!(axis, Axis::Ellipsis)).count() > 1 {
            return Err(Error::invalid("a selection has at most one ellipsis (...)"));
        }
        let spoken_of =
            self.axes.iter().filter(|axis| !matches!(axis, Axis::Ellipsis | Axis::NewAxis)).count();
        let Some(unspoken) = shape.len().checked_sub(spoken_of) else {
            return Err(Error::OutOfBounds {
                what: format!(
                    "the selection has entries for {spoken_of} dimensions, but the array has {}",
                    shape.len()
                ),
            });
        };

        let mut resolving =
            Resolving { shape, axes: SmallVec::new(), out_shape: Dims::new(), out_axes: SmallVec::new() };
        let mut explicit_ellipsis = false;
        for axis in &self.axes {
            match axis {
                Axis::Ellipsis => {
                    explicit_ellipsis = true;
                    resolving.whole(unspoken);
                }
                Axis::NewAxis => {
                    resolving.out_shape.push(1);
                    resolving.out_axes.push(None);
                }
                Axis::Index(index) => resolving.index(*index)?,
                Axis::Range { start, stop, step } => resolving.range(*start, *stop, *step)?,
                Axis::List(indices) => resolving.list(indices)?,
            }
        }
        if !explicit_ellipsis {
            resolving.whole(unspoken);
        }
        resolving.finish()
    }
}

/// A resolved selection as far as the entries have been gone through.
struct Resolving<'a> {
    shape: &'a [u64],
    axes: SmallVec<[AxisSelection; 4]>,
    out_shape: Dims,
    out_axes: SmallVec<[Option<usize>; 4]>,
}

impl Resolving<'_> {
    /// Number and length of the dimension that the next entry speaks of. There is one: they were counted.
    fn next(&self) -> (usize, u64) {
        let axis = self.axes.len();
        (axis, self.shape.get(axis).copied().unwrap_or(0))
    }

    fn push(&mut self, axis: AxisSelection) {
        self.out_shape.push(axis.len());
        self.out_axes.push(Some(self.axes.len()));
        self.axes.push(axis);
    }

    fn whole(&mut self, count: usize) {
        for _ in 0..count {
            let (_, length) = self.next();
            self.push(AxisSelection::range(0, 1, length));
        }
    }

    fn index(&mut self, index: i64) -> Result<()> {
        let (axis, length) = self.next();
        let index = wrap(index, axis, length)?;
        self.axes.push(AxisSelection::range(index, 1, 1));
        Ok(())
    }

    fn list(&mut self, indices: &[i64]) -> Result<()> {
        let (axis, length) = self.next();
        for &index in indices {
            wrap(index, axis, length)?;
        }
        self.push(AxisSelection::list(indices.iter().map(|&index| wrapped(index, length).unwrap_or(0))));
        Ok(())
    }

    fn range(&mut self, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<()> {
        let (axis, length) = self.next();
        let length = i128::from(length);
        // The two places before and past which nothing is: for a negative step they lie one lower.
        let (lowest, highest) = match step {
            0 => return Err(Error::invalid(format!("the step for axis {axis} is 0"))),
            1.. => (0, length),
            _ => (-1, length - 1),
        };
        let bound = |bound: i64| {
            let bound = i128::from(bound);
            (if bound < 0 { bound + length } else { bound }).clamp(lowest, highest)
        };
        let (first, end) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
        let first = start.map_or(first, bound);
        let end = stop.map_or(end, bound);
        let gap = if step > 0 { end - first } else { first - end };
        let distance = u128::from(step.unsigned_abs());
        // Both are at most the length, so that neither conversion fails.
        let count = u128::try_from(gap).map_or(0, |gap| gap.div_ceil(distance));
        let count = u64::try_from(count).unwrap_or(0);
        let first = u64::try_from(first).unwrap_or(0);
        self.push(AxisSelection::range(first, step, count));
        Ok(())
    }

    fn finish(self) -> Result<ResolvedSelection> {
        let Resolving { axes, out_shape, out_axes, .. } = self;
        if out_shape.len() > MAX_NDIM {
            return Err(Error::TooLarge {
                what: format!("a result of {} dimensions; the limit is {MAX_NDIM}", out_shape.len()),
            });
        }
        match product(&out_shape) {
            Some(len) if len <= MAX_LEN => Ok(ResolvedSelection { axes, out_shape, out_axes, len }),
            _ => Err(Error::TooLarge {
                what: format!("a result of shape {out_shape:?}, of more than {MAX_LEN} items"),
            }),
        }
    }
}

/// The index from the start of a dimension; `None` if it is outside.
fn wrapped(index: i64, length: u64) -> Option<u64> {
    let from_start = match u64::try_from(index) {
        Ok(index) => index,
        Err(_) => length.checked_sub(index.unsigned_abs())?,
    };
    (from_start < length).then_some(from_start)
}

fn wrap(index: i64, axis: usize, length: u64) -> Result<u64> {
    wrapped(index, length).ok_or_else(|| Error::OutOfBounds {
        what: format!("index {index} is out of bounds for axis {axis} with length {length}"),
    })
}
