//! Copies of arrays and groups: what comes out is what went in, damage is told and never carried along, and what fails
//! leaves no trace.

mod common;
mod everything;
mod forge;

use brickmap::{
    Array, ArraySpec, Backend, Codec, CopyOptions, Dtype, Durability, EntryKind, Error, OpenOptions, Place,
    Progress, Selection, Snapshot, Store, WriteOptions, Writer,
};
use common::dense::Dense;
use common::draw::{self, Drawn};
use common::{Random, cases, check};
use everything::{Outcome, Part};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

#[track_caller]
fn assert_has(array: &Array, dense: &Dense) {
    assert_eq!(array.shape(), dense.shape);
    assert!(array.read_bytes(&Selection::all()).unwrap() == dense.bytes);
}

#[track_caller]
fn assert_clean(store: &Store) {
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// How a copy is cut and coded.
#[derive(Clone, Debug)]
struct Recut {
    chunks: Option<Vec<u16>>,
    blocks: Option<Vec<u16>>,
    codec: Option<Codec>,
}

fn recut() -> impl Strategy<Value = Recut> {
    let cuts = || proptest::option::weighted(0.5, vec(any::<u16>(), 8));
    let codec = proptest::option::of(draw::array().prop_map(|drawn| drawn.codec));
    (cuts(), cuts(), codec).prop_map(|(chunks, blocks, codec)| Recut { chunks, blocks, codec })
}

impl Recut {
    fn options(&self, drawn: &Drawn) -> CopyOptions<'static> {
        let mut options = CopyOptions::new();
        let codec = self.codec.unwrap_or(drawn.codec);
        let cut = |cuts: &[u16]| -> Vec<u64> {
            drawn.shape.iter().zip(cuts).map(|(len, cut)| 1 + u64::from(*cut) % (len + 3)).collect()
        };
        if let Some(cuts) = &self.chunks {
            let mut chunks = cut(cuts);
            if codec == Codec::Raw {
                chunks.iter_mut().zip(&drawn.shape).skip(1).for_each(|(chunk, len)| *chunk = (*len).max(1));
            }
            options = options.chunks(chunks);
        }
        if let Some(cuts) = &self.blocks {
            options = options.blocks(cut(cuts));
        }
        self.codec.map_or(options.clone(), |codec| options.codec(codec))
    }
}

#[test]
fn copies_match_what_they_are_of() {
    let drawn = (draw::case(), vec(recut(), 1..4), any::<bool>());
    check("copies", cases(200), drawn, |(case, recuts, pread)| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("from.brick");
        drop(OpenOptions::new().threads(1).create(&path).unwrap());
        let backend = if pread { Backend::Pread } else { Backend::Mmap };
        let store = OpenOptions::new().threads(2).backend(backend).write(true).open(&path).unwrap();
        let mut writer = store.writer().unwrap();
        let dense = case.create(&mut writer, "group/a");
        writer.copy("group/a", "staged").unwrap();
        let snapshot = writer.commit().unwrap();
        assert_has(&snapshot.array("staged").unwrap(), &dense);
        let to = OpenOptions::new().threads(1).create(directory.path().join("to.brick")).unwrap();
        let mut copies = to.writer().unwrap();
        snapshot.copy_to("group/a", &mut copies, "same", CopyOptions::new()).unwrap();
        snapshot.copy_to("group/a", &mut writer, "again", CopyOptions::new()).unwrap();
        let mut made = 0;
        for (n, recut) in recuts.iter().enumerate() {
            // A codec of another array need not suit the items of this one.
            match snapshot.copy_to("group/a", &mut copies, &format!("recut {n}"), recut.options(&case.array))
            {
                Ok(()) => made += 1,
                Err(Error::InvalidArgument { .. } | Error::TooLarge { .. }) if recut.codec.is_some() => {}
                Err(error) => panic!("{recut:?}: {error}"),
            }
        }
        let copied = copies.commit().unwrap();
        assert_eq!(copied.entries().unwrap().len(), 1 + made);
        for entry in copied.entries().unwrap() {
            assert_has(&copied.array(&entry.path).unwrap(), &dense);
        }
        let (from, same) = (snapshot.array("group/a").unwrap(), copied.array("same").unwrap());
        assert_eq!(
            (same.stored_bytes(), same.chunks(), same.blocks(), same.dtype()),
            (from.stored_bytes(), from.chunks(), from.blocks(), from.dtype())
        );
        assert_has(&writer.commit().unwrap().array("again").unwrap(), &dense);
        assert_clean(&store);
        assert_clean(&to);
    });
}

#[test]
fn copies_of_changed_and_resized_arrays_match() {
    let drawn = (draw::case(), draw::selection(), any::<u64>());
    check("copies of changed", cases(60), drawn, |(case, selection, seed)| {
        let directory = tempfile::tempdir().unwrap();
        let store = OpenOptions::new().threads(1).create(directory.path().join("a.brick")).unwrap();
        let mut writer = store.writer().unwrap();
        let mut dense = case.create(&mut writer, "a");
        let chunks = writer.commit().unwrap().array("a").unwrap().chunks().to_vec();
        let shape = draw::other_shape(&dense.shape, &case.array.limits(&chunks), seed);
        writer.resize("a", &shape).unwrap();
        dense = dense.resized(&shape, &case.array.fill_item());
        let axes = selection.axes(&shape);
        let picked = common::dense::pick(&axes, &shape);
        let items = draw::items(&case.array.dtype, case.values, seed, picked.len());
        let changed = Selection::from(axes);
        writer.write_bytes("a", &changed, &items, WriteOptions::new()).unwrap();
        dense.write(&picked, &items);
        writer.copy("a", "b").unwrap();
        // One does not follow the other.
        let other = draw::items(&case.array.dtype, case.values, !seed, dense.bytes.len() / dense.itemsize);
        writer.write_bytes("a", &Selection::all(), &other, WriteOptions::new()).unwrap();
        let snapshot = writer.commit().unwrap();
        assert_has(&snapshot.array("b").unwrap(), &dense);
        assert!(snapshot.array("a").unwrap().read_bytes(&Selection::all()).unwrap() == other);
        assert_clean(&store);
    });
}

/// A store with every kind of entry.
fn kinds(path: &Path) -> (Store, Snapshot) {
    let store = Store::create(path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_group("g/empty").unwrap();
    writer.create_array("g/numbers", &ArraySpec::new(Dtype::U32, [1000]).chunks([100]).blocks([10])).unwrap();
    writer.write("g/numbers", &Selection::all(), &(0..1000).collect::<Vec<u32>>()).unwrap();
    writer.create_strings("g/words", &[3], &["one", "", "drei"]).unwrap();
    writer.create_ragged::<f32, _>("g/runs", &[2], &[vec![1.5], vec![2.5, 3.5]]).unwrap();
    writer.create_array("g!", &ArraySpec::new(Dtype::U8, [1])).unwrap();
    for (path, about) in [("", "store"), ("g", "group"), ("g/words", "words"), ("g/numbers", "numbers")] {
        let attributes = serde_json::json!({ "about": about });
        writer.set_attributes(path, attributes.as_object().unwrap()).unwrap();
    }
    let snapshot = writer.commit().unwrap();
    drop(writer);
    (store, snapshot)
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.entries().unwrap().into_iter().map(|entry| entry.path).collect()
}

#[track_caller]
fn assert_group(snapshot: &Snapshot, group: &str) {
    let path = |name: &str| if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
    let numbers: Vec<u32> = snapshot.array(&path("numbers")).unwrap().read(&Selection::all()).unwrap();
    assert!(numbers == (0..1000).collect::<Vec<u32>>());
    let words = snapshot.ragged(&path("words")).unwrap().read_strings(&Selection::all()).unwrap();
    assert!(words.iter().eq(["one", "", "drei"]));
    let runs = snapshot.ragged(&path("runs")).unwrap().read_runs::<f32>(&Selection::all()).unwrap();
    assert!(runs.iter().eq([&[1.5][..], &[2.5, 3.5]]));
    for (name, about) in [("", "group"), ("words", "words"), ("numbers", "numbers")] {
        let path = if name.is_empty() { group.to_owned() } else { path(name) };
        assert_eq!(snapshot.attributes(&path).unwrap()["about"], about);
    }
    assert_eq!(snapshot.kind(&path("empty")).unwrap(), Some(EntryKind::Group));
}

#[test]
fn groups_are_copied_with_all_that_is_below() {
    let directory = tempfile::tempdir().unwrap();
    let (_, snapshot) = kinds(&directory.path().join("from.brick"));
    let to = Store::create(directory.path().join("to.brick")).unwrap();
    let mut writer = to.writer().unwrap();
    snapshot.copy_to("/g/", &mut writer, "deep/down/g", CopyOptions::new()).unwrap();
    snapshot.copy_to("g", &mut writer, "raw", CopyOptions::new().codec(Codec::Raw)).unwrap();
    snapshot.copy_to("g", &mut writer, "small", CopyOptions::new().codec(Codec::Zstd { level: 9 })).unwrap();
    snapshot.copy_to("", &mut writer, "whole", CopyOptions::new()).unwrap();
    // The attributes of the store become those of the group.
    assert_eq!(writer.attributes("whole").unwrap()["about"], "store");
    writer.copy("deep", "shallow").unwrap();
    writer.copy("shallow/down/g", "shallow/up").unwrap();
    let copied = writer.commit().unwrap();
    for group in ["deep/down/g", "raw", "small", "whole/g", "shallow/down/g", "shallow/up"] {
        assert_group(&copied, group);
    }
    assert!(copied.array("raw/numbers").unwrap().is_raw());
    assert!(copied.array("raw/numbers").unwrap().view_checked::<u32>(&Selection::all()).is_ok());
    assert!(copied.attributes("").unwrap().is_empty() && copied.attributes("deep").unwrap().is_empty());
    assert!(names(&copied).iter().filter(|name| name.starts_with("whole/")).count() == 6, "{copied:?}");
    assert_eq!(copied.entries_below("deep").unwrap().len(), 6);
    assert_clean(&to);
}

#[test]
fn a_whole_store_keeps_its_names() {
    let directory = tempfile::tempdir().unwrap();
    let (_, snapshot) = kinds(&directory.path().join("from.brick"));
    let to = Store::create(directory.path().join("to.brick")).unwrap();
    let mut writer = to.writer().unwrap();
    writer.create_group("other").unwrap();
    snapshot.copy_to("", &mut writer, "", CopyOptions::new()).unwrap();
    let copied = writer.commit().unwrap();
    assert_group(&copied, "g");
    assert_eq!(copied.attributes("").unwrap()["about"], "store");
    assert_eq!(names(&copied), ["g", "g!", "g/empty", "g/numbers", "g/runs", "g/words", "other"]);
    // A second time everything is there already.
    let error = snapshot.copy_to("", &mut writer, "", CopyOptions::new()).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(writer.commit().unwrap().generation(), copied.generation());
    // Names that are free are not enough if the attributes are not.
    let other = Store::create(directory.path().join("other.brick")).unwrap();
    let mut writer = other.writer().unwrap();
    let attributes = serde_json::json!({"mine": 1});
    writer.set_attributes("", attributes.as_object().unwrap()).unwrap();
    let error = snapshot.copy_to("", &mut writer, "/", CopyOptions::new()).unwrap_err();
    assert!(matches!(&error, Error::AlreadyExists { name } if name.contains("attributes")), "{error}");
    assert_eq!(writer.commit().unwrap().entries().unwrap().len(), 0);
}

#[test]
fn what_cannot_be_copied_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (store, snapshot) = kinds(&directory.path().join("a.brick"));
    let mut writer = store.writer().unwrap();
    let wide = ArraySpec::new(Dtype::Bytes(300), [4]);
    writer.create_array("wide", &wide).unwrap();
    let generation = writer.commit().unwrap().generation();
    let snapshot_of_wide = store.refresh().unwrap();
    let plain = CopyOptions::new;
    let long = "x".repeat(1020);
    let planes = plain().codec(Codec::Planes { level: 1 });
    let mut refused = |snapshot: &Snapshot, from: &str, to: &str, options, about: &str| {
        let error = snapshot.copy_to(from, &mut writer, to, options).unwrap_err();
        assert!(error.to_string().contains(about), "'{error}' does not contain '{about}'");
        assert_eq!(writer.commit().unwrap().generation(), generation, "{from} to {to}");
        error
    };
    let error = refused(&snapshot, "g/numbrs", "b", plain(), "did you mean 'g/numbers'?");
    assert!(matches!(error, Error::NotFound { .. }));
    let error = refused(&snapshot, "g", "g", plain(), "'g' exists already");
    assert!(matches!(error, Error::AlreadyExists { .. }));
    refused(&snapshot, "g", "g!/g", plain(), "cannot be below 'g!'");
    refused(&snapshot, "g", "", plain(), "is empty");
    refused(&snapshot, "g", "a//b", plain(), "empty part");
    let error = refused(&snapshot, "g", &long, plain(), "at most 1024");
    assert!(matches!(error, Error::TooLarge { .. }));
    refused(&snapshot, "g", "b", plain().chunks([10]), "which is not one array");
    refused(&snapshot, "g/words", "b", plain().blocks([10]), "which is not one array");
    refused(&snapshot, "g/numbers", "b", plain().chunks([10, 10]), "2 dimensions for an array of 1");
    refused(&snapshot, "g/numbers", "b", plain().codec(Codec::Zstd { level: 99 }), "zstd level of 99");
    refused(&snapshot_of_wide, "", "b", planes, "byte planes for items of 300 bytes");
    let mut refused = |from: &str, to: &str, about: &str| {
        let error = writer.copy(from, to).unwrap_err();
        assert!(error.to_string().contains(about), "'{error}' does not contain '{about}'");
        assert_eq!(writer.commit().unwrap().generation(), generation, "{from} to {to}");
    };
    refused("numbers", "b", "no array 'numbers'");
    refused("g", "wide", "'wide' exists already");
    refused("g", "g/numbers", "which would be in it");
    refused("g", "g/copy", "which would be in it");
    refused("", "copy", "which would be in it");
    writer.copy("g", "g2").unwrap();
    assert_group(&writer.commit().unwrap(), "g2");
    assert_clean(&store);
}

#[test]
fn every_structure_of_the_format_is_copied() {
    let (file, contents) = forge::sample();
    for threads in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let from = OpenOptions::new().threads(threads).from_bytes(file.clone()).unwrap().snapshot();
        let to = OpenOptions::new().threads(threads).create(directory.path().join("to.brick")).unwrap();
        let mut writer = to.writer().unwrap();
        from.copy_to("", &mut writer, "", CopyOptions::new()).unwrap();
        writer.copy("pieces", "more pieces").unwrap();
        from.copy_to("pieces", &mut writer, "one piece", CopyOptions::new().chunks([10, 2])).unwrap();
        let copied = writer.commit().unwrap();
        for part in everything::parts(&contents).into_iter().filter(|part| *part != Part::Entries) {
            let outcome = everything::read_part(&copied, &contents, part);
            assert!(matches!(outcome, Outcome::Right), "{part:?}: {outcome:?}");
        }
        let stored = |path: &str| copied.array(path).unwrap().stored_bytes();
        let items = |path: &str| copied.array(path).unwrap().read_bytes(&Selection::all()).unwrap();
        assert_eq!(stored("more pieces"), from.array("pieces").unwrap().stored_bytes());
        assert!(stored("one piece") < stored("pieces"));
        assert!(items("more pieces") == items("pieces") && items("one piece") == items("pieces"));
        assert_clean(&to);
        // What was pieces can be written to, and what is let go is accounted for.
        writer.write("more pieces", &Selection::all(), &[7i16; 20]).unwrap();
        writer.commit().unwrap();
        assert_clean(&to);
    }
}

#[test]
fn copies_depend_on_nothing_but_what_is_copied() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    let store = Store::create(directory.path().join("from.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    // Small frames and large ones, of many blocks and of one.
    for (name, chunks, blocks) in [("small", 100, 50), ("many", 2 << 20, 1000), ("one", 2 << 20, 2 << 20)] {
        let spec = ArraySpec::new(Dtype::U8, [5 << 20]).chunks([chunks]).blocks([blocks]);
        writer.create_array(name, &spec.codec(Codec::Zstd { level: 1 })).unwrap();
        let items: Vec<u8> = (0..5 << 20).map(|_| random.next() as u8).collect();
        let part = if name == "small" { 0..100_001 } else { 0..5 << 20 };
        let selection = Selection::from(0..part.end as i64);
        writer.write(name, &selection, &items[part]).unwrap();
    }
    let raw = ArraySpec::new(Dtype::U8, [5 << 20]).chunks([(2 << 20) + 1]).codec(Codec::Raw);
    writer.create_array("raw", &raw).unwrap();
    writer.write("raw", &Selection::all(), &vec![3u8; 5 << 20]).unwrap();
    let snapshot = writer.commit().unwrap();
    let copy = |threads: usize, backend: Backend| {
        let path = directory.path().join(format!("{threads} {backend:?}.brick"));
        let from = OpenOptions::new().backend(backend).open(store.path()).unwrap().snapshot();
        let to = OpenOptions::new().threads(threads).durability(Durability::None).create(&path).unwrap();
        let mut writer = to.writer().unwrap();
        from.copy_to("", &mut writer, "", CopyOptions::new()).unwrap();
        let copied = writer.commit().unwrap();
        for name in ["small", "many", "one", "raw"] {
            let items =
                |snapshot: &Snapshot| snapshot.array(name).unwrap().read::<u8>(&Selection::all()).unwrap();
            assert!(items(&copied) == items(&snapshot), "{name}");
        }
        assert_clean(&to);
        // Behind the pages with the random numbers.
        std::fs::read(&path).unwrap().split_off(4 * 4096)
    };
    let one = copy(1, Backend::Mmap);
    for (threads, backend) in
        [(2, Backend::Mmap), (5, Backend::Mmap), (1, Backend::Pread), (2, Backend::Pread)]
    {
        assert!(copy(threads, backend) == one, "{threads} threads, {backend:?}");
    }
}

/// A store of three arrays whose items can be found in the file.
fn noise(path: &Path) -> Vec<u8> {
    let store = Store::create(path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut random = Random(9);
    let items: Vec<u8> = (0..16 << 10).map(|_| random.next() as u8).collect();
    let spec = ArraySpec::new(Dtype::U8, [128, 128]).codec(Codec::Zstd { level: 1 });
    writer.create_array("g/blocks", &spec.clone().chunks([64, 128]).blocks([16, 128])).unwrap();
    writer.create_array("g/raw", &spec.codec(Codec::Raw).chunks([64, 128])).unwrap();
    writer.write("g/blocks", &Selection::all(), &items).unwrap();
    let raw: Vec<u8> = items.iter().map(|item| !item).collect();
    writer.write("g/raw", &Selection::all(), &raw).unwrap();
    writer.commit().unwrap();
    items
}

#[test]
fn damage_is_named_and_not_carried_along() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("from.brick");
    let items = noise(&path);
    let whole = std::fs::read(&path).unwrap();
    let at = |items: &[u8]| whole.windows(32).position(|window| window == &items[..32]).unwrap();
    let inverse: Vec<u8> = items.iter().map(|item| !item).collect();
    // The third block of the second chunk; the second raw chunk.
    let row = 128;
    let damages = [
        (at(&items[(64 + 32) * row..]) + 100, "g/blocks", vec![1, 0], Some(2)),
        (at(&items[..]) + 5, "g/blocks", vec![0, 0], Some(0)),
        (at(&inverse[64 * row..]) + 9, "g/raw", vec![1, 0], None),
    ];
    for (offset, array, chunk, block) in damages {
        let mut damaged = whole.clone();
        damaged[offset] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        for backend in [Backend::Mmap, Backend::Pread] {
            let from = OpenOptions::new().backend(backend).open(&path).unwrap().snapshot();
            for (name, options) in [
                ("g", CopyOptions::new()),
                (array, CopyOptions::new()),
                (array, CopyOptions::new().codec(Codec::default())),
                ("", CopyOptions::new()),
            ] {
                let to = Store::create(directory.path().join("to.brick")).unwrap();
                let mut writer = to.writer().unwrap();
                let error = from.copy_to(name, &mut writer, "copy", options).unwrap_err();
                let Error::Corrupt { place, .. } = &error else { panic!("{error}") };
                let Place { array: found, chunk: at, block: number, .. } = &**place;
                assert_eq!(
                    (found.as_deref(), at.as_deref(), *number),
                    (Some(array), Some(&chunk[..]), block),
                    "{error}"
                );
                assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })));
                drop(writer);
                assert!(to.refresh().unwrap().entries().unwrap().is_empty());
                assert_clean(&to);
                std::fs::remove_file(to.path()).unwrap();
            }
            let error = from.to_bytes().unwrap_err();
            assert!(matches!(&error, Error::Corrupt { place, .. } if place.array.as_deref() == Some(array)));
        }
    }
}

#[test]
fn a_file_of_which_much_is_stored_at_one_place_is_not_blown_up() {
    use forge::{Forge, Record};
    let mut forge = Forge::new();
    let chunk = forge.chunk("chunk", (0, 0, 0), &[10_000], &[(0, vec![5; 10_000])]);
    let pointers: Vec<_> = (0..60).map(|key| (key, chunk)).collect();
    let index = forge.index("index", 0, 0, &pointers);
    let record = Record::new(forge::dtype(3, 1), &[600_000], &[10_000], &[10_000], &[0; 6]);
    let frames = vec![chunk; 60];
    let record = record.index(index).stores(60, &frames, 0);
    let catalog = forge.catalog(vec![(b"a".to_vec(), forge::inline(&record.encode()))]);
    let file = forge.finish(catalog, forge::NULL);
    let snapshot = Store::from_bytes(file).unwrap().snapshot();
    assert_eq!(snapshot.array("a").unwrap().read::<u8>(&Selection::all()).unwrap(), vec![5; 600_000]);
    let error = snapshot.to_bytes().unwrap_err();
    assert!(matches!(&error, Error::Corrupt { what, .. } if what.contains("at one place")), "{error}");
}

/// Makes a store, with one array of 20 MB that does not get smaller.
fn large(path: &Path) -> Snapshot {
    let store = OpenOptions::new().durability(Durability::None).create(path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut random = Random(3);
    let items: Vec<u64> = (0..20_000_000 / 8).map(|_| random.next()).collect();
    writer.create_array("a", &ArraySpec::new(Dtype::U64, [items.len() as u64]).chunks([1000])).unwrap();
    writer.write("a", &Selection::all(), &items).unwrap();
    writer.commit().unwrap()
}

#[test]
fn progress_is_told_and_cancels_without_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = large(&directory.path().join("from.brick"));
    let to = Store::create(directory.path().join("to.brick")).unwrap();
    for options in [CopyOptions::new(), CopyOptions::new().chunks([100_000])] {
        let (told, last) = (AtomicU64::new(0), AtomicU64::new(0));
        let tell = |progress: Progress| {
            let first = told.fetch_add(1, Ordering::Relaxed) == 0;
            assert!(progress.done <= progress.total && progress.total >= 20_000_000, "{progress:?}");
            let before = last.swap(progress.done, Ordering::Relaxed);
            assert!(if first { progress.done == 0 } else { before < progress.done }, "{progress:?}");
            ControlFlow::Continue(())
        };
        let mut writer = to.writer().unwrap();
        snapshot.copy_to("a", &mut writer, "a", options.clone().progress(&tell)).unwrap();
        assert!(told.load(Ordering::Relaxed) > 1);
        assert!(last.load(Ordering::Relaxed) >= 20_000_000);
        // Rolled back: nobody sees it, and its space is not lost.
        drop(writer);
        let stop = |progress: Progress| match progress.done {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let mut writer = to.writer().unwrap();
        writer.create_group("before").unwrap();
        let error = snapshot.copy_to("a", &mut writer, "a", options.progress(&stop)).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })));
        drop(writer);
        assert_eq!(to.refresh().unwrap().generation(), 1);
        assert_clean(&to);
    }
}

#[test]
fn a_copy_that_is_rolled_back_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let (store, snapshot) = kinds(&directory.path().join("a.brick"));
    let mut writer = store.writer().unwrap();
    writer.write("g/numbers", &Selection::all(), &[9u32; 1000]).unwrap();
    writer.copy("g", "copy").unwrap();
    snapshot.copy_to("g", &mut writer, "old", CopyOptions::new()).unwrap();
    drop(writer);
    let after = store.refresh().unwrap();
    assert_eq!((after.generation(), names(&after)), (snapshot.generation(), names(&snapshot)));
    assert_group(&after, "g");
    assert_clean(&store);
    // Staged changes are copied, and stay staged: the copy and the original are two arrays.
    let mut writer = store.writer().unwrap();
    writer.write("g/numbers", &Selection::all(), &[9u32; 1000]).unwrap();
    writer.create_array("new", &ArraySpec::new(Dtype::U16, [3])).unwrap();
    writer.write("new", &Selection::all(), &[1u16, 2, 3]).unwrap();
    writer.copy("g", "copy").unwrap();
    writer.copy("new", "newer").unwrap();
    writer.write("g/numbers", &Selection::all(), &[8u32; 1000]).unwrap();
    writer.write("newer", &Selection::from(0), &[5u16]).unwrap();
    let numbers = |writer: &mut Writer, path: &str| writer.read::<u32>(path, &Selection::all()).unwrap();
    assert!(numbers(&mut writer, "copy/numbers") == [9; 1000]);
    assert!(numbers(&mut writer, "g/numbers") == [8; 1000]);
    let committed = writer.commit().unwrap();
    assert_eq!(committed.array("new").unwrap().read::<u16>(&Selection::all()).unwrap(), [1, 2, 3]);
    assert_eq!(committed.array("newer").unwrap().read::<u16>(&Selection::all()).unwrap(), [5, 2, 3]);
    assert!(committed.array("copy/numbers").unwrap().read::<u32>(&Selection::all()).unwrap() == [9; 1000]);
    assert_clean(&store);
}

#[test]
fn copying_a_vast_array_costs_what_is_stored_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("a.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let side = 1u64 << 20;
    let spec = ArraySpec::new(Dtype::U8, [side, side, side]).chunks([16, 16, 16]).fill_value(1u8);
    writer.create_array("vast", &spec).unwrap();
    let corner = Selection::from((-20.., 100..120, 7..9));
    writer.write("vast", &corner, &[7u8; 20 * 20 * 2]).unwrap();
    writer.copy("vast", "same").unwrap();
    let snapshot = writer.commit().unwrap();
    let options = CopyOptions::new().chunks([10, 30, 5]).codec(Codec::Zstd { level: 1 });
    snapshot.copy_to("vast", &mut writer, "recut", options).unwrap();
    let snapshot = writer.commit().unwrap();
    for name in ["same", "recut"] {
        let around: Vec<u8> =
            snapshot.array(name).unwrap().read(&Selection::from((-30.., 90..130, 0..20))).unwrap();
        assert_eq!(around.iter().filter(|item| **item == 7).count(), 800, "{name}");
        assert!(around.iter().all(|item| [1, 7].contains(item)));
    }
    assert!(snapshot.array("recut").unwrap().stored_bytes() < 10_000);
    assert_clean(&store);
}
