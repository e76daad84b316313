//! What commits wait for, and what is left when the process dies.

mod processes;

use brickmap::{ArraySpec, Dtype, Durability, Error, OpenOptions, Selection, Store, Writer};
#[cfg(target_os = "linux")]
use processes::{calls_on, count, system_calls};
use processes::{hear, say, start};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

const ITEMS: u64 = 20_000;

fn value(index: u64, generation: u64) -> u64 {
    (index ^ generation).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn fill(writer: &mut Writer) {
    let generation = writer.next_generation();
    if writer.kind("a").unwrap().is_none() {
        writer.create_array("a", &ArraySpec::new(Dtype::U64, [ITEMS]).chunks([4096]).blocks([1024])).unwrap();
    }
    let items: Vec<u64> = (0..ITEMS).map(|index| value(index, generation)).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
}

/// That the newest state is one generation, whole. Returns it.
fn check(path: &Path) -> u64 {
    let store = Store::open(path).unwrap();
    let generation = store.snapshot().generation();
    let items: Vec<u64> = store.array("a").unwrap().read(&Selection::all()).unwrap();
    assert!((0..ITEMS).all(|index| items[index as usize] == value(index, generation)), "{generation}");
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
    generation
}

fn create(path: &Path, durability: Durability) -> Store {
    OpenOptions::new().durability(durability).create(path).unwrap()
}

/// Not a test of its own: what the other processes of the tests below do.
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    let durability = |name: &str| match name {
        "full" => Durability::Full,
        "deferred" => Durability::Deferred,
        "none" => Durability::None,
        name => panic!("no durability '{name}'"),
    };
    match part.split_once(' ').unwrap() {
        ("three-commits", name) => {
            let store = create(&path, durability(name));
            let mut writer = store.writer().unwrap();
            for _ in 0..3 {
                fill(&mut writer);
                writer.commit().unwrap();
            }
            drop(writer);
            store.close().unwrap();
        }
        ("commit-for-ever", name) => {
            let store = create(&path, durability(name));
            let mut writer = store.writer().unwrap();
            loop {
                fill(&mut writer);
                say(&format!("\ncommitted {}", writer.commit().unwrap().generation()));
            }
        }
        (part, _) => panic!("no part '{part}'"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn each_durability_waits_as_often_as_it_must() {
    // Creating waits for the file and its directory; a full commit for its frames and for its root; closing for the
    // deferred commits, and for a synced root after them.
    for (name, data, directory) in [("full", 1 + 3 * 2, 1), ("deferred", 1 + 2, 1), ("none", 0, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.brick");
        let Some(calls) = system_calls(&format!("three-commits {name}"), &path) else { return };
        let (_, on_file) = calls_on(&calls, folder.path().join(".a.brick.brick-new").to_str().unwrap());
        assert_eq!(count(&on_file, "fdatasync("), data, "{name}: {on_file:#?}");
        let (opened, on_folder) = calls_on(&calls, folder.path().to_str().unwrap());
        assert_eq!((opened, count(&on_folder, "fsync(")), (directory, directory), "{name}: {on_folder:#?}");
        assert_eq!(check(&path), 4);
    }
}

#[test]
fn fault_6_a_killed_process_loses_nothing_whatever_it_waited_for() {
    for round in 0..processes::from_environment("BRICKMAP_KILLS", 9) {
        let name = ["full", "deferred", "none"][round as usize % 3];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.brick");
        let mut writer = start(&format!("commit-for-ever {name}"), &path);
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let number = |line: String| line["committed ".len()..].parse::<u64>().unwrap();
        let heard = (0..=round % 9).map(|_| number(hear(&mut lines, "committed"))).last().unwrap();
        std::thread::sleep(Duration::from_micros(377 * (round % 40)));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let rest = lines.map_while(Result::ok).filter(|line| line.starts_with("committed "));
        let acknowledged = rest.map(number).last().unwrap_or(heard);
        let found = check(&path);
        assert!(found == acknowledged || found == acknowledged + 1, "{name}: {found} after {acknowledged}");
        let store = OpenOptions::new().write(true).open(&path).unwrap();
        fill(&mut store.writer().unwrap());
    }
}

#[test]
fn a_deferred_commit_is_seen_at_once_and_stays_when_it_is_synced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path, Durability::Deferred);
    let reader = Store::open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    fill(&mut writer);
    let deferred = writer.commit().unwrap();
    assert_eq!(reader.refresh().unwrap().generation(), deferred.generation());
    // What is staged stays staged, and the generation stays the same: readers need not move.
    fill(&mut writer);
    writer.sync().unwrap();
    assert_eq!(reader.refresh().unwrap().generation(), deferred.generation());
    assert_eq!(check(&path), deferred.generation());
    assert_eq!(writer.commit().unwrap().generation(), deferred.generation() + 1);
    assert_eq!(check(&path), deferred.generation() + 1);
    // Commits of all kinds after each other.
    for n in 0..20 {
        fill(&mut writer);
        let durability = if n % 3 == 0 { Durability::Full } else { Durability::Deferred };
        let generation = writer.commit_with(durability).unwrap().generation();
        if n % 4 == 0 {
            writer.sync().unwrap();
        }
        assert_eq!(check(&path), generation);
    }
}

#[test]
fn a_writer_of_another_handle_takes_over_what_was_deferred() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path, Durability::Deferred);
    let mut writer = store.writer().unwrap();
    fill(&mut writer);
    writer.commit().unwrap();
    drop(writer);
    let other = OpenOptions::new().write(true).open(&path).unwrap();
    let mut writer = other.writer().unwrap();
    assert_eq!(check(&path), 2);
    fill(&mut writer);
    writer.commit().unwrap();
    assert_eq!(check(&path), 3);
    drop(writer);
    // The first handle notices that its roots are not as it left them.
    fill(&mut store.writer().unwrap());
    store.close().unwrap();
    assert_eq!(check(&path), 3);
}

/// Whether the newest commit in the file was synced (SPEC.md §5).
fn is_synced(path: &Path) -> bool {
    let file = std::fs::read(path).unwrap();
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let roots: Vec<(u64, u64)> =
        (1..4).map(|page| (number(page * 4096 + 8), number(page * 4096 + 112))).collect();
    let newest = roots.iter().map(|(generation, _)| *generation).max().unwrap();
    roots.contains(&(newest, 0))
}

/// A commit that was deferred, and a writer that can go no further.
fn poisoned(path: &Path) -> (Store, Writer) {
    let store = create(path, Durability::Deferred);
    let mut writer = store.writer().unwrap();
    fill(&mut writer);
    writer.commit().unwrap();
    let stop = |_| std::ops::ControlFlow::Break(());
    let options = brickmap::WriteOptions::new().progress(&stop);
    writer.write_with("a", &Selection::all(), &vec![0u64; ITEMS as usize], options).unwrap_err();
    assert!(matches!(writer.sync(), Err(Error::InvalidState { .. })));
    assert!(!is_synced(path));
    (store, writer)
}

#[test]
fn what_was_deferred_is_synced_though_a_writer_failed_since() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let (store, writer) = poisoned(&path);
    assert!(matches!(store.sync(), Err(Error::Locked { .. })), "its writer is still there");
    drop(writer);
    store.sync().unwrap();
    assert!(is_synced(&path));
    assert_eq!(check(&path), 2);
    // Closing and dropping do it too, in whatever order.
    for n in 0..3 {
        let path = directory.path().join(format!("{n}.brick"));
        let (store, writer) = poisoned(&path);
        match n {
            0 => drop((writer, store)),
            1 => drop((store, writer)),
            _ => {
                drop(writer);
                store.close().unwrap();
            }
        }
        assert!(is_synced(&path), "{n}");
        assert_eq!(check(&path), 2);
    }
}

#[test]
fn a_store_that_was_synced_is_not_written_without() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path, Durability::None);
    let mut writer = store.writer().unwrap();
    fill(&mut writer);
    writer.commit().unwrap();
    fill(&mut writer);
    writer.commit_with(Durability::Full).unwrap();
    fill(&mut writer);
    let Err(Error::InvalidState { what }) = writer.commit() else { panic!("it was synced") };
    assert!(what.contains("Durability::Deferred"), "{what}");
    // Nothing was lost by asking.
    writer.commit_with(Durability::Deferred).unwrap();
    assert_eq!(check(&path), 4);
    drop((writer, store));
    let opened = OpenOptions::new().write(true).durability(Durability::None).open(&path).unwrap();
    let mut writer = opened.writer().unwrap();
    fill(&mut writer);
    assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })));
}
