//! What the loops must compute, said as plainly as possible: the oracle of the tests.

use super::Plane;

fn byte(plane: &Plane<'_>, i: usize) -> u8 {
    match plane {
        Plane::Bytes(bytes) => bytes[i],
        Plane::Constant(value) => *value,
    }
}

/// The words `first..first + len` of a block with these planes.
pub(super) fn interleave(planes: &[Plane<'_>], first: usize, len: usize) -> Vec<u8> {
    (first..first + len).flat_map(|i| planes.iter().map(move |plane| byte(plane, i))).collect()
}

/// Byte `k` of each word of `word` bytes, for each `k`.
pub(super) fn split(items: &[u8], word: usize) -> Vec<u8> {
    (0..word).flat_map(|k| items.iter().copied().skip(k).step_by(word)).collect()
}

/// The words of `word` bytes of these items as integers.
fn words(items: &[u8], word: usize) -> Vec<u64> {
    items.chunks(word).map(|bytes| bytes.iter().rev().fold(0, |x, byte| x << 8 | u64::from(*byte))).collect()
}

/// The bytes of these words.
fn bytes(words: &[u64], word: usize) -> Vec<u8> {
    words.iter().flat_map(|x| x.to_le_bytes().into_iter().take(word)).collect()
}

/// The zigzag codes of the differences between words `stride` apart.
pub(super) fn differences(items: &[u8], word: usize, stride: usize) -> Vec<u8> {
    let words = words(items, word);
    let unused = 64 - 8 * word as u32;
    let codes: Vec<u64> = (0..words.len())
        .map(|i| {
            let before = if i < stride { 0 } else { words[i - stride] };
            // Shifted to the top, the words wrap as words of their own width would.
            let x = (words[i] << unused).wrapping_sub(before << unused);
            let sign = if (x as i64) < 0 { u64::MAX } else { 0 };
            ((x << 1) ^ sign) >> unused
        })
        .collect();
    bytes(&codes, word)
}

/// The items whose differences these are.
pub(super) fn undo_differences(codes: &[u8], word: usize, stride: usize) -> Vec<u8> {
    let mut items = words(codes, word);
    for i in 0..items.len() {
        let x = (items[i] >> 1) ^ (items[i] & 1).wrapping_neg();
        items[i] = x.wrapping_add(if i < stride { 0 } else { items[i - stride] });
    }
    bytes(&items, word)
}
