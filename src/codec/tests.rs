//! Round trips of every coding, and what hostile bytes can do.

use proptest::prelude::*;

use super::decode::Decoder;
use super::kernel::Isa;
use super::*;

/// Decodes a whole block, or says what is wrong.
fn decode(
    stored: &[u8],
    coding: Coding,
    filter: Filter,
    itemsize: usize,
    count: usize,
) -> Result<Vec<u8>, Damage> {
    with_decoder(|decoder| {
        let mut block = decoder.open(stored, coding, filter, itemsize, count, 0..count)?;
        let mut items = vec![0; itemsize * count];
        // SAFETY: there is room for the one run.
        unsafe { block.copy_rows(0, count, 1, 0, items.as_mut_ptr(), 0) };
        Ok(items)
    })
}

fn encode(filter: Filter, level: i32, items: &[u8], itemsize: usize) -> (Coding, Vec<u8>) {
    let mut stored = vec![77];
    let coding =
        with_encoder(|encoder| encoder.encode(filter, Profile::Small, level, items, itemsize, &mut stored));
    assert_eq!(stored.remove(0), 77, "what was there is kept");
    (coding, stored)
}

/// Words that compress: few values, or a ramp.
fn compressible(word: usize, n: usize) -> Vec<u8> {
    (0..n as u64).flat_map(|i| (i * 3 + i % 5).to_le_bytes().into_iter().cycle().take(word)).collect()
}

fn noise(len: usize) -> Vec<u8> {
    let mut x = 1u64;
    let mut next = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn filter(word: u8, itemsize: usize, stride: u32, kind: u8) -> Filter {
    let wanted = match kind % 4 {
        0 => Filter::RAW,
        1 => Filter::ZSTD,
        2 => Filter::planes(word),
        _ => Filter::delta(word, stride),
    };
    if wanted.fits(itemsize) { wanted } else { Filter::planes(word) }
}

prop_compose! {
    /// A filter, an item size that it fits, and whole items.
    fn blocks()(
        word in prop_oneof![3 => prop_oneof![Just(1u8), Just(2), Just(4), Just(8)], 1 => 1u8..=255],
        words in 1usize..4, stride in prop_oneof![1u32..20, Just(1000), Just(u32::MAX)], kind in any::<u8>(),
    )(
        items in prop_oneof![
            (1usize..400).prop_map(move |n| compressible(word.into(), n * words)),
            (1usize..40).prop_map(move |n| noise(usize::from(word) * n * words)),
            proptest::collection::vec(any::<u8>(), 1..20)
                .prop_map(move |few| few.repeat(usize::from(word) * words)),
        ],
        word in Just(word), words in Just(words), stride in Just(stride), kind in Just(kind),
    ) -> (Filter, usize, Vec<u8>) {
        let itemsize = usize::from(word) * words;
        (filter(word, itemsize, stride, kind), itemsize, items)
    }
}

proptest! {
    #[test]
    fn round_trip((filter, itemsize, items) in blocks(), level in -7i32..20) {
        let (coding, stored) = encode(filter, level, &items, itemsize);
        prop_assert!(coding == filter.coding || matches!(coding, Coding::Raw | Coding::Constant));
        prop_assert!(stored.len() <= items.len());
        prop_assert_eq!(decode(&stored, coding, filter, itemsize, items.len() / itemsize).unwrap(), items);
    }

    #[test]
    fn parts_of_a_block((filter, itemsize, items) in blocks(), a: u16, b: u16, step in 1isize..12, back: bool) {
        let (coding, stored) = encode(filter, 1, &items, itemsize);
        let count = items.len() / itemsize;
        let (a, b) = (usize::from(a) % count, usize::from(b) % count);
        let (low, high) = (a.min(b), a.max(b));
        let item = |i: usize| &items[i * itemsize..][..itemsize];
        with_decoder(|decoder| {
            let mut block = decoder.open(&stored, coding, filter, itemsize, count, low..high + 1).unwrap();
            let (first, step) = if back { (high, -step) } else { (low, step) };
            let len = 1 + (high - low) / step.unsigned_abs();
            let mut picked = vec![0; len * itemsize];
            // SAFETY: there is room for `len` items.
            unsafe { block.copy_strided(first, step, len, picked.as_mut_ptr(), itemsize as isize) };
            for (i, got) in picked.chunks_exact(itemsize).enumerate() {
                prop_assert_eq!(got, item(first.wrapping_add_signed(i as isize * step)));
            }
            let row = (high - low) / 3 + 1;
            let mut rows = vec![0; 3 * row * itemsize];
            let row_step = (high + 1 - low - row) / 2;
            // SAFETY: there is room for three runs; the first run comes last.
            unsafe {
                let last = rows.as_mut_ptr().add(2 * row * itemsize);
                block.copy_rows(low, row, 3, row_step, last, -((row * itemsize) as isize));
            }
            for (r, got) in rows.chunks_exact(row * itemsize).rev().enumerate() {
                prop_assert_eq!(got, &items[(low + r * row_step) * itemsize..][..row * itemsize]);
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_are_an_error_or_items(
        stored in proptest::collection::vec(any::<u8>(), 0..200), id in 0u8..5, word: u8, stride: u32,
        itemsize in 0usize..300, count in 0usize..300,
    ) {
        let coding = Coding::from_id(id).unwrap();
        if let Ok(items) = decode(&stored, coding, Filter { coding, word, stride }, itemsize, count) {
            prop_assert_eq!(items.len(), itemsize * count);
        }
    }
}

#[test]
fn every_coding_is_reached() {
    let items = compressible(8, 3000);
    for filter in
        [Filter::ZSTD, Filter::planes(8), Filter::planes(4), Filter::delta(8, 5), Filter::delta(4, 4)]
    {
        let (coding, stored) = encode(filter, 1, &items, 8);
        assert_eq!(coding, filter.coding);
        assert!(stored.len() < items.len() / 2);
    }
    assert_eq!(encode(Filter::RAW, 1, &items, 8), (Coding::Raw, items));
    let noise = noise(8000);
    assert_eq!(encode(Filter::planes(8), 1, &noise, 8), (Coding::Raw, noise.clone()));
    assert_eq!(
        encode(Filter::delta(4, 1), 1, &[7, 8, 9].repeat(100), 3 * 4),
        (Coding::Constant, [7, 8, 9].repeat(4))
    );
    assert_eq!(encode(Filter::ZSTD, 1, &noise[..5], 5), (Coding::Constant, noise[..5].to_vec()), "one item");
}

/// Every change of one byte and every truncation of a stored block.
fn spoiled(stored: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let changed = (0..stored.len()).flat_map(move |i| {
        (1..=255u8).map(move |change| {
            let mut bytes = stored.to_vec();
            bytes[i] ^= change;
            bytes
        })
    });
    changed.chain((0..stored.len()).map(|len| stored[..len].to_vec())).chain([[stored, &[0]].concat()])
}

#[test]
fn spoiled_blocks_are_an_error_or_items() {
    let items = compressible(4, 300);
    for filter in [Filter::RAW, Filter::ZSTD, Filter::planes(4), Filter::planes(12), Filter::delta(4, 3)] {
        let (coding, stored) = encode(filter, 3, &items, 12);
        for bytes in spoiled(&stored) {
            let decoded = decode(&bytes, coding, filter, 12, 100);
            assert!(bytes.len() == stored.len() || decoded.is_err(), "the length of a block cannot lie");
        }
    }
}

fn damage(stored: &[u8], coding: Coding, filter: Filter, itemsize: usize, count: usize) -> String {
    decode(stored, coding, filter, itemsize, count).unwrap_err().0
}

#[test]
fn lengths_that_lie() {
    let raw = |len: u32| (1u32 << 30 | len).to_le_bytes();
    let two = |a: [u8; 4], b: [u8; 4], rest: &[u8]| [&a, &b, rest].concat();
    let planes = Filter::planes(2);
    let check = |stored: Vec<u8>| damage(&stored, Coding::Planes, planes, 2, 3);
    assert!(decode(&two(raw(3), raw(3), &[1; 6]), Coding::Planes, planes, 2, 3).is_ok());
    assert!(check(two(raw(3), raw(3), &[1; 5])).contains("past the end"));
    assert!(check(two(raw(3), raw(3), &[1; 7])).contains("follow the last"));
    assert!(check(two(raw(2), raw(4), &[1; 6])).contains("2 bytes instead of 3"));
    assert!(check(two(raw(3), [0, 1, 0, 0], &[1; 3])).contains("stray bits"));
    assert!(check(two(raw(3), [3, 0, 0, 0xc0], &[1; 6])).contains("runs does not have 3 bytes"));
    assert!(check(two(raw(3), [3, 0, 0, 0x80], &[1; 6])).contains("not one zstd frame"));
    assert!(check(vec![0; 7]).contains("no room for its directory"));
    assert!(damage(&[1; 5], Coding::Raw, Filter::RAW, 2, 3).contains("instead of 6"));
    assert!(damage(&[1; 6], Coding::Constant, Filter::RAW, 2, 3).contains("instead of 2"));
    assert!(damage(&[], Coding::Raw, Filter::RAW, 2, 0).contains("not possible"));
    assert!(damage(&[], Coding::Raw, Filter::RAW, usize::MAX, 3).contains("not possible"));
    assert!(damage(&[], Coding::Constant, Filter::RAW, 1, MAX_BLOCK + 1).contains("not possible"));
    assert!(damage(&[0; 12], Coding::Planes, Filter::planes(3), 4, 3).contains("words of 3 bytes"));
    assert!(damage(&[0; 12], Coding::Delta, Filter::delta(3, 1), 3, 3).contains("words of 3 bytes"));
    assert!(damage(&[0; 16], Coding::Delta, Filter::delta(4, 0), 4, 3).contains("stride 0"));
    assert!(damage(&[], Coding::Planes, Filter::planes(0), 4, 3).contains("words of 0 bytes"));
    assert!(Coding::from_id(5).is_err());
}

#[test]
fn frames_of_the_wrong_length() {
    let frame = |len: usize| {
        let items: Vec<u8> = (0..len).map(|i| (i % 7) as u8).collect();
        let (coding, stored) = encode(Filter::ZSTD, 1, &items, 1);
        assert_eq!(coding, Coding::Zstd);
        stored
    };
    let check = |stored: &[u8]| damage(stored, Coding::Zstd, Filter::ZSTD, 1, 1000);
    assert!(decode(&frame(1000), Coding::Zstd, Filter::ZSTD, 1, 1000).is_ok());
    assert!(check(&frame(999)).contains("999 bytes instead of 1000"));
    assert!(check(&frame(1001)).contains("zstd"));
    assert!(check(&frame(MAX_BLOCK)).contains("zstd"), "a bomb");
    assert!(check(&[frame(500), frame(500)].concat()).contains("not one zstd frame"));
    assert!(check(&[frame(1000), frame(500)].concat()).contains("not one zstd frame"));
    // An empty skippable frame before, after, and instead.
    let skip = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    assert!(check(&[&skip[..], &frame(1000)].concat()).contains("not one zstd frame"));
    assert!(check(&[&frame(1000)[..], &skip].concat()).contains("not one zstd frame"));
    assert!(check(&skip).contains("0 bytes instead of 1000"));
    assert!(check(&[]).contains("not one zstd frame"));
}

#[test]
#[should_panic(expected = "past the end")]
fn rows_outside_of_what_was_opened() {
    let mut decoder = Decoder::with_isa(Isa::Generic);
    let mut block = decoder.open(&[1; 10], Coding::Raw, Filter::RAW, 1, 10, 2..8).unwrap();
    // SAFETY: panics before anything is written.
    unsafe { block.copy_rows(5, 2, 2, 2, std::ptr::dangling_mut(), 2) };
}

#[test]
#[should_panic(expected = "outside of an open block")]
fn steps_outside_of_what_was_opened() {
    let mut decoder = Decoder::new();
    let mut block = decoder.open(&[1; 10], Coding::Raw, Filter::RAW, 1, 10, 2..8).unwrap();
    // SAFETY: panics before anything is written.
    unsafe { block.copy_strided(6, -3, 4, std::ptr::dangling_mut(), 1) };
}

#[test]
fn a_decoder_within_a_decoder() {
    with_decoder(|outer| {
        let mut block = outer.open(&[5], Coding::Constant, Filter::RAW, 1, 4, 0..4).unwrap();
        assert_eq!(decode(&[1, 2], Coding::Raw, Filter::RAW, 1, 2).unwrap(), [1, 2]);
        let mut item = 0;
        // SAFETY: there is room for the one item.
        unsafe { block.copy_strided(3, 1, 1, &mut item, 1) };
        assert_eq!(item, 5);
    });
}

#[test]
fn the_choice_is_the_coding_made_for_the_data() {
    let chosen =
        |items: &[u8], size, strides: &[u32]| choose(&[items], size, size, strides, Profile::Balanced, 1);
    let ramp: Vec<u8> = (0..20000u64).flat_map(|i| (i * 1_000_003).to_le_bytes()).collect();
    assert_eq!(chosen(&ramp, 8, &[1, 4]), Filter::delta(8, 1));
    let scales = [1, 1_000_003, 77_777_777_777, 3];
    let columns: Vec<u8> = (0..20000).flat_map(|i| (i as u64 / 4 * scales[i % 4]).to_le_bytes()).collect();
    assert_eq!(chosen(&columns, 8, &[1, 4]), Filter::delta(8, 4));
    assert_eq!(chosen(&noise(80000), 4, &[1, 4]), Filter::RAW);
    let high_byte_repeats: Vec<u8> =
        noise(80000).chunks(3).flat_map(|x| [x[0], x[0] ^ x[0] >> 1, 3, 4]).collect();
    assert_eq!(chosen(&high_byte_repeats, 4, &[1]), Filter::planes(4));
    assert_eq!(chosen(&noise(90_000), 300, &[1]).coding, Coding::Raw, "words of 300 bytes have no planes");
    assert_eq!(chosen(&[], 4, &[1]), Filter::RAW);
    for _ in 0..3 {
        assert_eq!(chosen(&columns, 8, &[1, 4]), Filter::delta(8, 4), "the same data, the same choice");
    }
}
