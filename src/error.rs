//! The one error type of the crate.
//!
//! [`Error`] is a vocabulary: each variant says what went wrong, where (file, array, chunk, block) and, if there
//! is one, the way out. Layers below the store know no file names: they report [`Damage`], a sentence about the
//! bytes at hand, and the store adds the [`Place`].

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where in a store something is: the file, and as far as it is known the array, chunk, block and file offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, or a name in angle brackets for bytes in memory.
    pub file: PathBuf,
    /// Path of the array or group in the store.
    pub array: Option<String>,
    /// Coordinates of the chunk in the array's chunk grid.
    pub chunk: Option<Vec<u64>>,
    /// Number of the block within its chunk, in C order.
    pub block: Option<u64>,
    /// Offset in the file, in bytes.
    pub offset: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(array) = &self.array {
            write!(f, ", array '{array}'")?;
        }
        if let Some(chunk) = &self.chunk {
            write!(f, ", chunk {chunk:?}")?;
        }
        if let Some(block) = self.block {
            write!(f, ", block {block}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        Ok(())
    }
}

/// What can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation.
    Io {
        /// What was tried, as in "write 4096 bytes at 16384".
        action: String,
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not a brick file at all.
    NotAStore {
        /// The file.
        file: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// The file, or an option, needs something that this version does not know.
    Unsupported {
        /// What is not supported.
        what: String,
    },
    /// The file's bytes are not what was written: damage, or a file made by a broken or hostile program.
    Corrupt {
        /// Where.
        place: Box<Place>,
        /// What is wrong.
        what: String,
    },
    /// An argument cannot be right, whatever the store holds.
    InvalidArgument {
        /// What is wrong and what would be right.
        what: String,
    },
    /// An index or a selection reaches outside the array.
    OutOfBounds {
        /// What is wrong.
        what: String,
    },
    /// The array's dtype is not the one that was asked for.
    DtypeMismatch {
        /// The array.
        array: String,
        /// The dtype of the array, in NumPy's notation.
        stored: String,
        /// What the caller wanted.
        wanted: String,
    },
    /// There is no array or group of this name.
    NotFound {
        /// What was looked for.
        name: String,
        /// A name that is there and nearly the same.
        near: Option<String>,
    },
    /// There is one of this name already.
    AlreadyExists {
        /// The file, array or group.
        name: String,
    },
    /// A limit of the format or of the machine would be passed.
    TooLarge {
        /// What is too large, and the limit.
        what: String,
    },
    /// Something else holds what is needed.
    Locked {
        /// What is held, and by whom if known.
        what: String,
    },
    /// The name under which the file was opened stands for another file now, or for none.
    Replaced {
        /// The name.
        file: PathBuf,
    },
    /// A snapshot's space was used again, or may have been, because no pin kept it: see [`Snapshot::is_pinned`](crate::Snapshot::is_pinned).
    Gone {
        /// The file.
        file: PathBuf,
        /// The generation of the snapshot.
        generation: u64,
    },
    /// The handle cannot be used for this, because of how it was opened or what happened to it before.
    InvalidState {
        /// What is the matter and what to do.
        what: String,
    },
    /// The caller's progress callback asked to stop.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { action, file, source } => {
                write!(f, "cannot {action} in {}: {source}", file.display())
            }
            Error::NotAStore { file, found } => write!(f, "{} is not a brick file: {found}", file.display()),
            Error::Unsupported { what } => write!(f, "not supported: {what}"),
            Error::Corrupt { place, what } => write!(f, "damaged: {what} ({place})"),
            Error::InvalidArgument { what } | Error::OutOfBounds { what } | Error::InvalidState { what } => {
                f.write_str(what)
            }
            Error::DtypeMismatch { array, stored, wanted } => {
                write!(f, "array '{array}' holds {stored}, not {wanted}")
            }
            Error::NotFound { name, near: Some(near) } => {
                write!(f, "no array '{name}'; did you mean '{near}'?")
            }
            Error::NotFound { name, near: None } => write!(f, "no array '{name}'"),
            Error::AlreadyExists { name } => write!(f, "'{name}' exists already"),
            Error::TooLarge { what } => write!(f, "too large: {what}"),
            Error::Locked { what } => write!(f, "locked: {what}"),
            Error::Replaced { file } => write!(
                f,
                "{} is not the file that was opened any more: it was replaced or removed; open it again",
                file.display()
            ),
            Error::Gone { file, generation } => write!(
                f,
                "generation {generation} of {} is gone: its space may have been used again; take a newer snapshot",
                file.display()
            ),
            Error::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Error {
    /// An argument that cannot be right.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Error::InvalidArgument { what: what.into() }
    }
}

/// Why some bytes of a file cannot be used, as [`Damage`] or because a later version wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Damaged(Damage),
    /// Says what is not known.
    Unsupported(String),
}

impl From<Damage> for Refusal {
    fn from(damage: Damage) -> Self {
        Refusal::Damaged(damage)
    }
}

impl Refusal {
    /// Adds where it is.
    pub(crate) fn at(self, place: Place) -> Error {
        match self {
            Refusal::Damaged(damage) => damage.at(place),
            Refusal::Unsupported(what) => {
                Error::Unsupported { what: format!("{what}, of a later version ({place})") }
            }
        }
    }
}

/// What is wrong with some bytes of a file, said by a layer that does not know which file they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

impl Damage {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Damage(what.into())
    }

    /// Adds where it is.
    pub(crate) fn at(self, place: Place) -> Error {
        Error::Corrupt { place: Box::new(place), what: self.0 }
    }
}
