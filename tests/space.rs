//! What overwriting costs in file space, with and without readers, and that what a reader sees stays as it was.
//!
//! `BRICKMAP_SPACE_MB` sets the size of the array that is overwritten (2 by default), `BRICKMAP_COMMITS` how many commits and
//! arrays there are where there are very many.

mod processes;

use brickmap::{
    ArraySpec, Backend, Codec, Dtype, Durability, Error, OpenOptions, Selection, Snapshot, Store,
};
use processes::{from_environment, hear, say, start};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

const COLUMNS: u64 = 1024;

fn shape() -> [u64; 2] {
    [from_environment("BRICKMAP_SPACE_MB", 2) * 256, COLUMNS]
}
/// Pages, tables and what does not fit together, beside the items.
const SLACK: f64 = 0.2;

/// The items that generation `generation` has: noise that does not compress, other for each.
fn items(generation: u64) -> Vec<u32> {
    let mut state = generation.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    (0..shape()[0] * COLUMNS).map(next).collect()
}

fn create(directory: &Path) -> (PathBuf, Store) {
    let path = directory.join("space.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::U32, shape()).chunks([64, 256]).blocks([16, 256]);
    writer.create_array("a", &spec).unwrap();
    writer.write("a", &Selection::all(), &items(writer.next_generation())).unwrap();
    writer.commit().unwrap();
    drop(writer);
    (path, store)
}

fn overwrite(store: &Store) -> Snapshot {
    let mut writer = store.writer().unwrap();
    let generation = writer.next_generation();
    writer.write("a", &Selection::all(), &items(generation)).unwrap();
    writer.commit().unwrap()
}

#[track_caller]
fn check(snapshot: &Snapshot) {
    let found: Vec<u32> = snapshot.array("a").unwrap().read(&Selection::all()).unwrap();
    assert!(found == items(snapshot.generation()), "generation {} is mixed", snapshot.generation());
}

#[track_caller]
fn assert_clean(path: &Path) {
    let report = Store::open(path).unwrap().verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// File bytes by bytes of items.
fn growth(path: &Path) -> f64 {
    std::fs::metadata(path).unwrap().len() as f64 / (shape()[0] * COLUMNS * 4) as f64
}

#[test]
fn overwriting_keeps_the_file_at_twice_its_live_size() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    for _ in 0..50 {
        check(&overwrite(&store));
    }
    assert!(growth(&path) < 2.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn one_writer_for_all_commits_needs_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let mut writer = store.writer().unwrap();
    for _ in 0..50 {
        let generation = writer.next_generation();
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        check(&writer.commit().unwrap());
    }
    assert!(growth(&path) < 2.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn a_reader_that_never_refreshes_costs_one_copy_and_keeps_what_it_sees() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let reader = Store::open(&path).unwrap();
    let old = reader.snapshot();
    assert!(old.is_pinned());
    for _ in 0..50 {
        overwrite(&store);
        check(&old);
    }
    assert!(growth(&path) < 3.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
    drop((old, reader));
    for _ in 0..3 {
        overwrite(&store);
    }
    let before = growth(&path);
    for _ in 0..10 {
        overwrite(&store);
    }
    assert_eq!(growth(&path), before, "space is reused once the pin is gone");
}

#[test]
fn commits_that_are_synced_later_cost_one_copy() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let mut writer = store.writer().unwrap();
    for n in 0..50 {
        let generation = writer.next_generation();
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        check(&writer.commit_with(Durability::Deferred).unwrap());
        if n % 7 == 6 {
            writer.sync().unwrap();
        }
    }
    assert!(growth(&path) < 3.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn a_reader_that_refreshes_sees_one_generation_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let reader = Store::open(&path).unwrap();
    let mut last = 0;
    for n in 0..50 {
        overwrite(&store);
        if n % 3 == 0 {
            let snapshot = reader.refresh().unwrap();
            assert!(snapshot.generation() > last);
            last = snapshot.generation();
        }
        check(&reader.snapshot());
    }
    assert!(growth(&path) < 3.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn generations_that_are_kept_cost_one_copy_each() {
    const KEPT: usize = 4;
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let mut kept = Vec::new();
    for n in 0..50 {
        overwrite(&store);
        if n % 10 == 0 && kept.len() < KEPT {
            kept.push(Store::open(&path).unwrap().snapshot());
        }
    }
    kept.iter().for_each(check);
    assert!(growth(&path) < 2.3 + KEPT as f64, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn without_locks_nothing_is_reused_and_readers_copy() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    drop(store);
    let options = OpenOptions::new().locking(false);
    let reader = options.open(&path).unwrap().snapshot();
    assert!(!reader.is_pinned());
    let store = options.write(true).open(&path).unwrap();
    for _ in 0..5 {
        overwrite(&store);
    }
    check(&reader);
    assert!(growth(&path) > 6.0);
    assert_clean(&path);
}

#[test]
fn raw_arrays_stay_one_run_when_space_is_reused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::U32, shape()).codec(Codec::Raw).chunks([64, COLUMNS]);
    writer.create_array("a", &spec).unwrap();
    for _ in 0..10 {
        let items = items(writer.next_generation());
        writer.write("a", &Selection::all(), &items).unwrap();
        let array = writer.commit().unwrap().array("a").unwrap();
        assert!(array.view::<u32>(&Selection::all()).unwrap() == items, "one view over the whole");
    }
    assert!(growth(&path) < 2.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn a_view_that_is_held_stays_as_it_is_while_its_store_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::U32, shape()).codec(Codec::Raw).chunks([64, COLUMNS]);
    writer.create_array("a", &spec).unwrap();
    writer.write("a", &Selection::all(), &items(2)).unwrap();
    let array = writer.commit().unwrap().array("a").unwrap();
    let view = array.view::<u32>(&Selection::all()).unwrap();
    for _ in 0..8 {
        let generation = writer.next_generation();
        // Longer than before, so that the file grows too.
        writer.resize("a", &[shape()[0] + 64 * (generation % 3), COLUMNS]).unwrap();
        writer.write("a", &Selection::from(0..shape()[0] as i64), &items(generation)).unwrap();
        writer.commit().unwrap();
        let newest = store.refresh().unwrap();
        assert_eq!(
            newest.array("a").unwrap().get::<u32>(&[5, 5]).unwrap(),
            items(generation)[5 * COLUMNS as usize + 5]
        );
        assert!(*view == items(2), "the view changed");
    }
    assert_clean(&path);
}

#[test]
fn a_transaction_that_is_dropped_takes_no_space() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    overwrite(&store);
    overwrite(&store);
    let before = growth(&path);
    for n in 0..20 {
        let mut writer = store.writer().unwrap();
        writer.write("a", &Selection::all(), &items(1000 + n)).unwrap();
        drop(writer);
        check(&store.refresh().unwrap());
    }
    assert!(growth(&path) <= before.max(2.0) + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn a_chunk_that_is_written_again_in_its_transaction_takes_no_more_space() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let mut writer = store.writer().unwrap();
    for _ in 0..20 {
        let items = items(writer.next_generation());
        writer.write("a", &Selection::all(), &items).unwrap();
        assert!(writer.read::<u32>("a", &Selection::all()).unwrap() == items);
    }
    check(&writer.commit().unwrap());
    assert!(growth(&path) < 3.0 + SLACK, "{}", growth(&path));
    assert_clean(&path);
}

#[test]
fn one_changed_chunk_of_very_many_costs_a_few_pages() {
    const CHUNKS: u64 = 1_000_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U32, [CHUNKS]).chunks([1]).blocks([1])).unwrap();
    let whole: Vec<u32> = (1..=CHUNKS as u32).collect();
    writer.write("a", &Selection::all(), &whole).unwrap();
    writer.commit().unwrap();
    for n in 0..20i64 {
        let before = writer.commit().unwrap().file_bytes();
        writer.write("a", &Selection::new([n * 4999]), &[7u32]).unwrap();
        let after = writer.commit().unwrap().file_bytes();
        assert!(after - before < 64 << 10, "{} bytes", after - before);
    }
    assert_clean(&path);
}

#[test]
fn random_commits_account_for_every_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("random.brick");
    let store = Store::create(&path).unwrap();
    let mut state = 88_172_645_463_325_252u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let mut readers: Vec<(Snapshot, Vec<u32>)> = Vec::new();
    let mut expected = vec![0u32; 4096];
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U32, [4096]).chunks([64]).blocks([32])).unwrap();
    for n in 0..400 {
        if draw(4) == 0 {
            drop(writer);
            writer = store.writer().unwrap();
        }
        let from = draw(4000);
        let len = 1 + draw(4096 - from).min(draw(1500));
        let part: Vec<u32> = (0..len).map(|_| draw(1 << 32) as u32 >> draw(32)).collect();
        writer.write("a", &format!("{from}:{}", from + len).parse().unwrap(), &part).unwrap();
        if draw(3) == 0 {
            let name = format!("b{}", draw(40));
            match writer.create_group(&name) {
                Ok(()) | Err(Error::AlreadyExists { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            let text = "x".repeat(draw(3000) as usize);
            let attributes = serde_json::json!({ "text": text });
            writer.set_attributes(&name, attributes.as_object().unwrap()).unwrap();
        }
        if draw(8) == 0 {
            drop(writer);
            writer = store.writer().unwrap();
            continue;
        }
        expected[from as usize..(from + len) as usize].copy_from_slice(&part);
        let durability = if draw(2) == 0 { Durability::Full } else { Durability::Deferred };
        let committed = writer.commit_with(durability).unwrap();
        if draw(6) == 0 {
            writer.sync().unwrap();
        }
        let report = Store::open(&path).unwrap().verify().unwrap();
        assert!(report.is_clean(), "commit {n}: {report:?}");
        if draw(5) == 0 {
            let snapshot = Store::open(&path).unwrap().snapshot();
            assert_eq!(snapshot.generation(), committed.generation());
            readers.push((snapshot, expected.clone()));
        }
        if readers.len() > 3 {
            let (snapshot, items) = readers.remove(draw(readers.len() as u64) as usize);
            assert_eq!(snapshot.array("a").unwrap().read::<u32>(&Selection::all()).unwrap(), items);
        }
        for (snapshot, items) in &readers {
            let array = snapshot.array("a").unwrap();
            assert_eq!(array.read::<u32>(&Selection::all()).unwrap(), *items, "commit {n}");
        }
    }
}

/// Bytes that this process has asked the system to read and to write so far.
#[cfg(target_os = "linux")]
fn traffic() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    ["rchar: ", "wchar: "]
        .map(|name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap())
}

/// Not a test of its own: what the other processes of the tests below do.
#[cfg(target_os = "linux")]
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    let many = from_environment("BRICKMAP_COMMITS", 10_000);
    let store = OpenOptions::new().threads(1).durability(Durability::Deferred).create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    match part.as_str() {
        "very-many-commits" => {
            let spec = ArraySpec::new(Dtype::F32, [0, 64]).chunks([1, 64]).blocks([1, 64]);
            writer.create_array("rows", &spec).unwrap();
            for tenth in 0..10 {
                let [_, before] = traffic();
                for row in tenth * many / 10..(tenth + 1) * many / 10 {
                    let items: Vec<f32> = (0..64).map(|column| (row * 64 + column) as f32).collect();
                    writer.resize("rows", &[row + 1, 64]).unwrap();
                    writer.write("rows", &Selection::new([row as i64]), &items).unwrap();
                    writer.commit().unwrap();
                }
                say(&format!("\nwrote {}", (traffic()[1] - before) * 10 / many));
            }
            drop(writer);
            let rows = store.refresh().unwrap().array("rows").unwrap();
            for row in [0, 1, many / 2, many - 1] {
                assert_eq!(rows.get::<f32>(&[row as i64, 63]).unwrap(), (row * 64 + 63) as f32);
            }
            let report = store.verify().unwrap();
            assert!(report.is_clean(), "{report:?}");
            assert!(report.free_bytes < report.live_bytes * 6 / 5 + (1 << 20), "{report:?}");
        }
        "very-many-arrays" => {
            let name = |n: u64| format!("group {}/array {n}", n % 100);
            for tenth in 0..10 {
                for n in tenth * many / 10..(tenth + 1) * many / 10 {
                    writer.create_array(&name(n), &ArraySpec::new(Dtype::U64, [1])).unwrap();
                    writer.write(&name(n), &Selection::all(), &[n]).unwrap();
                }
                writer.commit().unwrap();
                let options = OpenOptions::new().threads(1).backend(Backend::Pread);
                let [before, _] = traffic();
                let there = options.open(&path).unwrap();
                let n = tenth * many / 10 + 7;
                assert_eq!(there.array(&name(n)).unwrap().get::<u64>(&[0]).unwrap(), n);
                say(&format!("\nread {}", traffic()[0] - before));
            }
            assert!(Store::open(&path).unwrap().verify().unwrap().is_clean());
        }
        part => panic!("no part '{part}'"),
    }
}

/// What the ten tenths of a part say.
#[cfg(target_os = "linux")]
fn tenths(part: &str, what: &str) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let mut other = start(part, &directory.path().join("many.brick"));
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let said = (0..10).map(|_| hear(&mut lines, what)[what.len() + 1..].parse().unwrap()).collect();
    assert!(other.wait().unwrap().success());
    said
}

#[cfg(target_os = "linux")]
#[test]
fn fault_23_very_many_commits_cost_as_much_as_few() {
    let written = tenths("very-many-commits", "wrote");
    println!("bytes written for a commit: {written:?}");
    // The trees grow by a level now and then.
    assert!(written.iter().all(|bytes| *bytes < 64 << 10), "{written:?}");
    assert!(written[9] < 3 * written[1], "{written:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn fault_23_very_many_arrays_are_opened_as_fast_as_few() {
    let read = tenths("very-many-arrays", "read");
    println!("bytes read to open a store and read one item: {read:?}");
    assert!(read.iter().all(|bytes| *bytes < 128 << 10), "{read:?}");
}
