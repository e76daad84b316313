//! What commits of one row cost, and how that grows with their number: `commits [DIRECTORY [COMMITS [deferred|full|none]]]`.
//!
//! An array of 64 float32 columns gets one row a commit. Printed are, for each tenth of the commits, the time and the bytes
//! given to the system for one of them, and what is in the file afterwards.

use brickmap::{ArraySpec, Dtype, Durability, OpenOptions};
use std::path::PathBuf;
use std::time::Instant;

const COLUMNS: u64 = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let commits: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let durability = match arguments.next().as_deref() {
        None | Some("deferred") => Durability::Deferred,
        Some("full") => Durability::Full,
        Some("none") => Durability::None,
        Some(other) => return Err(format!("no durability '{other}'").into()),
    };
    let path = directory.join(format!("brickmap-commits-{}.brick", std::process::id()));
    let store = OpenOptions::new().threads(1).durability(durability).create(&path)?;
    let mut writer = store.writer()?;
    writer.create_array("rows", &ArraySpec::new(Dtype::F32, [0, COLUMNS]))?;
    println!(
        "{:>12}{:>14}{:>14}{:>12}{:>12}",
        "commits", "us a commit", "bytes each", "file KiB", "free KiB"
    );
    for tenth in 0..10 {
        let (start, before) = (Instant::now(), bytes_written());
        let rows = tenth * commits / 10..(tenth + 1) * commits / 10;
        let count = rows.end - rows.start;
        for row in rows {
            let items: Vec<f32> = (0..COLUMNS).map(|column| (row * COLUMNS + column) as f32).collect();
            writer.append("rows", 0, &items)?;
            writer.commit()?;
        }
        let (time, bytes) = (start.elapsed(), bytes_written() - before);
        let snapshot = store.refresh()?;
        println!(
            "{:>12}{:>14.1}{:>14}{:>12}{:>12}",
            (tenth + 1) * commits / 10,
            time.as_secs_f64() * 1e6 / count as f64,
            bytes / count,
            snapshot.file_bytes() >> 10,
            snapshot.free_bytes()? >> 10
        );
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

/// Bytes that this process has given the system to write; 0 where that is not known.
fn bytes_written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or(0)
}
