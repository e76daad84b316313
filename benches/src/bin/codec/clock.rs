//! Times of things that are done in turns and in small pieces, each piece at its best: what else runs on the machine
//! disturbs a piece now and then, but hardly the same one every time.

use std::time::Instant;

/// The best time of each piece of one thing, in nanoseconds.
pub(crate) struct Laps {
    best: Vec<f64>,
    next: usize,
    start: Instant,
}

impl Laps {
    fn new() -> Self {
        Laps { best: Vec::new(), next: 0, start: Instant::now() }
    }

    fn restart(&mut self) {
        self.next = 0;
        self.start = Instant::now();
    }

    /// Ends a piece and starts the next one.
    pub(crate) fn lap(&mut self) {
        let time = self.start.elapsed().as_nanos() as f64;
        match self.best.get_mut(self.next) {
            Some(best) => *best = best.min(time),
            None => self.best.push(time),
        }
        self.next += 1;
        self.start = Instant::now();
    }
}

/// Something to time, which says where its pieces end.
pub(crate) type Timed<'a> = Box<dyn FnMut(&mut Laps) + 'a>;

/// Nanoseconds of each of these: the sum of its pieces' best times in so many rounds.
pub(crate) fn best_of(rounds: usize, things: &mut [Timed<'_>]) -> Vec<f64> {
    let mut laps: Vec<Laps> = things.iter().map(|_| Laps::new()).collect();
    for _ in 0..rounds {
        for (thing, laps) in things.iter_mut().zip(&mut laps) {
            laps.restart();
            thing(laps);
        }
    }
    laps.iter().map(|laps| laps.best.iter().sum()).collect()
}

/// A destination for blocks one after the other, all of it touched.
pub(crate) struct Destination(Vec<u8>);

impl Destination {
    pub(crate) fn new(len: usize) -> Self {
        Destination(vec![1; len])
    }

    /// Calls `write` with each thing and the place for as many bytes as `size` says, one place after the other. Each is
    /// a piece.
    pub(crate) fn fill<T>(
        &mut self,
        things: &[T],
        laps: &mut Laps,
        size: impl Fn(&T) -> usize,
        mut write: impl FnMut(&T, &mut [u8]),
    ) {
        let mut rest = &mut self.0[..];
        for thing in things {
            let (place, after) = rest.split_at_mut(size(thing));
            write(thing, place);
            laps.lap();
            rest = after;
        }
    }
}
