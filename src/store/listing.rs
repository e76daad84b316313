//! What a copy takes out of a catalog: a name, and everything below it.

use super::frames::Frames;
use super::snapshot::parse_attributes;
use super::{Snapshot, path, tree};
use crate::error::{Damage, Error, Place, Result};
use crate::format::{Pointer, Record};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// A catalog entry, by a path that is below the one that was asked for: empty for that one itself.
pub(crate) struct Listed {
    pub(crate) below: String,
    pub(crate) what: Listing,
}

pub(crate) enum Listing {
    Record(Record),
    /// JSON that was parsed.
    Attributes(Vec<u8>),
}

impl Snapshot {
    /// Everything from `path` on, in the order of the catalog; the root group has a record here.
    pub(crate) fn listed(&self, path: &str) -> Result<Vec<Listed>> {
        let path = path::normalize(path);
        if !path.is_empty() {
            self.record(path)?;
        }
        list(self.frames()?, &self.root().catalog, path)
    }
}

/// Everything from `path` on, which must be there. Each name must be below a group, and attributes must belong to a name.
pub(super) fn list(frames: &Frames, catalog: &Pointer, path: &str) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    let mut groups: HashSet<String> = HashSet::new();
    let mut named: HashSet<String> = HashSet::new();
    if path.is_empty() {
        groups.insert(String::new());
        named.insert(String::new());
        listed.push(Listed { below: String::new(), what: Listing::Record(Record::Group) });
    }
    let mut take = |key: &[u8], value: Vec<u8>| -> Result<()> {
        let place =
            |name: &str| Place { file: frames.file().into(), array: Some(name.into()), ..Place::default() };
        let (name, attributes) = path::of_key(key).map_err(|damage| frames.damage(damage, None))?;
        let below = name.get(path.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
        let what = if attributes {
            if !named.contains(name) {
                return Err(Damage::new("attributes of something that is not there").at(place(name)));
            }
            parse_attributes(&value).map_err(|damage| damage.at(place(name)))?;
            Listing::Attributes(value)
        } else {
            let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
            if name != path && !groups.contains(parent) {
                let what = format!("it is below '{parent}', which is not a group");
                return Err(Damage::new(what).at(place(name)));
            }
            let record = Record::parse(&value, frames.bounds()).map_err(|damage| damage.at(place(name)))?;
            match &record {
                Record::Unknown(what) => {
                    return Err(Error::Unsupported {
                        what: format!("'{name}' is {what}, of a later version"),
                    });
                }
                Record::Group => drop(groups.insert(name.to_owned())),
                Record::Array(_) | Record::Ragged(_) => {}
            }
            named.insert(name.to_owned());
            Listing::Record(record)
        };
        listed.push(Listed { below, what });
        Ok(())
    };
    let mut prefix = path.as_bytes().to_vec();
    if !path.is_empty() {
        for key in [path.as_bytes().to_vec(), path::attributes_key(path)] {
            if let Some(value) = tree::get(frames, catalog, &key)? {
                take(&key, value)?;
            }
        }
        prefix.push(b'/');
    }
    tree::entries(frames, catalog, &prefix, |key, cell| {
        if !key.starts_with(&prefix) {
            return Ok(ControlFlow::Break(()));
        }
        take(key, tree::value(frames, cell)?)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(listed)
}
