//! Arrays that grow and shrink: what was outside reads as the fill value, and a resize costs what it changes.

mod common;
mod forge;

use brickmap::{
    Array, ArraySpec, Axis, Backend, Codec, Dtype, Element, Error, MAX_LEN, OpenOptions, Selection, Store,
    WriteOptions, Writer,
};
use common::dense::{Dense, pick};
use common::draw::{self, Drawn, SelectionRecipe, Values, items};
use common::{Random, cases, check, typed};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

/// What happens to an array.
#[derive(Clone, Debug)]
enum Step {
    Write { selection: SelectionRecipe, values: Values, seed: u64 },
    Resize { seed: u64 },
    Read { selection: SelectionRecipe },
    Commit,
    Rollback,
    Reopen { backend: Backend },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (draw::selection(), draw::values(), any::<u64>())
            .prop_map(|(selection, values, seed)| Step::Write { selection, values, seed }),
        6 => any::<u64>().prop_map(|seed| Step::Resize { seed }),
        1 => draw::selection().prop_map(|selection| Step::Read { selection }),
        3 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => any::<bool>().prop_map(|map| Step::Reopen { backend: if map { Backend::Mmap } else { Backend::Pread } }),
    ]
}

/// Raw arrays with chunks that leave room in the other dimensions.
fn array() -> impl Strategy<Value = Drawn> {
    (draw::array(), vec(0..4u64, 8)).prop_map(|(mut drawn, room)| {
        if let (Codec::Raw, Some(chunks)) = (drawn.codec, &mut drawn.chunks) {
            chunks.iter_mut().zip(room).skip(1).for_each(|(chunk, room)| *chunk += room);
        }
        drawn
    })
}

#[test]
fn resized_arrays_match_dense_ones_before_and_after_commits() {
    let drawn = (array(), vec(step(), 1..24));
    check("resize", cases(120), drawn, |(drawn, steps)| play(&drawn, &steps));
}

struct Play<'a> {
    drawn: &'a Drawn,
    path: &'a Path,
    limits: Vec<Option<u64>>,
    staged: Dense,
    committed: Dense,
}

fn play(drawn: &Drawn, steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let path = &directory.path().join("resize.brick");
    let mut store = OpenOptions::new().threads(1).create(path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &drawn.spec()).unwrap();
    let snapshot = writer.commit().unwrap();
    let limits = drawn.limits(snapshot.array("a").unwrap().chunks());
    let mut it = Play { drawn, path, limits, staged: drawn.empty(), committed: drawn.empty() };
    let mut older: Vec<(Array, Dense)> = Vec::new();
    for step in steps {
        match step {
            Step::Write { selection, values, seed } => {
                let axes = selection.axes(&it.staged.shape);
                let picked = pick(&axes, &it.staged.shape);
                let bytes = items(&drawn.dtype, *values, *seed, picked.len());
                let selection = Selection::from(axes);
                draw::write(&mut writer, "a", &drawn.dtype, &selection, &picked.shape, &bytes, *seed);
                it.staged.write(&picked, &bytes);
            }
            Step::Resize { seed } => {
                let shape = draw::other_shape(&it.staged.shape, &it.limits, *seed);
                writer.resize("a", &shape).unwrap();
                it.staged = it.staged.resized(&shape, &drawn.fill_item());
                it.assert_staged(&mut writer, &[]);
            }
            Step::Read { selection } => {
                let axes = selection.axes(&it.staged.shape);
                it.assert_staged(&mut writer, &axes);
            }
            Step::Commit => {
                let snapshot = writer.commit().unwrap();
                it.committed = it.staged.clone();
                let array = snapshot.array("a").unwrap();
                assert_has(&array, &it.committed, "after the commit");
                older.push((array, it.committed.clone()));
                assert_clean(path);
            }
            Step::Rollback => {
                drop(writer);
                it.staged = it.committed.clone();
                writer = store.writer().unwrap();
                it.assert_staged(&mut writer, &[]);
            }
            Step::Reopen { backend } => {
                drop(writer);
                it.staged = it.committed.clone();
                store = OpenOptions::new().write(true).threads(2).backend(*backend).open(path).unwrap();
                assert_has(&store.array("a").unwrap(), &it.committed, "opened again");
                writer = store.writer().unwrap();
            }
        }
    }
    writer.commit().unwrap();
    it.committed = it.staged.clone();
    it.whole();
    for (array, dense) in &older {
        assert_has(array, dense, "in an older snapshot");
    }
}

impl Play<'_> {
    fn assert_staged(&self, writer: &mut Writer, axes: &[Axis]) {
        fn read<T: Element>(writer: &mut Writer, selection: &Selection, due: &[u8]) {
            let items = writer.read::<T>("a", selection).unwrap();
            assert!(bytemuck::cast_slice::<T, u8>(&items) == due, "staged {selection:?}");
        }
        let due = self.staged.read(&pick(axes, &self.staged.shape));
        typed!(self.drawn.dtype, read(writer, &Selection::from(axes.to_vec()), &due));
    }

    /// What is committed at the end, by all backends, and through views.
    fn whole(&self) {
        assert_clean(self.path);
        for backend in [Backend::Mmap, Backend::Pread] {
            let store = OpenOptions::new().backend(backend).open(self.path).unwrap();
            let array = store.array("a").unwrap();
            assert_has(&array, &self.committed, "at the end");
            typed!(self.drawn.dtype, view_of_rows(&array, &self.committed));
        }
    }
}

/// A view, where there is one, has the items of the array.
fn view_of_rows<T: Element>(array: &Array, dense: &Dense) {
    let rows = dense.shape.first().copied().unwrap_or(1);
    for row in 0..rows {
        let axes = if dense.shape.is_empty() { vec![] } else { vec![Axis::Index(row as i64)] };
        let due = dense.read(&pick(&axes, &dense.shape));
        for view in
            [array.view::<T>(&Selection::from(axes.clone())), array.view_checked(&Selection::from(axes))]
        {
            match view {
                Ok(items) => assert!(bytemuck::cast_slice::<T, u8>(items) == due, "view of row {row}"),
                Err(Error::InvalidState { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[track_caller]
fn assert_has(array: &Array, dense: &Dense, when: &str) {
    assert_eq!(array.shape(), dense.shape, "{when}");
    assert!(array.read_bytes(&Selection::all()).unwrap() == dense.bytes, "{when}");
}

#[track_caller]
fn assert_clean(path: &Path) {
    let report = Store::open(path).unwrap().verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

fn create(path: &Path, spec: &ArraySpec) -> Store {
    let store = Store::create(path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", spec).unwrap();
    writer.commit().unwrap();
    drop(writer);
    store
}

/// Numbers from `first` on, other ones than the fill value.
fn numbers(first: u32, count: usize) -> Vec<u32> {
    (first..).take(count).collect()
}

#[test]
fn what_a_shape_cannot_be_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("errors.brick");
    let store = create(&path, &ArraySpec::new(Dtype::U32, [4, 6]).chunks([2, 4]));
    let mut writer = store.writer().unwrap();
    writer.create_group("group").unwrap();
    writer.create_strings("strings", &[2, 1], &["a", "b"]).unwrap();
    writer.create_array("raw", &ArraySpec::new(Dtype::U32, [4, 6]).codec(Codec::Raw).chunks([2, 8])).unwrap();
    writer.create_array("scalar", &ArraySpec::new(Dtype::U32, [])).unwrap();
    writer.commit().unwrap();
    let generation = store.refresh().unwrap().generation();
    let mut refused = |path: &str, shape: &[u64], about: &str| {
        let error = writer.resize(path, shape).unwrap_err();
        assert!(error.to_string().contains(about), "'{error}' does not contain '{about}'");
        assert_eq!(
            writer.commit().unwrap().generation(),
            generation,
            "nothing was changed by {path} {shape:?}"
        );
        error
    };
    assert!(matches!(
        refused("a", &[4], "1 dimensions for the array 'a' of 2"),
        Error::InvalidArgument { .. }
    ));
    assert!(matches!(refused("a", &[4; 33], "33 dimensions"), Error::InvalidArgument { .. }));
    assert!(matches!(refused("scalar", &[1], "1 dimensions"), Error::InvalidArgument { .. }));
    assert!(matches!(refused("a", &[MAX_LEN + 1, 0], "in dimension 0"), Error::TooLarge { .. }));
    assert!(matches!(refused("a", &[1 << 31, 1 << 31], "bytes"), Error::TooLarge { .. }));
    assert!(matches!(refused("a", &[0, u64::MAX], "in dimension 1"), Error::TooLarge { .. }));
    assert!(matches!(refused("group", &[1], "is a group"), Error::InvalidArgument { .. }));
    assert!(matches!(refused("strings", &[2, 2], "create it anew"), Error::Unsupported { .. }));
    assert!(matches!(refused("strings", &[2], "1 dimensions"), Error::InvalidArgument { .. }));
    assert!(matches!(refused("strings", &[MAX_LEN, 1], "too large"), Error::TooLarge { .. }));
    assert!(matches!(refused("strings", &[MAX_LEN + 1, 1], "too large"), Error::TooLarge { .. }));
    assert!(matches!(refused("raw", &[4, 9], "first dimension only"), Error::InvalidArgument { .. }));
    let error = refused("rav", &[4, 6], "raw");
    assert!(matches!(error, Error::NotFound { near: Some(near), .. } if near == "raw"));
    // The same shape is no change.
    for (path, shape) in
        [("a", &[4, 6][..]), ("/a/", &[4, 6]), ("raw", &[4, 6]), ("scalar", &[]), ("strings", &[2, 1])]
    {
        writer.resize(path, shape).unwrap();
    }
    assert_eq!(writer.commit().unwrap().generation(), generation);
}

#[test]
fn lengths_of_zero_grow_and_what_was_shrunk_away_stays_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zero.brick");
    for spec in [
        ArraySpec::new(Dtype::U32, [0]).fill_value(7u32),
        ArraySpec::new(Dtype::U32, [0]).fill_value(7u32).chunks([3]).blocks([2]),
        ArraySpec::new(Dtype::U32, [0]).fill_value(7u32).codec(Codec::Raw),
        ArraySpec::new(Dtype::U32, [0]).fill_value(7u32).codec(Codec::Raw).chunks([5]),
    ] {
        let store = create(&path, &spec);
        let mut writer = store.writer().unwrap();
        writer.resize("a", &[9]).unwrap();
        assert_eq!(writer.read::<u32>("a", &Selection::all()).unwrap(), [7; 9]);
        writer.write("a", &Selection::all(), &numbers(100, 9)).unwrap();
        let old = writer.commit().unwrap();
        writer.resize("a", &[0]).unwrap();
        let empty = writer.commit().unwrap().array("a").unwrap();
        assert_eq!((empty.len(), empty.stored_bytes(), empty.stored_chunks()), (0, 0, 0));
        writer.resize("a", &[20]).unwrap();
        let grown = writer.commit().unwrap().array("a").unwrap();
        assert_eq!(grown.read::<u32>(&Selection::all()).unwrap(), [7; 20]);
        // A snapshot keeps its shape and its items.
        assert_eq!(old.array("a").unwrap().read::<u32>(&Selection::all()).unwrap(), numbers(100, 9));
        assert_clean(&path);
        drop(writer);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn constants_that_are_cut_do_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("constant.brick");
    let store = create(&path, &ArraySpec::new(Dtype::U32, [4, 8]).chunks([4, 4]).blocks([2, 3]));
    let mut writer = store.writer().unwrap();
    writer.write("a", &Selection::all(), &[5u32; 32]).unwrap();
    let array = writer.commit().unwrap().array("a").unwrap();
    assert_eq!((array.stored_chunks(), array.stored_bytes()), (2, 0), "constants take no frame");
    writer.resize("a", &[3, 6]).unwrap();
    writer.commit().unwrap();
    assert_clean(&path);
    writer.resize("a", &[5, 9]).unwrap();
    let array = writer.commit().unwrap().array("a").unwrap();
    let due: Vec<u32> = (0..45).map(|n| if n / 9 < 3 && n % 9 < 6 { 5 } else { 0 }).collect();
    assert_eq!(array.read::<u32>(&Selection::all()).unwrap(), due);
    assert_clean(&path);
}

/// Chunks of an array whose lengths are far beyond what could be walked.
const FAR: u64 = 1 << 40;

#[test]
fn keys_of_chunks_hold_while_any_dimension_grows_and_shrinks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.brick");
    let store = create(&path, &ArraySpec::new(Dtype::U8, [1, 1, 1]).chunks([1, 1, 1]));
    let mut writer = store.writer().unwrap();
    let mut items: Vec<([u64; 3], u8)> = Vec::new();
    // Lengths whose chunks take up to 63 bits, also with bits of one dimension between those of another that shrank.
    let shapes = [
        [1, 1, 1],
        [3, 1, 1],
        [3, 1, 200],
        [FAR, 1, 200],
        [FAR, 1 << 14, 200],
        [70, 1 << 14, 200],
        [70, FAR, 200],
        [70, FAR, 1],
        [1, FAR, 1 << 20],
        [2, 5, FAR],
        [1 << 60, 5, 1],
        [0, 5, FAR],
        [3, 5, FAR],
    ];
    let mut random = Random(7);
    for (n, shape) in shapes.into_iter().enumerate() {
        writer.resize("a", &shape).unwrap();
        items.retain(|(at, _)| at.iter().zip(&shape).all(|(at, len)| at < len));
        if !shape.contains(&0) {
            let corners = [[0; 3], shape.map(|len| len - 1), shape.map(|len| random.below(len))];
            let near: Vec<[u64; 3]> = (0..8).map(|_| shape.map(|len| random.below(len.min(5)))).collect();
            for at in corners.into_iter().chain(near) {
                let item = 1 + random.below(255) as u8;
                writer.write("a", &Selection::new(at.map(|at| at as i64)), &[item]).unwrap();
                items.retain(|(other, _)| *other != at);
                items.push((at, item));
            }
        }
        if n % 3 != 1 {
            writer.commit().unwrap();
            assert_clean(&path);
        }
        for (at, item) in &items {
            let found = writer.read::<u8>("a", &Selection::new(at.map(|at| at as i64))).unwrap();
            assert_eq!(found, [*item], "{at:?} of {shape:?}");
        }
    }
    let array = writer.commit().unwrap().array("a").unwrap();
    assert_eq!(array.stored_chunks(), items.len() as u64);
    assert_clean(&path);
}

#[test]
fn a_resize_reads_nothing_that_it_does_not_change() {
    const CHUNKS: u64 = 5000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cost.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U32, [CHUNKS * 4, 1]).chunks([4, 1])).unwrap();
    writer.write("a", &Selection::all(), &numbers(1, CHUNKS as usize * 4)).unwrap();
    let before = writer.commit().unwrap().file_bytes();
    // The last chunk, and the pages that lead there, are behind all others now, since no space was free.
    writer.write("a", &Selection::from((CHUNKS * 4 - 4.., ..)), &[91u32, 92, 93, 94]).unwrap();
    let written = writer.commit().unwrap().file_bytes();
    drop((writer, store));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16384..before as usize].fill(0xDB);
    std::fs::write(&path, &bytes).unwrap();

    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut last = written;
    for shape in [[CHUNKS * 4 + 1, 1], [1 << 30, 1], [1 << 30, 1 << 20], [CHUNKS * 4, 5], [CHUNKS * 4 - 2, 1]]
    {
        writer.resize("a", &shape).unwrap();
        let end = writer.commit().unwrap().file_bytes();
        assert!(end - last < 8 << 10, "{} bytes for {shape:?}", end - last);
        last = end;
    }
    let array = store.refresh().unwrap().array("a").unwrap();
    assert_eq!(array.read::<u32>(&Selection::from((CHUNKS * 4 - 4.., 0))).unwrap(), [91, 92]);
    assert!(array.read::<u32>(&Selection::from((0..4, 0))).is_err(), "that is gone");
    // What is to be dropped has to be read.
    assert!(matches!(writer.resize("a", &[8, 1]), Err(Error::Corrupt { .. })));
}

#[test]
fn space_of_what_was_cut_off_is_used_again() {
    for codec in [Codec::default(), Codec::Raw] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("space.brick");
        let shape = [256u64, 512];
        let spec = ArraySpec::new(Dtype::U32, shape).chunks([32, 512]).codec(codec);
        let store = create(&path, &spec);
        let mut writer = store.writer().unwrap();
        let mut random = Random(3);
        for round in 0..20 {
            let noise: Vec<u32> = (0..shape[0] * shape[1]).map(|_| random.next() as u32).collect();
            writer.write("a", &Selection::all(), &noise).unwrap();
            writer.commit().unwrap();
            let shapes = [[100, 512], [256, 300], [0, 512], [37, 1]];
            writer.resize("a", &shapes[round % 4]).unwrap();
            if round % 3 > 0 {
                let live = writer.commit().unwrap();
                let array = live.array("a").unwrap();
                assert!(array.stored_bytes() <= array.nbytes() + array.nbytes() / 8 + 4096, "{array:?}");
            }
            writer.resize("a", &shape).unwrap();
        }
        writer.commit().unwrap();
        let len = std::fs::metadata(&path).unwrap().len();
        assert!(len < 4 * shape[0] * shape[1] * 4, "{len} bytes");
        assert_clean(&path);
    }
}

#[test]
fn raw_arrays_are_views_of_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw.brick");
    let store = create(&path, &ArraySpec::new(Dtype::U32, [24, 4]).codec(Codec::Raw).chunks([16, 8]));
    let mut writer = store.writer().unwrap();
    let items = numbers(1, 24 * 4);
    writer.write("a", &Selection::all(), &items).unwrap();
    let rows = |rows: std::ops::Range<u64>| Selection::from((rows, ..));
    let view_is = |writer: &mut Writer, selection: &Selection, due: &[u32]| {
        let array = writer.commit().unwrap().array("a").unwrap();
        assert_eq!(array.view::<u32>(selection).unwrap(), due);
        assert_eq!(array.view_checked::<u32>(selection).unwrap(), due);
        assert_clean(&path);
        array
    };
    view_is(&mut writer, &Selection::all(), &items);
    // The last chunk is not full any more; what is there can be viewed as before.
    writer.resize("a", &[31, 4]).unwrap();
    let array = view_is(&mut writer, &rows(0..24), &items);
    view_is(&mut writer, &rows(17..23), &items[17 * 4..23 * 4]);
    for rows in [rows(0..25), rows(24..25), rows(30..31)] {
        let Err(Error::InvalidState { what }) = array.view::<u32>(&rows) else { panic!("{rows:?}") };
        assert!(what.contains("written only in part"), "{what}");
    }
    // Longer rows are not stored so.
    writer.resize("a", &[31, 5]).unwrap();
    let array = writer.commit().unwrap().array("a").unwrap();
    assert!(matches!(array.view::<u32>(&rows(0..1)), Err(Error::InvalidState { .. })));
    let mut due = items[..4].to_vec();
    due.push(0);
    assert_eq!(array.read::<u32>(&rows(0..1)).unwrap(), due);
    // All chunks are cut, and follow each other again.
    writer.resize("a", &[24, 2]).unwrap();
    let due: Vec<u32> = items.chunks(4).flat_map(|row| &row[..2]).copied().collect();
    view_is(&mut writer, &Selection::all(), &due);
}

#[test]
fn pieces_grow_shrink_and_are_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pieces.brick");
    let (bytes, contents) = forge::sample();
    for array in &contents.arrays {
        // Lengths around the edges of chunks and of pieces.
        for seed in 0..12 {
            std::fs::write(&path, &bytes).unwrap();
            let store = OpenOptions::new().write(true).open(&path).unwrap();
            let name = &array.path[..];
            let fill = store.array(name).unwrap().fill_value().to_vec();
            let mut dense =
                Dense { shape: array.shape.clone(), itemsize: array.itemsize, bytes: array.items.clone() };
            let mut random = Random(seed);
            let mut writer = store.writer().unwrap();
            for round in 0..4 {
                let raw = store.array(name).unwrap().is_raw();
                let most = dense.shape.iter().enumerate().map(|(dim, len)| {
                    let most = len + 3;
                    1 + if raw && dim > 0 { most.min(array.shape[dim]) } else { most }
                });
                let shape: Vec<u64> = most.map(|most| random.below(most)).collect();
                writer.resize(name, &shape).unwrap();
                dense = dense.resized(&shape, &fill);
                if round == 2 {
                    let axes: Vec<Axis> = shape
                        .iter()
                        .map(|len| Axis::Range { start: Some(*len as i64 / 2), stop: None, step: 1 })
                        .collect();
                    let picked = pick(&axes, &shape);
                    let bytes = vec![1; picked.len() * dense.itemsize];
                    writer.write_bytes(name, &Selection::from(axes), &bytes, WriteOptions::new()).unwrap();
                    dense.write(&picked, &bytes);
                }
                assert_has(&writer.commit().unwrap().array(name).unwrap(), &dense, name);
                assert_clean(&path);
            }
        }
    }
}

#[test]
fn overwritten_pieces_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pieces.brick");
    std::fs::write(&path, forge::sample().0).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.write("pieces", &Selection::from((3..9, 1)), &[9i16; 6]).unwrap();
    writer.commit().unwrap();
    assert_clean(&path);
}
