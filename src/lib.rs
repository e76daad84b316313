//! A memory-mapped random-access array store.
//!
//! One `.brick` file holds named n-d arrays in small compressed blocks. Any selection is read by decoding only the blocks
//! that it touches, in parallel, straight into the caller's memory; arrays of [`Codec::Raw`] are read with no copy at all.
//! Each reader sees one committed state, and a crash loses nothing that was committed.
//!
//! ```
//! use brickmap::{ArraySpec, Dtype, Selection, Store};
//!
//! # let directory = std::env::temp_dir().join(format!("brickmap-lib-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let path = directory.join("volume.brick");
//! // Write a volume.
//! let store = Store::create(&path)?;
//! let mut writer = store.writer()?;
//! writer.create_array("density", &ArraySpec::new(Dtype::F32, [64, 128, 128]))?;
//! let items: Vec<f32> = (0..64 * 128 * 128).map(|n| (n as f32).sqrt()).collect();
//! writer.write("density", &Selection::all(), &items)?;
//! writer.commit()?;
//!
//! // Read a box of it.
//! let store = Store::open(&path)?;
//! let density = store.array("density")?;
//! let part: Vec<f32> = density.read(&Selection::from((10..20, .., 5)))?;
//! assert_eq!(part.len(), 10 * 128);
//! assert_eq!(part[0], items[(10 * 128) * 128 + 5]);
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok::<(), brickmap::Error>(())
//! ```
//!
//! # Overview of types
//!
//! - [`Store`] is an open file, [`OpenOptions`] how it is opened or created.
//! - [`Snapshot`] is one committed state; [`Array`] and [`Ragged`] are what is in it.
//! - [`Selection`] says which items are read or written, with NumPy's semantics.
//! - [`Writer`] is a transaction: it creates arrays ([`ArraySpec`], [`Codec`]) and changes them, and publishes all of it
//!   with one commit. Items are written with [`Writer::write`], [`Writer::write_strided`] (any memory order) and
//!   [`Writer::fill`]; the shape changes with [`Writer::append`], [`Writer::append_array`], [`Writer::concatenate`],
//!   [`Writer::resize`], [`Writer::insert`] and [`Writer::remove`]; names with [`Writer::rename`] and [`Writer::delete`].
//! - [`Snapshot::copy_to`] and [`Writer::copy`] copy arrays and groups ([`CopyOptions`]), [`Store::compact`] and
//!   [`Snapshot::compact_into`] whole stores; [`Snapshot::to_bytes`] makes the bytes of one in memory, which
//!   [`Store::from_bytes`] opens.
//! - [`Dtype`] is what items are; [`Element`] ties Rust types to it.
//! - [`Store::verify`] walks a whole file and names what is damaged, in a [`Report`].
//! - [`Error`] is everything that can go wrong.
//!
//! The file format is specified byte by byte in SPEC.md.
//!
//! # Features
//!
//! `mmap`, `threads` and `write` are on by default; without them the crate reads stores from memory or with plain reads,
//! on one thread.

#![cfg_attr(
    not(feature = "write"),
    allow(dead_code, unused_imports, reason = "the encoding half of each layer is idle")
)]

mod array;
mod codec;
#[cfg(feature = "write")]
mod compact;
#[cfg(feature = "write")]
mod copy;
mod dtype;
mod error;
mod format;
mod num;
mod pool;
mod progress;
mod selection;
mod shape;
mod storage;
mod store;
mod verify;

pub use array::{Array, Codec, Profile, Ragged, RaggedItems, StridedMut, Strings};
#[cfg(feature = "write")]
pub use array::{ArraySpec, Strided, WriteOptions};
#[cfg(feature = "bench")]
#[doc(hidden)]
pub use codec::bench as codec_bench;
#[cfg(feature = "write")]
pub use copy::CopyOptions;
pub use dtype::{ByteOrder, Dtype, Element, MAX_ITEMSIZE, TimeBase, TimeUnit, VoidType};
pub use error::{Error, Place, Result};
pub use progress::{Progress, ProgressCallback};
pub use selection::{Axis, Selection};
pub use shape::{MAX_LEN, MAX_NDIM};
pub use storage::Backend;
pub use store::{Attributes, Change, ChangeKind, Entry, EntryKind, OpenOptions, Snapshot, Store};
#[cfg(feature = "write")]
pub use store::{Durability, Writer};
pub use verify::{Finding, Report};
