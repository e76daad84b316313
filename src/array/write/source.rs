//! Where the items of a write come from, and the copies out of it.

use crate::error::{Error, Result};
use crate::num::saturating_usize;
use crate::selection::Part;
use crate::shape;
use smallvec::SmallVec;

/// The caller's items: the one at a position of the selection starts at `offset` and the sum of position times stride.
/// A stride may be 0.
#[derive(Clone)]
pub(in crate::array) struct Source<'a> {
    bytes: &'a [u8],
    offset: isize,
    strides: SmallVec<[isize; 4]>,
}

impl<'a> Source<'a> {
    /// Every position that the selection has must be inside `bytes`.
    pub(in crate::array) fn new(bytes: &'a [u8], offset: isize, strides: SmallVec<[isize; 4]>) -> Source<'a> {
        Source { bytes, offset, strides }
    }

    /// The one item that stands for all.
    pub(in crate::array) fn repeated(item: &'a [u8], ndim: usize) -> Source<'a> {
        Source { bytes: item, offset: 0, strides: SmallVec::from_elem(0, ndim) }
    }

    /// The item that stands for all positions, if there is one.
    pub(super) fn one_item(&self, itemsize: usize) -> Option<&'a [u8]> {
        let at = usize::try_from(self.offset).ok()?;
        let same = self.strides.iter().all(|&stride| stride == 0);
        if same { self.bytes.get(at..at.checked_add(itemsize)?) } else { None }
    }

    /// The same items with those of `parts` first, if they are ranges of step 1: positions count from their start.
    pub(super) fn window(&self, parts: &[Part<'_>]) -> Option<Source<'a>> {
        let mut offset = self.offset;
        for (part, stride) in parts.iter().zip(&self.strides) {
            match *part {
                Part::Range { step, len, out, .. } if step == 1 || len == 1 => {
                    offset += stride * saturating_usize(out) as isize;
                }
                _ => return None,
            }
        }
        Some(Source { bytes: self.bytes, offset, strides: self.strides.clone() })
    }

    /// The items of the first positions of `shape`, if they stand in C order without gaps.
    pub(super) fn lend(&self, shape: &[u64], itemsize: usize) -> Option<&'a [u8]> {
        let (dims, run) = self.trailing_run(shape, itemsize);
        if dims == 0 { self.at(self.offset, run) } else { None }
    }

    /// Puts the items of the first positions of `shape` in `buf`, in C order.
    pub(super) fn copy_to(&self, shape: &[u64], itemsize: usize, buf: &mut Vec<u8>) -> Result<()> {
        let total =
            shape::product(shape).map_or(usize::MAX, |len| saturating_usize(len).saturating_mul(itemsize));
        buf.clear();
        buf.try_reserve(total).map_err(|_| Error::TooLarge {
            what: format!("a buffer of {total} bytes; there is not that much memory"),
        })?;
        let (dims, run) = self.trailing_run(shape, itemsize);
        self.gather_runs(&shape[..dims], &self.strides[..dims], self.offset, run, buf);
        if buf.len() == total {
            Ok(())
        } else {
            Err(Error::InvalidState { what: "a source that ends before its items".into() })
        }
    }

    /// How many dimensions are left when the trailing ones without gaps are one run, and the bytes of it.
    fn trailing_run(&self, shape: &[u64], itemsize: usize) -> (usize, usize) {
        let (mut dims, mut run) = (shape.len(), itemsize);
        while dims > 0 && (shape[dims - 1] == 1 || self.strides[dims - 1] == run as isize) {
            run = run.saturating_mul(saturating_usize(shape[dims - 1]));
            dims -= 1;
        }
        (dims, run)
    }

    fn gather_runs(&self, shape: &[u64], strides: &[isize], at: isize, run: usize, out: &mut Vec<u8>) {
        match (shape, strides) {
            ([len], [stride]) => {
                let items = (0..saturating_usize(*len) as isize).map(|n| at + n * stride);
                match run {
                    1 => self.gather_items::<1>(items, out),
                    2 => self.gather_items::<2>(items, out),
                    4 => self.gather_items::<4>(items, out),
                    8 => self.gather_items::<8>(items, out),
                    16 => self.gather_items::<16>(items, out),
                    _ => {
                        items.filter_map(|at| self.at(at, run)).for_each(|bytes| out.extend_from_slice(bytes))
                    }
                }
            }
            ([len, shape @ ..], [stride, strides @ ..]) => {
                for n in 0..saturating_usize(*len) as isize {
                    self.gather_runs(shape, strides, at + n * stride, run, out);
                }
            }
            _ => out.extend_from_slice(self.at(at, run).unwrap_or_default()),
        }
    }

    /// As many items of a size that is known when this is compiled: several times faster than runs of any length.
    fn gather_items<const SIZE: usize>(&self, items: impl Iterator<Item = isize>, out: &mut Vec<u8>) {
        let item = |at: isize| self.bytes.get(usize::try_from(at).ok()?..)?.first_chunk::<SIZE>();
        items.filter_map(item).for_each(|item| out.extend_from_slice(item));
    }

    fn at(&self, at: isize, len: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(at).ok()?;
        self.bytes.get(start..start.checked_add(len)?)
    }

    /// Copies the items of `parts` to their places in a box of items at `origin` of the array, in memory with these
    /// strides.
    pub(super) fn scatter(
        &self,
        memory: &mut [u8],
        origin: &[u64],
        strides: &[isize],
        itemsize: usize,
        parts: &[Part<'_>],
    ) {
        let mut walk = Scatter { source: self, memory, itemsize };
        match parts.split_first() {
            None => walk.copy(0, self.offset, 1),
            Some((part, rest)) => {
                walk.dimension(part, rest, origin, strides, &self.strides, 0, self.offset);
            }
        }
    }
}

struct Scatter<'a, 'b> {
    source: &'a Source<'a>,
    memory: &'b mut [u8],
    itemsize: usize,
}

impl Scatter<'_, '_> {
    #[expect(clippy::too_many_arguments, reason = "the state of a recursive walk over dimensions")]
    fn dimension(
        &mut self,
        part: &Part<'_>,
        rest: &[Part<'_>],
        origin: &[u64],
        to_strides: &[isize],
        from_strides: &[isize],
        to: isize,
        from: isize,
    ) {
        let size = self.itemsize as isize;
        if let (Part::Range { first, step: 1, len, out }, [], [to_stride], [from_stride]) =
            (part, rest, to_strides, from_strides)
            && *to_stride == size
            && *from_stride == size
        {
            let index = saturating_usize(first - origin[0]) as isize;
            self.copy(
                to + index * size,
                from + saturating_usize(*out) as isize * size,
                saturating_usize(*len),
            );
            return;
        }
        let mut each = |index: u64, out: u64| {
            let to = to + saturating_usize(index - origin[0]) as isize * to_strides[0];
            let from = from + saturating_usize(out) as isize * from_strides[0];
            match rest.split_first() {
                None => self.copy(to, from, 1),
                Some((part, rest)) => {
                    self.dimension(part, rest, &origin[1..], &to_strides[1..], &from_strides[1..], to, from);
                }
            }
        };
        match *part {
            Part::Range { first, step, len, out } => {
                for n in 0..len {
                    each(first.wrapping_add_signed(step.wrapping_mul(n.cast_signed())), out + n);
                }
            }
            // In the order of positions, so that of an index that is listed twice the last value stays.
            Part::List(list) => {
                let mut list: Vec<_> = list.to_vec();
                list.sort_unstable_by_key(|(_, out)| *out);
                list.into_iter().for_each(|(index, out)| each(index, out));
            }
        }
    }

    fn copy(&mut self, to: isize, from: isize, items: usize) {
        let len = items * self.itemsize;
        let to = usize::try_from(to).unwrap_or(usize::MAX);
        if let (Some(to), Some(from)) =
            (self.memory.get_mut(to..to.saturating_add(len)), self.source.at(from, len))
        {
            to.copy_from_slice(from);
        }
    }
}
