//! This program started again, with faults beneath it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

/// Tells this program, started by one of its tests, which part it has to play.
pub(crate) const PART: &str = "BRICKMAP_TEST_PART";
/// The directory that it does so in.
pub(crate) const DIRECTORY: &str = "FAULT_UNDER";
const LOG: &str = "FAULT_LOG";

/// The library that injects faults, compiled when it is first asked for; `None` if that cannot be.
pub(crate) fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    SHIM.get_or_init(compile).as_ref().map(|(_, path)| &**path)
}

fn compile() -> Option<(tempfile::TempDir, PathBuf)> {
    let Ok(machine) = Command::new("cc").arg("-dumpmachine").output() else {
        println!("skipped: there is no cc");
        return None;
    };
    let machine = String::from_utf8_lossy(&machine.stdout).into_owned();
    if !machine.starts_with(std::env::consts::ARCH) {
        println!("skipped: cc compiles for {}", machine.trim_end());
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shim.so");
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/shim.c"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some((directory, path))
}

/// A call of the C library, as the shim logs it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) injected: bool,
}

/// What a run said and did.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
    pub(crate) log: Vec<Call>,
}

impl Outcome {
    /// Whether a fault was met.
    pub(crate) fn hit(&self) -> bool {
        self.log.iter().any(|call| call.injected)
    }

    /// The generation that was acknowledged last; 0 if creating the store was not.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.lines("committed ").last().map_or(0, |generation| generation.parse().unwrap())
    }

    /// What follows `start` in the lines that begin with it.
    pub(crate) fn lines<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a str> {
        self.said.lines().filter_map(move |line| line.strip_prefix(start))
    }
}

/// Starts this program again to play a part in `directory` with faults; see shim.c for how they are written.
pub(crate) fn play(part: &str, directory: &Path, fault: &str) -> Outcome {
    let shim = shim().expect("asked for before");
    let log = tempfile::NamedTempFile::new().unwrap();
    let output = command(part, directory)
        .env("LD_PRELOAD", shim)
        .env("FAULT", fault)
        .env(LOG, log.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let log = text.lines().map(|line| Call {
        name: line.split(' ').next().unwrap_or_default().to_owned(),
        injected: line.ends_with(" injected") || line.ends_with(" killed"),
    });
    let outcome = Outcome { status: output.status, log: log.collect(), said };
    let killed = fault.contains("kill") && outcome.hit();
    assert!(
        outcome.status.success() != killed,
        "{part}, {fault}: {}{}",
        outcome.said,
        String::from_utf8_lossy(&output.stderr)
    );
    outcome
}

/// The program that plays a part, without faults.
pub(crate) fn command(part: &str, directory: &Path) -> Command {
    let directory = directory.canonicalize().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "parts", "--nocapture", "--quiet"]).env(PART, part).env(DIRECTORY, directory);
    command
}

pub(crate) fn say(text: &str) {
    println!("\n{text}");
    std::io::stdout().flush().unwrap();
}

/// Puts a line into the log of calls.
pub(crate) fn mark(text: &str) {
    if let Some(log) = std::env::var_os(LOG) {
        writeln!(std::fs::OpenOptions::new().append(true).open(log).unwrap(), "{text}").unwrap();
    }
}

/// How many descriptors this process has open on `directory` and what is in it. New threads open others for a moment.
pub(crate) fn descriptors(directory: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    descriptors.filter(|path| std::fs::read_link(path).is_ok_and(|file| file.starts_with(directory))).count()
}
