//! What ends a command, and the exit code that says so.

use brickmap::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for cannot be right: exit code 2.
    Usage(String),
    /// The work failed, or a file is damaged: exit code 1.
    Failed(String),
    /// Damage was found and has been reported: exit code 1, without another message.
    Damaged,
    /// Whoever read the output has had enough. Not an error.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure::Usage(what.into())
    }

    pub(crate) fn failed(what: impl Into<String>) -> Failure {
        Failure::Failed(what.into())
    }

    /// A failure of the operating system with a file. One that is not there is the caller's mistake.
    pub(crate) fn of_file(action: &str, file: &Path, error: &io::Error) -> Failure {
        let name = file.display();
        match error.kind() {
            io::ErrorKind::NotFound => Failure::Usage(format!("there is no file '{name}'")),
            io::ErrorKind::IsADirectory => Failure::Usage(format!("'{name}' is a directory, not a file")),
            _ => Failure::Failed(format!("cannot {action} '{name}': {error}")),
        }
    }

    /// Prints the message, if it has not been said yet.
    pub(crate) fn report(&self) {
        if let Failure::Usage(what) | Failure::Failed(what) = self {
            // eprintln! would panic where standard error is closed.
            let _ = io::Write::write_all(&mut io::stderr(), format!("brickmap: {what}\n").as_bytes());
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) | Failure::Damaged => ExitCode::FAILURE,
            Failure::ClosedPipe => ExitCode::SUCCESS,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Io { action, file, source } => Failure::of_file(action, file, source),
            Error::InvalidArgument { .. }
            | Error::OutOfBounds { .. }
            | Error::DtypeMismatch { .. }
            | Error::NotFound { .. }
            | Error::AlreadyExists { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// Errors of writing to standard output. Those of files are made with [`Failure::of_file`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Failed(format!("cannot write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::from(io::Error::from(error))
    }
}
