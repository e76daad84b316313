//! From a plan to encoded blocks.

use super::filter::profile_of;
use super::plan::{Block, Items, Plan};
use super::{Change, Target, Writing};
use crate::array::destination;
use crate::array::read::with_buffer;
use crate::codec::{Coding, Encoder, Filter, with_encoder};
use crate::error::{Damage, Error, Result};
use crate::format::{PieceEntry, Pointer, RAW_SPAN, checksum};
use crate::num::saturating_usize;
use crate::shape::{self, Dims};
use std::borrow::Cow;

/// A chunk as it will stand in the file, without its place there.
pub(super) enum Encoded<'s> {
    /// Every item is the fill value.
    Absent,
    Constant(Pointer),
    Frame {
        filter: Filter,
        valid: Dims,
        blocks: Vec<Block>,
        /// Row of the chunk that it starts at, and the pieces before it.
        first_row: u64,
        kept: Vec<PieceEntry>,
    },
    Raw {
        valid: Dims,
        payload: Cow<'s, [u8]>,
        /// Checksums of its spans.
        sums: Vec<u64>,
    },
}

impl Writing<'_> {
    /// The items of a block of a planned frame, in C order: as the caller has them, or else in `buf`.
    pub(super) fn block_items<'s>(
        &self,
        plan: &Plan<'_>,
        change: Option<&Change<'s>>,
        number: u64,
        buf: &mut Vec<u8>,
    ) -> Result<Option<&'s [u8]>> {
        let (corner, shape) = plan.place_of(&self.array.record.blocks, number);
        let items = self.items_at(plan, change, &corner, &shape)?;
        self.gather(items, change, &corner, &shape, buf)
    }

    fn items_at<'s>(
        &self,
        plan: &Plan<'_>,
        change: Option<&Change<'s>>,
        corner: &[u64],
        shape: &[u64],
    ) -> Result<Items<'s>> {
        let record = &self.array.record;
        plan.items(change, &record.blocks, record.dtype.itemsize(), corner, shape)
            .map_err(|damage: Damage| self.frames.damage(damage, None))
    }

    /// The items of a box at `corner`, in C order: as the caller has them, or else in `buf`.
    fn gather<'s>(
        &self,
        items: Items<'s>,
        change: Option<&Change<'s>>,
        corner: &[u64],
        shape: &[u64],
        buf: &mut Vec<u8>,
    ) -> Result<Option<&'s [u8]>> {
        let itemsize = self.array.record.dtype.itemsize();
        let (parts, change) = match (items, change) {
            (Items::Changed(parts), Some(change)) => {
                if let Some(window) = change.source.window(&parts) {
                    if let Some(lent) = window.lend(shape, itemsize) {
                        return Ok(Some(lent));
                    }
                    return window.copy_to(shape, itemsize, buf).map(|()| None);
                }
                let items = shape::product(shape).and_then(|items| items.checked_mul(itemsize as u64));
                *buf = zeros(items.unwrap_or(u64::MAX))?;
                (parts, change)
            }
            (Items::Mixed(parts), Some(change)) => {
                *buf = self.read_box(corner, shape)?;
                (parts, change)
            }
            (Items::One(item), _) => {
                *buf = item.repeat(saturating_usize(shape::product(shape).unwrap_or(u64::MAX)));
                return Ok(None);
            }
            _ => {
                *buf = self.read_box(corner, shape)?;
                return Ok(None);
            }
        };
        let strides = destination::byte_strides(shape, itemsize);
        change.source.scatter(buf, corner, &strides, itemsize, &parts);
        Ok(None)
    }

    /// Makes a block of a planned frame with its filter.
    pub(super) fn encode_block(
        &self,
        plan: &Plan<'_>,
        change: Option<&Change<'_>>,
        number: u64,
    ) -> Result<Block> {
        let record = &self.array.record;
        let itemsize = record.dtype.itemsize();
        let (corner, shape) = plan.place_of(&record.blocks, number);
        let constant = |item: &[u8]| Block::New {
            coding: Coding::Constant,
            bytes: item.into(),
            checksum: checksum(item),
        };
        let items = match (self.items_at(plan, change, &corner, &shape)?, change) {
            (Items::Stored(entry), _) => return Ok(Block::Stored(entry)),
            (Items::One(item), _) => return Ok(constant(&item)),
            (Items::Changed(parts), Some(change)) => match change.source.one_item(itemsize) {
                Some(item) => return Ok(constant(item)),
                None => Items::Changed(parts),
            },
            (items, _) => items,
        };
        with_items(|buf| {
            let items = self.gather(items, change, &corner, &shape, buf)?.unwrap_or(buf);
            with_stored(|stored| {
                stored.clear();
                let level = i32::from(record.level);
                let coding = with_encoder(|encoder: &mut Encoder| {
                    encoder.encode(plan.filter, profile_of(record), level, items, itemsize, stored)
                });
                let bytes: Box<[u8]> = stored.as_slice().into();
                Ok(Block::New { coding, checksum: checksum(&bytes), bytes })
            })
        })
    }

    /// What a frame whose blocks are all made is stored as.
    pub(super) fn finish_frame<'s>(&self, plan: Plan<'_>) -> Result<Encoded<'s>> {
        let blocks: Option<Vec<Block>> =
            plan.blocks.into_iter().map(parking_lot::Mutex::into_inner).collect();
        let blocks =
            blocks.ok_or_else(|| Error::InvalidState { what: "a block that was not encoded".into() })?;
        let Plan { filter, valid, first_row, kept, .. } = plan;
        if kept.is_empty()
            && let Some(repeated) = self.collapse(&valid, &blocks)?
        {
            return Ok(repeated);
        }
        Ok(Encoded::Frame { filter, valid, blocks, first_row, kept })
    }

    /// A chunk of one repeated item needs no frame: it is absent if that is the fill value, and stands in the index if
    /// the chunk is whole, since a constant there is one for all items that the chunk may ever have.
    fn collapse<'s>(&self, valid: &Dims, blocks: &[Block]) -> Result<Option<Encoded<'s>>> {
        let record = &self.array.record;
        let item = match blocks.first() {
            Some(Block::New { coding: Coding::Constant, bytes, .. }) => bytes.to_vec(),
            Some(Block::Stored(entry)) if entry.coding == Coding::Constant.id() => {
                with_buffer(|buf| self.frames.summed(entry.extent, entry.checksum, buf).map(<[u8]>::to_vec))?
            }
            _ => return Ok(None),
        };
        for block in blocks {
            if !block.repeats(self, &item)? {
                return Ok(None);
            }
        }
        if *item == *record.fill {
            return Ok(Some(Encoded::Absent));
        }
        let whole = *valid == record.chunks;
        Ok(Pointer::constant(&item).filter(|_| whole).map(Encoded::Constant))
    }

    /// Makes one chunk of the raw layout.
    pub(super) fn encode_raw<'s>(&self, target: &Target, change: Option<&Change<'s>>) -> Result<Encoded<'s>> {
        let record = &self.array.record;
        let origin = record.chunk_origin(&target.chunk);
        let valid = target.cut.clone().unwrap_or_else(|| record.chunk_limit(&target.chunk));
        let items = change.and_then(|change| change.items(&origin, &valid)).unwrap_or(Items::Old);
        let mut payload = Vec::new();
        let payload = match self.gather(items, change, &origin, &valid, &mut payload)? {
            Some(lent) => Cow::Borrowed(lent),
            None => Cow::Owned(payload),
        };
        let sums = payload.chunks(RAW_SPAN as usize).map(checksum).collect();
        Ok(Encoded::Raw { valid, payload, sums })
    }
}

fn zeros(len: u64) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    bytes.try_reserve_exact(saturating_usize(len)).map_err(|_| Error::TooLarge {
        what: format!("a buffer of {len} bytes; there is not that much memory"),
    })?;
    bytes.resize(saturating_usize(len), 0);
    Ok(bytes)
}

/// A buffer of this thread for items.
fn with_items<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static ITEMS: std::cell::Cell<Vec<u8>> = const { std::cell::Cell::new(Vec::new()) };
    }
    let mut buf = ITEMS.take();
    let result = work(&mut buf);
    ITEMS.set(buf);
    result
}

/// A buffer of this thread for what items become.
fn with_stored<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static STORED: std::cell::Cell<Vec<u8>> = const { std::cell::Cell::new(Vec::new()) };
    }
    let mut buf = STORED.take();
    let result = work(&mut buf);
    STORED.set(buf);
    result
}
