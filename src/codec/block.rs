//! An opened block and the copies out of it.

use super::decode::room;
use super::kernel::{self, Isa, Plane, Rows, Stores};
use super::planes::Planes;

/// Where the items of an open block come from.
pub(super) enum Source<'a> {
    /// The items in order.
    Items(&'a [u8]),
    /// One item that stands for all.
    Repeated(&'a [u8]),
    /// Byte planes of the words.
    Planes(Planes<'a>),
    /// Byte planes of the differences; `items` is room for the items and holds them once they are `undone`.
    Differences { planes: Planes<'a>, stride: usize, items: &'a mut Vec<u8>, undone: bool },
}

/// A block whose streams are decoded and checked: copying items out of it cannot fail.
pub(crate) struct OpenBlock<'a> {
    source: Source<'a>,
    itemsize: usize,
    /// Items that can be copied out.
    count: usize,
    isa: Isa,
    stores: Stores,
}

impl<'a> OpenBlock<'a> {
    /// A block of which the first `count` items can be copied. `source` has at least these.
    pub(super) fn new(source: Source<'a>, itemsize: usize, count: usize, isa: Isa) -> Self {
        OpenBlock { source, itemsize, count, isa, stores: Stores::Cached }
    }

    /// How [`copy_rows`](Self::copy_rows) writes from here on.
    pub(crate) fn set_stores(&mut self, stores: Stores) {
        self.stores = stores;
    }

    /// Copies `rows` runs of `row_len` items: run `r` starts at item `first + r * row_step` and goes, without gaps,
    /// to `dst + r * dst_row_stride`.
    ///
    /// A delta block that is copied as one run from its first item goes straight to `dst`; otherwise its differences
    /// are undone once in the decoder's scratch.
    ///
    /// # Panics
    ///
    /// If an item lies past the end of the range that the block was opened for.
    ///
    /// # Safety
    ///
    /// `dst + r * dst_row_stride` must be valid for writes of `row_len` items for each `r` below `rows`, and these places
    /// must overlap neither each other nor the stored bytes. They need not be initialised or aligned.
    pub(crate) unsafe fn copy_rows(
        &mut self,
        first: usize,
        row_len: usize,
        rows: usize,
        row_step: usize,
        dst: *mut u8,
        dst_row_stride: isize,
    ) {
        if row_len == 0 || rows == 0 {
            return;
        }
        let end =
            (rows - 1).checked_mul(row_step).and_then(|last| last.checked_add(first)?.checked_add(row_len));
        assert!(end.is_some_and(|end| end <= self.count), "items past the end of an open block");
        let size = self.itemsize;
        let joined =
            row_step == row_len && dst_row_stride.unsigned_abs() == row_len * size && dst_row_stride > 0;
        let (row_len, rows) = if joined { (row_len * rows, 1) } else { (row_len, rows) };
        if let (Source::Differences { planes, stride, undone: false, .. }, 0, 1) = (&self.source, first, rows)
        {
            let words = row_len * (size / planes.len());
            // SAFETY: the planes have at least `count` items of words, and `dst` takes the one run.
            unsafe { kernel::undo_differences(self.isa, planes, *stride, words, dst) };
            return;
        }
        let (isa, stores) = (self.isa, self.stores);
        match self.settled() {
            // SAFETY: the runs lie within the block's items by the assertion above, and the caller vouches for the
            // destination.
            Settled::Items(items) => unsafe {
                let mut src = items.as_ptr().add(first * size);
                for r in 0..rows {
                    dst.offset(r as isize * dst_row_stride).copy_from_nonoverlapping(src, row_len * size);
                    src = src.wrapping_add(row_step * size);
                }
            },
            // SAFETY: the caller vouches for the destination.
            Settled::Repeated(item) => unsafe { kernel::repeat(item, row_len, rows, dst, dst_row_stride) },
            // SAFETY: as for items.
            Settled::Planes(planes) => unsafe {
                let words = size / planes.len();
                let rows = Rows { first: first * words, len: row_len * words, rows, step: row_step * words };
                kernel::interleave(isa, planes, rows, dst, dst_row_stride, stores);
            },
        }
    }

    /// Copies the `len` items `first`, `first + step`, ... to `dst`, `dst + dst_stride`, ...
    ///
    /// # Panics
    ///
    /// If an item lies outside of the range that the block was opened for.
    ///
    /// # Safety
    ///
    /// Each of the `len` places must be valid for writes of one item and not overlap the stored bytes. They need not
    /// be initialised or aligned.
    pub(crate) unsafe fn copy_strided(
        &mut self,
        first: usize,
        step: isize,
        len: usize,
        dst: *mut u8,
        dst_stride: isize,
    ) {
        if len == 0 {
            return;
        }
        let last =
            isize::try_from(len - 1).ok().and_then(|n| n.checked_mul(step)?.checked_add_unsigned(first));
        let inside = |item: isize| usize::try_from(item).is_ok_and(|item| item < self.count);
        assert!(first < self.count && last.is_some_and(inside), "items outside of an open block");
        let (size, isa) = (self.itemsize, self.isa);
        match self.settled() {
            // SAFETY: the first and last item lie within the block's items by the assertion above, so all do, and the
            // caller vouches for the destination.
            Settled::Items(items) => unsafe {
                let src = items.as_ptr().add(first * size);
                kernel::copy_items(size, len, src, step * size as isize, dst, dst_stride);
            },
            // SAFETY: the caller vouches for the destination.
            Settled::Repeated(item) => unsafe {
                kernel::copy_items(size, len, item.as_ptr(), 0, dst, dst_stride)
            },
            // SAFETY: as for items.
            Settled::Planes(planes) => unsafe {
                kernel::pick(isa, planes, size, first, step, len, dst, dst_stride);
            },
        }
    }

    /// What to copy from: undoes the differences of a delta block the first time.
    fn settled(&mut self) -> Settled<'_> {
        match &mut self.source {
            Source::Items(items) => Settled::Items(items),
            Source::Repeated(item) => Settled::Repeated(item),
            Source::Planes(planes) => Settled::Planes(planes),
            Source::Differences { planes, stride, items, undone } => {
                let items = room(items, self.count * self.itemsize);
                if !*undone {
                    let words = items.len() / planes.len();
                    // SAFETY: the planes have at least `count` items of words, and there is room for them.
                    unsafe { kernel::undo_differences(self.isa, planes, *stride, words, items.as_mut_ptr()) };
                    *undone = true;
                }
                Settled::Items(items)
            }
        }
    }
}

/// [`Source`] as far as the copies tell it apart.
enum Settled<'a> {
    Items(&'a [u8]),
    Repeated(&'a [u8]),
    Planes(&'a [Plane<'a>]),
}
