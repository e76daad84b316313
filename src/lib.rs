//! A memory-mapped random-access array store.
#![deny(missing_docs)]

mod codec;
mod dtype;
mod error;
mod selection;
mod shape;

pub use error::{Error, Result};
