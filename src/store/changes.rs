//! What one commit, or several, changed.

use super::snapshot::Snapshot;
use super::{path, tree};
use crate::error::Result;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A group or array that two snapshots of a store have in different states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path; empty for the store itself.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a group or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It is not there any more.
    Removed,
    /// Its items, shape or attributes are others.
    Changed,
}

impl Snapshot {
    /// What is different here from `older`, another snapshot of the same store, in the order of the paths. Reads both
    /// catalogs, unless they are the same.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a catalog is damaged.
    pub fn changes_since(&self, older: &Snapshot) -> Result<Vec<Change>> {
        if self.root().catalog == older.root().catalog {
            return Ok(Vec::new());
        }
        let mut before = catalog(older)?;
        let mut kinds = BTreeMap::new();
        for (key, value) in catalog(self)? {
            let kind = match before.remove(&key) {
                Some(old) if old == value => continue,
                Some(_) => ChangeKind::Changed,
                None => ChangeKind::Added,
            };
            note(self, &mut kinds, &key, kind)?;
        }
        for key in before.into_keys() {
            note(self, &mut kinds, &key, ChangeKind::Removed)?;
        }
        Ok(kinds.into_iter().map(|(path, kind)| Change { path, kind }).collect())
    }
}

type Catalog = BTreeMap<Vec<u8>, Vec<u8>>;

fn catalog(snapshot: &Snapshot) -> Result<Catalog> {
    let mut values = Catalog::new();
    let frames = snapshot.frames()?;
    tree::entries(frames, &snapshot.root().catalog, b"", |key, cell| {
        values.insert(key.to_vec(), tree::value(frames, cell)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(values)
}

/// Notes a change of a record or of attributes. What happened to a record says more than what happened to its
/// attributes, which have no life of their own.
fn note(
    snapshot: &Snapshot,
    kinds: &mut BTreeMap<String, ChangeKind>,
    key: &[u8],
    kind: ChangeKind,
) -> Result<()> {
    let (path, attributes) = path::of_key(key).map_err(|damage| damage.at(snapshot.place("")))?;
    if attributes {
        kinds.entry(path.to_owned()).or_insert(ChangeKind::Changed);
    } else {
        kinds.insert(path.to_owned(), kind);
    }
    Ok(())
}
