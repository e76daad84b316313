//! Block encoding: how the items of one block become stored bytes and how they come back.
//!
//! A block is a run of *items* in C order, seen as *words* of one fixed width. The codec knows no files, no dtypes
//! and no shapes: it takes bytes, an item size and a [`Filter`], and reports [`Damage`](crate::error::Damage).
//!
//! # Overview of types
//!
//! - [`Coding`] is the id that stands beside every block: raw, constant, one zstd frame, byte planes, or byte planes
//!   of differences.
//! - [`Filter`] is what the writer settles once per chunk: the coding to aim for, the word width and the stride of
//!   the differences. A block may still be stored as constant or raw.
//! - [`Decoder`] opens a stored block: it checks everything, decodes the zstd streams into its scratch, and returns
//!   an [`OpenBlock`], whose copies cannot fail and write items straight to where the caller wants them.
//! - [`Encoder`] does the reverse, and [`choose`] finds the filter that brings given data to its reader soonest.
//! - [`Profile`] says what "soonest" means: how fast stored bytes arrive.
//!
//! The module `kernel` holds the loops that take words apart and put them together; nothing else in here is unsafe but
//! the writing to caller's memory in `block`.

#[cfg(feature = "bench")]
pub mod bench;
mod block;
mod decode;
mod kernel;
mod planes;
mod runs;

#[cfg(feature = "write")]
mod choose;
#[cfg(feature = "write")]
mod cost;
#[cfg(feature = "write")]
mod encode;
#[cfg(feature = "write")]
mod noise;
#[cfg(all(test, feature = "write"))]
mod tests;

use crate::error::Damage;

pub(crate) use block::OpenBlock;
#[cfg(feature = "write")]
pub(crate) use choose::{choose, is_still_right};
#[cfg(feature = "write")]
pub(crate) use cost::Profile;
pub(crate) use decode::with_decoder;
#[cfg(feature = "write")]
pub(crate) use encode::{Encoder, with_encoder};
pub(crate) use kernel::Stores;

/// The largest block, in decoded bytes.
pub(crate) const MAX_BLOCK: usize = 1 << 24;

/// How one block is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Coding {
    /// The stored bytes are the block's bytes.
    Raw,
    /// The stored bytes are one item, which the block repeats.
    Constant,
    /// One zstd frame of the block's bytes.
    Zstd,
    /// A directory and one stream per byte of the word.
    Planes,
    /// [`Coding::Planes`] of the differences between words that stand `stride` apart.
    Delta,
}

impl Coding {
    /// The id in the file.
    pub(crate) fn id(self) -> u8 {
        match self {
            Coding::Raw => 0,
            Coding::Constant => 1,
            Coding::Zstd => 2,
            Coding::Planes => 3,
            Coding::Delta => 4,
        }
    }

    /// The coding with this id in the file.
    pub(crate) fn from_id(id: u8) -> Result<Self, Damage> {
        Ok(match id {
            0 => Coding::Raw,
            1 => Coding::Constant,
            2 => Coding::Zstd,
            3 => Coding::Planes,
            4 => Coding::Delta,
            _ => return Err(Damage::new(format!("block coding {id} is not known"))),
        })
    }
}

/// What a chunk's blocks are encoded with. `word` and `stride` count for [`Coding::Planes`] and [`Coding::Delta`]
/// only, but are recorded for every chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    /// The coding to aim for; never [`Coding::Constant`], which blocks find by themselves.
    pub(crate) coding: Coding,
    /// Bytes of a word, 1 to 255; divides the item size.
    pub(crate) word: u8,
    /// Distance in words between the two that are subtracted, at least 1.
    pub(crate) stride: u32,
}

impl Filter {
    /// No coding at all.
    pub(crate) const RAW: Filter = Filter { coding: Coding::Raw, word: 1, stride: 1 };
    /// One zstd frame per block.
    pub(crate) const ZSTD: Filter = Filter { coding: Coding::Zstd, word: 1, stride: 1 };

    /// Byte planes of words of `word` bytes.
    pub(crate) fn planes(word: u8) -> Self {
        Filter { coding: Coding::Planes, word, stride: 1 }
    }

    /// Byte planes of the differences between words of `word` bytes that stand `stride` apart.
    pub(crate) fn delta(word: u8, stride: u32) -> Self {
        Filter { coding: Coding::Delta, word, stride }
    }

    /// The stride as it stands in a chunk frame.
    #[cfg(feature = "write")]
    pub(crate) fn recorded_stride(self) -> u32 {
        if self.coding == Coding::Delta { self.stride } else { 0 }
    }

    /// Whether blocks of items of this size can be encoded with this filter.
    pub(crate) fn fits(self, itemsize: usize) -> bool {
        let divides = self.word != 0 && itemsize != 0 && itemsize.is_multiple_of(self.word.into());
        match self.coding {
            Coding::Raw | Coding::Zstd => true,
            Coding::Constant => false,
            Coding::Planes => divides,
            Coding::Delta => divides && matches!(self.word, 1 | 2 | 4 | 8) && self.stride != 0,
        }
    }
}
