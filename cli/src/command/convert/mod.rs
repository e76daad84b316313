//! `brickmap convert`: between `.npy` files and stores. The extensions of the files decide the direction.

mod export;
mod import;

use super::{output, parse_threads, print_json};
use crate::failure::Failure;
use crate::{Common, terminal};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Convert a .npy file to a brick file, or an array of a brick file to a .npy file
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A .npy or .brick file
    input: PathBuf,

    /// A .brick or .npy file
    output: PathBuf,

    /// Path of the array in the brick file
    ///
    /// By default the name of the .npy file without its extension, or the only array that there is.
    #[arg(short, long)]
    name: Option<String>,

    /// Replace the output if it exists; the old file stays until the new one is complete
    #[arg(short, long, conflicts_with = "append")]
    force: bool,

    /// Add the array to the output if it exists
    #[arg(short, long)]
    append: bool,

    /// Wait until a new brick file is on the disk; a file that is replaced waits in any case
    #[arg(long)]
    sync: bool,

    /// Encode and decode with this many threads; by default with all processors
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,

    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    storing: Storing,
}

const AFTER_HELP: &str = "\
Whatever fails or is interrupted leaves no half file. Arrays of any size are converted in bounded memory.

Examples:
  brickmap convert volume.npy volume.brick
  brickmap convert pressure.npy run.brick --append --name step/0042/pressure
  brickmap convert volume.npy volume.brick --chunks 64,256,256 --blocks 32,32,64 --codec planes
  brickmap convert volume.brick volume.npy --name density";

/// How an array is stored.
#[derive(Args)]
#[command(next_help_heading = "Options for writing a brick file")]
struct Storing {
    /// Chunk length in each dimension, as in 64,256,256: the unit of writing; by default about 8 MiB
    #[arg(long, value_name = "LENGTHS", value_parser = parse_lens)]
    chunks: Option<Lens>,

    /// Block length in each dimension: the unit of reading; by default about 128 KiB
    #[arg(long, value_name = "LENGTHS", value_parser = parse_lens)]
    blocks: Option<Lens>,

    /// How blocks are coded: auto, raw, zstd, planes, or delta:STRIDE
    ///
    /// auto: tried on a sample of each chunk. raw: as they are, for views without a copy. zstd: plain zstd. planes: a zstd
    /// stream for each byte of the items. delta:STRIDE: planes of the differences between items STRIDE apart.
    #[arg(long, value_parser = parse_codec)]
    codec: Option<CodecName>,

    /// What codec auto favours
    #[arg(long)]
    profile: Option<ProfileName>,

    /// Level of zstd, -7 to 22; by default 1
    #[arg(long, value_parser = clap::value_parser!(i8).range(-7..=22), allow_negative_numbers = true)]
    level: Option<i8>,
}

/// The lengths of a chunk or block.
#[derive(Clone, Debug)]
struct Lens(Vec<u64>);

#[derive(Clone, Copy, Debug)]
enum CodecName {
    Auto,
    Raw,
    Zstd,
    Planes,
    Delta(u32),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    /// Disks and networks of 400 MB/s
    Balanced,
    /// Fast local disks: decoding counts more
    Fast,
    /// Slow links and archives: size counts more
    Small,
}

fn parse_lens(text: &str) -> Result<Lens, String> {
    let lens: Result<Vec<u64>, _> = text.split(',').map(|len| len.trim().parse()).collect();
    match lens {
        Ok(lens) if !lens.contains(&0) => Ok(Lens(lens)),
        _ => Err("give a length of at least 1 for each dimension, as in 64,256,256".into()),
    }
}

fn parse_codec(text: &str) -> Result<CodecName, String> {
    match text {
        "auto" => Ok(CodecName::Auto),
        "raw" => Ok(CodecName::Raw),
        "zstd" => Ok(CodecName::Zstd),
        "planes" => Ok(CodecName::Planes),
        _ => match text.strip_prefix("delta:").map(str::parse) {
            Some(Ok(stride @ 1..)) => Ok(CodecName::Delta(stride)),
            Some(_) => Err("the stride of delta is a number of items, as in delta:1 or delta:3".into()),
            None => Err("codecs are auto, raw, zstd, planes and delta:STRIDE".into()),
        },
    }
}

/// What was converted, for the summary.
struct Converted {
    array: String,
    dtype: String,
    shape: Vec<u64>,
    bytes: u64,
    stored_bytes: u64,
}

/// The kinds of files, by their extensions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Brick,
    Npy,
}

impl Format {
    fn of(path: &Path) -> Result<Format, Failure> {
        let extension = path.extension().map(OsStr::to_ascii_lowercase);
        match extension.as_deref().and_then(OsStr::to_str) {
            Some("brick") => Ok(Format::Brick),
            Some("npy") => Ok(Format::Npy),
            other => {
                let about = other.map_or("no extension".into(), |other| format!("the extension .{other}"));
                let path = path.display();
                Err(Failure::usage(format!(
                    "'{path}' has {about}; files of .npy and .brick can be converted"
                )))
            }
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let converted = match (Format::of(&arguments.input)?, Format::of(&arguments.output)?) {
        (Format::Npy, Format::Brick) => import::run(arguments)?,
        (Format::Brick, Format::Npy) => export::run(arguments)?,
        _ => {
            return Err(Failure::usage(
                "input and output are of the same kind; convert goes from .npy to .brick or from .brick to .npy",
            ));
        }
    };
    summarise(arguments, &converted, start)
}

fn summarise(arguments: &Arguments, converted: &Converted, start: Instant) -> Result<(), Failure> {
    let time = start.elapsed();
    let Converted { array, dtype, shape, bytes, stored_bytes } = converted;
    if arguments.common.json {
        return print_json(&json!({
            "input": arguments.input.display().to_string(),
            "output": arguments.output.display().to_string(),
            "array": array,
            "dtype": dtype,
            "shape": shape,
            "bytes": bytes,
            "stored_bytes": stored_bytes,
            "seconds": time.as_secs_f64(),
        }));
    }
    if arguments.common.quiet {
        return Ok(());
    }
    let mut out = output();
    writeln!(
        out,
        "{}: array '{}', {dtype} {}, {} (stored as {}, {}), in {} ({})",
        arguments.output.display(),
        terminal::name(array),
        terminal::shape(shape),
        terminal::bytes(*bytes),
        terminal::bytes(*stored_bytes),
        terminal::ratio(*bytes, *stored_bytes),
        terminal::time(time),
        terminal::rate(*bytes, time),
    )?;
    Ok(out.flush()?)
}
