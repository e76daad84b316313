//! Selections out of Rust numbers, ranges, lists and tuples.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::{Axis, Selection};

/// An integer that can be an index. Not named outside, so that nobody else implements it.
pub trait Integer: Copy {
    /// The integer as an index. What does not fit is outside every array, as `i64::MAX` is, since no dimension is
    /// longer than that.
    fn index(self) -> i64;
}

macro_rules! integer {
    ($($int:ty),*) => {$(
        impl Integer for $int {
            fn index(self) -> i64 {
                // Only what is too large does not fit; no type here reaches below i64::MIN.
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }

        impl From<$int> for Axis {
            fn from(index: $int) -> Self {
                Axis::Index(index.index())
            }
        }

        impl From<$int> for Selection {
            fn from(index: $int) -> Self {
                Selection { axes: vec![index.into()] }
            }
        }
    )*};
}

integer!(i32, i64, isize, u32, u64, usize);

/// The end of a range that ends with `last`: after -1, the last index of all, there is nothing but the end.
fn after(last: i64) -> Option<i64> {
    if last == -1 { None } else { last.checked_add(1) }
}

/// Conversions into an [`Axis`], and into a [`Selection`] with this entry alone.
macro_rules! convert {
    ($([$($generics:tt)*] $from:ty, $value:ident => $axis:expr;)*) => {$(
        impl<$($generics)*> From<$from> for Axis {
            fn from($value: $from) -> Self {
                $axis
            }
        }

        impl<$($generics)*> From<$from> for Selection {
            fn from(value: $from) -> Self {
                Selection { axes: vec![value.into()] }
            }
        }
    )*};
}

fn range(start: Option<i64>, stop: Option<i64>) -> Axis {
    Axis::Range { start, stop, step: 1 }
}

fn list<T: Integer>(indices: &[T]) -> Axis {
    Axis::List(indices.iter().map(|index| index.index()).collect())
}

convert! {
    [T: Integer] Range<T>, bounds => range(Some(bounds.start.index()), Some(bounds.end.index()));
    [T: Integer] RangeFrom<T>, bounds => range(Some(bounds.start.index()), None);
    [T: Integer] RangeTo<T>, bounds => range(None, Some(bounds.end.index()));
    [T: Integer] RangeInclusive<T>, bounds => range(Some(bounds.start().index()), after(bounds.end().index()));
    [T: Integer] RangeToInclusive<T>, bounds => range(None, after(bounds.end.index()));
    [] RangeFull, _range => Axis::FULL;
    [T: Integer] Vec<T>, indices => list(&indices);
    [T: Integer] &[T], indices => list(indices);
    [T: Integer, const N: usize] [T; N], indices => list(&indices);
}

impl From<Axis> for Selection {
    fn from(axis: Axis) -> Self {
        Selection { axes: vec![axis] }
    }
}

impl From<Vec<Axis>> for Selection {
    fn from(axes: Vec<Axis>) -> Self {
        Selection { axes }
    }
}

impl From<&Selection> for Selection {
    fn from(selection: &Selection) -> Self {
        selection.clone()
    }
}

/// The whole array, as NumPy's `array[()]`.
impl From<()> for Selection {
    fn from((): ()) -> Self {
        Selection::all()
    }
}

macro_rules! tuple {
    ($($type:ident $value:ident),*) => {
        impl<$($type: Into<Axis>),*> From<($($type,)*)> for Selection {
            fn from(($($value,)*): ($($type,)*)) -> Self {
                Selection { axes: vec![$($value.into()),*] }
            }
        }
    };
}

tuple!(A a);
tuple!(A a, B b);
tuple!(A a, B b, C c);
tuple!(A a, B b, C c, D d);
tuple!(A a, B b, C c, D d, E e);
tuple!(A a, B b, C c, D d, E e, F f);
