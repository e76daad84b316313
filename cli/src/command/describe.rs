//! What there is to say about an entry of a store, for `info` and `ls`.

use crate::failure::Failure;
use crate::terminal;
use brickmap::{Array, Entry, EntryKind, Ragged, Snapshot};
use serde_json::{Map, Value, json};

/// An entry of a store, opened.
pub(super) enum Described {
    Group,
    Array(Box<Array>),
    Ragged(Box<Ragged>),
    Unknown,
}

impl Described {
    pub(super) fn open(snapshot: &Snapshot, entry: &Entry) -> Result<Described, Failure> {
        Ok(match entry.kind {
            EntryKind::Group => Described::Group,
            EntryKind::Array => Described::Array(Box::new(snapshot.array(&entry.path)?)),
            EntryKind::Ragged => Described::Ragged(Box::new(snapshot.ragged(&entry.path)?)),
            _ => Described::Unknown,
        })
    }

    /// What the items are, in a word.
    pub(super) fn dtype(&self) -> String {
        match self {
            Described::Group => "group".into(),
            Described::Array(array) => terminal::dtype(array.dtype()),
            Described::Ragged(ragged) if ragged.is_strings() => "strings".into(),
            Described::Ragged(ragged) => format!("runs of {}", terminal::dtype(ragged.value_dtype())),
            Described::Unknown => "of a later version".into(),
        }
    }

    pub(super) fn shape(&self) -> Option<&[u64]> {
        match self {
            Described::Array(array) => Some(array.shape()),
            Described::Ragged(ragged) => Some(ragged.shape()),
            _ => None,
        }
    }

    /// Bytes of the items, and bytes of the file that hold them.
    pub(super) fn sizes(&self) -> Option<(u64, u64)> {
        match self {
            Described::Array(array) => Some((array.nbytes(), array.stored_bytes())),
            Described::Ragged(ragged) => {
                let itemsize = ragged.value_dtype().itemsize() as u64;
                Some((ragged.value_count().saturating_mul(itemsize), ragged.stored_bytes()))
            }
            _ => None,
        }
    }

    /// All of it, for programs.
    pub(super) fn json(&self, path: &str) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.into(), value);
        put("path", json!(path));
        match self {
            Described::Group => {
                put("kind", json!("group"));
            }
            Described::Array(array) => {
                put("kind", json!("array"));
                put("dtype", json!(array.dtype().to_string()));
                put("shape", json!(array.shape()));
                put("chunks", json!(array.chunks()));
                put("blocks", json!(array.blocks()));
                put("codec", terminal::codec_json(array.codec()));
                put("stored_chunks", json!(array.stored_chunks()));
            }
            Described::Ragged(ragged) => {
                put("kind", json!(if ragged.is_strings() { "strings" } else { "ragged" }));
                put("dtype", json!(ragged.value_dtype().to_string()));
                put("shape", json!(ragged.shape()));
            }
            Described::Unknown => {
                put("kind", json!("unknown"));
            }
        }
        if let Some((bytes, stored)) = self.sizes() {
            put("bytes", json!(bytes));
            put("stored_bytes", json!(stored));
        }
        object
    }
}
