//! NumPy's notation for dtypes: `<f4`, `|S5`, `<M8[25us]`, and names such as `float32`.

use std::str::FromStr;

use super::{ByteOrder, Dtype, TimeBase, TimeUnit, VoidType};
use crate::error::{Error, Result};

impl Dtype {
    /// Reads NumPy's notation: `<f4`, `|b1`, `<M8[ns]`, `|S5`, `<U7`, `|V12`, a structured description
    /// (`[('a', '<f4'), ('b', '>i2', (3,))]`), or a name (`bool`, `int64`, `float32`, `complex64`,
    /// `datetime64[ns]`, ...).
    ///
    /// As in NumPy the number counts bytes: `u8` is an unsigned integer of 64 bits. No byte order, `=` and `|` mean
    /// little-endian, which is what the library holds.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a text that is no dtype, for items without bytes and for big-endian types:
    /// importers use [`parse_with_order`](Self::parse_with_order) and convert. [`Error::Unsupported`] for what NumPy
    /// knows but a store cannot hold (long double, Python objects). [`Error::TooLarge`] for items of more than
    /// [`MAX_ITEMSIZE`](super::MAX_ITEMSIZE) bytes.
    pub fn parse(text: &str) -> Result<Dtype> {
        match Self::parse_with_order(text)? {
            (dtype, ByteOrder::Little) => Ok(dtype),
            (dtype, ByteOrder::Big) => Err(Error::invalid(format!(
                "dtype '{text}' is big-endian; convert the data to '{dtype}' (in NumPy: array.astype('{dtype}'))"
            ))),
        }
    }

    /// Reads NumPy's notation as [`parse`](Self::parse) does, and says in which byte order the data is. Turn
    /// big-endian data into little-endian with [`swap_bytes`](Self::swap_bytes).
    ///
    /// Types of single bytes are always [`ByteOrder::Little`]. So are structures: each field keeps its own order.
    ///
    /// ```
    /// use brickmap::{ByteOrder, Dtype};
    ///
    /// assert_eq!(Dtype::parse_with_order(">f4")?, (Dtype::F32, ByteOrder::Big));
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse), except for big-endian types.
    pub fn parse_with_order(text: &str) -> Result<(Dtype, ByteOrder)> {
        if text.trim_start().starts_with('[') {
            return Ok((Dtype::Void(VoidType::structured(text)?), ByteOrder::Little));
        }
        let (dtype, order) = parse_scalar(text.trim())?;
        dtype.check()?;
        Ok((dtype, order))
    }
}

impl FromStr for Dtype {
    type Err = Error;

    /// The same as [`Dtype::parse`].
    fn from_str(text: &str) -> Result<Dtype> {
        Dtype::parse(text)
    }
}

/// Reads one unstructured type. The item size is not checked, since a field of a structure may have no bytes.
pub(super) fn parse_scalar(text: &str) -> Result<(Dtype, ByteOrder)> {
    if let Some(dtype) = parse_name(text)? {
        return Ok((dtype, ByteOrder::Little));
    }
    let (big, code) = match text.as_bytes().first() {
        Some(b'>') => (true, &text[1..]),
        Some(b'<' | b'=' | b'|') => (false, &text[1..]),
        _ => (false, text),
    };
    let dtype = parse_code(code, text)?;
    // Decided from the words inside, not from `swap_bytes`: opaque bytes have no order either.
    let ordered = dtype.component_size() > 1 && !matches!(dtype, Dtype::Void(_));
    Ok((dtype, if big && ordered { ByteOrder::Big } else { ByteOrder::Little }))
}

fn parse_name(text: &str) -> Result<Option<Dtype>> {
    let dtype = match text {
        "bool" => Dtype::Bool,
        "int8" => Dtype::I8,
        "int16" => Dtype::I16,
        "int32" => Dtype::I32,
        "int64" => Dtype::I64,
        "uint8" => Dtype::U8,
        "uint16" => Dtype::U16,
        "uint32" => Dtype::U32,
        "uint64" => Dtype::U64,
        "float16" => Dtype::F16,
        "float32" => Dtype::F32,
        "float64" => Dtype::F64,
        "complex64" => Dtype::Complex64,
        "complex128" => Dtype::Complex128,
        _ => {
            if let Some(unit) = text.strip_prefix("datetime64") {
                return Ok(Some(Dtype::Datetime64(parse_unit(unit, text)?)));
            }
            if let Some(unit) = text.strip_prefix("timedelta64") {
                return Ok(Some(Dtype::Timedelta64(parse_unit(unit, text)?)));
            }
            return Ok(None);
        }
    };
    Ok(Some(dtype))
}

/// Reads a type without its byte order; `text` is the whole, for messages.
fn parse_code(code: &str, text: &str) -> Result<Dtype> {
    let dtype = match code {
        "b1" => Dtype::Bool,
        "i1" => Dtype::I8,
        "i2" => Dtype::I16,
        "i4" => Dtype::I32,
        "i8" => Dtype::I64,
        "u1" => Dtype::U8,
        "u2" => Dtype::U16,
        "u4" => Dtype::U32,
        "u8" => Dtype::U64,
        "f2" => Dtype::F16,
        "f4" => Dtype::F32,
        "f8" => Dtype::F64,
        "c8" => Dtype::Complex64,
        "c16" => Dtype::Complex128,
        "f12" | "f16" | "c24" | "c32" => {
            return Err(Error::Unsupported {
                what: format!("dtype '{text}': long double differs between machines; convert to float64"),
            });
        }
        "O" | "O4" | "O8" => {
            return Err(Error::Unsupported {
                what: format!("dtype '{text}': Python objects; convert to a fixed type"),
            });
        }
        _ => {
            if let Some(unit) = code.strip_prefix("M8") {
                Dtype::Datetime64(parse_unit(unit, text)?)
            } else if let Some(unit) = code.strip_prefix("m8") {
                Dtype::Timedelta64(parse_unit(unit, text)?)
            } else if let Some(n) = code.strip_prefix('S') {
                Dtype::Bytes(parse_size(n, text)?)
            } else if let Some(n) = code.strip_prefix('U') {
                Dtype::Unicode(parse_size(n, text)?)
            } else if let Some(n) = code.strip_prefix('V') {
                Dtype::Void(VoidType { size: parse_size(n, text)?, descr: None })
            } else {
                return Err(unknown(text, "expected NumPy's notation such as '<f4', '|S5' or 'float32'"));
            }
        }
    };
    Ok(dtype)
}

/// Reads `[ns]`, `[25us]`, or nothing.
fn parse_unit(unit: &str, text: &str) -> Result<TimeUnit> {
    if unit.is_empty() {
        return Ok(TimeBase::Generic.into());
    }
    let Some(unit) = unit.strip_prefix('[').and_then(|unit| unit.strip_suffix(']')) else {
        return Err(unknown(text, "a time unit stands in brackets, as in '[ns]'"));
    };
    let digits = unit.bytes().take_while(u8::is_ascii_digit).count();
    let (count, symbol) = unit.split_at(digits);
    let multiplier = if count.is_empty() {
        1
    } else {
        count.parse().map_err(|_| unknown(text, "the multiplier of the time unit is more than 32 bits"))?
    };
    let Some((base, _)) = TimeBase::ALL.iter().find(|(_, other)| *other == symbol) else {
        return Err(unknown(text, "time units are Y, M, W, D, h, m, s, ms, us, ns, ps, fs and as"));
    };
    TimeUnit::new(multiplier, *base)
}

/// Reads the number of bytes or characters; none is 0, as in NumPy.
fn parse_size(digits: &str, text: &str) -> Result<u32> {
    if digits.is_empty() {
        return Ok(0);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unknown(text, "expected a size after the letter, as in '|S5'"));
    }
    digits.parse().map_err(|_| Error::TooLarge { what: format!("the size in dtype '{text}'") })
}

fn unknown(text: &str, why: &str) -> Error {
    Error::invalid(format!("dtype '{text}' is not known: {why}"))
}
