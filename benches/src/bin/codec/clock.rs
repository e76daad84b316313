//! Times of things that are done in turns, so that a disturbance does not hit one of them alone.

use std::time::Instant;

/// Nanoseconds of each of these, the best of `rounds`.
pub(crate) fn best_of(rounds: usize, things: &mut [Box<dyn FnMut() + '_>]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; things.len()];
    for _ in 0..rounds {
        for (thing, best) in things.iter_mut().zip(&mut best) {
            let start = Instant::now();
            thing();
            *best = best.min(start.elapsed().as_nanos() as f64);
        }
    }
    best
}

/// A destination for blocks one after the other, all of it touched.
pub(crate) struct Destination(Vec<u8>);

impl Destination {
    pub(crate) fn new(len: usize) -> Self {
        Destination(vec![1; len])
    }

    /// Calls `write` with each thing and the place for as many bytes as `size` says, one place after the other.
    pub(crate) fn fill<T>(
        &mut self,
        things: &[T],
        size: impl Fn(&T) -> usize,
        mut write: impl FnMut(&T, &mut [u8]),
    ) {
        let mut rest = &mut self.0[..];
        for thing in things {
            let (place, after) = rest.split_at_mut(size(thing));
            write(thing, place);
            rest = after;
        }
    }
}
