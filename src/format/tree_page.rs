//! Tree pages (SPEC.md §8): the nodes of the catalog and of the free-space tree.
//!
//! | offset | size | what |
//! | --- | --- | --- |
//! | 0 | 16 | frame header |
//! | 16 | 1 | level |
//! | 17 | 3 | reserved |
//! | 20 | 4 | number of cells |
//! | 24 | 4 each | offsets of the cells |
//! | | | cells |

use super::pointer::{Bounds, FRAME_HEADER_LEN, Kind, Pointer};
use super::wire::Fields;
use crate::error::Damage;

/// A page larger than this is rejected.
pub(super) const MAX_TREE_PAGE_LEN: u64 = 65536;
/// Writers split a page before it grows beyond this.
#[cfg(feature = "write")]
pub(crate) const TREE_PAGE_TARGET: usize = 4096;
/// Longer values stand in blobs.
#[cfg(feature = "write")]
pub(crate) const MAX_INLINE_VALUE: usize = 1024;
const MAX_KEY_LEN: usize = 1040;
const MAX_LEVEL: u8 = 32;
/// Stands in place of the length of a value that is in a blob.
const IN_BLOB: u32 = 1 << 31;
#[cfg(feature = "write")]
const CELLS_AT: usize = FRAME_HEADER_LEN + 8;

/// What a cell holds beside its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeCell<'a> {
    /// In a leaf: a value.
    Inline(&'a [u8]),
    /// In a leaf: a value in a blob.
    Blob(Pointer),
    /// In an inner page: the page below.
    Child(Pointer),
}

/// A checked tree page.
#[derive(Clone, Debug)]
pub(crate) struct TreePage<'a> {
    level: u8,
    cells: Vec<(&'a [u8], TreeCell<'a>)>,
}

impl<'a> TreePage<'a> {
    /// Parses a frame whose checksum and header are right. All its keys must lie in `[low, high)`; an inner page's
    /// first key must be `low`. `level` is what the page above implies.
    pub(crate) fn parse(
        frame: &'a [u8],
        bounds: Bounds,
        level: Option<u8>,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<TreePage<'a>, Damage> {
        let mut fields = Fields::new(frame, "tree page");
        fields.skip(FRAME_HEADER_LEN)?;
        let found = fields.u8()?;
        if found > MAX_LEVEL || level.is_some_and(|level| level != found) {
            return Err(Damage::new(format!("a tree page of level {found} where another belongs")));
        }
        fields.skip(3)?;
        let count = fields.u32()? as usize;
        let offsets = fields.bytes(count.saturating_mul(4))?;
        if count == 0 {
            return Err(Damage::new("a tree page without cells"));
        }
        let mut cells: Vec<(&[u8], TreeCell<'_>)> = Vec::with_capacity(count);
        for offset in offsets.chunks_exact(4) {
            let here = frame.len() - fields.rest().len();
            if Fields::new(offset, "offset").u32()? as usize != here {
                return Err(Damage::new("a tree page whose cells do not follow each other"));
            }
            let (key, cell) = parse_cell(&mut fields, found, bounds)?;
            let ascends = match cells.last() {
                Some((last, _)) => *last < key,
                None if found > 0 => key == low,
                None => key >= low,
            };
            if !ascends || high.is_some_and(|high| key >= high) {
                return Err(Damage::new("a tree page whose keys are not in order"));
            }
            cells.push((key, cell));
        }
        fields.end()?;
        Ok(TreePage { level: found, cells })
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    pub(crate) fn cells(&self) -> &[(&'a [u8], TreeCell<'a>)] {
        &self.cells
    }

    /// The cell in which `key` is, or below which it would be.
    pub(crate) fn position(&self, key: &[u8]) -> Option<usize> {
        let after = self.cells.partition_point(|(cell, _)| *cell <= key);
        match after.checked_sub(1) {
            Some(at) if self.level > 0 || self.cells[at].0 == key => Some(at),
            _ => None,
        }
    }
}

fn parse_cell<'a>(
    fields: &mut Fields<'a>,
    level: u8,
    bounds: Bounds,
) -> Result<(&'a [u8], TreeCell<'a>), Damage> {
    let key_len = usize::from(fields.u16()?);
    if key_len > MAX_KEY_LEN {
        return Err(Damage::new(format!("a key of {key_len} bytes")));
    }
    let key = fields.bytes(key_len)?;
    if level > 0 {
        return Ok((key, TreeCell::Child(frame_pointer(fields, Kind::Tree, bounds)?)));
    }
    let len = fields.u32()?;
    let cell = match len {
        IN_BLOB => TreeCell::Blob(frame_pointer(fields, Kind::Blob, bounds)?),
        _ if len > IN_BLOB => return Err(Damage::new(format!("a value of {len} bytes"))),
        _ => TreeCell::Inline(fields.bytes(len as usize)?),
    };
    Ok((key, cell))
}

fn frame_pointer(fields: &mut Fields<'_>, kind: Kind, bounds: Bounds) -> Result<Pointer, Damage> {
    match Pointer::parse(&fields.array()?, bounds)?.expect(kind)? {
        Pointer::Null => Err(Damage::new(format!("a tree page without the pointer to a {}", kind.name()))),
        pointer => Ok(pointer),
    }
}

/// The bytes of a tree page, with room for the frame header. Pointers in `cells` are final.
#[cfg(feature = "write")]
pub(crate) fn encode_tree_page<'a>(
    level: u8,
    cells: impl Iterator<Item = (&'a [u8], TreeCell<'a>)>,
) -> Vec<u8> {
    let (mut offsets, mut body) = (Vec::new(), Vec::new());
    for (key, cell) in cells {
        offsets.push(body.len());
        body.extend_from_slice(&(key.len() as u32).to_le_bytes()[..2]);
        body.extend_from_slice(key);
        match cell {
            TreeCell::Inline(value) => {
                body.extend_from_slice(&(value.len() as u32).to_le_bytes());
                body.extend_from_slice(value);
            }
            TreeCell::Blob(pointer) => {
                body.extend_from_slice(&IN_BLOB.to_le_bytes());
                body.extend_from_slice(&pointer.encode());
            }
            TreeCell::Child(pointer) => body.extend_from_slice(&pointer.encode()),
        }
    }
    let mut page = vec![0; FRAME_HEADER_LEN];
    page.extend_from_slice(&[level, 0, 0, 0]);
    page.extend_from_slice(&(offsets.len() as u32).to_le_bytes());
    let first = CELLS_AT + 4 * offsets.len();
    for offset in offsets {
        page.extend_from_slice(&((first + offset) as u32).to_le_bytes());
    }
    page.extend_from_slice(&body);
    page
}
