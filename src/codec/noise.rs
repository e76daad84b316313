//! Telling bytes that zstd cannot make shorter from a look at a few of them: the low bytes of measured values are most of
//! what is written, and trying takes zstd longer than all else.

/// Shorter bytes are not worth a look.
const LEAST: usize = 4096;
/// How many stretches are looked at, and their length.
const STRETCHES: usize = 4;
const STRETCH: usize = 256;
/// Bytes that, if they occur again, tell that long parts repeat.
const NEEDLE: usize = 8;

/// Whether bytes look as if drawn at random, each alike, and do not repeat: zstd finds neither frequent bytes nor matches.
/// It may say so though a part that it does not look at is different.
pub(super) fn is_noise(bytes: &[u8]) -> bool {
    bytes.len() >= LEAST && is_even(bytes) && !repeats(bytes)
}

/// The part in the middle that zstd is to be tried on.
pub(super) fn quarter(bytes: &[u8]) -> &[u8] {
    let len = bytes.len() / 4;
    &bytes[len + len / 2..][..len]
}

/// Whether all bytes are equally frequent, as far as so few of them tell.
fn is_even(bytes: &[u8]) -> bool {
    const DRAWN: usize = STRETCHES * STRETCH;
    // Of bytes drawn at random the squares of the counts add up to this, give or take 90 for each standard deviation.
    const DUE: usize = DRAWN + DRAWN * (DRAWN - 1) / 256;
    let mut counts = [0u16; 256];
    let step = (bytes.len() - STRETCH) / (STRETCHES - 1);
    for n in 0..STRETCHES {
        bytes[n * step..][..STRETCH].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    }
    let squares: usize = counts.iter().map(|&count| usize::from(count) * usize::from(count)).sum();
    squares < DUE + 5 * 90
}

/// Whether one of two short parts stands in what is before it.
fn repeats(bytes: &[u8]) -> bool {
    [bytes.len() / 2, bytes.len() - NEEDLE]
        .into_iter()
        .any(|at| memchr::memmem::find(&bytes[..at], &bytes[at..at + NEEDLE]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn noise_is_told_from_what_zstd_makes_shorter() {
        for len in [LEAST, 10_000, 32_768, 1 << 20] {
            assert!(is_noise(&noise(len)), "{len}");
            assert!(!is_noise(&noise(len / 2).repeat(2)), "repeated after {}", len / 2);
            assert!(!is_noise(&noise(len / 10).repeat(11)), "repeated after {}", len / 10);
            let seven_bits: Vec<u8> = noise(len).iter().map(|byte| byte & 0x7F).collect();
            assert!(!is_noise(&seven_bits), "{len}");
        }
        assert!(!is_noise(&noise(LEAST - 1)));
    }
}
