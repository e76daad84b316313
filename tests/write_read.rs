//! What was written is what is read: staged, after the commit, after opening again, and from older snapshots.

mod common;

use brickmap::{
    Array, ArraySpec, Axis, Backend, Codec, Dtype, Element, Error, OpenOptions, Profile, Selection, Store,
    WriteOptions, Writer,
};
use common::dense::{Dense, pick};
use common::draw::{self, Drawn, Values, items};
use common::{Random, cases, check, typed};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

/// What happens to a store.
#[derive(Clone, Debug)]
enum Step {
    Write {
        array: usize,
        axes: Vec<Axis>,
        values: Values,
        seed: u64,
    },
    /// The whole array with the fill value, which takes its chunks away.
    Clear {
        array: usize,
    },
    Read {
        array: usize,
        axes: Vec<Axis>,
    },
    Commit,
    Rollback,
    Reopen {
        threads: usize,
        backend: Backend,
    },
}

#[derive(Clone, Debug)]
struct History {
    arrays: Vec<Drawn>,
    steps: Vec<Step>,
}

fn history() -> impl Strategy<Value = History> {
    let step = (0..14u8, any::<u8>(), draw::selection(), draw::values(), any::<u64>());
    (vec(draw::array(), 1..4), vec(step, 1..16)).prop_map(|(arrays, steps)| {
        let steps = steps.into_iter().map(|(kind, array, selection, values, seed)| {
            let array = usize::from(array) % arrays.len();
            let axes = selection.axes(&arrays[array].shape);
            match kind {
                0..=6 => Step::Write { array, axes, values, seed },
                7 => Step::Clear { array },
                8..=9 => Step::Read { array, axes },
                10..=11 => Step::Commit,
                12 => Step::Rollback,
                _ => {
                    let backend = if seed % 2 == 0 { Backend::Mmap } else { Backend::Pread };
                    Step::Reopen { threads: 1 + seed as usize / 2 % 2, backend }
                }
            }
        });
        History { steps: steps.collect(), arrays }
    })
}

fn name(array: usize) -> String {
    format!("step/{array}")
}

fn assert_has(array: &Array, dense: &Dense, when: &str) {
    assert!(array.read_bytes(&Selection::all()).unwrap() == dense.bytes, "{} {when}", array.path());
}

fn assert_staged(writer: &mut Writer, drawn: &Drawn, array: usize, axes: &[Axis], dense: &Dense) {
    fn read<T: Element>(writer: &mut Writer, path: &str, selection: &Selection, due: &[u8]) {
        let items = writer.read::<T>(path, selection).unwrap();
        assert!(bytemuck::cast_slice::<T, u8>(&items) == due, "staged {selection:?} of {path}");
    }
    let due = dense.read(&pick(axes, &dense.shape));
    typed!(drawn.dtype, read(writer, &name(array), &Selection::from(axes.to_vec()), &due));
}

#[test]
fn writes_of_any_selections_match_a_dense_array_before_and_after_commits() {
    check("write_read", cases(120), history(), |history| play(&history));
}

fn play(history: &History) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.brick");
    let mut store = OpenOptions::new().threads(1).create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut staged: Vec<Dense> = Vec::new();
    for (n, drawn) in history.arrays.iter().enumerate() {
        writer.create_array(&name(n), &drawn.spec()).unwrap();
        staged.push(drawn.empty());
    }
    writer.commit().unwrap();
    let mut committed = staged.clone();
    // Handles of older snapshots, with what must stay in them.
    let mut older: Vec<(Vec<Array>, Vec<Dense>)> = Vec::new();
    for step in &history.steps {
        match step {
            Step::Write { array, axes, values, seed } => {
                let (drawn, dense) = (&history.arrays[*array], &mut staged[*array]);
                let picked = pick(axes, &dense.shape);
                let bytes = items(&drawn.dtype, *values, *seed, picked.len());
                let selection = Selection::from(axes.clone());
                draw::write(
                    &mut writer,
                    &name(*array),
                    &drawn.dtype,
                    &selection,
                    &picked.shape,
                    &bytes,
                    *seed,
                );
                dense.write(&picked, &bytes);
                assert_staged(&mut writer, drawn, *array, axes, dense);
            }
            Step::Clear { array } => {
                let (drawn, dense) = (&history.arrays[*array], &mut staged[*array]);
                *dense = drawn.empty();
                writer
                    .write_bytes(&name(*array), &Selection::all(), &dense.bytes, WriteOptions::new())
                    .unwrap();
            }
            Step::Read { array, axes } => {
                assert_staged(&mut writer, &history.arrays[*array], *array, axes, &staged[*array]);
            }
            Step::Commit => {
                let snapshot = writer.commit().unwrap();
                committed = staged.clone();
                let arrays: Vec<Array> =
                    (0..staged.len()).map(|n| snapshot.array(&name(n)).unwrap()).collect();
                for (array, dense) in arrays.iter().zip(&committed) {
                    assert_has(array, dense, "after the commit");
                }
                older.push((arrays, committed.clone()));
            }
            Step::Rollback => {
                drop(writer);
                staged = committed.clone();
                writer = store.writer().unwrap();
                for (n, drawn) in history.arrays.iter().enumerate() {
                    assert_staged(&mut writer, drawn, n, &[], &staged[n]);
                }
            }
            Step::Reopen { threads, backend } => {
                drop(writer);
                staged = committed.clone();
                store =
                    OpenOptions::new().write(true).threads(*threads).backend(*backend).open(&path).unwrap();
                for (n, dense) in committed.iter().enumerate() {
                    assert_has(&store.array(&name(n)).unwrap(), dense, "opened again");
                }
                writer = store.writer().unwrap();
            }
        }
    }
    for (arrays, held) in &older {
        for (array, dense) in arrays.iter().zip(held) {
            assert_has(array, dense, "in an older snapshot");
        }
    }
    drop(writer);
    let reopened = Store::open(&path).unwrap();
    for (n, dense) in committed.iter().enumerate() {
        assert_has(&reopened.array(&name(n)).unwrap(), dense, "at the end");
        assert_has(&store.refresh().unwrap().array(&name(n)).unwrap(), dense, "refreshed");
    }
}

/// What a chunk may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chunk {
    Absent,
    Fill,
    Constant,
    Other,
    Normal,
}

/// An absent chunk before a normal one, a constant one after it, and every other order, along a dimension whose last
/// chunk is clipped; then every change of one kind into another.
#[test]
fn every_order_of_special_and_normal_chunks_is_kept() {
    const KINDS: [Chunk; 5] = [Chunk::Absent, Chunk::Fill, Chunk::Constant, Chunk::Other, Chunk::Normal];
    const CHUNK: usize = 10;
    const LEN: usize = 24;
    let item = |kind: Chunk, n: usize| match kind {
        Chunk::Absent | Chunk::Fill => -7i32,
        Chunk::Constant => 11,
        Chunk::Other => -0x0102_0304,
        Chunk::Normal => n as i32 * 3,
    };
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("chunks.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let mut made = Vec::new();
    for n in 0..KINDS.len().pow(3) {
        let kinds = [KINDS[n % 5], KINDS[n / 5 % 5], KINDS[n / 25]];
        let codec = if n % 2 == 0 { Codec::default() } else { Codec::Delta { stride: 1, level: 1 } };
        let spec = ArraySpec::new(Dtype::I32, [LEN as u64])
            .chunks([CHUNK as u64])
            .blocks([4])
            .codec(codec)
            .fill_value(-7);
        let path = format!("{n}");
        writer.create_array(&path, &spec).unwrap();
        let mut dense = Vec::new();
        for (at, kind) in kinds.into_iter().enumerate() {
            let range = at * CHUNK..((at + 1) * CHUNK).min(LEN);
            let items: Vec<i32> = range.clone().map(|n| item(kind, n)).collect();
            if kind != Chunk::Absent {
                writer.write(&path, &Selection::from(range), &items).unwrap();
            }
            dense.extend(items);
        }
        made.push((path, kinds, dense));
    }
    let snapshot = writer.commit().unwrap();
    for (path, kinds, dense) in &made {
        let array = snapshot.array(path).unwrap();
        assert_eq!(array.read::<i32>(&Selection::all()).unwrap(), *dense, "{kinds:?}");
        let stored = kinds.iter().filter(|kind| !matches!(kind, Chunk::Absent | Chunk::Fill)).count();
        assert_eq!(array.stored_chunks(), stored as u64, "chunks that are not the fill value in {kinds:?}");
        // Constant chunks take no frame, but at the end, where the chunk may grow.
        let frames = kinds.iter().enumerate().any(|(at, kind)| {
            *kind == Chunk::Normal || at == 2 && matches!(kind, Chunk::Constant | Chunk::Other)
        });
        assert_eq!(array.stored_bytes() > 0, frames, "{kinds:?}");
    }
    for (path, kinds, dense) in &mut made {
        kinds.rotate_left(1);
        for (at, kind) in kinds.iter().enumerate() {
            let range = at * CHUNK..((at + 1) * CHUNK).min(LEN);
            let items: Vec<i32> = range.clone().map(|n| item(*kind, n + 1)).collect();
            // Half of it at a time, so that the chunk is read and changed.
            let half = range.start + range.len() / 2;
            writer.write(path, &Selection::from(range.start..half), &items[..half - range.start]).unwrap();
            writer.write(path, &Selection::from(half..range.end), &items[half - range.start..]).unwrap();
            dense[range].copy_from_slice(&items);
        }
    }
    let snapshot = writer.commit().unwrap();
    for (path, kinds, dense) in &made {
        let array = snapshot.array(path).unwrap();
        assert_eq!(array.read::<i32>(&Selection::all()).unwrap(), *dense, "{kinds:?}, changed");
        let stored = kinds.iter().filter(|kind| !matches!(kind, Chunk::Absent | Chunk::Fill)).count();
        assert_eq!(
            array.stored_chunks(),
            stored as u64,
            "chunks that are not the fill value in {kinds:?}, changed"
        );
    }
}

#[test]
fn of_an_index_that_is_listed_twice_the_last_value_stays() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("list.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    for (path, codec) in [("blocks", Codec::default()), ("raw", Codec::Raw)] {
        writer.create_array(path, &ArraySpec::new(Dtype::U8, [5, 2]).chunks([2, 2]).codec(codec)).unwrap();
        let list = Selection::from(([3, 0, 3, -2, 0], ..));
        writer.write(path, &list, &[1u8, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
        assert_eq!(
            writer.read::<u8>(path, &Selection::all()).unwrap(),
            [9, 10, 0, 0, 0, 0, 7, 8, 0, 0],
            "{path}"
        );
    }
}

#[test]
fn a_dropped_writer_leaves_the_store_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dropped.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("kept", &ArraySpec::new(Dtype::U16, [100])).unwrap();
    writer.write("kept", &Selection::all(), &[7u16; 100]).unwrap();
    let generation = writer.commit().unwrap().generation();
    writer.write("kept", &Selection::from(3..9), &[8u16; 6]).unwrap();
    writer.create_array("new", &ArraySpec::new(Dtype::U16, [100])).unwrap();
    writer.create_group("group").unwrap();
    assert!(matches!(store.writer(), Err(Error::Locked { .. })), "a second writer");
    drop(writer);
    for store in [&store, &Store::open(&path).unwrap()] {
        let snapshot = store.refresh().unwrap();
        assert_eq!(snapshot.generation(), generation);
        assert_eq!(snapshot.entries().unwrap().len(), 1);
        assert_eq!(snapshot.array("kept").unwrap().read::<u16>(&Selection::all()).unwrap(), [7; 100]);
    }
}

#[test]
fn reading_through_a_writer_and_refused_writes_leave_nothing_to_commit() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("read.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U8, [4])).unwrap();
    let generation = writer.commit().unwrap().generation();
    writer.read::<u8>("a", &Selection::all()).unwrap();
    writer.write("a", &Selection::all(), &[1u8; 5]).unwrap_err();
    writer.write("a", &Selection::from(9), &[1u8]).unwrap_err();
    writer.write("a", &Selection::all(), &[1u16; 4]).unwrap_err();
    writer.write("b", &Selection::all(), &[1u8; 4]).unwrap_err();
    writer.create_array("a", &ArraySpec::new(Dtype::U8, [4])).unwrap_err();
    assert_eq!(writer.commit().unwrap().generation(), generation);
    writer.write("a", &Selection::from(1), &[9u8]).unwrap();
    assert_eq!(
        writer.commit().unwrap().array("a").unwrap().read::<u8>(&Selection::all()).unwrap(),
        [0, 9, 0, 0]
    );
}

/// Writes arrays of many kinds, large enough for several threads, and returns the file but for the superblock and the
/// roots, which hold random ids.
fn file_made_by(path: &Path, threads: usize) -> Vec<u8> {
    let store = OpenOptions::new().threads(threads).create(path).unwrap();
    let mut writer = store.writer().unwrap();
    let codecs = [
        Codec::default(),
        Codec::Auto { profile: Profile::Small, level: 3 },
        Codec::Auto { profile: Profile::Fast, level: -7 },
        Codec::Zstd { level: 6 },
        Codec::Planes { level: 9 },
        Codec::Delta { stride: 1, level: 12 },
        Codec::Raw,
    ];
    for (n, codec) in codecs.into_iter().enumerate() {
        let path = format!("{n}");
        let spec = ArraySpec::new(Dtype::F32, [40, 100, 200]).chunks([10, 100, 200]).codec(codec);
        writer.create_array(&path, &spec).unwrap();
        let mut random = Random(5);
        let noise = |random: &mut Random| (random.below(9) * random.below(9)) as f32 / 4096.0;
        let field: Vec<f32> =
            (0..800_000).map(|n| (n as f32 / 300.0).sin().round() + noise(&mut random)).collect();
        writer.write(&path, &Selection::all(), &field).unwrap();
        writer.write(&path, &Selection::from((3..25, 7, ..)), &field[..22 * 200]).unwrap();
    }
    writer.commit().unwrap();
    std::fs::read(path).unwrap().split_off(4 * 4096)
}

#[test]
fn the_same_data_gives_the_same_file_whatever_the_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let one = file_made_by(&directory.path().join("1.brick"), 1);
    for threads in [2, 3] {
        let several = file_made_by(&directory.path().join(format!("{threads}.brick")), threads);
        assert_eq!(one.len(), several.len(), "{threads} threads");
        assert!(one == several, "{threads} threads");
    }
    // On a thread that has encoded before.
    let again = file_made_by(&directory.path().join("again.brick"), 1);
    assert_eq!(one.len(), again.len(), "a second time");
    assert!(one == again, "a second time");
}

#[test]
fn two_arrays_change_in_one_commit_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("two.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    for path in ["a", "b/c"] {
        writer.create_array(path, &ArraySpec::new(Dtype::I64, [50]).chunks([7])).unwrap();
        writer.write(path, &Selection::all(), &[1i64; 50]).unwrap();
    }
    let first = writer.commit().unwrap();
    for path in ["a", "b/c"] {
        writer
            .write(path, &Selection::new([Axis::Range { start: Some(1), stop: None, step: 8 }]), &[2i64; 7])
            .unwrap();
    }
    let seen = |snapshot: &brickmap::Snapshot| {
        ["a", "b/c"].map(|path| {
            snapshot.array(path).unwrap().read::<i64>(&Selection::all()).unwrap().iter().sum::<i64>()
        })
    };
    assert_eq!(seen(&store.refresh().unwrap()), [50, 50], "before the commit");
    let second = writer.commit().unwrap();
    assert_eq!(seen(&store.snapshot()), [50, 50], "a handle that was not refreshed");
    assert_eq!(
        (seen(&first), seen(&second), seen(&store.refresh().unwrap())),
        ([50, 50], [57, 57], [57, 57])
    );
}
