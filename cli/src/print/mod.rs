//! Showing items: as text as NumPy prints arrays, and as JSON.
//!
//! [`Item`] is what one item is made of. [`texts`] turns items into words of equal width, [`layout()`] puts them into
//! brackets and lines, and [`edges`] finds which items a long array is summarised by, so that only they are read.

mod edges;
mod float;
mod item;
mod json;
mod layout;
mod text;
mod time;

pub(crate) use edges::Summary;
pub(crate) use item::Item;
pub(crate) use json::{nested, write_item};
pub(crate) use layout::layout;
pub(crate) use text::{quoted, texts};
