//! Changing the shape of an array: growing touches no chunk, shrinking takes out the chunks that are outside and writes
//! those anew that the edge cuts.

use super::read::stored_part;
use super::write::{Target, Writing};
use crate::error::{Damage, Error, Result};
use crate::format::{ArrayRecord, Layout, Pointer, key_bits_of};
use crate::shape::{self, Dims, MAX_KEY_BITS};
use crate::store::{Fate, IndexEdit, Staged, Staging, Writer, let_go};

impl Writer {
    /// Gives an array another length in any of its dimensions, also 0. Items that are in both shapes stay at their
    /// indices; all others read as the fill value, also those that were there before the array shrank. The chunk shape
    /// stays.
    ///
    /// Growing reads and writes no chunk, whatever their number. Shrinking reads the index where the new edge goes, lets go
    /// of the chunks that are outside it, and reads and encodes those that it cuts. Snapshots keep the shape that
    /// they have.
    ///
    /// Of a ragged array the first dimension can have another length. Its new items are empty; an offset is
    /// written for each, 8 bytes before compression. What is cut off takes its values with it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with a near name if there is no such array; [`Error::InvalidArgument`] for a group, for a shape of
    /// another number of dimensions, and for a raw array that would have to be cut in another dimension than its first;
    /// [`Error::TooLarge`] for what [`Writer::create_array`] refuses, too; [`Error::Unsupported`] for another dimension of a
    /// ragged array than its first: all these before anything is changed. [`Error::Io`] and [`Error::Corrupt`] if a chunk that is cut cannot be written or
    /// read; then the writer can only be dropped.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Dtype, Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-resize-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("steps.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("pressure", &ArraySpec::new(Dtype::F32, [0, 1000]).chunks([16, 1000]))?;
    /// for step in 0..3u64 {
    ///     writer.resize("pressure", &[step + 1, 1000])?;
    ///     writer.write("pressure", &Selection::new([step as i64]), &[step as f32; 1000])?;
    /// }
    /// assert_eq!(writer.commit()?.array("pressure")?.shape(), [3, 1000]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    pub fn resize(&mut self, path: &str, shape: &[u64]) -> Result<()> {
        match self.stage(path)?.staged {
            Staged::Array(array) if *array.record.shape == *shape => return Ok(()),
            Staged::Array(array) => check(&array.record, path, shape)?,
            Staged::Ragged(_) => return self.resize_ragged(path, shape),
        }
        self.stage_write(path, |Staging { shared, frames, space, staged }| match staged {
            Staged::Array(array) => Writing::new(shared, frames, space, array, path).resize(shape),
            Staged::Ragged(_) => Err(super::append::ragged(path)),
        })
    }
}

/// That an array may have this shape.
pub(super) fn check(record: &ArrayRecord, path: &str, shape: &[u64]) -> Result<()> {
    if shape.len() != record.shape.len() {
        return Err(Error::invalid(format!(
            "a shape of {} dimensions for the array '{path}' of {}",
            shape.len(),
            record.shape.len()
        )));
    }
    shape::validate_shapes(record.dtype.itemsize() as u64, shape, &record.chunks, record.checked_blocks())?;
    if record.layout == Layout::Raw
        && shape.iter().zip(&record.chunks).skip(1).any(|(len, chunk)| len > chunk)
    {
        return Err(Error::invalid(format!(
            "the shape {shape:?} for the raw array '{path}', which is cut along its first dimension only, into chunks \
             of shape {:?}; create it with chunks that are as long as it may grow",
            record.chunks
        )));
    }
    Ok(())
}

impl Writing<'_> {
    pub(super) fn resize(&mut self, shape: &[u64]) -> Result<()> {
        let kept: Dims = self.array.record.shape.iter().zip(shape).map(|(&old, &new)| old.min(new)).collect();
        if kept != self.array.record.shape {
            self.cut_to(&kept)?;
        }
        self.set_shape(shape)
    }

    /// Takes out what is outside `kept`, a part of the array from its first item.
    fn cut_to(&mut self, kept: &[u64]) -> Result<()> {
        let before = self.array.record.clone();
        let (frames, array) = (self.frames, &mut *self.array);
        let mut targets: Vec<Target> = Vec::new();
        let mut payloads: Vec<u64> = Vec::new();
        let fate = |key, free| fate(&before, kept, key, free);
        array.index.prune(frames, self.space, &fate, &mut |space, key, entry, fate| {
            let chunk = before
                .coordinates(key)
                .ok_or_else(|| frames.damage(Damage::new("an index entry outside the chunk grid"), None))?;
            if fate == Fate::Drop {
                return let_go(&mut array.record, frames, space, &chunk, &entry);
            }
            let stored = stored_part(frames, &before, &entry, &before.chunk_limit(&chunk))?;
            let limit = shape::clip(&before.chunk_origin(&chunk), &before.chunks, kept);
            let part: Dims = stored.iter().zip(&limit).map(|(&stored, &limit)| stored.min(limit)).collect();
            if part != stored {
                payloads.push(shape::product(&part).unwrap_or(u64::MAX));
                targets.push(Target { chunk, cut: Some(part) });
            }
            Ok(())
        })?;
        if before.layout == Layout::Raw {
            self.reserve_payloads(payloads)?;
        }
        self.cut(&targets)
    }

    /// Sets the shape of an array that has no chunk outside it, and the keys of its chunks.
    fn set_shape(&mut self, shape: &[u64]) -> Result<()> {
        let (frames, space) = (self.frames, &mut *self.space);
        let (record, index) = (&mut self.array.record, &mut self.array.index);
        let grid = shape::grid(shape, &record.chunks);
        let needed: Vec<u32> = grid.iter().map(|&len| shape::key_bits(len)).collect();
        let mut given = vec![0; needed.len()];
        record.key_bits.iter().for_each(|&dim| given[usize::from(dim)] += 1);
        let mut bits = record.key_bits.clone();
        // Bits that no chunk needs any more can go from the top, and new ones come there.
        while let Some(dim) = bits.last().map(|&dim| usize::from(dim))
            && given[dim] > needed[dim]
        {
            given[dim] -= 1;
            bits.pop();
        }
        for dim in (0..needed.len()).rev() {
            let more = needed[dim].saturating_sub(given[dim]);
            bits.extend(std::iter::repeat_n(dim as u8, more as usize));
        }
        if index.is_empty() || bits.len() > MAX_KEY_BITS as usize {
            // Bits of dimensions that shrank stand in the way: all chunks get new keys.
            let entries: Vec<(Option<Dims>, Pointer)> = index
                .drain(frames, space)?
                .into_iter()
                .map(|(key, entry)| (record.coordinates(key), entry))
                .collect();
            record.key_bits = key_bits_of(&grid);
            record.shape = shape.into();
            *index = IndexEdit::new(Pointer::Null, record.index_levels());
            for (chunk, entry) in entries {
                let outside = || frames.damage(Damage::new("an index entry outside the chunk grid"), None);
                index.set(frames, space, record.key(&chunk.ok_or_else(outside)?), entry)?;
            }
            return Ok(());
        }
        record.key_bits = bits;
        record.shape = shape.into();
        index.set_levels(frames, space, record.index_levels())
    }
}

/// What becomes of the chunks whose keys differ from `key` in the lowest `free` bits, when the array is cut to `kept`.
fn fate(record: &ArrayRecord, kept: &[u64], key: u64, free: u32) -> Fate {
    let (least, largest) = record.key_box(key, free);
    let mut fate = Fate::Keep;
    for dim in (0..kept.len()).filter(|&dim| kept[dim] < record.shape[dim]) {
        let chunk = record.chunks[dim];
        if least[dim].saturating_mul(chunk) >= kept[dim] {
            return Fate::Drop;
        }
        if largest[dim].saturating_add(1).saturating_mul(chunk) > kept[dim] {
            fate = Fate::Cut;
        }
    }
    fate
}
