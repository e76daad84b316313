//! The `brickmap` command.
//!
//! Each subcommand is a file in [`command`]. What they share stands beside it: [`failure`] gives errors their exit codes,
//! [`output`] writes files that appear whole or not at all, [`progress`] draws bars, [`npy`] reads and writes NumPy's
//! files, [`mod@print`] shows items as NumPy does.

mod boxes;
mod command;
mod failure;
mod npy;
mod output;
mod print;
mod progress;
mod terminal;

use crate::command::{compact, convert, demo, info, ls, read, verify, watch};
use crate::failure::Failure;
use clap::{Args, Parser, Subcommand};
use std::process::ExitCode;

/// Looks into brick files, reads, converts, verifies and compacts them.
///
/// A brick file holds named n-d arrays in small compressed blocks, so that any slice is read without the rest.
#[derive(Parser)]
#[command(name = "brickmap", version, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  brickmap convert volume.npy volume.brick
  brickmap ls volume.brick
  brickmap read volume.brick volume '10:20, ::4, -1'
  brickmap verify volume.brick

Exit codes: 0 done, 1 damage was found or the work failed, 2 what was asked for cannot be right.";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    #[command(hide = true)]
    DemoFollow(demo::FollowArguments),
    Info(info::Arguments),
    Ls(ls::Arguments),
    Read(read::Arguments),
    Convert(convert::Arguments),
    Verify(verify::Arguments),
    Compact(compact::Arguments),
    Watch(watch::Arguments),
}

/// Options of every subcommand.
#[derive(Args, Clone, Copy)]
struct Common {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    /// Draw no progress bars and print no summaries
    #[arg(short, long)]
    quiet: bool,
}

fn main() -> ExitCode {
    let done = output::remove_unfinished_when_interrupted().and_then(|()| run(Arguments::parse().command));
    match done {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::DemoFollow(arguments) => demo::follow(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Read(arguments) => read::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Compact(arguments) => compact::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
    }
}
