//! Tests in several processes: the test program is started again to play a part, which its test `parts` has.

#![allow(dead_code, reason = "each test program uses a part of this")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells this program, started by one of its tests, which part it has to play.
pub(crate) const PART: &str = "BRICKMAP_TEST_PART";
pub(crate) const FILE: &str = "BRICKMAP_TEST_FILE";

/// The part that this process has to play, and the file to play it with.
pub(crate) fn my_part() -> Option<(String, PathBuf)> {
    Some((std::env::var(PART).ok()?, std::env::var_os(FILE)?.into()))
}

/// A number that is set in the environment, for a longer search than by default.
pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A command that runs `program`, a copy of this one, to play a part: its test `parts` and nothing else.
pub(crate) fn part(part: &str, path: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "parts", "--nocapture", "--quiet"]).env(PART, part).env(FILE, path);
    command
}

/// Starts this program again to play a part.
pub(crate) fn start(name: &str, path: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    part(name, path, &program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The lines that a part says, from the next one that starts with `what`.
pub(crate) fn hear(lines: &mut impl Iterator<Item = std::io::Result<String>>, what: &str) -> String {
    lines
        .map(|line| line.unwrap())
        .find(|line| line.starts_with(what))
        .unwrap_or_else(|| panic!("no '{what}'"))
}

/// Says a line, in one write: nothing that another process says to the same pipe comes in between.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The system calls that a part makes: lines of strace, without those of the start of the program.
#[cfg(target_os = "linux")]
pub(crate) fn system_calls(part: &str, path: &Path) -> Option<Vec<String>> {
    let log = path.with_extension("strace");
    let program = std::env::current_exe().unwrap();
    let traced = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=open,openat,close,read,pread64,preadv,pwrite64,fcntl,fdatasync,fsync,rename,renameat2,link,unlink",
            "-o",
        ])
        .arg(&log)
        .arg(program)
        .args(["--exact", "parts", "--nocapture", "--quiet"])
        .env(PART, part)
        .env(FILE, path)
        .output();
    let Ok(output) = traced else {
        println!("skipped: there is no strace");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(log).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// The calls on the descriptor that the file at `path` was opened as, and how often it was opened.
#[cfg(target_os = "linux")]
pub(crate) fn calls_on(calls: &[String], path: &str) -> (usize, Vec<String>) {
    let quoted = format!("\"{path}\"");
    let opened: Vec<usize> =
        (0..calls.len()).filter(|&n| calls[n].contains("open") && calls[n].contains(&quoted)).collect();
    let Some(&first) = opened.first() else { return (0, Vec::new()) };
    let descriptor = calls[first].rsplit("= ").next().unwrap().trim();
    let on = [format!("({descriptor},"), format!("({descriptor})")];
    let calls = calls[first + 1..].iter().filter(|call| on.iter().any(|on| call.contains(on))).cloned();
    (opened.len(), calls.collect())
}

#[cfg(target_os = "linux")]
pub(crate) fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| call.contains(name)).count()
}
