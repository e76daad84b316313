//! What the property tests share: a dense model of arrays, what they draw from, and the runner.
//!
//! `BRICKMAP_CASES` sets how many cases are drawn in all (2500 by default), `BRICKMAP_SEED` repeats a run whose seed was printed.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of this")]

pub(crate) mod dense;
pub(crate) mod draw;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hasher};

/// Calls the function for the Rust type that holds items of a dtype, if there is one.
macro_rules! typed {
    ($dtype:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $dtype {
            Dtype::Bool | Dtype::U8 => $function::<u8>($($argument),*),
            Dtype::I8 => $function::<i8>($($argument),*),
            Dtype::I16 => $function::<i16>($($argument),*),
            Dtype::I32 => $function::<i32>($($argument),*),
            Dtype::I64 | Dtype::Datetime64(_) | Dtype::Timedelta64(_) => $function::<i64>($($argument),*),
            Dtype::U16 => $function::<u16>($($argument),*),
            Dtype::U32 => $function::<u32>($($argument),*),
            Dtype::U64 => $function::<u64>($($argument),*),
            Dtype::F16 => $function::<half::f16>($($argument),*),
            Dtype::F32 => $function::<f32>($($argument),*),
            Dtype::F64 => $function::<f64>($($argument),*),
            Dtype::Complex64 => $function::<[f32; 2]>($($argument),*),
            Dtype::Complex128 => $function::<[f64; 2]>($($argument),*),
            _ => {}
        }
    };
}
pub(crate) use typed;

/// This part, in thousandths, of all cases that are to be drawn; at least 1.
pub(crate) fn cases(thousandths: u32) -> u32 {
    let all = std::env::var("BRICKMAP_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2500u32);
    (u64::from(all) * u64::from(thousandths) / 1000).max(1) as u32
}

/// Runs `test` with `cases` drawn values. A failure is shrunk, and reported with the seed that repeats it.
pub(crate) fn check<S: Strategy>(name: &str, cases: u32, strategy: S, test: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let seed =
        std::env::var("BRICKMAP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(any_seed);
    eprintln!("{name}: {cases} cases, BRICKMAP_SEED={seed}");
    let mut random = Random(seed);
    let seed_bytes: Vec<u8> = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
    let config = Config { cases, max_shrink_iters: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes));
    let outcome = runner.run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{name}, BRICKMAP_SEED={seed}: {failure}");
    }
}

fn any_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// SplitMix64: numbers that a seed gives again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The bytes of a file, aligned as a map is.
pub(crate) struct Aligned {
    words: Vec<u128>,
    len: usize,
}

impl Aligned {
    pub(crate) fn read(path: &std::path::Path) -> Aligned {
        let bytes = std::fs::read(path).unwrap();
        let mut words = vec![0u128; bytes.len().div_ceil(16)];
        bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        Aligned { words, len: bytes.len() }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}
