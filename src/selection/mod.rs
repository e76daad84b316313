//! What is read or written: one entry per dimension.
//!
//! The caller builds a [`Selection`] out of [`Axis`] entries, from Rust ranges or from NumPy's slice syntax. It
//! knows no array yet. [`Selection::resolve`] turns it, against a shape, into a [`ResolvedSelection`]: exactly one
//! [`AxisSelection`] per dimension of the array, with bounds checked and negative indices gone. Reading and writing
//! ask it which chunks are [`touched`](AxisSelection::touched), and which [`Part`] of it lies
//! [`within`](AxisSelection::within) a chunk or block.
//!
//! `convert` holds the conversions from Rust types, `syntax` the text form.

use crate::error::Result;

mod axis;
mod convert;
mod resolve;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use axis::{AxisSelection, Part};
pub(crate) use resolve::ResolvedSelection;

/// One entry of a [`Selection`]. All but [`Ellipsis`](Axis::Ellipsis) and [`NewAxis`](Axis::NewAxis) speak of one
/// dimension of the array.
///
/// Negative indices count from the end, as in Python.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Axis {
    /// One index. The dimension is dropped from the result.
    Index(i64),
    /// Python's `start:stop:step`. What reaches outside the array is cut off; the step may be negative, not 0.
    Range {
        /// First index; by default the first of the dimension, or the last if the step is negative.
        start: Option<i64>,
        /// End, itself not included; by default past the last index, or before the first if the step is negative.
        stop: Option<i64>,
        /// Distance from one index to the next.
        step: i64,
    },
    /// Indices in any order, also repeated or none. Lists in several dimensions select their outer product, as
    /// NumPy's `np.ix_` does. When writing to an index that is listed twice, the last value stays.
    List(Vec<i64>),
    /// As many whole dimensions as are not spoken of elsewhere; at most once in a selection.
    Ellipsis,
    /// A new dimension of length 1 in the result.
    NewAxis,
}

impl Axis {
    /// A whole dimension, Python's `:`.
    pub const FULL: Axis = Axis::Range { start: None, stop: None, step: 1 };
}

/// What to read or write, with NumPy's semantics.
///
/// Dimensions that are not spoken of are taken whole.
///
/// ```
/// use brickmap::{Axis, Selection};
///
/// let selection = Selection::from((0..10, .., 5));
/// assert_eq!(selection.shape(&[100, 20, 30])?, [10, 20]);
///
/// let same: Selection = "0:10, :, 5".parse()?;
/// assert_eq!(same, selection);
///
/// let every_other = Selection::new([Axis::Range { start: None, stop: None, step: -2 }]);
/// assert_eq!(every_other.shape(&[5, 3])?, [3, 3]);
/// # Ok::<(), brickmap::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    axes: Vec<Axis>,
}

impl Selection {
    /// The whole array.
    pub fn all() -> Self {
        Selection::default()
    }

    /// A selection with these entries, for the dimensions from the first on.
    pub fn new<A: Into<Axis>>(axes: impl IntoIterator<Item = A>) -> Self {
        Selection { axes: axes.into_iter().map(Into::into).collect() }
    }

    /// The entries, as they were given.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The shape of the result for an array of shape `array_shape`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds) for an index outside the array and for more entries than
    /// dimensions, [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a step of 0 or a second ellipsis,
    /// [`Error::TooLarge`](crate::Error::TooLarge) if the result has more than [`MAX_NDIM`](crate::MAX_NDIM)
    /// dimensions or more than [`MAX_LEN`](crate::MAX_LEN) items.
    pub fn shape(&self, array_shape: &[u64]) -> Result<Vec<u64>> {
        Ok(self.resolve(array_shape)?.out_shape().to_vec())
    }
}
