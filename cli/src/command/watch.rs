//! `brickmap watch`: each new generation of a store, as it comes.

use super::{open, output};
use crate::failure::Failure;
use crate::terminal;
use brickmap::{Change, ChangeKind, Snapshot, Store};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Follow a store: print each new generation with what it changed, until interrupted
#[derive(Args)]
#[command(
    after_help = "Examples:\n  brickmap watch run.brick\n  brickmap watch run.brick --interval 5 --json\n  brickmap watch run.brick --count 1   # wait for the next commit"
)]
pub(crate) struct Arguments {
    /// The brick file
    file: PathBuf,

    /// Seconds between two looks at the file
    #[arg(long, default_value_t = 0.2, value_parser = interval)]
    interval: f64,

    /// End after this many new generations were printed
    #[arg(long)]
    count: Option<u64>,

    /// Print one JSON object in a line for each generation
    #[arg(long)]
    json: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds, from 0.001 to 86400".into()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let store = open(&arguments.file, None)?;
    let mut last = store.snapshot();
    let mut out = output();
    if !arguments.json {
        writeln!(out, "{}: generation {}", store.path().display(), last.generation())?;
        out.flush()?;
    }
    let mut printed = 0;
    while arguments.count.is_none_or(|count| printed < count) {
        std::thread::sleep(Duration::from_secs_f64(arguments.interval));
        let newest = next(&store, &last)?;
        if let Some(newest) = newest {
            let changes = newest.changes_since(&last)?;
            print(&mut out, &newest, &changes, arguments.json)?;
            out.flush()?;
            last = newest;
            printed += 1;
        }
    }
    Ok(())
}

fn next(store: &Store, last: &Snapshot) -> Result<Option<Snapshot>, Failure> {
    let newest = store.refresh()?;
    Ok((newest.generation() != last.generation()).then_some(newest))
}

fn print(out: &mut dyn Write, snapshot: &Snapshot, changes: &[Change], json: bool) -> Result<(), Failure> {
    if json {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| json!({ "path": change.path, "change": word(change.kind) }))
            .collect();
        let object = json!({ "generation": snapshot.generation(), "changes": changes });
        return Ok(writeln!(out, "{object}")?);
    }
    writeln!(out, "generation {}, {}", snapshot.generation(), terminal::bytes(snapshot.file_bytes()))?;
    for change in changes {
        let name = if change.path.is_empty() { "the store's attributes" } else { &change.path[..] };
        let shape = match change.kind {
            ChangeKind::Removed => String::new(),
            _ => snapshot
                .array(&change.path)
                .map_or_else(|_| String::new(), |array| format!(" {}", terminal::shape(array.shape()))),
        };
        writeln!(out, "  {:<8} {}{shape}", word(change.kind), terminal::name(name))?;
    }
    Ok(())
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        _ => "changed",
    }
}
