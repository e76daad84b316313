//! Floats as NumPy prints them: the shortest digits that mean the same number, up to 8 behind the point, in one notation
//! and one width for all numbers of an array.

/// Digits behind the point, at most.
const PRECISION: usize = 8;

/// The double whose shortest digits are those of `value` as a single.
pub(super) fn of_f32(value: f32) -> f64 {
    reparsed(&format!("{value:e}")).unwrap_or(f64::from(value))
}

/// The double whose shortest digits are those of `value` as a half.
pub(super) fn of_f16(value: half::f16) -> f64 {
    let single = value.to_f32();
    let shortest = (0..5).map(|digits| format!("{single:.digits$e}"));
    let mut exact =
        shortest.filter_map(|text| reparsed(&text)).filter(|&double| half::f16::from_f64(double) == value);
    exact.next().unwrap_or(f64::from(single))
}

fn reparsed(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// The numbers as text, all of one width. With `signed`, a plus stands before positive ones.
pub(super) fn texts(values: &[f64], signed: bool) -> Vec<String> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let magnitudes = || finite().map(f64::abs).filter(|&value| value != 0.0);
    let largest = magnitudes().fold(0.0, f64::max);
    let smallest = magnitudes().fold(f64::INFINITY, f64::min);
    let exponents = largest >= 1e8 || smallest < 1e-4 || (largest > 0.0 && largest / smallest > 1000.0);
    let plus = |value: f64| if signed && value.is_sign_positive() { "+" } else { "" };
    // Integer and fractional part of each number, and its exponent.
    let parts: Vec<Option<(String, String, String)>> = values
        .iter()
        .map(|&value| {
            value.is_finite().then(|| if exponents { scientific(value) } else { positional(value) })
        })
        .map(|parts| {
            parts.map(|(int, fraction, exponent)| (int, fraction.trim_end_matches('0').to_owned(), exponent))
        })
        .collect();
    let present = || parts.iter().flatten();
    let left =
        present().zip(finite()).map(|((int, ..), value)| int.len() + plus(value).len()).max().unwrap_or(0);
    let right = present().map(|(_, fraction, _)| fraction.len()).max().unwrap_or(0);
    // Behind the letter and the sign.
    let digits =
        present().map(|(.., exponent)| exponent.trim_start_matches('-').len()).max().unwrap_or(0).max(2);
    let exponent_width = if exponents { 2 + digits } else { 0 };
    let others =
        values.iter().copied().filter(|value| !value.is_finite()).map(|value| special(value, signed).len());
    let width = others.max().unwrap_or(0).max(if present().next().is_none() {
        0
    } else {
        left + 1 + right + exponent_width
    });
    let text = |(value, parts): (&f64, &Option<(String, String, String)>)| match parts {
        None => format!("{:>width$}", special(*value, signed)),
        Some((int, fraction, exponent)) => {
            let int = format!("{}{int}", plus(*value));
            let text = if exponents {
                let (sign, number) =
                    exponent.strip_prefix('-').map_or(('+', &exponent[..]), |number| ('-', number));
                format!("{int}.{fraction:0<right$}e{sign}{number:0>digits$}")
            } else {
                format!("{int}.{fraction:<right$}")
            };
            format!("{text:>width$}")
        }
    };
    values.iter().zip(&parts).map(text).collect()
}

fn special(value: f64, signed: bool) -> &'static str {
    match (value.is_nan(), value > 0.0) {
        (true, _) if signed => "+nan",
        (true, _) => "nan",
        (false, true) if signed => "+inf",
        (false, true) => "inf",
        (false, false) => "-inf",
    }
}

fn positional(value: f64) -> (String, String, String) {
    let mut text = format!("{value}");
    if text.split_once('.').is_some_and(|(_, fraction)| fraction.len() > PRECISION) {
        text = format!("{value:.PRECISION$}");
    }
    let (int, fraction) = text.split_once('.').unwrap_or((&text, ""));
    (int.to_owned(), fraction.to_owned(), String::new())
}

fn scientific(value: f64) -> (String, String, String) {
    let mut text = format!("{value:e}");
    if text.split_once('.').is_some_and(|(_, rest)| rest.find('e').is_some_and(|digits| digits > PRECISION)) {
        text = format!("{value:.PRECISION$e}");
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (int, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    (int.to_owned(), fraction.to_owned(), exponent.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_numpy() {
        let cases: [(&[f64], &str); 9] = [
            (&[1.0, 2.5, 3.25], "[1.   2.5  3.25]"),
            (&[1.0, -2.5, 100.0], "[  1.   -2.5 100. ]"),
            (&[1.0, 1e9], "[1.e+00 1.e+09]"),
            (&[1.5, 1e9], "[1.5e+00 1.0e+09]"),
            (&[1.0, f64::NAN, f64::NEG_INFINITY], "[  1.  nan -inf]"),
            (&[f64::NAN, f64::INFINITY], "[nan inf]"),
            (&[0.0, -0.0], "[ 0. -0.]"),
            (&[1.0 / 3.0, 0.5], "[0.33333333 0.5       ]"),
            (&[1e-5, 1e-300], "[1.e-005 1.e-300]"),
        ];
        for (values, text) in cases {
            assert_eq!(format!("[{}]", texts(values, false).join(" ")), text);
        }
    }

    #[test]
    fn short_floats_have_few_digits() {
        assert_eq!(of_f32(0.1), 0.1);
        assert_eq!(of_f16(half::f16::from_f32(0.1)), 0.1);
        assert_eq!(of_f16(half::f16::MAX), 65500.0);
        assert!(of_f16(half::f16::NAN).is_nan());
    }
}
