//! Opening a stored block: everything that can be wrong with its bytes is found here.

use std::cell::Cell;
use std::ops::Range;

use zstd::zstd_safe::{self, DCtx};

use super::block::{OpenBlock, Source};
use super::kernel::{Isa, Plane};
use super::planes::{Planes, Stream, streams};
use super::runs;
use super::{Coding, Filter, MAX_BLOCK};
use crate::error::Damage;

/// Decodes blocks: a zstd context and scratch memory, reused from block to block. One per thread.
pub(crate) struct Decoder {
    zstd: DCtx<'static>,
    /// Decoded streams.
    streams: Vec<u8>,
    /// The items of a delta block whose differences are undone.
    items: Vec<u8>,
    isa: Isa,
}

thread_local! {
    static DECODER: Cell<Option<Box<Decoder>>> = const { Cell::new(None) };
}

/// Calls `f` with this thread's decoder. A call within a call gets a fresh one.
pub(crate) fn with_decoder<R>(f: impl FnOnce(&mut Decoder) -> R) -> R {
    let mut decoder = DECODER.take().unwrap_or_else(|| Box::new(Decoder::new()));
    let result = f(&mut decoder);
    DECODER.set(Some(decoder));
    result
}

impl Decoder {
    /// A decoder without scratch memory; that grows with the blocks it sees.
    pub(crate) fn new() -> Self {
        Decoder { zstd: DCtx::create(), streams: Vec::new(), items: Vec::new(), isa: Isa::detect() }
    }

    /// A decoder that uses these kernels.
    #[cfg(any(test, feature = "bench"))]
    pub(super) fn with_isa(isa: Isa) -> Self {
        Decoder { isa, ..Decoder::new() }
    }

    /// Opens a block of `count` items of `itemsize` bytes, of which only those in `needed` will be copied out.
    ///
    /// Decodes the zstd streams; raw streams stay where they are and are read from `stored` when items are copied.
    /// `coding` is the block's own; `filter` the chunk's, for its word and stride. None of them need be valid: what
    /// does not fit is reported as damage.
    pub(crate) fn open<'a>(
        &'a mut self,
        stored: &'a [u8],
        coding: Coding,
        filter: Filter,
        itemsize: usize,
        count: usize,
        needed: Range<usize>,
    ) -> Result<OpenBlock<'a>, Damage> {
        let size = match count.checked_mul(itemsize) {
            Some(size @ 1..=MAX_BLOCK) => size,
            _ => {
                return Err(Damage::new(format!(
                    "a block of {count} items of {itemsize} bytes is not possible"
                )));
            }
        };
        if needed.end > count {
            return Err(Damage::new(format!(
                "item {} of a block of {count} items is needed",
                needed.end - 1
            )));
        }
        let Decoder { zstd, streams, items, isa } = self;
        let source = match coding {
            Coding::Raw => Source::Items(exactly(stored, size)?),
            Coding::Constant => Source::Repeated(exactly(stored, itemsize)?),
            Coding::Zstd => {
                let items = room(streams, size);
                inflate(zstd, stored, items)?;
                Source::Items(items)
            }
            Coding::Planes | Coding::Delta => {
                if !(Filter { coding, ..filter }).fits(itemsize) {
                    let Filter { word, stride, .. } = filter;
                    let what =
                        format!("words of {word} bytes with stride {stride} in items of {itemsize} bytes");
                    return Err(Damage::new(what));
                }
                let word = usize::from(filter.word);
                let planes = open_planes(zstd, stored, word, size / word, streams)?;
                match coding {
                    Coding::Delta => {
                        Source::Differences { planes, stride: filter.stride as usize, items, undone: false }
                    }
                    _ => Source::Planes(planes),
                }
            }
        };
        Ok(OpenBlock::new(source, itemsize, needed.end, *isa))
    }
}

/// The planes of a block of `n` words: decodes the zstd streams and the runs into `scratch`.
fn open_planes<'a>(
    zstd: &mut DCtx<'static>,
    stored: &'a [u8],
    word: usize,
    n: usize,
    scratch: &'a mut Vec<u8>,
) -> Result<Planes<'a>, Damage> {
    let mut rest = room(scratch, word * n);
    let mut planes = Planes::new();
    for stream in streams(stored, word, n)? {
        planes.push(match stream? {
            Stream::Constant(value) => Plane::Constant(value),
            Stream::Raw(bytes) => Plane::Bytes(bytes),
            Stream::Zstd(frame) => {
                let (plane, after) = rest.split_at_mut(n);
                rest = after;
                inflate(zstd, frame, plane)?;
                Plane::Bytes(plane)
            }
            Stream::Runs(pairs) => {
                let (plane, after) = rest.split_at_mut(n);
                rest = after;
                runs::decode(pairs, plane)?;
                Plane::Bytes(plane)
            }
        });
    }
    Ok(planes)
}

/// The first `len` bytes of `scratch`, which grows if it must. Their contents are left over from earlier.
pub(super) fn room(scratch: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if scratch.len() < len {
        *scratch = vec![0; len];
    }
    &mut scratch[..len]
}

fn exactly(stored: &[u8], len: usize) -> Result<&[u8], Damage> {
    if stored.len() != len {
        return Err(Damage::new(format!("a block has {} stored bytes instead of {len}", stored.len())));
    }
    Ok(stored)
}

/// Decodes one zstd frame that must fill `out` exactly.
fn inflate(zstd: &mut DCtx<'static>, frame: &[u8], out: &mut [u8]) -> Result<(), Damage> {
    // zstd would go on with whatever frames follow the first, and skip some kinds of frames.
    if zstd_safe::find_frame_compressed_size(frame) != Ok(frame.len()) {
        return Err(Damage::new("a stream is not one zstd frame"));
    }
    match zstd.decompress(out, frame) {
        Ok(len) if len == out.len() => Ok(()),
        Ok(len) => Err(Damage::new(format!("a zstd stream has {len} bytes instead of {}", out.len()))),
        Err(code) => Err(Damage::new(format!("a zstd stream: {}", zstd_safe::get_error_name(code)))),
    }
}
