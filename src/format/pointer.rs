//! Pointers and frame headers (SPEC.md §6 and §7): every reference within the file, with the checksum of what it
//! points to.
//!
//! | offset | size | what |
//! | --- | --- | --- |
//! | 0 | 8 | offset |
//! | 8 | 8 | length |
//! | 16 | 8 | birth |
//! | 24 | 8 | checksum of the first `checked` bytes |
//! | 32 | 4 | checked |
//! | 36 | 1 | kind |
//! | 37 | 3 | reserved |

use super::index_page::MAX_INDEX_PAGE_LEN;
use super::tree_page::MAX_TREE_PAGE_LEN;
use super::wire::{Fields, checksum};
use super::{ALIGNMENT, DATA_START};
use crate::error::Damage;
use crate::num::round_up;

/// Length of a frame header.
pub(crate) const FRAME_HEADER_LEN: usize = 16;

/// A range of file space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Extent {
    /// The extent, if it obeys SPEC.md §2 and ends by the logical end.
    pub(crate) fn checked(offset: u64, len: u64, bounds: Bounds) -> Result<Extent, Damage> {
        if offset < DATA_START || !offset.is_multiple_of(ALIGNMENT) {
            return Err(Damage::new(format!("an extent at {offset}, where none can start")));
        }
        match offset.checked_add(len).and_then(|end| round_up(end, ALIGNMENT)) {
            Some(end) if end <= bounds.end => Ok(Extent { offset, len }),
            _ => Err(Damage::new(format!(
                "an extent of {len} bytes at {offset}, which ends after the logical end {}",
                bounds.end
            ))),
        }
    }

    /// The first byte after the padding. Cannot overflow for a checked extent.
    pub(crate) fn padded_end(self) -> u64 {
        self.offset + self.padded_len()
    }

    /// The length with the padding.
    pub(crate) fn padded_len(self) -> u64 {
        round_up(self.len, ALIGNMENT).unwrap_or(u64::MAX)
    }
}

/// What pointers of one root may say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The logical end of the file.
    pub(crate) end: u64,
    /// The root's generation.
    pub(crate) generation: u64,
}

/// What a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    Index = 1,
    Chunk = 2,
    Pieces = 4,
    RawTable = 5,
    Tree = 6,
    Blob = 7,
    Free = 8,
}

impl Kind {
    fn from_id(id: u8) -> Option<Kind> {
        [Kind::Index, Kind::Chunk, Kind::Pieces, Kind::RawTable, Kind::Tree, Kind::Blob, Kind::Free]
            .into_iter()
            .find(|kind| *kind as u8 == id)
    }

    fn tag(self) -> [u8; 4] {
        *match self {
            Kind::Index => b"INDX",
            Kind::Chunk => b"CHNK",
            Kind::Pieces => b"PIEC",
            Kind::RawTable => b"RAWT",
            Kind::Tree => b"TREE",
            Kind::Blob => b"BLOB",
            Kind::Free => b"FREE",
        }
    }

    /// The longest frame of the kind; what has no limit of its own ends with the file.
    fn max_len(self) -> u64 {
        match self {
            Kind::Index => MAX_INDEX_PAGE_LEN,
            Kind::Tree => MAX_TREE_PAGE_LEN,
            Kind::Chunk | Kind::Pieces | Kind::RawTable | Kind::Blob | Kind::Free => u64::MAX,
        }
    }

    /// The kind in words, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Index => "index page",
            Kind::Chunk => "chunk frame",
            Kind::Pieces => "pieces page",
            Kind::RawTable => "raw table",
            Kind::Tree => "tree page",
            Kind::Blob => "blob",
            Kind::Free => "list of free space",
        }
    }
}

const KIND_NULL: u8 = 0;
const KIND_CONSTANT: u8 = 3;

/// The largest item that a constant pointer holds.
pub(super) const CONSTANT_LEN: usize = 16;

/// A checked pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pointer {
    /// Nothing there.
    Null,
    /// Every item is this one, padded with zeros.
    Constant([u8; CONSTANT_LEN]),
    /// A frame.
    Frame {
        /// What it is.
        kind: Kind,
        /// Where.
        extent: Extent,
        /// The generation that wrote it.
        birth: u64,
        /// Checksum of its first `checked` bytes.
        checksum: u64,
        /// How many bytes the checksum covers.
        checked: u32,
    },
}

impl Pointer {
    /// Encoded length.
    pub(crate) const LEN: usize = 40;

    /// A constant of `item`, if it fits.
    #[cfg(feature = "write")]
    pub(crate) fn constant(item: &[u8]) -> Option<Pointer> {
        let mut value = [0; CONSTANT_LEN];
        value.get_mut(..item.len())?.copy_from_slice(item);
        Some(Pointer::Constant(value))
    }

    pub(crate) fn parse(bytes: &[u8; Self::LEN], bounds: Bounds) -> Result<Pointer, Damage> {
        let mut fields = Fields::new(bytes, "pointer");
        let (offset, len, birth, checksum) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
        let checked = fields.u32()?;
        match fields.u8()? {
            KIND_NULL if bytes.iter().all(|&byte| byte == 0) => Ok(Pointer::Null),
            KIND_NULL => Err(Damage::new("a pointer of no kind with other fields set")),
            KIND_CONSTANT => {
                let (value, _) =
                    bytes.split_first_chunk().ok_or_else(|| Damage::new("pointer ends too early"))?;
                Ok(Pointer::Constant(*value))
            }
            id => {
                let kind = Kind::from_id(id)
                    .ok_or_else(|| Damage::new(format!("a pointer of unknown kind {id}")))?;
                let extent = Extent::checked(offset, len, bounds)?;
                if (checked as usize) < FRAME_HEADER_LEN || u64::from(checked) > len {
                    return Err(Damage::new(format!("a pointer that checks {checked} of {len} bytes")));
                }
                if len > kind.max_len() {
                    return Err(Damage::new(format!("a {} of {len} bytes", kind.name())));
                }
                if kind != Kind::Chunk && u64::from(checked) != len {
                    return Err(Damage::new(format!("a {} of which only a part is checked", kind.name())));
                }
                if birth > bounds.generation {
                    return Err(Damage::new(format!(
                        "a pointer born in generation {birth}, after the root's {}",
                        bounds.generation
                    )));
                }
                Ok(Pointer::Frame { kind, extent, birth, checksum, checked })
            }
        }
    }

    pub(crate) fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        match self {
            Pointer::Null => {}
            Pointer::Constant(value) => {
                bytes[..CONSTANT_LEN].copy_from_slice(value);
                bytes[36] = KIND_CONSTANT;
            }
            Pointer::Frame { kind, extent, birth, checksum, checked } => {
                bytes[..8].copy_from_slice(&extent.offset.to_le_bytes());
                bytes[8..16].copy_from_slice(&extent.len.to_le_bytes());
                bytes[16..24].copy_from_slice(&birth.to_le_bytes());
                bytes[24..32].copy_from_slice(&checksum.to_le_bytes());
                bytes[32..36].copy_from_slice(&checked.to_le_bytes());
                bytes[36] = *kind as u8;
            }
        }
        bytes
    }

    /// That the pointer is null or leads to a frame of `kind`.
    pub(crate) fn expect(self, kind: Kind) -> Result<Pointer, Damage> {
        match self {
            Pointer::Null => Ok(self),
            Pointer::Frame { kind: found, .. } if found == kind => Ok(self),
            Pointer::Frame { kind: found, .. } => Err(Damage::new(format!(
                "a pointer to a {} where one to a {} belongs",
                found.name(),
                kind.name()
            ))),
            Pointer::Constant(_) => {
                Err(Damage::new(format!("a constant where a pointer to a {} belongs", kind.name())))
            }
        }
    }

    /// Checks the first `checked` bytes of a frame against the pointer: checksum, tag and lengths.
    pub(crate) fn check_frame(&self, head: &[u8]) -> Result<(), Damage> {
        let Pointer::Frame { kind, extent, checksum: sum, checked, .. } = self else {
            return Err(Damage::new("a pointer that leads nowhere"));
        };
        if checksum(head) != *sum {
            return Err(Damage::new(format!(
                "the {} does not have the checksum of its pointer",
                kind.name()
            )));
        }
        let mut fields = Fields::new(head, kind.name());
        if fields.array()? != kind.tag() || fields.u32()? != *checked || fields.u64()? != extent.len {
            return Err(Damage::new(format!("the {} is not what its pointer says", kind.name())));
        }
        Ok(())
    }
}

/// Fills in the header of a frame whose first `checked` bytes are `head` (16 bytes of which are room for the header)
/// and which is `len` bytes long, and makes the pointer to it at `offset`.
#[cfg(feature = "write")]
pub(crate) fn seal_frame(
    head: &mut [u8],
    kind: Kind,
    offset: u64,
    len: u64,
    birth: u64,
) -> Result<Pointer, Damage> {
    let checked = u32::try_from(head.len()).map_err(|_| {
        Damage::new(format!("a {} of {} bytes, which is over 4 GiB", kind.name(), head.len()))
    })?;
    head[..4].copy_from_slice(&kind.tag());
    head[4..8].copy_from_slice(&checked.to_le_bytes());
    head[8..16].copy_from_slice(&len.to_le_bytes());
    Ok(Pointer::Frame { kind, extent: Extent { offset, len }, birth, checksum: checksum(head), checked })
}
