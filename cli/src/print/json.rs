//! Items as JSON.
//!
//! Numbers are numbers, except that JSON has none for NaN and the infinities: they are the strings `NaN`, `Infinity` and
//! `-Infinity`. Complex numbers are pairs, dates ISO 8601, structures objects. Strings that are not UTF-8 and opaque
//! bytes are written with Python's escapes.

use super::float::Real;
use super::item::{Field, Item};
use super::text::{opaque, quoted_bytes, trimmed, unicode};
use super::time;
use brickmap::Dtype;
use std::io::{self, Write};

/// Writes values in nested brackets. `write` is called for each of them in C order.
pub(crate) fn nested(
    out: &mut dyn Write,
    shape: &[u64],
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let Some((&len, inner)) = shape.split_first() else { return write(out) };
    out.write_all(b"[")?;
    for n in 0..len {
        if n > 0 {
            out.write_all(b", ")?;
        }
        nested(out, inner, write)?;
    }
    out.write_all(b"]")
}

/// Writes one item.
pub(crate) fn write_item(out: &mut dyn Write, item: &Item, bytes: &[u8]) -> io::Result<()> {
    match item {
        Item::Plain(dtype, order) => plain(out, dtype, &Item::in_order(dtype, *order, bytes)),
        Item::Fields(fields, _) => {
            out.write_all(b"{")?;
            for (n, field) in fields.iter().enumerate() {
                if n > 0 {
                    out.write_all(b", ")?;
                }
                string(out, &field.name)?;
                out.write_all(b": ")?;
                write_field(out, field, field.of(bytes))?;
            }
            out.write_all(b"}")
        }
    }
}

fn write_field(out: &mut dyn Write, field: &Field, bytes: &[u8]) -> io::Result<()> {
    let mut items = bytes.chunks_exact(field.item.size());
    nested(out, &field.shape, &mut |out| write_item(out, &field.item, items.next().unwrap_or_default()))
}

fn string(out: &mut dyn Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}

/// The number of little-endian `bytes`.
macro_rules! number {
    ($bytes:expr, $type:ty) => {
        $bytes.try_into().map(<$type>::from_le_bytes).unwrap_or_default()
    };
}

fn plain(out: &mut dyn Write, dtype: &Dtype, bytes: &[u8]) -> io::Result<()> {
    match dtype {
        Dtype::Bool => write!(out, "{}", bytes != [0]),
        Dtype::I8 => write!(out, "{}", number!(bytes, i8)),
        Dtype::I16 => write!(out, "{}", number!(bytes, i16)),
        Dtype::I32 => write!(out, "{}", number!(bytes, i32)),
        Dtype::I64 => write!(out, "{}", number!(bytes, i64)),
        Dtype::U8 => write!(out, "{}", number!(bytes, u8)),
        Dtype::U16 => write!(out, "{}", number!(bytes, u16)),
        Dtype::U32 => write!(out, "{}", number!(bytes, u32)),
        Dtype::U64 => write!(out, "{}", number!(bytes, u64)),
        Dtype::F16 => real(out, number!(bytes, half::f16)),
        Dtype::F32 => real(out, number!(bytes, f32)),
        Dtype::F64 => real(out, number!(bytes, f64)),
        Dtype::Complex64 => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            pair(out, number!(re, f32), number!(im, f32))
        }
        Dtype::Complex128 => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            pair(out, number!(re, f64), number!(im, f64))
        }
        Dtype::Datetime64(unit) => {
            let count = number!(bytes, i64);
            match time::date(count, *unit) {
                Some(date) => string(out, &date),
                None => write!(out, "{count}"),
            }
        }
        Dtype::Timedelta64(_) => match number!(bytes, i64) {
            i64::MIN => string(out, "NaT"),
            count => write!(out, "{count}"),
        },
        Dtype::Bytes(_) => match std::str::from_utf8(trimmed(bytes)) {
            Ok(text) => string(out, text),
            Err(_) => escaped(out, trimmed(bytes)),
        },
        Dtype::Unicode(_) => string(out, &unicode(bytes)),
        _ => string(out, &opaque(bytes)),
    }
}

/// Bytes with Python's escapes, without its quotes.
fn escaped(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let text = quoted_bytes(bytes);
    string(out, text.get(1..text.len() - 1).unwrap_or_default())
}

fn real(out: &mut dyn Write, value: impl Into<Real>) -> io::Result<()> {
    let value = value.into().shortest;
    match value {
        // The shortest digits, with an exponent where there would be many zeros: JSON's notation too.
        _ if value.is_finite() => write!(out, "{value:?}"),
        _ if value.is_nan() => string(out, "NaN"),
        _ => string(out, if value > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

fn pair<T: Into<Real>>(out: &mut dyn Write, re: T, im: T) -> io::Result<()> {
    out.write_all(b"[")?;
    real(out, re)?;
    out.write_all(b", ")?;
    real(out, im)?;
    out.write_all(b"]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickmap::VoidType;

    fn json(dtype: &str, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_item(&mut out, &Item::of(&Dtype::parse(dtype).unwrap()), bytes).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn items_are_json() {
        assert_eq!(json("<f4", &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(json("<f8", &1e300f64.to_le_bytes()), "1e300");
        assert_eq!(json("<f8", &(-f64::INFINITY).to_le_bytes()), "\"-Infinity\"");
        assert_eq!(json("<c8", &[1.0f32, f32::NAN].map(f32::to_le_bytes).concat()), "[1.0, \"NaN\"]");
        assert_eq!(json("|b1", &[1]), "true");
        assert_eq!(json("|S3", b"a\"\0"), "\"a\\\"\"");
        assert_eq!(json("|V2", &[1, 65]), "\"\\\\x01\\\\x41\"");
        assert_eq!(json("<M8[D]", &18_262i64.to_le_bytes()), "\"2020-01-01\"");
    }

    #[test]
    fn structures_are_objects() {
        let dtype = Dtype::Void(VoidType::structured("[('a', '|u1'), ('b', '>i2', (1, 2))]").unwrap());
        let mut out = Vec::new();
        write_item(&mut out, &Item::of(&dtype), &[7, 0, 2, 1, 0]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a": 7, "b": [[2, 256]]}"#);
    }
}
