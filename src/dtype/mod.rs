//! What one item of an array is.
//!
//! A [`Dtype`] names the type and, with it, the size in bytes of an item. [`TimeUnit`] (a count of a [`TimeBase`])
//! belongs to dates and durations, [`VoidType`] to opaque and structured items. All of them read and print NumPy's
//! notation ([`Dtype::parse`], `Display`). Data is little-endian throughout the library; [`ByteOrder`] and
//! [`Dtype::swap_bytes`] are for importers that meet other data. An [`Element`] is a Rust type that items can be
//! read into.
//!
//! `encoding` holds the form on disk, `notation` the form in text, `descr` the descriptions of structured types.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

mod descr;
mod element;
mod encoding;
mod notation;
#[cfg(test)]
mod tests;

pub use element::Element;

/// The largest size of an item, in bytes.
pub const MAX_ITEMSIZE: u32 = 1 << 24;

/// The type of an array's items.
///
/// Prints as NumPy's `dtype.str` (`<f4`, `|b1`, `<M8[ns]`); a structured type prints its description.
///
/// ```
/// use brickmap::Dtype;
///
/// let dtype = Dtype::parse("float32")?;
/// assert_eq!(dtype, Dtype::F32);
/// assert_eq!(dtype.itemsize(), 4);
/// assert_eq!(dtype.to_string(), "<f4");
/// # Ok::<(), brickmap::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// A boolean in a byte, 0 or 1.
    Bool,
    /// Signed integer of 8 bits.
    I8,
    /// Signed integer of 16 bits.
    I16,
    /// Signed integer of 32 bits.
    I32,
    /// Signed integer of 64 bits.
    I64,
    /// Unsigned integer of 8 bits.
    U8,
    /// Unsigned integer of 16 bits.
    U16,
    /// Unsigned integer of 32 bits.
    U32,
    /// Unsigned integer of 64 bits.
    U64,
    /// IEEE 754 half precision.
    F16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Two `f32`: real part, imaginary part.
    Complex64,
    /// Two `f64`: real part, imaginary part.
    Complex128,
    /// A date: 64-bit count of the unit since 1970-01-01. `i64::MIN` is NaT, "not a time".
    Datetime64(TimeUnit),
    /// A duration: 64-bit count of the unit. `i64::MIN` is NaT.
    Timedelta64(TimeUnit),
    /// NumPy's `S<n>`: `n` bytes, shorter strings filled up with zeros.
    Bytes(u32),
    /// NumPy's `U<n>`: `n` characters of 4 bytes each (UCS-4), shorter strings filled up with zeros.
    Unicode(u32),
    /// NumPy's `V<n>`: opaque bytes, or the fields of a structure.
    Void(VoidType),
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first: how this library holds all data.
    Little,
    /// Most significant byte first.
    Big,
}

/// What a date or a duration counts: a multiple of a calendar or clock unit, as in `25us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnit {
    multiplier: u32,
    base: TimeBase,
}

impl TimeUnit {
    /// `multiplier` times `base`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the multiplier is 0.
    pub fn new(multiplier: u32, base: TimeBase) -> Result<Self> {
        if multiplier == 0 {
            return Err(Error::invalid("the multiplier of a time unit is at least 1"));
        }
        Ok(TimeUnit { multiplier, base })
    }

    /// How many of [`base`](Self::base) make one unit; at least 1.
    pub fn multiplier(self) -> u32 {
        self.multiplier
    }

    /// The calendar or clock unit.
    pub fn base(self) -> TimeBase {
        self.base
    }
}

/// One of a unit: `TimeBase::Nanosecond.into()` is the unit `ns`.
impl From<TimeBase> for TimeUnit {
    fn from(base: TimeBase) -> Self {
        TimeUnit { multiplier: 1, base }
    }
}

/// A calendar or clock unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeBase {
    /// No unit yet; NumPy takes the unit of whatever it is combined with.
    Generic,
    /// `Y`
    Year,
    /// `M`
    Month,
    /// `W`
    Week,
    /// `D`
    Day,
    /// `h`
    Hour,
    /// `m`
    Minute,
    /// `s`
    Second,
    /// `ms`
    Millisecond,
    /// `us`
    Microsecond,
    /// `ns`
    Nanosecond,
    /// `ps`
    Picosecond,
    /// `fs`
    Femtosecond,
    /// `as`
    Attosecond,
}

impl TimeBase {
    /// Every base with NumPy's symbol for it. The position is its number on disk.
    const ALL: [(TimeBase, &'static str); 14] = [
        (TimeBase::Generic, "generic"),
        (TimeBase::Year, "Y"),
        (TimeBase::Month, "M"),
        (TimeBase::Week, "W"),
        (TimeBase::Day, "D"),
        (TimeBase::Hour, "h"),
        (TimeBase::Minute, "m"),
        (TimeBase::Second, "s"),
        (TimeBase::Millisecond, "ms"),
        (TimeBase::Microsecond, "us"),
        (TimeBase::Nanosecond, "ns"),
        (TimeBase::Picosecond, "ps"),
        (TimeBase::Femtosecond, "fs"),
        (TimeBase::Attosecond, "as"),
    ];

    /// NumPy's symbol: `Y`, `M`, `ms`, ...; `generic` for no unit.
    pub fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(base, _)| *base == self).map_or("generic", |(_, symbol)| symbol)
    }
}

/// An item of opaque bytes, or a structure whose NumPy description is kept word for word.
///
/// The fields of a structure are not interpreted: their bytes, byte order included, are stored as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VoidType {
    size: u32,
    descr: Option<Arc<str>>,
}

impl VoidType {
    /// Opaque items of `size` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size is 0, [`Error::TooLarge`] if it is more than [`MAX_ITEMSIZE`].
    pub fn opaque(size: u32) -> Result<Self> {
        check_itemsize(u64::from(size), || format!("|V{size}"))?;
        Ok(VoidType { size, descr: None })
    }

    /// A structure with NumPy's description (`dtype.descr`) as Python prints it, for example
    /// `[('a', '<f4'), ('b', '>i2', (3,))]`. The size is the sum of the fields, padding being fields with an empty
    /// name, as NumPy writes it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the description is not one, says where; also if its size is 0.
    /// [`Error::Unsupported`] for fields that cannot be stored, such as Python objects. [`Error::TooLarge`] for more
    /// than [`MAX_ITEMSIZE`] bytes.
    pub fn structured(descr: &str) -> Result<Self> {
        let size = check_itemsize(descr::size(descr)?, || "a structured type".to_owned())?;
        Ok(VoidType { size, descr: Some(descr.into()) })
    }

    /// Bytes in an item.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// NumPy's description; `None` for opaque items.
    pub fn descr(&self) -> Option<&str> {
        self.descr.as_deref()
    }
}

/// A size that an item may have, or the error that says why not.
fn check_itemsize(size: u64, dtype: impl Fn() -> String) -> Result<u32> {
    if size == 0 {
        return Err(Error::invalid(format!("items of {} have no bytes; an item has at least one", dtype())));
    }
    match u32::try_from(size) {
        Ok(size) if size <= MAX_ITEMSIZE => Ok(size),
        _ => Err(Error::TooLarge {
            what: format!("items of {} have {size} bytes; the limit is {MAX_ITEMSIZE}", dtype()),
        }),
    }
}

impl Dtype {
    /// Bytes in an item.
    pub fn itemsize(&self) -> usize {
        // A `u32` that does not fit cannot pass `check`, so that saturating is enough.
        usize::try_from(self.byte_count()).unwrap_or(usize::MAX)
    }

    fn byte_count(&self) -> u64 {
        match self {
            Dtype::Bool | Dtype::I8 | Dtype::U8 => 1,
            Dtype::I16 | Dtype::U16 | Dtype::F16 => 2,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 4,
            Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::Complex64 => 8,
            Dtype::Datetime64(_) | Dtype::Timedelta64(_) => 8,
            Dtype::Complex128 => 16,
            Dtype::Bytes(n) => u64::from(*n),
            Dtype::Unicode(n) => 4 * u64::from(*n),
            Dtype::Void(void) => u64::from(void.size),
        }
    }

    /// Refuses item sizes outside `1..=MAX_ITEMSIZE`, which [`Dtype::Bytes`] and [`Dtype::Unicode`] can name.
    pub(crate) fn check(&self) -> Result<()> {
        check_itemsize(self.byte_count(), || self.to_string()).map(|_| ())
    }

    /// Width in bytes of the machine words that an item is made of: half of a complex number, one character of a
    /// string; the whole item for everything else, structures included.
    pub(crate) fn component_size(&self) -> usize {
        match self {
            Dtype::Complex64 => 4,
            Dtype::Complex128 => 8,
            Dtype::Bytes(_) => 1,
            Dtype::Unicode(_) => 4,
            other => other.itemsize(),
        }
    }

    /// Turns big-endian items into little-endian ones, or back.
    ///
    /// Each machine word is reversed on its own: a complex number is two words, a unicode string one per character.
    /// Single bytes and [`Dtype::Void`] items stay as they are. If the length is not a multiple of the word, the
    /// bytes after the last whole word stay as they are too.
    ///
    /// ```
    /// use brickmap::Dtype;
    ///
    /// let mut data = [0, 0, 0, 1, 0, 0, 0, 2];
    /// Dtype::I32.swap_bytes(&mut data);
    /// assert_eq!(data, [1, 0, 0, 0, 2, 0, 0, 0]);
    /// ```
    pub fn swap_bytes(&self, data: &mut [u8]) {
        if matches!(self, Dtype::Void(_)) {
            return;
        }
        match self.component_size() {
            2 => swap_words::<2>(data),
            4 => swap_words::<4>(data),
            8 => swap_words::<8>(data),
            _ => {}
        }
    }
}

/// A constant width lets the compiler turn the loop into byte shuffles.
fn swap_words<const WIDTH: usize>(data: &mut [u8]) {
    for word in data.as_chunks_mut::<WIDTH>().0 {
        word.reverse();
    }
}

impl fmt::Display for TimeUnit {
    /// `ns`, `25us`; nothing for one of no unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.multiplier, self.base) {
            (1, TimeBase::Generic) => Ok(()),
            (1, base) => f.write_str(base.symbol()),
            (multiplier, base) => write!(f, "{multiplier}{}", base.symbol()),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timed = |f: &mut fmt::Formatter<'_>, code: &str, unit: &TimeUnit| match unit.to_string() {
            unit if unit.is_empty() => f.write_str(code),
            unit => write!(f, "{code}[{unit}]"),
        };
        match self {
            Dtype::Bool => f.write_str("|b1"),
            Dtype::I8 => f.write_str("|i1"),
            Dtype::I16 => f.write_str("<i2"),
            Dtype::I32 => f.write_str("<i4"),
            Dtype::I64 => f.write_str("<i8"),
            Dtype::U8 => f.write_str("|u1"),
            Dtype::U16 => f.write_str("<u2"),
            Dtype::U32 => f.write_str("<u4"),
            Dtype::U64 => f.write_str("<u8"),
            Dtype::F16 => f.write_str("<f2"),
            Dtype::F32 => f.write_str("<f4"),
            Dtype::F64 => f.write_str("<f8"),
            Dtype::Complex64 => f.write_str("<c8"),
            Dtype::Complex128 => f.write_str("<c16"),
            Dtype::Datetime64(unit) => timed(f, "<M8", unit),
            Dtype::Timedelta64(unit) => timed(f, "<m8", unit),
            Dtype::Bytes(n) => write!(f, "|S{n}"),
            Dtype::Unicode(n) => write!(f, "<U{n}"),
            Dtype::Void(VoidType { descr: Some(descr), .. }) => f.write_str(descr),
            Dtype::Void(VoidType { size, .. }) => write!(f, "|V{size}"),
        }
    }
}
