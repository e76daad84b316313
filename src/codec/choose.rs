//! Finding the filter that brings given data to its reader soonest.

use super::cost::Profile;
use super::encode::with_encoder;
use super::{Coding, Filter};

/// The filter for data like these sample blocks of whole items.
///
/// `component` is the machine word inside an item, which it divides: 4 for complex64, the item size for plain numbers.
/// `strides` are the distances, in components, at which differences are worth a try: those that take a value to its
/// neighbour along some axis. The samples are encoded with every candidate, so this takes as long as writing them
/// that many times.
pub(crate) fn choose(
    samples: &[&[u8]],
    itemsize: usize,
    component: usize,
    strides: &[u32],
    profile: Profile,
    level: i32,
) -> Filter {
    let mut best = (f64::INFINITY, Filter::RAW);
    let mut stored = Vec::new();
    for filter in candidates(itemsize, component, strides) {
        let mut cost = 0.0;
        for sample in samples.iter().filter(|sample| !sample.is_empty()) {
            stored.clear();
            cost += with_encoder(|encoder| {
                encoder.encode_at_cost(filter, profile, level, sample, itemsize, &mut stored).1
            });
        }
        if cost < best.0 {
            best = (cost, filter);
        }
    }
    best.1
}

/// The filters to try, each once, simple ones first: of equals the first is taken.
pub(super) fn candidates(itemsize: usize, component: usize, strides: &[u32]) -> Vec<Filter> {
    let word = |size: usize| u8::try_from(size).unwrap_or(0);
    let plain = [Filter::RAW, Filter::planes(word(component)), Filter::planes(word(itemsize)), Filter::ZSTD];
    let deltas = strides.iter().map(|stride| Filter::delta(word(component), *stride));
    let mut filters = Vec::new();
    for filter in plain.into_iter().chain(deltas) {
        let one_plane = filter.coding == Coding::Planes && filter.word == 1;
        if filter.fits(itemsize) && !one_plane && !filters.contains(&filter) {
            filters.push(filter);
        }
    }
    filters
}
