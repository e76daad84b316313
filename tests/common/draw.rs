//! What the property tests draw: arrays, what is in them, and selections.

use super::Random;
use super::dense::{Dense, Picked, pick};
use brickmap::{
    ArraySpec, Axis, Codec, Dtype, Element, Profile, Selection, Strided, TimeBase, TimeUnit, VoidType,
    WriteOptions, Writer,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Every kind of dtype, opaque and structured ones of small and large items among them.
pub(crate) fn dtypes() -> Vec<Dtype> {
    let time = |multiplier, base| TimeUnit::new(multiplier, base).unwrap();
    vec![
        Dtype::F32,
        Dtype::Bool,
        Dtype::U8,
        Dtype::U16,
        Dtype::U32,
        Dtype::U64,
        Dtype::I8,
        Dtype::I16,
        Dtype::I32,
        Dtype::I64,
        Dtype::F16,
        Dtype::F64,
        Dtype::Complex64,
        Dtype::Complex128,
        Dtype::Datetime64(time(1, TimeBase::Nanosecond)),
        Dtype::Datetime64(time(25, TimeBase::Microsecond)),
        Dtype::Datetime64(time(1, TimeBase::Generic)),
        Dtype::Timedelta64(time(1, TimeBase::Day)),
        Dtype::Bytes(1),
        Dtype::Bytes(5),
        Dtype::Unicode(3),
        Dtype::Void(VoidType::opaque(3).unwrap()),
        Dtype::Void(VoidType::opaque(300).unwrap()),
        Dtype::Void(VoidType::opaque(5000).unwrap()),
        Dtype::Void(
            VoidType::structured("[('a', '>f4'), ('b', '<i2', (3,)), ('', '|V2'), ('t', '>M8[s]')]").unwrap(),
        ),
        Dtype::Void(VoidType::structured("[('name', '>U16'), ('m', '<f8', (5, 7))]").unwrap()),
    ]
}

fn dtype() -> impl Strategy<Value = Dtype> {
    prop_oneof![2 => select(dtypes()[..14].to_vec()), 1 => select(dtypes())]
}

/// What items are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Values {
    Zero,
    Constant,
    Ramp,
    Few,
    Smooth,
    /// Signed zeros, infinities, NaN with payloads, NaT, the least and largest numbers.
    Special,
    Random,
}

pub(crate) fn values() -> impl Strategy<Value = Values> {
    select(vec![
        Values::Ramp,
        Values::Zero,
        Values::Constant,
        Values::Few,
        Values::Smooth,
        Values::Special,
        Values::Random,
    ])
}

/// The machine word that items are made of, as far as making them up goes.
fn word(dtype: &Dtype) -> usize {
    match dtype {
        Dtype::Complex64 => 4,
        Dtype::Complex128 => 8,
        Dtype::Bytes(_) => 1,
        Dtype::Unicode(_) => 4,
        Dtype::Void(void) => {
            [8, 4, 2, 1].into_iter().find(|size| void.size() % size == 0).unwrap_or(1) as usize
        }
        other => other.itemsize(),
    }
}

/// `count` items.
pub(crate) fn items(dtype: &Dtype, values: Values, seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let (size, word) = (dtype.itemsize(), word(dtype));
    let any =
        |random: &mut Random, len: usize| -> Vec<u8> { (0..len).map(|_| random.next() as u8).collect() };
    let special = |random: &mut Random| -> Vec<u8> {
        // Little-endian, so the last byte holds the sign and the exponent.
        let mut bytes = vec![[0x00, 0xFF, 0x01][random.below(3) as usize]; word];
        bytes[word - 1] = [0x00, 0x80, 0x7F, 0xFF, 0x7C][random.below(5) as usize];
        bytes
    };
    let mut bytes: Vec<u8> = match values {
        Values::Zero => vec![0; count * size],
        Values::Constant => any(&mut random, size).repeat(count),
        Values::Few => {
            let some: Vec<Vec<u8>> = (0..3).map(|_| any(&mut random, size)).collect();
            (0..count).flat_map(|_| some[random.below(3) as usize].clone()).collect()
        }
        Values::Random => any(&mut random, count * size),
        Values::Special => (0..count * (size / word)).flat_map(|_| special(&mut random)).collect(),
        Values::Ramp => {
            let (start, step) = (random.next(), random.below(5));
            let ramp = |n: usize| start.wrapping_add(step.wrapping_mul(n as u64)).to_le_bytes();
            (0..count * (size / word)).flat_map(|n| ramp(n)[..word].to_vec()).collect()
        }
        Values::Smooth => {
            let phase = random.below(1000) as f64;
            let wave = |n: usize| (phase + n as f64 / 40.0).sin();
            let number = |n: usize| match dtype {
                Dtype::F16 => half::f16::from_f64(wave(n)).to_le_bytes().to_vec(),
                Dtype::F32 | Dtype::Complex64 => (wave(n) as f32).to_le_bytes().to_vec(),
                Dtype::F64 | Dtype::Complex128 => wave(n).to_le_bytes().to_vec(),
                _ => ((wave(n) * 100.0) as i64).to_le_bytes()[..word].to_vec(),
            };
            (0..count * (size / word)).flat_map(number).collect()
        }
    };
    if *dtype == Dtype::Bool {
        bytes.iter_mut().for_each(|byte| *byte &= 1);
    }
    bytes
}

/// An array to be made.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunks: Option<Vec<u64>>,
    pub(crate) blocks: Option<Vec<u64>>,
    pub(crate) codec: Codec,
    pub(crate) fill: Option<Vec<u8>>,
}

impl Drawn {
    pub(crate) fn spec(&self) -> ArraySpec {
        let mut spec = ArraySpec::new(self.dtype.clone(), self.shape.clone()).codec(self.codec);
        if let Some(chunks) = &self.chunks {
            spec = spec.chunks(chunks.clone());
        }
        if let Some(blocks) = &self.blocks {
            spec = spec.blocks(blocks.clone());
        }
        if let Some(fill) = &self.fill {
            spec = spec.fill_bytes(fill);
        }
        spec
    }

    /// The array as it is before anything is written.
    pub(crate) fn empty(&self) -> Dense {
        Dense::filled(&self.shape, &self.fill_item())
    }

    /// How far each dimension may grow, if the array has these chunks.
    pub(crate) fn limits(&self, chunks: &[u64]) -> Vec<Option<u64>> {
        let raw = self.codec == Codec::Raw;
        chunks.iter().enumerate().map(|(dim, chunk)| (raw && dim > 0).then_some(*chunk)).collect()
    }

    pub(crate) fn fill_item(&self) -> Vec<u8> {
        self.fill.clone().unwrap_or_else(|| vec![0; self.dtype.itemsize()])
    }

    pub(crate) fn count(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    /// Items for the whole array in which each chunk is at random all fill, all one value, all another, or of `values`.
    pub(crate) fn mosaic(&self, values: Values, seed: u64) -> Vec<u8> {
        let size = self.dtype.itemsize();
        let mut bytes = items(&self.dtype, values, seed, self.count());
        let constants = items(&self.dtype, Values::Random, !seed, 2);
        let fill = self.empty().bytes;
        let default = vec![4; self.shape.len()];
        let chunks = self.chunks.as_ref().unwrap_or(&default);
        for n in 0..self.count() {
            let (mut rest, mut chunk) = (n as u64, seed);
            for (len, cut) in self.shape.iter().zip(chunks).rev() {
                chunk = Random(chunk ^ ((rest % len) / cut)).next();
                rest /= len;
            }
            let item = &mut bytes[n * size..(n + 1) * size];
            match chunk % 5 {
                0 => item.copy_from_slice(&fill[..size]),
                1 => item.copy_from_slice(&constants[..size]),
                2 => item.copy_from_slice(&constants[size..]),
                _ => {}
            }
        }
        bytes
    }
}

fn codec() -> impl Strategy<Value = Codec> {
    let level = || prop_oneof![4 => select(vec![1i8, -7, 3]), 1 => Just(19i8)];
    prop_oneof![
        (select(vec![Profile::Balanced, Profile::Fast, Profile::Small]), level())
            .prop_map(|(profile, level)| Codec::Auto { profile, level }),
        Just(Codec::Raw),
        level().prop_map(|level| Codec::Zstd { level }),
        level().prop_map(|level| Codec::Planes { level }),
        (select(vec![1u32, 2, 3, 4, 7, 1000]), level())
            .prop_map(|(stride, level)| Codec::Delta { stride, level }),
    ]
}

fn shape() -> impl Strategy<Value = Vec<u64>> {
    let len = || prop_oneof![1 => Just(0u64), 2 => Just(1u64), 9 => 2..14u64, 2 => 14..70u64];
    let ndim =
        prop_oneof![1 => Just(0usize), 3 => Just(1), 5 => Just(2), 5 => Just(3), 2 => Just(4), 1 => Just(6)];
    ndim.prop_flat_map(move |ndim| vec(len(), ndim))
}

/// Halves the longest sides of a shape until the array has at most that many items and bytes.
fn within(mut shape: Vec<u64>, itemsize: usize, items: u64, bytes: u64) -> Vec<u64> {
    let room = items.min(bytes / itemsize as u64).max(1);
    while shape.iter().product::<u64>() > room {
        let longest = shape.iter_mut().max().unwrap();
        *longest /= 2;
    }
    shape
}

/// An array of up to `items` items, and `bytes` bytes.
fn drawn_within(
    shape: impl Strategy<Value = Vec<u64>>,
    items: u64,
    bytes: u64,
) -> impl Strategy<Value = Drawn> {
    let cuts = || option::weighted(0.8, vec(any::<u16>(), 8));
    (dtype(), shape, cuts(), cuts(), codec(), option::of((values(), any::<u64>()))).prop_map(
        move |(dtype, shape, chunks, blocks, codec, fill)| {
            let itemsize = dtype.itemsize();
            let shape = within(shape, itemsize, items, bytes);
            let codec = match codec {
                Codec::Planes { level } if itemsize > 255 => Codec::Zstd { level },
                Codec::Delta { .. }
                    if matches!(dtype, Dtype::Void(_)) && ![1, 2, 4, 8].contains(&itemsize) =>
                {
                    Codec::default()
                }
                codec => codec,
            };
            // Up to somewhat longer than the array; long ones as likely as short ones.
            let cut = |cuts: Vec<u16>, longest: &[u64]| -> Vec<u64> {
                longest.iter().zip(cuts).map(|(len, cut)| 1 + u64::from(cut) % (len + 3)).collect()
            };
            let chunks = chunks.map(|cuts| {
                let mut chunks = cut(cuts, &shape);
                if codec == Codec::Raw {
                    chunks.iter_mut().zip(&shape).skip(1).for_each(|(chunk, len)| *chunk = (*len).max(1));
                }
                chunks
            });
            let blocks = blocks.map(|cuts| cut(cuts, chunks.as_ref().unwrap_or(&shape)));
            let blocks = blocks.map(|blocks| within(blocks, itemsize, u64::MAX, 16 << 20));
            let fill = fill.map(|(values, seed)| items_of_fill(&dtype, values, seed));
            Drawn { dtype, shape, chunks, blocks, codec, fill }
        },
    )
}

fn items_of_fill(dtype: &Dtype, values: Values, seed: u64) -> Vec<u8> {
    items(dtype, values, seed, 1)
}

/// A small array, cut into chunks and blocks at random.
pub(crate) fn array() -> impl Strategy<Value = Drawn> {
    drawn_within(shape(), 3000, 100_000)
}

/// An array of a few MB, which is worth several threads.
pub(crate) fn large_array() -> impl Strategy<Value = Drawn> {
    let shape = prop_oneof![
        vec(400_000..1_000_000u64, 1),
        vec(500..2500u64, 2),
        vec(60..140u64, 3),
        (2..6u64, 100_000..400_000u64).prop_map(|(a, b)| vec![a, b]),
        (100_000..400_000u64, 2..6u64).prop_map(|(a, b)| vec![a, b]),
    ];
    drawn_within(shape, 1_000_000, 4_000_000).prop_map(|mut drawn| {
        // Not millions of tiny blocks, where items are small.
        let least = if drawn.dtype.itemsize() <= 300 { 16 } else { 1 };
        let longer = |cuts: &mut Vec<u64>| cuts.iter_mut().for_each(|len| *len = (*len).max(least));
        drawn.chunks.iter_mut().for_each(longer);
        drawn.blocks.iter_mut().for_each(longer);
        drawn
    })
}

/// A shape for an array: some lengths stay, others become 0, less or more. In dimensions that `limits` names they do not
/// pass it.
pub(crate) fn other_shape(shape: &[u64], limits: &[Option<u64>], seed: u64) -> Vec<u64> {
    const MOST: u64 = 4000;
    let mut random = Random(seed);
    let mut other: Vec<u64> = shape.to_vec();
    for (len, limit) in other.iter_mut().zip(limits) {
        *len = match random.below(8) {
            0..=2 => *len,
            3 => random.below(2),
            4..=5 => random.below(*len + 1),
            6 => *len + 1 + random.below(4),
            _ => *len + random.below(2 * *len + 12),
        }
        .min(limit.unwrap_or(u64::MAX));
    }
    while other.iter().product::<u64>() > MOST {
        *other.iter_mut().max().unwrap() /= 2;
    }
    other
}

/// A dimension along which an array can grow, and by how much: mostly the first one, by a few places. `None` if none can.
pub(crate) fn growth(shape: &[u64], limits: &[Option<u64>], seed: u64) -> Option<(usize, u64)> {
    const MOST: u64 = 6000;
    let mut random = Random(seed);
    let axis = if random.below(3) > 0 { 0 } else { random.below(shape.len().max(1) as u64) as usize };
    let others: u64 = shape.iter().enumerate().filter(|(dim, _)| *dim != axis).map(|(_, len)| len).product();
    let len = *shape.get(axis)?;
    let room = limits[axis].map_or(u64::MAX, |limit| limit.saturating_sub(len));
    let room = room.min((MOST / others.max(1)).saturating_sub(len));
    let more = if random.below(4) > 0 { random.below(3) } else { random.below(30) };
    (others > 0).then_some((axis, more.min(room)))
}

#[derive(Clone, Debug)]
struct AxisRecipe {
    kind: u8,
    start: Option<u16>,
    stop: Option<u16>,
    step: u8,
    list: Vec<u16>,
}

impl AxisRecipe {
    fn axis(&self, len: u64) -> Axis {
        let len = len as i64;
        let bound = |number: u16| i64::from(number) % (2 * len + 5) - len - 2;
        let index = |number: u16| i64::from(number) % (2 * len) - len;
        let steps = [
            1,
            -1,
            2,
            -2,
            3,
            -3,
            4,
            5,
            -5,
            7,
            -8,
            16,
            -31,
            100,
            len,
            -len,
            len - 1,
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
        ];
        let step = steps[usize::from(self.step) % steps.len()];
        let range = |step| Axis::Range { start: self.start.map(bound), stop: self.stop.map(bound), step };
        match self.kind {
            0..=3 => Axis::FULL,
            4..=6 => range(1),
            7..=10 => range(if step == 0 { -2 } else { step }),
            11 if len > 0 => Axis::Index(index(self.start.unwrap_or(0))),
            12..=14 if len > 0 => Axis::List(self.list.iter().map(|number| index(*number)).collect()),
            12..=14 => Axis::List(Vec::new()),
            _ => Axis::FULL,
        }
    }
}

/// A selection that does not know its array yet.
#[derive(Clone, Debug)]
pub(crate) struct SelectionRecipe {
    axes: Vec<AxisRecipe>,
    /// Whether whole dimensions are left out, and where.
    ellipsis: u8,
    new: Vec<u8>,
}

impl SelectionRecipe {
    pub(crate) fn axes(&self, shape: &[u64]) -> Vec<Axis> {
        let mut axes: Vec<Axis> =
            shape.iter().zip(&self.axes).map(|(len, recipe)| recipe.axis(*len)).collect();
        let whole = |axis: Option<&Axis>| axis == Some(&Axis::FULL);
        match self.ellipsis {
            1..=2 => {
                while whole(axes.last()) {
                    axes.pop();
                }
            }
            3..=5 => {
                // The first run of whole dimensions; an ellipsis may also stand for none.
                let at = axes.iter().position(|axis| whole(Some(axis))).unwrap_or(axes.len());
                let end = at + axes[at..].iter().take_while(|axis| whole(Some(axis))).count();
                axes.splice(at..end, [Axis::Ellipsis]);
            }
            _ => {}
        }
        for at in &self.new {
            axes.insert(usize::from(*at) % (axes.len() + 1), Axis::NewAxis);
        }
        axes
    }
}

pub(crate) fn selection() -> impl Strategy<Value = SelectionRecipe> {
    let axis =
        (0..16u8, option::of(any::<u16>()), option::of(any::<u16>()), any::<u8>(), vec(any::<u16>(), 0..7))
            .prop_map(|(kind, start, stop, step, list)| AxisRecipe { kind, start, stop, step, list });
    let new = prop_oneof![5 => Just(Vec::new()), 1 => vec(any::<u8>(), 1..3)];
    (vec(axis, 8), 0..8u8, new).prop_map(|(axes, ellipsis, new)| SelectionRecipe { axes, ellipsis, new })
}

/// An array, what is written to it, and selections to read.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) array: Drawn,
    /// Whole, in chunks of different kinds, or only a selection.
    pub(crate) written: Written,
    pub(crate) values: Values,
    pub(crate) seed: u64,
    pub(crate) selections: Vec<Vec<Axis>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Written {
    Whole,
    Mosaic,
    Part(Vec<Axis>),
}

impl Case {
    /// Creates the array and writes it; returns what must be in it.
    pub(crate) fn create(&self, writer: &mut Writer, path: &str) -> Dense {
        writer.create_array(path, &self.array.spec()).unwrap();
        let mut dense = self.array.empty();
        let axes = match &self.written {
            Written::Part(axes) => axes.clone(),
            _ => Vec::new(),
        };
        let picked = pick(&axes, &dense.shape);
        let bytes = match self.written {
            Written::Mosaic => self.array.mosaic(self.values, self.seed),
            _ => items(&self.array.dtype, self.values, self.seed, picked.len()),
        };
        let selection = Selection::from(axes);
        write(writer, path, &self.array.dtype, &selection, &picked.shape, &bytes, self.seed);
        dense.write(&picked, &bytes);
        dense
    }
}

/// Writes items, which have the shape of the selection: by the seed as bytes, as the Rust type that holds them, or as that
/// type in Fortran order.
pub(crate) fn write(
    writer: &mut Writer,
    path: &str,
    dtype: &Dtype,
    selection: &Selection,
    shape: &[u64],
    bytes: &[u8],
    seed: u64,
) {
    fn of<T: Element>(
        writer: &mut Writer,
        path: &str,
        selection: &Selection,
        shape: &[u64],
        bytes: &[u8],
        strided: bool,
        done: &mut bool,
    ) {
        // The bytes of a vector of bytes need not be aligned for T.
        let items: Vec<T> = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
        if strided {
            let strides = fortran_strides(shape);
            let mut fortran = vec![T::zeroed(); items.len()];
            for (n, item) in items.iter().enumerate() {
                let (mut rest, mut at) = (n as u64, 0);
                for (len, stride) in shape.iter().zip(&strides).rev() {
                    at += (rest % len) as isize * stride;
                    rest /= len;
                }
                fortran[at as usize] = *item;
            }
            let source = Strided::new(&fortran, 0, shape, &strides).unwrap();
            writer.write_strided(path, selection, source, WriteOptions::new()).unwrap();
        } else {
            writer.write(path, selection, &items).unwrap();
        }
        *done = true;
    }
    let mut done = false;
    if !seed.is_multiple_of(3) {
        let strided = seed % 3 == 1;
        super::typed!(dtype, of(writer, path, selection, shape, bytes, strided, &mut done));
    }
    if !done {
        writer.write_bytes(path, selection, bytes, WriteOptions::new()).unwrap();
    }
}

/// Items from one to the next along each dimension, in Fortran order.
fn fortran_strides(shape: &[u64]) -> Vec<isize> {
    let mut stride = 1;
    let mut next = |len: &u64| {
        let this = stride;
        stride *= (*len).max(1) as isize;
        this
    };
    shape.iter().map(&mut next).collect()
}

fn case_of(
    array: impl Strategy<Value = Drawn>,
    selections: std::ops::Range<usize>,
) -> impl Strategy<Value = Case> {
    let part = prop_oneof![2 => Just(None), 2 => Just(Some(None)), 1 => selection().prop_map(|part| Some(Some(part)))];
    (array, part, values(), any::<u64>(), vec(selection(), selections)).prop_map(
        |(array, part, values, seed, selections)| {
            let written = match part {
                None => Written::Whole,
                Some(None) => Written::Mosaic,
                Some(Some(part)) => Written::Part(part.axes(&array.shape)),
            };
            let selections = selections.iter().map(|selection| selection.axes(&array.shape)).collect();
            Case { array, written, values, seed, selections }
        },
    )
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    case_of(array(), 2..6)
}

pub(crate) fn large_case() -> impl Strategy<Value = Case> {
    case_of(large_array(), 2..4)
}
