//! Appending: rows come one by one or many at once, with commits in between, along any dimension.

mod common;

use brickmap::{ArraySpec, Codec, Dtype, Durability, OpenOptions, Selection, Store};
use common::draw::{self, items};
use common::{Random, cases, check};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that this process has given the system to write. This program has one test that asks.
fn bytes_written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or(0)
}

/// Rows that are committed one by one: what each costs does not grow with their number, and little is left of how they
/// came. Then, in the same process, what slice writes and overwriting give the system.
#[test]
fn what_is_written_is_in_proportion_to_what_changes() {
    rows_of_their_own_commits();
    boxes_and_overwriting();
}

fn rows_of_their_own_commits() {
    const ROWS: u64 = 12_000;
    const COLUMNS: u64 = 64;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.brick");
    let store = OpenOptions::new().durability(Durability::Deferred).threads(1).create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("rows", &ArraySpec::new(Dtype::F32, [0, COLUMNS])).unwrap();
    let mut random = Random(3);
    let mut all: Vec<f32> = Vec::new();
    let mut written = Vec::new();
    for _ in 0..4 {
        let before = bytes_written();
        for _ in 0..ROWS / 4 {
            let row: Vec<f32> = (0..COLUMNS).map(|n| n as f32 + random.below(1000) as f32 / 1e4).collect();
            writer.append("rows", 0, &row).unwrap();
            writer.commit().unwrap();
            store.refresh().unwrap();
            all.extend(row);
        }
        written.push((bytes_written() - before) / (ROWS / 4));
    }
    let snapshot = store.refresh().unwrap();
    assert!(snapshot.array("rows").unwrap().read::<f32>(&Selection::all()).unwrap() == all);
    assert!(store.verify().unwrap().is_clean());
    if cfg!(target_os = "linux") {
        assert!(written.iter().all(|&bytes| bytes > 256 && bytes < 32 << 10), "{written:?}");
        assert!(written[3] < 2 * written[0], "{written:?}: what a row costs grows");
    }
    let compact = snapshot.to_bytes().unwrap().len() as u64;
    assert!(snapshot.file_bytes() * 10 < compact * 22, "{} bytes, {compact} compact", snapshot.file_bytes());
}

fn boxes_and_overwriting() {
    let shape = [48u64, 128, 128];
    let mut random = Random(4);
    let mut volume = || -> Vec<f32> {
        (0..shape.iter().product())
            .map(|n: u64| (n % 977) as f32 + random.below(1 << 16) as f32 / 65e3)
            .collect()
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume.brick");
    let store = OpenOptions::new().durability(Durability::Deferred).create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::F32, shape).chunks([24, 64, 64]).blocks([8, 16, 32]);
    writer.create_array("a", &spec).unwrap();
    writer.write("a", &Selection::all(), &volume()).unwrap();
    let stored = writer.commit().unwrap().array("a").unwrap().stored_bytes();
    let mut write = |selection: Selection, items: &[f32]| {
        let before = bytes_written();
        writer.write("a", &selection, items).unwrap();
        writer.commit().unwrap();
        bytes_written() - before
    };
    if cfg!(target_os = "linux") {
        // A box in one chunk of 8, and one in all of them.
        let one = write(Selection::from((3..13, 7..17, 9..19)), &[0.5; 1000]);
        assert!(one < stored / 7 + (64 << 10), "{one} of {stored}");
        let corner = write(Selection::from((19..29, 59..69, 59..69)), &[0.5; 1000]);
        assert!(corner < stored + stored / 20 + (64 << 10), "{corner} of {stored}");
        let whole = write(Selection::all(), &volume());
        assert!(whole * 10 < stored * 11, "{whole} of {stored}");
    }
}

/// Records of any length along any dimension, gathered, committed or looked at, in arrays of any kind.
#[test]
fn appended_arrays_match_dense_ones() {
    let steps = vec((draw::values(), any::<u64>()), 1..60);
    check("appended_arrays_match_dense_ones", cases(150), (draw::array(), steps), |(drawn, steps)| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("append.brick");
        let store = OpenOptions::new().durability(Durability::Deferred).threads(1).create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        writer.create_array("a", &drawn.spec()).unwrap();
        let mut dense = drawn.empty();
        let limits = drawn.limits(writer.commit().unwrap().array("a").unwrap().chunks());
        for (values, seed) in steps {
            if let Some((axis, len)) = draw::growth(&dense.shape, &limits, seed) {
                let bytes = dense.grow(axis, len, |count| items(&drawn.dtype, values, seed, count));
                writer.append_bytes("a", axis, &bytes).unwrap();
            }
            match seed % 7 {
                0 | 1 => {
                    let array = writer.commit().unwrap().array("a").unwrap();
                    assert_eq!(array.shape(), dense.shape);
                    assert!(array.read_bytes(&Selection::all()).unwrap() == dense.bytes);
                }
                2 => assert!(writer.read_bytes("a", &Selection::all()).unwrap() == dense.bytes),
                _ => {}
            }
        }
        writer.commit().unwrap();
        drop(writer);
        for store in [Store::open(&path).unwrap(), store.compact(None).unwrap()] {
            assert!(store.array("a").unwrap().read_bytes(&Selection::all()).unwrap() == dense.bytes);
            assert!(store.verify().unwrap().is_clean());
        }
    });
}

/// Arrays behind each other: stored as they were where the grids line up, and right where they do not.
#[test]
fn concatenated_arrays_match_dense_ones() {
    let others = vec((draw::values(), any::<u64>()), 0..5);
    check("concatenated_arrays_match_dense_ones", cases(150), (draw::array(), others), |(drawn, others)| {
        let directory = tempfile::tempdir().unwrap();
        let store = OpenOptions::new().threads(1).create(directory.path().join("all.brick")).unwrap();
        let mut writer = store.writer().unwrap();
        let mut random = Random(others.len() as u64 + drawn.shape.len() as u64);
        let axis = random.below(drawn.shape.len().max(1) as u64) as usize;
        let mut whole = drawn.empty();
        let mut names = Vec::new();
        for (n, (values, seed)) in others.iter().enumerate() {
            let mut drawn = drawn.clone();
            if let Some(len) = drawn.shape.get_mut(axis) {
                *len = if random.below(2) == 0 { *len } else { random.below(*len + 3) };
            }
            if drawn.codec == Codec::Raw {
                drawn.chunks = None;
            }
            let name = format!("part {n}");
            writer.create_array(&name, &drawn.spec()).unwrap();
            let bytes = drawn.mosaic(*values, *seed);
            writer.write_bytes(&name, &Selection::all(), &bytes, Default::default()).unwrap();
            if n == 0 {
                whole = drawn.empty();
                whole.bytes = bytes;
            } else if !drawn.shape.is_empty() {
                whole.grow(axis, drawn.shape[axis], |_| bytes);
            }
            names.push(name);
        }
        let snapshot = writer.commit().unwrap();
        let arrays: Vec<_> = names.iter().map(|name| snapshot.array(name).unwrap()).collect();
        let arrays: Vec<_> = arrays.iter().collect();
        let outcome = writer.concatenate("all", axis, &arrays);
        if arrays.is_empty() || drawn.shape.is_empty() {
            assert!(matches!(outcome, Err(brickmap::Error::InvalidArgument { .. })));
            return;
        }
        outcome.unwrap();
        assert!(writer.read_bytes("all", &Selection::all()).unwrap() == whole.bytes);
        let array = writer.commit().unwrap().array("all").unwrap();
        assert_eq!(array.shape(), whole.shape);
        assert!(array.read_bytes(&Selection::all()).unwrap() == whole.bytes);
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{report:?}");
    });
}

/// Where grids line up nothing is decoded: damage in a block's items would show, and what is constant stays so.
#[test]
fn aligned_arrays_are_concatenated_as_they_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("aligned.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::U32, [20, 10]).chunks([10, 10]).blocks([5, 10]);
    let mut random = Random(1);
    for name in ["one", "two"] {
        writer.create_array(name, &spec).unwrap();
        let items: Vec<u32> = (0..100).map(|_| random.next() as u32).collect();
        writer.write(name, &Selection::from(..10), &items).unwrap();
        writer.fill(name, &Selection::from(10..), 9u32).unwrap();
    }
    let snapshot = writer.commit().unwrap();
    let (one, two) = (snapshot.array("one").unwrap(), snapshot.array("two").unwrap());
    writer.concatenate("all", 0, &[&one, &two]).unwrap();
    let all = writer.commit().unwrap().array("all").unwrap();
    assert_eq!(all.stored_bytes(), one.stored_bytes() + two.stored_bytes());
    assert_eq!(all.stored_chunks(), 4);
    assert!(store.verify().unwrap().is_clean());
}
