//! What opening a store costs, and how it grows with what is in it: `open [DIRECTORY]`.
//!
//! Stores with 1 to a million chunks in one array, and with 1 to 100,000 arrays, are opened again and again; printed are
//! medians of opening, of finding one array in the open store, and of reading one item of it from there.

use brickmap::{ArraySpec, Dtype, OpenOptions, Selection, Store};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let path = directory.join(format!("brickmap-open-{}.brick", std::process::id()));
    println!("{:>22}{:>12}{:>14}{:>14}{:>14}", "", "file MB", "open us", "find us", "one item us");
    for chunks in [1, 1_000, 100_000, 1_000_000] {
        write_chunks(&path, chunks)?;
        measure(&path, &format!("{chunks} chunks"), "array", &[(chunks as i64 * 64) / 2])?;
    }
    for arrays in [1, 1_000, 100_000] {
        write_arrays(&path, arrays)?;
        measure(&path, &format!("{arrays} arrays"), &format!("group/array {}", arrays / 2), &[3])?;
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

/// One array of chunks of 64 bytes.
fn write_chunks(path: &Path, chunks: u64) -> brickmap::Result<()> {
    let mut state = 1u64;
    let items: Vec<u8> = (0..chunks * 64)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    let mut writer = fresh(path)?.writer()?;
    writer.create_array(
        "array",
        &ArraySpec::new(Dtype::U8, [chunks * 64]).chunks([64]).codec(brickmap::Codec::Zstd { level: 1 }),
    )?;
    writer.write("array", &Selection::all(), &items)?;
    writer.commit().map(drop)
}

/// Arrays of four items each.
fn write_arrays(path: &Path, arrays: u64) -> brickmap::Result<()> {
    let mut writer = fresh(path)?.writer()?;
    for n in 0..arrays {
        let name = format!("group/array {n}");
        writer.create_array(&name, &ArraySpec::new(Dtype::U8, [4]))?;
        writer.write(&name, &Selection::all(), &[1u8, 2, 3, n as u8])?;
    }
    writer.commit().map(drop)
}

fn fresh(path: &Path) -> brickmap::Result<Store> {
    let _ = std::fs::remove_file(path);
    Store::create(path)
}

fn measure(path: &Path, row: &str, array: &str, index: &[i64]) -> brickmap::Result<()> {
    let options = OpenOptions::new().cache_bytes(0);
    let (mut opens, mut finds, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..300 {
        let start = Instant::now();
        let store = options.open(path)?;
        opens.push(start.elapsed());
        let start = Instant::now();
        let array = store.array(array)?;
        finds.push(start.elapsed());
        let start = Instant::now();
        std::hint::black_box(array.get::<u8>(index)?);
        reads.push(start.elapsed());
    }
    let megabytes = std::fs::metadata(path).map_or(0.0, |it| it.len() as f64 / 1e6);
    println!("{row:>22}{megabytes:12.1}{:14.1}{:14.1}{:14.1}", median(opens), median(finds), median(reads));
    Ok(())
}

/// In microseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}
