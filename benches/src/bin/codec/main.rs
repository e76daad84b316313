//! What the codec's choices and loops are worth: `codec DIR [--only NAME] [--level N] [--rounds N] [--speeds]`.
//!
//! DIR holds the .npy files to judge by. Prints each coding's ratio and speed and what the choice makes of them, then the
//! time outside of zstd beside that of plain loops; with `--speeds` instead the figures that stand in the library's
//! `codec/cost.rs`.

mod clock;
mod coding;
mod loops;
mod npy;
mod plain;
mod speeds;

use std::path::PathBuf;
use std::process::ExitCode;

/// What the command line asks for.
pub(crate) struct Options {
    folder: PathBuf,
    only: String,
    level: i32,
    rounds: usize,
    speeds: bool,
}

fn options() -> Option<Options> {
    let mut options =
        Options { folder: PathBuf::new(), only: String::new(), level: 1, rounds: 7, speeds: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => options.only = arguments.next()?,
            "--level" => options.level = arguments.next()?.parse().ok()?,
            "--rounds" => options.rounds = arguments.next()?.parse().ok()?,
            "--speeds" => options.speeds = true,
            _ => options.folder = argument.into(),
        }
    }
    Some(options).filter(|options| !options.folder.as_os_str().is_empty())
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("usage: codec DIR [--only NAME] [--level N] [--rounds N] [--speeds]");
        return ExitCode::from(2);
    };
    let rows = match npy::rows(&options.folder, &options.only) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("{}: {error}", options.folder.display());
            return ExitCode::FAILURE;
        }
    };
    if options.speeds {
        speeds::print(&rows, &options);
        return ExitCode::SUCCESS;
    }
    let chosen = coding::print(&rows, &options);
    loops::print(&rows, &chosen, &options);
    ExitCode::SUCCESS
}
