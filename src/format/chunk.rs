//! Chunk frames, raw tables and pieces pages (SPEC.md §12).
//!
//! | chunk frame | size | what |
//! | --- | --- | --- |
//! | 0 | 16 | frame header |
//! | 16 | 1 | coding chosen for the chunk |
//! | 17 | 1 | number of dimensions |
//! | 18 | 1 | word |
//! | 19 | 1 | reserved |
//! | 20 | 4 | stride |
//! | 24 | 8 | number of blocks |
//! | 32 | 8 each | valid shape |
//! | | 16 each | block table: end and coding, checksum |

use super::pointer::{Bounds, Extent, FRAME_HEADER_LEN, Kind, Pointer};
use super::wire::Fields;
use crate::error::Damage;
use crate::num::saturating_usize;
use crate::shape::{self, Dims};
use std::borrow::Cow;

/// One checksum of a raw table covers this many bytes.
pub(crate) const RAW_SPAN: u64 = 65536;

/// The stored bytes of a block may be this much more than its items.
const STORED_EXCESS: u64 = 65536;

const END_BITS: u32 = 56;
const TABLE_ENTRY_LEN: usize = 16;

/// A checked chunk header over the bytes of its frame. Block table entries are checked when they are taken.
#[derive(Clone, Debug)]
pub(crate) struct ChunkHeader<'a> {
    pub(crate) word: u8,
    pub(crate) stride: u32,
    pub(crate) valid: Dims,
    /// Blocks in each dimension of the valid shape.
    pub(crate) block_grid: Dims,
    /// File offset of the first block's stored bytes.
    payload: u64,
    payload_len: u64,
    head: Cow<'a, [u8]>,
    table_at: usize,
}

/// Where a block is stored, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    /// Its stored bytes.
    pub(crate) extent: Extent,
    /// Id of its coding.
    pub(crate) coding: u8,
    /// Of the stored bytes.
    pub(crate) checksum: u64,
}

impl<'a> ChunkHeader<'a> {
    /// Parses the checked part of a chunk frame at `extent`. `limit` is what of the chunk lies inside the array,
    /// `blocks` the array's block shape.
    pub(crate) fn parse(
        head: Cow<'a, [u8]>,
        extent: Extent,
        limit: &[u64],
        blocks: &[u64],
    ) -> Result<ChunkHeader<'a>, Damage> {
        let mut fields = Fields::new(&head, "chunk frame");
        fields.skip(FRAME_HEADER_LEN)?;
        // The coding that was chosen for the chunk is for writers; each block has its own.
        fields.skip(1)?;
        let (ndim, word) = (fields.u8()?, fields.u8()?);
        fields.skip(1)?;
        let (stride, count) = (fields.u32()?, fields.u64()?);
        if usize::from(ndim) != limit.len() {
            return Err(Damage::new(format!("a chunk of {ndim} dimensions in an array of {}", limit.len())));
        }
        let valid = valid_shape(&mut fields, limit)?;
        let block_grid = shape::grid(&valid, blocks);
        if shape::product(&block_grid) != Some(count) {
            return Err(Damage::new(format!("a chunk of {count} blocks, which are not those of its shape")));
        }
        let table_at = head.len() - fields.rest().len();
        fields.skip(saturating_usize(count).saturating_mul(TABLE_ENTRY_LEN))?;
        fields.end()?;
        let payload = extent.offset + head.len() as u64;
        let payload_len = extent.len - head.len() as u64;
        let header = ChunkHeader { word, stride, valid, block_grid, payload, payload_len, head, table_at };
        if header.end(count.wrapping_sub(1))? != payload_len {
            return Err(Damage::new("a chunk frame whose last block does not end where the frame does"));
        }
        Ok(header)
    }

    pub(crate) fn block_count(&self) -> u64 {
        ((self.head.len() - self.table_at) / TABLE_ENTRY_LEN) as u64
    }

    /// The entry of block `n`, counted in C order, which has `bytes` bytes of items.
    pub(crate) fn block(&self, n: u64, bytes: u64) -> Result<BlockEntry, Damage> {
        let start = if n == 0 { 0 } else { self.end(n - 1)? };
        let end = self.end(n)?;
        if start > end || end > self.payload_len {
            return Err(Damage::new("a chunk frame whose blocks do not follow each other"));
        }
        if end - start > bytes.saturating_add(STORED_EXCESS) {
            return Err(Damage::new(format!("{} stored bytes for a block of {bytes}", end - start)));
        }
        let mut fields = self.fields(n);
        let coding = (fields.u64()? >> END_BITS) as u8;
        let extent = Extent { offset: self.payload + start, len: end - start };
        Ok(BlockEntry { extent, coding, checksum: fields.u64()? })
    }

    fn end(&self, n: u64) -> Result<u64, Damage> {
        Ok(self.fields(n).u64()? & ((1 << END_BITS) - 1))
    }

    fn fields(&self, n: u64) -> Fields<'_> {
        let entry = self.head[self.table_at..].chunks_exact(TABLE_ENTRY_LEN).nth(saturating_usize(n));
        Fields::new(entry.unwrap_or_default(), "block table")
    }
}

fn valid_shape(fields: &mut Fields<'_>, limit: &[u64]) -> Result<Dims, Damage> {
    let valid = fields.dims(limit.len())?;
    if valid.iter().zip(limit).any(|(&valid, &limit)| valid == 0 || valid > limit) {
        return Err(Damage::new(format!("a chunk whose valid shape {valid:?} is not within {limit:?}")));
    }
    Ok(valid)
}

/// The checked part of a chunk frame, with room for the frame header: `blocks` gives each block's coding id, stored
/// length and checksum.
#[cfg(feature = "write")]
pub(crate) fn encode_chunk_header(
    coding: u8,
    word: u8,
    stride: u32,
    valid: &[u64],
    blocks: impl ExactSizeIterator<Item = (u8, u64, u64)>,
) -> Vec<u8> {
    let mut head = vec![0; FRAME_HEADER_LEN];
    head.extend_from_slice(&[coding, valid.len() as u8, word, 0]);
    head.extend_from_slice(&stride.to_le_bytes());
    head.extend_from_slice(&(blocks.len() as u64).to_le_bytes());
    for len in valid {
        head.extend_from_slice(&len.to_le_bytes());
    }
    let mut end = 0u64;
    for (coding, len, checksum) in blocks {
        end += len;
        head.extend_from_slice(&(end | u64::from(coding) << END_BITS).to_le_bytes());
        head.extend_from_slice(&checksum.to_le_bytes());
    }
    head
}

/// A checked raw table.
#[derive(Clone, Debug)]
pub(crate) struct RawTable<'a> {
    pub(crate) payload: Extent,
    pub(crate) valid: Dims,
    frame: Cow<'a, [u8]>,
    sums_at: usize,
}

impl<'a> RawTable<'a> {
    pub(crate) fn parse(
        frame: Cow<'a, [u8]>,
        bounds: Bounds,
        limit: &[u64],
        itemsize: usize,
    ) -> Result<RawTable<'a>, Damage> {
        let mut fields = Fields::new(&frame, "raw table");
        fields.skip(FRAME_HEADER_LEN)?;
        let ndim = fields.u8()?;
        fields.skip(7)?;
        if usize::from(ndim) != limit.len() {
            return Err(Damage::new(format!("a chunk of {ndim} dimensions in an array of {}", limit.len())));
        }
        let (offset, len) = (fields.u64()?, fields.u64()?);
        let payload = Extent::checked(offset, len, bounds)?;
        let valid = valid_shape(&mut fields, limit)?;
        let due = shape::product(&valid).and_then(|items| items.checked_mul(itemsize as u64));
        if due != Some(len) {
            return Err(Damage::new(format!("a raw chunk of {len} bytes, which is not its shape's size")));
        }
        let sums_at = frame.len() - fields.rest().len();
        fields.skip(saturating_usize(len.div_ceil(RAW_SPAN)).saturating_mul(8))?;
        fields.end()?;
        Ok(RawTable { payload, valid, frame, sums_at })
    }

    /// Checksum of span `n` of the payload.
    pub(crate) fn checksum(&self, n: u64) -> Result<u64, Damage> {
        let bytes = self.frame[self.sums_at..].chunks_exact(8).nth(saturating_usize(n)).unwrap_or_default();
        Fields::new(bytes, "raw table").u64()
    }
}

/// A raw table, with room for the frame header.
#[cfg(feature = "write")]
pub(crate) fn encode_raw_table(payload: Extent, valid: &[u64], sums: &[u64]) -> Vec<u8> {
    let mut table = vec![0; FRAME_HEADER_LEN];
    table.extend_from_slice(&[valid.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
    for number in [payload.offset, payload.len].iter().chain(valid).chain(sums) {
        table.extend_from_slice(&number.to_le_bytes());
    }
    table
}

/// One of the frames of a growing chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceEntry {
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
    pub(crate) frame: Pointer,
}

/// A pieces page, with room for the frame header, of frames with their first rows.
#[cfg(feature = "write")]
pub(crate) fn encode_pieces(rows: u64, pieces: &[(u64, Pointer)]) -> Vec<u8> {
    let mut page = vec![0; FRAME_HEADER_LEN];
    page.extend_from_slice(&(pieces.len() as u32).to_le_bytes());
    page.extend_from_slice(&[0; 4]);
    page.extend_from_slice(&rows.to_le_bytes());
    for (first_row, frame) in pieces {
        page.extend_from_slice(&first_row.to_le_bytes());
        page.extend_from_slice(&frame.encode());
    }
    page
}

/// A checked pieces page.
#[derive(Clone, Debug)]
pub(crate) struct Pieces(pub(crate) Vec<PieceEntry>);

impl Pieces {
    /// `limit` is what of the chunk lies inside the array.
    pub(crate) fn parse(frame: &[u8], bounds: Bounds, limit: &[u64]) -> Result<Pieces, Damage> {
        let mut fields = Fields::new(frame, "pieces page");
        fields.skip(FRAME_HEADER_LEN)?;
        let count = fields.u32()?;
        fields.skip(4)?;
        let rows = fields.u64()?;
        if limit.first().is_none_or(|&limit| rows > limit) {
            return Err(Damage::new(format!("a pieces page of {rows} rows, which are not in its chunk")));
        }
        let mut pieces: Vec<PieceEntry> = Vec::new();
        for n in 0..count {
            let first_row = fields.u64()?;
            let frame = Pointer::parse(&fields.array()?, bounds)?.expect(Kind::Chunk)?;
            let ascends = pieces.last().map_or(first_row == 0, |last| last.first_row < first_row);
            if !ascends || first_row >= rows || frame == Pointer::Null {
                return Err(Damage::new(format!("a pieces page whose piece {n} is out of order or missing")));
            }
            if let Some(last) = pieces.last_mut() {
                last.rows = first_row - last.first_row;
            }
            pieces.push(PieceEntry { first_row, rows: rows - first_row, frame });
        }
        fields.end()?;
        if pieces.is_empty() {
            return Err(Damage::new("a pieces page without pieces"));
        }
        Ok(Pieces(pieces))
    }
}
