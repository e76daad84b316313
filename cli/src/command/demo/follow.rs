//! A writer and a reader process that follows it.
//!
//! The writer commits step after step; each replaces all items of two arrays. The reader, a process of its own that runs
//! this program with a hidden subcommand, refreshes and checks that all items of both arrays are of one step.

use super::generate::Scale;
use crate::failure::Failure;
use brickmap::{ArraySpec, Attributes, Dtype, Selection, Snapshot, Store};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Name of the hidden subcommand.
const SUBCOMMAND: &str = "demo-follow";
const ARRAYS: [&str; 2] = ["follow/a", "follow/b"];
/// The group's attribute that says which step it is.
const STEP: &str = "step";
/// From the end of a commit to the start of the next.
const PAUSE: Duration = Duration::from_millis(20);
/// From one look for a new commit to the next.
const POLL: Duration = Duration::from_millis(1);
/// A reader that sees nothing new for so long gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Follow the demo's writer
#[derive(Args)]
pub(crate) struct FollowArguments {
    file: PathBuf,

    /// The last step
    until: u64,
}

/// What came of following.
pub(super) struct Followed {
    pub(super) commits: u64,
    /// Generations that the reader looked at.
    pub(super) seen: u64,
    /// Of these, generations of which not all items were of one step.
    pub(super) mixed: u64,
    pub(super) items: u64,
    /// Median time of a commit with all that it writes.
    pub(super) commit: Duration,
    /// Median time from the start of a commit until the reader had read and checked it.
    pub(super) delay: Duration,
}

/// A process that does not outlive the one that waits for it.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes steps into the store at `path` while a reader process follows.
pub(super) fn write_and_follow(path: &Path, scale: Scale) -> Result<Followed, Failure> {
    let store = brickmap::OpenOptions::new().write(true).open(path)?;
    let mut writer = store.writer()?;
    for array in ARRAYS {
        writer.create_array(array, &ArraySpec::new(Dtype::U32, scale.step))?;
    }
    let len = scale.step.iter().product();
    let mut step = |step: u64| -> Result<(Duration, Duration), Failure> {
        let (start, since_epoch) = (Instant::now(), now());
        for (number, array) in ARRAYS.iter().enumerate() {
            writer.write(array, &Selection::all(), &items(step, number, len))?;
        }
        writer.set_attributes("follow", &Attributes::from_iter([(STEP.to_owned(), json!(step))]))?;
        writer.commit()?;
        Ok((start.elapsed(), since_epoch))
    };
    step(0)?;
    let (mut reader, mut lines) = start_reader(path, scale.steps)?;
    let ready = lines.next();
    if !matches!(ready, Some(Ok(_))) {
        return Err(Failure::failed("the reader process did not start"));
    }
    let mut commits = Vec::new();
    for number in 1..=scale.steps {
        commits.push(step(number)?);
        std::thread::sleep(PAUSE);
    }
    let report = lines.next().and_then(Result::ok).and_then(|line| serde_json::from_str::<Value>(&line).ok());
    let status = reader
        .0
        .wait()
        .map_err(|error| Failure::failed(format!("cannot wait for the reader process: {error}")))?;
    let Some(report) = report.filter(|_| status.success()) else {
        return Err(Failure::failed("the reader process failed"));
    };
    let number = |key: &str| report.get(key).and_then(Value::as_u64).unwrap_or(0);
    let delays = report.get("checked").and_then(Value::as_array).into_iter().flatten().filter_map(|pair| {
        let (_, since_epoch) = commits.get(usize::try_from(pair.get(0)?.as_u64()?.checked_sub(1)?).ok()?)?;
        Some(Duration::from_micros(pair.get(1)?.as_u64()?).saturating_sub(*since_epoch))
    });
    Ok(Followed {
        commits: scale.steps,
        seen: number("seen"),
        mixed: number("mixed"),
        items: len * ARRAYS.len() as u64,
        delay: median(delays.collect()),
        commit: median(commits.iter().map(|(time, _)| *time).collect()),
    })
}

fn start_reader(
    path: &Path,
    until: u64,
) -> Result<(Reader, std::io::Lines<BufReader<std::process::ChildStdout>>), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot start a reader process: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg(SUBCOMMAND).arg(path).arg(until.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let Some(output) = child.stdout.take() else {
        return Err(Failure::failed("the reader process has no output"));
    };
    Ok((Reader(child), BufReader::new(output).lines()))
}

/// What the reader process does: it says that it is there, follows until the last step, and reports.
pub(crate) fn follow(arguments: &FollowArguments) -> Result<(), Failure> {
    let store = Store::open(&arguments.file)?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    let (mut generation, mut seen, mut mixed) = (store.snapshot().generation(), 0, 0);
    let mut checked = Vec::new();
    let mut last_news = Instant::now();
    loop {
        let snapshot = store.refresh()?;
        if snapshot.generation() == generation {
            if last_news.elapsed() > PATIENCE {
                return Err(Failure::failed("the demo's writer has stopped"));
            }
            std::thread::sleep(POLL);
            continue;
        }
        (generation, last_news) = (snapshot.generation(), Instant::now());
        let step = snapshot.attributes("follow")?.get(STEP).and_then(Value::as_u64).unwrap_or(0);
        seen += 1;
        mixed += u64::from(!is_of_step(&snapshot, step)?);
        checked.push(json!([step, now().as_micros() as u64]));
        if step >= arguments.until {
            break;
        }
    }
    writeln!(out, "{}", json!({"seen": seen, "mixed": mixed, "checked": checked}))?;
    Ok(out.flush()?)
}

/// Whether all items of both arrays are of `step`.
fn is_of_step(snapshot: &Snapshot, step: u64) -> Result<bool, Failure> {
    for (number, array) in ARRAYS.iter().enumerate() {
        let array = snapshot.array(array)?;
        if array.read::<u32>(&Selection::all())? != items(step, number, array.len()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The items of array `number` in a step. Each differs from the one at its place in any other step.
fn items(step: u64, number: usize, len: u64) -> Vec<u32> {
    let start = (step as u32).wrapping_mul(1_000_003).wrapping_add(number as u32);
    (0..len as u32).map(|n| start.wrapping_add(n.wrapping_mul(n))).collect()
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
