//! Files that appear whole or not at all.
//!
//! An [`OutputFile`] is written under a temporary name in the folder where it will stand, and gets its own name when it is
//! complete. If the work fails or is interrupted, the temporary file goes and whatever had the name stays as it was.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempPath;

/// What has to go when the command is interrupted.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Shells report a command that was ended by SIGINT with this code.
const INTERRUPTED: i32 = 130;

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on Ctrl-C, SIGTERM and SIGHUP remove what is not finished and end the command.
pub(crate) fn remove_unfinished_when_interrupted() -> Result<(), Failure> {
    let handle = || {
        // Held to the end, so that nothing is published any more.
        let paths = unfinished();
        for path in paths.iter() {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        std::process::exit(INTERRUPTED);
    };
    ctrlc::set_handler(handle).map_err(|error| Failure::failed(format!("cannot watch for Ctrl-C: {error}")))
}

/// A file or folder that is removed if the command is interrupted before this is dropped.
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    pub(crate) fn new(path: PathBuf) -> Unfinished {
        unfinished().push(path.clone());
        Unfinished(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

/// A file that is being written under a temporary name.
pub(crate) struct OutputFile {
    /// Where it will stand; symbolic links are followed, so that they stay.
    target: PathBuf,
    /// As the user wrote it.
    shown: PathBuf,
    replace: bool,
    temporary: TempPath,
    /// Dropped last: once there is nothing left to remove.
    _unfinished: Unfinished,
}

impl OutputFile {
    /// Creates the temporary file with `create`, which gets a path that is free. Unless `replace` is set, `path` must be
    /// free too; `way_out` ends the message that says it is not.
    pub(crate) fn create<T>(
        path: &Path,
        replace: bool,
        way_out: &str,
        create: impl Fn(&Path) -> Result<T, Failure>,
    ) -> Result<(OutputFile, T), Failure> {
        let shown = path.to_path_buf();
        let target = fs::canonicalize(path).unwrap_or_else(|_| shown.clone());
        if let Ok(there) = fs::symlink_metadata(&target) {
            if !there.is_file() {
                return Err(Failure::usage(format!(
                    "'{}' is there and is not a regular file",
                    shown.display()
                )));
            }
            if !replace {
                return Err(Failure::usage(format!("'{}' exists already; {way_out}", shown.display())));
            }
        }
        let directory =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut failure = None;
        let made =
            tempfile::Builder::new().prefix(".brickmap-").suffix(".unfinished").make_in(directory, |path| {
                let unfinished = Unfinished::new(path.to_path_buf());
                match create(path) {
                    Ok(file) => Ok((file, unfinished)),
                    Err(other) => {
                        failure = Some(other);
                        Err(io::Error::other("not created"))
                    }
                }
            });
        let ((file, unfinished), temporary) = match made {
            Ok(made) => made.into_parts(),
            Err(error) => {
                return Err(match failure {
                    // The temporary name means nothing to the user, the folder does.
                    Some(Failure::Usage(_)) | None if !directory.is_dir() => {
                        Failure::usage(format!("there is no folder '{}'", directory.display()))
                    }
                    Some(failure) => failure,
                    None => Failure::of_file("create a file in", directory, &error),
                });
            }
        };
        Ok((OutputFile { target, shown, replace, temporary, _unfinished: unfinished }, file))
    }

    /// Gives the file its name. What had the name before is replaced, if that was asked for, after the new file has
    /// reached the disk; its permissions are kept.
    pub(crate) fn publish(self) -> Result<(), Failure> {
        let OutputFile { target, shown, replace, temporary, _unfinished } = self;
        let failed = |error: &io::Error| Failure::of_file("write", &shown, error);
        if replace {
            File::open(&temporary).and_then(|file| file.sync_all()).map_err(|error| failed(&error))?;
            if let Ok(there) = fs::metadata(&target) {
                fs::set_permissions(&temporary, there.permissions()).map_err(|error| failed(&error))?;
            }
        }
        // While this is held an interruption waits: after it the file has its name or is gone.
        let mut unfinished = unfinished();
        unfinished.retain(|path| *path != *temporary);
        let done = if replace { temporary.persist(&target) } else { temporary.persist_noclobber(&target) };
        drop(unfinished);
        done.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::usage(format!("'{}' has appeared meanwhile", shown.display()))
            }
            _ => failed(&error.error),
        })
    }
}
