//! Decoding loops as one writes them without thinking of vectors: what the codec's own are compared with.

/// Puts words together, a word at a time.
pub(crate) fn interleave<const W: usize>(planes: &[&[u8]], items: &mut [u8]) {
    let (words, _) = items.as_chunks_mut::<W>();
    let n = words.len();
    // Cut to one length, the planes need no further checks.
    let planes: [&[u8]; W] = std::array::from_fn(|k| &planes[k][..n]);
    for i in 0..n {
        for k in 0..W {
            words[i][k] = planes[k][i];
        }
    }
}

/// Puts words together, a plane at a time.
pub(crate) fn interleave_planewise<const W: usize>(planes: &[&[u8]], items: &mut [u8]) {
    let n = items.len() / W;
    for k in 0..W {
        let plane = &planes[k][..n];
        for i in 0..n {
            items[i * W + k] = plane[i];
        }
    }
}

macro_rules! undo {
    ($name:ident, $word:ty, $w:literal) => {
        /// Undoes the differences of words that have been put together, in place.
        pub(crate) fn $name(items: &mut [u8], stride: usize) {
            let (words, _) = items.as_chunks_mut::<$w>();
            for i in 0..words.len() {
                let code = <$word>::from_le_bytes(words[i]);
                let mut x = (code >> 1) ^ (code & 1).wrapping_neg();
                if i >= stride {
                    x = x.wrapping_add(<$word>::from_le_bytes(words[i - stride]));
                }
                words[i] = x.to_le_bytes();
            }
        }
    };
}
undo!(undo4, u32, 4);
undo!(undo8, u64, 8);

/// Decodes words of 4 or 8 bytes with the loops above; `stride` 0 for words without differences.
pub(crate) fn decode(planes: &[&[u8]], planewise: bool, stride: usize, items: &mut [u8]) {
    match (planes.len(), planewise) {
        (4, false) => interleave::<4>(planes, items),
        (8, false) => interleave::<8>(planes, items),
        (4, true) => interleave_planewise::<4>(planes, items),
        (8, true) => interleave_planewise::<8>(planes, items),
        (word, _) => panic!("no plain loop for words of {word} bytes"),
    }
    match (planes.len(), stride) {
        (_, 0) => {}
        (4, _) => undo4(items, stride),
        _ => undo8(items, stride),
    }
}
