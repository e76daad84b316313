//! All loops against the oracle.

use proptest::prelude::*;

use super::{Isa, Plane, Rows, Stores, copy_items, interleave, pick, repeat, scalar, undo_differences};

/// Every set of loops that this processor can run.
pub(in super::super) fn all_isas() -> Vec<Isa> {
    let mut isas = vec![Isa::Generic];
    isas.extend(Some(Isa::detect()).filter(|isa| *isa != Isa::Generic));
    isas
}

/// Bytes before and after the destination that must stay as they are.
const MARGIN: usize = 80;
const UNTOUCHED: u8 = 0xa5;

/// A destination with margins; `write` gets its start.
fn written(len: usize, write: impl FnOnce(*mut u8)) -> Vec<u8> {
    let mut memory = vec![UNTOUCHED; len + 2 * MARGIN];
    write(memory[MARGIN..].as_mut_ptr());
    let (before, rest) = memory.split_at(MARGIN);
    assert!(
        before.iter().chain(&rest[len..]).all(|byte| *byte == UNTOUCHED),
        "written outside of the destination"
    );
    rest[..len].to_vec()
}

/// Planes of `n` words cut out of `items`, those with a bit in `constant` replaced by a constant.
fn planes(bytes: &[u8], word: usize, n: usize, constant: u32) -> Vec<Plane<'_>> {
    (0..word)
        .map(|k| match constant >> (k % 32) & 1 {
            0 => Plane::Bytes(&bytes[k * n..][..n]),
            _ => Plane::Constant(bytes[k * n]),
        })
        .collect()
}

fn bytes(len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), len),
        proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], len)
    ]
}

/// Words of any width and number, with their bytes.
fn block() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    let word = prop_oneof![4 => prop_oneof![Just(1usize), Just(2), Just(4), Just(8)], 1 => 1usize..=20, 1 => Just(255)];
    (word, 1usize..300).prop_flat_map(|(word, n)| (Just(word), Just(n), bytes(word * n)))
}

/// The same for words that have differences.
fn integers() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    let word = prop_oneof![Just(1usize), Just(2), Just(4), Just(8)];
    let n = prop_oneof![4 => 1usize..300, 1 => 1usize..4000];
    (word, n).prop_flat_map(|(word, n)| (Just(word), Just(n), bytes(word * n)))
}

fn stride() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1usize..=20, 2 => 20usize..400, 1 => 400usize..3000, 1 => Just(u32::MAX as usize)]
}

proptest! {
    #[test]
    fn interleaving_rows((word, n, bytes) in block(), constant: u32, first: u16, len: u16, rows in 1usize..5, gap in 0usize..70) {
        let planes = planes(&bytes, word, n, constant);
        let first = usize::from(first) % n;
        let len = 1 + usize::from(len) % (n - first);
        let step = (n - first - len) / rows;
        let stride = len * word + gap;
        let both = |isa| [(isa, Stores::Cached), (isa, Stores::Streaming)];
        for (isa, stores) in all_isas().into_iter().flat_map(both) {
            let got = written(stride * (rows - 1) + len * word, |dst| {
                let rows = Rows { first, len, rows, step };
                // SAFETY: the runs end before word `n`, and the destination has this size.
                unsafe { interleave(isa, &planes, rows, dst, stride as isize, stores) };
            });
            for r in 0..rows {
                let row = scalar::interleave(&planes, first + r * step, len);
                prop_assert_eq!(&got[r * stride..][..len * word], &row[..], "{:?}", isa);
                let gap = got.get(r * stride + len * word..(r + 1) * stride).unwrap_or_default();
                prop_assert!(gap.iter().all(|byte| *byte == UNTOUCHED));
            }
        }
    }

    #[test]
    fn undoing_differences((word, n, bytes) in integers(), constant: u32, stride in stride()) {
        let planes = planes(&bytes, word, n, constant);
        let codes = scalar::interleave(&planes, 0, n);
        for isa in all_isas() {
            let got = written(n * word, |dst| {
                // SAFETY: the planes have `n` words and so has the destination.
                unsafe { undo_differences(isa, &planes, stride, n, dst) };
            });
            prop_assert_eq!(got, scalar::undo_differences(&codes, word, stride), "{:?}", isa);
        }
    }

    #[test]
    fn picking_items(
        (word, n, bytes) in block(), constant: u32, words in 1usize..4, first: u16, step in -20isize..20, gap in 0usize..3
    ) {
        let planes = planes(&bytes, word, n, constant);
        let (size, count) = (word * words, n / words);
        prop_assume!(count > 0);
        let first = usize::from(first) % count;
        let room = if step < 0 { first } else { count - 1 - first };
        let len = 1 + room.checked_div(step.unsigned_abs()).unwrap_or(7);
        let stride = size + gap;
        for isa in all_isas() {
            let got = written(stride * (len - 1) + size, |dst| {
                // SAFETY: the items lie within the planes, and the destination has this size.
                unsafe { pick(isa, &planes, size, first, step, len, dst, stride as isize) };
            });
            for i in 0..len {
                let item = first.wrapping_add_signed(i as isize * step);
                let item = scalar::interleave(&planes, item * words, words);
                prop_assert_eq!(&got[i * stride..][..size], &item[..], "item {} with {:?}", i, isa);
            }
        }
    }

    #[test]
    fn repeating_an_item(item in bytes(13), size in 1usize..=13, len in 1usize..70, rows in 1usize..4, gap in 0usize..9) {
        let item = &item[..size];
        let stride = size * len + gap;
        let got = written(stride * (rows - 1) + size * len, |dst| {
            // SAFETY: the destination has this size.
            unsafe { repeat(item, len, rows, dst, stride as isize) };
        });
        for r in 0..rows {
            prop_assert_eq!(&got[r * stride..][..size * len], &item.repeat(len)[..]);
        }
    }

    #[test]
    fn copying_items_backwards(size in 1usize..20, len in 1usize..40) {
        let items: Vec<u8> = (0..size * len).map(|i| i as u8).collect();
        let got = written(size * len, |dst| {
            // SAFETY: the last item first, down to the first one; both have `len` items.
            unsafe {
                let last = items.as_ptr().add((len - 1) * size);
                copy_items(size, len, last, -(size as isize), dst, size as isize);
            }
        });
        prop_assert_eq!(got, items.rchunks(size).flatten().copied().collect::<Vec<_>>());
    }
}

#[cfg(feature = "write")]
proptest! {
    #[test]
    fn splitting((word, _, bytes) in block()) {
        for isa in all_isas() {
            let mut planes = vec![0; bytes.len()];
            super::split(isa, &bytes, word, &mut planes);
            prop_assert_eq!(planes, scalar::split(&bytes, word), "{:?}", isa);
        }
    }

    #[test]
    fn taking_differences((word, _, bytes) in integers(), stride in stride()) {
        for isa in all_isas() {
            let mut codes = vec![0; bytes.len()];
            super::differences(isa, &bytes, word, stride, &mut codes);
            prop_assert_eq!(&codes, &scalar::differences(&bytes, word, stride), "{:?}", isa);
            prop_assert_eq!(scalar::undo_differences(&codes, word, stride), bytes.clone());
        }
    }
}
