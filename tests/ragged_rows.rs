//! Ragged arrays that grow and shrink: offsets go on from where they are, and what is cut off takes its values with it.

mod common;
mod forge;

use brickmap::{OpenOptions, Ragged, Selection, Store};
use common::{Random, cases, check};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

/// What happens to a ragged array.
#[derive(Clone, Debug)]
enum Change {
    Append { rows: u64, seed: u64 },
    Resize { rows: u64 },
    Commit,
    Rollback,
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => (0..9u64, any::<u64>()).prop_map(|(rows, seed)| Change::Append { rows, seed }),
        4 => (0..14u64).prop_map(|rows| Change::Resize { rows }),
        3 => Just(Change::Commit),
        1 => Just(Change::Rollback),
        1 => Just(Change::Reopen),
    ]
}

/// Items of a ragged array in C order, as strings.
fn runs(seed: u64, count: u64) -> Vec<String> {
    let mut random = Random(seed);
    (0..count).map(|_| "é€x".repeat(random.below(4) as usize)).collect()
}

fn floats(text: &str) -> Vec<f32> {
    text.chars().map(|char| char as u32 as f32).collect()
}

#[derive(Clone)]
struct Runs {
    shape: Vec<u64>,
    items: Vec<String>,
}

impl Runs {
    fn row(&self) -> u64 {
        self.shape[1..].iter().product()
    }

    #[track_caller]
    fn assert_is(&self, store: &Store) {
        for (name, is_strings) in [("strings", true), ("runs", false)] {
            let ragged: Ragged = store.ragged(name).unwrap();
            assert_eq!(ragged.shape(), self.shape, "{name}");
            if is_strings {
                let found = ragged.read_strings(&Selection::all()).unwrap();
                assert!(found.iter().eq(self.items.iter()), "{found:?} {:?}", self.items);
            } else {
                let found = ragged.read_runs::<f32>(&Selection::all()).unwrap();
                assert!(found.iter().eq(self.items.iter().map(|item| floats(item))), "{found:?}");
            }
        }
    }
}

#[test]
fn ragged_arrays_that_grow_and_shrink_match_lists() {
    let shapes = prop_oneof![
        3 => (0..9u64).prop_map(|rows| vec![rows]),
        2 => (0..6u64, 1..4u64).prop_map(|(rows, row)| vec![rows, row]),
        1 => (0..6u64).prop_map(|rows| vec![rows, 0]),
    ];
    let drawn = (shapes, any::<u64>(), vec(change(), 1..20));
    check("ragged", cases(100), drawn, |(shape, seed, changes)| {
        let items = runs(seed, shape.iter().product());
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("ragged.brick");
        let store = Store::create(path).unwrap();
        let mut writer = store.writer().unwrap();
        writer.create_strings("strings", &shape, &items).unwrap();
        let floats: Vec<_> = items.iter().map(|item| floats(item)).collect();
        writer.create_ragged("runs", &shape, &floats).unwrap();
        writer.commit().unwrap();
        drop(writer);
        play_runs(path, store, Runs { shape, items }, &changes);
    });
}

fn play_runs(path: &Path, mut store: Store, mut staged: Runs, changes: &[Change]) {
    let mut committed = staged.clone();
    let mut writer = store.writer().unwrap();
    for change in changes {
        match *change {
            Change::Append { rows, seed } => {
                let items = runs(seed, rows * staged.row());
                writer.append_strings("strings", &items).unwrap();
                let floats: Vec<_> = items.iter().map(|item| floats(item)).collect();
                writer.append_runs("runs", &floats).unwrap();
                if staged.row() > 0 {
                    staged.shape[0] += rows;
                }
                staged.items.extend(items);
            }
            Change::Resize { rows } => {
                staged.shape[0] = rows;
                staged.items.resize((rows * staged.row()) as usize, String::new());
                for name in ["strings", "runs"] {
                    writer.resize(name, &staged.shape).unwrap();
                }
            }
            Change::Commit => {
                writer.commit().unwrap();
                committed = staged.clone();
                store.refresh().unwrap();
                committed.assert_is(&store);
                assert_clean(path);
            }
            Change::Rollback => {
                drop(writer);
                staged = committed.clone();
                store.refresh().unwrap();
                committed.assert_is(&store);
                writer = store.writer().unwrap();
            }
            Change::Reopen => {
                drop(writer);
                staged = committed.clone();
                store = OpenOptions::new().write(true).open(path).unwrap();
                committed.assert_is(&store);
                writer = store.writer().unwrap();
            }
        }
    }
    writer.commit().unwrap();
    store.refresh().unwrap();
    staged.assert_is(&store);
    assert_clean(path);
}

/// The items of the forged array `runs`, of which the first offset is 1 and the last leaves a value over.
#[test]
fn offsets_go_on_from_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("offsets.brick");
    let (start, last) = (|items: &mut Vec<u8>| items[0] = 1, |items: &mut Vec<u8>| items[24] = 4);
    let mut forged = forge::Forge::new();
    forged.change("runs offsets block 0", &start);
    forged.change("runs offsets block 0", &last);
    let bytes = forge::sample_with(forged).0;
    let kept: [&[f32]; 3] = [&[2.], &[], &[3., 4.]];
    for keep in 0..4u64 {
        for grow in [0, 1, 6] {
            std::fs::write(&path, &bytes).unwrap();
            let store = OpenOptions::new().write(true).open(&path).unwrap();
            let mut writer = store.writer().unwrap();
            let mut due: Vec<Vec<f32>> = kept.map(<[f32]>::to_vec)[..keep as usize].to_vec();
            writer.resize("runs", &[keep]).unwrap();
            writer.resize("runs", &[keep + grow]).unwrap();
            due.resize((keep + grow) as usize, Vec::new());
            writer.append_runs("runs", &[vec![7f32, 8., 9.], vec![]]).unwrap();
            due.extend([vec![7., 8., 9.], vec![]]);
            let ragged = writer.commit().unwrap().ragged("runs").unwrap();
            let found = ragged.read_runs::<f32>(&Selection::all()).unwrap();
            assert!(found.iter().eq(due.iter()), "{keep} {grow}: {found:?}");
            assert_clean(&path);
        }
    }
}

#[test]
fn appended_strings_take_few_chunks_and_give_their_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_strings("log", &[0], &[""; 0]).unwrap();
    for round in 0..50u64 {
        let lines: Vec<String> = (0..200).map(|n| format!("line {n} of {round}")).collect();
        writer.append_strings("log", &lines).unwrap();
    }
    let snapshot = writer.commit().unwrap();
    let log = snapshot.ragged("log").unwrap();
    assert_eq!(log.shape(), [10_000]);
    assert!(log.stored_bytes() < log.value_count() + 8 * 10_001, "{} bytes", log.stored_bytes());
    writer.resize("log", &[0]).unwrap();
    let empty = writer.commit().unwrap().ragged("log").unwrap();
    assert_eq!((empty.value_count(), empty.stored_bytes()), (0, 0));
    assert_clean(&path);
}

#[track_caller]
fn assert_clean(path: &Path) {
    let report = Store::open(path).unwrap().verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}
