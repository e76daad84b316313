//! Arguments that cannot be right are errors of the right kind, before anything is allocated or written.

mod common;

use brickmap::{
    ArraySpec, Axis, Backend, Codec, Dtype, Error, MAX_LEN, OpenOptions, Result, Selection, Store,
    StridedMut, VoidType, WriteOptions, Writer,
};
use common::{cases, check};
use proptest::collection::vec;
use std::fmt::Debug;
use std::mem::MaybeUninit;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Invalid,
    OutOfBounds,
    Dtype,
    TooLarge,
    NotFound,
    Exists,
    State,
}

#[track_caller]
fn refused<T>(result: Result<T>, due: Kind) {
    let error = match result {
        Ok(_) => panic!("not refused"),
        Err(error) => error,
    };
    let kind = match &error {
        Error::InvalidArgument { .. } => Kind::Invalid,
        Error::OutOfBounds { .. } => Kind::OutOfBounds,
        Error::DtypeMismatch { .. } => Kind::Dtype,
        Error::TooLarge { .. } => Kind::TooLarge,
        Error::NotFound { .. } => Kind::NotFound,
        Error::AlreadyExists { .. } => Kind::Exists,
        Error::InvalidState { .. } => Kind::State,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind, due, "{error}");
    assert!(!error.to_string().is_empty());
}

/// A store with an array "a" of shape (4, 6), `n * 3` at position n, and its writer.
fn store() -> (tempfile::TempDir, Store, Writer) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("bad.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::I32, [4, 6]).chunks([3, 4]).blocks([2, 2])).unwrap();
    writer.create_array("raw", &ArraySpec::new(Dtype::I32, [4, 6]).codec(Codec::Raw)).unwrap();
    writer.create_strings("words", &[2], &["one", "two"]).unwrap();
    writer.create_group("group").unwrap();
    for path in ["a", "raw"] {
        writer.write(path, &Selection::all(), &(0..24).map(|n| n * 3).collect::<Vec<i32>>()).unwrap();
    }
    writer.commit().unwrap();
    store.refresh().unwrap();
    (directory, store, writer)
}

/// Selections that do not fit an array of shape (4, 6).
fn misfits() -> Vec<(Selection, Kind)> {
    let step = |step| Axis::Range { start: None, stop: None, step };
    vec![
        (Selection::from(4), Kind::OutOfBounds),
        (Selection::from(-5), Kind::OutOfBounds),
        (Selection::from((0, 6)), Kind::OutOfBounds),
        (Selection::from(i64::MIN), Kind::OutOfBounds),
        (Selection::from(u64::MAX), Kind::OutOfBounds),
        (Selection::from((0, 0, 0)), Kind::OutOfBounds),
        (Selection::from([0, 4]), Kind::OutOfBounds),
        (Selection::from((.., [0i64, -7])), Kind::OutOfBounds),
        (Selection::new([step(0)]), Kind::Invalid),
        (Selection::new([Axis::Ellipsis, Axis::Ellipsis]), Kind::Invalid),
        (Selection::new(vec![Axis::NewAxis; 31]), Kind::TooLarge),
    ]
}

#[test]
fn a_selection_that_does_not_fit_is_refused_by_every_read_and_write() {
    let (_directory, store, mut writer) = store();
    for path in ["a", "raw"] {
        let array = store.array(path).unwrap();
        for (selection, kind) in misfits() {
            refused(array.read::<i32>(&selection), kind);
            refused(array.read_into(&selection, &mut [5i32; 24]), kind);
            refused(array.read_bytes(&selection), kind);
            refused(array.read_bytes_into(&selection, &mut [MaybeUninit::new(5); 96]), kind);
            let mut items = [5i32; 24];
            refused(
                array.read_strided(&selection, StridedMut::new(&mut items, 0, &[4, 6], &[6, 1]).unwrap()),
                kind,
            );
            assert_eq!(items, [5; 24]);
            refused(writer.read::<i32>(path, &selection), kind);
            refused(writer.write(path, &selection, &[5i32; 24]), kind);
            refused(writer.write_bytes(path, &selection, &[5; 96], WriteOptions::new()), kind);
            if path == "raw" {
                refused(array.view::<i32>(&selection), kind);
            }
        }
        refused(array.get::<i32>(&[0]), Kind::OutOfBounds);
        refused(array.get::<i32>(&[0, 0, 0]), Kind::OutOfBounds);
        refused(array.get::<i32>(&[4, 0]), Kind::OutOfBounds);
        refused(array.get::<i32>(&[0, i64::MIN]), Kind::OutOfBounds);
    }
    unchanged(&store, &mut writer);
}

#[test]
fn another_dtype_than_the_arrays_is_refused() {
    let (_directory, store, mut writer) = store();
    let array = store.array("raw").unwrap();
    refused(array.read::<u32>(&Selection::all()), Kind::Dtype);
    refused(array.read::<f32>(&Selection::all()), Kind::Dtype);
    refused(array.read_into(&Selection::all(), &mut [0i64; 24]), Kind::Dtype);
    refused(array.get::<u8>(&[0, 0]), Kind::Dtype);
    refused(array.view::<f32>(&Selection::all()), Kind::Dtype);
    let mut items = [0u32; 24];
    refused(
        array.read_strided(&Selection::all(), StridedMut::new(&mut items, 0, &[4, 6], &[6, 1]).unwrap()),
        Kind::Dtype,
    );
    refused(writer.read::<f32>("a", &Selection::all()), Kind::Dtype);
    refused(writer.write("a", &Selection::all(), &[[0f32; 2]; 24]), Kind::Dtype);
    refused(store.ragged("words").unwrap().read_runs::<i8>(&Selection::all()), Kind::Dtype);
    unchanged(&store, &mut writer);
}

#[test]
fn a_wrong_number_of_items_is_refused_before_any_is_written() {
    let (_directory, store, mut writer) = store();
    let array = store.array("a").unwrap();
    let two_rows = Selection::from(1..3);
    for len in [0, 1, 11, 13, 24] {
        let mut items = vec![5i32; len];
        refused(array.read_into(&two_rows, &mut items), Kind::Invalid);
        assert_eq!(items, vec![5; len]);
        refused(writer.write("a", &two_rows, &items), Kind::Invalid);
    }
    for len in [0, 47, 49, 51, 52] {
        let mut bytes = vec![MaybeUninit::new(5u8); len];
        refused(array.read_bytes_into(&two_rows, &mut bytes), Kind::Invalid);
        refused(writer.write_bytes("a", &two_rows, &vec![5; len], WriteOptions::new()), Kind::Invalid);
    }
    let mut items = [5i32; 24];
    for shape in [&[2, 5][..], &[2, 7], &[12], &[1, 2, 6], &[6, 2], &[]] {
        let strides: Vec<isize> =
            (0..shape.len()).map(|dim| shape[dim + 1..].iter().product::<u64>() as isize).collect();
        let destination = StridedMut::new(&mut items, 0, shape, &strides).unwrap();
        refused(array.read_strided(&two_rows, destination), Kind::Invalid);
    }
    assert_eq!(items, [5; 24]);
    unchanged(&store, &mut writer);
}

#[test]
fn a_destination_that_is_too_small_or_overlaps_itself_is_refused() {
    let mut items = [0i32; 24];
    let mut strided = |offset, shape: &[u64], strides: &[isize]| {
        StridedMut::new(&mut items, offset, shape, strides).map(|_| ())
    };
    strided(0, &[4, 6], &[6, 1]).unwrap();
    strided(23, &[4, 6], &[-6, -1]).unwrap();
    strided(0, &[6, 4], &[1, 6]).unwrap();
    strided(24, &[0, 6], &[6, 1]).unwrap();
    strided(23, &[], &[]).unwrap();
    strided(0, &[1, 24], &[0, 1]).unwrap();
    refused(strided(0, &[4, 6], &[6]), Kind::Invalid);
    refused(strided(24, &[], &[]), Kind::Invalid);
    refused(strided(1, &[4, 6], &[6, 1]), Kind::Invalid);
    refused(strided(22, &[4, 6], &[-6, -1]), Kind::Invalid);
    refused(strided(0, &[4, 6], &[5, 1]), Kind::Invalid);
    refused(strided(0, &[4, 6], &[0, 1]), Kind::Invalid);
    refused(strided(0, &[2, 2], &[1, 1]), Kind::Invalid);
    refused(strided(5, &[2, 2], &[1, -1]), Kind::Invalid);
    refused(strided(0, &[u64::MAX], &[1]), Kind::Invalid);
    refused(strided(0, &[u64::MAX; 3], &[isize::MAX / 4; 3]), Kind::Invalid);
    refused(strided(0, &[u64::MAX; 40], &[isize::MIN / 4; 40]), Kind::Invalid);
    refused(strided(0, &[2], &[isize::MAX]), Kind::Invalid);
    refused(strided(0, &[2], &[isize::MIN]), Kind::Invalid);
    refused(strided(usize::MAX, &[1], &[1]), Kind::Invalid);
    refused(strided(usize::MAX / 4, &[2], &[isize::MAX / 4]), Kind::Invalid);
}

/// Destinations of any shape and strides are taken if and only if all items are inside and apart, or the rule for telling
/// so does not see it; a taken one is never wrong.
#[test]
fn a_destination_that_is_taken_has_room_for_every_item() {
    let dims = vec((0..5u64, -9..10isize), 0..4);
    check("destinations", cases(40), (dims, 0..30usize, 0..40usize), |(dims, offset, len)| {
        let (shape, strides): (Vec<u64>, Vec<isize>) = dims.into_iter().unzip();
        let mut places = vec![offset as isize];
        for (len, stride) in shape.iter().zip(&strides) {
            places = places.iter().flat_map(|at| (0..*len as isize).map(move |n| at + n * stride)).collect();
        }
        let inside = places.iter().all(|at| (0..len as isize).contains(at));
        places.sort_unstable();
        let apart = places.windows(2).all(|pair| pair[0] != pair[1]);
        let taken = StridedMut::new(&mut vec![0u8; len], offset, &shape, &strides).is_ok();
        assert!(!taken || inside && apart, "taken: {offset} {shape:?} {strides:?} in {len}");
        let wide = StridedMut::new(&mut vec![[0f64; 2]; len], offset, &shape, &strides).is_ok();
        assert_eq!(taken, wide, "whatever the items: {offset} {shape:?} {strides:?} in {len}");
    });
}

#[test]
fn what_is_not_an_array_is_refused() {
    let (_directory, store, mut writer) = store();
    refused(store.array("b"), Kind::NotFound);
    refused(store.array("group"), Kind::Invalid);
    refused(store.array("words"), Kind::Invalid);
    refused(store.ragged("a"), Kind::Invalid);
    refused(store.ragged("b"), Kind::NotFound);
    refused(writer.write("b", &Selection::all(), &[0i32]), Kind::NotFound);
    refused(writer.write("group", &Selection::all(), &[0i32]), Kind::Invalid);
    refused(writer.write("words", &Selection::all(), b"ab"), Kind::Invalid);
    refused(writer.read::<u8>("words", &Selection::all()), Kind::Invalid);
    let spec = ArraySpec::new(Dtype::U8, [1]);
    refused(writer.create_array("a", &spec), Kind::Exists);
    refused(writer.create_array("group", &spec), Kind::Exists);
    refused(writer.create_array("a/b", &spec), Kind::Invalid);
    for path in ["", "x//y", ".", "x/..", "nul\0", &"x".repeat(1025)] {
        let refusal = writer.create_array(path, &spec).unwrap_err();
        assert!(!matches!(refusal, Error::Io { .. } | Error::Corrupt { .. }), "{path}: {refusal:?}");
    }
    refused(writer.create_strings("a", &[1], &["x"]), Kind::Exists);
    refused(writer.create_strings("s", &[2], &["x"]), Kind::Invalid);
    refused(writer.create_strings("s", &[], &["x", "y"]), Kind::Invalid);
    refused(writer.create_strings("s", &[u64::MAX, 3], &["x"]), Kind::TooLarge);
    refused(writer.create_ragged("s", &[0], &[vec![1i32]]), Kind::Invalid);
    unchanged(&store, &mut writer);
}

fn unchanged(store: &Store, writer: &mut Writer) {
    let due: Vec<i32> = (0..24).map(|n| n * 3).collect();
    for path in ["a", "raw"] {
        assert_eq!(writer.read::<i32>(path, &Selection::all()).unwrap(), due);
    }
    let generation = store.snapshot().generation();
    assert_eq!(writer.commit().unwrap().generation(), generation, "nothing to commit");
    assert_eq!(store.refresh().unwrap().generation(), generation);
}

#[test]
fn arrays_that_cannot_be_are_refused_before_anything_is_allocated() {
    let (_directory, store, mut writer) = store();
    let f64s = |shape: &[u64]| ArraySpec::new(Dtype::F64, shape);
    let u8s = |shape: &[u64]| ArraySpec::new(Dtype::U8, shape);
    let mut create = |spec: &ArraySpec| writer.create_array("x", spec);
    for codec in [Codec::default(), Codec::Raw] {
        refused(create(&u8s(&[1 << 63]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[u64::MAX]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[u64::MAX, u64::MAX]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[0, u64::MAX]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[u64::MAX, 0]).codec(codec)), Kind::TooLarge);
        refused(create(&f64s(&[1 << 60]).codec(codec)), Kind::TooLarge);
        refused(create(&f64s(&[1 << 32, 1 << 32]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[1; 33]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[1; 255]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[1; 256]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[2; 64]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[4]).chunks([0]).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[0]).chunks([0]).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[4]).chunks([1, 1]).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[4]).chunks([]).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[4]).blocks([1, 1]).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[4, 4]).chunks([u64::MAX, u64::MAX]).codec(codec)), Kind::TooLarge);
        refused(create(&u8s(&[4]).fill_value(1i8).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[4]).fill_bytes(&[]).codec(codec)), Kind::Invalid);
        refused(create(&u8s(&[4]).fill_bytes(&[0; 2]).codec(codec)), Kind::Invalid);
        refused(create(&ArraySpec::new(Dtype::Bytes(0), [4]).codec(codec)), Kind::Invalid);
        refused(create(&ArraySpec::new(Dtype::Unicode(0), [4]).codec(codec)), Kind::Invalid);
        refused(create(&ArraySpec::new(Dtype::Bytes((1 << 24) + 1), [4]).codec(codec)), Kind::TooLarge);
        refused(create(&ArraySpec::new(Dtype::Unicode(u32::MAX), [4]).codec(codec)), Kind::TooLarge);
    }
    refused(create(&u8s(&[4]).blocks([0])), Kind::Invalid);
    refused(create(&u8s(&[4]).chunks([2]).blocks([0])), Kind::Invalid);
    refused(create(&u8s(&[0]).blocks([0])), Kind::Invalid);
    refused(create(&u8s(&[1 << 40]).chunks([1 << 30]).blocks([(1 << 24) + 1])), Kind::TooLarge);
    refused(create(&u8s(&[4]).blocks([u64::MAX])), Kind::TooLarge);
    refused(create(&f64s(&[1 << 20, 1 << 20]).blocks([65536, 65536])), Kind::TooLarge);
    refused(create(&u8s(&[1 << 40]).chunks([1 << 40]).blocks([1])), Kind::TooLarge);
    refused(create(&u8s(&[4, 6]).chunks([4, 3]).codec(Codec::Raw)), Kind::Invalid);
    for level in [-8, 23, i8::MIN, i8::MAX] {
        for codec in [Codec::default(), Codec::Zstd { level: 0 }, Codec::Planes { level: 0 }] {
            refused(create(&u8s(&[4]).codec(codec.level(level))), Kind::Invalid);
        }
    }
    let void = |size| ArraySpec::new(Dtype::Void(VoidType::opaque(size).unwrap()), [4]);
    refused(create(&u8s(&[4]).codec(Codec::Delta { stride: 0, level: 1 })), Kind::Invalid);
    refused(create(&void(3).codec(Codec::Delta { stride: 1, level: 1 })), Kind::Invalid);
    refused(create(&void(256).codec(Codec::Planes { level: 1 })), Kind::Invalid);
    refused(create(&void(256).codec(Codec::Delta { stride: 1, level: 1 })), Kind::Invalid);
    create(&void(255).codec(Codec::Planes { level: 1 })).unwrap();
    drop(writer);
    assert_eq!(store.refresh().unwrap().generation(), store.snapshot().generation());
}

#[test]
fn lengths_of_ragged_arrays_have_the_limits_of_other_arrays() {
    let (_directory, _store, mut writer) = store();
    let none: [&str; 0] = [];
    refused(writer.create_strings("s", &[0, u64::MAX], &none), Kind::TooLarge);
    refused(writer.create_strings("s", &[1; 33], &["x"]), Kind::TooLarge);
    writer.create_strings("s", &[0, MAX_LEN], &none).unwrap();
    let snapshot = writer.commit().unwrap();
    assert_eq!(snapshot.ragged("s").unwrap().read_strings(&Selection::all()).unwrap().len(), 0);
}

#[test]
fn nothing_selected_of_a_huge_ragged_array_takes_no_memory() {
    let (_directory, _store, mut writer) = store();
    let none: [&[f32]; 0] = [];
    writer.create_ragged("r", &[1 << 40, 0], &none).unwrap();
    let snapshot = writer.commit().unwrap();
    let ragged = snapshot.ragged("r").unwrap();
    for selection in [Selection::all(), Selection::from((.., vec![0i64; 0]))] {
        assert_eq!(ragged.read_runs::<f32>(&selection).unwrap().len(), 0);
    }
}

#[test]
fn the_largest_arrays_are_created_and_read_where_they_are_asked() {
    let (_directory, _store, mut writer) = store();
    let large = [
        ("one", ArraySpec::new(Dtype::U8, [MAX_LEN]).fill_value(7u8)),
        ("raw1", ArraySpec::new(Dtype::U8, [MAX_LEN]).fill_value(7u8).codec(Codec::Raw)),
        ("three", ArraySpec::new(Dtype::U8, [1 << 21, 1 << 21, 1 << 20]).fill_value(7u8)),
        ("dims", ArraySpec::new(Dtype::U8, [2; 32]).fill_value(7u8).chunks([1; 32])),
        ("empty", ArraySpec::new(Dtype::U8, [1 << 40, 0, 1 << 30]).fill_value(7u8)),
    ];
    for (path, spec) in &large {
        writer.create_array(path, spec).unwrap();
    }
    writer.write("one", &Selection::from(i64::MAX - 2..), &[1u8, 2]).unwrap();
    writer.write("raw1", &Selection::from(5), &[9u8]).unwrap();
    writer.write("three", &Selection::from((-1, -1, 1000..1002)), &[1u8, 2]).unwrap();
    writer.write("dims", &Selection::new([1; 32]), &[3u8]).unwrap();
    let snapshot = writer.commit().unwrap();
    let one = snapshot.array("one").unwrap();
    assert_eq!(one.read::<u8>(&Selection::from(-4..)).unwrap(), [7, 7, 1, 2]);
    let sparse = Selection::new([Axis::Range { start: Some(-1), stop: None, step: -(1 << 61) }]);
    assert_eq!(one.read::<u8>(&sparse).unwrap(), [2, 7, 7, 7]);
    refused(one.read::<u8>(&Selection::all()), Kind::TooLarge);
    refused(one.read_bytes(&Selection::all()), Kind::TooLarge);
    assert_eq!(
        snapshot.array("three").unwrap().read::<u8>(&Selection::from((-1, -1, 999..1003))).unwrap(),
        [7, 1, 2, 7]
    );
    assert_eq!(snapshot.array("dims").unwrap().read::<u8>(&Selection::new([-1; 32])).unwrap(), [3]);
    assert_eq!(snapshot.array("empty").unwrap().read::<u8>(&Selection::all()).unwrap(), [0u8; 0]);
}

#[test]
fn chunks_longer_than_the_array_are_kept_and_blocks_longer_than_chunks_cut() {
    let (_directory, _store, mut writer) = store();
    writer.create_array("long", &ArraySpec::new(Dtype::U8, [3, 0]).chunks([10, 20]).blocks([99, 7])).unwrap();
    writer.create_array("zero", &ArraySpec::new(Dtype::U8, [0, 5])).unwrap();
    writer.create_array("raw0", &ArraySpec::new(Dtype::U8, [0, 5]).codec(Codec::Raw)).unwrap();
    writer
        .create_array("scalar", &ArraySpec::new(Dtype::U8, []).chunks([]).blocks([]).codec(Codec::Raw))
        .unwrap();
    let snapshot = writer.commit().unwrap();
    let long = snapshot.array("long").unwrap();
    assert_eq!((long.chunks(), long.blocks()), (&[10, 20][..], &[10, 7][..]));
    for path in ["zero", "raw0"] {
        let zero = snapshot.array(path).unwrap();
        assert!(zero.chunks().iter().chain(zero.blocks()).all(|len| *len > 0), "{zero:?}");
        assert_eq!(zero.read::<u8>(&Selection::all()).unwrap(), [0u8; 0]);
    }
    assert_eq!(snapshot.array("scalar").unwrap().read::<u8>(&Selection::all()).unwrap(), [0]);
}

#[test]
fn a_store_in_memory_or_opened_for_reading_has_no_writer() {
    let (directory, store, _writer) = store();
    let path = directory.path().join("bad.brick");
    refused(Store::open(&path).unwrap().writer(), Kind::State);
    refused(Store::from_bytes(std::fs::read(&path).unwrap()).unwrap().writer(), Kind::State);
    refused(Store::create(&path), Kind::Exists);
    refused(OpenOptions::new().threads(0).open(&path), Kind::Invalid);
    refused(OpenOptions::new().threads(usize::MAX).open(&path), Kind::Invalid);
    let pread = OpenOptions::new().backend(Backend::Pread).open(&path).unwrap();
    refused(pread.array("raw").unwrap().view::<i32>(&Selection::all()), Kind::State);
    refused(store.array("a").unwrap().view::<i32>(&Selection::all()), Kind::State);
}
