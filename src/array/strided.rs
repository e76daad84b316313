//! Destinations and sources with strides.

use super::destination::{Destination, as_uninit};
#[cfg(feature = "write")]
use super::write::Source;
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

/// Items of the caller's that do not stand one after the other, and may stand for more than one position: strides may be 0 or
/// overlap.
#[cfg(feature = "write")]
pub struct Strided<'a, T> {
    items: &'a [T],
    offset: isize,
    shape: SmallVec<[u64; 4]>,
    strides: SmallVec<[isize; 4]>,
}

#[cfg(feature = "write")]
impl<'a, T: Element> Strided<'a, T> {
    /// Memory in which item (i, j, ...) stands at `offset + i * strides[0] + j * strides[1] + ...`, counted in items. All
    /// must be inside `items`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if that does not hold.
    pub fn new(items: &'a [T], offset: usize, shape: &[u64], strides: &[isize]) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::invalid(format!("{} strides for {} dimensions", strides.len(), shape.len())));
        }
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (&len, &stride) in shape.iter().zip(strides) {
            let reach = i128::from(len.saturating_sub(1)).saturating_mul(stride as i128);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        if !shape.contains(&0) && (low < 0 || high >= items.len() as i128) {
            return Err(Error::invalid(format!(
                "items of the shape {shape:?} with strides of {strides:?} items from offset {offset} are not all inside \
                 the {} items of the memory",
                items.len()
            )));
        }
        let size = size_of::<T>() as isize;
        // Of dimensions that are not walked the strides mean nothing, and may be any.
        let strides = strides.iter().map(|stride| stride.saturating_mul(size)).collect();
        let offset = isize::try_from(byte_offset::<T>(offset)?).unwrap_or(isize::MAX);
        Ok(Strided { items, offset, shape: shape.into(), strides })
    }

    /// The source for a selection, whose shape the items have or are repeated to.
    pub(super) fn resolve(self, selection: &ResolvedSelection) -> Result<Source<'a>> {
        let wanted = selection.out_shape();
        let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, selection.axes().len());
        let missing = wanted.len().checked_sub(self.shape.len());
        let fits = missing.is_some_and(|missing| {
            self.shape.iter().zip(&wanted[missing..]).all(|(&len, &wanted)| len == wanted || len == 1)
        });
        let Some(missing) = missing.filter(|_| fits) else {
            return Err(Error::invalid(format!(
                "items of the shape {:?} for a selection of the shape {wanted:?}",
                self.shape
            )));
        };
        let dims = self.shape.iter().zip(&self.strides).zip(&selection.out_axes()[missing..]);
        for ((&len, &stride), axis) in dims {
            if let Some(axis) = axis
                && len > 1
            {
                strides[*axis] = stride;
            }
        }
        Ok(Source::new(bytemuck::cast_slice(self.items), self.offset, strides))
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
