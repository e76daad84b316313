//! Whole stores written anew: nothing is lost, nothing is free, what failed left no trace, and whoever reads goes on.

mod common;
mod everything;
mod forge;
mod processes;

use brickmap::{
    ArraySpec, Backend, Codec, Dtype, Durability, Error, OpenOptions, Selection, Snapshot, Store,
};
use common::draw::{self, Case};
use common::{Aligned, Random, cases, check};
use everything::{Outcome, read_part};
use proptest::collection::vec;
use proptest::prelude::*;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[track_caller]
fn assert_clean(store: &Store) {
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything in a snapshot: names, attributes, and the bytes of arrays.
fn contents(snapshot: &Snapshot) -> Vec<(String, String, Vec<u8>)> {
    let mut contents = vec![(String::new(), format!("{:?}", snapshot.attributes("").unwrap()), Vec::new())];
    for entry in snapshot.entries().unwrap() {
        let about = snapshot.attributes(&entry.path).unwrap();
        let (about, items) = match snapshot.array(&entry.path) {
            Ok(array) => {
                let about = format!(
                    "{about:?} {:?} {:?} {:?} {:?} {:?}",
                    array.dtype(),
                    array.chunks(),
                    array.blocks(),
                    array.codec(),
                    array.stored_bytes()
                );
                (about, array.read_bytes(&Selection::all()).unwrap())
            }
            Err(_) => (format!("{about:?} {:?}", entry.kind), Vec::new()),
        };
        contents.push((entry.path, about, items));
    }
    contents
}

/// That a compact store holds what another one does, and nothing else.
#[track_caller]
fn assert_compact(compact: &Store, of: &Snapshot) {
    let snapshot = compact.snapshot();
    assert_eq!(contents(&snapshot), contents(of));
    assert_eq!(snapshot.free_bytes().unwrap(), 0);
    assert!(snapshot.file_bytes() <= of.file_bytes());
    let report = compact.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.free_bytes, report.tail_bytes), (0, 0));
}

/// Writes some arrays, and changes them, in several commits.
fn write(store: &Store, arrays: &[Case], seed: u64) -> Snapshot {
    let mut random = Random(seed);
    let mut writer = store.writer().unwrap();
    for (n, case) in arrays.iter().enumerate() {
        case.create(&mut writer, &format!("group {}/array {n}", n % 2));
        writer.commit().unwrap();
    }
    writer.create_strings("words", &[2], &["one", "two"]).unwrap();
    writer.create_ragged::<u16, _>("runs", &[1, 2], &[vec![1, 2], vec![]]).unwrap();
    let attributes = serde_json::json!({"unit": "m", "n": random.below(1000)});
    writer.set_attributes("words", attributes.as_object().unwrap()).unwrap();
    writer.set_attributes("", attributes.as_object().unwrap()).unwrap();
    for (n, case) in arrays.iter().enumerate() {
        let items = draw::items(&case.array.dtype, case.values, random.next(), case.array.count());
        let path = format!("group {}/array {n}", n % 2);
        writer.write_bytes(&path, &Selection::all(), &items, brickmap::WriteOptions::new()).unwrap();
        if random.below(2) == 0 {
            writer.commit().unwrap();
        }
    }
    let snapshot = writer.commit().unwrap();
    drop(writer);
    store.refresh().unwrap();
    snapshot
}

#[test]
fn compact_stores_hold_all_and_nothing_else() {
    let drawn = (vec(draw::case(), 0..4), any::<u64>(), any::<bool>(), 0..3u8);
    check("compact", cases(60), drawn, |(arrays, seed, pread, durability)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.brick");
        let durability = [Durability::Full, Durability::Deferred, Durability::None][usize::from(durability)];
        let backend = if pread { Backend::Pread } else { Backend::Mmap };
        let options = OpenOptions::new().threads(1).backend(backend).durability(durability);
        let store = options.create(&path).unwrap();
        let before = write(&store, &arrays, seed);
        let old = contents(&before);
        let id = store.file_id();

        let into = before.compact_into(folder.path().join("into.brick"), None).unwrap();
        assert_compact(&into, &before);
        let bytes = before.to_bytes().unwrap();
        assert_eq!(bytes.len() as u64, into.snapshot().file_bytes());
        assert_compact(&Store::from_bytes(bytes).unwrap(), &before);

        let compact = store.compact(None).unwrap();
        assert_compact(&compact, &before);
        assert_eq!(compact.snapshot().file_bytes(), into.snapshot().file_bytes());
        assert_compact(&Store::open(&path).unwrap(), &before);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), compact.snapshot().file_bytes());
        assert!(compact.file_id() != id && into.file_id() != id);
        // What was open reads the old file, and its writers are told.
        assert!(contents(&before) == old && contents(&store.snapshot()) == old);
        assert!(matches!(store.writer(), Err(Error::Replaced { .. })));
        assert!(matches!(store.compact(None), Err(Error::Replaced { .. })));
        store.close().unwrap();

        // Again: the same size, and it can be written to.
        let again = compact.compact(None).unwrap();
        assert_eq!(again.snapshot().file_bytes(), compact.snapshot().file_bytes());
        drop(compact);
        for store in [&again, &into] {
            let mut writer = store.writer().unwrap();
            writer.create_group("new").unwrap();
            writer.commit().unwrap();
            drop(writer);
            assert_clean(store);
        }
        assert_eq!(names(folder.path()), ["a.brick", "into.brick"]);
    });
}

#[test]
fn every_structure_of_the_format_stays() {
    let (file, contents) = forge::sample();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    std::fs::write(&path, &file).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let old = store.snapshot();
    let bytes = old.to_bytes().unwrap();
    let compact = store.compact(None).unwrap();
    assert_clean(&compact);
    assert_eq!(compact.snapshot().free_bytes().unwrap(), 0);
    for snapshot in [compact.snapshot(), Store::from_bytes(bytes).unwrap().snapshot(), old] {
        for part in everything::parts(&contents) {
            let outcome = read_part(&snapshot, &contents, part);
            assert!(matches!(outcome, Outcome::Right), "{part:?}: {outcome:?}");
        }
    }
}

#[test]
fn raw_arrays_are_one_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::U32, [1000, 64]).codec(Codec::Raw).chunks([100, 64]);
    writer.create_array("a", &spec.clone()).unwrap();
    writer.create_array("b", &spec).unwrap();
    let mut items: Vec<u32> = (0..64_000).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
    writer.commit().unwrap();
    for chunk in [7usize, 2, 9] {
        let part = &mut items[chunk * 6400..chunk * 6400 + 10];
        part.fill(chunk as u32);
        writer.write("a", &Selection::new([chunk as i64 * 100, 0]), &part[..1]).unwrap();
        let few = Selection::from((chunk as i64 * 100, 0..10));
        writer.write("a", &few, part).unwrap();
        writer.write("b", &few, part).unwrap();
        writer.commit().unwrap();
    }
    drop(writer);
    let array = store.refresh().unwrap().array("a").unwrap();
    assert!(matches!(array.view::<u32>(&Selection::all()), Err(Error::InvalidState { .. })));
    let compact = store.compact(None).unwrap();
    assert!(compact.array("a").unwrap().view_checked::<u32>(&Selection::all()).unwrap() == items);
    assert!(array.read::<u32>(&Selection::all()).unwrap() == items);
    // What was never written of an array is still not there.
    let b = compact.array("b").unwrap();
    assert_eq!(b.read::<u32>(&Selection::from(700)).unwrap()[..10], [7; 10]);
    assert_clean(&compact);

    // In memory too, at addresses that are aligned, and without a copy.
    let mut memory = vec![MaybeUninit::<u128>::uninit(); compact.snapshot().file_bytes() as usize / 16 + 3];
    let bytes = compact
        .snapshot()
        .to_bytes_with(|len| {
            assert_eq!(len, compact.snapshot().file_bytes());
            Ok(bytes_of(&mut memory))
        })
        .unwrap();
    std::fs::write(folder.path().join("copy.brick"), bytes).unwrap();
    let aligned = Aligned::read(&folder.path().join("copy.brick"));
    let range = aligned.as_ref().as_ptr_range();
    let in_memory = Store::from_bytes(aligned).unwrap().array("a").unwrap();
    let view = in_memory.view_checked::<u32>(&Selection::all()).unwrap();
    assert!(view == items && range.contains(&view.as_ptr().cast()));
}

fn bytes_of(memory: &mut [MaybeUninit<u128>]) -> &mut [MaybeUninit<u8>] {
    let len = size_of_val(memory);
    // SAFETY: the same memory, and any bytes make a number.
    unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), len) }
}

#[test]
fn views_of_memory_that_is_not_aligned_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("a.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::F64, [10]).codec(Codec::Raw)).unwrap();
    writer.write("a", &Selection::all(), &[1.5f64; 10]).unwrap();
    let snapshot = writer.commit().unwrap();
    /// Bytes that start behind a multiple of 16.
    struct Shifted(Aligned);
    impl AsRef<[u8]> for Shifted {
        fn as_ref(&self) -> &[u8] {
            &self.0.as_ref()[1..]
        }
    }
    let path = folder.path().join("shifted");
    let mut bytes = vec![0];
    bytes.extend(snapshot.to_bytes().unwrap());
    std::fs::write(&path, &bytes).unwrap();
    let array = Store::from_bytes(Shifted(Aligned::read(&path))).unwrap().array("a").unwrap();
    let error = array.view::<f64>(&Selection::all()).unwrap_err();
    assert!(matches!(&error, Error::InvalidState { what } if what.contains("not aligned")), "{error}");
    assert_eq!(array.read::<f64>(&Selection::all()).unwrap(), [1.5; 10]);
}

#[test]
fn memory_has_the_size_that_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("a.brick")).unwrap();
    // A store with nothing in it is its first four pages.
    assert_eq!(store.snapshot().to_bytes().unwrap().len(), 4 * 4096);
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U8, [100_000]).chunks([1000])).unwrap();
    let mut random = Random(5);
    let items: Vec<u8> = (0..100_000).map(|_| random.next() as u8).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
    let snapshot = writer.commit().unwrap();
    let mut asked = 0;
    let mut memory = vec![MaybeUninit::new(0xAAu8); 200_000];
    let len = snapshot
        .to_bytes_with(|len| {
            asked = len;
            Ok(&mut memory)
        })
        .unwrap()
        .len();
    assert!(len as u64 == asked && len > 100_000 + 4 * 4096, "{len} {asked}");
    // What is behind stays.
    // SAFETY: all of it was initialised.
    assert!(memory[len..].iter().all(|byte| unsafe { byte.assume_init() } == 0xAA));
    let error = snapshot.to_bytes_with(|_| Ok(&mut memory[..len - 1])).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let error = snapshot.to_bytes_with(|len| Err(Error::TooLarge { what: format!("{len}") })).unwrap_err();
    assert!(matches!(error, Error::TooLarge { what } if what == asked.to_string()));
}

/// A folder with a store of one array, overwritten some times.
fn folder(durability: Durability) -> (tempfile::TempDir, PathBuf, Store) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    let store = OpenOptions::new().durability(durability).create(&path).unwrap();
    for value in 1..4 {
        commit(&store, value);
    }
    store.refresh().unwrap();
    (folder, path, store)
}

const ITEMS: u64 = 10_000;

fn commit(store: &Store, value: u32) {
    let mut writer = store.writer().unwrap();
    if writer.kind("a").unwrap().is_none() {
        writer.create_array("a", &ArraySpec::new(Dtype::U32, [ITEMS]).chunks([1000])).unwrap();
    }
    let items: Vec<u32> = (0..ITEMS as u32).map(|n| n.wrapping_mul(0x9E37_79B9) ^ value).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
    writer.commit().unwrap();
}

#[track_caller]
fn assert_value(snapshot: &Snapshot, value: u32) {
    let items: Vec<u32> = snapshot.array("a").unwrap().read(&Selection::all()).unwrap();
    assert!(items.iter().zip(0u32..).all(|(item, n)| *item == n.wrapping_mul(0x9E37_79B9) ^ value));
}

#[test]
fn damage_and_cancelling_leave_the_old_file_as_it_was() {
    let (folder, path, store) = folder(Durability::Full);
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let stop = |_| {
        assert!(store.temporary_path().unwrap().is_file());
        assert_eq!(names(folder.path()).len(), 2);
        ControlFlow::Break(())
    };
    assert!(matches!(store.compact(Some(&stop)), Err(Error::Cancelled)));
    assert_eq!(store.temporary_path(), None);
    assert!(matches!(
        store.snapshot().compact_into(folder.path().join("b.brick"), Some(&stop)),
        Err(Error::Cancelled)
    ));
    assert_eq!(names(folder.path()), ["a.brick"]);
    assert!(std::fs::read(&path).unwrap() == whole);
    commit(&store, 4);
    assert_value(&store.refresh().unwrap(), 4);
    drop(store);

    // In the newest state, in the middle of the last chunk.
    let array = Store::open(&path).unwrap().array("a").unwrap();
    let items: Vec<u32> = array.read(&Selection::all()).unwrap();
    assert_eq!(items.len() as u64, ITEMS);
    let whole = std::fs::read(&path).unwrap();
    let mut found = 0;
    for offset in (16384..whole.len()).step_by(53) {
        let mut damaged = whole.clone();
        damaged[offset] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let store = OpenOptions::new().write(true).open(&path).unwrap();
        match store.compact(None) {
            Ok(compact) => {
                // What is free was hit, or padding.
                assert_clean(&compact);
                assert_value(&compact.snapshot(), 4);
            }
            Err(Error::Corrupt { place, .. }) => {
                found += u32::from(place.block.is_some() && place.chunk.is_some());
                assert!(std::fs::read(&path).unwrap() == damaged);
                // What is said of free space is for writers only.
                if place.array.is_some() {
                    assert!(store.snapshot().compact_into(folder.path().join("b.brick"), None).is_err());
                    assert!(store.snapshot().to_bytes().is_err());
                }
            }
            Err(Error::InvalidState { .. } | Error::Io { .. }) => panic!(),
            Err(_) => {}
        }
        drop(store);
        assert_eq!(names(folder.path()), ["a.brick"]);
    }
    assert!(found >= 5, "{found}");
}

#[test]
fn readers_may_compact_into_other_files_only() {
    let (folder, path, store) = folder(Durability::Full);
    let reader = Store::open(&path).unwrap();
    assert!(matches!(reader.compact(None), Err(Error::InvalidState { .. })));
    for taken in ["a.brick", "there"] {
        std::fs::write(folder.path().join("there"), "something").unwrap();
        let error = reader.snapshot().compact_into(folder.path().join(taken), None).unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    }
    let error = reader.snapshot().compact_into(folder.path().join("none/a"), None).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // Also while there is a writer, whose staged changes it does not see.
    let mut writer = store.writer().unwrap();
    writer.create_group("staged").unwrap();
    let copy = reader.snapshot().compact_into(folder.path().join("b.brick"), None).unwrap();
    assert_value(&copy.snapshot(), 3);
    assert!(matches!(store.compact(None), Err(Error::Locked { .. })));
    let other = OpenOptions::new().write(true).open(&path).unwrap();
    assert!(matches!(other.compact(None), Err(Error::Locked { .. })));
    assert_eq!(names(folder.path()), ["a.brick", "b.brick", "there"]);
    commit(&copy, 9);
    let memory = Store::from_bytes(reader.snapshot().to_bytes().unwrap()).unwrap();
    assert!(matches!(memory.compact(None), Err(Error::InvalidState { .. })));
    let saved = memory.snapshot().compact_into(folder.path().join("c.brick"), None).unwrap();
    assert_value(&saved.snapshot(), 3);
    commit(&saved, 5);
}

#[test]
fn the_newest_state_is_taken_and_no_commit_is_lost() {
    let (_folder, path, store) = folder(Durability::Full);
    // A handle that has not seen the last commit.
    let late = OpenOptions::new().write(true).lock_timeout(Duration::from_secs(60)).open(&path).unwrap();
    commit(&store, 4);
    assert_value(&late.snapshot(), 3);
    let compact = late.compact(None).unwrap();
    assert_value(&compact.snapshot(), 4);
    assert_value(&late.snapshot(), 3);
    // Commits and compactions that race: whoever comes too late is told, and nothing is lost.
    let committed = std::thread::scope(|scope| {
        let commits = scope.spawn(|| {
            let (mut last, mut replaced) = (0, 0);
            for value in 10..60 {
                loop {
                    let options = OpenOptions::new().write(true).lock_timeout(Duration::from_secs(60));
                    let store = options.open(&path).unwrap();
                    let mut writer = match store.writer() {
                        Ok(writer) => writer,
                        Err(Error::Replaced { .. }) => {
                            replaced += 1;
                            continue;
                        }
                        Err(error) => panic!("{error}"),
                    };
                    let due = if last == 0 { 4 } else { last };
                    let items: Vec<u32> = writer.read("a", &Selection::from(0..1)).unwrap();
                    assert_eq!(items, [due], "a commit was lost");
                    writer.write("a", &Selection::from(0..1), &[value]).unwrap();
                    writer.commit().unwrap();
                    last = value;
                    break;
                }
            }
            println!("{replaced} writers were told that their file was replaced");
            last
        });
        for _ in 0..15 {
            let options = OpenOptions::new().write(true).lock_timeout(Duration::from_secs(60));
            match options.open(&path).unwrap().compact(None) {
                Ok(_) | Err(Error::Replaced { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        commits.join().unwrap()
    });
    let store = Store::open(&path).unwrap();
    assert_eq!(store.array("a").unwrap().read::<u32>(&Selection::from(0..1)).unwrap(), [committed]);
    assert_clean(&store);
}

#[test]
fn a_store_without_a_name_has_nothing_to_compact() {
    let (folder, path, _store) = folder(Durability::Full);
    let new = Store::replace(&path).unwrap();
    assert!(matches!(new.compact(None), Err(Error::InvalidState { .. })));
    commit(&new, 8);
    let compact = new.compact(None).unwrap();
    assert_value(&compact.snapshot(), 8);
    assert_eq!(names(folder.path()), ["a.brick"]);
}

#[test]
fn options_stay_and_so_does_durability() {
    for durability in [Durability::Full, Durability::Deferred, Durability::None] {
        let (_folder, path, store) = folder(durability);
        let compact = store.compact(None).unwrap();
        // The old handle has nothing to wait for any more, though its commits were deferred.
        store.sync().ok();
        store.close().unwrap();
        for value in 20..23 {
            commit(&compact, value);
        }
        compact.sync().unwrap();
        assert_eq!(compact.path(), path);
        assert_value(&Store::open(&path).unwrap().snapshot(), 22);
        compact.close().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path, store) = folder(Durability::Full);
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.brick");
    std::os::unix::fs::symlink("a.brick", &link).unwrap();
    let store = OpenOptions::new().write(true).open(&link).unwrap();
    let before = store.snapshot().file_bytes();
    let compact = store.compact(None).unwrap();
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("a.brick"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(compact.snapshot().file_bytes() < before);
    assert_eq!((compact.path(), names(folder.path()).len()), (&*link, 2));
    assert_value(&Store::open(&path).unwrap().snapshot(), 3);
}

/// Not a test of its own: what the other processes of the tests below do.
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    match part.as_str() {
        "compact" => {
            let options = OpenOptions::new().write(true).durability(Durability::Deferred);
            drop(options.open(&path).unwrap().compact(None).unwrap());
        }
        part => panic!("no part '{part}'"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_new_file_is_synced_before_it_takes_the_place() {
    let (folder, path, store) = folder(Durability::Full);
    drop(store);
    let Some(mut calls) = processes::system_calls("compact", &path) else { return };
    // A writer looks for what a killed one left.
    calls.retain(|call| !call.contains("ENOENT"));
    let temporary = folder.path().join(".a.brick.brick-new");
    let (opened, on_new) = processes::calls_on(&calls, temporary.to_str().unwrap());
    assert_eq!(opened, 1);
    let position = |what: &str| on_new.iter().rposition(|call| call.contains(what)).unwrap();
    assert!(position("pwrite64(") < position("fdatasync("), "{calls:#?}");
    let synced = calls.iter().rposition(|call| on_new.contains(call) && call.contains("fdatasync(")).unwrap();
    assert!(synced < calls.iter().position(|call| call.contains("rename(")).unwrap(), "{calls:#?}");
}
