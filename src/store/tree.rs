//! Looking up keys in the catalog and the free-space tree.

use super::frames::Frames;
use crate::error::Result;
use crate::format::{Pointer, TreeCell, TreePage};
use std::ops::ControlFlow;

/// A range of keys that a page must stay in, and the level that it must have.
pub(super) struct Limits<'a> {
    pub(super) level: Option<u8>,
    pub(super) low: &'a [u8],
    pub(super) high: Option<&'a [u8]>,
}

/// The limits of a root page.
pub(super) const WHOLE: Limits<'static> = Limits { level: None, low: b"", high: None };

impl<'a> Limits<'a> {
    /// The limits of the page below cell `at`.
    fn below(&'a self, page: &'a TreePage<'a>, at: usize) -> Limits<'a> {
        let high = page.cells().get(at + 1).map(|(key, _)| *key).or(self.high);
        Limits { level: Some(page.level().wrapping_sub(1)), low: page.cells()[at].0, high }
    }
}

/// Parses the page that `pointer` leads to.
pub(super) fn page<'a>(
    frames: &'a Frames,
    pointer: &Pointer,
    limits: &Limits<'_>,
    buf: &'a mut Vec<u8>,
) -> Result<TreePage<'a>> {
    let Pointer::Frame { extent, .. } = *pointer else {
        return Err(frames.damage(crate::error::Damage::new("a tree page that is not there"), None));
    };
    let bytes = frames.checked(pointer, buf)?;
    TreePage::parse(bytes, frames.bounds(), limits.level, limits.low, limits.high)
        .map_err(|damage| frames.damage(damage, Some(extent.offset)))
}

/// The value of a cell in a leaf.
pub(crate) fn value(frames: &Frames, cell: &TreeCell<'_>) -> Result<Vec<u8>> {
    match cell {
        TreeCell::Inline(value) => Ok(value.to_vec()),
        TreeCell::Blob(pointer) => frames.blob(pointer),
        TreeCell::Child(_) => Ok(Vec::new()),
    }
}

/// The value of `key`. Reads one page a level.
pub(crate) fn get(frames: &Frames, root: &Pointer, key: &[u8]) -> Result<Option<Vec<u8>>> {
    get_below(frames, root, &WHOLE, key)
}

/// The value of `key`, in the part of a tree below the page that `pointer` leads to.
pub(super) fn get_below(
    frames: &Frames,
    pointer: &Pointer,
    limits: &Limits<'_>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    fn descend(
        frames: &Frames,
        pointer: &Pointer,
        limits: &Limits<'_>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let mut buf = Vec::new();
        let page = page(frames, pointer, limits, &mut buf)?;
        match page.position(key) {
            None => Ok(None),
            Some(at) => match &page.cells()[at].1 {
                TreeCell::Child(below) => descend(frames, below, &limits.below(&page, at), key),
                cell => value(frames, cell).map(Some),
            },
        }
    }
    if *pointer == Pointer::Null {
        return Ok(None);
    }
    descend(frames, pointer, limits, key)
}

/// What [`scan`] meets.
pub(crate) enum Met<'a> {
    /// A page of the tree, before what is below it. `Break` leaves it out.
    Page(&'a Pointer),
    /// A key, and its cell, of which [`value`] gives the value.
    Entry { key: &'a [u8], cell: &'a TreeCell<'a> },
    /// A page that cannot be read; the scan goes on behind it.
    Lost(crate::Error),
}

/// Calls `visit` for each page and key from `from` on, in order, until it returns `Break` for an entry.
pub(crate) fn scan(
    frames: &Frames,
    root: &Pointer,
    from: &[u8],
    visit: &mut dyn FnMut(Met<'_>) -> ControlFlow<()>,
) {
    let _stopped = scan_below(frames, root, &WHOLE, from, visit);
}

/// As [`scan`], in the part of a tree below the page that `pointer` leads to. Says whether `visit` stopped it.
pub(super) fn scan_below(
    frames: &Frames,
    pointer: &Pointer,
    limits: &Limits<'_>,
    from: &[u8],
    visit: &mut dyn FnMut(Met<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if *pointer == Pointer::Null || visit(Met::Page(pointer)).is_break() {
        return ControlFlow::Continue(());
    }
    let mut buf = Vec::new();
    let page = match page(frames, pointer, limits, &mut buf) {
        Ok(page) => page,
        Err(error) => return visit(Met::Lost(error)),
    };
    let first = page.cells().partition_point(|(key, _)| *key < from);
    let first = if page.level() > 0 { first.saturating_sub(1) } else { first };
    for at in first..page.cells().len() {
        let (key, cell) = &page.cells()[at];
        match cell {
            TreeCell::Child(below) => scan_below(frames, below, &limits.below(&page, at), from, visit)?,
            cell => visit(Met::Entry { key, cell })?,
        }
    }
    ControlFlow::Continue(())
}

/// Calls `visit` for each key from `from` on until it returns `Break`; the first page that cannot be read ends it.
pub(crate) fn entries(
    frames: &Frames,
    root: &Pointer,
    from: &[u8],
    mut visit: impl FnMut(&[u8], &TreeCell<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    entries_below(frames, root, &WHOLE, from, &mut visit).map(|_| ())
}

/// What is called for keys and their cells, until it returns `Break`.
pub(super) type VisitEntry<'a> = dyn FnMut(&[u8], &TreeCell<'_>) -> Result<ControlFlow<()>> + 'a;

/// As [`entries`], in the part of a tree below the page that `pointer` leads to. Says whether `visit` stopped it.
pub(super) fn entries_below(
    frames: &Frames,
    pointer: &Pointer,
    limits: &Limits<'_>,
    from: &[u8],
    visit: &mut VisitEntry<'_>,
) -> Result<ControlFlow<()>> {
    let mut outcome = Ok(());
    let stopped = scan_below(frames, pointer, limits, from, &mut |met| {
        let step = match met {
            Met::Page(_) => Ok(ControlFlow::Continue(())),
            Met::Entry { key, cell } => visit(key, cell),
            Met::Lost(error) => Err(error),
        };
        step.unwrap_or_else(|error| {
            outcome = Err(error);
            ControlFlow::Break(())
        })
    });
    outcome.map(|()| stopped)
}
