//! The virtual environment of the Python tests.

use crate::repo::{command, root, target, works};
use std::path::PathBuf;
use std::process::Stdio;

/// The packages that the tests need, with their versions.
const REQUIREMENTS: &str = "tests/requirements.txt";

/// Makes the environment in target/venv, unless it is there with the packages of today. Returns its Python, or what is
/// missing and how to get it.
pub(crate) fn environment() -> Result<PathBuf, String> {
    let directory = target().join("venv");
    let python = directory.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let wanted = std::fs::read_to_string(root().join(REQUIREMENTS))
        .map_err(|error| format!("cannot read {REQUIREMENTS}: {error}"))?;
    // Written last, so that an environment that was left half made is made again.
    let stamp = directory.join("requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let base = if cfg!(windows) { "python" } else { "python3" };
    let mut probe = command(base);
    probe.args(["-c", "import venv, ensurepip"]);
    if !works(probe) {
        return Err(format!(
            "{base} with the modules venv and ensurepip is not installed (Debian: apt-get install python3-venv)"
        ));
    }
    println!("\nmaking {}", directory.display());
    run(command(base).args(["-m", "venv", "--clear"]).arg(&directory), "make a virtual environment")?;
    let mut pip = command(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        REQUIREMENTS,
    ]);
    run(&mut pip, &format!("install the packages of {REQUIREMENTS}"))?;
    std::fs::write(&stamp, &wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))?;
    Ok(python)
}

fn run(command: &mut std::process::Command, action: &str) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("could not {action}: {status}")),
        Err(error) => Err(format!("could not {action}: {error}")),
    }
}
