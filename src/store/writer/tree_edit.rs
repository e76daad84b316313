//! A tree that is being changed: pages are taken into memory as changes reach them, and written anew at a commit.

use super::space::{PageBatch, Space};
use crate::error::{Error, Result};
use crate::format::{
    FRAME_HEADER_LEN, Kind, MAX_INLINE_VALUE, Pointer, TREE_PAGE_TARGET, TreeCell, encode_tree_page,
};
use crate::store::frames::Frames;
use crate::store::tree::{self, Limits};
use std::ops::ControlFlow;

/// A changed copy of a catalog or free-space tree.
pub(super) struct TreeEdit {
    root: Child,
}

enum Child {
    Stored(Pointer),
    Edited(Box<Node>),
}

struct Node {
    level: u8,
    cells: Vec<Cell>,
}

struct Cell {
    key: Box<[u8]>,
    body: Body,
}

enum Body {
    Value(Vec<u8>),
    Blob(Pointer),
    Child(Child),
}

impl Cell {
    /// Bytes of the cell in its page, with its offset.
    fn len(&self) -> usize {
        4 + 2
            + self.key.len()
            + match &self.body {
                Body::Value(value) if value.len() <= MAX_INLINE_VALUE => 4 + value.len(),
                Body::Value(_) | Body::Blob(_) => 4 + Pointer::LEN,
                Body::Child(_) => Pointer::LEN,
            }
    }
}

impl TreeEdit {
    pub(super) fn new(root: Pointer) -> TreeEdit {
        TreeEdit { root: Child::Stored(root) }
    }

    /// The value of `key`, staged or stored.
    pub(super) fn get(&self, frames: &Frames, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (mut child, mut limits) = (&self.root, tree::WHOLE);
        loop {
            let node = match child {
                Child::Stored(pointer) => return tree::get_below(frames, pointer, &limits, key),
                Child::Edited(node) => node,
            };
            let Some(at) = node.position(key) else { return Ok(None) };
            match &node.cells[at].body {
                Body::Child(below) => {
                    child = below;
                    let high = node.cells.get(at + 1).map(|cell| &*cell.key).or(limits.high);
                    limits = Limits { level: node.level.checked_sub(1), low: &node.cells[at].key, high };
                }
                Body::Value(value) => return Ok(Some(value.clone())),
                Body::Blob(pointer) => return frames.blob(pointer).map(Some),
            }
        }
    }

    /// Calls `visit` for each key from `from` on, staged or stored, in order, until it returns `Break`. Holds one stored
    /// page of each level.
    pub(super) fn entries(
        &self,
        frames: &Frames,
        from: &[u8],
        visit: &mut tree::VisitEntry<'_>,
    ) -> Result<()> {
        self.root.entries(frames, &tree::WHOLE, from, visit).map(|_| ())
    }

    /// Sets the value of `key`.
    pub(super) fn insert(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        key: &[u8],
        value: Vec<u8>,
    ) -> Result<()> {
        self.put(frames, space, key, Body::Value(value))
    }

    fn put(&mut self, frames: &Frames, space: &mut Space, key: &[u8], body: Body) -> Result<()> {
        if let Child::Stored(Pointer::Null) = self.root {
            self.root = Child::Edited(Box::new(Node { level: 0, cells: Vec::new() }));
        }
        let root = self.root.edit(frames, space, &tree::WHOLE)?;
        let siblings = root.insert(frames, space, None, key, body)?;
        if !siblings.is_empty() {
            let level = root.level + 1;
            let first = std::mem::replace(&mut self.root, Child::Stored(Pointer::Null));
            let mut cells = vec![Cell { key: Box::default(), body: Body::Child(first) }];
            cells.extend(siblings);
            self.root = Child::Edited(Box::new(Node { level, cells }));
        }
        Ok(())
    }

    /// Takes `key` out; `false` if it was not there.
    pub(super) fn remove(&mut self, frames: &Frames, space: &mut Space, key: &[u8]) -> Result<bool> {
        let gone = self.take(frames, space, key)?;
        if let Some(Body::Blob(pointer)) = &gone {
            space.release_frame(pointer);
        }
        Ok(gone.is_some())
    }

    /// Gives what `key` has to `to` instead; `false` if it was not there. A blob stays where it is.
    pub(super) fn rename(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        key: &[u8],
        to: &[u8],
    ) -> Result<bool> {
        match self.take(frames, space, key)? {
            Some(body) => self.put(frames, space, to, body).map(|()| true),
            None => Ok(false),
        }
    }

    fn take(&mut self, frames: &Frames, space: &mut Space, key: &[u8]) -> Result<Option<Body>> {
        if !self.has(frames, key)? {
            return Ok(None);
        }
        let root = self.root.edit(frames, space, &tree::WHOLE)?;
        let gone = root.remove(frames, space, None, key)?;
        if root.cells.is_empty() {
            self.root = Child::Stored(Pointer::Null);
        }
        Ok(gone)
    }

    /// Whether there is such a key, staged or stored.
    fn has(&self, frames: &Frames, key: &[u8]) -> Result<bool> {
        let mut found = false;
        self.entries(frames, key, &mut |first, _| {
            found = first == key;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Puts the changed pages in `batch` and gives the pointer to the root page.
    pub(super) fn flush(&mut self, space: &mut Space, batch: &mut PageBatch) -> Result<Pointer> {
        let pointer = self.root.flush(space, batch)?;
        self.root = Child::Stored(pointer);
        Ok(pointer)
    }
}

impl Child {
    /// The page in memory. The stored one is let go.
    fn edit(&mut self, frames: &Frames, space: &mut Space, limits: &Limits<'_>) -> Result<&mut Node> {
        if let Child::Stored(pointer) = self {
            let node = Node::load(frames, pointer, limits)?;
            space.release_frame(pointer);
            *self = Child::Edited(Box::new(node));
        }
        match self {
            Child::Edited(node) => Ok(node),
            Child::Stored(_) => {
                Err(Error::InvalidState { what: "a tree page was not taken into memory".into() })
            }
        }
    }

    fn entries(
        &self,
        frames: &Frames,
        limits: &Limits<'_>,
        from: &[u8],
        visit: &mut tree::VisitEntry<'_>,
    ) -> Result<ControlFlow<()>> {
        let node = match self {
            Child::Stored(pointer) => return tree::entries_below(frames, pointer, limits, from, visit),
            Child::Edited(node) => node,
        };
        let first = node.cells.partition_point(|cell| *cell.key < *from);
        let first = if node.level > 0 { first.saturating_sub(1) } else { first };
        for (at, cell) in node.cells.iter().enumerate().skip(first) {
            let step = match &cell.body {
                Body::Child(below) => {
                    let high = node.cells.get(at + 1).map(|cell| &*cell.key).or(limits.high);
                    let limits = Limits { level: node.level.checked_sub(1), low: &cell.key, high };
                    below.entries(frames, &limits, from, visit)?
                }
                Body::Value(value) => visit(&cell.key, &TreeCell::Inline(value))?,
                Body::Blob(pointer) => visit(&cell.key, &TreeCell::Blob(*pointer))?,
            };
            if step.is_break() {
                return Ok(step);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn flush(&mut self, space: &mut Space, batch: &mut PageBatch) -> Result<Pointer> {
        let node = match self {
            Child::Stored(pointer) => return Ok(*pointer),
            Child::Edited(node) => node,
        };
        for cell in &mut node.cells {
            match &mut cell.body {
                Body::Value(value) if value.len() > MAX_INLINE_VALUE => {
                    let mut blob = vec![0; FRAME_HEADER_LEN];
                    blob.append(value);
                    cell.body = Body::Blob(batch.add(space, Kind::Blob, blob)?);
                }
                Body::Child(child) => *child = Child::Stored(child.flush(space, batch)?),
                _ => {}
            }
        }
        let cells = node.cells.iter().map(|cell| {
            let body = match &cell.body {
                Body::Value(value) => TreeCell::Inline(value),
                Body::Blob(pointer) => TreeCell::Blob(*pointer),
                Body::Child(Child::Stored(pointer)) => TreeCell::Child(*pointer),
                Body::Child(Child::Edited(_)) => TreeCell::Child(Pointer::Null),
            };
            (&*cell.key, body)
        });
        let page = encode_tree_page(node.level, cells);
        batch.add(space, Kind::Tree, page)
    }
}

impl Node {
    fn load(frames: &Frames, pointer: &Pointer, limits: &Limits<'_>) -> Result<Node> {
        let mut buf = Vec::new();
        let page = tree::page(frames, pointer, limits, &mut buf)?;
        let cells = page.cells().iter().map(|(key, cell)| Cell {
            key: (*key).into(),
            body: match cell {
                TreeCell::Inline(value) => Body::Value(value.to_vec()),
                TreeCell::Blob(pointer) => Body::Blob(*pointer),
                TreeCell::Child(pointer) => Body::Child(Child::Stored(*pointer)),
            },
        });
        Ok(Node { level: page.level(), cells: cells.collect() })
    }

    /// The cell that has `key`, or below which it would be.
    fn position(&self, key: &[u8]) -> Option<usize> {
        let after = self.cells.partition_point(|cell| *cell.key <= *key);
        after.checked_sub(1).filter(|&at| self.level > 0 || *self.cells[at].key == *key)
    }

    /// The page below cell `at`, in memory, and the bound of its keys. `high` is that of this page.
    fn below<'a>(
        &'a mut self,
        frames: &Frames,
        space: &mut Space,
        high: Option<&'a [u8]>,
        at: usize,
    ) -> Result<(&'a mut Node, Option<&'a [u8]>)> {
        let (upto, after) = self.cells.split_at_mut(at + 1);
        let high = after.first().map(|cell| &*cell.key).or(high);
        match &mut upto[at] {
            Cell { key, body: Body::Child(child) } => {
                let limits = Limits { level: self.level.checked_sub(1), low: key, high };
                Ok((child.edit(frames, space, &limits)?, high))
            }
            _ => Err(Error::InvalidState { what: "an inner tree page without a page below".into() }),
        }
    }

    /// Sets a value below; returns the pages to the right that this one had to be split into.
    fn insert(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        high: Option<&[u8]>,
        key: &[u8],
        body: Body,
    ) -> Result<Vec<Cell>> {
        let after = self.cells.partition_point(|cell| *cell.key <= *key);
        let touched = if self.level > 0 {
            let at = after.saturating_sub(1);
            let (child, high) = self.below(frames, space, high, at)?;
            let siblings = child.insert(frames, space, high, key, body)?;
            let touched = at + siblings.len();
            self.cells.splice(at + 1..at + 1, siblings);
            touched
        } else if after > 0 && *self.cells[after - 1].key == *key {
            let old = std::mem::replace(&mut self.cells[after - 1].body, body);
            if let Body::Blob(pointer) = old {
                space.release_frame(&pointer);
            }
            after - 1
        } else {
            self.cells.insert(after, Cell { key: key.into(), body });
            after
        };
        Ok(self.split(touched))
    }

    /// Splits the page while it is too large. Where cells are added at the end, as when names come in order, the left
    /// page stays full; elsewhere both get half.
    fn split(&mut self, touched: usize) -> Vec<Cell> {
        let mut siblings = Vec::new();
        let at_the_end = touched + 1 >= self.cells.len();
        loop {
            let total: usize = FRAME_HEADER_LEN + 8 + self.cells.iter().map(Cell::len).sum::<usize>();
            if total <= TREE_PAGE_TARGET || self.cells.len() < 2 {
                siblings.reverse();
                return siblings;
            }
            let share = if at_the_end { total } else { total / 2 };
            let mut left = FRAME_HEADER_LEN + 8;
            let fits = self.cells.iter().take_while(|cell| {
                left += cell.len();
                left <= share.min(TREE_PAGE_TARGET)
            });
            let at = fits.count().clamp(1, self.cells.len() - 1);
            let cells = self.cells.split_off(at);
            let mut right = Node { level: self.level, cells };
            let key = right.cells[0].key.clone();
            let more = right.split(usize::MAX - 1);
            siblings.extend(more.into_iter().rev());
            siblings.push(Cell { key, body: Body::Child(Child::Edited(Box::new(right))) });
        }
    }

    /// Takes a key out; returns what it had.
    fn remove(
        &mut self,
        frames: &Frames,
        space: &mut Space,
        high: Option<&[u8]>,
        key: &[u8],
    ) -> Result<Option<Body>> {
        let Some(at) = self.position(key) else { return Ok(None) };
        let mut gone = None;
        if self.level > 0 {
            let (node, high) = self.below(frames, space, high, at)?;
            gone = node.remove(frames, space, high, key)?;
            if !node.cells.is_empty() {
                return Ok(gone);
            }
        }
        let cell = self.cells.remove(at);
        if at == 0 && !self.cells.is_empty() {
            self.lower(frames, space, high, &cell.key)?;
        }
        if self.level == 0 {
            gone = Some(cell.body);
        }
        Ok(gone)
    }

    /// Makes `low` the lower bound of the page: an inner page has it as its first key, and so have the inner pages at the
    /// left edge below it.
    fn lower(&mut self, frames: &Frames, space: &mut Space, high: Option<&[u8]>, low: &[u8]) -> Result<()> {
        if self.level == 0 {
            return Ok(());
        }
        if self.level > 1 {
            let (node, high) = self.below(frames, space, high, 0)?;
            node.lower(frames, space, high, low)?;
        }
        self.cells[0].key = low.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Bounds, DATA_START};
    use crate::storage::{MemoryStorage, Storage};
    use std::path::Path;
    use std::sync::Arc;

    /// Trees in memory.
    struct Trees {
        file: Vec<u8>,
        space: Space,
    }

    impl Trees {
        fn frames(&self) -> Frames {
            let end = self.space.end();
            let source = MemoryStorage::new(Arc::new(self.file.clone())).source(end, false).unwrap();
            Frames::new(
                source,
                Bounds { end, generation: self.space.generation() },
                Path::new("<memory>").into(),
            )
        }

        fn flush(&mut self, mut tree: TreeEdit) -> Pointer {
            let mut batch = PageBatch::default();
            let root = tree.flush(&mut self.space, &mut batch).unwrap();
            self.file.resize(self.space.end() as usize, 0);
            for (offset, bytes) in batch.runs() {
                self.file[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            root
        }
    }

    fn key(n: usize) -> Vec<u8> {
        format!("{n:0100}").into_bytes()
    }

    #[test]
    fn a_tree_can_lose_all_keys_below_an_inner_page() {
        const COUNT: usize = 3000;
        let mut trees = Trees { file: vec![0; DATA_START as usize], space: Space::new(DATA_START, 1) };
        let (mut tree, frames) = (TreeEdit::new(Pointer::Null), trees.frames());
        for n in 0..COUNT {
            tree.insert(&frames, &mut trees.space, &key(n), vec![n as u8]).unwrap();
        }
        let full = trees.flush(tree);
        // What the tree is made of is not free at once when it is let go.
        trees.space.advance(None);
        let frames = trees.frames();
        let level = tree::page(&frames, &full, &tree::WHOLE, &mut Vec::new()).unwrap().level();
        assert_eq!(level, 2, "the test needs a tree of three levels");
        for (from, to) in [(0, 2000), (1000, 2000), (0, COUNT - 1), (1, COUNT)] {
            let mut tree = TreeEdit::new(full);
            for n in from..to {
                assert!(tree.remove(&frames, &mut trees.space, &key(n)).unwrap());
            }
            let root = trees.flush(tree);
            let frames = trees.frames();
            for n in 0..COUNT {
                let found = tree::get(&frames, &root, &key(n)).unwrap();
                assert_eq!(found, (!(from..to).contains(&n)).then(|| vec![n as u8]), "{from}..{to}: {n}");
            }
            let mut keys = 0;
            tree::scan(&frames, &root, b"", &mut |met| {
                match met {
                    tree::Met::Lost(error) => panic!("{error}"),
                    tree::Met::Entry { .. } => keys += 1,
                    tree::Met::Page(_) => {}
                }
                ControlFlow::Continue(())
            });
            assert_eq!(keys, COUNT - (to - from));
        }
    }
}
