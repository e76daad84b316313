//! Reading raw chunks: spans of 64 KiB are checked, then copied from where they are.

use super::destination::Destination;
use super::read::{parts_within, span, with_buffer};
use crate::codec::{Coding, Filter, with_decoder};
use crate::error::Result;
use crate::format::{Extent, RAW_SPAN, RawTable};
use crate::num::saturating_usize;
use crate::selection::ResolvedSelection;
use crate::shape::Dims;
use crate::store::Frames;

/// Rows are dealt out in units of about this many bytes.
const UNIT_BYTES: u64 = 1 << 20;
/// At most this many spans are checked and copied at once.
const SPANS_AT_ONCE: u64 = 16;

/// Into how many units the rows of a raw chunk are cut.
pub(super) fn units(table: &RawTable<'_>) -> usize {
    let rows = table.valid.first().copied().unwrap_or(1);
    saturating_usize(table.payload.len.div_ceil(UNIT_BYTES).clamp(1, rows.max(1)))
}

/// Reads the selected items of unit `unit` of a raw chunk whose first item is at `origin` of the array.
pub(super) fn read_unit(
    frames: &Frames,
    table: &RawTable<'_>,
    itemsize: usize,
    origin: &[u64],
    selection: &ResolvedSelection,
    unit: usize,
    destination: &Destination<'_>,
) -> Result<()> {
    let (units, unit) = (units(table) as u64, unit as u64);
    let (mut corner, mut shape) = (Dims::from_elem(0, origin.len()), table.valid.clone());
    if let Some(rows) = shape.first_mut() {
        // In 128 bits, since the product may be over 64.
        let bound =
            |n: u64| u64::try_from(u128::from(*rows) * u128::from(n) / u128::from(units)).unwrap_or(*rows);
        let (from, to) = (bound(unit), bound(unit + 1));
        corner[0] = from;
        *rows = to - from;
    }
    Box { frames, table, itemsize, origin, selection, destination }.read(&corner, &shape)
}

struct Box<'a> {
    frames: &'a Frames,
    table: &'a RawTable<'a>,
    itemsize: usize,
    origin: &'a [u64],
    selection: &'a ResolvedSelection,
    destination: &'a Destination<'a>,
}

impl Box<'_> {
    /// Reads what is selected in the box at `corner` of the chunk. A box whose selected items lie far apart is halved
    /// until few spans have to be checked for them.
    fn read(&self, corner: &[u64], shape: &[u64]) -> Result<()> {
        let first: Dims = self.origin.iter().zip(corner).map(|(origin, corner)| origin + corner).collect();
        let Some(parts) = parts_within(self.selection, &first, shape) else { return Ok(()) };
        let items = span(self.origin, &self.table.valid, &parts);
        let (from, to) = (items.start as u64 * self.itemsize as u64, items.end as u64 * self.itemsize as u64);
        let (low, high) = (from / RAW_SPAN, to.div_ceil(RAW_SPAN));
        let halved = shape.iter().position(|&len| len > 1);
        if let (true, Some(dim)) = (high - low > SPANS_AT_ONCE, halved) {
            let half = shape[dim] / 2;
            let (mut left, mut right, mut middle) =
                (Dims::from(shape), Dims::from(shape), Dims::from(corner));
            left[dim] = half;
            right[dim] -= half;
            middle[dim] += half;
            self.read(corner, &left)?;
            return self.read(&middle, &right);
        }
        let start = low * RAW_SPAN;
        let len = (high * RAW_SPAN).min(self.table.payload.len) - start;
        let extent = Extent { offset: self.table.payload.offset + start, len };
        with_buffer(|buf| {
            let bytes = self.frames.unchecked(extent, buf)?;
            let here = |damage| self.frames.damage(damage, Some(extent.offset));
            for (number, bytes) in (low..).zip(bytes.chunks(RAW_SPAN as usize)) {
                let sum = self.table.checksum(number).map_err(here)?;
                if crate::format::checksum(bytes) != sum {
                    let what = format!(
                        "bytes {} to {} of a raw chunk do not have their checksum",
                        number * RAW_SPAN,
                        number * RAW_SPAN + bytes.len() as u64
                    );
                    return Err(here(crate::error::Damage::new(what)));
                }
            }
            // The bytes seen as a block: the chunk's items from the first selected one on.
            let items_of = &bytes[saturating_usize(from - start)..saturating_usize(to - start)];
            with_decoder(|decoder| {
                let count = items.len();
                let mut block = decoder
                    .open(items_of, Coding::Raw, Filter::RAW, self.itemsize, count, 0..count)
                    .map_err(here)?;
                // SAFETY: the boxes of one read are disjoint, and a selection gives each position of the destination to
                // one index, so no other thread writes to these positions.
                unsafe {
                    self.destination.receive_from(
                        &mut block,
                        items.start,
                        self.origin,
                        &self.table.valid,
                        &parts,
                    )
                };
                Ok(())
            })
        })
    }
}
