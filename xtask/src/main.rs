//! What is done with this repository: `cargo xtask test`, `soak` and `bench`.
//!
//! Each command is a list of steps. [`summary::Summary`] runs them one after the other, goes on after one that failed, and
//! prints at the end what came of each. `test` is what has to pass before a change is merged and takes minutes; `soak`
//! looks longer and wider with the same tests, the fuzzer and other machines; `bench` runs the programs of benches/.

mod bench;
mod counts;
mod cross;
mod python;
mod repo;
mod soak;
mod summary;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
What is done with this repository.

  cargo xtask test
      Every test there is, in some minutes: formatting, lints, each feature alone, Rust tests, documentation, Python
      tests. Goes on after a failed step; the last line counts all tests. Tools that are not there make a step
      'skipped', with the reason; with CI=true in the environment a missing Python is a failure.

  cargo xtask soak [--minutes N] [--cases N] [--kills N]
      The longer search: the property tests with N cases each (20000; tests read it from PROPTEST_CASES and
      BRICKMAP_CASES), file space with an array of 315 MB, a million commits, N killed processes (2000), each fuzz target for N minutes (10), and the tests on other machines: wasm32 (built only),
      aarch64 and big-endian s390x (run with qemu). Says how to install what is missing.

  cargo xtask bench [NAME [ARGUMENT...]]
      Builds and runs the programs of benches/, all of them or the one that is named, with its arguments.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match command {
        "test" if rest.is_empty() => Ok(test::run()),
        "soak" => soak::Options::parse(rest).map(|options| soak::run(&options)),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => Err(format!("cargo xtask does not know '{}'", arguments.join(" "))),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("{what}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}
