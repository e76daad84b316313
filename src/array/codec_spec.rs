//! How an array's chunks are to be coded.

use crate::codec::Coding;
use crate::format::{ArrayRecord, Layout};
#[cfg(feature = "write")]
use crate::{
    codec::Filter,
    error::{Error, Result},
    format::CODING_CHOSEN,
};

/// What the choice of a coding is to favour. The writer takes the coding that brings the data to its reader soonest:
/// stored bytes over this speed, and the time to decode them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// 400 MB/s: a SATA disk, a network mount.
    #[default]
    Balanced,
    /// 2 GB/s: fast local disks; decoding counts more.
    Fast,
    /// 40 MB/s: slow links and archives; size counts more.
    Small,
}

impl Profile {
    const ALL: [Profile; 3] = [Profile::Balanced, Profile::Fast, Profile::Small];

    pub(super) fn id(self) -> u8 {
        match self {
            Profile::Balanced => 0,
            Profile::Fast => 1,
            Profile::Small => 2,
        }
    }

    fn from_id(id: u8) -> Profile {
        Self::ALL.into_iter().find(|profile| profile.id() == id).unwrap_or_default()
    }
}

/// How an array's chunks are coded when they are written. Reading follows what each chunk says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// The writer tries the codings on a sample of each chunk and takes the best by `profile`.
    Auto {
        /// What to favour.
        profile: Profile,
        /// Level of zstd: -7 to 22.
        level: i8,
    },
    /// Items as they are, laid out for [`Array::view`](crate::Array::view).
    Raw,
    /// One zstd frame for each block.
    Zstd {
        /// Level of zstd: -7 to 22.
        level: i8,
    },
    /// A zstd stream for each byte of the items.
    Planes {
        /// Level of zstd: -7 to 22.
        level: i8,
    },
    /// As [`Codec::Planes`], of the differences between components.
    Delta {
        /// Distance between the components that are subtracted: 1 for neighbours, k in a table of k columns for the
        /// item of the row above.
        stride: u32,
        /// Level of zstd: -7 to 22.
        level: i8,
    },
}

impl Default for Codec {
    fn default() -> Self {
        Codec::Auto { profile: Profile::Balanced, level: 1 }
    }
}

impl Codec {
    /// The same codec with another zstd level.
    #[must_use]
    pub fn level(self, level: i8) -> Self {
        match self {
            Codec::Auto { profile, .. } => Codec::Auto { profile, level },
            Codec::Raw => Codec::Raw,
            Codec::Zstd { .. } => Codec::Zstd { level },
            Codec::Planes { .. } => Codec::Planes { level },
            Codec::Delta { stride, .. } => Codec::Delta { stride, level },
        }
    }

    pub(crate) fn of_record(record: &ArrayRecord) -> Codec {
        if record.layout == Layout::Raw {
            return Codec::Raw;
        }
        let level = record.level;
        match Coding::from_id(record.coding) {
            Ok(Coding::Zstd) => Codec::Zstd { level },
            Ok(Coding::Planes) => Codec::Planes { level },
            Ok(Coding::Delta) => Codec::Delta { stride: record.stride, level },
            _ => Codec::Auto { profile: Profile::from_id(record.profile), level },
        }
    }

    #[cfg(feature = "write")]
    /// The fields of an array record for items of `itemsize` bytes of components of `component`.
    pub(super) fn wire(self, itemsize: usize, component: usize) -> Result<CodecFields> {
        let auto = CodecFields {
            layout: Layout::Blocks,
            coding: CODING_CHOSEN,
            profile: 0,
            level: 1,
            word: 0,
            stride: 0,
        };
        let wide = || {
            Error::invalid(format!(
                "a codec with byte planes for items of {itemsize} bytes; planes need 255 or fewer: use Codec::Zstd or Codec::Auto"
            ))
        };
        let fields = match self {
            Codec::Auto { profile, level } => CodecFields { profile: profile.id(), level, ..auto },
            Codec::Raw => CodecFields { layout: Layout::Raw, coding: Coding::Raw.id(), ..auto },
            Codec::Zstd { level } => CodecFields { coding: Coding::Zstd.id(), level, ..auto },
            Codec::Planes { level } => {
                let word = u8::try_from(itemsize).map_err(|_| wide())?;
                CodecFields { coding: Coding::Planes.id(), level, word, ..auto }
            }
            Codec::Delta { stride, level } => {
                let word = u8::try_from(component).map_err(|_| wide())?;
                if !Filter::delta(word, stride).fits(itemsize) {
                    return Err(Error::invalid(format!(
                        "differences at stride {stride} of components of {component} bytes; the stride must be at least \
                         1, and components 1, 2, 4 or 8 bytes"
                    )));
                }
                CodecFields { coding: Coding::Delta.id(), level, word, stride, ..auto }
            }
        };
        if !(-7..=22).contains(&fields.level) {
            return Err(Error::invalid(format!("a zstd level of {}; levels are -7 to 22", fields.level)));
        }
        Ok(fields)
    }
}

/// The part of an array record that says how chunks are coded.
#[cfg(feature = "write")]
pub(super) struct CodecFields {
    pub(super) layout: Layout,
    pub(super) coding: u8,
    pub(super) profile: u8,
    pub(super) level: i8,
    pub(super) word: u8,
    pub(super) stride: u32,
}
