//! Finding chunks in an array's offsets index.

use super::frames::Frames;
use crate::error::{Damage, Result};
use crate::format::{ArrayRecord, FANOUT_BITS, IndexPage, Pointer};

/// Where the read path finds the entries of chunks: in the file, or staged in a writer.
pub(crate) trait ChunkIndex: Sync {
    /// The entry of the chunk with this key; null if the chunk is absent.
    fn entry(&self, frames: &Frames, key: u64) -> Result<Pointer>;
}

/// The index of a committed array.
pub(crate) struct StoredIndex {
    root: Pointer,
    levels: u8,
}

impl StoredIndex {
    pub(crate) fn new(record: &ArrayRecord) -> StoredIndex {
        StoredIndex { root: record.index, levels: record.index_levels() }
    }
}

impl ChunkIndex for StoredIndex {
    fn entry(&self, frames: &Frames, key: u64) -> Result<Pointer> {
        lookup(frames, self.root, self.levels, key)
    }
}

/// Follows `key` from the page that `pointer` leads to, the highest of `levels`.
pub(crate) fn lookup(frames: &Frames, mut pointer: Pointer, levels: u8, key: u64) -> Result<Pointer> {
    let mut buf = Vec::new();
    for level in (0..levels).rev() {
        if pointer == Pointer::Null {
            break;
        }
        pointer = page(frames, &pointer, level, key, &mut buf)?
            .entry(key)
            .map_err(|damage| frames.damage(damage, None))?;
    }
    Ok(pointer)
}

/// The index page of `level` on the way to `key`.
pub(crate) fn page<'a>(
    frames: &'a Frames,
    pointer: &Pointer,
    level: u8,
    key: u64,
    buf: &'a mut Vec<u8>,
) -> Result<IndexPage<'a>> {
    let Pointer::Frame { extent, .. } = *pointer else {
        return Err(frames.damage(Damage::new("an index page that is not there"), None));
    };
    let bytes = frames.checked(pointer, buf)?;
    IndexPage::parse(bytes, frames.bounds(), level, key)
        .map_err(|damage| frames.damage(damage, Some(extent.offset)))
}

/// What [`walk`] meets.
pub(crate) enum Met {
    /// An index page, before what is below it. `false` leaves it out.
    Page(Pointer),
    /// The entry of a chunk.
    Chunk { key: u64, entry: Pointer },
    /// A page or entry that cannot be read; the walk goes on behind it.
    Lost(crate::Error),
}

/// Calls `visit` for every page and chunk below `pointer`, in the order of keys.
pub(crate) fn walk(
    frames: &Frames,
    pointer: Pointer,
    levels: u8,
    key: u64,
    visit: &mut dyn FnMut(Met) -> Result<bool>,
) -> Result<()> {
    if pointer == Pointer::Null {
        return Ok(());
    }
    let Some(level) = levels.checked_sub(1) else {
        return visit(Met::Chunk { key, entry: pointer }).map(|_| ());
    };
    if !visit(Met::Page(pointer))? {
        return Ok(());
    }
    let mut buf = Vec::new();
    let page = match page(frames, &pointer, level, key, &mut buf) {
        Ok(page) => page,
        Err(error) => return visit(Met::Lost(error)).map(|_| ()),
    };
    for entry in page.entries() {
        match entry {
            Ok((place, entry)) => {
                walk(frames, entry, level, key | place << (FANOUT_BITS * u32::from(level)), visit)?;
            }
            Err(damage) => {
                visit(Met::Lost(frames.damage(damage, None)))?;
            }
        }
    }
    Ok(())
}
