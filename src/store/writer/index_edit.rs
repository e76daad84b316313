//! An offsets index that is being changed: pages are taken into memory as changes reach them, and written anew at a
//! commit.

use super::space::{PageBatch, Space};
use crate::error::Result;
use crate::format::{FANOUT_BITS, Kind, Pointer, encode_index_page};
use crate::store::frames::Frames;
use crate::store::index::{self, ChunkIndex};

const FANOUT: usize = 1 << FANOUT_BITS;

/// A changed copy of an offsets index.
pub(crate) struct IndexEdit {
    root: Node,
    levels: u8,
}

enum Node {
    /// A page that has not changed, a chunk's entry, or null.
    Stored(Pointer),
    Edited(Box<[Node; FANOUT]>),
}

fn place(key: u64, level: u8) -> usize {
    (key >> (FANOUT_BITS * u32::from(level))) as usize % FANOUT
}

impl IndexEdit {
    pub(super) fn new(root: Pointer, levels: u8) -> IndexEdit {
        IndexEdit { root: Node::Stored(root), levels }
    }

    /// Puts `entry` in the place of a chunk, or takes the chunk out if it is null; returns what was there.
    pub(crate) fn set(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        key: u64,
        entry: Pointer,
    ) -> Result<Pointer> {
        let mut node = &mut self.root;
        for level in (0..self.levels).rev() {
            let page = node.edit(frames, space, level, key)?;
            node = &mut page[place(key, level)];
        }
        match std::mem::replace(node, Node::Stored(entry)) {
            Node::Stored(old) => Ok(old),
            Node::Edited(_) => Ok(Pointer::Null),
        }
    }

    /// Puts the changed pages in `batch` and gives the pointer for the array's record.
    pub(super) fn flush(&mut self, space: &mut Space, batch: &mut PageBatch) -> Result<Pointer> {
        let pointer = self.root.flush(space, batch, self.levels, 0)?;
        self.root = Node::Stored(pointer);
        Ok(pointer)
    }
}

impl Node {
    fn edit(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        level: u8,
        key: u64,
    ) -> Result<&mut [Node; FANOUT]> {
        if let Node::Stored(pointer) = self {
            let mut nodes = Box::new([const { Node::Stored(Pointer::Null) }; FANOUT]);
            if *pointer != Pointer::Null {
                let mut buf = Vec::new();
                let page = index::page(frames, pointer, level, key, &mut buf)?;
                for entry in page.entries() {
                    let (place, entry) = entry.map_err(|damage| frames.damage(damage, None))?;
                    nodes[place as usize % FANOUT] = Node::Stored(entry);
                }
                space.release_frame(pointer);
            }
            *self = Node::Edited(nodes);
        }
        match self {
            Node::Edited(nodes) => Ok(nodes),
            Node::Stored(_) => {
                Err(crate::Error::InvalidState { what: "an index page was not taken into memory".into() })
            }
        }
    }

    fn flush(&mut self, space: &mut Space, batch: &mut PageBatch, levels: u8, key: u64) -> Result<Pointer> {
        let nodes = match self {
            Node::Stored(pointer) => return Ok(*pointer),
            Node::Edited(nodes) => nodes,
        };
        let level = levels.saturating_sub(1);
        let mut entries = Vec::new();
        for (place, node) in (0u64..).zip(nodes.iter_mut()) {
            let below = key | place << (FANOUT_BITS * u32::from(level));
            match node.flush(space, batch, level, below)? {
                Pointer::Null => {}
                entry => entries.push((place, entry)),
            }
        }
        if entries.is_empty() {
            return Ok(Pointer::Null);
        }
        batch.add(space, Kind::Index, encode_index_page(level, key, &entries))
    }
}

impl ChunkIndex for IndexEdit {
    fn entry(&self, frames: &Frames, key: u64) -> Result<Pointer> {
        let mut node = &self.root;
        let mut level = self.levels;
        loop {
            match node {
                Node::Stored(pointer) => return index::lookup(frames, *pointer, level, key),
                Node::Edited(nodes) => {
                    level -= 1;
                    node = &nodes[place(key, level)];
                }
            }
        }
    }
}
