//! Reads a store through every read call and compares with what it should hold.

#![allow(dead_code, reason = "each test program uses a part of this")]

use crate::forge::{Contents, Dense};
use brickmap::{Array, Error, Result, Selection, Snapshot, Store};

/// What came of a read.
#[derive(Debug)]
pub(crate) enum Outcome {
    Right,
    /// Something else than the file should hold.
    Wrong(String),
    Failed(Error),
}

/// Calls `report` with the outcome of reading each part of `store`: `entries`, `attributes x`, `array x`, `ragged x`.
pub(crate) fn read_everything(store: &Store, contents: &Contents, report: &mut dyn FnMut(&str, Outcome)) {
    let snapshot = store.snapshot();
    let mut tell = |what: &str, outcome: Result<Vec<&str>>| {
        report(
            what,
            match outcome {
                Ok(wrong) if wrong.is_empty() => Outcome::Right,
                Ok(wrong) => Outcome::Wrong(wrong.join(", ")),
                Err(error) => Outcome::Failed(error),
            },
        );
    };
    tell("entries", entries(&snapshot, contents));
    for (path, json) in &contents.attributes {
        let outcome = snapshot.attributes(path).map(|attributes| {
            let same = serde_json::to_string(&attributes).is_ok_and(|found| found == *json);
            if same { vec![] } else { vec!["attributes"] }
        });
        tell(&format!("attributes {path}"), outcome);
    }
    for dense in &contents.arrays {
        let outcome = snapshot.array(&dense.path).and_then(|array| self::array(&array, dense));
        tell(&format!("array {}", dense.path), outcome);
    }
    for (path, strings) in &contents.strings {
        let outcome = snapshot.ragged(path).and_then(|ragged| ragged.read_strings(&Selection::all()));
        let outcome =
            outcome.map(|found| if found.iter().eq(strings.iter()) { vec![] } else { vec!["strings"] });
        tell(&format!("ragged {path}"), outcome);
    }
    for (path, runs) in &contents.runs {
        let outcome = snapshot.ragged(path).and_then(|ragged| ragged.read_runs::<f32>(&Selection::all()));
        let outcome = outcome.map(|found| if found.iter().eq(runs.iter()) { vec![] } else { vec!["runs"] });
        tell(&format!("ragged {path}"), outcome);
    }
}

fn array(array: &Array, dense: &Dense) -> Result<Vec<&'static str>> {
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

/// A checked view, as bytes; `None` if there is none because the store is read with pread, or not aligned.
fn view(array: &Array) -> Result<Option<Vec<u8>>> {
    match array.view_checked::<f64>(&Selection::all()) {
        Err(Error::InvalidState { .. }) => Ok(None),
        other => Ok(Some(other?.iter().flat_map(|item| item.to_le_bytes()).collect())),
    }
}

fn entries(snapshot: &Snapshot, contents: &Contents) -> Result<Vec<&'static str>> {
    let mut found: Vec<String> = snapshot.entries()?.into_iter().map(|entry| entry.path).collect();
    let mut due: Vec<String> = contents.groups.clone();
    due.extend(contents.arrays.iter().map(|dense| dense.path.clone()));
    due.extend(contents.strings.iter().map(|(path, _)| path.clone()));
    due.extend(contents.runs.iter().map(|(path, _)| path.clone()));
    found.sort();
    due.sort();
    Ok(if found == due { vec![] } else { vec!["entries"] })
}
