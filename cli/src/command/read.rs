//! `brickmap read`: items of an array, printed or written to a `.npy` file.

use super::{open, output, parse_threads, print_json};
use crate::failure::Failure;
use crate::print::{self, Item, Summary};
use crate::{Common, npy, terminal};
use brickmap::{Array, Dtype, EntryKind, Ragged, Selection, Snapshot};
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Read items of an array: print them, or write them to a .npy file
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The brick file
    file: PathBuf,

    /// Path of the array in it, as `brickmap ls` shows it
    array: String,

    /// What to read, as between NumPy's brackets; by default everything
    #[arg(allow_hyphen_values = true)]
    selection: Option<String>,

    /// Write the items to this .npy file instead of printing them
    #[arg(short, long, value_name = "OUT.npy")]
    output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(short, long, requires = "output")]
    force: bool,

    /// Decode with this many threads; by default with all processors
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,

    #[command(flatten)]
    common: Common,
}

const AFTER_HELP: &str = "\
A selection has an entry for each dimension, from the first on:
  5         an index; -1 is the last
  10:20     a range; also 10:, :20, ::4, ::-1
  [1,5,2]   a list of indices
  ...       all dimensions that are not spoken of
  None      a new dimension of length 1
Put it in quotes, since brackets and stars mean something to the shell.

Long results are printed shortened, as NumPy does; --json prints all items, as nested lists.

Examples:
  brickmap read volume.brick density
  brickmap read volume.brick density '10:20, ::4, -1'
  brickmap read volume.brick density '..., 0' -o plane.npy
  brickmap read volume.brick density '0, 0' --json";

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let selection: Selection = arguments.selection.as_deref().unwrap_or("").parse()?;
    let snapshot = open(&arguments.file, arguments.threads)?.snapshot();
    match (snapshot.kind(&arguments.array)?, &arguments.output) {
        (Some(EntryKind::Group), _) => Err(is_a_group(&snapshot, arguments)),
        (Some(EntryKind::Ragged), Some(_)) => Err(not_in_npy(&arguments.array)),
        (Some(EntryKind::Ragged), None) => {
            print_ragged(&snapshot.ragged(&arguments.array)?, &selection, arguments.common.json)
        }
        (_, None) => print_array(&snapshot.array(&arguments.array)?, &selection, arguments.common.json),
        (_, Some(path)) => save(&snapshot.array(&arguments.array)?, &selection, path, arguments),
    }
}

/// The failure to write strings or runs to a `.npy` file.
pub(super) fn not_in_npy(array: &str) -> Failure {
    Failure::usage(format!(
        "'{}' has items of various lengths, which .npy files cannot hold; read it with --json instead",
        terminal::name(array)
    ))
}

fn is_a_group(snapshot: &Snapshot, arguments: &Arguments) -> Failure {
    let entries = snapshot.entries_below(&arguments.array).unwrap_or_default();
    let example = entries.iter().find(|entry| entry.kind != EntryKind::Group);
    let hint =
        example.map(|entry| format!("; name an array in it, such as '{}'", terminal::name(&entry.path)));
    let name = terminal::name(&arguments.array);
    Failure::usage(format!("'{name}' is a group, not an array{}", hint.unwrap_or_default()))
}

fn save(array: &Array, selection: &Selection, path: &Path, arguments: &Arguments) -> Result<(), Failure> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("npy")) {
        return Err(Failure::usage(format!(
            "items are written to .npy files, and '{}' is none",
            path.display()
        )));
    }
    let shape = selection.shape(array.shape())?;
    if selection.axes().is_empty() {
        npy::save_array(array, path, arguments.force, arguments.common.quiet)?;
    } else {
        npy::save_items(&array.read_bytes(selection)?, array.dtype(), &shape, path, arguments.force)?;
    }
    let bytes = shape.iter().fold(array.dtype().itemsize() as u64, |bytes, &len| bytes.saturating_mul(len));
    if arguments.common.json {
        return print_json(&json!({
            "file": arguments.file.display().to_string(),
            "array": array.path(),
            "dtype": array.dtype().to_string(),
            "shape": shape,
            "bytes": bytes,
            "output": path.display().to_string(),
        }));
    }
    if !arguments.common.quiet {
        let what = format!("{} {}", terminal::dtype(array.dtype()), terminal::shape(&shape));
        let mut out = output();
        writeln!(out, "{}: {what}, {}", path.display(), terminal::bytes(bytes))?;
        out.flush()?;
    }
    Ok(())
}

fn print_array(array: &Array, selection: &Selection, json: bool) -> Result<(), Failure> {
    let item = Item::of(array.dtype());
    if json {
        let shape = selection.shape(array.shape())?;
        let bytes = array.read_bytes(selection)?;
        let mut items = bytes.chunks_exact(array.dtype().itemsize());
        return print_nested(&shape, &mut |out| {
            print::write_item(out, &item, items.next().unwrap_or_default())
        });
    }
    let summary = Summary::new(selection, array.shape())?;
    let words = print::texts(&item, &array.read_bytes(&summary.selection)?);
    print_text(&print::layout(&words, &summary.shape, &summary.full_shape, " "))
}

fn print_nested(
    shape: &[u64],
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = output();
    print::nested(&mut out, shape, write)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

fn print_text(text: &str) -> Result<(), Failure> {
    let mut out = output();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

fn print_ragged(ragged: &Ragged, selection: &Selection, json: bool) -> Result<(), Failure> {
    if json {
        let shape = selection.shape(ragged.shape())?;
        if ragged.is_strings() {
            let strings = ragged.read_strings(selection)?;
            let mut strings = strings.iter();
            return print_nested(&shape, &mut |out| {
                serde_json::to_writer(out, strings.next().unwrap_or_default()).map_err(io::Error::from)
            });
        }
        let item = Item::of(ragged.value_dtype());
        let runs = read_runs(ragged, selection)?;
        let mut runs = runs.iter();
        return print_nested(&shape, &mut |out| {
            let run = runs.next().map_or(&[][..], Vec::as_slice);
            let mut items = run.chunks_exact(ragged.value_dtype().itemsize());
            let len = items.len() as u64;
            print::nested(out, &[len], &mut |out| {
                print::write_item(out, &item, items.next().unwrap_or_default())
            })
        });
    }
    let summary = Summary::new(selection, ragged.shape())?;
    let words: Vec<String> = if ragged.is_strings() {
        ragged.read_strings(&summary.selection)?.iter().map(print::quoted).collect()
    } else {
        let item = Item::of(ragged.value_dtype());
        let runs = read_runs(ragged, &summary.selection)?;
        runs.iter().map(|run| format!("[{}]", print::texts(&item, run).join(", "))).collect()
    };
    print_text(&print::layout(&words, &summary.shape, &summary.full_shape, " "))
}

/// The runs of a selection as little-endian bytes.
fn read_runs(ragged: &Ragged, selection: &Selection) -> Result<Vec<Vec<u8>>, Failure> {
    macro_rules! runs {
        ($($dtypes:pat => $element:ty,)*) => {
            match ragged.value_dtype() {
                $($dtypes => {
                    let runs = ragged.read_runs::<$element>(selection)?;
                    Ok(runs.iter().map(|run| bytemuck::cast_slice(run).to_vec()).collect())
                })*
                other => Err(Failure::failed(format!("not supported: runs of {other}"))),
            }
        };
    }
    runs! {
        Dtype::U8 | Dtype::Bool => u8,
        Dtype::U16 => u16,
        Dtype::U32 => u32,
        Dtype::U64 => u64,
        Dtype::I8 => i8,
        Dtype::I16 => i16,
        Dtype::I32 => i32,
        Dtype::I64 | Dtype::Datetime64(_) | Dtype::Timedelta64(_) => i64,
        Dtype::F16 => half::f16,
        Dtype::F32 => f32,
        Dtype::F64 => f64,
        Dtype::Complex64 => [f32; 2],
        Dtype::Complex128 => [f64; 2],
    }
}
