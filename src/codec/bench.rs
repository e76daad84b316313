//! The codec as the programs in `benches/` see it. Not part of the crate's interface.

use super::choose::candidates;
use super::cost::Work;
use super::decode::Decoder;
use super::kernel::{self, Isa, Plane, Rows};
use super::planes::{Stream, streams};
use super::runs;
use super::{Coding, Filter, Profile, choose, with_decoder, with_encoder};

/// The three profiles and their names.
pub const PROFILES: [(&str, Speed); 3] = [
    ("balanced", Speed(Profile::Balanced)),
    ("fast", Speed(Profile::Fast)),
    ("small", Speed(Profile::Small)),
];

/// A profile.
#[derive(Clone, Copy, Debug)]
pub struct Speed(Profile);

impl Speed {
    /// Nanoseconds until one stored byte is there.
    pub fn byte_time(self) -> f64 {
        self.0.byte_time()
    }
}

/// A filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate(Filter);

impl Candidate {
    /// Byte planes of words of `word` bytes.
    pub fn planes(word: u8) -> Self {
        Candidate(Filter::planes(word))
    }

    /// Byte planes of differences between words of `word` bytes.
    pub fn delta(word: u8, stride: u32) -> Self {
        Candidate(Filter::delta(word, stride))
    }

    /// All that the choice tries.
    pub fn all(itemsize: usize, component: usize, strides: &[u32]) -> Vec<Self> {
        candidates(itemsize, component, strides).into_iter().map(Candidate).collect()
    }

    /// The choice.
    pub fn choose(
        samples: &[&[u8]],
        itemsize: usize,
        component: usize,
        strides: &[u32],
        speed: Speed,
        level: i32,
    ) -> Self {
        Candidate(choose(samples, itemsize, component, strides, speed.0, level))
    }

    /// The coding, the word in bytes, and the stride.
    pub fn parts(self) -> (&'static str, usize, usize) {
        let name = match self.0.coding {
            Coding::Raw => "raw",
            Coding::Constant => "constant",
            Coding::Zstd => "zstd",
            Coding::Planes => "planes",
            Coding::Delta => "delta",
        };
        (name, self.0.word.into(), self.0.stride as usize)
    }
}

/// An encoded block.
#[derive(Clone, Debug)]
pub struct Block {
    stored: Vec<u8>,
    coding: Coding,
    filter: Filter,
    itemsize: usize,
    count: usize,
    cost: f64,
}

impl Block {
    /// Encodes these items.
    pub fn encode(candidate: Candidate, speed: Speed, level: i32, items: &[u8], itemsize: usize) -> Self {
        let Candidate(filter) = candidate;
        let mut stored = Vec::new();
        let (coding, cost) = with_encoder(|encoder| {
            encoder.encode_at_cost(filter, speed.0, level, items, itemsize, &mut stored)
        });
        Block { stored, coding, filter, itemsize, count: items.len() / itemsize, cost }
    }

    /// A zstd frame, or raw bytes, as a block of its own.
    pub fn of_frame(frame: &[u8], len: usize) -> Self {
        Block {
            stored: frame.to_vec(),
            coding: Coding::Zstd,
            filter: Filter::ZSTD,
            itemsize: 1,
            count: len,
            cost: 0.0,
        }
    }

    /// Stored bytes.
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Decoded bytes.
    pub fn size(&self) -> usize {
        self.itemsize * self.count
    }

    /// Whether the coding is the filter's own.
    pub fn is_filtered(&self) -> bool {
        self.coding == self.filter.coding
    }

    /// The cost by the table, under the profile that it was encoded for.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Decodes the streams and copies nothing.
    pub fn open(&self) {
        with_decoder(|decoder| {
            let opened = decoder.open(
                &self.stored,
                self.coding,
                self.filter,
                self.itemsize,
                self.count,
                0..self.count,
            );
            opened.map(drop).expect("the block has just been encoded");
        });
    }

    /// Decodes into `items`.
    pub fn decode(&self, items: &mut [u8]) {
        with_decoder(|decoder| self.decode_with(decoder, items));
    }

    fn decode_with(&self, decoder: &mut Decoder, items: &mut [u8]) {
        assert_eq!(items.len(), self.size());
        let mut block = decoder
            .open(&self.stored, self.coding, self.filter, self.itemsize, self.count, 0..self.count)
            .expect("the block has just been encoded");
        // SAFETY: there is room for all items.
        unsafe { block.copy_rows(0, self.count, 1, 0, items.as_mut_ptr(), 0) };
    }

    /// The zstd frames of the block and the bytes that each decodes to.
    pub fn frames(&self) -> Vec<(&[u8], usize)> {
        match self.coding {
            Coding::Zstd => vec![(&self.stored, self.size())],
            Coding::Planes | Coding::Delta => self
                .streams()
                .filter_map(|stream| match stream {
                    Stream::Zstd(frame) => Some((frame, self.words())),
                    _ => None,
                })
                .collect(),
            Coding::Raw | Coding::Constant => Vec::new(),
        }
    }

    /// The planes of a filtered block, each written out.
    pub fn planes(&self) -> Vec<Vec<u8>> {
        let n = self.words();
        let plane = |stream| match stream {
            Stream::Constant(value) => vec![value; n],
            Stream::Raw(bytes) => bytes.to_vec(),
            Stream::Zstd(frame) => {
                let mut plane = vec![0; n];
                Block::of_frame(frame, n).decode(&mut plane);
                plane
            }
            Stream::Runs(pairs) => {
                let mut plane = vec![0; n];
                runs::decode(pairs, &mut plane).expect("the runs that were encoded");
                plane
            }
        };
        self.streams().map(plane).collect()
    }

    /// The same filtered block with each zstd stream and each stream of runs replaced by a raw one.
    pub fn without_zstd(&self) -> Self {
        let planes = self.planes();
        let (mut directory, mut bytes) = (Vec::new(), Vec::new());
        for (stream, plane) in self.streams().zip(&planes) {
            let stream = match stream {
                Stream::Constant(value) => Stream::Constant(value),
                _ => Stream::Raw(plane),
            };
            directory.extend_from_slice(&stream.entry());
            if let Stream::Raw(plane) = stream {
                bytes.extend_from_slice(plane);
            }
        }
        Block { stored: [directory, bytes].concat(), ..self.clone() }
    }

    fn words(&self) -> usize {
        self.size() / usize::from(self.filter.word)
    }

    fn streams(&self) -> impl Iterator<Item = Stream<'_>> {
        let streams = streams(&self.stored, self.filter.word.into(), self.words());
        streams.into_iter().flatten().map(|stream| stream.expect("the block has just been encoded"))
    }
}

/// Decodes with the loops that every processor can run.
pub struct Portable(Decoder);

impl Portable {
    /// With scratch memory that it keeps from block to block.
    #[allow(clippy::new_without_default, reason = "made once, by the bench")]
    pub fn new() -> Self {
        Portable(Decoder::with_isa(Isa::Generic))
    }

    /// Decodes into `items`.
    pub fn decode(&mut self, block: &Block, items: &mut [u8]) {
        block.decode_with(&mut self.0, items);
    }
}

/// What the cost of a zstd frame of these bytes is made of; [`WORK`] names the parts.
pub fn work(frame: &[u8], bytes: &[u8]) -> [f64; WORK.len()] {
    let Work { blocks, codes, tables, literals, sequences, close, bytes } = Work::of(frame, bytes);
    [1 + blocks, codes, tables, literals, sequences, close, bytes].map(f64::from)
}

/// The parts of [`work`].
pub const WORK: [&str; 7] = ["frame and block", "code", "table", "literal", "sequence", "close byte", "byte"];

/// Puts together words of `word` bytes whose planes stand one after the other.
pub fn interleave(planes: &[u8], word: usize, items: &mut [u8]) {
    let n = planes.len() / word;
    assert_eq!(items.len(), n * word);
    let planes: Vec<Plane<'_>> = planes.chunks_exact(n).map(Plane::Bytes).collect();
    let rows = Rows { first: 0, len: n, rows: 1, step: 0 };
    // SAFETY: each plane has `n` bytes and there is room for as many words.
    unsafe {
        kernel::interleave(Isa::detect(), &planes, rows, items.as_mut_ptr(), 0, kernel::Stores::Cached)
    };
}
