//! Reads a store from any bytes, through every call that reads: as they are, and with their checksums made right.

#![no_main]

#[path = "../read_everything.rs"]
mod read_everything;
#[path = "../reseal.rs"]
mod reseal;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    read_everything::read_everything(&bytes);
    if reseal::reseal(&mut bytes) {
        read_everything::read_everything(&bytes);
    }
});
