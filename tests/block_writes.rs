//! A slice write touches blocks: what it does not touch is copied as it is stored, what it covers is never decoded, and
//! the rest is decoded, changed and encoded again. Shown by damaging stored blocks and writing over or beside them.

mod common;

use brickmap::{ArraySpec, Codec, Dtype, Error, OpenOptions, Selection, Snapshot, Store};
use common::Random;
use std::path::Path;

const SHAPE: [u64; 2] = [64, 64];

fn noise(count: u64, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next() as u32).collect()
}

/// An array of one chunk of 4 x 4 blocks that do not compress, block (0, 1) of which is damaged in the file.
fn damaged(path: &Path) -> Vec<u32> {
    let items = noise(SHAPE[0] * SHAPE[1], 1);
    let store = Store::create(path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec =
        ArraySpec::new(Dtype::U32, SHAPE).chunks(SHAPE).blocks([16, 16]).codec(Codec::Zstd { level: 1 });
    writer.create_array("a", &spec).unwrap();
    writer.write("a", &Selection::all(), &items).unwrap();
    writer.commit().unwrap();
    // Stored as it is, the block has the items 16 to 31 of the first row one after the other.
    let needle: Vec<u8> = bytemuck::cast_slice(&items[16..24]).to_vec();
    let mut file = std::fs::read(path).unwrap();
    let at: Vec<usize> =
        (0..file.len() - needle.len()).filter(|&at| file[at..at + needle.len()] == needle[..]).collect();
    assert_eq!(at.len(), 1, "the block stands once in the file, as it is");
    file[at[0]] ^= 1;
    std::fs::write(path, file).unwrap();
    items
}

fn block_of(error: Error) -> Option<u64> {
    match error {
        Error::Corrupt { place, .. } => {
            assert_eq!(place.array.as_deref(), Some("a"));
            place.block
        }
        error => panic!("{error}"),
    }
}

#[test]
fn covered_blocks_are_not_decoded_and_others_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("blocks.brick");
    let mut items = damaged(&path);
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    assert_eq!(block_of(store.array("a").unwrap().read::<u32>(&Selection::all()).unwrap_err()), Some(1));
    // Beside it: the block would be copied. In a part of it: it would be decoded.
    for selection in [Selection::from((40..50, 40..50)), Selection::from((3, 20))] {
        let mut writer = store.writer().unwrap();
        let count =
            if selection.axes().len() == 2 && selection == Selection::from((3, 20)) { 1 } else { 100 };
        let outcome =
            writer.write("a", &selection, &noise(count, 2)).and_then(|()| writer.commit().map(drop));
        assert_eq!(block_of(outcome.unwrap_err()), Some(1));
        assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })), "the writer is done for");
    }
    assert_eq!(store.refresh().unwrap().generation(), 2);
    // All over it: nobody misses what was there.
    let mut writer = store.writer().unwrap();
    let new = noise(18 * 20, 3);
    writer.write("a", &Selection::from((0..18, 14..34)), &new).unwrap();
    for (n, item) in new.iter().enumerate() {
        items[n / 20 * 64 + 14 + n % 20] = *item;
    }
    assert_eq!(writer.read::<u32>("a", &Selection::all()).unwrap(), items);
    let snapshot = writer.commit().unwrap();
    assert_eq!(snapshot.array("a").unwrap().read::<u32>(&Selection::all()).unwrap(), items);
    let report = Store::open(&path).unwrap().verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn overwriting_a_damaged_array_makes_it_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("over.brick");
    damaged(&path);
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let items = noise(SHAPE[0] * SHAPE[1], 9);
    writer.write("a", &Selection::all(), &items).unwrap();
    assert_eq!(writer.commit().unwrap().array("a").unwrap().read::<u32>(&Selection::all()).unwrap(), items);
    assert!(store.verify().unwrap().is_clean());
}

/// Chunks of every kind, in every order, each written over with every other.
#[test]
fn chunks_of_all_kinds_follow_each_other_in_any_order() {
    const KINDS: usize = 5;
    let content = |kind: usize, n: usize| -> Vec<u32> {
        match kind {
            0 => vec![7; 8],
            1 => vec![0; 8],
            2 => vec![3; 8],
            3 => noise(8, n as u64 + 5),
            _ => [0, 0, 0, 0, 3, 3, 3, 3].to_vec(),
        }
    };
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("kinds.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    for first in 0..KINDS.pow(3) {
        let kinds = |code: usize| [code % KINDS, code / KINDS % KINDS, code / KINDS / KINDS];
        let name = format!("a{first}");
        let spec = ArraySpec::new(Dtype::U32, [24]).chunks([8]).blocks([4]).fill_value(7u32);
        writer.create_array(&name, &spec).unwrap();
        let second = (first * 7 + 3) % KINDS.pow(3);
        for code in [first, second] {
            let mut due = Vec::new();
            for (n, kind) in kinds(code).into_iter().enumerate() {
                let items = content(kind, n);
                let at = 8 * n as i64;
                writer.write(&name, &Selection::from(at..at + 8), &items).unwrap();
                due.extend(items);
            }
            assert_eq!(writer.read::<u32>(&name, &Selection::all()).unwrap(), due, "{first}, then {second}");
            let array = writer.commit().unwrap().array(&name).unwrap();
            assert_eq!(array.read::<u32>(&Selection::all()).unwrap(), due, "{first}, then {second}");
            let absent = kinds(code).iter().filter(|kind| **kind == 0).count() as u64;
            assert_eq!(array.stored_chunks(), 3 - absent);
            let frames = kinds(code).iter().filter(|kind| **kind > 2).count();
            assert_eq!(array.stored_bytes() == 0, frames == 0, "constants need no frame");
        }
    }
    assert!(store.verify().unwrap().is_clean());
}

/// A constant that is written item by item, or part by part, is one again.
#[test]
fn a_chunk_becomes_constant_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("constant.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U32, [16]).chunks([16]).blocks([4])).unwrap();
    let stored = |snapshot: Snapshot| {
        let array = snapshot.array("a").unwrap();
        (array.stored_chunks(), array.stored_bytes() > 0)
    };
    writer.write("a", &Selection::all(), &noise(16, 1)).unwrap();
    assert_eq!(stored(writer.commit().unwrap()), (1, true));
    for at in 0..16 {
        writer.fill("a", &Selection::new([at]), 5u32).unwrap();
    }
    assert_eq!(stored(writer.commit().unwrap()), (1, false));
    writer.fill("a", &Selection::from(3..5), 6u32).unwrap();
    assert_eq!(stored(writer.commit().unwrap()), (1, true));
    writer.fill("a", &Selection::from(0..7), 0u32).unwrap();
    writer.fill("a", &Selection::from(7..), 0u32).unwrap();
    assert_eq!(stored(writer.commit().unwrap()), (0, false));
}

/// What the data was encoded with is kept while the data is alike, and chosen anew when it is not.
#[test]
fn a_filter_goes_when_the_data_changes() {
    const COUNT: u64 = 1 << 18;
    let ramp: Vec<u64> = (0..COUNT).map(|n| n * 3).collect();
    let mut random = Random(7);
    let noisy: Vec<u64> = (0..COUNT).map(|_| random.next()).collect();
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("filter.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let mut size = |name: &str, contents: &[&[u64]]| {
        writer.create_array(name, &ArraySpec::new(Dtype::U64, [COUNT])).unwrap();
        for items in contents {
            writer.write(name, &Selection::all(), items).unwrap();
        }
        writer.commit().unwrap().array(name).unwrap().stored_bytes()
    };
    let fresh = size("fresh", &[&ramp]);
    assert!(fresh < COUNT / 4, "{fresh}: a ramp is little as differences");
    assert_eq!(size("after noise", &[&noisy, &ramp]), fresh);
    assert_eq!(size("again", &[&ramp, &ramp]), fresh);
}

#[test]
fn sources_that_do_not_fit_are_refused_before_anything_changes() {
    use brickmap::{Strided, WriteOptions};
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("sources.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::I32, [2, 3])).unwrap();
    let items = [1i32; 6];
    for (offset, shape, strides) in [
        (0, vec![2u64, 3], vec![3isize, 2]),
        (6, vec![1], vec![1]),
        (0, vec![2], vec![-1]),
        (0, vec![2], vec![isize::MAX]),
        (usize::MAX, vec![1], vec![1]),
        (0, vec![2, 3], vec![3]),
        (0, vec![u64::MAX; 3], vec![isize::MIN; 3]),
    ] {
        let strided = Strided::new(&items, offset, &shape, &strides);
        assert!(matches!(strided, Err(Error::InvalidArgument { .. })), "{offset} {shape:?} {strides:?}");
    }
    let all = Selection::all();
    for shape in [vec![3u64, 2], vec![6], vec![2, 2], vec![1, 2, 3], vec![2, 1, 3]] {
        let zeros = vec![0; shape.len()];
        let strided = Strided::new(&items, 0, &shape, &zeros).unwrap();
        let outcome = writer.write_strided("a", &all, strided, WriteOptions::new());
        assert!(matches!(outcome, Err(Error::InvalidArgument { .. })), "{shape:?}");
    }
    assert!(matches!(writer.fill("a", &all, 1u32), Err(Error::DtypeMismatch { .. })));
    assert!(matches!(writer.fill_bytes("a", &all, &[1; 3]), Err(Error::InvalidArgument { .. })));
    assert!(matches!(writer.append("a", 2, &items), Err(Error::InvalidArgument { .. })));
    assert!(matches!(writer.append("a", 0, &items[..4]), Err(Error::InvalidArgument { .. })));
    assert!(matches!(writer.append("a", 0, &[1u8; 3]), Err(Error::DtypeMismatch { .. })));
    assert!(matches!(writer.append("b", 0, &items), Err(Error::NotFound { .. })));
    assert_eq!(writer.read::<i32>("a", &all).unwrap(), [0; 6], "the writer goes on");
}
