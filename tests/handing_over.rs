//! A snapshot that is handed to another process, and snapshots whose space was used again.

mod processes;

use brickmap::{ArraySpec, Dtype, Error, OpenOptions, Selection, Snapshot, Store};
use processes::{say, start};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

const ITEMS: u64 = 100_000;

fn value(index: u64, generation: u64) -> u64 {
    (index ^ generation).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn commit(store: &Store) -> u64 {
    let mut writer = store.writer().unwrap();
    let generation = writer.next_generation();
    if writer.kind("a").unwrap().is_none() {
        writer.create_array("a", &ArraySpec::new(Dtype::U64, [ITEMS]).chunks([8192]).blocks([2048])).unwrap();
    }
    let items: Vec<u64> = (0..ITEMS).map(|index| value(index, generation)).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
    let generation = writer.commit().unwrap().generation();
    drop(writer);
    // Else this handle would keep what it shows.
    store.refresh().unwrap();
    generation
}

fn create(directory: &Path) -> (PathBuf, Store) {
    let path = directory.join("a.brick");
    let store = Store::create(&path).unwrap();
    commit(&store);
    (path, store)
}

fn read(snapshot: &Snapshot) -> Result<bool, Error> {
    let items: Vec<u64> = snapshot.array("a")?.read(&Selection::all())?;
    Ok((0..ITEMS).all(|index| items[index as usize] == value(index, snapshot.generation())))
}

/// Not a test of its own: what the other process of the test below does.
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    assert_eq!(part, "take up");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let token: Vec<u8> =
            (0..line.len() / 2).map(|n| u8::from_str_radix(&line[2 * n..2 * n + 2], 16).unwrap()).collect();
        match OpenOptions::new().open_snapshot(&path, &token) {
            Ok(store) => {
                assert!(read(&store.snapshot()).unwrap());
                say(&format!("\nread {}", store.snapshot().generation()));
            }
            Err(Error::Gone { generation, .. }) => say(&format!("\ngone {generation}")),
            Err(error) => say(&format!("\nwrong {error}")),
        }
    }
}

#[test]
fn another_process_takes_a_snapshot_up_while_a_writer_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let mut other = start("take up", &path);
    let mut input = other.stdin.take().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let mut ask = |token: &[u8]| {
        let text: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(input, "{text}").unwrap();
        lines
            .by_ref()
            .map(|line| line.unwrap())
            .find(|line| line.contains(' ') && !line.contains("running"))
            .unwrap()
    };
    let reader = Store::open(&path).unwrap();
    let old = reader.snapshot();
    assert_eq!(ask(&old.token()), "read 2");
    for _ in 0..5 {
        commit(&store);
        assert_eq!(ask(&old.token()), "read 2");
        let newest = store.snapshot();
        assert_eq!(ask(&newest.token()), format!("read {}", newest.generation()));
    }
    let token = old.token();
    drop((old, reader));
    commit(&store);
    commit(&store);
    assert_eq!(ask(&token), "gone 2");
    drop(input);
    assert!(other.wait().unwrap().success());
}

#[test]
fn a_store_that_was_opened_at_a_snapshot_goes_on_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let old = Store::open(&path).unwrap().snapshot();
    commit(&store);
    let late = OpenOptions::new().open_snapshot(&path, &old.token()).unwrap();
    // The pin is its own.
    drop(old);
    for _ in 0..4 {
        commit(&store);
        assert!(read(&late.snapshot()).unwrap());
    }
    assert_eq!(late.snapshot().generation(), 2);
    assert_eq!(late.refresh().unwrap().generation(), 7);
    assert!(read(&late.snapshot()).unwrap());
}

#[test]
fn tokens_of_other_stores_and_other_bytes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let token = store.snapshot().token();
    let other = directory.path().join("b.brick");
    commit(&Store::create(&other).unwrap());
    let open = |path: &Path, token: &[u8]| OpenOptions::new().open_snapshot(path, token).map(drop);
    assert!(matches!(open(&other, &token), Err(Error::Replaced { .. })));
    for n in 0..token.len() {
        let mut wrong = token.clone();
        wrong[n] ^= 1;
        assert!(matches!(open(&path, &wrong), Err(Error::InvalidArgument { .. })), "byte {n}");
        assert!(matches!(open(&path, &token[..n]), Err(Error::InvalidArgument { .. })), "{n} bytes");
    }
    assert!(matches!(open(&directory.path().join("c.brick"), &token), Err(Error::Io { .. })));
    open(&path, &token).unwrap();
}

#[test]
fn a_reader_without_a_pin_is_told_when_its_state_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (path, store) = create(directory.path());
    let reader = OpenOptions::new().locking(false).cache_bytes(0).open(&path).unwrap();
    let old = reader.snapshot();
    let array = old.array("a").unwrap();
    assert!(!old.is_pinned() && read(&old).unwrap());
    for _ in 0..4 {
        commit(&store);
    }
    for error in [
        read(&old).map(drop),
        array.read::<u64>(&Selection::all()).map(drop),
        array.get::<u64>(&[7]).map(drop),
    ] {
        assert!(matches!(error, Err(Error::Gone { generation: 2, .. })), "{error:?}");
    }
    let error = old.entries().unwrap_err();
    assert!(error.to_string().contains("generation 2") && error.to_string().contains("gone"), "{error}");
    assert!(read(&reader.refresh().unwrap()).unwrap());
    // What is damaged without being used again is damage: the newest state is what it is.
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let from = bytes.len() / 2;
    bytes[16384..from].fill(0xAA);
    std::fs::write(&path, bytes).unwrap();
    let error = read(&OpenOptions::new().locking(false).open(&path).unwrap().snapshot()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}
