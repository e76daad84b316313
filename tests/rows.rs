//! Rows that come and go: items are where they must be, and what only moves is not written.

mod common;
mod forge;

use brickmap::{
    ArraySpec, Backend, Codec, Dtype, Element, Error, MAX_LEN, OpenOptions, Result, Selection, Store, Writer,
};
use common::dense::{Dense, pick};
use common::draw::{self, Drawn, SelectionRecipe, Values, items};
use common::{Random, cases, check, typed};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

#[derive(Clone, Debug)]
enum Step {
    /// `whole`: at a multiple of the chunk length, and as many rows.
    Insert {
        whole: [bool; 2],
        values: Values,
        seed: u64,
    },
    Remove {
        whole: [bool; 2],
        seed: u64,
    },
    Write {
        selection: SelectionRecipe,
        values: Values,
        seed: u64,
    },
    Resize {
        seed: u64,
    },
    Commit,
    Rollback,
    Reopen {
        map: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<[bool; 2]>(), draw::values(), any::<u64>())
            .prop_map(|(whole, values, seed)| Step::Insert { whole, values, seed }),
        6 => (any::<[bool; 2]>(), any::<u64>()).prop_map(|(whole, seed)| Step::Remove { whole, seed }),
        3 => (draw::selection(), draw::values(), any::<u64>())
            .prop_map(|(selection, values, seed)| Step::Write { selection, values, seed }),
        2 => any::<u64>().prop_map(|seed| Step::Resize { seed }),
        4 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => any::<bool>().prop_map(|map| Step::Reopen { map }),
    ]
}

/// Arrays that have rows; about half of them with short chunks, so that many move.
fn array() -> impl Strategy<Value = Drawn> {
    (draw::array(), any::<u64>()).prop_map(|(mut drawn, seed)| {
        if drawn.shape.is_empty() {
            drawn.shape = vec![seed % 20];
            (drawn.chunks, drawn.blocks) = (None, None);
        }
        if let Some(chunks) = &mut drawn.chunks
            && seed.is_multiple_of(2)
        {
            chunks[0] = 1 + chunks[0] % 4;
        }
        drawn
    })
}

/// Rows to insert or remove among `rows`: first and count.
fn rows(random: &mut Random, whole: [bool; 2], chunk: u64, rows: u64, most: u64) -> (u64, u64) {
    let at = random.below(rows + 1);
    let at = if whole[0] { at / chunk * chunk } else { at };
    let count = 1 + random.below(most.max(1));
    (at, if whole[1] { count.next_multiple_of(chunk) } else { count })
}

#[test]
fn rows_that_come_and_go_match_dense_arrays() {
    check("rows", cases(140), (array(), vec(step(), 1..20)), |(drawn, steps)| play(&drawn, &steps));
}

fn play(drawn: &Drawn, steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let path = &directory.path().join("rows.brick");
    let mut store = OpenOptions::new().threads(1).create(path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("g/a", &drawn.spec()).unwrap();
    let chunks = writer.commit().unwrap().array("g/a").unwrap().chunks().to_vec();
    let chunk = chunks[0];
    let (mut staged, mut committed) = (drawn.empty(), drawn.empty());
    let mut older = Vec::new();
    for step in steps {
        match step {
            Step::Insert { whole, values, seed } => {
                let mut random = Random(*seed);
                let (at, count) = rows(&mut random, *whole, chunk, staged.shape[0], 12);
                let row = staged.row_bytes();
                if staged.bytes.len() + count as usize * row > 200_000 {
                    continue;
                }
                let bytes = items(&drawn.dtype, *values, *seed, count as usize * row / staged.itemsize);
                insert_of(&mut writer, &drawn.dtype, at, &bytes, seed % 2 == 0);
                staged.insert_rows(at, &bytes);
                assert_staged(&mut writer, &drawn.dtype, &staged);
            }
            Step::Remove { whole, seed } => {
                let all = staged.shape[0];
                let (at, count) = rows(&mut Random(*seed), *whole, chunk, all, all);
                let gone = at..(at + count).min(all);
                writer.remove("g/a", gone.clone()).unwrap();
                staged.remove_rows(gone);
                assert_staged(&mut writer, &drawn.dtype, &staged);
            }
            Step::Write { selection, values, seed } => {
                let axes = selection.axes(&staged.shape);
                let picked = pick(&axes, &staged.shape);
                let bytes = items(&drawn.dtype, *values, *seed, picked.len());
                draw::write(
                    &mut writer,
                    "g/a",
                    &drawn.dtype,
                    &Selection::from(axes),
                    &picked.shape,
                    &bytes,
                    *seed,
                );
                staged.write(&picked, &bytes);
            }
            Step::Resize { seed } => {
                let shape = draw::other_shape(&staged.shape, &drawn.limits(&chunks), *seed);
                writer.resize("g/a", &shape).unwrap();
                staged = staged.resized(&shape, &drawn.fill_item());
            }
            Step::Commit => {
                let array = writer.commit().unwrap().array("g/a").unwrap();
                committed = staged.clone();
                assert_is(&array, &committed);
                older.push((array, committed.clone()));
                assert_clean(path);
            }
            Step::Rollback => {
                drop(writer);
                staged = committed.clone();
                assert_is(&store.refresh().unwrap().array("g/a").unwrap(), &committed);
                assert_clean(path);
                writer = store.writer().unwrap();
            }
            Step::Reopen { map } => {
                drop(writer);
                staged = committed.clone();
                let backend = if *map { Backend::Mmap } else { Backend::Pread };
                store = OpenOptions::new().write(true).threads(2).backend(backend).open(path).unwrap();
                assert_is(&store.array("g/a").unwrap(), &committed);
                writer = store.writer().unwrap();
            }
        }
    }
    assert_is(&writer.commit().unwrap().array("g/a").unwrap(), &staged);
    assert_clean(path);
    assert_is(&Store::open(path).unwrap().array("g/a").unwrap(), &staged);
    for (array, dense) in &older {
        assert_is(array, dense);
    }
}

fn insert_of(writer: &mut Writer, dtype: &Dtype, at: u64, bytes: &[u8], typed: bool) {
    fn of<T: Element>(writer: &mut Writer, at: u64, bytes: &[u8], done: &mut bool) {
        let items: Vec<T> = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
        writer.insert("g/a", at, &items).unwrap();
        *done = true;
    }
    let mut done = false;
    if typed {
        typed!(dtype, of(writer, at, bytes, &mut done));
    }
    if !done {
        writer.insert_bytes("g/a", at, bytes).unwrap();
    }
}

#[track_caller]
fn assert_staged(writer: &mut Writer, dtype: &Dtype, dense: &Dense) {
    fn read<T: Element>(writer: &mut Writer, due: &[u8]) {
        let items = writer.read::<T>("g/a", &Selection::all()).unwrap();
        assert!(bytemuck::cast_slice::<T, u8>(&items) == due, "as staged");
    }
    typed!(dtype, read(writer, &dense.bytes));
}

#[track_caller]
fn assert_is(array: &brickmap::Array, dense: &Dense) {
    assert_eq!(array.shape(), dense.shape);
    assert!(array.read_bytes(&Selection::all()).unwrap() == dense.bytes, "generation {:?}", array.snapshot());
}

#[track_caller]
fn assert_clean(path: &Path) {
    let report = Store::open(path).unwrap().verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

fn numbers(seed: u64, count: u64) -> Vec<u32> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next() as u32).collect()
}

#[test]
fn chunks_that_move_as_they_are_are_neither_read_nor_written() {
    const ROWS: u64 = 4000;
    for codec in [Codec::default(), Codec::Raw] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cost.brick");
        let store = Store::create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        let spec = ArraySpec::new(Dtype::U32, [ROWS + 3, 64]).chunks([16, 64]).codec(codec);
        writer.create_array("a", &spec).unwrap();
        let mut due = numbers(1, (ROWS + 3) * 64);
        writer.write("a", &Selection::all(), &due).unwrap();
        let before = writer.commit().unwrap();
        let stored = before.array("a").unwrap().stored_bytes();
        let mut written = before.file_bytes();
        let new = numbers(2, 32 * 64);
        writer.insert("a", 160, &new).unwrap();
        due.splice(160 * 64..160 * 64, new.iter().copied());
        let after = writer.commit().unwrap();
        // The index of 250 chunks, and what was inserted.
        let most = 40 * 300 + 4 * 32 * 64 + 4096;
        assert!(after.file_bytes() - written < most, "{} bytes", after.file_bytes() - written);
        assert!(after.array("a").unwrap().read::<u32>(&Selection::all()).unwrap() == due);
        written = after.file_bytes();
        writer.remove("a", 16..48).unwrap();
        due.drain(16 * 64..48 * 64);
        let after = writer.commit().unwrap();
        assert!(after.file_bytes() - written < 40 * 300 + 4096, "{} bytes", after.file_bytes() - written);
        let array = after.array("a").unwrap();
        assert!(array.read::<u32>(&Selection::all()).unwrap() == due);
        assert_eq!(array.shape(), [ROWS + 3, 64]);
        assert!(array.stored_bytes().abs_diff(stored) < stored / 100 && array.stored_chunks() == 251);
        assert_clean(&path);
    }
}

#[test]
fn all_pages_of_an_index_move() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages.brick");
    std::fs::write(&path, forge::sample().0).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.insert("deep", 100, &[1u8; 200]).unwrap();
    writer.remove("deep", 10..20).unwrap();
    let found: Vec<u8> = writer.read("deep", &Selection::all()).unwrap();
    let due: Vec<u8> = (0..390u64)
        .map(|n| match n {
            0 => 1,
            60 => 71,
            90..290 => 1,
            389 => 200,
            _ => 0,
        })
        .collect();
    assert_eq!(found, due);
    writer.commit().unwrap();
    assert_clean(&path);
}

#[test]
fn arrays_of_all_kinds_of_chunks_take_and_lose_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kinds.brick");
    let (bytes, contents) = forge::sample();
    for array in contents.arrays.iter().filter(|array| !array.shape.is_empty()) {
        for seed in 0..16 {
            std::fs::write(&path, &bytes).unwrap();
            let store = OpenOptions::new().write(true).open(&path).unwrap();
            let name = &array.path[..];
            let chunk = store.array(name).unwrap().chunks()[0];
            let mut dense =
                Dense { shape: array.shape.clone(), itemsize: array.itemsize, bytes: array.items.clone() };
            let (mut random, mut writer) = (Random(seed), store.writer().unwrap());
            for round in 0..4 {
                let whole = [random.below(2) == 0, random.below(2) == 0];
                let (at, count) = rows(&mut random, whole, chunk, dense.shape[0], 9);
                if (seed + round) % 2 == 0 {
                    let bytes = vec![round as u8 + 1; count as usize * dense.row_bytes()];
                    writer.insert_bytes(name, at, &bytes).unwrap();
                    dense.insert_rows(at, &bytes);
                } else {
                    let gone = at..(at + count).min(dense.shape[0]);
                    writer.remove(name, gone.clone()).unwrap();
                    dense.remove_rows(gone);
                }
                assert_is(&writer.commit().unwrap().array(name).unwrap(), &dense);
                assert_clean(&path);
            }
        }
    }
}

/// More than moves at once, in each dimension that is cut.
#[test]
fn large_arrays_move_box_by_box() {
    for (shape, chunks) in [([50, 300, 1000], [40, 30, 300]), ([40, 2, 300_000], [16, 2, 1000])] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large.brick");
        let store = Store::create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        let codec = Codec::Delta { stride: 1, level: 1 };
        writer.create_array("a", &ArraySpec::new(Dtype::U16, shape).chunks(chunks).codec(codec)).unwrap();
        let row = (shape[1] * shape[2]) as usize;
        let mut due: Vec<u16> = (0..shape[0] as usize * row).map(|n| (n / 3 + n / row * 7) as u16).collect();
        writer.write("a", &Selection::all(), &due).unwrap();
        writer.insert("a", 5, &vec![9u16; 3 * row]).unwrap();
        due.splice(5 * row..5 * row, vec![9; 3 * row]);
        assert!(writer.read::<u16>("a", &Selection::all()).unwrap() == due, "inserted");
        writer.remove("a", 2..11).unwrap();
        due.drain(2 * row..11 * row);
        let array = writer.commit().unwrap().array("a").unwrap();
        assert!(array.read::<u16>(&Selection::all()).unwrap() == due, "removed");
        assert_clean(&path);
    }
}

#[test]
fn rows_move_within_arrays_that_are_mostly_not_there() {
    const FAR: u64 = 1 << 32;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sparse.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::U8, [FAR, 5]).chunks([1 << 20, 3]).fill_value(7u8);
    writer.create_array("a", &spec).unwrap();
    for (at, item) in [(3u64, 1u8), (FAR / 3, 2), (FAR - 1, 3)] {
        writer.write("a", &Selection::from((at, 4)), &[item]).unwrap();
    }
    writer.insert("a", 2, &[9u8; 15]).unwrap();
    writer.remove("a", FAR / 2..FAR / 2 + 1).unwrap();
    writer.insert("a", 1 << 20, &vec![8u8; 5 << 20]).unwrap();
    let array = writer.commit().unwrap().array("a").unwrap();
    assert_eq!(array.shape(), [FAR + 2 + (1 << 20), 5]);
    let get = |at: u64| array.get::<u8>(&[at as i64, 4]).unwrap();
    let moved = FAR / 3 + 3 + (1 << 20);
    let rows = [0, 2, 4, 6, 1 << 20, (1 << 21) - 1, 1 << 21, moved, FAR + 1 + (1 << 20)];
    assert_eq!(rows.map(get), [7, 9, 9, 1, 8, 8, 7, 2, 3]);
    assert_clean(&path);
    // Walking through this one would take years.
    writer.create_array("far", &ArraySpec::new(Dtype::U8, [MAX_LEN - 9]).fill_value(7u8)).unwrap();
    writer.write("far", &Selection::from(MAX_LEN - 11..MAX_LEN - 9), &[1u8, 2]).unwrap();
    writer.write("far", &Selection::from(1u64 << 40), &[3u8]).unwrap();
    writer.insert("far", 1, &[4u8, 5, 6]).unwrap();
    writer.remove("far", 0..2).unwrap();
    let array = writer.commit().unwrap().array("far").unwrap();
    let get = |at: u64| array.get::<u8>(&[at as i64]).unwrap();
    assert_eq!([0, 1, 2, 1 << 40, (1 << 40) + 1, MAX_LEN - 10, MAX_LEN - 9].map(get), [5, 6, 7, 7, 3, 1, 2]);
    assert_eq!((array.shape(), array.stored_chunks()), (&[MAX_LEN - 8][..], 3));
    assert_clean(&path);
}

#[test]
fn removed_rows_give_their_space_back() {
    for codec in [Codec::default(), Codec::Raw] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("space.brick");
        let store = Store::create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        let spec = ArraySpec::new(Dtype::U32, [0, 256]).chunks([32, 256]).codec(codec);
        writer.create_array("a", &spec).unwrap();
        let mut ends = Vec::new();
        for round in 0..16u64 {
            writer.insert("a", 0, &numbers(round, 256 * 256)).unwrap();
            writer.commit().unwrap();
            let rows = if round % 2 == 0 { [0..128, 0..128] } else { [5..100, 0..161] };
            for rows in rows {
                writer.remove("a", rows).unwrap();
                writer.commit().unwrap();
            }
            let array = store.refresh().unwrap().array("a").unwrap();
            assert_eq!((array.len(), array.stored_bytes(), array.stored_chunks()), (0, 0, 0));
            ends.push(array.snapshot().file_bytes());
            assert_clean(&path);
        }
        assert!(ends[15] <= ends[9] + 4096 && ends[15] < 6 * 256 * 256 * 4, "{ends:?}");
    }
}

#[test]
fn rows_that_are_not_committed_leave_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rollback.brick");
    std::fs::write(&path, forge::sample().0).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let read = |store: &Store| -> (u64, Vec<Vec<u8>>) {
        let snapshot = store.refresh().unwrap();
        let names = ["b", "pieces", "group/raw"];
        let read = |name| snapshot.array(name).unwrap().read_bytes(&Selection::all()).unwrap();
        (snapshot.generation(), names.map(read).to_vec())
    };
    let before = read(&store);
    let mut writer = store.writer().unwrap();
    writer.insert("b", 4, &[5i32; 28]).unwrap();
    writer.remove("b", 1..7).unwrap();
    writer.remove("pieces", 0..8).unwrap();
    writer.insert("group/raw", 1, &[5f64; 16]).unwrap();
    writer.append_strings("strings", &["a", "b"]).unwrap();
    drop(writer);
    assert!(read(&store) == before);
    assert_clean(&path);
}

#[test]
fn arguments_that_cannot_be_are_refused_before_anything_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::I32, [4, 6]).chunks([3, 4])).unwrap();
    writer.create_array("scalar", &ArraySpec::new(Dtype::I32, [])).unwrap();
    writer.create_array("empty", &ArraySpec::new(Dtype::I32, [4, 0])).unwrap();
    writer.create_array("far", &ArraySpec::new(Dtype::U8, [MAX_LEN - 1])).unwrap();
    writer.create_strings("words", &[2, 2], &["a", "b", "c", "d"]).unwrap();
    writer.create_strings("one", &[], &["a"]).unwrap();
    writer.create_strings("none", &[2, 0], &[""; 0]).unwrap();
    writer.create_ragged("runs", &[1], &[[1f32]]).unwrap();
    writer.create_group("group").unwrap();
    let generation = writer.commit().unwrap().generation();
    let mut refused = |outcome: &dyn Fn(&mut Writer) -> Result<()>, about: &str| {
        let error = outcome(&mut writer).unwrap_err();
        assert!(error.to_string().contains(about), "'{error}' does not contain '{about}'");
        assert_eq!(writer.commit().unwrap().generation(), generation, "nothing was changed: {error}");
        format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
    };
    let row = [1i32; 6];
    assert_eq!(refused(&|it| it.insert("a", 5, &row), "before row 5"), "OutOfBounds");
    assert_eq!(refused(&|it| it.insert("a", u64::MAX, &row), "which has 4"), "OutOfBounds");
    assert_eq!(refused(&|it| it.insert("a", 0, &row[..5]), "a row has 24"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert("a", 0, &[1i32; 13]), "whole number"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert_bytes("a", 0, &[1; 25]), "25 bytes"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert("a", 0, &[1f32; 6]), "holds"), "DtypeMismatch");
    assert_eq!(refused(&|it| it.insert("scalar", 0, &[1i32]), "no dimensions"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert("empty", 0, &[1i32]), "a row has 0"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert("far", 0, &[1u8; 2]), "too large"), "TooLarge");
    assert_eq!(refused(&|it| it.insert("words", 0, &[1u8]), "is a ragged"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert("group", 0, &[1u8]), "is a group"), "InvalidArgument");
    assert_eq!(refused(&|it| it.insert("b", 0, &row), "'a'"), "NotFound");
    #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
    let backwards = 3..2;
    assert_eq!(refused(&|it| it.remove("a", backwards.clone()), "before they start"), "InvalidArgument");
    assert_eq!(refused(&|it| it.remove("a", 3..5), "which has 4"), "OutOfBounds");
    assert_eq!(refused(&|it| it.remove("a", 7..7), "which has 4"), "OutOfBounds");
    assert_eq!(refused(&|it| it.remove("a", 0..u64::MAX), "which has 4"), "OutOfBounds");
    assert_eq!(refused(&|it| it.remove("scalar", 0..0), "no dimensions"), "InvalidArgument");
    assert_eq!(refused(&|it| it.remove("words", 0..1), "is a ragged"), "InvalidArgument");
    assert_eq!(refused(&|it| it.append_strings("words", &["x"]), "a row has 2"), "InvalidArgument");
    assert_eq!(refused(&|it| it.append_strings("one", &["x"]), "no dimensions"), "InvalidArgument");
    assert_eq!(refused(&|it| it.append_strings("none", &["x"]), "a row has 0"), "InvalidArgument");
    assert_eq!(refused(&|it| it.append_strings("a", &["x"]), "not a ragged"), "InvalidArgument");
    assert_eq!(refused(&|it| it.append_strings("group", &["x"]), "is a group"), "InvalidArgument");
    assert_eq!(refused(&|it| it.append_strings("wrds", &["x"]), "'words'"), "NotFound");
    assert_eq!(refused(&|it| it.append_strings("runs", &["x"]), "runs of"), "DtypeMismatch");
    assert_eq!(refused(&|it| it.append_runs("words", &[[1u8]; 2]), "holds strings"), "DtypeMismatch");
    assert_eq!(refused(&|it| it.append_runs("runs", &[[1f64]]), "runs of"), "DtypeMismatch");
    // Nothing is no change.
    writer.insert::<i32>("a", 4, &[]).unwrap();
    writer.insert::<i32>("empty", 2, &[]).unwrap();
    writer.remove("a", 4..4).unwrap();
    writer.append_strings("words", &[""; 0]).unwrap();
    writer.append_strings("none", &[""; 0]).unwrap();
    writer.append_runs("runs", &[[0f32; 1]; 0]).unwrap();
    assert_eq!(writer.commit().unwrap().generation(), generation);
    // A row of nothing can go.
    writer.remove("empty", 1..3).unwrap();
    assert_eq!(writer.commit().unwrap().array("empty").unwrap().shape(), [2, 0]);
    assert_clean(&path);
}

#[test]
fn a_move_that_fails_midway_ends_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U32, [64, 16]).chunks([4, 16])).unwrap();
    writer.write("a", &Selection::all(), &numbers(1, 1024)).unwrap();
    writer.commit().unwrap();
    drop((writer, store));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16384 + 100..16384 + 200].fill(0xDB);
    std::fs::write(&path, &bytes).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    for change in [
        (|it: &mut Writer| it.insert("a", 1, &[1u32; 16])) as fn(&mut Writer) -> Result<()>,
        |it: &mut Writer| it.remove("a", 0..1),
    ] {
        let mut writer = store.writer().unwrap();
        assert!(matches!(change(&mut writer), Err(Error::Corrupt { .. })));
        assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })));
    }
    // Whole chunks move all the same.
    let mut writer = store.writer().unwrap();
    writer.insert("a", 0, &[1u32; 64]).unwrap();
    let array = writer.commit().unwrap().array("a").unwrap();
    assert_eq!(array.read::<u32>(&Selection::from(8..)).unwrap(), &numbers(1, 1024)[64..]);
    assert!(array.read::<u32>(&Selection::from(4..8)).is_err());
}
