//! What a chunk is encoded with: what it was before, unless the data changed character.

use super::plan::{Block, Plan};
use super::{Change, Writing};
use crate::codec::{Coding, Filter, Profile, choose};
use crate::error::Result;
use crate::format::{ArrayRecord, CODING_CHOSEN, ChunkHeader};
use crate::shape::{self, Dims};
use smallvec::SmallVec;

/// Blocks of a chunk on which the codings are tried.
const SAMPLES: u64 = 6;
/// Blocks on which it is seen whether the data is like what came before.
const GLANCES: u64 = 3;
/// Data is like what came before if the same filter makes at most this many times more or less of it.
const ALIKE: f64 = 1.3;
/// Frames of fewer bytes do not tell what data is like.
const TELLING_BYTES: u64 = 64 << 10;

/// A filter, and what it made of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) filter: Filter,
    /// Stored bytes for each byte of the blocks that are not constant; `None` if all are.
    ratio: Option<f64>,
}

impl Known {
    /// What a frame was encoded with; `None` if that is not possible or not known (SPEC.md §12.1: it is no rule for
    /// readers).
    pub(super) fn of(record: &ArrayRecord, header: &ChunkHeader<'_>) -> Option<Known> {
        let coding = Coding::from_id(header.coding).ok()?;
        let filter = Filter { coding, word: header.word, stride: header.stride.max(1) };
        let right = filter.fits(record.dtype.itemsize()) && filter.recorded_stride() == header.stride;
        if !right {
            return None;
        }
        let mut sum = Sum::default();
        for number in 0..header.block_count() {
            let at = shape::coordinates(number, &header.block_grid)?;
            let corner: Dims = at.iter().zip(&record.blocks).map(|(at, len)| at * len).collect();
            let items = shape::product(&shape::clip(&corner, &record.blocks, &header.valid))?;
            let bytes = items.saturating_mul(record.dtype.itemsize() as u64);
            let entry = header.block(number, bytes).ok()?;
            sum.add(entry.coding == Coding::Constant.id(), entry.extent.len, bytes);
        }
        Some(Known { filter, ratio: sum.ratio() })
    }
}

/// What was made of some blocks.
#[derive(Default)]
struct Sum {
    stored: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, constant: bool, stored: u64, bytes: u64) {
        if !constant {
            self.stored = self.stored.saturating_add(stored);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    fn ratio(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.stored as f64 / self.bytes as f64)
    }
}

impl Writing<'_> {
    /// Settles the filter of a planned frame; `before` is that of a frame of the same write. Returns whether it was
    /// chosen anew.
    pub(super) fn settle_filter(
        &self,
        plan: &mut Plan<'_>,
        change: Option<&Change<'_>>,
        before: Option<Known>,
    ) -> Result<bool> {
        let record = &self.array.record;
        if record.coding != CODING_CHOSEN {
            plan.filter = asked_filter(record);
            return Ok(false);
        }
        let (touched, count) = (plan.touched_count(), plan.blocks.len() as u64);
        let small = plan.bytes(record.dtype.itemsize()) < TELLING_BYTES;
        if let Some(known) = plan.recorded.or(before) {
            plan.filter = known.filter;
            // What stays of a chunk stays as it is.
            let little = plan.recorded.is_some() && (small || touched.saturating_mul(2) < count);
            if little || self.is_alike(plan, change, known)? {
                return Ok(false);
            }
        }
        plan.filter = self.choose_filter(plan, change)?;
        plan.blocks.iter_mut().for_each(|block| *block.get_mut() = None);
        Ok(true)
    }

    /// Encodes some blocks of a frame with its filter, and says whether the filter makes of them what it made before.
    fn is_alike(&self, plan: &Plan<'_>, change: Option<&Change<'_>>, known: Known) -> Result<bool> {
        let mut sum = Sum::default();
        for number in samples(plan, GLANCES) {
            let block = self.encode_block(plan, change, number)?;
            if let Block::New { coding, bytes, .. } = &block {
                let (_, shape) = plan.place_of(&self.array.record.blocks, number);
                let items = shape::product(&shape).unwrap_or(u64::MAX);
                let size = items.saturating_mul(self.array.record.dtype.itemsize() as u64);
                sum.add(*coding == Coding::Constant, bytes.len() as u64, size);
            }
            if let Some(slot) = plan.blocks.get(number as usize) {
                *slot.lock() = Some(block);
            }
        }
        Ok(match (sum.ratio(), known.ratio) {
            (Some(now), Some(before)) => now <= before * ALIKE && before <= now * ALIKE,
            // Constant blocks are the same whatever the filter.
            (None, _) => true,
            (Some(_), None) => false,
        })
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

    /// What the filter of a frame made of it.
    pub(super) fn known(&self, plan: &Plan<'_>) -> Known {
        let mut sum = Sum::default();
        for (number, block) in (0u64..).zip(&plan.blocks) {
            if let Some(Block::New { coding, bytes, .. }) = &*block.lock() {
                let (_, shape) = plan.place_of(&self.array.record.blocks, number);
                let items = shape::product(&shape).unwrap_or(u64::MAX);
                let size = items.saturating_mul(self.array.record.dtype.itemsize() as u64);
                sum.add(*coding == Coding::Constant, bytes.len() as u64, size);
            }
        }
        Known { filter: plan.filter, ratio: sum.ratio() }
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
