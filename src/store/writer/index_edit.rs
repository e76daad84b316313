//! An offsets index that is being changed: pages are taken into memory as changes reach them, and written anew at a
//! commit.

use super::space::{PageBatch, Space};
use crate::error::{Damage, Result};
use crate::format::{FANOUT_BITS, Kind, Pointer, encode_index_page};
use crate::store::frames::Frames;
use crate::store::index::{self, ChunkIndex, Met};

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

/// What becomes of the chunks of a part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They stay as they are.
    Keep,
    /// They are taken out.
    Drop,
    /// They have different fates; of one chunk: it stays, but is to be written anew.
    Cut,
}

impl IndexEdit {
    pub(crate) fn new(root: Pointer, levels: u8) -> IndexEdit {
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

    /// Whether no chunk has an entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Takes out the chunks that `fate` drops. It is asked about the chunks whose keys differ from the one given in the
    /// lowest so many bits only, and may say that they have different fates; pages whose chunks are all kept are not
    /// read. `visit` is called for each chunk that is taken out, and for each that is cut, in the order of their keys.
    pub(crate) fn prune(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        fate: &dyn Fn(u64, u32) -> Fate,
        visit: &mut dyn FnMut(&mut Space, u64, Pointer, Fate) -> Result<()>,
    ) -> Result<()> {
        Prune { frames, space, fate, visit }.node(&mut self.root, self.levels, 0)
    }

    /// Calls `visit` for each chunk that has an entry, in the order of their keys.
    pub(crate) fn for_each(
        &self,
        frames: &Frames,
        visit: &mut dyn FnMut(u64, Pointer) -> Result<()>,
    ) -> Result<()> {
        self.root.for_each(frames, self.levels, 0, visit)
    }

    /// Takes all entries out, with their keys.
    pub(crate) fn drain(&mut self, frames: &Frames, space: &mut Space) -> Result<Vec<(u64, Pointer)>> {
        let mut entries = Vec::new();
        self.prune(frames, space, &|_, _| Fate::Drop, &mut |_, key, entry, _| {
            entries.push((key, entry));
            Ok(())
        })?;
        Ok(entries)
    }

    /// Gives the index another number of levels: pages at the top that lead to what is there, or fewer of them, which
    /// there can be if no key needs those that go.
    pub(crate) fn set_levels(&mut self, frames: &Frames, space: &mut Space, levels: u8) -> Result<()> {
        while self.levels > levels {
            let root = std::mem::replace(&mut self.root, Node::Stored(Pointer::Null));
            self.levels -= 1;
            let outside = || frames.damage(Damage::new("an index entry outside the chunk grid"), None);
            self.root = match root {
                Node::Stored(Pointer::Null) => continue,
                mut root => {
                    let nodes = root.edit(frames, space, self.levels, 0)?;
                    let (first, others) = nodes.split_first_mut().ok_or_else(outside)?;
                    if !others.iter().all(Node::is_empty) {
                        return Err(outside());
                    }
                    std::mem::replace(first, Node::Stored(Pointer::Null))
                }
            };
        }
        while self.levels < levels {
            if !self.is_empty() {
                let mut nodes = Box::new([const { Node::Stored(Pointer::Null) }; FANOUT]);
                std::mem::swap(&mut nodes[0], &mut self.root);
                self.root = Node::Edited(nodes);
            }
            self.levels += 1;
        }
        Ok(())
    }

    /// Puts the changed pages in `batch` and gives the pointer for the array's record.
    pub(super) fn flush(&mut self, space: &mut Space, batch: &mut PageBatch) -> Result<Pointer> {
        let pointer = self.root.flush(space, batch, self.levels, 0)?;
        self.root = Node::Stored(pointer);
        Ok(pointer)
    }
}

/// A walk that takes entries out of an index.
struct Prune<'a> {
    frames: &'a Frames,
    space: &'a mut Space,
    fate: &'a dyn Fn(u64, u32) -> Fate,
    visit: &'a mut dyn FnMut(&mut Space, u64, Pointer, Fate) -> Result<()>,
}

impl Prune<'_> {
    /// The part below `node`, whose root is a page of the highest of `levels`.
    fn node(&mut self, node: &mut Node, levels: u8, key: u64) -> Result<()> {
        if let Node::Stored(Pointer::Null) = node {
            return Ok(());
        }
        match self.fate(levels, key) {
            Fate::Keep => Ok(()),
            Fate::Drop => self.drop_all(std::mem::replace(node, Node::Stored(Pointer::Null)), levels, key),
            Fate::Cut => match (levels.checked_sub(1), &*node) {
                (None, Node::Stored(entry)) => (self.visit)(self.space, key, *entry, Fate::Cut),
                (None, Node::Edited(_)) => Ok(()),
                (Some(level), _) => self.page(node, level, key),
            },
        }
    }

    /// The entries of a page, which is taken into memory only if one of them is not kept.
    fn page(&mut self, node: &mut Node, level: u8, key: u64) -> Result<()> {
        let below = |place: u64| key | place << (FANOUT_BITS * u32::from(level));
        if let Node::Stored(pointer) = node {
            let mut buf = Vec::new();
            let page = index::page(self.frames, pointer, level, key, &mut buf)?;
            let mut kept = true;
            for entry in page.entries() {
                let (place, _) = entry.map_err(|damage| self.frames.damage(damage, None))?;
                kept &= self.fate(level, below(place)) == Fate::Keep;
            }
            if kept {
                return Ok(());
            }
        }
        let nodes = node.edit(self.frames, self.space, level, key)?;
        (0u64..).zip(nodes).try_for_each(|(place, node)| self.node(node, level, below(place)))
    }

    fn fate(&self, levels: u8, key: u64) -> Fate {
        (self.fate)(key, FANOUT_BITS * u32::from(levels))
    }

    /// Everything below `node`, one page at a time.
    fn drop_all(&mut self, node: Node, levels: u8, key: u64) -> Result<()> {
        let Prune { frames, space, visit, .. } = self;
        match node {
            Node::Stored(pointer) => index::walk(frames, pointer, levels, key, &mut |met| {
                match met {
                    Met::Page(page) => space.release_frame(&page),
                    Met::Chunk { key, entry } => visit(space, key, entry, Fate::Drop)?,
                    Met::Lost(error) => return Err(error),
                }
                Ok(true)
            }),
            Node::Edited(nodes) => {
                let level = levels.saturating_sub(1);
                (0u64..).zip(*nodes).try_for_each(|(place, node)| {
                    self.drop_all(node, level, key | place << (FANOUT_BITS * u32::from(level)))
                })
            }
        }
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        match self {
            Node::Stored(pointer) => *pointer == Pointer::Null,
            Node::Edited(nodes) => nodes.iter().all(Node::is_empty),
        }
    }

    fn for_each(
        &self,
        frames: &Frames,
        levels: u8,
        key: u64,
        visit: &mut dyn FnMut(u64, Pointer) -> Result<()>,
    ) -> Result<()> {
        match self {
            Node::Stored(pointer) => index::walk(frames, *pointer, levels, key, &mut |met| match met {
                Met::Page(_) => Ok(true),
                Met::Chunk { key, entry } => visit(key, entry).map(|()| true),
                Met::Lost(error) => Err(error),
            }),
            Node::Edited(nodes) => {
                let level = levels.saturating_sub(1);
                (0u64..).zip(nodes.iter()).try_for_each(|(place, node)| {
                    node.for_each(frames, level, key | place << (FANOUT_BITS * u32::from(level)), visit)
                })
            }
        }
    }

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
