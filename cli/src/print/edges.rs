//! Which items of a selection are shown.

use brickmap::{Axis, Result, Selection};

/// Results with more items are summarised, as NumPy does by default.
const THRESHOLD: u64 = 1000;
/// Items that are shown at each end of a dimension.
const EDGE: u64 = 3;

/// A selection, cut to what is shown of it.
pub(crate) struct Summary {
    /// What to read.
    pub(crate) selection: Selection,
    /// Shape of the whole result.
    pub(crate) full_shape: Vec<u64>,
    /// Shape of what is read.
    pub(crate) shape: Vec<u64>,
}

impl Summary {
    pub(crate) fn new(selection: &Selection, array_shape: &[u64]) -> Result<Summary> {
        let full_shape = selection.shape(array_shape)?;
        let items = full_shape.iter().fold(1u64, |items, &len| items.saturating_mul(len));
        let selection = if items > THRESHOLD { shown(selection, array_shape) } else { selection.clone() };
        let shape = selection.shape(array_shape)?;
        Ok(Summary { selection, full_shape, shape })
    }

    /// Whether items are left out in a dimension of this length.
    pub(crate) fn shortens(len: u64) -> bool {
        len > 2 * EDGE
    }
}

/// A selection that is known to fit, with the long dimensions cut to their ends.
fn shown(selection: &Selection, array_shape: &[u64]) -> Selection {
    let spoken_of =
        selection.axes().iter().filter(|axis| !matches!(axis, Axis::Ellipsis | Axis::NewAxis)).count();
    let unspoken = array_shape.len().saturating_sub(spoken_of);
    let mut axes: Vec<Axis> = Vec::new();
    for axis in selection.axes() {
        match axis {
            Axis::Ellipsis => axes.extend(std::iter::repeat_n(Axis::FULL, unspoken)),
            other => axes.push(other.clone()),
        }
    }
    if !selection.axes().contains(&Axis::Ellipsis) {
        axes.extend(std::iter::repeat_n(Axis::FULL, unspoken));
    }
    let mut lens = array_shape.iter();
    for axis in &mut axes {
        if *axis != Axis::NewAxis {
            let len = lens.next().copied().unwrap_or(0);
            ends(axis, len);
        }
    }
    Selection::new(axes)
}

/// Cuts a dimension to its ends, if it is long.
fn ends(axis: &mut Axis, len: u64) {
    match axis {
        Axis::Range { start, stop, step } => {
            let (first, count) = resolve(*start, *stop, *step, len);
            if Summary::shortens(count) {
                let at = |n: u64| {
                    let index = i128::from(first) + i128::from(*step) * i128::from(n);
                    i64::try_from(index).unwrap_or(0)
                };
                *axis = Axis::List((0..EDGE).chain(count - EDGE..count).map(at).collect());
            }
        }
        Axis::List(list) if Summary::shortens(list.len() as u64) => {
            list.drain(EDGE as usize..list.len() - EDGE as usize);
        }
        _ => {}
    }
}

/// First index and number of indices of Python's `start:stop:step`.
fn resolve(start: Option<i64>, stop: Option<i64>, step: i64, len: u64) -> (i64, u64) {
    let len = i128::from(len);
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let bound = |bound: i64| {
        let bound = i128::from(bound);
        (if bound < 0 { bound + len } else { bound }).clamp(lowest, highest)
    };
    let (first, end) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (first, end) = (start.map_or(first, bound), stop.map_or(end, bound));
    let gap = if step > 0 { end - first } else { first - end };
    let count = u128::try_from(gap).unwrap_or(0).div_ceil(u128::from(step.unsigned_abs().max(1)));
    (i64::try_from(first).unwrap_or(0), u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(selection: &str, shape: &[u64]) -> (Selection, Vec<u64>) {
        let summary = Summary::new(&selection.parse().unwrap(), shape).unwrap();
        (summary.selection, summary.shape)
    }

    #[test]
    fn short_results_are_shown_whole() {
        assert_eq!(summary("::2", &[2000]), ("::2".parse().unwrap(), vec![1000]));
    }

    #[test]
    fn long_dimensions_are_cut_to_their_ends() {
        let (selection, shape) = summary("10:1000, ..., None, ::-3, 5", &[2000, 6, 500, 9]);
        let expected = "[10, 11, 12, 997, 998, 999], :, None, [499, 496, 493, 7, 4, 1], 5";
        assert_eq!(selection, expected.parse().unwrap());
        assert_eq!(shape, [6, 6, 1, 6]);
        let (selection, _) = summary("[[8, 7, 6, 5, 4, 3, 2, 1]]", &[10, 1000]);
        assert_eq!(selection, "[8, 7, 6, 3, 2, 1], [0, 1, 2, 997, 998, 999]".parse().unwrap());
    }
}
