//! What a chunk is encoded with: what it, or the chunk before, was encoded with, unless the data changed character.

use super::plan::{Block, Plan};
use super::{Change, Writing};
use crate::codec::{Coding, Filter, Profile, choose, is_still_right};
use crate::error::Result;
use crate::format::{ArrayRecord, CODING_CHOSEN, ChunkHeader};
use crate::shape;
use crate::store::EncodedWith;
use smallvec::SmallVec;

/// Blocks of a chunk on which the codings are tried.
const SAMPLES: u64 = 6;
/// Blocks among which one is looked for that tells whether a filter is still right.
const GLANCES: u64 = 3;
/// Data is like what came before if as little of it is stored, or up to this many times more.
const ALIKE: f64 = 1.25;
/// Frames of fewer bytes are not all looked at, since that takes longer than encoding them.
const TELLING_BYTES: u64 = 512 << 10;
/// Of small frames one is looked at each time that there are twice as many bytes, or so many more.
const LOOK_EACH: u64 = 1 << 20;

/// What a frame was encoded with; `None` if that is not possible or not known: to readers it makes no difference (SPEC.md
/// §12.1).
pub(super) fn recorded(record: &ArrayRecord, header: &ChunkHeader<'_>) -> Option<Filter> {
    let coding = Coding::from_id(header.coding).ok()?;
    let filter = Filter { coding, word: header.word, stride: header.stride.max(1) };
    let right = filter.fits(record.dtype.itemsize()) && filter.recorded_stride() == header.stride;
    right.then_some(filter)
}

impl Writing<'_> {
    /// Settles the filter of a planned frame, the `n`th of its batch; returns whether it was seen to be right.
    pub(super) fn settle_filter(
        &self,
        plan: &mut Plan<'_>,
        change: Option<&Change<'_>>,
        n: usize,
    ) -> Result<bool> {
        let record = &self.array.record;
        if record.coding != CODING_CHOSEN {
            plan.filter = asked_filter(record);
            return Ok(false);
        }
        let before = self.array.encoded_with;
        let (touched, count) = (plan.touched_count(), plan.blocks.len() as u64);
        // What stays of a chunk is to stay as it is stored.
        let recorded = plan.recorded.filter(|_| touched < count);
        if let Some(filter) = recorded.or(before.map(|before| before.filter)).or(plan.recorded) {
            plan.filter = filter;
            let bytes = plan.bytes(record.dtype.itemsize());
            if recorded.is_some() && touched.saturating_mul(2) < count {
                return Ok(false);
            }
            if let Some(before) = before
                && bytes < TELLING_BYTES
                && before.unseen.saturating_add(bytes.saturating_mul(n as u64 + 1))
                    <= before.seen.min(LOOK_EACH)
                && self.is_alike(plan, change, before)?
            {
                return Ok(false);
            }
            if self.is_still_right(plan, change)? {
                return Ok(true);
            }
        }
        plan.filter = self.choose_filter(plan, change)?;
        Ok(true)
    }

    /// What will do for frames to come, after these.
    pub(super) fn encoded_with(&self, plans: &[Plan<'_>]) -> Option<EncodedWith> {
        let itemsize = self.array.record.dtype.itemsize();
        let bytes_of =
            |plans: &[Plan<'_>]| plans.iter().map(|plan| plan.bytes(itemsize)).fold(0, u64::saturating_add);
        let before = self.array.encoded_with;
        let Some(last) = plans.iter().rposition(|plan| plan.seen) else {
            let unseen = |before: EncodedWith| before.unseen.saturating_add(bytes_of(plans));
            return before.map(|before| EncodedWith { unseen: unseen(before), ..before });
        };
        let (till_then, since) = plans.split_at(last + 1);
        let (mut stored, mut items) = (0, 0);
        for (number, block) in (0u64..).zip(&plans[last].blocks) {
            if let Some((bytes, of)) =
                block.lock().as_ref().and_then(|block| self.weight(&plans[last], number, block))
            {
                stored += bytes;
                items += of;
            }
        }
        let earlier = before.map_or(0, |before| before.seen.saturating_add(before.unseen));
        Some(EncodedWith {
            filter: plans[last].filter,
            // What was constant all over says nothing of what is not.
            ratio: if items == 0 { 0.0 } else { stored as f64 / items as f64 },
            seen: earlier.saturating_add(bytes_of(till_then)),
            unseen: bytes_of(since),
        })
    }

    /// Stored bytes and item bytes of a block, if they tell of the filter.
    fn weight(&self, plan: &Plan<'_>, number: u64, block: &Block) -> Option<(u64, u64)> {
        let Block::New { coding, bytes, .. } = block else { return None };
        let (_, shape) = plan.place_of(&self.array.record.blocks, number);
        let items = shape::product(&shape)?.checked_mul(self.array.record.dtype.itemsize() as u64)?;
        (*coding != Coding::Constant).then_some((bytes.len() as u64, items))
    }

    /// Makes a block of a frame, and says whether that is about as short as blocks were before.
    fn is_alike(&self, plan: &Plan<'_>, change: Option<&Change<'_>>, before: EncodedWith) -> Result<bool> {
        let Some(number) = samples(plan, 1).next() else { return Ok(true) };
        let block = self.encode_block(plan, change, number)?;
        let weight = self.weight(plan, number, &block);
        let alike = weight.is_none_or(|(stored, items)| stored as f64 <= before.ratio * ALIKE * items as f64);
        if alike && let Some(slot) = plan.blocks.get(number as usize) {
            *slot.lock() = Some(block);
        }
        Ok(alike)
    }

    /// Whether the filter of a frame suits its items as well as others would.
    fn is_still_right(&self, plan: &Plan<'_>, change: Option<&Change<'_>>) -> Result<bool> {
        let record = &self.array.record;
        let (itemsize, component) = (record.dtype.itemsize(), record.dtype.component_size());
        for number in samples(plan, GLANCES) {
            let mut buf = Vec::new();
            let items = self.block_items(plan, change, number, &mut buf)?.unwrap_or(&buf);
            // A constant block is the same with all.
            if items.get(itemsize..) != items.get(..items.len() - itemsize) {
                let (profile, level) = (profile_of(record), i32::from(record.level));
                let strides = strides(record);
                return Ok(is_still_right(plan.filter, items, itemsize, component, &strides, profile, level));
            }
        }
        Ok(true)
    }

    /// Tries the codings on some blocks of a frame.
    fn choose_filter(&self, plan: &Plan<'_>, change: Option<&Change<'_>>) -> Result<Filter> {
        let record = &self.array.record;
        let mut items: Vec<Vec<u8>> = Vec::new();
        for number in samples(plan, SAMPLES) {
            let mut buf = Vec::new();
            if let Some(lent) = self.block_items(plan, change, number, &mut buf)? {
                buf = lent.to_vec();
            }
            items.push(buf);
        }
        let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let (itemsize, component) = (record.dtype.itemsize(), record.dtype.component_size());
        let level = i32::from(record.level);
        Ok(choose(&items, itemsize, component, &strides(record), profile_of(record), level))
    }
}

/// Numbers of up to `most` blocks that are spread over those that the change touches, the one in the middle first.
fn samples(plan: &Plan<'_>, most: u64) -> impl Iterator<Item = u64> {
    let count = match plan.touched_count() {
        0 => plan.blocks.len() as u64,
        count => count,
    };
    let taken = count.min(most);
    (0..taken).map(move |n| {
        let n = (n + taken / 2) % taken;
        plan.nth_touched((2 * n + 1) * count / (2 * taken))
    })
}

pub(super) fn profile_of(record: &ArrayRecord) -> Profile {
    match record.profile {
        1 => Profile::Fast,
        2 => Profile::Small,
        _ => Profile::Balanced,
    }
}

/// The filter that the array's record asks for. A record may ask for what cannot be (SPEC.md §9): then zstd will do.
fn asked_filter(record: &ArrayRecord) -> Filter {
    let filter = match Coding::from_id(record.coding) {
        Ok(Coding::Planes) => Filter::planes(record.word),
        Ok(Coding::Delta) => Filter::delta(record.word, record.stride),
        _ => Filter::ZSTD,
    };
    if filter.fits(record.dtype.itemsize()) { filter } else { Filter::ZSTD }
}

/// Rows of at most this many components are taken for the columns of a table.
const TABLE_COLUMNS: u64 = 64;

/// Distances in components at which differences are tried. In a table: to the row before, and to rows further up, since
/// meshes repeat after as many cells as a grid cell was cut into. In a volume: to the item, row and plane before.
fn strides(record: &ArrayRecord) -> SmallVec<[u32; 8]> {
    let parts = (record.dtype.itemsize() / record.dtype.component_size().max(1)).max(1) as u64;
    let row = record.blocks.last().copied().unwrap_or(1).saturating_mul(parts);
    let distances: [u64; 6] = match record.blocks.len() {
        0 | 1 => [parts, 2 * parts, 3 * parts, 1, 1, 1],
        2 if row <= TABLE_COLUMNS => [1, row, 2 * row, 3 * row, 5 * row, 6 * row],
        dims => [1, parts, row, row.saturating_mul(record.blocks[dims - 2]), 1, 1],
    };
    let mut strides = SmallVec::new();
    for distance in distances {
        if let Ok(distance) = u32::try_from(distance)
            && !strides.contains(&distance)
        {
            strides.push(distance);
        }
    }
    strides
}
