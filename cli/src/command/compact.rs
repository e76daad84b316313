//! `brickmap compact`: a store without the space that nobody uses any more.

use super::{not_opened, options, output, parse_threads, print_json};
use crate::failure::Failure;
use crate::output::Unfinished;
use crate::progress::Bar;
use crate::{Common, terminal};
use brickmap::{Durability, Error, Progress, Store};
use clap::Args;
use serde_json::json;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// Write a brick file anew, without what is free in it
#[derive(Args)]
#[command(after_help = "\
The old file stays as it was until the new one is whole and on the disk. Programs that have it open go on reading it. All
that is copied is checked: of a damaged file nothing is made.

Examples:
  brickmap compact run.brick
  brickmap compact run.brick --into archive/run.brick")]
pub(crate) struct Arguments {
    /// The brick file
    file: PathBuf,

    /// Write to this new file, and leave the old one alone
    #[arg(short, long, value_name = "FILE")]
    into: Option<PathBuf>,

    /// Wait until the new file is on the disk; a file that is replaced waits in any case
    #[arg(long, requires = "into")]
    sync: bool,

    /// Copy with this many threads; by default with all processors
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let file = &arguments.file;
    let durability = if arguments.sync { Durability::Full } else { Durability::None };
    let options = match arguments.into {
        None => options(arguments.threads).write(true),
        Some(_) => options(arguments.threads).durability(durability),
    };
    let store = options.open(file).map_err(|error| not_opened(file, error))?;
    let before = store.snapshot().file_bytes();
    let bar = Bar::new("Copying", arguments.common.quiet);
    // From the first call on the new file goes if the command is interrupted.
    let unfinished: Mutex<Option<Unfinished>> = Mutex::new(None);
    let tell = |progress: Progress| -> ControlFlow<()> {
        if let Ok(mut unfinished) = unfinished.lock() {
            *unfinished = unfinished.take().or_else(|| store.temporary_path().map(Unfinished::new));
        }
        bar.tell(progress)
    };
    let compact = match &arguments.into {
        None => store.compact(Some(&tell))?,
        Some(into) => {
            store.snapshot().compact_into(into, Some(&tell)).map_err(|error| not_made(into, error))?
        }
    };
    drop(bar);
    let after = compact.snapshot().file_bytes();
    summarise(arguments, &compact, before, after, start)
}

fn not_made(into: &Path, error: Error) -> Failure {
    match error {
        Error::AlreadyExists { .. } => Failure::usage(format!("'{}' exists already", into.display())),
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            let folder = into.parent().unwrap_or(into).display();
            Failure::usage(format!("there is no folder '{folder}'"))
        }
        other => other.into(),
    }
}

fn summarise(
    arguments: &Arguments,
    compact: &Store,
    before: u64,
    after: u64,
    start: Instant,
) -> Result<(), Failure> {
    let time = start.elapsed();
    if arguments.common.json {
        return print_json(&json!({
            "file": arguments.file.display().to_string(),
            "output": compact.path().display().to_string(),
            "bytes_before": before,
            "bytes_after": after,
            "seconds": time.as_secs_f64(),
        }));
    }
    if arguments.common.quiet {
        return Ok(());
    }
    let change = match after.cmp(&before) {
        Ordering::Less => format!("{} less", terminal::bytes(before - after)),
        Ordering::Equal => "nothing less".into(),
        Ordering::Greater => format!("{} more", terminal::bytes(after - before)),
    };
    let mut out = output();
    writeln!(
        out,
        "{}: {}, before {}: {change}, in {}",
        compact.path().display(),
        terminal::bytes(after),
        terminal::bytes(before),
        terminal::time(time),
    )?;
    Ok(out.flush()?)
}
