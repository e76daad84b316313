//! `brickmap verify`: walks every byte of a file.

use super::output;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{Common, terminal};
use brickmap::{Error, Finding, Place, Report, Store};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Check every byte of a file and name what is damaged
#[derive(Args)]
#[command(after_help = "\
Compares every checksum, decodes every block, and accounts for every byte of the file.

Exit codes: 0 all is well, 1 damage was found, 2 a file cannot be looked at.

Examples:
  brickmap verify volume.brick
  brickmap verify *.brick --json")]
pub(crate) struct Arguments {
    /// The brick files
    #[arg(required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut damaged = false;
    for file in &arguments.files {
        let outcome = verify(file, arguments.common.quiet)?;
        damaged |= outcome.is_damaged();
        let printed = if arguments.common.json {
            print_line(&outcome.json(file))
        } else {
            outcome.print(file, arguments.common.quiet)
        };
        match printed {
            // Nobody listens, but the exit code still tells.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => {}
        }
    }
    if damaged { Err(Failure::Damaged) } else { Ok(()) }
}

/// What came of looking at a file.
enum Outcome {
    Walked(Report),
    /// The file could not be opened as a store.
    Unreadable(Finding),
}

fn verify(file: &Path, quiet: bool) -> Result<Outcome, Failure> {
    let bar = Bar::new("Checking", quiet);
    let walk = || Store::open(file)?.verify_with(Some(&|progress| bar.tell(progress)));
    let finding = |place, what| Ok(Outcome::Unreadable(Finding { place, what }));
    match walk() {
        Ok(report) => Ok(Outcome::Walked(report)),
        Err(Error::Corrupt { place, what }) => finding(*place, what),
        Err(Error::NotAStore { file, found }) => {
            finding(Place { file, ..Place::default() }, format!("not a brick file: {found}"))
        }
        Err(other) => Err(other.into()),
    }
}

impl Outcome {
    fn is_damaged(&self) -> bool {
        match self {
            Outcome::Walked(report) => !report.is_clean(),
            Outcome::Unreadable(_) => true,
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Outcome::Walked(report) => &report.findings,
            Outcome::Unreadable(finding) => std::slice::from_ref(finding),
        }
    }

    fn json(&self, file: &Path) -> Value {
        let findings: Vec<Value> = self
            .findings()
            .iter()
            .map(|Finding { place, what }| {
                json!({
                    "array": place.array,
                    "chunk": place.chunk,
                    "block": place.block,
                    "offset": place.offset,
                    "what": what,
                })
            })
            .collect();
        let mut object =
            json!({"file": file.display().to_string(), "clean": !self.is_damaged(), "findings": findings});
        if let (Outcome::Walked(report), Value::Object(object)) = (self, &mut object) {
            for (key, number) in [
                ("groups", report.groups),
                ("arrays", report.arrays),
                ("chunks", report.chunks),
                ("blocks", report.blocks),
                ("live_bytes", report.live_bytes),
                ("free_bytes", report.free_bytes),
                ("tail_bytes", report.tail_bytes),
            ] {
                object.insert(key.into(), json!(number));
            }
        }
        object
    }

    fn print(&self, file: &Path, quiet: bool) -> io::Result<()> {
        let mut out = output();
        for Finding { place, what } in self.findings() {
            writeln!(out, "damaged: {} ({})", terminal::name(what), terminal::name(&place.to_string()))?;
        }
        match self {
            Outcome::Walked(report) if !quiet => {
                let verdict = match report.findings.len() {
                    0 => "no damage".to_owned(),
                    found => terminal::count(found as u64, "damaged place"),
                };
                let contents = format!(
                    "{}, {}, {}, {}",
                    terminal::count(report.arrays, "array"),
                    terminal::count(report.groups, "group"),
                    terminal::count(report.chunks, "chunk"),
                    terminal::count(report.blocks, "block")
                );
                let mut bytes = format!("{} in use", terminal::bytes(report.live_bytes));
                if report.free_bytes > 0 {
                    bytes.push_str(&format!(", {} to be reused", terminal::bytes(report.free_bytes)));
                }
                if report.tail_bytes > 0 {
                    bytes.push_str(&format!(
                        ", {} left by an interrupted writer",
                        terminal::bytes(report.tail_bytes)
                    ));
                }
                writeln!(out, "{}: {verdict}; {contents}; {bytes}", file.display())?;
            }
            _ => {}
        }
        out.flush()
    }
}

/// One object on one line, so that the objects of several files can be told apart.
fn print_line(value: &Value) -> io::Result<()> {
    let mut out = output();
    writeln!(out, "{value}")?;
    out.flush()
}
