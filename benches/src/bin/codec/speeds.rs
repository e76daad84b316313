//! The figures of the library's cost model, fitted to this machine.

use brickmap::codec_bench::{Block, Candidate, PROFILES, WORK, work};

use crate::Options;
use crate::clock::{Destination, best_of};
use crate::npy::{Row, spread};

/// Blocks of each row whose frames are timed.
const SAMPLES: usize = 24;

/// Prints the times of zstd by what a frame is made of, and those of everything else by coding.
pub fn print(rows: &[Row], options: &Options) {
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
    let mut runs: Vec<Box<dyn FnMut()>> =
        blocks.iter().map(|block| Box::new(|| block.open()) as Box<dyn FnMut()>).collect();
    let times = best_of(options.rounds, &mut runs);
    let rows: Vec<[f64; 6]> = frames.iter().map(|(frame, len)| work(frame, *len)).collect();
    let found = fit(&rows, &times);
    println!("{} frames; ns for each", frames.len());
    for (name, found) in WORK.iter().zip(found) {
        println!("{name}: {found:.4}");
    }
    let expected = |row: &[f64; 6]| row.iter().zip(found).map(|(x, c)| x * c).sum::<f64>();
    let mut errors: Vec<f64> = rows.iter().zip(&times).map(|(row, time)| expected(row) / time).collect();
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors[(errors.len() - 1) * part / 100];
    println!("expected / measured: 5% {:.2}, median {:.2}, 95% {:.2}", at(5), at(50), at(95));
    others(options);
}

/// The coefficients, none negative, that make the least sum of squared errors, each over its time, so that neither the
/// short frames nor the long ones decide alone: coordinate descent.
fn fit(rows: &[[f64; 6]], times: &[f64]) -> [f64; 6] {
    let mut found = [0.0; 6];
    for _ in 0..20_000 {
        for k in 0..6 {
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

/// Times of blocks without any zstd, per item byte.
fn others(options: &Options) {
    let size = 128 << 10;
    let few = |n: usize| -> Vec<u8> { (0..n).map(|i| (i % 11) as u8).collect() };
    for (name, candidate, itemsize) in [
        ("planes of 2", Candidate::planes(2), 2),
        ("planes of 4", Candidate::planes(4), 4),
        ("planes of 8", Candidate::planes(8), 8),
        ("planes of 16", Candidate::planes(16), 16),
        ("planes of 12", Candidate::planes(12), 12),
        ("delta 1 of 1", Candidate::delta(1, 1), 1),
        ("delta 1 of 2", Candidate::delta(2, 1), 2),
        ("delta 1 of 4", Candidate::delta(4, 1), 4),
        ("delta 3 of 4", Candidate::delta(4, 3), 4),
        ("delta 64 of 4", Candidate::delta(4, 64), 4),
        ("delta 2048 of 4", Candidate::delta(4, 2048), 4),
        ("delta 1 of 8", Candidate::delta(8, 1), 8),
        ("delta 3 of 8", Candidate::delta(8, 3), 8),
        ("delta 4 of 8", Candidate::delta(8, 4), 8),
        ("delta 20 of 8", Candidate::delta(8, 20), 8),
    ] {
        let items = few(size / itemsize * itemsize);
        let block = Block::encode(candidate, PROFILES[2].1, options.level, &items, itemsize).without_zstd();
        let blocks = vec![block; 128];
        let bytes: usize = blocks.iter().map(Block::size).sum();
        let mut destination = Destination::new(bytes);
        let mut run = || destination.fill(&blocks, Block::size, Block::decode);
        let time = best_of(options.rounds, &mut [Box::new(&mut run)])[0];
        println!("{name}: {:.4} ns a byte", time / bytes as f64);
    }
}
