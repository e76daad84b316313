//! `cargo xtask bench`: the programs of benches/.

use crate::repo::{cargo, root, stems};
use crate::summary::Summary;

/// Builds and runs the program that the first argument names, with the others, or all programs. Returns whether all
/// succeeded.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let programs = stems(&root().join("benches/src/bin"), "rs");
    let (chosen, rest) = match arguments.split_first() {
        None => (programs, &[][..]),
        Some((name, rest)) if programs.contains(name) => (vec![name.clone()], rest),
        Some((name, _)) => {
            return Err(format!("benches/ has no program '{name}'; there are: {}", programs.join(", ")));
        }
    };
    let mut summary = Summary::default();
    for name in chosen {
        let mut command = cargo(["run", "--release", "-p", "brickmap-benches", "--bin", name.as_str(), "--"]);
        command.args(rest);
        summary.check(&name, command);
    }
    Ok(summary.print())
}
