//! Assembles brick files from SPEC.md alone, byte by byte: nothing of the library is used here.
//!
//! A [`Forge`] appends extents to a file. Each structure has a name, and [`Forge::change`] registers an edit of the
//! bytes of a named structure: it is applied before lengths and checksums are computed, so that the file that comes out
//! is wrong in that one respect only. The names that a structure `x` gives to its parts are
//!
//! | name | bytes |
//! | --- | --- |
//! | `x` | the frame (of a chunk: header and block table), before its header is filled in |
//! | `x sealed` | the same, with the header, before its checksum is taken |
//! | `x pointer` | the 40 bytes of the pointer to it |
//! | `x block n` | the stored bytes of block n of a chunk |
//! | `x payload` | the items of a raw chunk |
//!
//! and further `superblock`, `root n` (2048-byte records, before the checksum), `page n` (whole pages of the file's
//! first four) and `file`.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

mod sample;

#[allow(unused_imports, reason = "each test program uses a part")]
pub use sample::{Contents, Dense, sample, sample_with};

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use twox_hash::XxHash3_64;

pub const DATA_START: u64 = 16384;
pub const INDEX: u8 = 1;
pub const CHUNK: u8 = 2;
pub const CONSTANT: u8 = 3;
pub const PIECES: u8 = 4;
pub const RAW_TABLE: u8 = 5;
pub const TREE: u8 = 6;
pub const FREE: u8 = 8;
pub const BLOB: u8 = 7;

pub const NULL: [u8; 40] = [0; 40];

/// The 40 bytes of a pointer.
pub type Pointer = [u8; 40];
/// An edit of some bytes.
pub type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

pub fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

pub fn pointer(kind: u8, offset: u64, len: u64, birth: u64, sum: u64, checked: u32) -> Pointer {
    let mut bytes = Vec::new();
    for number in [offset, len, birth, sum] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&checked.to_le_bytes());
    bytes.extend_from_slice(&[kind, 0, 0, 0]);
    bytes.try_into().unwrap()
}

/// A constant chunk.
pub fn constant(item: &[u8]) -> Pointer {
    let mut bytes = NULL;
    bytes[..item.len()].copy_from_slice(item);
    bytes[36] = CONSTANT;
    bytes
}

/// Sets the bytes at `at` to a little-endian number.
pub fn set8(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub fn set4(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Adds to a number.
pub fn add8(bytes: &mut [u8], at: usize, more: i64) {
    let value = get8(bytes, at);
    set8(bytes, at, value.wrapping_add_signed(more));
}

pub fn get8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub fn le<const N: usize>(numbers: &[[u8; N]]) -> Vec<u8> {
    numbers.concat()
}

/// A file in the making.
pub struct Forge<'a> {
    file: Vec<u8>,
    changes: Vec<(String, Change<'a>, Cell<bool>)>,
    /// The structures that were made: their names and lengths.
    pub made: Rc<RefCell<Vec<(String, usize)>>>,
    pub generation: u64,
    /// Flags of the newest root, its boot id and its alive generations.
    pub flags: u64,
    pub boot_id: [u8; 16],
    pub alive: Vec<(u64, u64)>,
}

impl<'a> Forge<'a> {
    pub fn new() -> Self {
        let file = vec![0; DATA_START as usize];
        let (changes, made, alive) = (Vec::new(), Rc::default(), Vec::new());
        Forge { file, changes, made, generation: 9, flags: 0, boot_id: [0; 16], alive }
    }

    /// Registers an edit. Every edit must meet its bytes, or [`Forge::finish`] panics.
    pub fn change(&mut self, name: &str, change: Change<'a>) {
        self.changes.push((name.to_owned(), change, Cell::new(false)));
    }

    pub fn edit(&self, name: &str, bytes: &mut Vec<u8>) {
        self.made.borrow_mut().push((name.to_owned(), bytes.len()));
        for (_, change, met) in self.changes.iter().filter(|(wanted, ..)| wanted == name) {
            change(bytes);
            met.set(true);
        }
    }

    fn edit_array<const N: usize>(&self, name: &str, bytes: [u8; N]) -> [u8; N] {
        let mut edited = bytes.to_vec();
        self.edit(name, &mut edited);
        edited.try_into().expect("an edit of a fixed number of bytes")
    }

    /// Where the next extent will be.
    pub fn end(&self) -> u64 {
        self.file.len() as u64
    }

    /// Appends an extent and its padding.
    pub fn extent(&mut self, bytes: &[u8]) -> u64 {
        let offset = self.end();
        self.file.extend_from_slice(bytes);
        self.file.resize(self.file.len().next_multiple_of(64), 0);
        offset
    }

    /// Overwrites a part of the file, as a hostile program would that makes extents overlap.
    pub fn poke(&mut self, offset: u64, bytes: &[u8]) {
        self.file[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    }

    /// Appends a frame: `head` with 16 bytes of room for the header, which the checksum covers, and `rest`.
    pub fn frame(&mut self, name: &str, kind: u8, mut head: Vec<u8>, rest: &[u8]) -> Pointer {
        self.edit(name, &mut head);
        let len = (head.len() + rest.len()) as u64;
        let checked = head.len() as u32;
        let tag: &[u8; 4] = match kind {
            INDEX => b"INDX",
            CHUNK => b"CHNK",
            PIECES => b"PIEC",
            RAW_TABLE => b"RAWT",
            TREE => b"TREE",
            BLOB => b"BLOB",
            FREE => b"FREE",
            _ => b"????",
        };
        head[..4].copy_from_slice(tag);
        set4(&mut head, 4, checked);
        set8(&mut head, 8, len);
        self.edit(&format!("{name} sealed"), &mut head);
        let sum = checksum(&head);
        head.extend_from_slice(rest);
        let offset = self.extent(&head);
        self.edit_array(&format!("{name} pointer"), pointer(kind, offset, len, self.generation, sum, checked))
    }

    /// Appends a chunk frame. `blocks` are pairs of coding and stored bytes.
    pub fn chunk(
        &mut self,
        name: &str,
        filter: (u8, u8, u32),
        valid: &[u64],
        blocks: &[(u8, Vec<u8>)],
    ) -> Pointer {
        let (coding, word, stride) = filter;
        let mut head = vec![0; 16];
        head.extend_from_slice(&[coding, valid.len() as u8, word, 0]);
        head.extend_from_slice(&stride.to_le_bytes());
        head.extend_from_slice(&(blocks.len() as u64).to_le_bytes());
        valid.iter().for_each(|len| head.extend_from_slice(&len.to_le_bytes()));
        let mut stored = Vec::new();
        for (n, (coding, bytes)) in blocks.iter().enumerate() {
            let mut bytes = bytes.clone();
            self.edit(&format!("{name} block {n}"), &mut bytes);
            stored.extend_from_slice(&bytes);
            head.extend_from_slice(&(stored.len() as u64 | u64::from(*coding) << 56).to_le_bytes());
            head.extend_from_slice(&checksum(&bytes).to_le_bytes());
        }
        self.frame(name, CHUNK, head, &stored)
    }

    /// Appends the payload and the table of a raw chunk.
    pub fn raw(&mut self, name: &str, valid: &[u64], payload: &[u8]) -> Pointer {
        let mut payload = payload.to_vec();
        self.edit(&format!("{name} payload"), &mut payload);
        let offset = self.extent(&payload);
        let mut head = vec![0; 16];
        head.extend_from_slice(&[valid.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
        for number in [offset, payload.len() as u64].iter().chain(valid) {
            head.extend_from_slice(&number.to_le_bytes());
        }
        payload.chunks(65536).for_each(|span| head.extend_from_slice(&checksum(span).to_le_bytes()));
        self.frame(name, RAW_TABLE, head, &[])
    }

    pub fn pieces(&mut self, name: &str, rows: u64, pieces: &[(u64, Pointer)]) -> Pointer {
        let mut head = vec![0; 16];
        head.extend_from_slice(&(pieces.len() as u32).to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&rows.to_le_bytes());
        for (first, pointer) in pieces {
            head.extend_from_slice(&first.to_le_bytes());
            head.extend_from_slice(pointer);
        }
        self.frame(name, PIECES, head, &[])
    }

    /// Appends an index page. `entries` ascend by place.
    pub fn index(&mut self, name: &str, level: u8, prefix: u64, entries: &[(u64, Pointer)]) -> Pointer {
        let mut head = vec![0; 16];
        head.extend_from_slice(&[level, 0, 0, 0, 0, 0, 0, 0]);
        head.extend_from_slice(&prefix.to_le_bytes());
        head.extend_from_slice(
            &entries.iter().fold(0u64, |bits, (place, _)| bits | 1 << place).to_le_bytes(),
        );
        entries.iter().for_each(|(_, pointer)| head.extend_from_slice(pointer));
        self.frame(name, INDEX, head, &[])
    }

    /// Appends a tree page. A cell is its key and what follows it, see [`inline`] and [`in_blob`].
    pub fn tree<K: AsRef<[u8]>>(&mut self, name: &str, level: u8, cells: &[(K, Vec<u8>)]) -> Pointer {
        let page = tree_page(level, cells);
        self.frame(name, TREE, page, &[])
    }

    pub fn blob(&mut self, name: &str, value: &[u8]) -> Pointer {
        let mut head = vec![0; 16];
        head.extend_from_slice(value);
        self.frame(name, BLOB, head, &[])
    }

    /// A list of free space: offset, length, birth and freed of each entry.
    pub fn free_list(&mut self, name: &str, before: Pointer, entries: &[[u64; 4]]) -> Pointer {
        let mut head = vec![0; 16];
        head.extend_from_slice(&before);
        head.extend_from_slice(&(entries.len() as u64).to_le_bytes());
        entries.iter().flatten().for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
        head.extend_from_slice(&[0; 32]);
        self.frame(name, FREE, head, &[])
    }

    /// A catalog of one leaf, or of leaves below one inner page where one would be too large.
    pub fn catalog(&mut self, mut entries: Vec<(Vec<u8>, Vec<u8>)>) -> Pointer {
        entries.sort();
        let mut leaves: Vec<Vec<(Vec<u8>, Vec<u8>)>> = vec![Vec::new()];
        let mut len = 0;
        for entry in entries {
            len += entry.0.len() + entry.1.len() + 10;
            if len > 60_000 {
                leaves.push(Vec::new());
                len = 0;
            }
            leaves.last_mut().unwrap().push(entry);
        }
        let mut pages: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (n, leaf) in leaves.iter().enumerate() {
            let key = if n == 0 { Vec::new() } else { leaf[0].0.clone() };
            let page = self.tree(&format!("leaf {n}"), 0, leaf);
            pages.push((key, page.to_vec()));
        }
        if pages.len() == 1 {
            return pages[0].1[..].try_into().unwrap();
        }
        self.tree("catalog", 1, &pages)
    }

    /// The file, with the newest root in page 0 and two of generation 0 in the others.
    pub fn finish(self, catalog: Pointer, free: Pointer) -> Vec<u8> {
        let end = self.end();
        self.finish_at(catalog, free, end)
    }

    /// As [`Forge::finish`], with a logical end of its own.
    pub fn finish_at(mut self, catalog: Pointer, free: Pointer, end: u64) -> Vec<u8> {
        let (catalog, free) =
            (self.edit_array("catalog root pointer", catalog), self.edit_array("free pointer", free));
        let mut superblock = vec![0; 2040];
        superblock[..8].copy_from_slice(&[0x89, 0x42, 0x52, 0x4B, 0x0D, 0x0A, 0x1A, 0x0A]);
        superblock[8] = 1;
        superblock[32..48].copy_from_slice(&[0xF0; 16]);
        self.edit("superblock", &mut superblock);
        let mut pages = vec![twin_page(&superblock)];
        for n in 0..3 {
            let newest = n == 0;
            let mut root = vec![0; 2040];
            root[..8].copy_from_slice(b"BRKROOT\0");
            set8(&mut root, 16, 100 + n);
            set8(&mut root, 24, if newest { end } else { DATA_START });
            if newest {
                set8(&mut root, 8, self.generation);
                root[32..72].copy_from_slice(&catalog);
                root[72..112].copy_from_slice(&free);
                set8(&mut root, 112, self.flags);
                root[120..136].copy_from_slice(&self.boot_id);
                set8(&mut root, 136, self.alive.len() as u64);
                for (n, (generation, id)) in self.alive.iter().enumerate() {
                    set8(&mut root, 144 + 16 * n, *generation);
                    set8(&mut root, 152 + 16 * n, *id);
                }
            }
            self.edit(&format!("root {n}"), &mut root);
            pages.push(twin_page(&root));
        }
        for (n, mut page) in pages.into_iter().enumerate() {
            self.edit(&format!("page {n}"), &mut page);
            self.file[n * 4096..(n + 1) * 4096].copy_from_slice(&page);
        }
        let mut file = std::mem::take(&mut self.file);
        self.edit("file", &mut file);
        for (name, _, met) in &self.changes {
            assert!(met.get(), "the forged file has no '{name}' to change");
        }
        file
    }
}

/// A page that holds a record of 2040 bytes and its checksum twice.
pub fn twin_page(record: &[u8]) -> Vec<u8> {
    let mut copy = record.to_vec();
    copy.extend_from_slice(&checksum(record).to_le_bytes());
    assert_eq!(copy.len(), 2048);
    copy.repeat(2)
}

/// The bytes of a tree page, with room for the frame header.
pub fn tree_page<K: AsRef<[u8]>>(level: u8, cells: &[(K, Vec<u8>)]) -> Vec<u8> {
    let mut page = vec![0; 16];
    page.extend_from_slice(&[level, 0, 0, 0]);
    page.extend_from_slice(&(cells.len() as u32).to_le_bytes());
    let mut at = 24 + 4 * cells.len();
    for (key, value) in cells {
        page.extend_from_slice(&(at as u32).to_le_bytes());
        at += 2 + key.as_ref().len() + value.len();
    }
    for (key, value) in cells {
        page.extend_from_slice(&(key.as_ref().len() as u16).to_le_bytes());
        page.extend_from_slice(key.as_ref());
        page.extend_from_slice(value);
    }
    page
}

/// A leaf cell's value in the page.
pub fn inline(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u32).to_le_bytes(), value].concat()
}

/// A leaf cell's value in a blob.
pub fn in_blob(blob: &Pointer) -> Vec<u8> {
    [&(1u32 << 31).to_le_bytes(), &blob[..]].concat()
}

/// A dtype record.
pub fn dtype(class: u8, itemsize: u32) -> Vec<u8> {
    dtype_with(class, 0, itemsize, 0, "")
}

pub fn dtype_with(class: u8, unit: u8, itemsize: u32, multiple: u32, description: &str) -> Vec<u8> {
    let mut bytes = vec![class, unit, 0, 0];
    for number in [itemsize, multiple, description.len() as u32] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(description.as_bytes());
    bytes
}

/// An array record.
#[derive(Clone)]
pub struct Record {
    pub ndim: u8,
    pub layout: u8,
    pub key_bits: Vec<u8>,
    pub index: Pointer,
    pub shape: Vec<u64>,
    pub chunks: Vec<u64>,
    pub blocks: Vec<u64>,
    pub dtype: Vec<u8>,
    pub fill: Vec<u8>,
    /// Bytes 4 to 11: how chunks are to be coded.
    pub codec: [u8; 8],
    /// Bytes 16 to 31: stored bytes and chunks.
    pub stored: [u64; 2],
}

impl Record {
    /// An array of the blocks layout with a fill value of zero bytes.
    pub fn new(dtype: Vec<u8>, shape: &[u64], chunks: &[u64], blocks: &[u64], key_bits: &[u8]) -> Record {
        let itemsize = u32::from_le_bytes(dtype[4..8].try_into().unwrap()) as usize;
        Record {
            ndim: shape.len() as u8,
            layout: 0,
            key_bits: key_bits.to_vec(),
            index: NULL,
            shape: shape.to_vec(),
            chunks: chunks.to_vec(),
            blocks: blocks.to_vec(),
            dtype,
            fill: vec![0; itemsize.min(64)],
            codec: [255, 0, 1, 0, 0, 0, 0, 0],
            stored: [0; 2],
        }
    }

    pub fn raw(self) -> Record {
        Record { layout: 1, ..self }
    }

    pub fn fill(self, item: &[u8]) -> Record {
        Record { fill: item.to_vec(), ..self }
    }

    /// What the record says of stored chunks: their number, and the frames, tables and payloads behind their entries.
    pub fn stores(self, chunks: u64, frames: &[Pointer], payloads: u64) -> Record {
        let bytes = frames.iter().fold(payloads, |bytes, frame| bytes.wrapping_add(get8(frame, 8)));
        Record { stored: [bytes, chunks], ..self }
    }

    pub fn index(self, index: Pointer) -> Record {
        Record { index, ..self }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![2, self.ndim, self.layout, self.key_bits.len() as u8];
        bytes.extend_from_slice(&self.codec);
        bytes.extend_from_slice(&(self.dtype.len() as u32).to_le_bytes());
        self.stored.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&self.index);
        for len in self.shape.iter().chain(&self.chunks).chain(&self.blocks) {
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        bytes.extend_from_slice(&self.key_bits);
        bytes.extend_from_slice(&self.dtype);
        bytes.extend_from_slice(&self.fill);
        bytes
    }
}

/// A ragged array record. `element` is 0 for strings, 1 for values.
pub fn ragged(element: u8, shape: &[u64], offsets: &[u8], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![3, element, shape.len() as u8, 0, 0, 0, 0, 0];
    shape.iter().for_each(|len| bytes.extend_from_slice(&len.to_le_bytes()));
    for part in [offsets, values] {
        bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// The blocks of a chunk in C order, as the items of their boxes: `item(coordinates)` gives an item's bytes.
pub fn block_items(valid: &[u64], blocks: &[u64], item: &dyn Fn(&[u64]) -> Vec<u8>) -> Vec<Vec<u8>> {
    let grid: Vec<u64> = valid.iter().zip(blocks).map(|(valid, block)| valid.div_ceil(*block)).collect();
    positions(&grid)
        .into_iter()
        .map(|at| {
            let corner: Vec<u64> = at.iter().zip(blocks).map(|(at, block)| at * block).collect();
            let shape: Vec<u64> = corner
                .iter()
                .zip(blocks.iter().zip(valid))
                .map(|(at, (block, valid))| *block.min(&(valid - at)))
                .collect();
            let items = positions(&shape).into_iter();
            items
                .flat_map(|at| {
                    item(&at.iter().zip(&corner).map(|(at, corner)| at + corner).collect::<Vec<_>>())
                })
                .collect()
        })
        .collect()
}

/// All positions of a box in C order.
pub fn positions(shape: &[u64]) -> Vec<Vec<u64>> {
    let total: u64 = shape.iter().product();
    let at = |mut n: u64| {
        let mut at = vec![0; shape.len()];
        for dim in (0..shape.len()).rev() {
            at[dim] = n % shape[dim];
            n /= shape[dim];
        }
        at
    };
    (0..total).map(at).collect()
}

/// A zstd frame of one stored block: what zstd itself writes for bytes that it cannot make smaller.
pub fn zstd_stored(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 1 << 17);
    let mut frame = zstd_header();
    frame.extend_from_slice(&zstd_block(0, bytes.len()));
    frame.extend_from_slice(bytes);
    frame
}

/// A zstd frame of `len` times `byte`: four bytes for each 128 KiB.
pub fn zstd_repeated(byte: u8, len: usize) -> Vec<u8> {
    let mut frame = zstd_header();
    let blocks = len.div_ceil(1 << 17).max(1);
    for n in 0..blocks {
        let here = (len - (n << 17)).min(1 << 17);
        let mut header = zstd_block(1, here);
        header[0] &= if n + 1 == blocks { 0xFF } else { 0xFE };
        frame.extend_from_slice(&header);
        frame.push(byte);
    }
    frame
}

/// Magic, no content size, no checksum, no dictionary, a window of 1 MiB.
fn zstd_header() -> Vec<u8> {
    vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50]
}

/// The header of a last block of a kind: 0 stored, 1 repeated.
fn zstd_block(kind: u32, len: usize) -> [u8; 3] {
    let header = (1 | kind << 1 | (len as u32) << 3).to_le_bytes();
    [header[0], header[1], header[2]]
}

/// The stored bytes of a planes block: one stream for each byte of the word. `kinds` says how each is stored: 1 raw, 2
/// zstd, 3 runs; a plane of one value is stored as constant with 0.
pub fn planes(items: &[u8], word: usize, kinds: &[u32]) -> Vec<u8> {
    let (mut directory, mut streams) = (Vec::new(), Vec::new());
    for k in 0..word {
        let plane: Vec<u8> = items.iter().skip(k).step_by(word).copied().collect();
        let (kind, low) = match kinds[k % kinds.len()] {
            0 => (0, u32::from(plane[0])),
            1 => {
                streams.extend_from_slice(&plane);
                (1, plane.len() as u32)
            }
            2 => {
                let frame = zstd_stored(&plane);
                streams.extend_from_slice(&frame);
                (2, frame.len() as u32)
            }
            _ => {
                let runs: Vec<u8> = plane
                    .chunk_by(|a, b| a == b)
                    .flat_map(|run| run.chunks(256))
                    .flat_map(|run| [run[0], (run.len() - 1) as u8])
                    .collect();
                streams.extend_from_slice(&runs);
                (3, runs.len() as u32)
            }
        };
        directory.extend_from_slice(&(kind << 30 | low).to_le_bytes());
    }
    directory.extend_from_slice(&streams);
    directory
}

/// The differences of words of 1, 2, 4 or 8 bytes, as coding 4 stores them.
pub fn differences(items: &[u8], word: usize, stride: usize) -> Vec<u8> {
    let bits = 8 * word as u32;
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let words: Vec<u64> = items
        .chunks_exact(word)
        .map(|bytes| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        .collect();
    let mut out = Vec::new();
    for (i, &w) in words.iter().enumerate() {
        let before = if i < stride { 0 } else { words[i - stride] };
        let d = w.wrapping_sub(before) & mask;
        let sign = if d >> (bits - 1) & 1 == 1 { mask } else { 0 };
        let z = (d << 1 & mask) ^ sign;
        out.extend_from_slice(&z.to_le_bytes()[..word]);
    }
    out
}
