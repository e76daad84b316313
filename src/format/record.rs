//! Catalog records (SPEC.md §9): what a name stands for.

use super::index_page::FANOUT_BITS;
use super::pointer::{Bounds, CONSTANT_LEN, Kind, Pointer};
use super::wire::Fields;
use crate::dtype::Dtype;
use crate::error::{Damage, Refusal};
use crate::shape::{self, Dims};
use smallvec::SmallVec;

const KIND_GROUP: u8 = 1;
const KIND_ARRAY: u8 = 2;
const KIND_RAGGED: u8 = 3;

/// In an array record: the writer chooses a coding for each chunk.
pub(crate) const CODING_CHOSEN: u8 = 255;

/// What a name in the catalog stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Group,
    Array(Box<ArrayRecord>),
    Ragged(Box<RaggedRecord>),
    /// Of a later version, listed but not read: says what is not known.
    Unknown(String),
}

/// How chunks are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Blocks = 0,
    Raw = 1,
}

/// A checked array record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArrayRecord {
    pub(crate) dtype: Dtype,
    pub(crate) layout: Layout,
    /// Coding id asked for, or [`CODING_CHOSEN`].
    pub(crate) coding: u8,
    pub(crate) profile: u8,
    pub(crate) level: i8,
    pub(crate) word: u8,
    pub(crate) stride: u32,
    pub(crate) stored_bytes: u64,
    pub(crate) stored_chunks: u64,
    pub(crate) index: Pointer,
    pub(crate) shape: Dims,
    pub(crate) chunks: Dims,
    pub(crate) blocks: Dims,
    /// The dimension that each bit of a chunk's key comes from, lowest bit first.
    pub(crate) key_bits: SmallVec<[u8; 32]>,
    pub(crate) fill: SmallVec<[u8; 16]>,
}

/// What the items of a ragged array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RaggedElement {
    Strings = 0,
    Values = 1,
}

/// A checked ragged array record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RaggedRecord {
    pub(crate) element: RaggedElement,
    pub(crate) shape: Dims,
    pub(crate) offsets: ArrayRecord,
    pub(crate) values: ArrayRecord,
}

impl Record {
    pub(crate) fn parse(bytes: &[u8], bounds: Bounds) -> Result<Record, Damage> {
        let record = match *bytes {
            [] => return Err(Damage::new("an empty catalog record")),
            [KIND_GROUP] => return Ok(Record::Group),
            [KIND_GROUP, ..] => return Err(Damage::new("a group record with more than its kind")),
            [KIND_ARRAY, ..] => ArrayRecord::parse(bytes, bounds).map(|array| Record::Array(Box::new(array))),
            [KIND_RAGGED, ..] => {
                RaggedRecord::parse(bytes, bounds).map(|ragged| Record::Ragged(Box::new(ragged)))
            }
            [kind, ..] => Err(Refusal::Unsupported(format!("a record of kind {kind}"))),
        };
        match record {
            Ok(record) => Ok(record),
            Err(Refusal::Unsupported(what)) => Ok(Record::Unknown(what)),
            Err(Refusal::Damaged(damage)) => Err(damage),
        }
    }

    #[cfg(feature = "write")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Record::Group => vec![KIND_GROUP],
            Record::Array(array) => array.encode(),
            Record::Ragged(ragged) => ragged.encode(),
            Record::Unknown(_) => Vec::new(),
        }
    }
}

/// The key bits of a new array: those of the last dimension lowest, so that keys are in C order.
#[cfg(feature = "write")]
pub(crate) fn key_bits_of(grid: &[u64]) -> SmallVec<[u8; 32]> {
    let dims = grid.iter().enumerate().rev();
    dims.flat_map(|(dim, &len)| std::iter::repeat_n(dim as u8, shape::key_bits(len) as usize)).collect()
}

fn too_many_dimensions(ndim: usize) -> Damage {
    Damage::new(format!("an array of {ndim} dimensions; at most {} can be", shape::MAX_NDIM))
}

impl ArrayRecord {
    fn parse(bytes: &[u8], bounds: Bounds) -> Result<ArrayRecord, Refusal> {
        let mut fields = Fields::new(bytes, "array record");
        if fields.u8()? != KIND_ARRAY {
            return Err(Damage::new("a record of another kind where an array belongs").into());
        }
        let ndim = usize::from(fields.u8()?);
        if ndim > shape::MAX_NDIM {
            return Err(too_many_dimensions(ndim).into());
        }
        let layout = match fields.u8()? {
            0 => Layout::Blocks,
            1 => Layout::Raw,
            other => return Err(Refusal::Unsupported(format!("an array of layout {other}"))),
        };
        let key_len = usize::from(fields.u8()?);
        let (coding, profile, level, word) =
            (fields.u8()?, fields.u8()?, fields.u8()?.cast_signed(), fields.u8()?);
        let (stride, dtype_len) = (fields.u32()?, fields.u32()?);
        let (stored_bytes, stored_chunks) = (fields.u64()?, fields.u64()?);
        let index = Pointer::parse(&fields.array()?, bounds)?;
        let (shape, chunks, blocks) = (fields.dims(ndim)?, fields.dims(ndim)?, fields.dims(ndim)?);
        let key_bits: SmallVec<[u8; 32]> = fields.bytes(key_len)?.into();
        let dtype = fields.bytes(dtype_len as usize)?;
        if let Some(&class) = dtype.first().filter(|class| !Dtype::knows_class(**class)) {
            return Err(Refusal::Unsupported(format!("an array of dtype class {class}")));
        }
        let dtype = Dtype::decode(dtype)?;
        let fill = fields.bytes(dtype.itemsize())?.into();
        fields.end()?;
        let record = ArrayRecord {
            dtype,
            layout,
            coding,
            profile,
            level,
            word,
            stride,
            stored_bytes,
            stored_chunks,
            index,
            shape,
            chunks,
            blocks,
            key_bits,
            fill,
        };
        record.check()?;
        Ok(record)
    }

    /// The rules that hold between fields.
    fn check(&self) -> Result<(), Damage> {
        shape::validate_shapes(
            self.dtype.itemsize() as u64,
            &self.shape,
            &self.chunks,
            self.checked_blocks(),
        )
        .map_err(|why| {
            Damage::new(format!("an array record of an impossible shape: {}", Damage::from(why).0))
        })?;
        if self.layout == Layout::Raw
            && (self.blocks != self.chunks
                || shape::grid(&self.shape, &self.chunks).iter().skip(1).any(|&n| n > 1))
        {
            return Err(Damage::new("a raw array that is not cut along its first dimension only"));
        }
        let grid = shape::grid(&self.shape, &self.chunks);
        let mut bits = SmallVec::<[u32; 4]>::from_elem(0, self.shape.len());
        for &dim in &self.key_bits {
            match bits.get_mut(usize::from(dim)) {
                Some(count) => *count += 1,
                None => {
                    return Err(Damage::new(format!(
                        "a key bit of dimension {dim}, which the array does not have"
                    )));
                }
            }
        }
        if self.key_bits.len() > 64 || grid.iter().zip(&bits).any(|(&len, &bits)| shape::key_bits(len) > bits)
        {
            return Err(Damage::new("an array record whose key bits do not fit its chunk grid"));
        }
        let fits = match self.index {
            Pointer::Null => true,
            Pointer::Frame { kind: Kind::Index, .. } => !self.key_bits.is_empty(),
            // The entry of the only chunk, which `check_entry` judges.
            _ => self.key_bits.is_empty(),
        };
        if fits {
            Ok(())
        } else {
            Err(Damage::new("an array record whose index pointer is of the wrong kind"))
        }
    }

    /// That `entry` may stand for the chunk of which `limit` lies inside the array.
    pub(crate) fn check_entry(&self, entry: &Pointer, limit: &[u64]) -> Result<(), Damage> {
        match (entry, self.layout) {
            (Pointer::Null, _)
            | (Pointer::Frame { kind: Kind::Chunk | Kind::Pieces, .. }, Layout::Blocks)
            | (Pointer::Frame { kind: Kind::RawTable, .. }, Layout::Raw) => Ok(()),
            (Pointer::Constant(_), Layout::Blocks) => {
                if self.dtype.itemsize() > CONSTANT_LEN {
                    return Err(Damage::new(format!(
                        "a constant for items of {} bytes",
                        self.dtype.itemsize()
                    )));
                }
                if *limit != *self.chunks {
                    return Err(Damage::new("a constant for a chunk that the array's edge cuts"));
                }
                Ok(())
            }
            (Pointer::Constant(_), Layout::Raw) => {
                Err(Damage::new("a constant in an array of the raw layout"))
            }
            (Pointer::Frame { kind, .. }, _) => Err(Damage::new(format!(
                "an index entry for a {}, which the array's layout does not have",
                kind.name()
            ))),
        }
    }

    /// The block shape for the check of sizes: in the raw layout a chunk is not decoded, so any size will do.
    pub(crate) fn checked_blocks(&self) -> Option<&[u64]> {
        (self.layout == Layout::Blocks).then_some(&self.blocks[..])
    }

    /// What of the chunk at these coordinates lies inside the array.
    pub(crate) fn chunk_limit(&self, coordinates: &[u64]) -> Dims {
        shape::clip(&self.chunk_origin(coordinates), &self.chunks, &self.shape)
    }

    /// The first item of the chunk at these coordinates.
    pub(crate) fn chunk_origin(&self, coordinates: &[u64]) -> Dims {
        coordinates.iter().zip(&self.chunks).map(|(at, len)| at.saturating_mul(*len)).collect()
    }

    /// Levels of the offsets index: 0 if the index pointer is the only chunk's entry.
    pub(crate) fn index_levels(&self) -> u8 {
        self.key_bits.len().div_ceil(FANOUT_BITS as usize) as u8
    }

    /// The key of the chunk at these coordinates.
    pub(crate) fn key(&self, coordinates: &[u64]) -> u64 {
        let mut used = SmallVec::<[u8; 32]>::from_elem(0, coordinates.len());
        let mut key = 0;
        for (bit, &dim) in self.key_bits.iter().enumerate() {
            let dim = usize::from(dim);
            key |= (coordinates[dim] >> used[dim] & 1) << bit;
            used[dim] += 1;
        }
        key
    }

    /// The coordinates of the chunk with this key; `None` if they are outside the chunk grid.
    pub(crate) fn coordinates(&self, key: u64) -> Option<Dims> {
        let mut used = SmallVec::<[u8; 32]>::from_elem(0, self.shape.len());
        let mut coordinates = Dims::from_elem(0, self.shape.len());
        for (bit, &dim) in self.key_bits.iter().enumerate() {
            let dim = usize::from(dim);
            coordinates[dim] |= (key >> bit & 1) << used[dim];
            used[dim] += 1;
        }
        let grid = shape::grid(&self.shape, &self.chunks);
        let known = self.key_bits.len() == 64 || key >> self.key_bits.len() == 0;
        (known && coordinates.iter().zip(&grid).all(|(at, len)| at < len)).then_some(coordinates)
    }

    /// The least and the largest coordinates of the chunks whose keys differ from `key` in the lowest `free` bits only:
    /// they are a box of chunks.
    #[cfg(feature = "write")]
    pub(crate) fn key_box(&self, key: u64, free: u32) -> (Dims, Dims) {
        let mut used = SmallVec::<[u8; 32]>::from_elem(0, self.shape.len());
        let mut least = Dims::from_elem(0, self.shape.len());
        let mut largest = least.clone();
        for (bit, &dim) in (0u32..).zip(&self.key_bits) {
            let dim = usize::from(dim);
            let known = key >> bit & 1;
            least[dim] |= (if bit < free { 0 } else { known }) << used[dim];
            largest[dim] |= (if bit < free { 1 } else { known }) << used[dim];
            used[dim] += 1;
        }
        (least, largest)
    }

    #[cfg(feature = "write")]
    fn encode(&self) -> Vec<u8> {
        let mut dtype = Vec::new();
        self.dtype.encode(&mut dtype);
        let mut bytes =
            vec![KIND_ARRAY, self.shape.len() as u8, self.layout as u8, self.key_bits.len() as u8];
        bytes.extend_from_slice(&[self.coding, self.profile, self.level.cast_unsigned(), self.word]);
        bytes.extend_from_slice(&self.stride.to_le_bytes());
        bytes.extend_from_slice(&(dtype.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.stored_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.stored_chunks.to_le_bytes());
        bytes.extend_from_slice(&self.index.encode());
        for len in self.shape.iter().chain(&self.chunks).chain(&self.blocks) {
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        bytes.extend_from_slice(&self.key_bits);
        bytes.extend_from_slice(&dtype);
        bytes.extend_from_slice(&self.fill);
        bytes
    }
}

impl RaggedRecord {
    fn parse(bytes: &[u8], bounds: Bounds) -> Result<RaggedRecord, Refusal> {
        let mut fields = Fields::new(bytes, "ragged array record");
        fields.skip(1)?;
        let element = match fields.u8()? {
            0 => RaggedElement::Strings,
            1 => RaggedElement::Values,
            other => return Err(Refusal::Unsupported(format!("a ragged array of element kind {other}"))),
        };
        let ndim = usize::from(fields.u8()?);
        fields.skip(5)?;
        if ndim > shape::MAX_NDIM {
            return Err(too_many_dimensions(ndim).into());
        }
        let shape = fields.dims(ndim)?;
        let mut part = || {
            let len = fields.u32()?;
            ArrayRecord::parse(fields.bytes(len as usize)?, bounds)
        };
        let (offsets, values) = (part()?, part()?);
        fields.end()?;
        let items = shape::product(&shape).filter(|&items| items < shape::MAX_LEN);
        let right = shape.iter().all(|&len| len <= shape::MAX_LEN)
            && offsets.dtype == Dtype::I64
            && items.is_some_and(|items| offsets.shape[..] == [items + 1])
            && values.shape.len() == 1
            && (element == RaggedElement::Values || values.dtype == Dtype::U8);
        if right {
            Ok(RaggedRecord { element, shape, offsets, values })
        } else {
            Err(Damage::new("a ragged array whose offsets or values are not what they must be").into())
        }
    }

    #[cfg(feature = "write")]
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![KIND_RAGGED, self.element as u8, self.shape.len() as u8, 0, 0, 0, 0, 0];
        for len in &self.shape {
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        for part in [self.offsets.encode(), self.values.encode()] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        bytes
    }
}
