//! A dtype on disk. All integers are little-endian.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | class: 1 bool, 2 signed, 3 unsigned, 4 float, 5 complex, 6 datetime64, 7 timedelta64, 8 `S`, 9 `U`, 10 `V` |
//! | 1 | 1 | time base, the position in [`TimeBase::ALL`]; 0 for classes other than 6 and 7 |
//! | 2 | 2 | 0; ignored by readers |
//! | 4 | 4 | item size in bytes, `1..=MAX_ITEMSIZE` |
//! | 8 | 4 | multiplier of the time unit, at least 1; 0 for classes other than 6 and 7 |
//! | 12 | 4 | length of the description; 0 for classes other than 10 |
//! | 16 | | the description, UTF-8 |

use super::{Dtype, MAX_ITEMSIZE, TimeBase, TimeUnit, VoidType};
use crate::error::Damage;

const HEADER_LEN: usize = 16;

impl Dtype {
    /// Appends the form on disk. The dtype has passed [`check`](Self::check).
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let class: u8 = match self {
            Dtype::Bool => 1,
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => 2,
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => 3,
            Dtype::F16 | Dtype::F32 | Dtype::F64 => 4,
            Dtype::Complex64 | Dtype::Complex128 => 5,
            Dtype::Datetime64(_) => 6,
            Dtype::Timedelta64(_) => 7,
            Dtype::Bytes(_) => 8,
            Dtype::Unicode(_) => 9,
            Dtype::Void(_) => 10,
        };
        let (base, multiplier) = match self {
            Dtype::Datetime64(unit) | Dtype::Timedelta64(unit) => (base_number(unit.base), unit.multiplier),
            _ => (0, 0),
        };
        let descr = match self {
            Dtype::Void(void) => void.descr().unwrap_or(""),
            _ => "",
        };
        debug_assert!(self.check().is_ok(), "{self} was not checked");
        let size = u32::try_from(self.itemsize()).unwrap_or(u32::MAX);
        // A longer description than a u32 can count gives a record that decoding refuses.
        let descr_len = u32::try_from(descr.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&[class, base, 0, 0]);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&multiplier.to_le_bytes());
        out.extend_from_slice(&descr_len.to_le_bytes());
        out.extend_from_slice(descr.as_bytes());
    }

    /// Whether a class number is one that [`decode`](Self::decode) knows, or of a later version.
    pub(crate) fn knows_class(class: u8) -> bool {
        matches!(class, 1..=10)
    }

    /// Reads what [`encode`](Self::encode) wrote. The record is exactly `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Dtype, Damage> {
        let Some((header, descr)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(damage(format!("has {} bytes, fewer than {HEADER_LEN}", bytes.len())));
        };
        let [class, base, _, _, s0, s1, s2, s3, m0, m1, m2, m3, d0, d1, d2, d3] = *header;
        let size = u32::from_le_bytes([s0, s1, s2, s3]);
        let multiplier = u32::from_le_bytes([m0, m1, m2, m3]);
        let descr_len = u32::from_le_bytes([d0, d1, d2, d3]);

        if usize::try_from(descr_len) != Ok(descr.len()) {
            return Err(damage(format!(
                "gives its description {descr_len} bytes, but {} follow",
                descr.len()
            )));
        }
        if size == 0 || size > MAX_ITEMSIZE {
            return Err(damage(format!("has an item size of {size}, not 1 to {MAX_ITEMSIZE}")));
        }
        let timed = matches!(class, 6 | 7);
        if !timed && (base != 0 || multiplier != 0) {
            return Err(damage(format!("has time unit {base} times {multiplier} in class {class}")));
        }
        if class != 10 && !descr.is_empty() {
            return Err(damage(format!("has a description in class {class}")));
        }

        let dtype = match (class, size) {
            (1, 1) => Dtype::Bool,
            (2, 1) => Dtype::I8,
            (2, 2) => Dtype::I16,
            (2, 4) => Dtype::I32,
            (2, 8) => Dtype::I64,
            (3, 1) => Dtype::U8,
            (3, 2) => Dtype::U16,
            (3, 4) => Dtype::U32,
            (3, 8) => Dtype::U64,
            (4, 2) => Dtype::F16,
            (4, 4) => Dtype::F32,
            (4, 8) => Dtype::F64,
            (5, 8) => Dtype::Complex64,
            (5, 16) => Dtype::Complex128,
            (6, 8) => Dtype::Datetime64(decode_unit(base, multiplier)?),
            (7, 8) => Dtype::Timedelta64(decode_unit(base, multiplier)?),
            (8, n) => Dtype::Bytes(n),
            (9, n) if n % 4 == 0 => Dtype::Unicode(n / 4),
            (10, n) => Dtype::Void(decode_void(n, descr)?),
            (1..=9, n) => return Err(damage(format!("has an item size of {n} in class {class}"))),
            _ => return Err(damage(format!("has unknown class {class}"))),
        };
        Ok(dtype)
    }
}

fn damage(what: impl AsRef<str>) -> Damage {
    Damage::new(format!("the dtype record {}", what.as_ref()))
}

fn base_number(base: TimeBase) -> u8 {
    (0..).zip(TimeBase::ALL).find(|(_, (other, _))| *other == base).map_or(0, |(number, _)| number)
}

fn decode_unit(base: u8, multiplier: u32) -> Result<TimeUnit, Damage> {
    let Some((base, _)) = TimeBase::ALL.get(usize::from(base)) else {
        return Err(damage(format!("has unknown time unit {base}")));
    };
    TimeUnit::new(multiplier, *base).map_err(|_| damage("has a time unit with multiplier 0"))
}

fn decode_void(size: u32, descr: &[u8]) -> Result<VoidType, Damage> {
    if descr.is_empty() {
        return VoidType::opaque(size).map_err(|error| damage(format!("is wrong: {error}")));
    }
    let descr = std::str::from_utf8(descr).map_err(|_| damage("has a description that is not UTF-8"))?;
    let void = VoidType::structured(descr)
        .map_err(|error| damage(format!("has a description that is wrong: {error}")))?;
    if void.size != size {
        return Err(damage(format!("has an item size of {size}, but its description gives {}", void.size)));
    }
    Ok(void)
}
