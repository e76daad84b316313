//! The second table: the time outside of zstd, beside plain loops, the codec's own portable ones, and memcpy.

use std::cell::RefCell;

use brickmap::codec_bench::{Block, Candidate, PROFILES, Portable};

use crate::Options;
use crate::clock::{Destination, Laps, best_of};
use crate::coding::name;
use crate::npy::Row;
use crate::plain;

/// For each row, the filters with words of the row's items: planes, and the one that was chosen if it is another.
pub(crate) fn print(rows: &[Row], chosen: &[Candidate], options: &Options) {
    println!(
        "\n| data | coding | codec MB/s | plain loops MB/s | portable MB/s | memcpy MB/s | of plain time | of memcpy speed |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut failures = Vec::new();
    for (row, chosen) in rows.iter().zip(chosen) {
        let word = row.itemsize as u8;
        let mut filters = vec![Candidate::planes(word)];
        match chosen.parts() {
            ("delta", _, _) => filters.push(*chosen),
            _ => filters.push(Candidate::delta(word, row.strides[row.strides.len().min(2) - 1])),
        }
        for filter in filters {
            if !print_filter(row, filter, options) {
                failures.push(format!("{} with {}", row.name, name(filter)));
            }
        }
    }
    println!("\nneither within 0.8 of the plain loops' time nor 0.8 of memcpy's speed: {failures:?}");
}

/// Whether the codec's loops are fast enough for this filter.
fn print_filter(row: &Row, filter: Candidate, options: &Options) -> bool {
    // The third profile stores every plane that shrinks as zstd, so that no block is left out as incompressible.
    let encode = |items: &Vec<u8>| Block::encode(filter, PROFILES[2].1, options.level, items, row.itemsize);
    let blocks: Vec<Block> = row.blocks.iter().map(encode).filter(Block::is_filtered).collect();
    let planes: Vec<(Vec<Vec<u8>>, usize)> =
        blocks.iter().map(|block| (block.planes(), block.size())).collect();
    let blocks: Vec<Block> = blocks.iter().map(Block::without_zstd).collect();
    let size: usize = blocks.iter().map(Block::size).sum();
    let stride = match filter.parts() {
        ("delta", _, stride) => stride,
        _ => 0,
    };
    let destination = RefCell::new(Destination::new(size));
    let plain = |planewise: bool, laps: &mut Laps| {
        destination.borrow_mut().fill(
            &planes,
            laps,
            |(_, size)| *size,
            |(planes, _), items| {
                let planes: Vec<&[u8]> = planes.iter().map(|plane| &plane[..]).collect();
                plain::decode(&planes, planewise, stride, items);
            },
        );
    };
    let source = vec![1u8; size];
    let copy = |laps: &mut Laps| {
        let mut rest = &source[..];
        destination.borrow_mut().fill(&blocks, laps, Block::size, |_, items| {
            let (block, after) = rest.split_at(items.len());
            items.copy_from_slice(block);
            rest = after;
        });
    };
    let mut portable = Portable::new();
    let times = best_of(
        options.rounds,
        &mut [
            Box::new(|laps| destination.borrow_mut().fill(&blocks, laps, Block::size, Block::decode)),
            Box::new(|laps| plain(false, laps)),
            Box::new(|laps| plain(true, laps)),
            Box::new(copy),
            Box::new(|laps| {
                let decode = |block: &Block, items: &mut [u8]| portable.decode(block, items);
                destination.borrow_mut().fill(&blocks, laps, Block::size, decode);
            }),
        ],
    );
    let speed = |time: f64| size as f64 / time * 1e3;
    let (codec, plain, memcpy) = (times[0], times[1].min(times[2]), times[3]);
    println!(
        "| {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} |",
        row.name,
        name(filter),
        speed(codec),
        speed(plain),
        speed(times[4]),
        speed(memcpy),
        codec / plain,
        memcpy / codec
    );
    blocks.is_empty() || codec / plain <= 0.8 || memcpy / codec >= 0.8
}
