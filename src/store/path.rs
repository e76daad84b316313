//! Names in the catalog (SPEC.md §9).

use crate::error::{Damage, Error, Result};

/// The longest path, in bytes.
pub(super) const MAX_PATH_LEN: usize = 1024;

/// A path as the catalog has it: a leading or trailing `/` of the caller's is taken off.
pub(super) fn normalize(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path).trim_end_matches('/')
}

/// That `path` may name an array or group.
pub(super) fn validate(path: &str) -> Result<()> {
    let wrong = |why: &str| Err(Error::invalid(format!("the name '{}' {why}", path.escape_debug())));
    if path.is_empty() {
        return wrong("is empty; it names the root group, which is always there");
    }
    if path.len() > MAX_PATH_LEN {
        return Err(Error::TooLarge {
            what: format!("a name of {} bytes; at most {MAX_PATH_LEN} can be", path.len()),
        });
    }
    for component in path.split('/') {
        match component {
            "" => return wrong("has an empty part between two '/'"),
            "." | ".." => return wrong("has a part '.' or '..', which names nothing in a store"),
            _ if component.contains('\0') => return wrong("has a zero byte"),
            _ => {}
        }
    }
    Ok(())
}

/// The groups above `path`, outermost first.
#[cfg(feature = "write")]
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// The catalog key of a name's attributes.
pub(super) fn attributes_key(path: &str) -> Vec<u8> {
    let mut key = path.as_bytes().to_vec();
    key.push(0);
    key
}

/// What a catalog key names, and whether it is the key of its attributes. A name that cannot be is damage, so that no
/// program makes a path of its own of one.
pub(crate) fn of_key(key: &[u8]) -> Result<(&str, bool), Damage> {
    let (path, attributes) = match key.strip_suffix(b"\0") {
        Some(path) => (path, true),
        None => (key, false),
    };
    let Ok(path) = std::str::from_utf8(path) else {
        return Err(Damage::new(format!("a name that is not UTF-8: '{}'", path.escape_ascii())));
    };
    // The empty path is the root group.
    match validate(path) {
        Err(error) if !path.is_empty() => Err(Damage::new(format!("a name that cannot be: {error}"))),
        _ => Ok((path, attributes)),
    }
}

/// Of `names` the one that `wanted` was probably meant to be.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = wanted.chars().count() / 3 + 1;
    names
        .map(|name| (distance(wanted, name), name))
        .filter(|(far, _)| *far <= most)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let names = ["velocity", "pressure", "points"];
        assert_eq!(nearest("velocty", names.into_iter()), Some("velocity"));
        assert_eq!(nearest("presure", names.into_iter()), Some("pressure"));
        assert_eq!(nearest("temperature", names.into_iter()), None);
    }

    #[cfg(feature = "write")]
    #[test]
    fn names_that_cannot_be_are_refused() {
        for bad in ["", "a//b", "a/./b", "..", "a\0b", &"x".repeat(1025)] {
            assert!(validate(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b", "é", "a b", "...", &"x".repeat(1024)] {
            assert!(validate(good).is_ok(), "{good:?}");
        }
        assert_eq!(parents("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
