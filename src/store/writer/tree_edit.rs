//! A tree that is being changed: pages are taken into memory as changes reach them, and written anew at a commit.

use super::space::{PageBatch, Space};
use crate::error::{Damage, Error, Result};
use crate::format::{
    FRAME_HEADER_LEN, Kind, MAX_INLINE_VALUE, Pointer, TREE_PAGE_TARGET, TreeCell, TreePage, encode_tree_page,
};
use crate::store::frames::Frames;
use crate::store::tree;

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
        4 + 2 + self.key.len()
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
        let (mut child, mut low): (_, &[u8]) = (&self.root, b"");
        loop {
            let node = match child {
                Child::Stored(pointer) => return tree::get_below(frames, pointer, low, key),
                Child::Edited(node) => node,
            };
            let Some(at) = node.position(key) else { return Ok(None) };
            match &node.cells[at].body {
                Body::Child(below) => (child, low) = (below, &node.cells[at].key),
                Body::Value(value) => return Ok(Some(value.clone())),
                Body::Blob(pointer) => {
                    let mut buf = Vec::new();
                    let blob = frames.checked(pointer, &mut buf)?;
                    return Ok(Some(blob.get(FRAME_HEADER_LEN..).unwrap_or_default().to_vec()));
                }
            }
        }
    }

    /// Sets the value of `key`.
    pub(super) fn insert(&mut self, frames: &Frames, space: &mut Space, key: &[u8], value: Vec<u8>) -> Result<()> {
        if let Child::Stored(Pointer::Null) = self.root {
            self.root = Child::Edited(Box::new(Node { level: 0, cells: Vec::new() }));
        }
        let root = self.root.edit(frames, space)?;
        let siblings = root.insert(frames, space, key, value)?;
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
        if self.get(frames, key)?.is_none() {
            return Ok(false);
        }
        let root = self.root.edit(frames, space)?;
        root.remove(frames, space, key)?;
        if root.cells.is_empty() {
            self.root = Child::Stored(Pointer::Null);
        }
        Ok(true)
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
    fn edit(&mut self, frames: &Frames, space: &mut Space) -> Result<&mut Node> {
        if let Child::Stored(pointer) = self {
            let node = Node::load(frames, pointer)?;
            space.release_frame(pointer);
            *self = Child::Edited(Box::new(node));
        }
        match self {
            Child::Edited(node) => Ok(node),
            Child::Stored(_) => Err(Error::InvalidState { what: "a tree page was not taken into memory".into() }),
        }
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
    fn load(frames: &Frames, pointer: &Pointer) -> Result<Node> {
        let mut buf = Vec::new();
        let bytes = frames.checked(pointer, &mut buf)?;
        let low = TreePage::first_key(bytes).map_err(|damage: Damage| frames.damage(damage, None))?;
        let page = TreePage::parse(bytes, frames.bounds(), None, low, None)
            .map_err(|damage| frames.damage(damage, None))?;
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

    /// Sets a value below; returns the pages to the right that this one had to be split into.
    fn insert(&mut self, frames: &Frames, space: &mut Space, key: &[u8], value: Vec<u8>) -> Result<Vec<Cell>> {
        let after = self.cells.partition_point(|cell| *cell.key <= *key);
        let touched = if self.level > 0 {
            let at = after.saturating_sub(1);
            let Body::Child(child) = &mut self.cells[at].body else { return Ok(Vec::new()) };
            let siblings = child.edit(frames, space)?.insert(frames, space, key, value)?;
            let touched = at + siblings.len();
            self.cells.splice(at + 1..at + 1, siblings);
            touched
        } else if after > 0 && *self.cells[after - 1].key == *key {
            let old = std::mem::replace(&mut self.cells[after - 1].body, Body::Value(value));
            if let Body::Blob(pointer) = old {
                space.release_frame(&pointer);
            }
            after - 1
        } else {
            self.cells.insert(after, Cell { key: key.into(), body: Body::Value(value) });
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

    fn remove(&mut self, frames: &Frames, space: &mut Space, key: &[u8]) -> Result<()> {
        let Some(at) = self.position(key) else { return Ok(()) };
        let gone = match &mut self.cells[at].body {
            Body::Child(child) => {
                let node = child.edit(frames, space)?;
                node.remove(frames, space, key)?;
                node.cells.is_empty()
            }
            Body::Blob(pointer) => {
                space.release_frame(pointer);
                true
            }
            Body::Value(_) => true,
        };
        if gone {
            let cell = self.cells.remove(at);
            // An inner page keeps its lower bound as its first key.
            if self.level > 0 && at == 0 && let Some(first) = self.cells.first_mut() {
                first.key = cell.key;
            }
        }
        Ok(())
    }
}
