//! What is selected along one dimension of an array.

/// The selected indices of one dimension, all of them inside the array.
///
/// Output positions number the selected indices in the order in which they were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AxisSelection {
    /// `start`, `start + step`, ...: `len` indices, at output positions 0, 1, ...
    ///
    /// The step is 1 if there are fewer than two indices, never 0.
    Range {
        /// The first index; 0 if there is none.
        start: u64,
        /// Distance to the next index; negative for descending ones.
        step: i64,
        /// Number of indices.
        len: u64,
    },
    /// An index list.
    List {
        /// (array index, output position), sorted. An index may occur more than once, a position does not.
        sorted: Vec<(u64, u64)>,
    },
}

/// The part of an [`AxisSelection`] that lies in a range of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The indices `first`, `first + step`, ... go to the output positions `out`, `out + 1`, ...
    Range {
        /// The array index of the first one in output order.
        first: u64,
        /// Distance to the next array index.
        step: i64,
        /// Number of indices, at least 1.
        len: u64,
        /// The output position of the first one.
        out: u64,
    },
    /// (array index, output position), sorted, at least one.
    List(&'a [(u64, u64)]),
}

impl AxisSelection {
    /// The `len` indices from `start` on. The last one is inside the array.
    pub(super) fn range(start: u64, step: i64, len: u64) -> Self {
        match len {
            0 => AxisSelection::Range { start: 0, step: 1, len },
            1 => AxisSelection::Range { start, step: 1, len },
            _ => AxisSelection::Range { start, step, len },
        }
    }

    /// Indices in the order in which they were asked for, all inside the array.
    pub(super) fn list(indices: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<(u64, u64)> = indices.zip(0..).collect();
        sorted.sort_unstable();
        AxisSelection::List { sorted }
    }

    /// Number of selected indices, repeated ones counted as often as they occur.
    pub(crate) fn len(&self) -> u64 {
        match self {
            AxisSelection::Range { len, .. } => *len,
            AxisSelection::List { sorted } => sorted.len() as u64,
        }
    }

    /// What is selected of the indices `lo..hi`; `None` if nothing is. Takes O(1), for lists O(log n).
    pub(crate) fn within(&self, lo: u64, hi: u64) -> Option<Part<'_>> {
        match self {
            AxisSelection::Range { start, step, len } => range_within(*start, *step, *len, lo, hi),
            AxisSelection::List { sorted } => {
                let part = list_within(sorted, lo, hi);
                (!part.is_empty()).then_some(Part::List(part))
            }
        }
    }

    /// The least and the largest of the selected indices in `lo..hi`.
    #[cfg(feature = "write")]
    pub(crate) fn span(&self, lo: u64, hi: u64) -> Option<(u64, u64)> {
        match self.within(lo, hi)? {
            Part::Range { first, step, len, .. } => {
                let last = offset(first, step, len - 1);
                Some((first.min(last), first.max(last)))
            }
            Part::List(list) => Some((list.first()?.0, list.last()?.0)),
        }
    }

    /// Whether every index of `lo..hi` is selected, in whatever order.
    ///
    /// Takes O(1); for lists the time is that of looking at the part.
    pub(crate) fn covers(&self, lo: u64, hi: u64) -> bool {
        let Some(count) = hi.checked_sub(lo).filter(|&count| count > 0) else {
            return true;
        };
        match self.within(lo, hi) {
            None => false,
            // A progression repeats nothing: as many indices as there are, are all of them.
            Some(Part::Range { len, .. }) => len == count,
            Some(Part::List(part)) => {
                let distinct = 1 + part.windows(2).filter(|pair| pair[0].0 != pair[1].0).count() as u64;
                distinct == count
            }
        }
    }

    /// The numbers of the chunks of length `chunk` that hold a selected index, ascending, each once.
    ///
    /// The time is that of the chunks touched, not of the items.
    pub(crate) fn touched(&self, chunk: u64) -> Touched<'_> {
        let chunk = chunk.max(1);
        match self {
            AxisSelection::Range { len: 0, .. } => Touched::Run { next: 0, end: 0 },
            AxisSelection::Range { start, step, len } => {
                let distance = step.unsigned_abs();
                let other_end = offset(*start, *step, len - 1);
                let (first, last) = (*start.min(&other_end), *start.max(&other_end));
                if distance <= chunk {
                    // No step reaches over a whole chunk.
                    Touched::Run { next: first / chunk, end: last / chunk + 1 }
                } else {
                    Touched::Strided { next: first, step: distance, left: *len, chunk }
                }
            }
            AxisSelection::List { sorted } => Touched::List { rest: sorted, chunk },
        }
    }
}

/// The index `count` steps after `start`, which is known to be inside the array.
fn offset(start: u64, step: i64, count: u64) -> u64 {
    let distance = step.unsigned_abs().saturating_mul(count);
    if step < 0 { start.saturating_sub(distance) } else { start.saturating_add(distance) }
}

fn range_within(start: u64, step: i64, len: u64, lo: u64, hi: u64) -> Option<Part<'static>> {
    let distance = step.unsigned_abs().max(1);
    // Counts of steps. All of it stays in unsigned arithmetic: each difference is taken only where it is positive,
    // and a quotient plus 1 fits because indices are below 2^63.
    let (skipped, end) = if step > 0 {
        let before = |bound: u64| if bound > start { (bound - start).div_ceil(distance) } else { 0 };
        (before(lo), before(hi))
    } else {
        let skipped = if start < hi { 0 } else { ((start - hi) / distance).saturating_add(1) };
        let end = if start < lo { 0 } else { ((start - lo) / distance).saturating_add(1) };
        (skipped, end)
    };
    let end = end.min(len);
    let count = end.checked_sub(skipped).filter(|&count| count > 0)?;
    Some(Part::Range { first: offset(start, step, skipped), step, len: count, out: skipped })
}

fn list_within(sorted: &[(u64, u64)], lo: u64, hi: u64) -> &[(u64, u64)] {
    let from = sorted.partition_point(|&(index, _)| index < lo);
    let rest = &sorted[from..];
    &rest[..rest.partition_point(|&(index, _)| index < hi)]
}

/// Iterator over touched chunks, see [`AxisSelection::touched`].
#[derive(Clone, Debug)]
pub(crate) enum Touched<'a> {
    /// Every chunk from `next` to before `end`.
    Run { next: u64, end: u64 },
    /// Indices further apart than a chunk is long: each is in a chunk of its own.
    Strided { next: u64, step: u64, left: u64, chunk: u64 },
    /// The rest of a sorted list.
    List { rest: &'a [(u64, u64)], chunk: u64 },
}

impl Iterator for Touched<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Touched::Run { next, end } => {
                let number = (*next < *end).then_some(*next)?;
                *next += 1;
                Some(number)
            }
            Touched::Strided { next, step, left, chunk } => {
                *left = left.checked_sub(1)?;
                let number = *next / *chunk;
                *next = next.saturating_add(*step);
                Some(number)
            }
            Touched::List { rest, chunk } => {
                let (index, _) = rest.first()?;
                let number = index / *chunk;
                let end = number.saturating_add(1).saturating_mul(*chunk);
                *rest = &rest[rest.partition_point(|&(index, _)| index < end)..];
                Some(number)
            }
        }
    }
}
