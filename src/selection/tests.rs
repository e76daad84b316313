//! Selections against NumPy's results and against plain lists of indices.

use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::shape::MAX_LEN;

/// The selected indices in output order, item by item.
fn expand(axis: &AxisSelection) -> Vec<u64> {
    match axis {
        AxisSelection::Range { start, step, len } => (0..*len)
            .map(|number| u64::try_from(i128::from(*start) + i128::from(*step) * i128::from(number)).unwrap())
            .collect(),
        AxisSelection::List { sorted } => {
            assert!(sorted.is_sorted());
            let mut indices = vec![u64::MAX; sorted.len()];
            for (index, out) in sorted {
                indices[usize::try_from(*out).unwrap()] = *index;
            }
            indices
        }
    }
}

/// What Python's `list(range(length))[start:stop:step]` gives, by walking as its documentation says.
fn python_slice(length: u64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<u64> {
    let (length, step) = (i128::from(length), i128::from(step));
    let place = |place: i64| if place < 0 { i128::from(place) + length } else { i128::from(place) };
    let mut at = match start.map(place) {
        None if step > 0 => 0,
        None => length - 1,
        // Outside on the side that the walk starts from: start at the border.
        Some(at) if at < 0 && step > 0 => 0,
        Some(at) if at >= length && step < 0 => length - 1,
        Some(at) => at,
    };
    let stop = match stop.map(place) {
        None if step > 0 => length,
        None => -1,
        Some(stop) => stop,
    };
    let mut indices = Vec::new();
    while (0..length).contains(&at) && (if step > 0 { at < stop } else { at > stop }) {
        indices.push(u64::try_from(at).unwrap());
        at += step;
    }
    indices
}

fn resolved(text: &str, shape: &[u64]) -> ResolvedSelection {
    text.parse::<Selection>().and_then(|selection| selection.resolve(shape)).unwrap_or_else(|error| {
        panic!("{text} of {shape:?}: {error}");
    })
}

#[test]
fn slices_as_numpy_gives_them() {
    // np.arange(length)[text]
    let cases: &[(u64, &str, &[u64])] = &[
        (5, ":", &[0, 1, 2, 3, 4]),
        (5, "::", &[0, 1, 2, 3, 4]),
        (5, "::1", &[0, 1, 2, 3, 4]),
        (5, "::-1", &[4, 3, 2, 1, 0]),
        (5, "::2", &[0, 2, 4]),
        (5, "::-2", &[4, 2, 0]),
        (6, "::-2", &[5, 3, 1]),
        (5, "1:", &[1, 2, 3, 4]),
        (5, ":3", &[0, 1, 2]),
        (5, "1:4", &[1, 2, 3]),
        (5, "1:4:2", &[1, 3]),
        (5, "1:5:3", &[1, 4]),
        (5, "1:4:3", &[1]),
        (5, "3:1", &[]),
        (5, "2:2", &[]),
        (5, "-1:", &[4]),
        (5, "-2:", &[3, 4]),
        (5, ":-2", &[0, 1, 2]),
        (5, "-3:-1", &[2, 3]),
        (5, "-9:2", &[0, 1]),
        (5, "3:99", &[3, 4]),
        (5, "-99:99", &[0, 1, 2, 3, 4]),
        (5, "7:9", &[]),
        (5, "-9:-7", &[]),
        (5, "4:1:-1", &[4, 3, 2]),
        (5, "3::-1", &[3, 2, 1, 0]),
        (5, "3:0:-1", &[3, 2, 1]),
        (5, "3:-1:-1", &[]),
        (5, "3:-6:-1", &[3, 2, 1, 0]),
        (5, "3:-5:-1", &[3, 2, 1]),
        (5, "99::-2", &[4, 2, 0]),
        (5, "99:2:-1", &[4, 3]),
        (5, ":2:-1", &[4, 3]),
        (5, "-1:-4:-1", &[4, 3, 2]),
        (5, "-7::-1", &[]),
        (5, "0::-1", &[0]),
        (5, "1:4:-1", &[]),
        (5, "::99", &[0]),
        (5, "::-99", &[4]),
        (5, "::9223372036854775807", &[0]),
        (5, "::-9223372036854775808", &[4]),
        (5, "-9223372036854775808:9223372036854775807", &[0, 1, 2, 3, 4]),
        (5, "9223372036854775807:-9223372036854775808:-1", &[4, 3, 2, 1, 0]),
        (0, ":", &[]),
        (0, "::-1", &[]),
        (0, "1:5", &[]),
        (0, "-1:", &[]),
        (1, "::-1", &[0]),
        (1, "-1:", &[0]),
        (10, "8:1:-3", &[8, 5, 2]),
        (10, "8:2:-3", &[8, 5]),
        (5, "[[3, 0, -1, 3]]", &[3, 0, 4, 3]),
        (5, "[[]]", &[]),
        (0, "[[]]", &[]),
        (5, "-2", &[3]),
    ];
    for (length, text, expected) in cases {
        let found = resolved(text, &[*length]);
        assert_eq!(expand(&found.axes()[0]), *expected, "{text} of {length}");
        assert_eq!(found.len(), expected.len() as u64);
        assert_eq!(found.is_empty(), expected.is_empty());
    }
}

#[test]
fn shapes_as_numpy_gives_them() {
    // np.empty(shape)[text].shape; lists as with np.ix_
    let cases: &[(&[u64], &str, &[u64])] = &[
        (&[], "", &[]),
        (&[], "...", &[]),
        (&[], "None", &[1]),
        (&[], "None, ..., None", &[1, 1]),
        (&[4, 5, 6], "", &[4, 5, 6]),
        (&[4, 5, 6], "...", &[4, 5, 6]),
        (&[4, 5, 6], "1", &[5, 6]),
        (&[4, 5, 6], "-1, -1, -1", &[]),
        (&[4, 5, 6], "..., 2", &[4, 5]),
        (&[4, 5, 6], "1, ..., 2", &[5]),
        (&[4, 5, 6], "1, 2, ..., 3", &[]),
        (&[4, 5, 6], ":, 1", &[4, 6]),
        (&[4, 5, 6], "::2, ..., ::-4", &[2, 5, 2]),
        (&[4, 5, 6], "None, 1, None", &[1, 1, 5, 6]),
        (&[4, 5, 6], "..., None", &[4, 5, 6, 1]),
        (&[4, 5, 6], "1:3, None, :, 0", &[2, 1, 5]),
        (&[4, 5, 6], "[0, 0, 0, 0, 0], ..., [1, 2]", &[5, 5, 2]),
        (&[4, 5, 6], "[], [4]", &[0, 1, 6]),
        (&[0, 2], ":, [1]", &[0, 1]),
        (&[0, 2], "[], :", &[0, 2]),
    ];
    for (shape, text, expected) in cases {
        let selection: Selection = text.parse().unwrap();
        assert_eq!(selection.shape(shape).unwrap(), *expected, "{text} of {shape:?}");
        let found = selection.resolve(shape).unwrap();
        assert_eq!(found.axes().len(), shape.len());
        let items: u64 = expected.iter().product();
        assert_eq!((found.len(), found.full_shape().iter().product()), (items, items));
    }
}

#[test]
fn refuses_selections_that_do_not_fit() {
    let fails = |text: &str, shape: &[u64]| text.parse::<Selection>().unwrap().resolve(shape).unwrap_err();
    let out_of_bounds = |text: &str, shape: &[u64], about: &str| {
        let error = fails(text, shape);
        assert!(matches!(error, Error::OutOfBounds { .. }), "{error:?}");
        assert!(error.to_string().contains(about), "{error}");
    };
    out_of_bounds("5", &[5], "index 5 is out of bounds for axis 0 with length 5");
    out_of_bounds(":, -6", &[9, 5], "index -6 is out of bounds for axis 1 with length 5");
    out_of_bounds("..., [0, 5]", &[9, 5], "index 5 is out of bounds for axis 1");
    out_of_bounds("0", &[0], "length 0");
    out_of_bounds("-1", &[0], "length 0");
    out_of_bounds("-9223372036854775808", &[5], "-9223372036854775808");
    out_of_bounds("0, 0", &[5], "2 dimensions, but the array has 1");
    out_of_bounds("0", &[], "the array has 0");
    let step = Selection::new([Axis::Range { start: None, stop: None, step: 0 }]).resolve(&[5]).unwrap_err();
    assert!(matches!(step, Error::InvalidArgument { .. }) && step.to_string().contains("axis 0"), "{step}");
    assert!(matches!(fails("..., ...", &[5, 5]), Error::InvalidArgument { .. }));

    let too_large = |selection: Selection, shape: &[u64]| {
        let error = selection.shape(shape).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    };
    too_large(Selection::all(), &[1; 33]);
    too_large(Selection::all(), &[MAX_LEN + 1]);
    too_large(Selection::all(), &[MAX_LEN, 2]);
    too_large(Selection::new([Axis::NewAxis]), &[1; 32]);
    too_large(Selection::from((.., vec![0, 0])), &[MAX_LEN, 1]);
    assert_eq!(Selection::all().shape(&[MAX_LEN, 2, 0]).unwrap(), [MAX_LEN, 2, 0]);
    assert_eq!(Selection::from(7).shape(&[1 << 40; 2]).unwrap(), [1 << 40]);
}

#[test]
fn conversions_from_rust() {
    let same = |selection: Selection, text: &str| assert_eq!(selection, text.parse().unwrap(), "{text}");
    same(Selection::all(), "");
    same(().into(), "");
    same(3.into(), "3");
    same(3_usize.into(), "3");
    same((-3_i64).into(), "-3");
    same((2..5).into(), "2:5");
    same((2..).into(), "2:");
    same((..5).into(), ":5");
    same((..).into(), ":");
    same((2..=5).into(), "2:6");
    let last = -1;
    same((2..=last).into(), "2:");
    same((2..last).into(), "2:-1");
    same((..=-1_i64).into(), ":");
    same((..=-2_i64).into(), ":-1");
    same((0..=i64::MAX).into(), "0:");
    same(vec![1, 2].into(), "[[1, 2]]");
    same([1_u64, 2].into(), "[[1, 2]]");
    same([1_i64, 2].as_slice().into(), "[[1, 2]]");
    same(Axis::NewAxis.into(), "None");
    same(vec![Axis::Ellipsis, Axis::Index(1)].into(), "..., 1");
    same(Selection::from((0..10, .., 5)), "0:10, :, 5");
    same(Selection::from((1,)), "1");
    same(Selection::from((1_usize..3, [1, 2])), "1:3, [1, 2]");
    same(Selection::from((1, 2, 3, Axis::Ellipsis)), "1, 2, 3, ...");
    same(Selection::from((1, 2, 3, 4, 5)), "1, 2, 3, 4, 5");
    same(Selection::from((1, 2, 3, 4, 5, ..)), "1, 2, 3, 4, 5, :");
    same(Selection::new([0..2, 1..3]), "0:2, 1:3");
    same(Selection::from(&Selection::from(1)), "1");
    // Too large for an index: outside every array, clipped in a range.
    assert!(Selection::from(u64::MAX).shape(&[MAX_LEN]).is_err());
    assert_eq!(Selection::from(2..u64::MAX).shape(&[MAX_LEN]).unwrap(), [MAX_LEN - 2]);
}

#[test]
fn reads_slice_syntax() {
    let same = |text: &str, other: &str| {
        assert_eq!(text.parse::<Selection>().unwrap(), other.parse().unwrap(), "{text} and {other}");
    };
    same("[10:20, ::-1, 5, ..., [1,2,5], None]", "10:20,::-1,5,...,[1,2,5],None");
    same("  [ 1 : 2 : 3 , [ 1 , ] , ]  ", "1:2:3,[1]");
    same("newaxis, np.newaxis", "None, None");
    same("[1], [2]", "[[1], [2]]");
    same("+1:+2", "1:2");
    same("1,", "1");
    same("1::", "1:");
    let axes = "[[1, -2]]".parse::<Selection>().unwrap();
    assert_eq!(axes.axes(), [Axis::List(vec![1, -2])]);
    let axes = "[1, -2]".parse::<Selection>().unwrap();
    assert_eq!(axes.axes(), [Axis::Index(1), Axis::Index(-2)]);
    let axes = "2::-3".parse::<Selection>().unwrap();
    assert_eq!(axes.axes(), [Axis::Range { start: Some(2), stop: None, step: -3 }]);
}

#[test]
fn says_where_the_syntax_is_wrong() {
    let fails = |text: &str, place: &str, about: &str| {
        let error = text.parse::<Selection>().expect_err(text).to_string();
        assert!(error.contains(place) && error.contains(about), "'{text}': {error}");
    };
    fails("10:20, x", "at character 8 ('x')", "expected an index");
    fails("é", "at character 1 ('é')", "expected an index");
    fails("1, é", "at character 4 ('é')", "expected an index");
    fails("1 2", "at character 3 ('2')", "expected ',' or the end");
    fails("1:2:3:4", "at character 6 (':')", "expected ','");
    fails("[1 2]", "at character 4 ('2')", "expected ',' or ']'");
    fails("[[1 2]]", "at character 5 ('2')", "expected ',' or ']'");
    fails("[[1, x]]", "at character 6 ('x')", "expected an index or ']'");
    fails("[1, 2", "at the end", "expected ',' or ']'");
    fails("[[1, 2]", "at the end", "expected ',' or ']'");
    fails("1]", "at character 2 (']')", "expected ',' or the end");
    fails("[]", "at character 2 (']')", "[[]]");
    fails("1,,2", "at character 3 (',')", "expected an index");
    fails(",", "at character 1 (',')", "expected an index");
    fails("[[1:2]]", "at character 4 (':')", "expected ',' or ']'");
    fails("::0", "at character 3 ('0')", "step is 0");
    fails("-", "at character 1 ('-')", "expected an index");
    fails("1:-", "at character 3 ('-')", "expected ','");
    fails("9223372036854775808", "at character 1", "64 bits");
    fails("1.5", "at character 2 ('.')", "expected ','");
}

/// The indices of a part with the output position of each.
fn items(part: Option<Part<'_>>) -> Vec<(u64, u64)> {
    match part {
        None => Vec::new(),
        Some(Part::List(part)) => part.to_vec(),
        Some(Part::Range { first, step, len, out }) => {
            let axis = AxisSelection::Range { start: first, step, len };
            expand(&axis).into_iter().zip(out..).collect()
        }
    }
}

#[test]
fn parts_at_the_limits_of_64_bits() {
    let resolve = |axis: Axis| Selection::from(axis).resolve(&[MAX_LEN]).unwrap().axes()[0].clone();
    let last = MAX_LEN - 1;

    let down = resolve(Axis::Range { start: None, stop: None, step: -1 });
    assert_eq!(down, AxisSelection::Range { start: last, step: -1, len: MAX_LEN });
    assert_eq!(down.within(0, 1), Some(Part::Range { first: 0, step: -1, len: 1, out: last }));
    assert_eq!(down.within(last, u64::MAX), Some(Part::Range { first: last, step: -1, len: 1, out: 0 }));
    assert!(down.covers(0, MAX_LEN) && !down.covers(0, MAX_LEN + 1));

    let two = resolve(Axis::Range { start: None, stop: None, step: i64::MAX - 1 });
    assert_eq!(two, AxisSelection::Range { start: 0, step: i64::MAX - 1, len: 2 });
    assert_eq!(two.touched(10).collect::<Vec<_>>(), [0, last / 10]);
    assert_eq!(two.touched(MAX_LEN).collect::<Vec<_>>(), [0]);
    assert_eq!(two.within(1, last), None);
    assert_eq!(items(two.within(1, MAX_LEN)), [(last, 1)]);

    let two = resolve(Axis::Range { start: None, stop: None, step: -i64::MAX + 1 });
    assert_eq!(items(two.within(0, 1)), [(0, 1)]);
    assert_eq!(items(two.within(1, u64::MAX)), [(last, 0)]);
    assert_eq!(two.touched(1).collect::<Vec<_>>(), [0, last]);

    let one = resolve(Axis::Range { start: None, stop: None, step: i64::MIN });
    assert_eq!(items(one.within(0, MAX_LEN)), [(last, 0)]);
    assert!(one.covers(last, MAX_LEN));

    let list = resolve(Axis::List(vec![-1, 0]));
    assert_eq!(list.touched(1 << 62).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(list.touched(u64::MAX).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_large_step_visits_no_chunk_in_vain() {
    // 2^23 items of 2^62: an iterator that went through the chunks would not come back.
    let axis = Selection::from(Axis::Range { start: Some(3), stop: None, step: 1 << 39 });
    let axis = axis.resolve(&[1 << 62]).unwrap().axes()[0].clone();
    assert_eq!(axis.touched(1).count(), 1 << 23);
    assert_eq!(axis.touched(1 << 38).nth(5), Some(10));
}

/// All of what is small, since a step that is one longer than a chunk is too rare in random tests.
#[test]
fn every_small_step_and_chunk() {
    for step in (-9..=9).filter(|step| *step != 0) {
        for (length, start) in (1..22u64).flat_map(|length| (0..3).map(move |start| (length, start))) {
            let start = if step < 0 { -1 - start } else { start };
            let expected = python_slice(length, Some(start), None, step);
            let found = resolve_one(Axis::Range { start: Some(start), stop: None, step }, length);
            for chunk in 1..9 {
                let mut chunks: Vec<u64> = expected.iter().map(|index| index / chunk).collect();
                chunks.sort_unstable();
                chunks.dedup();
                assert_eq!(found.touched(chunk).collect::<Vec<_>>(), chunks, "step {step}, chunk {chunk}");
                for lo in (0..length).step_by(usize::try_from(chunk).unwrap()) {
                    let inside: Vec<(u64, u64)> = expected
                        .iter()
                        .copied()
                        .zip(0..)
                        .filter(|(at, _)| (lo..lo + chunk).contains(at))
                        .collect();
                    assert_eq!(
                        items(found.within(lo, lo + chunk)),
                        inside,
                        "step {step}, {lo}, chunk {chunk}"
                    );
                    assert_eq!(found.covers(lo, lo + chunk), inside.len() as u64 == chunk);
                }
            }
        }
    }
}

/// A bound, sometimes absent or extreme.
fn any_bound() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![Just(None), (-30..30i64).prop_map(Some), any::<i64>().prop_map(Some)]
}

fn any_step() -> impl Strategy<Value = i64> {
    prop_oneof![1..9i64, -9..=-1i64, Just(1), Just(-1), any::<i64>().prop_filter("not 0", |step| *step != 0)]
}

fn any_range() -> impl Strategy<Value = Axis> {
    (any_bound(), any_bound(), any_step()).prop_map(|(start, stop, step)| Axis::Range { start, stop, step })
}

/// An entry that is right for a dimension of this length, and the indices that it selects.
fn any_axis(length: u64) -> impl Strategy<Value = (Axis, Vec<u64>)> {
    let range = any_range().prop_map(move |axis| {
        let Axis::Range { start, stop, step } = axis else { unreachable!() };
        let indices = python_slice(length, start, stop, step);
        (axis, indices)
    });
    let whole = Just((Axis::FULL, (0..length).collect()));
    if length == 0 {
        return prop_oneof![range, whole, Just((Axis::List(Vec::new()), Vec::new()))].boxed();
    }
    let signed = i64::try_from(length).unwrap();
    let position = move |index: i64| u64::try_from(index.rem_euclid(signed)).unwrap();
    let list = prop::collection::vec(-signed..signed, 0..30).prop_map(move |indices| {
        let expected = indices.iter().map(|&index| position(index)).collect();
        (Axis::List(indices), expected)
    });
    let index = (-signed..signed).prop_map(move |index| (Axis::Index(index), vec![position(index)]));
    prop_oneof![range, whole, list, index].boxed()
}

fn any_length_and_axis() -> impl Strategy<Value = (u64, (Axis, Vec<u64>))> {
    (0..25u64).prop_flat_map(|length| (Just(length), any_axis(length)))
}

fn resolve_one(axis: Axis, length: u64) -> AxisSelection {
    Selection::from(axis).resolve(&[length]).unwrap().axes()[0].clone()
}

proptest! {
    #[test]
    fn resolves_as_python_does((length, (axis, expected)) in any_length_and_axis()) {
        let found = resolve_one(axis, length);
        prop_assert_eq!(found.len(), expected.len() as u64);
        prop_assert_eq!(expand(&found), expected);
        if let AxisSelection::Range { step, len, .. } = found {
            prop_assert!(step != 0 && (len > 1 || step == 1));
        }
    }

    #[test]
    fn parts_match_brute_force(
        (length, (axis, expected)) in any_length_and_axis(),
        lo in 0..30u64,
        count in 0..30u64,
    ) {
        let found = resolve_one(axis, length);
        let hi = lo + count;
        let mut part = items(found.within(lo, hi));
        let inside = |index: &u64| (lo..hi).contains(index);
        let mut brute: Vec<(u64, u64)> = expected.iter().copied().zip(0..).filter(|(index, _)| inside(index)).collect();
        prop_assert_eq!(found.within(lo, hi).is_none(), brute.is_empty());
        part.sort_unstable();
        brute.sort_unstable();
        prop_assert_eq!(part, brute);
        prop_assert_eq!(found.covers(lo, hi), (lo..hi).all(|index| expected.contains(&index)));
    }

    #[test]
    fn touched_chunks_match_brute_force(
        (length, (axis, expected)) in any_length_and_axis(),
        chunk in 1..12u64,
    ) {
        let mut brute: Vec<u64> = expected.iter().map(|index| index / chunk).collect();
        brute.sort_unstable();
        brute.dedup();
        let found = resolve_one(axis, length);
        prop_assert_eq!(found.touched(chunk).collect::<Vec<_>>(), brute);
    }

    #[test]
    fn parts_of_the_touched_chunks_make_the_whole(
        (length, (axis, _)) in any_length_and_axis(),
        chunk in 1..12u64,
    ) {
        let found = resolve_one(axis, length);
        let mut outputs: Vec<u64> = Vec::new();
        for number in found.touched(chunk) {
            let part = items(found.within(number * chunk, (number + 1) * chunk));
            prop_assert!(!part.is_empty());
            outputs.extend(part.iter().map(|(_, out)| out));
        }
        outputs.sort_unstable();
        prop_assert_eq!(outputs, (0..found.len()).collect::<Vec<_>>());
    }

    #[test]
    fn several_dimensions_are_resolved_one_by_one(
        dimensions in prop::collection::vec(any_length_and_axis(), 0..5),
        new_axis in 0..6usize,
        spoken_of in 0..5usize,
    ) {
        let shape: Vec<u64> = dimensions.iter().map(|(length, _)| *length).collect();
        let spoken_of = spoken_of.min(shape.len());
        let mut axes: Vec<Axis> = dimensions[..spoken_of].iter().map(|(_, (axis, _))| axis.clone()).collect();
        let mut lengths: Vec<Option<u64>> = dimensions[..spoken_of]
            .iter()
            .map(|(_, (axis, expected))| (!matches!(axis, Axis::Index(_))).then_some(expected.len() as u64))
            .collect();
        lengths.extend(shape[spoken_of..].iter().map(|&length| Some(length)));
        let new_axis = new_axis.min(axes.len());
        axes.insert(new_axis, Axis::NewAxis);
        lengths.insert(new_axis, Some(1));
        let lengths: Vec<u64> = lengths.into_iter().flatten().collect();

        let found = Selection::new(axes).resolve(&shape).unwrap();
        prop_assert_eq!(found.len(), lengths.iter().product::<u64>());
        prop_assert_eq!(found.out_shape(), lengths);
        for (axis, (length, (_, expected))) in found.axes().iter().zip(&dimensions).take(spoken_of) {
            prop_assert_eq!(expand(axis), expected.clone(), "length {}", length);
        }
        for (axis, length) in found.axes().iter().zip(&shape).skip(spoken_of) {
            prop_assert_eq!(expand(axis), (0..*length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_text_and_no_shape_panics(
        text in "[\\[\\]:,.0-9\\- Nonewaxsé]{0,30}",
        shape in prop::collection::vec(any::<u64>(), 0..4),
    ) {
        if let Ok(selection) = text.parse::<Selection>() {
            let _ = selection.shape(&shape);
        }
    }
}
