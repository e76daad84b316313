//! Text for people: sizes, shapes, names and tables.

use brickmap::{Codec, Dtype, Profile};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

/// A size in the decimal units that disks are sold in.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1e3;
    let mut unit = 0;
    // What would be rounded to 1000 of a unit is 1 of the next.
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1e3;
        unit += 1;
    }
    let decimals = if size < 9.995 { 2 } else { usize::from(size < 99.95) };
    format!("{size:.decimals$} {}", UNITS[unit])
}

/// How fast `count` bytes went by.
pub(crate) fn rate(count: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds == 0.0 { "-".into() } else { format!("{}/s", bytes((count as f64 / seconds) as u64)) }
}

/// A time with three digits.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        ..0.9995e-3 => (seconds * 1e6, "us"),
        ..0.9995 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

/// How many times smaller `stored` is than `items`; `-` where nothing is stored.
pub(crate) fn ratio(items: u64, stored: u64) -> String {
    if stored == 0 { "-".into() } else { format!("{:.2}x", items as f64 / stored as f64) }
}

/// `1 array`, `2 arrays`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A shape as Python prints it.
pub(crate) fn shape(shape: &[u64]) -> String {
    match shape {
        [len] => format!("({len},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A name from a file, without characters that would move the cursor or colour the screen.
pub(crate) fn name(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() { safe.extend(character.escape_default()) } else { safe.push(character) }
    }
    safe
}

/// The name of a dtype as NumPy users say it: `float32` for `<f4`. Others are printed as they are.
pub(crate) fn dtype(dtype: &Dtype) -> String {
    let known = match dtype {
        Dtype::Bool => "bool",
        Dtype::I8 => "int8",
        Dtype::I16 => "int16",
        Dtype::I32 => "int32",
        Dtype::I64 => "int64",
        Dtype::U8 => "uint8",
        Dtype::U16 => "uint16",
        Dtype::U32 => "uint32",
        Dtype::U64 => "uint64",
        Dtype::F16 => "float16",
        Dtype::F32 => "float32",
        Dtype::F64 => "float64",
        Dtype::Complex64 => "complex64",
        Dtype::Complex128 => "complex128",
        _ => return name(&dtype.to_string()),
    };
    known.to_owned()
}

fn profile(profile: Profile) -> &'static str {
    match profile {
        Profile::Fast => "fast",
        Profile::Small => "small",
        _ => "balanced",
    }
}

/// A codec as the options of `convert` name it.
pub(crate) fn codec(codec: Codec) -> String {
    match codec {
        Codec::Auto { profile: it, level } => format!("auto, {} profile, level {level}", profile(it)),
        Codec::Raw => "raw".into(),
        Codec::Zstd { level } => format!("zstd, level {level}"),
        Codec::Planes { level } => format!("planes, level {level}"),
        Codec::Delta { stride, level } => format!("delta:{stride}, level {level}"),
        _ => "of a later version".into(),
    }
}

/// A codec for programs.
pub(crate) fn codec_json(codec: Codec) -> Value {
    match codec {
        Codec::Auto { profile: it, level } => json!({"name": "auto", "profile": profile(it), "level": level}),
        Codec::Raw => json!({"name": "raw"}),
        Codec::Zstd { level } => json!({"name": "zstd", "level": level}),
        Codec::Planes { level } => json!({"name": "planes", "level": level}),
        Codec::Delta { stride, level } => json!({"name": "delta", "stride": stride, "level": level}),
        _ => Value::Null,
    }
}

/// To which side the cells of a column are pushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Writes rows with columns as wide as their widest cell, two spaces apart.
pub(crate) fn table(out: &mut dyn Write, columns: &[Align], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max();
    let widths: Vec<usize> = (0..columns.len()).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for ((cell, &width), align) in row.iter().zip(&widths).zip(columns) {
            match align {
                Align::Left => line.push_str(&format!("{cell:<width$}  ")),
                Align::Right => line.push_str(&format!("{cell:>width$}  ")),
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let texts = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (99_940, "99.9 kB"),
            (99_960, "100 kB"),
            (999_600, "1.00 MB"),
            (314_572_800, "315 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (count, text) in texts {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in
            [(1_234, "1.23 us"), (999_600, "1.00 ms"), (85_000_000, "85.0 ms"), (2_000_000_000, "2.00 s")]
        {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn control_characters_of_names_are_escaped() {
        assert_eq!(name("a\u{1b}[31mé"), "a\\u{1b}[31mé");
    }
}
