//! Steps: running them, and saying at the end what came of each.

use crate::counts::Counts;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The steps that were run so far.
#[derive(Default)]
pub(crate) struct Summary {
    steps: Vec<Step>,
}

struct Step {
    name: String,
    result: String,
    counts: Counts,
    time: Duration,
}

/// What the output of a step counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// The step is one test.
    Check,
    /// The step is as many tests as it says.
    Tests,
}

impl Summary {
    /// Runs a command that counts as one test: it passes if it succeeds.
    pub(crate) fn check(&mut self, name: &str, command: Command) {
        self.run(name, command, Output::Check);
    }

    /// Runs a command that prints how many tests passed and failed.
    pub(crate) fn tests(&mut self, name: &str, command: Command) {
        self.run(name, command, Output::Tests);
    }

    /// Notes a step that is not run.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        println!("\n== {name}\nskipped: {reason}");
        let counts = Counts { skipped: 1, ..Counts::default() };
        self.note(name, format!("skipped: {reason}"), counts, Duration::ZERO);
    }

    /// Notes a step that cannot be run and should have been.
    pub(crate) fn fail(&mut self, name: &str, reason: &str) {
        println!("\n== {name}\nFAILED: {reason}");
        let counts = Counts { failed: 1, ..Counts::default() };
        self.note(name, format!("FAILED: {reason}"), counts, Duration::ZERO);
    }

    /// Prints the table and the line that counts everything. Returns whether nothing failed.
    pub(crate) fn print(&self) -> bool {
        let width = self.steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
        println!("\n{:width$}  seconds  result", "step");
        let mut all = Counts::default();
        for step in &self.steps {
            println!("{:width$}  {:7.1}  {}", step.name, step.time.as_secs_f64(), step.result);
            all += step.counts;
        }
        println!("\n{} passed, {} failed, {} skipped", all.passed, all.failed, all.skipped);
        all.failed == 0
    }

    fn run(&mut self, name: &str, mut command: Command, output: Output) {
        println!("\n== {name}\n{}", shown(&command));
        let start = Instant::now();
        let (mut counts, outcome) = stream(command.stdin(Stdio::null()));
        if output == Output::Check {
            counts = Counts::default();
        }
        let result = match outcome {
            Ok(()) if output == Output::Check => {
                counts.passed = 1;
                "passed".to_owned()
            }
            Ok(()) if counts.failed == 0 => format!("passed: {} tests", counts.passed) + &ignored(counts),
            outcome => {
                let why = outcome.err().unwrap_or_else(|| format!("{} tests failed", counts.failed));
                // A test program that was killed, or did not compile, counts nothing itself.
                counts.failed = counts.failed.max(1);
                match output {
                    Output::Check => format!("FAILED: {why}"),
                    Output::Tests => {
                        format!("FAILED: {why}; {} passed, {} failed", counts.passed, counts.failed)
                            + &ignored(counts)
                    }
                }
            }
        };
        self.note(name, result, counts, start.elapsed());
    }

    fn note(&mut self, name: &str, result: String, counts: Counts, time: Duration) {
        self.steps.push(Step { name: name.to_owned(), result, counts, time });
    }
}

fn ignored(counts: Counts) -> String {
    if counts.skipped == 0 { String::new() } else { format!(", {} skipped", counts.skipped) }
}

/// A command as it would be typed.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}='{}'", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| word.to_string_lossy().into_owned());
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// Runs a command, passes its output on as it comes, and counts the tests that it tells of. What it says on the
/// error stream goes there directly.
fn stream(command: &mut Command) -> (Counts, Result<(), String>) {
    let mut counts = Counts::default();
    let outcome = (|| {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| format!("cannot run {program}: {error}");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        if let Some(output) = child.stdout.take() {
            pass_on(BufReader::new(output), &mut std::io::stdout(), &mut counts).map_err(failed)?;
        }
        let status = child.wait().map_err(failed)?;
        if status.success() { Ok(()) } else { Err(status.to_string()) }
    })();
    (counts, outcome)
}

fn pass_on(mut output: impl BufRead, to: &mut impl Write, counts: &mut Counts) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        let chunk = output.fill_buf()?;
        if chunk.is_empty() {
            return Ok(());
        }
        to.write_all(chunk)?;
        to.flush()?;
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                *counts += Counts::of_line(&String::from_utf8_lossy(&line)).unwrap_or_default();
                line.clear();
            }
        }
        let len = chunk.len();
        output.consume(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_over_lines_that_come_in_parts() {
        let text: &[u8] = b"running\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n==== 3 passed in 1.0s ====\n";
        let mut counts = Counts::default();
        let mut passed_on = Vec::new();
        pass_on(BufReader::with_capacity(7, text), &mut passed_on, &mut counts).unwrap();
        assert_eq!(passed_on, text);
        assert_eq!(counts, Counts { passed: 5, failed: 0, skipped: 1 });
    }

    #[test]
    fn a_program_that_is_not_there_fails_its_step() {
        let mut summary = Summary::default();
        summary.tests("none", Command::new("/no/such/program"));
        assert_eq!(summary.steps[0].counts, Counts { failed: 1, ..Counts::default() });
        assert!(!summary.print());
    }

    #[test]
    fn a_skipped_step_fails_nothing() {
        let mut summary = Summary::default();
        summary.skip("tool", "it is not installed");
        assert!(summary.print());
    }
}
