//! A memory-mapped random-access array store.
#![deny(missing_docs)]

mod codec;
mod dtype;
mod error;
mod selection;
mod shape;

pub use dtype::{ByteOrder, Dtype, Element, MAX_ITEMSIZE, TimeBase, TimeUnit, VoidType};
pub use error::{Error, Result};
pub use selection::{Axis, Selection};
pub use shape::{MAX_LEN, MAX_NDIM};
