//! Changes a store in whatever way the bytes say, and compares it with a model.

#![no_main]

#[path = "../change_anything.rs"]
mod change_anything;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir().expect("a directory");
    change_anything::change_anything(bytes, directory.path());
});
