//! Destinations with strides.

use super::destination::{Destination, as_uninit};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::selection::ResolvedSelection;
use smallvec::SmallVec;

/// Memory of the caller's in which items do not stand one after the other: a part of a larger array, Fortran order, a
/// reversed axis.
///
/// ```
/// use brickmap::StridedMut;
///
/// // The columns 1 and 2 of a matrix of 3 rows and 4 columns, as a destination of shape (3, 2).
/// let mut matrix = [0f32; 12];
/// let columns = StridedMut::new(&mut matrix, 1, &[3, 2], &[4, 1])?;
/// # let _ = columns;
/// # Ok::<(), brickmap::Error>(())
/// ```
pub struct StridedMut<'a, T> {
    items: &'a mut [T],
    offset: usize,
    shape: SmallVec<[u64; 4]>,
    strides: SmallVec<[isize; 4]>,
}

impl<'a, T: Element> StridedMut<'a, T> {
    /// Memory in which item (i, j, ...) stands at `offset + i * strides[0] + j * strides[1] + ...`, counted in items. All
    /// must be inside `items`, and no two at the same place.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if that does not hold.
    pub fn new(items: &'a mut [T], offset: usize, shape: &[u64], strides: &[isize]) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::invalid(format!("{} strides for {} dimensions", strides.len(), shape.len())));
        }
        let wide = || Error::invalid(format!("strides of {strides:?} items are outside the memory"));
        let bytes: Option<SmallVec<[isize; 4]>> =
            strides.iter().map(|stride| stride.checked_mul(size_of::<T>() as isize)).collect();
        let strides = bytes.ok_or_else(wide)?;
        let destination = StridedMut { items, offset, shape: shape.into(), strides };
        let StridedMut { items, offset, shape, strides } = destination;
        Destination::strided(as_uninit(items), byte_offset::<T>(offset)?, &shape, &strides, size_of::<T>())?;
        Ok(StridedMut { items, offset, shape, strides })
    }

    /// The destination for a selection of this shape.
    pub(super) fn resolve(self, selection: &ResolvedSelection) -> Result<Destination<'a>> {
        if *self.shape != *selection.out_shape() {
            return Err(Error::invalid(format!(
                "the selection has the shape {:?}, and the destination {:?}",
                selection.out_shape(),
                self.shape
            )));
        }
        let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, selection.axes().len());
        for (axis, stride) in selection.out_axes().iter().zip(&self.strides) {
            if let Some(axis) = axis {
                strides[*axis] = *stride;
            }
        }
        let offset = byte_offset::<T>(self.offset)?;
        Destination::strided(as_uninit(self.items), offset, &selection.full_shape(), &strides, size_of::<T>())
    }
}

fn byte_offset<T>(items: usize) -> Result<usize> {
    items.checked_mul(size_of::<T>()).ok_or_else(|| Error::invalid(format!("an offset of {items} items")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_that_reach_past_all_memory_are_refused() {
        for (shape, strides) in [([u64::MAX; 5], [isize::MAX; 5]), ([1 << 62; 5], [isize::MIN; 5])] {
            let mut memory = [0u8];
            let destination = StridedMut::new(&mut memory, 0, &shape, &strides);
            assert!(matches!(destination, Err(Error::InvalidArgument { .. })));
        }
    }
}
