//! Whole stores copied, beside plain copies of the same bytes: `copies DIRECTORY [--megabytes N] [--rounds N] [--threads N]`.
//!
//! Makes a store of float32 noise of about that size in the directory, and lets each kind of copy take turns with the plain
//! one. Prints the medians and their ratios.

use brickmap::{ArraySpec, Codec, Dtype, OpenOptions, Selection, Snapshot};
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: copies DIRECTORY [--megabytes N] [--rounds N] [--threads N]";
    let directory = arguments.next().ok_or(usage)?;
    let (mut megabytes, mut rounds, mut threads) = (240u64, 15, 2);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(usage)?;
        match option.as_str() {
            "--megabytes" => megabytes = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            "--threads" => threads = value.parse()?,
            _ => return Err(usage.into()),
        }
    }
    let directory = Path::new(&directory);
    println!(
        "| store | MB | work | ms | plain copy ms | speed of the plain copy |\n| --- | --- | --- | --- | --- | --- |"
    );
    for (name, codec) in [("planes", Codec::Planes { level: 1 }), ("raw", Codec::Raw)] {
        let path = directory.join(format!("copies-{name}.brick"));
        let _ = std::fs::remove_file(&path);
        let options = OpenOptions::new().threads(threads).durability(brickmap::Durability::None);
        make(&path, &options, codec, megabytes)?;
        let snapshot = options.open(&path)?.snapshot();
        let row = |work: &str, ours: Vec<Duration>, plain: Vec<Duration>| {
            let (ours, plain) = (median(ours), median(plain));
            println!(
                "| {name} | {:.0} | {work} | {ours:.1} | {plain:.1} | {:.2} |",
                snapshot.file_bytes() as f64 / 1e6,
                plain / ours
            );
        };
        let (ours, plain) = to_fresh_memory(&snapshot, rounds)?;
        row("to_bytes, fresh memory", ours, plain);
        let (ours, plain) = to_given_memory(&snapshot, rounds)?;
        row("to_bytes_with, fresh memory", ours, plain);
        let (ours, plain) = to_touched_memory(&snapshot, rounds)?;
        row("to_bytes_with, touched memory", ours, plain);
        let (ours, plain) = to_file(&snapshot, &path, directory, rounds)?;
        row("compact_into", ours, plain);
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// Makes a store of about so many megabytes.
fn make(path: &Path, options: &OpenOptions, codec: Codec, megabytes: u64) -> Outcome<()> {
    // Of the noise below 3 bytes of 4 are stored.
    let stored = if codec == Codec::Raw { 4 } else { 3 };
    let rows = megabytes * 1_000_000 / (stored * 512 * 512);
    let mut state = 1u64;
    let items: Vec<f32> = (0..rows * 512 * 512)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1.0 + (state >> 40) as f32 / (1 << 24) as f32
        })
        .collect();
    let mut writer = options.create(path)?.writer()?;
    writer.create_array("noise", &ArraySpec::new(Dtype::F32, [rows, 512, 512]).codec(codec))?;
    writer.write("noise", &Selection::all(), &items)?;
    writer.commit()?;
    Ok(())
}

/// Both ways in turns, each into memory that the allocator has just got.
fn to_fresh_memory(snapshot: &Snapshot, rounds: usize) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    let from = snapshot.to_bytes()?;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let bytes = black_box(snapshot.to_bytes()?);
        ours.push(start.elapsed());
        assert_eq!(bytes.len(), from.len());
        drop(bytes);
        let start = Instant::now();
        drop(black_box(from.clone()));
        plain.push(start.elapsed());
    }
    Ok((ours, plain))
}

/// Both ways in turns, each into fresh memory that the caller has.
fn to_given_memory(snapshot: &Snapshot, rounds: usize) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    let from = snapshot.to_bytes()?;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let mut memory: Vec<u8> = Vec::with_capacity(from.len());
        black_box(snapshot.to_bytes_with(|_| Ok(memory.spare_capacity_mut()))?);
        ours.push(start.elapsed());
        drop(memory);
        let start = Instant::now();
        let mut memory: Vec<u8> = Vec::with_capacity(from.len());
        memory.extend_from_slice(&from);
        black_box(&memory);
        plain.push(start.elapsed());
    }
    Ok((ours, plain))
}

/// Both ways in turns, into the same memory.
fn to_touched_memory(snapshot: &Snapshot, rounds: usize) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    let from = snapshot.to_bytes()?;
    let mut memory = vec![MaybeUninit::new(1u8); from.len()];
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        black_box(snapshot.to_bytes_with(|_| Ok(&mut memory))?);
        ours.push(start.elapsed());
        let start = Instant::now();
        // SAFETY: both have this length, and do not overlap.
        unsafe { memory.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        black_box(&memory);
        plain.push(start.elapsed());
    }
    Ok((ours, plain))
}

/// Both ways in turns, to a new file.
fn to_file(
    snapshot: &Snapshot,
    path: &Path,
    directory: &Path,
    rounds: usize,
) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    let to = directory.join("copies-copy.brick");
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let _ = std::fs::remove_file(&to);
        let start = Instant::now();
        drop(snapshot.compact_into(&to, None)?);
        ours.push(start.elapsed());
        std::fs::remove_file(&to)?;
        let start = Instant::now();
        let (mut from, mut copy) = (File::open(path)?, File::create(&to)?);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match from.read(&mut buffer)? {
                0 => break,
                len => copy.write_all(&buffer[..len])?,
            }
        }
        drop(copy);
        plain.push(start.elapsed());
    }
    std::fs::remove_file(&to)?;
    Ok((ours, plain))
}

/// Milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
