//! The figures of the library's cost model, fitted to this machine.

use brickmap::codec_bench::{Block, Candidate, PROFILES, WORK, work};

use crate::Options;
use crate::clock::{Destination, Laps, Timed, best_of};
use crate::coding::name;
use crate::npy::{Row, spread};

/// Blocks of each row whose frames are timed.
const SAMPLES: usize = 24;

/// Prints the times of zstd by what a frame is made of, and those of everything else by coding.
pub(crate) fn print(rows: &[Row], options: &Options) {
    let mut frames: Vec<(Vec<u8>, usize)> = Vec::new();
    for row in rows {
        let candidates = Candidate::all(row.itemsize, row.itemsize, &row.strides);
        for items in spread(row.blocks.iter().collect(), SAMPLES) {
            for candidate in &candidates {
                let block = Block::encode(*candidate, PROFILES[2].1, options.level, items, row.itemsize);
                frames.extend(block.frames().into_iter().map(|(frame, len)| (frame.to_vec(), len)));
            }
        }
    }
    let blocks: Vec<Block> = frames.iter().map(|(frame, len)| Block::of_frame(frame, *len)).collect();
    let open = |block: &Block, laps: &mut Laps| {
        block.open();
        laps.lap();
    };
    let mut runs: Vec<Timed<'_>> =
        blocks.iter().map(|block| Box::new(|laps: &mut Laps| open(block, laps)) as Timed<'_>).collect();
    let times = best_of(options.rounds, &mut runs);
    let rows: Vec<[f64; WORK.len()]> = blocks.iter().map(parts).collect();
    let found = fit(&rows, &times);
    println!("{} frames; ns for each", frames.len());
    for (name, found) in WORK.iter().zip(found) {
        println!("{name}: {found:.4}");
    }
    let expected = |row: &[f64; WORK.len()]| row.iter().zip(found).map(|(x, c)| x * c).sum::<f64>();
    let mut errors: Vec<f64> = rows.iter().zip(&times).map(|(row, time)| expected(row) / time).collect();
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors[(errors.len() - 1) * part / 100];
    println!("expected / measured: 5% {:.2}, median {:.2}, 95% {:.2}", at(5), at(50), at(95));
    others(options);
}

/// What a frame is made of.
fn parts(block: &Block) -> [f64; WORK.len()] {
    let mut bytes = vec![0; block.size()];
    block.decode(&mut bytes);
    work(block.stored(), &bytes)
}

/// The coefficients, none negative, that make the least sum of squared errors, each over its time, so that neither the
/// short frames nor the long ones decide alone: coordinate descent.
fn fit(rows: &[[f64; WORK.len()]], times: &[f64]) -> [f64; WORK.len()] {
    let mut found = [0.0; WORK.len()];
    for _ in 0..20_000 {
        for k in 0..WORK.len() {
            let (mut gradient, mut curvature) = (0.0, 0.0);
            for (row, time) in rows.iter().zip(times).step_by(1 + rows.len() / 4000) {
                let sum: f64 = row.iter().zip(&found).map(|(x, c)| x * c).sum();
                gradient += row[k] * (time - sum) / time;
                curvature += row[k] * row[k] / time;
            }
            if curvature > 0.0 {
                found[k] = f64::max(found[k] + gradient / curvature, 0.0);
            }
        }
    }
    found
}

/// Times of blocks without any zstd: per item byte when all planes but one are constant, and what each byte of a raw
/// plane adds.
fn others(options: &Options) {
    println!("ns for each item byte, and more for each raw byte");
    for (word, strides) in [
        (2, vec![0, 1]),
        (4, vec![0, 1, 3, 64, 2048]),
        (8, vec![0, 1, 3, 4, 20]),
        (12, vec![0]),
        (16, vec![0]),
    ] {
        for stride in strides {
            let candidate = match stride {
                0 => Candidate::planes(word),
                _ => Candidate::delta(word, stride),
            };
            let word = usize::from(word);
            let (one, all) = (time(candidate, word, 1, options), time(candidate, word, word, options));
            let raw = (all - one) * word as f64 / (word - 1) as f64;
            println!("{}: {:.4} {:.4}", name(candidate), one - raw / word as f64, raw);
        }
    }
}

/// Nanoseconds for each item byte of blocks whose words have this many planes that are not constant.
fn time(candidate: Candidate, word: usize, planes: usize, options: &Options) -> f64 {
    let bytes = (0..SIZE).map(|i| if i % word < planes { (i % 11) as u8 } else { 7 });
    let items: Vec<u8> = bytes.take(SIZE / word * word).collect();
    let block = Block::encode(candidate, PROFILES[2].1, options.level, &items, word).without_zstd();
    let blocks = vec![block; 128];
    let mut destination = Destination::new(blocks.iter().map(Block::size).sum());
    let run = |laps: &mut Laps| destination.fill(&blocks, laps, Block::size, Block::decode);
    best_of(options.rounds, &mut [Box::new(run)])[0] / (128 * items.len()) as f64
}

/// Bytes of a block.
const SIZE: usize = 128 << 10;
