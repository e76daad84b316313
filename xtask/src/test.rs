//! `cargo xtask test`: every test there is.

use crate::python;
use crate::repo::{cargo, root, stems, works};
use crate::summary::Summary;
use std::process::Command;

/// Runs all steps. Returns whether nothing failed.
pub(crate) fn run() -> bool {
    let mut summary = Summary::default();
    formatting(&mut summary);
    lints(&mut summary);
    let tests = ["test", "--workspace", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"];
    summary.tests("rust tests", cargo(tests));
    summary.tests("documentation tests", cargo(["test", "--workspace", "--doc", "--no-fail-fast"]));
    let mut documentation = cargo(["doc", "--workspace", "--lib", "--no-deps", "--all-features"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    summary.check("documentation", documentation);
    python_tests(&mut summary);
    summary.print()
}

fn formatting(summary: &mut Summary) {
    if !works(cargo(["fmt", "--version"])) {
        return summary.skip("formatting", "rustfmt is not installed: rustup component add rustfmt");
    }
    summary.check("formatting", cargo(["fmt", "--all", "--check"]));
    summary.check("formatting, fuzz", cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]));
}

/// The lints, over everything and over the library with none and with each of its default features.
fn lints(summary: &mut Summary) {
    let clippy = works(cargo(["clippy", "--version"]));
    if clippy {
        let everything = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        summary.check("lints", cargo(everything));
    } else {
        summary.skip("lints", "clippy is not installed: rustup component add clippy");
    }
    for feature in ["", "mmap", "threads", "write"] {
        let name =
            if feature.is_empty() { "no features".to_owned() } else { format!("feature {feature} alone") };
        let alone = ["-p", "brickmap", "--no-default-features", "--features", feature];
        let mut command: Command;
        if clippy {
            command = cargo(["clippy"]);
            command.args(alone).args(["--", "-D", "warnings"]);
        } else {
            command = cargo(["check"]);
            command.args(alone);
        }
        summary.check(&name, command);
    }
}

fn python_tests(summary: &mut Summary) {
    const NAME: &str = "python tests";
    let tests = stems(&root().join("tests"), "py");
    if !tests.iter().any(|stem| stem.starts_with("test_")) {
        return summary.skip(NAME, "there are none in tests/");
    }
    match python::environment() {
        Ok(python) => {
            let mut pytest = crate::repo::command(python);
            pytest.args(["-m", "pytest", "-ra", "--color=no", "-p", "no:cacheprovider", "tests"]);
            pytest.env("PYTHONDONTWRITEBYTECODE", "1");
            summary.tests(NAME, pytest);
        }
        Err(missing) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => summary.fail(NAME, &missing),
        Err(missing) => summary.skip(NAME, &missing),
    }
}
