//! `brickmap info`: everything about a store or an array but the items.

use super::describe::Described;
use super::{open, output, print_json};
use crate::failure::Failure;
use crate::{Common, terminal};
use brickmap::{Attributes, Entry, EntryKind, Snapshot, Store};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// Tell all about a store or an array: dtype, shape, chunks, codec, sizes, attributes
#[derive(Args)]
#[command(
    after_help = "Examples:\n  brickmap info volume.brick\n  brickmap info volume.brick density --json"
)]
pub(crate) struct Arguments {
    /// The brick file
    file: PathBuf,

    /// An array, or a group with all that is in it; by default the whole store
    array: Option<String>,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let store = open(&arguments.file, None)?;
    let snapshot = store.snapshot();
    let entries = match arguments.array.as_deref().map(|path| path.trim_matches('/')) {
        None | Some("") => snapshot.entries()?,
        Some(path) => selected(&snapshot, path)?,
    };
    let mut described = Vec::new();
    for entry in &entries {
        described.push((
            &entry.path[..],
            Described::open(&snapshot, entry)?,
            snapshot.attributes(&entry.path)?,
        ));
    }
    if arguments.common.json {
        return print_json(&store_json(&store, &snapshot, &described)?);
    }
    let mut out = output();
    print_store(&mut out, &store, &snapshot, &described)?;
    for (path, entry, attributes) in &described {
        print_entry(&mut out, path, entry, attributes)?;
    }
    Ok(out.flush()?)
}

/// The entry `path`, and all below it if it is a group.
fn selected(snapshot: &Snapshot, path: &str) -> Result<Vec<Entry>, Failure> {
    let kind = snapshot.kind(path)?;
    let below = match kind {
        // The error for a name that is not there knows a near one.
        None | Some(EntryKind::Group) => snapshot.entries_below(path)?,
        Some(_) => Vec::new(),
    };
    let itself = kind.map(|kind| Entry { path: path.to_owned(), kind });
    Ok(itself.into_iter().chain(below).collect())
}

type DescribedEntry<'a> = (&'a str, Described, Attributes);

fn file_bytes(store: &Store) -> Result<u64, Failure> {
    let path = store.path();
    let metadata = std::fs::metadata(path).map_err(|error| Failure::of_file("look at", path, &error))?;
    Ok(metadata.len())
}

fn store_json(store: &Store, snapshot: &Snapshot, entries: &[DescribedEntry<'_>]) -> Result<Value, Failure> {
    let id: String = store.file_id().iter().map(|byte| format!("{byte:02x}")).collect();
    let entries: Vec<Value> = entries
        .iter()
        .map(|(path, entry, attributes)| {
            let mut object = entry.json(path);
            object.insert("attributes".into(), Value::Object(attributes.clone()));
            Value::Object(object)
        })
        .collect();
    let free = snapshot.free_bytes()?;
    Ok(json!({
        "file": store.path().display().to_string(),
        "file_id": id,
        "file_bytes": file_bytes(store)?,
        "generation": snapshot.generation(),
        "live_bytes": snapshot.file_bytes().saturating_sub(free),
        "reclaimable_bytes": free,
        "readers": store.readers()?,
        "attributes": snapshot.attributes("")?,
        "entries": entries,
    }))
}

fn print_store(
    out: &mut dyn Write,
    store: &Store,
    snapshot: &Snapshot,
    entries: &[DescribedEntry<'_>],
) -> Result<(), Failure> {
    let groups = entries.iter().filter(|(_, entry, _)| matches!(entry, Described::Group)).count() as u64;
    let arrays = entries.len() as u64 - groups;
    writeln!(out, "{}", store.path().display())?;
    line(out, "file size", &terminal::bytes(file_bytes(store)?))?;
    line(out, "generation", &snapshot.generation().to_string())?;
    let free = snapshot.free_bytes()?;
    let live = terminal::bytes(snapshot.file_bytes().saturating_sub(free));
    line(out, "space", &format!("{live} live, {} reclaimable", terminal::bytes(free)))?;
    line(out, "readers", &readers(store)?)?;
    let contents = format!("{}, {}", terminal::count(arrays, "array"), terminal::count(groups, "group"));
    line(out, "contents", &contents)?;
    Ok(print_attributes(out, &snapshot.attributes("")?)?)
}

/// The generations that others read now.
fn readers(store: &Store) -> Result<String, Failure> {
    let Some(readers) = store.readers()? else {
        return Ok("not known: the file system has no locks that tell".into());
    };
    if readers.is_empty() {
        return Ok("none".into());
    }
    let generations: Vec<String> = readers.iter().map(u64::to_string).collect();
    Ok(format!("at generation {}", generations.join(", ")))
}

fn print_entry(
    out: &mut dyn Write,
    path: &str,
    entry: &Described,
    attributes: &Attributes,
) -> io::Result<()> {
    let slash = if matches!(entry, Described::Group) { "/" } else { "" };
    writeln!(out, "\n{}{slash}", terminal::name(path))?;
    if let Some(shape) = entry.shape() {
        line(out, "dtype", &entry.dtype())?;
        line(out, "shape", &terminal::shape(shape))?;
    }
    if let Described::Array(array) = entry {
        line(out, "chunks", &terminal::shape(array.chunks()))?;
        if !array.is_raw() {
            line(out, "blocks", &terminal::shape(array.blocks()))?;
        }
        line(out, "codec", &terminal::codec(array.codec()))?;
    }
    if let Some((bytes, stored)) = entry.sizes() {
        let ratio =
            if stored == 0 { String::new() } else { format!(" ({})", terminal::ratio(bytes, stored)) };
        line(
            out,
            "size",
            &format!("{}, stored as {}{ratio}", terminal::bytes(bytes), terminal::bytes(stored)),
        )?;
    }
    print_attributes(out, attributes)
}

fn print_attributes(out: &mut dyn Write, attributes: &Attributes) -> io::Result<()> {
    for (n, (name, value)) in attributes.iter().enumerate() {
        let value = terminal::name(&value.to_string());
        line(out, if n == 0 { "attributes" } else { "" }, &format!("{} = {value}", terminal::name(name)))?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    writeln!(out, "  {label:<11} {text}")
}
