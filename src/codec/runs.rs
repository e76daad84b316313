//! Streams of runs: planes in which a byte often stands several times in a row, such as the exponents of a smooth field,
//! or masks.
//!
//! A run is two bytes: the value, and how often it stands there less one. zstd needs somewhat less room for such planes, but
//! several times as long: each run is a match that it decodes by itself. The cost decides (benches/README.md, "Runs").

use crate::error::Damage;

/// The longest run that one pair stands for.
const LONGEST: usize = 256;
/// Bytes that are written at once.
const WIDE: usize = 32;

/// Fills `plane` with the runs of `pairs`, which must fill it exactly.
pub(super) fn decode(pairs: &[u8], plane: &mut [u8]) -> Result<(), Damage> {
    let n = plane.len();
    let wrong = || Damage::new(format!("a stream of runs does not have {n} bytes"));
    let (pairs, odd) = pairs.as_chunks::<2>();
    let mut rest = plane;
    for &[value, more] in pairs {
        let len = usize::from(more) + 1;
        // Stores of a fixed length, mostly one, of which the next runs overwrite what is too much.
        match rest.first_chunk_mut::<{ LONGEST + WIDE }>() {
            Some(room) => room.as_chunks_mut().0[..len.div_ceil(WIDE)].fill([value; WIDE]),
            None => rest.get_mut(..len).ok_or_else(wrong)?.fill(value),
        }
        rest = &mut rest[len..];
    }
    if rest.is_empty() && odd.is_empty() { Ok(()) } else { Err(wrong()) }
}

/// How many places there are in `plane` at which a byte differs from the one before.
#[cfg(feature = "write")]
pub(super) fn changes(plane: &[u8]) -> usize {
    // In lanes of a byte each, which hold 255 before they are added up.
    const LANES: usize = 64;
    let after = plane.get(1..).unwrap_or_default();
    let mut count = 0;
    let pieces = plane[..after.len()].chunks(LANES * 255).zip(after.chunks(LANES * 255));
    for (before, after) in pieces {
        let ((before, last_before), (after, last_after)) =
            (before.as_chunks::<LANES>(), after.as_chunks::<LANES>());
        let mut lanes = [0u8; LANES];
        for (before, after) in before.iter().zip(after) {
            for lane in 0..LANES {
                lanes[lane] += u8::from(before[lane] != after[lane]);
            }
        }
        count += lanes.iter().map(|&lane| usize::from(lane)).sum::<usize>();
        count += last_before.iter().zip(last_after).filter(|(before, after)| before != after).count();
    }
    count
}

/// How many of these runs take more than one store.
#[cfg(feature = "write")]
pub(super) fn long(pairs: &[u8]) -> usize {
    pairs.as_chunks::<2>().0.iter().filter(|[_, more]| usize::from(*more) >= WIDE).count()
}

/// Puts the runs of `plane` in `pairs`.
#[cfg(feature = "write")]
pub(super) fn encode(plane: &[u8], pairs: &mut Vec<u8>) {
    pairs.clear();
    let mut start = 0;
    let mut finish = |end: usize| {
        while start < end {
            let len = (end - start).min(LONGEST);
            pairs.extend_from_slice(&[plane[start], (len - 1) as u8]);
            start += len;
        }
    };
    // Eight bytes and the eight before them, one place earlier: what differs ends a run.
    let (words, _) = plane.get(1..).unwrap_or_default().as_chunks::<8>();
    for (n, (word, before)) in words.iter().zip(plane.as_chunks::<8>().0).enumerate() {
        let mut differ = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*before);
        while differ != 0 {
            let byte = differ.trailing_zeros() as usize / 8;
            finish(8 * n + byte + 1);
            differ &= !(0xFF << (8 * byte));
        }
    }
    for at in 8 * words.len() + 1..plane.len() {
        if plane[at] != plane[at - 1] {
            finish(at);
        }
    }
    finish(plane.len());
}

#[cfg(all(test, feature = "write"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_of_any_length_come_back(runs in prop::collection::vec((0u8..4, 1usize..600), 1..40)) {
            let plane: Vec<u8> = runs.iter().flat_map(|(value, len)| vec![*value; *len]).collect();
            let mut pairs = Vec::new();
            encode(&plane, &mut pairs);
            prop_assert!(pairs.len() <= 2 * (changes(&plane) + 1 + plane.len() / LONGEST));
            let mut back = vec![9; plane.len()];
            decode(&pairs, &mut back).unwrap();
            prop_assert_eq!(&back, &plane);
            // A plane that is shorter or longer, and pairs that are cut, do not fit.
            prop_assert!(decode(&pairs, &mut vec![0; plane.len() + 1]).is_err());
            prop_assert!(decode(&pairs, &mut vec![0; plane.len() - 1]).is_err());
            prop_assert!(decode(&pairs[..pairs.len() - 1], &mut back).is_err());
        }

        #[test]
        fn bytes_without_runs_come_back(plane in prop::collection::vec(any::<u8>(), 1..200)) {
            let mut pairs = Vec::new();
            encode(&plane, &mut pairs);
            prop_assert_eq!(pairs.len(), 2 * (changes(&plane) + 1));
            let mut back = vec![0; plane.len()];
            decode(&pairs, &mut back).unwrap();
            prop_assert_eq!(back, plane);
        }
    }
}
