//! The seeds of the fuzzer, and simple changes to them, are read without a panic: what `cargo xtask soak` searches for
//! hours, in seconds.
//!
//! `BRICKMAP_CASES` in the environment is the number of changed stores made of each seed.

#[path = "../fuzz/read_everything.rs"]
mod read_everything;
#[path = "../fuzz/reseal.rs"]
mod reseal;

use read_everything::read_everything;
use reseal::reseal;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// The seeds with their names.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/read_bytes");
    let mut seeds: Vec<(String, Vec<u8>)> = std::fs::read_dir(&corpus)
        .expect("the corpus is in the repository")
        .map(|entry| {
            let path = entry.expect("the corpus can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a seed can be read"))
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty());
    seeds
}

/// A small generator of numbers: the changes are the same in each run.
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        // splitmix64, from Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

/// Changes one to three places. Most of a small store is zero and reserved, so a place is at or just behind a byte that
/// is not zero.
fn change(bytes: &mut [u8], random: &mut Random) {
    const NUMBERS: [u64; 9] = [0, 1, 2, 63, 64, 1 << 24, 1 << 32, i64::MAX as u64, u64::MAX];
    let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
    for _ in 0..=random.below(3) {
        let at = used[random.below(used.len())] + random.below(3);
        let Some(byte) = bytes.get_mut(at) else { continue };
        match random.below(6) {
            0 => *byte ^= 1 << random.below(8),
            1 => *byte = byte.wrapping_add(1),
            2 => *byte = byte.wrapping_sub(1),
            3 => *byte = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            4 => {
                // A number of 8 bytes where numbers stand.
                let start = at & !7;
                if let Some(number) = bytes.get_mut(start..start + 8) {
                    number.copy_from_slice(&NUMBERS[random.below(NUMBERS.len())].to_le_bytes());
                }
            }
            _ => {
                // 40 bytes from elsewhere: a pointer in the place of another.
                let from = used[random.below(used.len())] & !7;
                if from + 40 <= bytes.len() && at + 40 <= bytes.len() {
                    bytes.copy_within(from..from + 40, at & !7);
                }
            }
        }
    }
}

#[test]
fn seeds_are_read() {
    for (name, bytes) in seeds() {
        println!("seed {name}");
        read_everything(&bytes);
    }
}

#[test]
fn sealing_changes_nothing_in_a_whole_store() {
    for (name, bytes) in seeds() {
        let mut sealed = bytes.clone();
        let changed = reseal(&mut sealed);
        assert_eq!(changed, name == "one_bit", "seed {name}");
    }
}

#[test]
fn changed_seeds_are_read() {
    let cases = std::env::var("BRICKMAP_CASES")
        .map_or(100, |cases| cases.parse().expect("BRICKMAP_CASES is a number"));
    for (name, bytes) in seeds() {
        for case in 0..cases {
            let mut changed = bytes.clone();
            change(&mut changed, &mut Random(case));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                read_everything(&changed);
                if reseal(&mut changed) {
                    read_everything(&changed);
                }
            }));
            if let Err(panic) = outcome {
                let file = std::env::temp_dir().join(format!("brickmap-{name}-{case}.brick"));
                match std::fs::write(&file, &changed) {
                    Ok(()) => println!("seed {name}, case {case}: the store is kept as {}", file.display()),
                    Err(error) => println!("seed {name}, case {case}: the store cannot be kept: {error}"),
                }
                resume_unwind(panic);
            }
        }
    }
}
