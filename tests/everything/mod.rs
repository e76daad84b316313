//! Reads a store through every read call and compares with what it should hold.

#![allow(dead_code, reason = "each test program uses a part of this")]

use crate::forge::{Contents, Dense};
use brickmap::{Array, Error, Result, Selection, Snapshot, Store};

/// What came of a read.
#[derive(Debug)]
#[allow(dead_code, reason = "each test program uses a part")]
pub(crate) enum Outcome {
    Right,
    /// Something else than the file should hold.
    Wrong(String),
    Failed(Error),
}

/// What is read at once. The numbers are places in [`Contents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Entries,
    Attributes(usize),
    Array(usize),
    Strings(usize),
    Runs(usize),
}

/// Everything that can be read.
pub(crate) fn parts(contents: &Contents) -> Vec<Part> {
    let mut parts = vec![Part::Entries];
    parts.extend((0..contents.attributes.len()).map(Part::Attributes));
    parts.extend((0..contents.arrays.len()).map(Part::Array));
    parts.extend((0..contents.strings.len()).map(Part::Strings));
    parts.extend((0..contents.runs.len()).map(Part::Runs));
    parts
}

/// `entries`, `attributes x`, `array x` or `ragged x`.
pub(crate) fn name(part: Part, contents: &Contents) -> String {
    match part {
        Part::Entries => "entries".into(),
        Part::Attributes(n) => format!("attributes {}", contents.attributes[n].0),
        Part::Array(n) => format!("array {}", contents.arrays[n].path),
        Part::Strings(n) => format!("ragged {}", contents.strings[n].0),
        Part::Runs(n) => format!("ragged {}", contents.runs[n].0),
    }
}

/// Calls `report` with the outcome of reading each part of `store`, by [`name`].
#[allow(dead_code, reason = "each test program uses a part")]
pub(crate) fn read_everything(store: &Store, contents: &Contents, report: &mut dyn FnMut(&str, Outcome)) {
    let snapshot = store.snapshot();
    for part in parts(contents) {
        report(&name(part, contents), read_part(&snapshot, contents, part));
    }
}

pub(crate) fn read_part(snapshot: &Snapshot, contents: &Contents, part: Part) -> Outcome {
    let wrong = |same: bool, what: &'static str| if same { vec![] } else { vec![what] };
    let outcome = match part {
        Part::Entries => snapshot.entries().map(|found| {
            let mut found: Vec<String> = found.into_iter().map(|entry| entry.path).collect();
            let mut due: Vec<String> = contents.groups.clone();
            due.extend(contents.arrays.iter().map(|dense| dense.path.clone()));
            due.extend(contents.strings.iter().map(|(path, _)| path.clone()));
            due.extend(contents.runs.iter().map(|(path, _)| path.clone()));
            found.sort();
            due.sort();
            wrong(found == due, "names")
        }),
        Part::Attributes(n) => {
            let (path, json) = &contents.attributes[n];
            let found = snapshot.attributes(path);
            found.map(|found| wrong(serde_json::to_string(&found).is_ok_and(|found| found == *json), "JSON"))
        }
        Part::Array(n) => {
            let dense = &contents.arrays[n];
            snapshot.array(&dense.path).and_then(|array| read_array(&array, dense))
        }
        Part::Strings(n) => {
            let (path, strings) = &contents.strings[n];
            let found = snapshot.ragged(path).and_then(|ragged| ragged.read_strings(&Selection::all()));
            found.map(|found| wrong(found.iter().eq(strings.iter()), "strings"))
        }
        Part::Runs(n) => {
            let (path, runs) = &contents.runs[n];
            let found = snapshot.ragged(path).and_then(|ragged| ragged.read_runs::<f32>(&Selection::all()));
            found.map(|found| wrong(found.iter().eq(runs.iter()), "runs"))
        }
    };
    match outcome {
        Ok(wrong) if wrong.is_empty() => Outcome::Right,
        Ok(wrong) => Outcome::Wrong(wrong.join(", ")),
        Err(error) => Outcome::Failed(error),
    }
}

/// The whole, a selection with steps, and a checked view. An error of one of them counts only if what the others gave
/// is right.
fn read_array(array: &Array, dense: &Dense) -> Result<Vec<&'static str>> {
    let mut wrong = Vec::new();
    if array.shape() != dense.shape || array.dtype().itemsize() != dense.itemsize {
        wrong.push("shape or item size");
    }
    let whole = array.read_bytes(&Selection::all());
    let steps: Selection = vec!["::-2"; dense.shape.len()].join(",").parse()?;
    let stepped = array.read_bytes(&steps);
    let viewed = if array.is_raw() { view(array) } else { Ok(None) };
    if let Ok(items) = &whole
        && *items != dense.items
    {
        wrong.push("items");
    }
    if let Ok(items) = &stepped
        && *items != dense.every_second_from_the_end()
    {
        wrong.push("every second item");
    }
    if let Ok(Some(items)) = &viewed
        && *items != dense.items
    {
        wrong.push("view");
    }
    if wrong.is_empty() {
        whole.and(stepped.map(|_| ())).and(viewed.map(|_| ()))?;
    }
    Ok(wrong)
}

/// A checked view, as bytes; `None` if there is none because the store is read with pread, or is not one run.
fn view(array: &Array) -> Result<Option<Vec<u8>>> {
    match array.view_checked::<f64>(&Selection::all()) {
        Err(Error::InvalidState { .. }) => Ok(None),
        other => Ok(Some(other?.iter().flat_map(|item| item.to_le_bytes()).collect())),
    }
}
