//! The first table: what each coding is worth, and whether the choice finds the best.

use std::cell::RefCell;

use brickmap::codec_bench::{Block, Candidate, PROFILES, Speed, interleave};

use crate::Options;
use crate::clock::{Destination, Laps, Timed, best_of};
use crate::npy::{Row, spread};

/// Blocks that the choice sees.
const SAMPLES: usize = 16;

/// A coding as it was measured.
struct Measured {
    stored: f64,
    time: f64,
    expected: f64,
}

impl Measured {
    fn cost(&self, speed: Speed) -> f64 {
        self.stored * speed.byte_time() + self.time
    }
}

/// Prints the table and returns each row's choice under the first profile.
pub(crate) fn print(rows: &[Row], options: &Options) -> Vec<Candidate> {
    println!("| data | coding | ratio | MB/s | cost balanced | fast | small |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut worst = [(1.0f64, String::new()), (1.0, String::new()), (1.0, String::new())];
    let chosen = rows.iter().map(|row| print_row(row, options, &mut worst)).collect();
    for ((profile, _), (ratio, name)) in PROFILES.iter().zip(worst) {
        println!("\nworst choice, {profile}: {ratio:.3} of the best cost ({name})");
    }
    chosen
}

/// One row: a line for each coding, with its cost per item byte under each profile in ns, as measured and as the table
/// expects it. The choice is marked with its cost over the best.
fn print_row(row: &Row, options: &Options, worst: &mut [(f64, String); 3]) -> Candidate {
    let bytes = size(row) as f64;
    let samples: Vec<&[u8]> = spread(row.blocks.iter().map(|block| &block[..]).collect(), SAMPLES);
    let candidates = Candidate::all(row.itemsize, row.itemsize, &row.strides);
    let chosen = PROFILES.map(|(_, speed)| {
        Candidate::choose(&samples, row.itemsize, row.itemsize, &row.strides, speed, options.level)
    });
    let measured = PROFILES.map(|(_, speed)| measure(row, &candidates, speed, options));
    let mut lines = vec![String::new(); candidates.len()];
    for (p, (_, speed)) in PROFILES.into_iter().enumerate() {
        let best = measured[p].iter().map(|m| m.cost(speed)).fold(f64::INFINITY, f64::min);
        for ((m, candidate), line) in measured[p].iter().zip(&candidates).zip(&mut lines) {
            *line += &format!(" {:.3} ({:.3})", m.cost(speed) / bytes, m.expected / bytes);
            if *candidate == chosen[p] {
                let ratio = m.cost(speed) / best;
                *line += &format!(" **{ratio:.3}**");
                if ratio > worst[p].0 {
                    worst[p] = (ratio, row.name.clone());
                }
            }
            *line += " |";
        }
    }
    let print = |coding: String, m: &Measured, costs: &str| {
        let (ratio, speed) = (bytes / m.stored, bytes / m.time * 1e3);
        println!("| {} | {coding} | {ratio:.2} | {speed:.0} |{costs}", row.name);
    };
    for ((candidate, m), line) in candidates.iter().zip(&measured[0]).zip(&lines) {
        print(name(*candidate), m, line);
    }
    let shuffled = shuffled(row, options);
    let costs = PROFILES.map(|(_, speed)| format!(" {:.3} |", shuffled.cost(speed) / bytes));
    print("byte shuffle + zstd".to_string(), &shuffled, &costs.concat());
    chosen[0]
}

/// A filter in words.
pub(crate) fn name(candidate: Candidate) -> String {
    match candidate.parts() {
        (name @ ("raw" | "zstd"), _, _) => name.to_string(),
        (name @ "planes", word, _) => format!("{name} of {word}"),
        (name, word, stride) => format!("{name} {stride} of {word}"),
    }
}

/// Bytes of all blocks.
fn size(row: &Row) -> usize {
    row.blocks.iter().map(Vec::len).sum()
}

/// Encodes and decodes all blocks with each candidate.
fn measure(row: &Row, candidates: &[Candidate], speed: Speed, options: &Options) -> Vec<Measured> {
    let encode = |candidate: &Candidate| -> Vec<Block> {
        let encode = |items: &Vec<u8>| Block::encode(*candidate, speed, options.level, items, row.itemsize);
        row.blocks.iter().map(encode).collect()
    };
    let encoded: Vec<Vec<Block>> = candidates.iter().map(encode).collect();
    let destination = RefCell::new(Destination::new(size(row)));
    let decode = |blocks: &[Block], laps: &mut Laps| {
        destination.borrow_mut().fill(blocks, laps, Block::size, Block::decode);
    };
    let mut runs: Vec<Timed<'_>> =
        encoded.iter().map(|blocks| Box::new(|laps: &mut Laps| decode(blocks, laps)) as Timed<'_>).collect();
    let times = best_of(options.rounds, &mut runs);
    let measured = |(blocks, time): (&Vec<Block>, f64)| Measured {
        stored: blocks.iter().map(|block| block.stored().len()).sum::<usize>() as f64,
        time,
        expected: blocks.iter().map(Block::cost).sum(),
    };
    encoded.iter().zip(times).map(measured).collect()
}

/// What other stores do: all planes of a block as one zstd stream, interleaved afterwards. Uses the codec's own loops.
fn shuffled(row: &Row, options: &Options) -> Measured {
    let word = row.itemsize;
    let shuffle = |items: &Vec<u8>| {
        let planes: Vec<u8> = (0..word).flat_map(|k| items.iter().skip(k).step_by(word).copied()).collect();
        (zstd::bulk::compress(&planes, options.level).expect("zstd has memory"), items.len())
    };
    let blocks: Vec<(Vec<u8>, usize)> = row.blocks.iter().map(shuffle).collect();
    let mut destination = Destination::new(size(row));
    let mut zstd = zstd::bulk::Decompressor::new().expect("zstd has memory");
    let mut planes = vec![0; row.blocks.iter().map(Vec::len).max().unwrap_or(0)];
    let run = |laps: &mut Laps| {
        destination.fill(
            &blocks,
            laps,
            |(_, len)| *len,
            |(frame, len), items| {
                zstd.decompress_to_buffer(frame, &mut planes[..*len])
                    .expect("the block has just been encoded");
                interleave(&planes[..*len], word, items);
            },
        );
    };
    let time = best_of(options.rounds, &mut [Box::new(run)])[0];
    let stored = blocks.iter().map(|(frame, _)| frame.len()).sum::<usize>() as f64;
    Measured { stored, time, expected: 0.0 }
}
