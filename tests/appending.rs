//! Appending: rows come one by one or many at once, with commits in between, along any dimension.

mod common;

use brickmap::{ArraySpec, Codec, Dtype, Durability, OpenOptions, Selection, Store};
use common::draw::{self, items};
use common::{Random, cases, check};
use proptest::collection::vec;
use proptest::prelude::*;

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
