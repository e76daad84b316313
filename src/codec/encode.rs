//! Encoding a block: its planes, and for each of them the stream that brings it to the reader soonest.

use std::cell::Cell;

use zstd::zstd_safe::{self, CCtx, CParameter};

use super::cost::{self, Profile, Work};
use super::decode::room;
use super::kernel::{self, Isa};
use super::noise;
use super::planes::{ENTRY, Stream};
use super::runs;
use super::{Coding, Filter, MAX_BLOCK};

/// Encodes blocks: a zstd context and scratch memory, reused from block to block. One per thread.
pub(crate) struct Encoder {
    zstd: CCtx<'static>,
    /// The level that `zstd` is set to.
    level: Option<i32>,
    differences: Vec<u8>,
    planes: Vec<u8>,
    frame: Vec<u8>,
    pairs: Vec<u8>,
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
            pairs: Vec::new(),
            isa: Isa::detect(),
        }
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
        self.encode_at_cost(filter, profile, level, items, itemsize, out).0
    }

    /// As [`encode`](Self::encode); says also how many nanoseconds it takes until the block is with its reader.
    pub(super) fn encode_at_cost(
        &mut self,
        filter: Filter,
        profile: Profile,
        level: i32,
        items: &[u8],
        itemsize: usize,
        out: &mut Vec<u8>,
    ) -> (Coding, f64) {
        assert!(filter.fits(itemsize), "{filter:?} does not fit items of {itemsize} bytes");
        assert!(
            !items.is_empty() && items.len() <= MAX_BLOCK && items.len().is_multiple_of(itemsize),
            "{} bytes are no block of items of {itemsize} bytes",
            items.len()
        );
        let start = out.len();
        let (coding, stream_time) = if items[itemsize..] == items[..items.len() - itemsize] {
            out.extend_from_slice(&items[..itemsize]);
            (Coding::Constant, 0.0)
        } else {
            let time = match filter.coding {
                Coding::Raw | Coding::Constant => None,
                Coding::Zstd => self.append_zstd(profile, level, items, out),
                Coding::Planes | Coding::Delta => self.append_planes(filter, profile, level, items, out),
            };
            match time {
                Some(time) => (filter.coding, time),
                None => {
                    out.truncate(start);
                    out.extend_from_slice(items);
                    (Coding::Raw, cost::RAW_BYTE * items.len() as f64)
                }
            }
        };
        let stored = out.len() - start;
        (coding, cost::block(profile, coding, filter, stored, items.len(), stream_time))
    }

    /// Appends one frame and says how long it takes to decode; `None` if raw items are with the reader sooner.
    fn append_zstd(&mut self, profile: Profile, level: i32, items: &[u8], out: &mut Vec<u8>) -> Option<f64> {
        self.set_level(level);
        let frame = room(&mut self.frame, bound(items.len()));
        let (stream, time) = squeeze(&mut self.zstd, frame, profile, items);
        append(stream, out);
        matches!(stream, Stream::Zstd(_)).then_some(time)
    }

    /// Appends the directory and the streams of a block and says how long the streams take to decode; `None` if all that
    /// is no smaller than the items.
    fn append_planes(
        &mut self,
        filter: Filter,
        profile: Profile,
        level: i32,
        items: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<f64> {
        self.set_level(level);
        let Encoder { zstd, differences, planes, frame, pairs, isa, .. } = self;
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
        let mut total = 0.0;
        for (k, plane) in planes.chunks_exact(n).enumerate() {
            let (stream, time) = match plane.iter().all(|byte| *byte == plane[0]) {
                true => (Stream::Constant(plane[0]), 0.0),
                false => or_runs(squeeze(zstd, frame, profile, plane), profile, plane, pairs),
            };
            out[start + k * ENTRY..][..ENTRY].copy_from_slice(&stream.entry());
            append(stream, out);
            total += time;
        }
        (out.len() - start < items.len()).then_some(total)
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

/// The stream of these bytes that comes to the reader sooner, a zstd frame, written to `frame`, or the bytes themselves;
/// and the nanoseconds to decode it.
fn squeeze<'a>(
    zstd: &mut CCtx<'static>,
    frame: &'a mut [u8],
    profile: Profile,
    bytes: &'a [u8],
) -> (Stream<'a>, f64) {
    let raw = cost::RAW_BYTE * bytes.len() as f64;
    if noise::is_noise(bytes) && !gains(zstd, frame, noise::quarter(bytes)) {
        return (Stream::Raw(bytes), raw);
    }
    // zstd fails only for want of memory: the block is whole without it.
    if let Ok(len) = zstd.compress2(frame, bytes)
        && len < bytes.len()
    {
        let frame = &frame[..len];
        let time = Work::of(frame, bytes).time();
        let saved = (bytes.len() - len) as f64;
        if time - raw < profile.byte_time() * saved {
            return (Stream::Zstd(frame), time);
        }
    }
    (Stream::Raw(bytes), raw)
}

/// Whether zstd makes these bytes shorter by a few percent.
fn gains(zstd: &mut CCtx<'static>, frame: &mut [u8], bytes: &[u8]) -> bool {
    zstd.compress2(frame, bytes).is_ok_and(|len| len < bytes.len() - bytes.len() / 50)
}

/// `other`, a stream of this plane and the time to decode it, or the plane's runs, put in `pairs`, if they come to the reader
/// sooner.
fn or_runs<'a>(
    other: (Stream<'a>, f64),
    profile: Profile,
    plane: &[u8],
    pairs: &'a mut Vec<u8>,
) -> (Stream<'a>, f64) {
    let (Stream::Raw(bytes) | Stream::Zstd(bytes)) = other.0 else { return other };
    let cost = |stored: usize, time: f64| profile.byte_time() * stored as f64 + time;
    let most = cost(bytes.len(), other.1);
    let at_least = runs::changes(plane) + 1;
    if cost(2 * at_least, cost::RUN * at_least as f64) >= most {
        return other;
    }
    runs::encode(plane, pairs);
    let time = cost::RUN * (pairs.len() / 2) as f64
        + cost::LONG_RUN * runs::long(pairs) as f64
        + cost::RUN_BYTE * plane.len() as f64;
    if cost(pairs.len(), time) < most { (Stream::Runs(pairs), time) } else { other }
}

fn append(stream: Stream<'_>, out: &mut Vec<u8>) {
    if let Stream::Raw(bytes) | Stream::Zstd(bytes) | Stream::Runs(bytes) = stream {
        out.extend_from_slice(bytes);
    }
}
