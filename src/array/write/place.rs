//! Where encoded chunks go: space for them, their entries in the index, and the writing.

use super::Writing;
use super::encode::Encoded;
use super::plan::Block;
use crate::array::read::with_buffer;
use crate::codec::{Coding, Filter};
use crate::error::{Damage, Error, Result};
use crate::format::{
    ALIGNMENT, Extent, Kind, PieceEntry, Pointer, encode_chunk_header, encode_pieces_page, encode_raw_table,
    seal_frame,
};
use crate::num::{round_up, saturating_usize};
use crate::shape::Dims;
use crate::store::Staging;
use std::borrow::Cow;

/// Shorter parts of a frame are gathered until they are so many bytes, longer ones are written from where they are.
const GATHERED: usize = 64 << 10;

/// Chunks that have their place in the file and are still to be written.
#[derive(Default)]
pub(super) struct Placed<'s> {
    frames: Vec<Frame<'s>>,
    /// What is let go once they are written, since they are made of it: extents with their births.
    gone: Vec<(Extent, u64)>,
}

struct Frame<'s> {
    offset: u64,
    head: Cow<'s, [u8]>,
    blocks: Vec<Block>,
}

impl Frame<'_> {
    /// Whether blocks of it are still to be copied from an extent.
    fn takes_from(&self, extent: Extent) -> bool {
        self.blocks.iter().any(|block| match block {
            Block::Stored(entry) => (extent.offset..extent.padded_end()).contains(&entry.extent.offset),
            Block::New { .. } => false,
        })
    }
}

impl Writing<'_> {
    /// Gives chunks space in their order, so that the same data gives the same file whatever the number of threads, and
    /// enters them in the index.
    pub(super) fn place<'s>(&mut self, chunks: Vec<(Dims, Encoded<'s>)>) -> Result<Placed<'s>> {
        let mut placed = Placed::default();
        for (chunk, encoded) in chunks {
            match encoded {
                Encoded::Absent => self.enter(&chunk, Pointer::Null, 0, &[], &mut placed)?,
                Encoded::Constant(pointer) => self.enter(&chunk, pointer, 0, &[], &mut placed)?,
                Encoded::Frame { filter, valid, blocks, first_row, kept } => {
                    let (entry, stored) = self.place_frame(filter, &valid, blocks, &mut placed)?;
                    if kept.is_empty() {
                        self.enter(&chunk, entry, stored, &[], &mut placed)?;
                    } else {
                        let rows = valid.first().copied().unwrap_or(1);
                        self.place_pieces(
                            &chunk,
                            kept,
                            PieceEntry { first_row, rows, frame: entry },
                            &mut placed,
                        )?;
                    }
                }
                Encoded::Raw { valid, payload, sums } => {
                    let (entry, stored) = self.place_raw(&valid, payload, &sums, &mut placed)?;
                    self.enter(&chunk, entry, stored, &[], &mut placed)?;
                }
            }
        }
        Ok(placed)
    }

    /// Enters a chunk in the index. Of what was behind its entry, `kept` stays.
    fn enter(
        &mut self,
        chunk: &[u64],
        entry: Pointer,
        stored: u64,
        kept: &[PieceEntry],
        placed: &mut Placed<'_>,
    ) -> Result<()> {
        let gone = self.array.put(self.frames, self.space, chunk, entry, stored, kept)?;
        for (extent, birth) in gone {
            // The chunk's new frame, which is the last one that was placed, may be made of it.
            if placed.frames.last().is_some_and(|frame| frame.takes_from(extent)) {
                placed.gone.push((extent, birth));
            } else {
                self.space.release(extent, birth);
            }
        }
        Ok(())
    }

    fn place_frame(
        &mut self,
        filter: Filter,
        valid: &[u64],
        blocks: Vec<Block>,
        placed: &mut Placed<'_>,
    ) -> Result<(Pointer, u64)> {
        let table = blocks.iter().map(|block| match block {
            Block::New { coding, bytes, checksum } => (coding.id(), bytes.len() as u64, *checksum),
            Block::Stored(entry) => (entry.coding, entry.extent.len, entry.checksum),
        });
        let mut head =
            encode_chunk_header(filter.coding.id(), filter.word, filter.recorded_stride(), valid, table);
        let len = blocks.iter().fold(head.len() as u64, |len, block| len.saturating_add(block.stored_len()));
        let extent = self.space.take(len)?;
        let generation = self.space.generation();
        let entry =
            seal_frame(&mut head, Kind::Chunk, extent.offset, extent.len, generation).map_err(too_large)?;
        placed.frames.push(Frame { offset: extent.offset, head: head.into(), blocks });
        Ok((entry, extent.len))
    }

    fn place_pieces(
        &mut self,
        chunk: &[u64],
        kept: Vec<PieceEntry>,
        last: PieceEntry,
        placed: &mut Placed<'_>,
    ) -> Result<()> {
        let mut pieces = kept;
        pieces.push(last);
        let stored = pieces.iter().fold(0u64, |stored, piece| match piece.frame {
            Pointer::Frame { extent, .. } => stored.saturating_add(extent.len),
            _ => stored,
        });
        let mut head = encode_pieces_page(last.first_row + last.rows, &pieces);
        let place = self.space.take(head.len() as u64)?;
        let generation = self.space.generation();
        let entry =
            seal_frame(&mut head, Kind::Pieces, place.offset, place.len, generation).map_err(too_large)?;
        pieces.pop();
        self.enter(chunk, entry, stored, &pieces, placed)?;
        placed.frames.push(Frame { offset: place.offset, head: head.into(), blocks: Vec::new() });
        Ok(())
    }

    fn place_raw<'s>(
        &mut self,
        valid: &[u64],
        payload: Cow<'s, [u8]>,
        sums: &[u64],
        placed: &mut Placed<'s>,
    ) -> Result<(Pointer, u64)> {
        let extent = self.payloads.pop_front().filter(|extent| extent.len == payload.len() as u64);
        let extent =
            extent.ok_or_else(|| Error::InvalidState { what: "a raw chunk without a place".into() })?;
        placed.frames.push(Frame { offset: extent.offset, head: payload, blocks: Vec::new() });
        let mut head = encode_raw_table(extent, valid, sums);
        let place = self.space.take(head.len() as u64)?;
        let generation = self.space.generation();
        let entry =
            seal_frame(&mut head, Kind::RawTable, place.offset, place.len, generation).map_err(too_large)?;
        placed.frames.push(Frame { offset: place.offset, head: head.into(), blocks: Vec::new() });
        Ok((entry, extent.len + place.len))
    }

    /// Takes the space of the raw payloads that are to be written as one run, so that they follow each other; their
    /// tables come behind. `items` are the numbers of their items.
    pub(in crate::array) fn reserve_payloads(&mut self, items: impl IntoIterator<Item = u64>) -> Result<()> {
        let itemsize = self.array.record.dtype.itemsize() as u64;
        let mut whole: u64 = 0;
        for items in items {
            let len = items.saturating_mul(itemsize);
            self.payloads.push_back(Extent { offset: whole, len });
            whole = round_up(len, ALIGNMENT).and_then(|len| whole.checked_add(len)).unwrap_or(u64::MAX);
        }
        if !self.payloads.is_empty() {
            let run = self.space.take(whole)?;
            self.payloads.iter_mut().for_each(|payload| payload.offset += run.offset);
        }
        Ok(())
    }

    /// Writes what was placed, in parallel.
    pub(super) fn write_placed(&self, placed: &Placed<'_>) -> Result<()> {
        self.shared.pool.try_for_each(placed.frames.len(), |n| self.write_frame(&placed.frames[n]))
    }

    /// What placed chunks were made of is not needed any more.
    pub(super) fn let_go(&mut self, placed: Placed<'_>) {
        placed.gone.into_iter().for_each(|(extent, birth)| self.space.release(extent, birth));
    }

    fn write_frame(&self, frame: &Frame<'_>) -> Result<()> {
        let mut run = Run { writing: self, offset: frame.offset, gathered: Vec::new() };
        let mut len = frame.head.len() as u64;
        run.add(&frame.head)?;
        for (number, block) in (0u64..).zip(&frame.blocks) {
            len += block.stored_len();
            match block {
                Block::New { bytes, .. } => run.add(bytes)?,
                Block::Stored(entry) => with_buffer(|buf| {
                    let stored = self.frames.summed(entry.extent, entry.checksum, buf);
                    run.add(stored.map_err(|mut error| {
                        if let Error::Corrupt { place, .. } = &mut error {
                            place.array = Some(self.path.to_owned());
                            place.block = Some(number);
                        }
                        error
                    })?)
                })?,
            }
        }
        let padding = round_up(len, ALIGNMENT).unwrap_or(len) - len;
        run.add(&[0; ALIGNMENT as usize][..saturating_usize(padding)])?;
        run.finish()
    }
}

impl Block {
    fn stored_len(&self) -> u64 {
        match self {
            Block::New { bytes, .. } => bytes.len() as u64,
            Block::Stored(entry) => entry.extent.len,
        }
    }

    /// Whether all items are this one.
    pub(super) fn repeats(&self, writing: &Writing<'_>, item: &[u8]) -> Result<bool> {
        match self {
            Block::New { coding, bytes, .. } => Ok(*coding == Coding::Constant && **bytes == *item),
            Block::Stored(entry) if entry.coding == Coding::Constant.id() => {
                with_buffer(|buf| Ok(writing.frames.summed(entry.extent, entry.checksum, buf)? == item))
            }
            Block::Stored(_) => Ok(false),
        }
    }
}

/// Bytes that follow each other in the file.
struct Run<'a, 'w> {
    writing: &'a Writing<'w>,
    offset: u64,
    gathered: Vec<u8>,
}

impl Run<'_, '_> {
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() < GATHERED {
            self.gathered.extend_from_slice(bytes);
            return if self.gathered.len() < GATHERED { Ok(()) } else { self.finish() };
        }
        self.finish()?;
        Staging::write(self.writing.shared, self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes what was gathered.
    fn finish(&mut self) -> Result<()> {
        if !self.gathered.is_empty() {
            Staging::write(self.writing.shared, self.offset, &self.gathered)?;
            self.offset += self.gathered.len() as u64;
            self.gathered.clear();
        }
        Ok(())
    }
}

fn too_large(Damage(what): Damage) -> Error {
    Error::TooLarge { what }
}
