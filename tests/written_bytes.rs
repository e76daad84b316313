//! How much is written for what changes. The system counts by process, so this program has one test.

mod common;

use brickmap::{ArraySpec, Dtype, Durability, OpenOptions, Selection};
use common::Random;

/// Bytes that this process has given the system to write.
fn bytes_written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or(0)
}

/// Rows that are committed one by one: what each costs does not grow with their number, and little is left of how they
/// came. Then, in the same process, what slice writes and overwriting give the system.
#[test]
fn what_is_written_is_in_proportion_to_what_changes() {
    rows_of_their_own_commits();
    boxes_and_overwriting();
}

fn rows_of_their_own_commits() {
    const ROWS: u64 = 12_000;
    const COLUMNS: u64 = 64;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.brick");
    let store = OpenOptions::new().durability(Durability::Deferred).threads(1).create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("rows", &ArraySpec::new(Dtype::F32, [0, COLUMNS])).unwrap();
    let mut random = Random(3);
    let mut all: Vec<f32> = Vec::new();
    let mut written = Vec::new();
    for _ in 0..4 {
        let before = bytes_written();
        for _ in 0..ROWS / 4 {
            let row: Vec<f32> = (0..COLUMNS).map(|n| n as f32 + random.below(1000) as f32 / 1e4).collect();
            writer.append("rows", 0, &row).unwrap();
            writer.commit().unwrap();
            store.refresh().unwrap();
            all.extend(row);
        }
        written.push((bytes_written() - before) / (ROWS / 4));
    }
    let snapshot = store.refresh().unwrap();
    assert!(snapshot.array("rows").unwrap().read::<f32>(&Selection::all()).unwrap() == all);
    assert!(store.verify().unwrap().is_clean());
    if cfg!(target_os = "linux") {
        assert!(written.iter().all(|&bytes| bytes > 256 && bytes < 32 << 10), "{written:?}");
        assert!(written[3] < 2 * written[0], "{written:?}: what a row costs grows");
    }
    let compact = snapshot.to_bytes().unwrap().len() as u64;
    assert!(snapshot.file_bytes() * 10 < compact * 22, "{} bytes, {compact} compact", snapshot.file_bytes());
}

fn boxes_and_overwriting() {
    let shape = [48u64, 128, 128];
    let mut random = Random(4);
    let mut volume = || -> Vec<f32> {
        (0..shape.iter().product())
            .map(|n: u64| (n % 977) as f32 + random.below(1 << 16) as f32 / 65e3)
            .collect()
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume.brick");
    let store = OpenOptions::new().durability(Durability::Deferred).create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = ArraySpec::new(Dtype::F32, shape).chunks([24, 64, 64]).blocks([8, 16, 32]);
    writer.create_array("a", &spec).unwrap();
    writer.write("a", &Selection::all(), &volume()).unwrap();
    let stored = writer.commit().unwrap().array("a").unwrap().stored_bytes();
    let mut write = |selection: Selection, items: &[f32]| {
        let before = bytes_written();
        writer.write("a", &selection, items).unwrap();
        writer.commit().unwrap();
        bytes_written() - before
    };
    if cfg!(target_os = "linux") {
        // A box in one chunk of 8, and one in all of them.
        let one = write(Selection::from((3..13, 7..17, 9..19)), &[0.5; 1000]);
        assert!(one < stored / 7 + (64 << 10), "{one} of {stored}");
        let corner = write(Selection::from((19..29, 59..69, 59..69)), &[0.5; 1000]);
        assert!(corner < stored + stored / 20 + (64 << 10), "{corner} of {stored}");
        let whole = write(Selection::all(), &volume());
        assert!(whole * 10 < stored * 11, "{whole} of {stored}");
    }
}
