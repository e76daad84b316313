//! Where things are, and the commands that run there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Where cargo builds, and where everything goes that may be deleted.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// A command that starts in the root of the repository.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs this program, with some arguments.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(cargo);
    command.args(arguments);
    command
}

/// The cargo of another toolchain of rustup's.
pub(crate) fn cargo_of<'a>(toolchain: &str, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command("cargo");
    command.arg(format!("+{toolchain}")).args(arguments);
    // Set by the cargo that runs this program: they would name its own toolchain.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}

/// Whether a command can be run and succeeds. It says nothing.
pub(crate) fn works(mut command: Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The names without extension of the files in a directory that end with `.extension`, sorted. None if there is no
/// such directory.
pub(crate) fn stems(directory: &Path, extension: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut stems: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    stems.sort();
    stems
}
