//! Where a read puts its items: the only place that writes through raw pointers.

use crate::codec::{OpenBlock, Stores};
use crate::error::{Error, Result};
use crate::num::saturating_usize;
use crate::selection::Part;
use crate::shape::{self, Dims};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Results of at least this many bytes are written past the caches: they would not fit them.
const STREAM_FROM: u64 = 32 << 20;

/// Memory for the items of a selection: for each dimension of the array, how many there are and how far apart they stand.
///
/// Invariant: for every position within `shape`, the `itemsize` bytes at `start` + the sum of position times stride
/// are inside memory that is borrowed mutably for `'a`, and no two positions share a byte.
pub(crate) struct Destination<'a> {
    start: *mut u8,
    shape: Dims,
    /// Bytes.
    strides: SmallVec<[isize; 4]>,
    itemsize: usize,
    stores: Stores,
    memory: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

// SAFETY: a destination is a mutable borrow of plain bytes, which may move to another thread.
unsafe impl Send for Destination<'_> {}
// SAFETY: a shared destination is written to by `receive` and `fill` only, whose callers promise that no two of them
// write to one position at the same time; nothing reads through it.
unsafe impl Sync for Destination<'_> {}

impl<'a> Destination<'a> {
    /// Items in C order without gaps. `memory` must have room for them.
    pub(crate) fn contiguous(
        memory: &'a mut [MaybeUninit<u8>],
        shape: &[u64],
        itemsize: usize,
    ) -> Result<Self> {
        let strides = byte_strides(shape, itemsize);
        Self::strided(memory, 0, shape, &strides, itemsize)
    }

    /// Items that stand `strides` bytes apart, the first at `offset`. All must be inside `memory`, and none may overlap
    /// another.
    pub(crate) fn strided(
        memory: &'a mut [MaybeUninit<u8>],
        offset: usize,
        shape: &[u64],
        strides: &[isize],
        itemsize: usize,
    ) -> Result<Self> {
        let too_small = || {
            Error::invalid(format!(
                "a destination of {} bytes has no room for items of {itemsize} bytes in the shape {shape:?} with strides \
                 of {strides:?} bytes from offset {offset}",
                memory.len()
            ))
        };
        if !shape.contains(&0) {
            let (mut low, mut high) = (offset as i128, offset as i128 + itemsize as i128);
            let mut axes: SmallVec<[(u128, u64); 4]> = SmallVec::new();
            for (&len, &stride) in shape.iter().zip(strides) {
                let reach = i128::from(len - 1).saturating_mul(stride as i128);
                low = low.saturating_add(reach.min(0));
                high = high.saturating_add(reach.max(0));
                if len > 1 {
                    axes.push(((stride as i128).unsigned_abs(), len));
                }
            }
            if low < 0 || high > memory.len() as i128 {
                return Err(too_small());
            }
            // Sorted by stride, each dimension must step over all that the ones before it reach.
            axes.sort_unstable();
            let mut reach = itemsize as u128;
            for (stride, len) in axes {
                if stride < reach {
                    return Err(Error::invalid(format!(
                        "a destination in which items overlap: strides of {strides:?} bytes for the shape {shape:?}"
                    )));
                }
                reach = reach.saturating_add(stride * u128::from(len - 1));
            }
        }
        let start = memory.as_mut_ptr().cast::<u8>().wrapping_add(offset);
        let bytes = shape::product(shape).unwrap_or(u64::MAX).saturating_mul(itemsize as u64);
        let stores = if bytes >= STREAM_FROM { Stores::Streaming } else { Stores::Cached };
        Ok(Destination {
            start,
            shape: shape.into(),
            strides: strides.into(),
            itemsize,
            stores,
            memory: PhantomData,
        })
    }

    /// Copies the items of a block that `parts` select. `origin` is the block's first item in the array, `block_shape`
    /// its shape; `parts` has the array's indices, all in the block, with their positions here.
    ///
    /// # Safety
    ///
    /// No other thread may write to these positions at the same time.
    pub(crate) unsafe fn receive(
        &self,
        block: &mut OpenBlock<'_>,
        origin: &[u64],
        block_shape: &[u64],
        parts: &[Part<'_>],
    ) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.receive_from(block, 0, origin, block_shape, parts) }
    }

    /// As [`Destination::receive`], from a block that has the items of `block_shape` from number `skip` on.
    ///
    /// # Safety
    ///
    /// No other thread may write to these positions at the same time.
    pub(crate) unsafe fn receive_from(
        &self,
        block: &mut OpenBlock<'_>,
        skip: usize,
        origin: &[u64],
        block_shape: &[u64],
        parts: &[Part<'_>],
    ) {
        let Some((mut axes, first, at)) = self.axes(origin, block_shape, parts) else { return };
        let first = first.wrapping_sub(skip);
        block.set_stores(self.stores);
        let (itemsize, mut row_len) = (self.itemsize, 1usize);
        // Dimensions that are contiguous both in the block and here are one run of items.
        while let Some(Axis { len, step, stride, list: None }) = axes.last()
            && *step == row_len as isize
            && *stride == (row_len * itemsize) as isize
        {
            row_len *= len;
            axes.pop();
        }
        // Then the last dimension that is not a list is walked by the kernel, the others here.
        let inner = axes.iter().rposition(|axis| axis.list.is_none()).map(|at| axes.remove(at));
        for_each(&axes, first, at, &mut |first, at| {
            let dst = self.start.wrapping_offset(at);
            // SAFETY: `axes` has checked that the positions are within the shape, so that by the invariant the items
            // are inside the destination's memory; that nobody else writes there is the caller's promise. The block
            // checks its own side.
            unsafe {
                match &inner {
                    None => block.copy_rows(first, row_len, 1, 0, dst, 0),
                    Some(Axis { len, step, stride, .. }) if *step > 0 && (row_len > 1 || *len == 1) => {
                        block.copy_rows(first, row_len, *len, step.unsigned_abs(), dst, *stride);
                    }
                    Some(Axis { len, step, stride, .. }) if row_len == 1 => {
                        block.copy_strided(first, *step, *len, dst, *stride);
                    }
                    Some(Axis { len, step, stride, .. }) => {
                        for n in 0..*len {
                            let row = first.wrapping_add_signed(*step * n as isize);
                            block.copy_rows(row, row_len, 1, 0, dst.wrapping_offset(*stride * n as isize), 0);
                        }
                    }
                }
            }
        });
    }

    /// Sets the items of `parts` to `item`.
    ///
    /// # Safety
    ///
    /// No other thread may write to these positions at the same time.
    pub(crate) unsafe fn fill(&self, item: &[u8], parts: &[Part<'_>]) {
        debug_assert_eq!(item.len(), self.itemsize);
        let Some((mut axes, _, at)) = self.axes(&[], &[], parts) else { return };
        let mut run = 1usize;
        while let Some(Axis { len, stride, list: None, .. }) = axes.last()
            && *stride == (run * item.len()) as isize
        {
            run *= len;
            axes.pop();
        }
        let same = item.iter().all(|byte| *byte == item[0]);
        for_each(&axes, 0, at, &mut |_, at| {
            let dst = self.start.wrapping_offset(at);
            // SAFETY: as in `receive`.
            unsafe {
                if same {
                    dst.write_bytes(item[0], run * item.len());
                    return;
                }
                // The first item, then what is there already, doubled.
                dst.copy_from_nonoverlapping(item.as_ptr(), item.len());
                let (mut done, total) = (item.len(), run * item.len());
                while done < total {
                    let more = done.min(total - done);
                    dst.add(done).copy_from_nonoverlapping(dst, more);
                    done += more;
                }
            }
        });
    }

    /// The dimensions to walk for `parts`, outermost first, without those of one index; the first item in the block and
    /// its byte offset here. `None` if there is nothing to do. With an empty `block_shape` only this side counts.
    fn axes<'p>(
        &self,
        origin: &[u64],
        block_shape: &[u64],
        parts: &[Part<'p>],
    ) -> Option<(SmallVec<[Axis<'p>; 4]>, usize, isize)> {
        let mut axes = SmallVec::new();
        let (mut first, mut at, mut items) = (0usize, 0isize, 1usize);
        for (dim, part) in parts.iter().enumerate().rev() {
            let (stride, room) = (self.strides[dim], self.shape[dim]);
            let origin = origin.get(dim).copied().unwrap_or(0);
            match *part {
                Part::Range { first: index, step, len, out } => {
                    if len == 0 || out.checked_add(len).is_none_or(|end| end > room) {
                        return None;
                    }
                    if !block_shape.is_empty() {
                        first += saturating_usize(index - origin) * items;
                    }
                    at += stride * saturating_usize(out) as isize;
                    if len > 1 {
                        let step = step as isize * items as isize;
                        axes.push(Axis { len: saturating_usize(len), step, stride, list: None });
                    }
                }
                Part::List(list) => {
                    if list.is_empty() || list.iter().any(|(_, out)| *out >= room) {
                        return None;
                    }
                    let list = List { entries: list, origin };
                    axes.push(Axis {
                        len: list.entries.len(),
                        step: items as isize,
                        stride,
                        list: Some(list),
                    });
                }
            }
            items *= block_shape.get(dim).map_or(1, |&len| saturating_usize(len));
        }
        axes.reverse();
        Some((axes, first, at))
    }
}

/// One dimension of a walk.
struct Axis<'p> {
    len: usize,
    /// Items of the block from one index to the next, or, with a list, for a difference of 1.
    step: isize,
    /// Bytes of the destination, likewise.
    stride: isize,
    list: Option<List<'p>>,
}

struct List<'p> {
    /// Array indices and positions.
    entries: &'p [(u64, u64)],
    origin: u64,
}

/// Calls `visit` with the item and byte offset of every combination of `axes`.
fn for_each(axes: &[Axis<'_>], first: usize, at: isize, visit: &mut impl FnMut(usize, isize)) {
    let Some((axis, inner)) = axes.split_first() else { return visit(first, at) };
    match &axis.list {
        None => {
            for n in 0..axis.len as isize {
                for_each(inner, first.wrapping_add_signed(axis.step * n), at + axis.stride * n, visit);
            }
        }
        Some(list) => {
            for (index, out) in list.entries {
                let steps = saturating_usize(index.wrapping_sub(list.origin));
                let item = first.wrapping_add(steps.wrapping_mul(axis.step.unsigned_abs()));
                for_each(inner, item, at + axis.stride * saturating_usize(*out) as isize, visit);
            }
        }
    }
}

/// Byte strides of items in C order; 0 for dimensions of an empty shape.
pub(crate) fn byte_strides(shape: &[u64], itemsize: usize) -> SmallVec<[isize; 4]> {
    let strides = shape::c_strides(shape).unwrap_or_else(|| Dims::from_elem(u64::MAX, shape.len()));
    let bytes = |items: u64| items.checked_mul(itemsize as u64).and_then(|bytes| isize::try_from(bytes).ok());
    strides.into_iter().map(|items| bytes(items).unwrap_or(isize::MAX)).collect()
}

/// A vector of `len` items that `read` fills completely, given its bytes.
pub(crate) fn filled<T: bytemuck::Pod>(
    len: u64,
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<()>,
) -> Result<Vec<T>> {
    let count = saturating_usize(len);
    let mut items: Vec<T> = Vec::new();
    items.try_reserve_exact(count).map_err(|_| Error::TooLarge {
        what: format!("{len} items of {} bytes; there is not that much memory", size_of::<T>()),
    })?;
    let spare = &mut items.spare_capacity_mut()[..count];
    // SAFETY: the bytes of uninitialised items are uninitialised bytes, of the same memory and lifetime.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast::<MaybeUninit<u8>>(), size_of_val(spare))
    };
    read(bytes)?;
    // SAFETY: `read` has returned without an error, so it has filled all `count` items, and any bits are a valid `T`.
    unsafe { items.set_len(count) };
    Ok(items)
}

/// Initialised items as bytes that may be overwritten.
pub(crate) fn as_uninit<T: bytemuck::Pod>(items: &mut [T]) -> &mut [MaybeUninit<u8>] {
    let len = size_of_val(items);
    // SAFETY: the same memory; only initialised bytes are ever written to a `MaybeUninit<u8>` by a read, and any bits
    // are a valid `T`.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), len) }
}
