//! Encoding a block: its planes, and for each of them the stream that brings it to the reader soonest.

use std::cell::Cell;

use zstd::zstd_safe::{self, CCtx, CParameter};

use super::cost::{self, Profile};
use super::decode::room;
use super::kernel::{self, Isa};
use super::planes::{ENTRY, Stream};
use super::{Coding, Filter, MAX_BLOCK};

/// Encodes blocks: a zstd context and scratch memory, reused from block to block. One per thread.
pub(crate) struct Encoder {
    zstd: CCtx<'static>,
    /// The level that `zstd` is set to.
    level: Option<i32>,
    differences: Vec<u8>,
    planes: Vec<u8>,
    frame: Vec<u8>,
    isa: Isa,
}

thread_local! {
    static ENCODER: Cell<Option<Box<Encoder>>> = const { Cell::new(None) };
}

/// Calls `f` with this thread's encoder. A call within a call gets a fresh one.
pub(crate) fn with_encoder<R>(f: impl FnOnce(&mut Encoder) -> R) -> R {
    let mut encoder = ENCODER.take().unwrap_or_else(|| Box::new(Encoder::new()));
    let result = f(&mut encoder);
    ENCODER.set(Some(encoder));
    result
}

impl Encoder {
    /// An encoder without scratch memory; that grows with the blocks it sees.
    pub(crate) fn new() -> Self {
        Encoder {
            zstd: CCtx::create(),
            level: None,
            differences: Vec::new(),
            planes: Vec::new(),
            frame: Vec::new(),
            isa: Isa::detect(),
        }
    }

    /// An encoder that uses these kernels.
    #[cfg(test)]
    pub(super) fn with_isa(isa: Isa) -> Self {
        Encoder { isa, ..Encoder::new() }
    }

    /// Appends the block of these items to `out` and says how it is stored.
    ///
    /// A block of one repeated item is stored as constant whatever the filter, and a block or stream that the coding
    /// would not bring to the reader sooner, by the measure of `profile`, is stored raw. `level` is zstd's; what lies
    /// outside of zstd's range is brought into it.
    ///
    /// # Panics
    ///
    /// If there are no items, more than [`MAX_BLOCK`] bytes of them, a part of an item, or the filter does not fit
    /// the item size.
    pub(crate) fn encode(
        &mut self,
        filter: Filter,
        profile: Profile,
        level: i32,
        items: &[u8],
        itemsize: usize,
        out: &mut Vec<u8>,
    ) -> Coding {
        assert!(filter.fits(itemsize), "{filter:?} does not fit items of {itemsize} bytes");
        assert!(
            !items.is_empty() && items.len() <= MAX_BLOCK && items.len() % itemsize == 0,
            "{} bytes are no block of items of {itemsize} bytes",
            items.len()
        );
        if items[itemsize..] == items[..items.len() - itemsize] {
            out.extend_from_slice(&items[..itemsize]);
            return Coding::Constant;
        }
        let start = out.len();
        let saved = match filter.coding {
            Coding::Raw | Coding::Constant => false,
            Coding::Zstd => {
                self.set_level(level);
                let stream =
                    squeeze(&mut self.zstd, room(&mut self.frame, bound(items.len())), profile, items);
                append(stream, out);
                matches!(stream, Stream::Zstd(_))
            }
            Coding::Planes | Coding::Delta => self.append_planes(filter, profile, level, items, out),
        };
        if saved {
            return filter.coding;
        }
        out.truncate(start);
        out.extend_from_slice(items);
        Coding::Raw
    }

    /// Appends the directory and the streams of a block, unless they would take as much room as its items: then this
    /// says false.
    fn append_planes(
        &mut self,
        filter: Filter,
        profile: Profile,
        level: i32,
        items: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        self.set_level(level);
        let Encoder { zstd, differences, planes, frame, isa, .. } = self;
        let word = usize::from(filter.word);
        let n = items.len() / word;
        let words = match filter.coding {
            Coding::Delta => {
                let differences = room(differences, items.len());
                kernel::differences(*isa, items, word, filter.stride as usize, differences);
                differences
            }
            _ => items,
        };
        let planes = room(planes, items.len());
        kernel::split(*isa, words, word, planes);
        let frame = room(frame, bound(n));
        let start = out.len();
        out.resize(start + word * ENTRY, 0);
        for (k, plane) in planes.chunks_exact(n).enumerate() {
            let stream = match plane.iter().all(|byte| *byte == plane[0]) {
                true => Stream::Constant(plane[0]),
                false => squeeze(zstd, frame, profile, plane),
            };
            out[start + k * ENTRY..][..ENTRY].copy_from_slice(&stream.entry());
            append(stream, out);
        }
        out.len() - start < items.len()
    }

    /// Sets the level and what goes into frames; a frame's length and checksum stand elsewhere in the file.
    fn set_level(&mut self, level: i32) {
        if self.level == Some(level) {
            return;
        }
        let within = level.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level());
        let parameters = [
            CParameter::CompressionLevel(within),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ];
        for parameter in parameters {
            self.zstd.set_parameter(parameter).expect("zstd takes a level in its range and its flags");
        }
        self.level = Some(level);
    }
}

/// The most that zstd makes of `len` bytes.
fn bound(len: usize) -> usize {
    zstd_safe::compress_bound(len)
}

/// The stream of these bytes that comes to the reader sooner: a zstd frame, written to `frame`, or the bytes themselves.
fn squeeze<'a>(
    zstd: &mut CCtx<'static>,
    frame: &'a mut [u8],
    profile: Profile,
    bytes: &'a [u8],
) -> Stream<'a> {
    match zstd.compress2(frame, bytes) {
        Ok(len) if cost::pays(profile, &frame[..len], bytes.len()) => Stream::Zstd(&frame[..len]),
        // zstd fails only for want of memory: the block is whole without it.
        _ => Stream::Raw(bytes),
    }
}

fn append(stream: Stream<'_>, out: &mut Vec<u8>) {
    if let Stream::Raw(bytes) | Stream::Zstd(bytes) = stream {
        out.extend_from_slice(bytes);
    }
}
