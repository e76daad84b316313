//! Floats as NumPy prints them: the shortest digits that mean the same number, up to 8 behind the point, in one notation
//! and one width for all numbers of an array.

/// Digits behind the point, at most.
const PRECISION: usize = 8;

/// A number, whatever the precision that it was stored in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Real {
    /// The value.
    exact: f64,
    /// The double whose shortest digits are those of the value in its own precision.
    pub(super) shortest: f64,
}

impl From<f64> for Real {
    fn from(value: f64) -> Real {
        Real { exact: value, shortest: value }
    }
}

impl From<f32> for Real {
    fn from(value: f32) -> Real {
        let exact = f64::from(value);
        Real { exact, shortest: reparsed(&format!("{value:e}")).unwrap_or(exact) }
    }
}

impl From<half::f16> for Real {
    fn from(value: half::f16) -> Real {
        let exact = value.to_f64();
        let short = (0..5).map(|digits| format!("{exact:.digits$e}"));
        let mut same =
            short.filter_map(|text| reparsed(&text)).filter(|&double| half::f16::from_f64(double) == value);
        Real { exact, shortest: same.next().unwrap_or(exact) }
    }
}

fn reparsed(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// The numbers as text, all of one width. With `signed`, a plus stands before positive ones.
pub(super) fn texts(values: &[Real], signed: bool) -> Vec<String> {
    let finite: Vec<Real> = values.iter().copied().filter(|value| value.exact.is_finite()).collect();
    let magnitudes = || finite.iter().map(|value| value.exact.abs()).filter(|&value| value != 0.0);
    let largest = magnitudes().fold(0.0, f64::max);
    let smallest = magnitudes().fold(f64::INFINITY, f64::min);
    let with_exponents = largest >= 1e8 || smallest < 1e-4 || (largest > 0.0 && largest / smallest > 1000.0);
    let mut numbers = if with_exponents { scientific(&finite) } else { positional(&finite) }.into_iter();
    let words: Vec<String> = values
        .iter()
        .map(|value| {
            let word = if value.exact.is_finite() { numbers.next() } else { None };
            let word = word.unwrap_or_else(|| special(value.exact).to_owned());
            if signed && !word.starts_with('-') { format!("+{word}") } else { word }
        })
        .collect();
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

fn special(value: f64) -> &'static str {
    match (value.is_nan(), value > 0.0) {
        (true, _) => "nan",
        (false, true) => "inf",
        (false, false) => "-inf",
    }
}

/// Numbers without exponents. Their points stand below each other once they are pushed to the right.
fn positional(values: &[Real]) -> Vec<String> {
    let split = |value: &Real| {
        let mut text = format!("{}", value.shortest);
        if text.split_once('.').is_some_and(|(_, fraction)| fraction.len() > PRECISION) {
            text = format!("{:.PRECISION$}", value.exact);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        (whole.to_owned(), fraction.trim_end_matches('0').to_owned())
    };
    let parts: Vec<(String, String)> = values.iter().map(split).collect();
    let digits = parts.iter().map(|(_, fraction)| fraction.len()).max().unwrap_or(0);
    parts.into_iter().map(|(whole, fraction)| format!("{whole}.{fraction:<digits$}")).collect()
}

/// Numbers with exponents, all with as many digits as one of them needs.
fn scientific(values: &[Real]) -> Vec<String> {
    let needed = |value: &Real| {
        let digits = |text: String| {
            text.split_once('e').map_or(0, |(mantissa, _)| {
                mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len())
            })
        };
        match digits(format!("{:e}", value.shortest)) {
            digits @ 0..=PRECISION => digits,
            _ => digits(format!("{:.PRECISION$e}", value.exact)),
        }
    };
    let digits = values.iter().map(needed).max().unwrap_or(0);
    let split = |value: &Real| {
        let text = format!("{:.digits$e}", value.exact);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        let point = if digits == 0 { "." } else { "" };
        (format!("{mantissa}{point}e{sign}"), exponent.to_owned())
    };
    let parts: Vec<(String, String)> = values.iter().map(split).collect();
    let width = parts.iter().map(|(_, exponent)| exponent.len()).max().unwrap_or(0).max(2);
    parts.into_iter().map(|(mantissa, exponent)| format!("{mantissa}{exponent:0>width$}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: Copy + Into<Real>>(values: &[T]) -> String {
        let values: Vec<Real> = values.iter().map(|&value| value.into()).collect();
        format!("[{}]", texts(&values, false).join(" "))
    }

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
            assert_eq!(shown(values), text);
        }
        assert_eq!(shown(&[0.1f32, 1.234_567_9e-5]), "[1.0000000e-01 1.2345679e-05]");
        assert_eq!(shown(&[0.640_422_65_f32, 1.234_567_8e3]), "[6.4042264e-01 1.2345677e+03]");
    }

    #[test]
    fn numbers_of_low_precision_have_few_digits() {
        assert_eq!(shown(&[0.1f32]), "[0.1]");
        assert_eq!(shown(&[0.1, 65504.0].map(half::f16::from_f64)), "[1.00e-01 6.55e+04]");
        assert_eq!(shown(&[half::f16::MAX]), "[65500.]");
        assert_eq!(shown(&[half::f16::NAN]), "[nan]");
    }
}
