//! `cargo xtask soak`: the longer search.

use crate::cross;
use crate::repo::{cargo, cargo_of, root, stems, target, works};
use crate::summary::Summary;

/// How long to search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Minutes for each fuzz target.
    minutes: u64,
    /// Cases of each property test.
    cases: u64,
    /// Processes that are killed, by each test that kills some.
    kills: u64,
}

/// The tests that take longer for a larger store, more commits or more kills.
const LONG: [&str; 3] = ["space", "locks", "durability"];

impl Options {
    /// The options that the arguments ask for.
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options { minutes: 10, cases: 20_000, kills: 2000 };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(format!("'{}' needs a number", pair.join(" "))) };
            // The fuzzer takes 0 for no limit.
            let positive = value.parse().ok().filter(|&value| value > 0);
            let value = positive.ok_or_else(|| format!("'{name} {value}' is not a number above 0"))?;
            match name.as_str() {
                "--minutes" => options.minutes = value,
                "--cases" => options.cases = value,
                "--kills" => options.kills = value,
                _ => return Err(format!("cargo xtask soak does not know '{name}'")),
            }
        }
        Ok(options)
    }
}

/// Runs all steps. Returns whether nothing failed.
pub(crate) fn run(options: &Options) -> bool {
    let mut summary = Summary::default();
    let mut properties = cargo(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]);
    for variable in ["PROPTEST_CASES", "BRICKMAP_CASES"] {
        properties.env(variable, options.cases.to_string());
    }
    summary.tests(&format!("rust tests, {} cases", options.cases), properties);
    let mut long = cargo(["test", "--release", "--no-fail-fast"]);
    long.args(LONG.iter().flat_map(|name| ["--test", name]));
    long.env("BRICKMAP_SPACE_MB", "315").env("BRICKMAP_COMMITS", "1000000");
    long.env("BRICKMAP_KILLS", options.kills.to_string());
    summary.tests(&format!("large stores, a million commits, {} kills", options.kills), long);
    for name in stems(&root().join("fuzz/fuzz_targets"), "rs") {
        fuzz(&mut summary, &name, options.minutes);
    }
    cross::run(&mut summary);
    summary.print()
}

/// Fuzzes one target. What the fuzzer learns is kept below target/, beside the seeds of fuzz/corpus; an input that
/// fails is left in fuzz/artifacts.
fn fuzz(summary: &mut Summary, name: &str, minutes: u64) {
    let step = format!("fuzz {name}");
    if !works(cargo_of("nightly", ["--version"])) {
        return summary.skip(&step, "there is no nightly toolchain: rustup toolchain install nightly");
    }
    if !works(cargo_of("nightly", ["fuzz", "--version"])) {
        return summary.skip(&step, "cargo-fuzz is not installed: cargo install cargo-fuzz");
    }
    let learned = target().join("fuzz-corpus").join(name);
    if let Err(error) = std::fs::create_dir_all(&learned) {
        return summary.fail(&step, &format!("cannot make {}: {error}", learned.display()));
    }
    let mut command = cargo_of("nightly", ["fuzz", "run", name]);
    command.arg(&learned).arg(format!("fuzz/corpus/{name}"));
    // A block may have 16 MiB, so a thread's scratch some times as much; what is larger comes from a number that was
    // believed.
    command.args(["--", "-malloc_limit_mb=128", "-rss_limit_mb=2048", "-timeout=20"]);
    command.arg(format!("-max_total_time={}", minutes.saturating_mul(60)));
    summary.check(&step, command);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options() {
        assert_eq!(parse("").unwrap(), Options { minutes: 10, cases: 20_000, kills: 2000 });
        let options = Options { minutes: 3, cases: 7, kills: 5 };
        assert_eq!(parse("--minutes 3 --cases 7 --kills 5").unwrap(), options);
        for wrong in ["--minutes", "--minutes x", "--minutes 0", "--hours 1", "3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
