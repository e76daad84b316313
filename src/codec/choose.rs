//! Finding the filter that brings given data to its reader soonest.

use super::cost::Profile;
use super::encode::with_encoder;
use super::{Coding, Filter};

/// The filter for data like these sample blocks of whole items.
///
/// `component` is the machine word inside an item, which it divides: 4 for complex64, the item size for plain numbers.
/// `strides` are the distances, in components, at which differences are worth a try: those that take a value to its
/// neighbour along some axis.
///
/// Every candidate is tried on the first sample, and those that come near the best of them on the others, so that the
/// choice takes about as long as writing the first sample ten times and each of the others a few times.
pub(crate) fn choose(
    samples: &[&[u8]],
    itemsize: usize,
    component: usize,
    strides: &[u32],
    profile: Profile,
    level: i32,
) -> Filter {
    /// A candidate that costs more than this many times the least on the first sample is not tried on the others.
    const NEAR: f64 = 1.6;
    let mut stored = Vec::new();
    let mut cost = |filter: Filter, sample: &[u8]| {
        stored.clear();
        with_encoder(|encoder| {
            encoder.encode_at_cost(filter, profile, level, sample, itemsize, &mut stored).1
        })
    };
    let mut samples = samples.iter().filter(|sample| !sample.is_empty());
    let Some(first) = samples.next() else { return Filter::RAW };
    let mut tried: Vec<(f64, Filter)> = candidates(itemsize, component, strides)
        .into_iter()
        .map(|filter| (cost(filter, first), filter))
        .collect();
    let least = tried.iter().fold(f64::INFINITY, |least, (cost, _)| least.min(*cost));
    tried.retain(|(cost, _)| *cost <= least * NEAR);
    if tried.len() > 1 {
        for sample in samples {
            for (sum, filter) in &mut tried {
                *sum += cost(*filter, sample);
            }
        }
    }
    // Of equals the first, which is the simpler one.
    tried
        .into_iter()
        .reduce(|best, next| if next.0 < best.0 { next } else { best })
        .map_or(Filter::RAW, |best| best.1)
}

/// Whether a filter still brings data like this sample to its reader about as soon as others would. Takes as long as writing
/// the sample four times: one of each kind of filter is tried.
pub(crate) fn is_still_right(
    filter: Filter,
    sample: &[u8],
    itemsize: usize,
    component: usize,
    strides: &[u32],
    profile: Profile,
    level: i32,
) -> bool {
    /// Another filter must be this many times better.
    const BETTER: f64 = 1.1;
    let mut stored = Vec::new();
    let mut cost = |filter: Filter| {
        stored.clear();
        with_encoder(|encoder| {
            encoder.encode_at_cost(filter, profile, level, sample, itemsize, &mut stored).1
        })
    };
    let now = cost(filter);
    let kinds = [Coding::Planes, Coding::Zstd, Coding::Delta];
    let all = candidates(itemsize, component, strides);
    let mut others =
        kinds.iter().filter_map(|kind| all.iter().find(|other| other.coding == *kind && **other != filter));
    others.all(|other| now <= cost(*other) * BETTER)
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
