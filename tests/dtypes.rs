//! Items of every dtype come back bit for bit, through every codec.

mod common;

use brickmap::{
    ArraySpec, Axis, Backend, Codec, Dtype, Element, OpenOptions, Profile, Selection, Store, WriteOptions,
};
use common::dense::{Dense, pick};
use common::draw::{self, Values, dtypes, items};
use common::{cases, check};
use proptest::collection::vec;
use proptest::prelude::*;

const VALUES: [Values; 7] = [
    Values::Zero,
    Values::Constant,
    Values::Ramp,
    Values::Few,
    Values::Smooth,
    Values::Special,
    Values::Random,
];

fn all() -> Selection {
    Selection::all()
}

/// Every codec with every level that is tested.
fn codecs() -> Vec<Codec> {
    let mut codecs = vec![Codec::Raw];
    for level in [-7, 1, 3, 19] {
        for profile in [Profile::Balanced, Profile::Fast, Profile::Small] {
            codecs.push(Codec::Auto { profile, level });
        }
        codecs.extend([Codec::Zstd { level }, Codec::Planes { level }]);
        codecs.extend([1, 2, 3, 4, 7, 1000].map(|stride| Codec::Delta { stride, level }));
    }
    codecs
}

/// Whether a codec takes items of this dtype.
fn takes(codec: Codec, dtype: &Dtype) -> bool {
    match codec {
        Codec::Planes { .. } => dtype.itemsize() <= 255,
        Codec::Delta { .. } => !matches!(dtype, Dtype::Void(_)) || [1, 2, 4, 8].contains(&dtype.itemsize()),
        _ => true,
    }
}

#[test]
fn every_dtype_with_every_codec_and_kind_of_data_comes_back_bit_for_bit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dtypes.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut made = Vec::new();
    for (d, dtype) in dtypes().iter().enumerate() {
        for (c, codec) in codecs().into_iter().enumerate().filter(|(_, codec)| takes(*codec, dtype)) {
            // Each pair meets another kind of data; level 19 is slow.
            let kinds = if c % 11 == d % 11 { &VALUES[..] } else { &VALUES[(d + c) % 7..][..1] };
            for (v, values) in kinds.iter().enumerate() {
                let count = (6000 / dtype.itemsize()).clamp(7, 1500);
                let bytes = items(dtype, *values, (d * 1000 + c * 10 + v) as u64, count);
                let (block, path) = ((count / 2) as u64, format!("{d}/{c}/{v}"));
                let spec =
                    ArraySpec::new(dtype.clone(), [count as u64]).chunks([count as u64 - 3]).blocks([block]);
                writer.create_array(&path, &spec.codec(codec)).unwrap();
                writer.write_bytes(&path, &all(), &bytes, WriteOptions::new()).unwrap();
                made.push((path, dtype.clone(), codec, *values, bytes));
            }
        }
    }
    writer.commit().unwrap();
    assert!(made.len() > 1000, "{} arrays", made.len());
    let store = Store::open(&path).unwrap();
    for (path, dtype, codec, values, bytes) in &made {
        let array = store.array(path).unwrap();
        assert_eq!((array.dtype(), array.codec()), (dtype, *codec));
        assert!(array.read_bytes(&all()).unwrap() == *bytes, "{dtype}, {codec:?}, {values:?}");
        let size = dtype.itemsize();
        let backwards = Selection::new([Axis::Range { start: None, stop: None, step: -3 }]);
        let due: Vec<u8> = bytes.chunks(size).rev().step_by(3).flatten().copied().collect();
        assert!(array.read_bytes(&backwards).unwrap() == due, "{dtype}, {codec:?}, {values:?} backwards");
    }
}

/// Bit patterns that arithmetic would lose.
#[test]
fn nan_payloads_signed_zeros_and_nat_are_kept_as_items_and_as_fill_values() {
    fn kept<T: Element>(store: &Store, dtype: Dtype, patterns: &[T]) {
        let bytes = |items: &[T]| bytemuck::cast_slice::<T, u8>(items).to_vec();
        let mut writer = store.writer().unwrap();
        let spec = |len| ArraySpec::new(dtype.clone(), [len]).chunks([4]);
        let name = |what: &str| format!("{dtype}/{what}").replace(['<', '|', '[', ']'], "");
        let mut mixed = patterns.to_vec();
        mixed.extend_from_slice(patterns);
        writer.create_array(&name("mixed"), &spec(mixed.len() as u64)).unwrap();
        writer.write(&name("mixed"), &all(), &mixed).unwrap();
        for (n, pattern) in patterns.iter().enumerate() {
            writer.create_array(&name(&format!("constant{n}")), &spec(10)).unwrap();
            writer.write(&name(&format!("constant{n}")), &all(), &[*pattern; 10]).unwrap();
            writer.create_array(&name(&format!("fill{n}")), &spec(10).fill_value(*pattern)).unwrap();
        }
        let snapshot = writer.commit().unwrap();
        assert_eq!(bytes(&snapshot.array(&name("mixed")).unwrap().read::<T>(&all()).unwrap()), bytes(&mixed));
        for (n, pattern) in patterns.iter().enumerate() {
            for what in ["constant", "fill"] {
                let array = snapshot.array(&name(&format!("{what}{n}"))).unwrap();
                assert_eq!(
                    bytes(&array.read::<T>(&all()).unwrap()),
                    bytes(&[*pattern; 10]),
                    "{dtype} {what} {n}"
                );
                assert_eq!(bytes(&[array.get::<T>(&[-1]).unwrap()]), bytes(&[*pattern]));
            }
            assert_eq!(snapshot.array(&name(&format!("fill{n}"))).unwrap().fill_value(), bytes(&[*pattern]));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("bits.brick")).unwrap();
    let f16s = [0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE55, 0x0001, 0x7BFF, 0x3BFF]
        .map(half::f16::from_bits);
    kept(&store, Dtype::F16, &f16s);
    let f32s =
        [0, 1 << 31, 0x7F80_0000, 0x7FC0_0000, 0x7F80_0001, 0xFFC0_1234, 1, 0x7F7F_FFFF].map(f32::from_bits);
    kept(&store, Dtype::F32, &f32s);
    let f64s = [0, 1 << 63, 0x7FF8_0000_0000_0000, 0x7FF0_0000_0000_0001, 0xFFF8_0000_DEAD_BEEF, 1]
        .map(f64::from_bits);
    kept(&store, Dtype::F64, &f64s);
    kept(&store, Dtype::Complex64, &[[f32s[1], f32s[4]], [f32s[0], f32s[1]], [f32s[5], f32s[0]]]);
    kept(&store, Dtype::Complex128, &[[f64s[1], f64s[4]], [f64s[0], f64s[1]], [f64s[3], f64s[3]]]);
    for dtype in dtypes().into_iter().filter(i64::matches) {
        kept(&store, dtype, &[i64::MIN, i64::MAX, 0, -1, i64::MIN + 1]);
    }
    kept(&store, Dtype::Bool, &[0u8, 1]);
    kept(&store, Dtype::U64, &[0, u64::MAX, 1 << 63]);
}

#[test]
fn descriptions_of_dtypes_are_kept_word_for_word() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("names.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut all = dtypes();
    all.extend(
        ["<M8[7W]", "<m8[as]", "<m8", "|S70000", "<U20000", "|V1048576"]
            .map(|text| Dtype::parse(text).unwrap()),
    );
    for (n, dtype) in all.iter().enumerate() {
        writer.create_array(&n.to_string(), &ArraySpec::new(dtype.clone(), [2, 1])).unwrap();
        let bytes = items(dtype, Values::Random, n as u64, 2);
        writer.write_bytes(&n.to_string(), &Selection::all(), &bytes, WriteOptions::new()).unwrap();
    }
    writer.commit().unwrap();
    for backend in [Backend::Mmap, Backend::Pread] {
        let store = OpenOptions::new().backend(backend).open(&path).unwrap();
        for (n, dtype) in all.iter().enumerate() {
            let array = store.array(&n.to_string()).unwrap();
            assert_eq!((array.dtype(), array.dtype().to_string()), (dtype, dtype.to_string()));
            assert!(
                array.read_bytes(&Selection::all()).unwrap() == items(dtype, Values::Random, n as u64, 2),
                "{dtype}"
            );
        }
    }
}

/// A shape with few items, a selection of it, and a length for each item.
fn ragged() -> impl Strategy<Value = (Vec<u64>, Vec<Axis>, Vec<Vec<u32>>)> {
    let words = vec(prop_oneof![3 => Just(0u32), 5 => 0..0x80u32, 3 => any::<u32>()], 0..9);
    (vec(0..6u64, 0..4), draw::selection(), vec(words, 125)).prop_map(|(shape, selection, mut items)| {
        items.truncate(shape.iter().product::<u64>() as usize);
        let axes = selection.axes(&shape);
        (shape, axes, items)
    })
}

/// Empty strings, long ones, and characters of one to four bytes.
fn text(words: &[u32]) -> String {
    words
        .iter()
        .filter_map(|word| char::from_u32(word % 0x11_0000))
        .flat_map(|letter| std::iter::repeat_n(letter, 3))
        .collect()
}

#[test]
fn strings_and_runs_of_any_shape_match_a_dense_array() {
    check("ragged", cases(25), vec(ragged(), 1..20), |arrays| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ragged.brick");
        let store = Store::create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        for (n, (shape, _, items)) in arrays.iter().enumerate() {
            let strings: Vec<String> = items.iter().map(|words| text(words)).collect();
            writer.create_strings(&format!("{n}/strings"), shape, &strings).unwrap();
            writer.create_ragged(&format!("{n}/runs"), shape, items).unwrap();
            let floats: Vec<Vec<f64>> =
                items.iter().map(|run| run.iter().map(|bits| f64::from(*bits)).collect()).collect();
            writer.create_ragged(&format!("{n}/floats"), shape, &floats).unwrap();
        }
        writer.commit().unwrap();
        let pread = OpenOptions::new().backend(Backend::Pread).threads(1).open(&path).unwrap();
        for store in [Store::open(&path).unwrap(), pread] {
            for (n, (shape, axes, items)) in arrays.iter().enumerate() {
                let numbers = Dense::filled(shape, &[0]).numbers(&pick(axes, shape));
                let selection = Selection::from(axes.clone());
                let strings = store.ragged(&format!("{n}/strings")).unwrap();
                assert_eq!((strings.shape(), strings.is_strings()), (&shape[..], true));
                let read = strings.read_strings(&selection).unwrap();
                let due: Vec<String> = numbers.iter().map(|&number| text(&items[number])).collect();
                assert_eq!(read.iter().collect::<Vec<_>>(), due, "{axes:?} of {shape:?}");
                assert_eq!((read.len(), read.get(due.len())), (due.len(), None));
                let runs = store.ragged(&format!("{n}/runs")).unwrap();
                assert_eq!(runs.value_count(), items.iter().map(Vec::len).sum::<usize>() as u64);
                let read = runs.read_runs::<u32>(&selection).unwrap();
                let due: Vec<&[u32]> = numbers.iter().map(|&number| &items[number][..]).collect();
                assert_eq!(read.iter().collect::<Vec<_>>(), due, "{axes:?} of {shape:?}");
                let read =
                    store.ragged(&format!("{n}/floats")).unwrap().read_runs::<f64>(&selection).unwrap();
                assert!(
                    read.iter().flatten().map(|value| *value as u32).eq(due.into_iter().flatten().copied())
                );
            }
        }
    });
}
