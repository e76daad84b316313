//! What a new array is like.

use super::codec_spec::Codec;
use crate::dtype::{Dtype, Element};
use crate::error::{Error, Result};
use crate::format::{ArrayRecord, Layout, Pointer, key_bits_of};
use crate::shape::{self, Dims};

/// Chunks of raw arrays: larger, since they are not decoded, and few make a view of the whole array cheap to find.
const RAW_CHUNK_BYTES: u64 = 16 << 20;

/// What a new array is like: dtype and shape, and whatever should not be chosen for it.
///
/// ```
/// use brickmap::{ArraySpec, Codec, Dtype};
///
/// let spec = ArraySpec::new(Dtype::F32, [300, 512, 512])
///     .chunks([64, 256, 256])
///     .blocks([32, 32, 64])
///     .codec(Codec::default().level(3))
///     .fill_value(f32::NAN);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ArraySpec {
    dtype: Dtype,
    shape: Vec<u64>,
    chunks: Option<Vec<u64>>,
    blocks: Option<Vec<u64>>,
    codec: Codec,
    fill: Option<Fill>,
}

#[derive(Clone, Debug)]
struct Fill {
    bytes: Vec<u8>,
    /// The Rust type it was given as, and whether the dtype takes it.
    typed: Option<(&'static str, bool)>,
}

impl ArraySpec {
    /// An array of `dtype` and `shape`, everything else by default: chunks of about 8 MiB, blocks of about 128 KiB,
    /// [`Codec::default`], and zero bytes as the fill value.
    pub fn new(dtype: Dtype, shape: impl Into<Vec<u64>>) -> Self {
        ArraySpec {
            dtype,
            shape: shape.into(),
            chunks: None,
            blocks: None,
            codec: Codec::default(),
            fill: None,
        }
    }

    /// Chunk length in each dimension. Chunks may be longer than the array. In the raw layout they are cut along the
    /// first dimension only: in the others they are as long as the array, or as long as it may grow.
    pub fn chunks(mut self, chunks: impl Into<Vec<u64>>) -> Self {
        self.chunks = Some(chunks.into());
        self
    }

    /// Block length in each dimension; what is longer than a chunk is cut to it. Not used in the raw layout.
    pub fn blocks(mut self, blocks: impl Into<Vec<u64>>) -> Self {
        self.blocks = Some(blocks.into());
        self
    }

    /// How chunks are coded.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The item that reads where nothing was written.
    pub fn fill_value<T: Element>(mut self, item: T) -> Self {
        let typed = Some((T::NAME, T::matches(&self.dtype)));
        self.fill = Some(Fill { bytes: bytemuck::bytes_of(&item).to_vec(), typed });
        self
    }

    /// The fill value of whatever dtype, as its little-endian bytes.
    pub fn fill_bytes(mut self, item: &[u8]) -> Self {
        self.fill = Some(Fill { bytes: item.to_vec(), typed: None });
        self
    }

    /// The chunk and the block shape that the array will have: those that were given, the others by default. Writes of
    /// whole chunks are the cheapest.
    ///
    /// # Errors
    ///
    /// As [`Writer::create_array`](crate::Writer::create_array), the name aside.
    pub fn resolved_shapes(&self) -> Result<(Vec<u64>, Vec<u64>)> {
        let record = self.record()?;
        Ok((record.chunks.to_vec(), record.blocks.to_vec()))
    }

    /// The record of the new array.
    pub(super) fn record(&self) -> Result<ArrayRecord> {
        self.dtype.check()?;
        let itemsize = self.dtype.itemsize();
        let codec = self.codec.wire(itemsize, self.dtype.component_size())?;
        let fill = match &self.fill {
            None => vec![0; itemsize],
            Some(Fill { typed: Some((name, false)), .. }) => {
                return Err(Error::invalid(format!(
                    "a fill value of type {name} for an array of {}",
                    self.dtype
                )));
            }
            Some(Fill { bytes, .. }) if bytes.len() == itemsize => bytes.clone(),
            Some(Fill { bytes, .. }) => {
                return Err(Error::invalid(format!(
                    "a fill value of {} bytes for items of {itemsize} bytes",
                    bytes.len()
                )));
            }
        };
        let (chunks, blocks) = self.cut(codec.layout, itemsize as u64)?;
        let blocks_checked = (codec.layout == Layout::Blocks).then_some(&blocks[..]);
        shape::validate_shapes(itemsize as u64, &self.shape, &chunks, blocks_checked)?;
        let key_bits = key_bits_of(&shape::grid(&self.shape, &chunks));
        Ok(ArrayRecord {
            dtype: self.dtype.clone(),
            layout: codec.layout,
            coding: codec.coding,
            profile: codec.profile,
            level: codec.level,
            word: codec.word,
            stride: codec.stride,
            stored_bytes: 0,
            stored_chunks: 0,
            index: Pointer::Null,
            shape: self.shape.as_slice().into(),
            chunks,
            blocks,
            key_bits,
            fill: fill.into(),
        })
    }

    /// Chunk and block shapes: those asked for, the others by default.
    fn cut(&self, layout: Layout, itemsize: u64) -> Result<(Dims, Dims)> {
        for (what, given) in [("chunk", &self.chunks), ("block", &self.blocks)] {
            if given.as_ref().is_some_and(|given| given.len() != self.shape.len()) {
                return Err(Error::invalid(format!(
                    "a {what} shape of {} dimensions for an array of {}",
                    given.as_ref().map_or(0, Vec::len),
                    self.shape.len()
                )));
            }
        }
        if layout == Layout::Raw {
            let mut chunks = Dims::from_slice(self.chunks.as_ref().unwrap_or(&self.shape));
            if self.chunks.is_none() {
                chunks.iter_mut().for_each(|len| *len = (*len).max(1));
                if let (Some(first), Some((&rows, rest))) = (chunks.first_mut(), self.shape.split_first()) {
                    *first = raw_rows(rows, rest, itemsize);
                }
            }
            if let Some(given) = &self.chunks
                && given.iter().zip(&self.shape).skip(1).any(|(chunk, len)| chunk < len)
            {
                return Err(Error::invalid(format!(
                    "chunks of shape {given:?} for a raw array of shape {:?}, which is cut along its first dimension only",
                    self.shape
                )));
            }
            return Ok((chunks.clone(), chunks));
        }
        let clamped = |blocks: &[u64], chunks: &[u64]| -> Dims {
            blocks.iter().zip(chunks).map(|(&block, &chunk)| block.min(chunk)).collect()
        };
        let default_blocks = || shape::default_blocks(&self.shape, itemsize, shape::DEFAULT_BLOCK_BYTES);
        Ok(match (&self.chunks, &self.blocks) {
            (Some(chunks), Some(blocks)) => (chunks.as_slice().into(), clamped(blocks, chunks)),
            (Some(chunks), None) => {
                let blocks = shape::default_blocks(chunks, itemsize, shape::DEFAULT_BLOCK_BYTES);
                (chunks.as_slice().into(), clamped(&blocks, chunks))
            }
            (None, given) => {
                let blocks = given.as_ref().map_or_else(default_blocks, |given| given.as_slice().into());
                (shape::default_chunks(&self.shape, &blocks, itemsize, shape::DEFAULT_CHUNK_BYTES), blocks)
            }
        })
    }
}

/// Rows of a raw chunk: about [`RAW_CHUNK_BYTES`], and a multiple of 64 bytes so that chunks follow each other.
fn raw_rows(rows: u64, rest: &[u64], itemsize: u64) -> u64 {
    let row = shape::product(rest).and_then(|items| items.checked_mul(itemsize)).unwrap_or(u64::MAX).max(1);
    // The least number of rows whose bytes are a multiple of 64.
    let unit = 64 >> row.trailing_zeros().min(6);
    let wanted = (RAW_CHUNK_BYTES / row).max(1).next_multiple_of(unit);
    if rows == 0 { wanted } else { wanted.min(rows.checked_next_multiple_of(unit).unwrap_or(rows)) }
}
