//! The seeds of the fuzzer of operations, and operations drawn at random, leave a store that is its model.
//!
//! `BRICKMAP_CASES` in the environment is the number of stores that are changed at random.

mod common;

#[path = "../fuzz/change_anything.rs"]
mod change_anything;

use change_anything::change_anything;
use common::{cases, check};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

#[test]
fn seeds_are_played() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/change_anything");
    let mut count = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is in the repository") {
        let bytes =
            std::fs::read(entry.expect("the corpus can be listed").path()).expect("a seed can be read");
        change_anything(&bytes, tempfile::tempdir().expect("a directory").path());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn operations_at_random_are_played() {
    check("operations_at_random_are_played", cases(300), vec(any::<u8>(), 0..700), |bytes| {
        change_anything(&bytes, tempfile::tempdir().expect("a directory").path());
    });
}
