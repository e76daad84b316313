//! The on-disk structures of SPEC.md: how they are laid out, parsed and validated. No I/O happens here.
//!
//! # Overview of types
//!
//! A [`Superblock`] and three [`Root`]s stand in twin pages ([`twin`]). A root carries [`Pointer`]s, checked against
//! the root's [`Bounds`] when they are parsed. A pointer leads to a frame: a [`TreePage`] of the catalog or the
//! free-space tree, an [`IndexPage`] of an array's offsets index, a [`ChunkHeader`] with its block table, a
//! [`RawTable`], or a [`Pieces`] page. Catalog values are [`Record`]s. A parsed type is a checked one: its fields
//! obey SPEC.md, and code that uses them need not ask again.

mod chunk;
mod free;
mod index_page;
mod pointer;
mod record;
mod root;
mod superblock;
mod tree_page;
pub(crate) mod twin;
mod wire;

pub(crate) use chunk::{ChunkHeader, Pieces, RAW_SPAN, RawTable};
pub(crate) use free::{Free, FreeList};
pub(crate) use index_page::{FANOUT_BITS, IndexPage};
pub(crate) use pointer::{Bounds, Extent, FRAME_HEADER_LEN, Kind, Pointer};
pub(crate) use record::{ArrayRecord, CODING_CHOSEN, Layout, RaggedElement, RaggedRecord, Record};
#[cfg(feature = "write")]
pub(crate) use root::MAX_GENERATION;
pub(crate) use root::{MAGIC as ROOT_MAGIC, Root};
pub(crate) use superblock::{MAGIC as SUPERBLOCK_MAGIC, Superblock, SuperblockError};
pub(crate) use tree_page::{TreeCell, TreePage};
pub(crate) use wire::checksum;
#[cfg(feature = "write")]
pub(crate) use {
    chunk::{encode_chunk_header, encode_pieces, encode_raw_table},
    index_page::encode_index_page,
    pointer::seal_frame,
    record::key_bits_of,
    tree_page::{MAX_INLINE_VALUE, TREE_PAGE_TARGET, encode_tree_page},
};

/// The format version that this code reads and writes. Another one is refused: see SPEC.md §4.
pub(crate) const VERSION: u32 = 1;

/// Extents start at multiples of this.
pub(crate) const ALIGNMENT: u64 = 64;

/// The first extent may start here, after the superblock and three root pages.
pub(crate) const DATA_START: u64 = 4 * twin::PAGE_LEN as u64;

/// File offset of root page `slot`.
pub(crate) fn root_offset(slot: usize) -> u64 {
    (slot as u64 + 1) * twin::PAGE_LEN as u64
}
