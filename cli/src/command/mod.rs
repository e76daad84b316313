//! The subcommands, one file each.

pub(crate) mod compact;
pub(crate) mod convert;
pub(crate) mod demo;
mod describe;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod read;
pub(crate) mod verify;
pub(crate) mod watch;

use crate::failure::Failure;
use brickmap::{Error, OpenOptions, Store};
use serde_json::Value;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Opens a store for reading.
fn open(path: &Path, threads: Option<usize>) -> Result<Store, Failure> {
    options(threads).open(path).map_err(|error| not_opened(path, error))
}

fn options(threads: Option<usize>) -> OpenOptions {
    threads.map_or_else(OpenOptions::new, |threads| OpenOptions::new().threads(threads))
}

/// The failure to open a store, with the way out if the file is one that `convert` reads.
fn not_opened(path: &Path, error: Error) -> Failure {
    let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    match Failure::from(error) {
        Failure::Failed(what) if is_npy => {
            let brick = path.with_extension("brick");
            Failure::Failed(format!(
                "{what}; to make one of it: brickmap convert {} {}",
                path.display(),
                brick.display()
            ))
        }
        other => other,
    }
}

/// Standard output, written in large pieces.
fn output() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Prints JSON and ends the line.
fn print_json(value: &Value) -> Result<(), Failure> {
    let mut out = output();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Parses `--threads`.
fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("give a number from 1 to 1024".into()),
    }
}
