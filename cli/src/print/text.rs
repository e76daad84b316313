//! Items as words of text, as NumPy prints them.

use super::float::{self, Real};
use super::item::Item;
use super::time;
use brickmap::Dtype;

/// Items as text, padded to one width where NumPy does that.
pub(crate) fn texts(item: &Item, bytes: &[u8]) -> Vec<String> {
    match item {
        Item::Fields(fields, size) => {
            let mut columns: Vec<Vec<String>> = Vec::new();
            for field in fields {
                let of_field: Vec<u8> =
                    bytes.chunks_exact(*size).flat_map(|it| field.of(it)).copied().collect();
                let texts = texts(&field.item, &of_field);
                columns.push(texts.chunks(field.count).map(|texts| subarray(texts, &field.shape)).collect());
            }
            let rows = 0..bytes.len() / size;
            rows.map(|row| tuple(columns.iter().filter_map(|column| column.get(row)))).collect()
        }
        Item::Plain(dtype, order) => {
            let items = bytes.chunks_exact(dtype.itemsize()).map(|item| Item::in_order(dtype, *order, item));
            plain(dtype, &items.collect::<Vec<_>>())
        }
    }
}

/// A field that is an array, in brackets.
fn subarray(texts: &[String], shape: &[u64]) -> String {
    let Some((&len, inner)) = shape.split_first() else { return texts.concat() };
    let each = texts.len() / usize::try_from(len).unwrap_or(usize::MAX).max(1);
    let parts: Vec<String> = texts.chunks(each.max(1)).map(|texts| subarray(texts, inner)).collect();
    format!("[{}]", parts.join(", "))
}

fn tuple<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    let parts: Vec<&str> = parts.map(String::as_str).collect();
    if parts.len() == 1 { format!("({},)", parts[0]) } else { format!("({})", parts.join(", ")) }
}

type Bytes<'a> = std::borrow::Cow<'a, [u8]>;

/// The numbers of the little-endian `items`.
macro_rules! numbers {
    ($items:expr, $type:ty) => {
        $items.iter().filter_map(|item| item.as_ref().try_into().ok().map(<$type>::from_le_bytes))
    };
}

fn plain(dtype: &Dtype, items: &[Bytes<'_>]) -> Vec<String> {
    match dtype {
        Dtype::Bool => aligned(items.iter().map(|item| if **item == [0] { "False" } else { "True" })),
        Dtype::I8 => aligned(numbers!(items, i8)),
        Dtype::I16 => aligned(numbers!(items, i16)),
        Dtype::I32 => aligned(numbers!(items, i32)),
        Dtype::I64 => aligned(numbers!(items, i64)),
        Dtype::U8 => aligned(numbers!(items, u8)),
        Dtype::U16 => aligned(numbers!(items, u16)),
        Dtype::U32 => aligned(numbers!(items, u32)),
        Dtype::U64 => aligned(numbers!(items, u64)),
        Dtype::F16 => real(numbers!(items, half::f16)),
        Dtype::F32 => real(numbers!(items, f32)),
        Dtype::F64 => real(numbers!(items, f64)),
        Dtype::Complex64 => {
            let part = |at: usize| items.iter().filter_map(move |item| item.get(at..at + 4)?.try_into().ok());
            let parts = |at| part(at).map(|part| f32::from_le_bytes(part).into()).collect();
            complex(parts(0), parts(4))
        }
        Dtype::Complex128 => {
            let part = |at: usize| items.iter().filter_map(move |item| item.get(at..at + 8)?.try_into().ok());
            let parts = |at| part(at).map(|part| f64::from_le_bytes(part).into()).collect();
            complex(parts(0), parts(8))
        }
        Dtype::Datetime64(unit) => {
            let date = |count: i64| time::date(count, *unit).unwrap_or_else(|| count.to_string());
            aligned(numbers!(items, i64).map(|count| format!("'{}'", date(count))))
        }
        Dtype::Timedelta64(_) => aligned(numbers!(items, i64).map(|count| match count {
            i64::MIN => "'NaT'".to_owned(),
            count => count.to_string(),
        })),
        Dtype::Bytes(_) => items.iter().map(|item| format!("b{}", quoted_bytes(trimmed(item)))).collect(),
        Dtype::Unicode(_) => items.iter().map(|item| quoted(&unicode(item))).collect(),
        _ => items.iter().map(|item| format!("b'{}'", opaque(item))).collect(),
    }
}

fn aligned(words: impl Iterator<Item = impl ToString>) -> Vec<String> {
    let words: Vec<String> = words.map(|word| word.to_string()).collect();
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

fn real(values: impl Iterator<Item = impl Into<Real>>) -> Vec<String> {
    float::texts(&values.map(Into::into).collect::<Vec<Real>>(), false)
}

fn complex(real: Vec<Real>, imaginary: Vec<Real>) -> Vec<String> {
    let pairs = float::texts(&real, false).into_iter().zip(float::texts(&imaginary, true));
    pairs
        .map(|(real, imaginary)| {
            let digits = imaginary.trim_end();
            format!("{real}{digits}j{}", " ".repeat(imaginary.len() - digits.len()))
        })
        .collect()
}

/// A string without the zeros that fill it up.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.get(..len).unwrap_or_default()
}

/// The text of a string of UCS-4 characters. What is no character is shown as the replacement character.
pub(super) fn unicode(bytes: &[u8]) -> String {
    let codes = bytes.as_chunks::<4>().0.iter().map(|&code| u32::from_le_bytes(code));
    let text: String =
        codes.map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.trim_end_matches('\0').to_owned()
}

/// A string in quotes as Python prints it.
pub(crate) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if character.is_control() && u32::from(character) < 0x100 => {
                out.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push(quote);
    out
}

/// Bytes in quotes as Python prints them, without its `b`.
pub(super) fn quoted_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    let mut out = String::from(char::from(quote));
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'\\' => out.push_str("\\\\"),
            _ if byte == quote => out.extend(['\\', char::from(quote)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(char::from(quote));
    out
}

/// Bytes that are not text, each as an escape.
pub(super) fn opaque(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickmap::VoidType;

    fn shown(dtype: &str, bytes: &[u8]) -> String {
        texts(&Item::of(&Dtype::parse(dtype).unwrap()), bytes).join(" ")
    }

    #[test]
    fn items_look_as_in_numpy() {
        assert_eq!(shown("bool", &[0, 1, 2]), "False  True  True");
        assert_eq!(shown("<i2", &[0xff, 0xff, 10, 0]), "-1 10");
        assert_eq!(shown("|S3", b"ab\0a'\xff"), r#"b'ab' b"a'\xff""#);
        assert_eq!(shown("<U2", &[0xe9, 0, 0, 0, 0, 0, 0, 0]), "'é'");
        assert_eq!(shown("<M8[D]", &18_262i64.to_le_bytes()), "'2020-01-01'");
        assert_eq!(shown("<m8[s]", &[5i64.to_le_bytes(), i64::MIN.to_le_bytes()].concat()), "    5 'NaT'");
        let complex = [1.0f32, 2.0, 3.0, -0.5].map(f32::to_le_bytes).concat();
        assert_eq!(shown("<c8", &complex), "1.+2.j  3.-0.5j");
        assert_eq!(shown("|V2", &[1, 65]), r"b'\x01\x41'");
    }

    #[test]
    fn structures_are_tuples() {
        let descr = "[('a', '|u1'), ('b', '>i2', (2,)), ('c', [('d', '|S1')])]";
        let dtype = Dtype::Void(VoidType::structured(descr).unwrap());
        let bytes = [1, 0, 2, 0, 3, b'x', 10, 0, 4, 1, 0, b'y'];
        assert_eq!(
            texts(&Item::of(&dtype), &bytes),
            ["( 1, [  2,   3], (b'x',))", "(10, [  4, 256], (b'y',))"]
        );
    }
}
