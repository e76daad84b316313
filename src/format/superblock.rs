//! The superblock (SPEC.md §4): says that this is a brick file, and of which kind.
//!
//! | offset | size | what |
//! | --- | --- | --- |
//! | 0 | 8 | magic |
//! | 8 | 4 | version |
//! | 12 | 4 | reserved |
//! | 16 | 8 | required feature bits |
//! | 24 | 8 | optional feature bits |
//! | 32 | 16 | file id |

use super::twin::{self, PAGE_LEN};
use super::wire::Fields;
use super::{VERSION, twin::valid_copies};
use crate::error::Damage;

/// Starts every brick file. The high bit, the line ends and the end-of-file byte show damage by text-mode transfers.
pub(crate) const MAGIC: [u8; 8] = [0x89, b'B', b'R', b'K', 0x0D, 0x0A, 0x1A, 0x0A];

/// Required feature bits that this code knows.
const KNOWN_REQUIRED: u64 = 0;

/// A checked superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) file_id: [u8; 16],
    pub(crate) optional_features: u64,
}

/// Why a page is not a superblock that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SuperblockError {
    /// Not a brick file: says what it is instead.
    NotAStore(String),
    /// A brick file that needs a later version.
    Unsupported(String),
    /// A brick file whose superblock is damaged.
    Damaged(Damage),
}

impl From<Damage> for SuperblockError {
    fn from(damage: Damage) -> Self {
        SuperblockError::Damaged(damage)
    }
}

impl Superblock {
    pub(crate) fn parse(page: &[u8; PAGE_LEN]) -> Result<Superblock, SuperblockError> {
        let [first, second] = valid_copies(page, MAGIC);
        let Some(record) = first.or(second) else { return Err(what_instead(page)) };
        let mut fields = Fields::new(record, "superblock");
        fields.skip(MAGIC.len())?;
        let version = fields.u32()?;
        if version != VERSION {
            return Err(SuperblockError::Unsupported(format!(
                "format version {version}; this program knows version {VERSION}"
            )));
        }
        fields.skip(4)?;
        let required = fields.u64()?;
        if required & !KNOWN_REQUIRED != 0 {
            return Err(SuperblockError::Unsupported(format!(
                "the file needs features {:#x}, which this program does not know; use a later version",
                required & !KNOWN_REQUIRED
            )));
        }
        Ok(Superblock { optional_features: fields.u64()?, file_id: fields.array()? })
    }

    #[cfg(feature = "write")]
    pub(crate) fn encode(&self) -> [u8; PAGE_LEN] {
        let mut record = [0; twin::RECORD_LEN];
        record[..8].copy_from_slice(&MAGIC);
        record[8..12].copy_from_slice(&VERSION.to_le_bytes());
        record[24..32].copy_from_slice(&self.optional_features.to_le_bytes());
        record[32..48].copy_from_slice(&self.file_id);
        twin::page(record)
    }
}

/// Names what a page without a valid superblock looks like.
fn what_instead(page: &[u8; PAGE_LEN]) -> SuperblockError {
    let second = &page[twin::RECORD_LEN..];
    if page.starts_with(&MAGIC) || second.starts_with(&MAGIC) {
        return Damage::new("neither copy of the superblock has the right checksum").into();
    }
    if page[1..4] == MAGIC[1..4] {
        return Damage::new(
            "the file was changed by a transfer in text mode; transfer it again in binary mode",
        )
        .into();
    }
    SuperblockError::NotAStore(match &page[..] {
        [0, ..] if page.iter().all(|&byte| byte == 0) => "it starts with zero bytes".into(),
        [0x89, b'H', b'D', b'F', ..] => "it is an HDF5 file".into(),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => {
            "it is a NumPy file; `brickmap convert` makes a brick file of it".into()
        }
        _ => "it does not start as one".into(),
    })
}
