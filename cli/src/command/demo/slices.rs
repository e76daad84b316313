//! Reading parts of the volume, with their times. Each result is compared with the data in memory.

use super::generate::scramble;
use crate::failure::Failure;
use brickmap::{Array, Axis, Selection};
use std::time::{Duration, Instant};

/// What is read: lengths, where one that is longer than the volume is the whole dimension, and how often.
const TASKS: [(&str, [u64; 3], usize); 9] = [
    ("everything", [u64::MAX; 3], 3),
    ("box 200 x 400 x 400", [200, 400, 400], 5),
    ("box 128 x 128 x 128", [128; 3], 15),
    ("box 32 x 32 x 32", [32; 3], 200),
    ("plane z = const", [1, u64::MAX, u64::MAX], 30),
    ("plane y = const", [u64::MAX, 1, u64::MAX], 30),
    ("plane x = const", [u64::MAX, u64::MAX, 1], 30),
    ("line along z", [u64::MAX, 1, 1], 200),
    ("one item", [1; 3], 500),
];

/// How long one kind of read took.
pub(super) struct Timing {
    pub(super) what: &'static str,
    /// Of each read.
    pub(super) bytes: u64,
    /// The median.
    pub(super) time: Duration,
    /// Reads at different places.
    pub(super) reads: usize,
}

/// Reads all kinds of parts of `array`, at different places.
pub(super) fn read_all(array: &Array, items: &[f32]) -> Result<Vec<Timing>, Failure> {
    let mut timings = Vec::new();
    for (what, lens, reads) in TASKS {
        let mut places = (0u64..).map(|n| place(array.shape(), lens, n));
        timings.push(read(array, items, what, reads, &mut places)?);
    }
    Ok(timings)
}

/// Reads one item again and again.
pub(super) fn read_again(array: &Array, items: &[f32]) -> Result<Timing, Failure> {
    let mut places = std::iter::repeat(place(array.shape(), [1; 3], 1));
    read(array, items, "one item again (cached)", 500, &mut places)
}

/// Origin and lengths of part `n` of the kind that `lens` describes.
fn place(shape: &[u64], lens: [u64; 3], n: u64) -> ([u64; 3], [u64; 3]) {
    let mut origin = [0; 3];
    let mut part = [0; 3];
    for (dim, (&whole, len)) in shape.iter().zip(lens).enumerate().take(3) {
        part[dim] = len.min(whole);
        origin[dim] = scramble(n * 3 + dim as u64) % (whole - part[dim] + 1);
    }
    (origin, part)
}

fn read(
    array: &Array,
    items: &[f32],
    what: &'static str,
    reads: usize,
    places: &mut dyn Iterator<Item = ([u64; 3], [u64; 3])>,
) -> Result<Timing, Failure> {
    let mut times = Vec::new();
    let mut bytes = 0;
    for (origin, lens) in places.take(reads) {
        let selection =
            Selection::new(origin.iter().zip(lens).map(|(&start, len)| Axis::from(start..start + len)));
        let start = Instant::now();
        let part: Vec<f32> = array.read(&selection)?;
        times.push(start.elapsed());
        bytes = size_of_val(&part[..]) as u64;
        if !is_part(&part, items, array.shape(), origin, lens) {
            let what = format!("{what} at {origin:?} came back with other items than were written");
            return Err(Failure::failed(what));
        }
    }
    times.sort_unstable();
    Ok(Timing { what, bytes, time: times[times.len() / 2], reads })
}

/// Whether `part` is the box at `origin` of `items`, bit for bit.
fn is_part(part: &[f32], items: &[f32], shape: &[u64], origin: [u64; 3], lens: [u64; 3]) -> bool {
    let row_len = lens[2] as usize;
    let mut rows = part.chunks_exact(row_len);
    (0..lens[0]).all(|z| {
        (0..lens[1]).all(|y| {
            let start = (((origin[0] + z) * shape[1] + origin[1] + y) * shape[2] + origin[2]) as usize;
            rows.next() == Some(&items[start..start + row_len])
        })
    })
}
