//! NumPy's `.npy` files: the header, and the map of the items.
//!
//! The format is described in NumPy's `numpy/lib/format.py`: the magic, a version, the length of the header, and the
//! header, which is a Python dict with the keys `descr`, `fortran_order` and `shape`. Versions differ in the size of the
//! length and the encoding of the header only. What is written here is byte for byte what `numpy.save` writes.

mod literal;
mod save;

pub(crate) use literal::Literal;
pub(crate) use save::{save_array, save_items};

use crate::failure::Failure;
use brickmap::{ByteOrder, Dtype};
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Magic and version.
const PRELUDE: usize = MAGIC.len() + 2;
/// Where items start is a multiple of this.
const ALIGNMENT: usize = 64;
/// Room that `numpy.save` leaves for the first length to grow in place.
const GROWTH_DIGITS: usize = 21;

/// What the header of a `.npy` file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dtype: Dtype,
    pub(crate) order: ByteOrder,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<u64>,
}

/// A `.npy` file in the map of memory: the items are read from the disk when they are looked at.
pub(crate) struct NpyFile {
    pub(crate) header: Header,
    map: Mmap,
    /// Where the items start.
    start: usize,
}

impl NpyFile {
    pub(crate) fn open(path: &Path) -> Result<NpyFile, Failure> {
        let file = File::open(path).map_err(|error| Failure::of_file("open", path, &error))?;
        let metadata = file.metadata().map_err(|error| Failure::of_file("open", path, &error))?;
        if metadata.is_dir() {
            return Err(Failure::usage(format!("'{}' is a directory, not a file", path.display())));
        }
        // SAFETY: the map is only read. As with every map of a file, another program that shortens the file meanwhile ends
        // this one with SIGBUS; one that changes it changes the bytes that are converted, which any bytes can be.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| Failure::of_file("map", path, &error))?;
        let wrong = |what: String| {
            Failure::failed(format!("'{}' is not a .npy file that can be read: {what}", path.display()))
        };
        let (header, start) = Header::parse(&map).map_err(wrong)?;
        let due = header
            .byte_len()
            .ok_or_else(|| wrong(format!("a shape of {:?}, more than 64 bits", header.shape)))?;
        let there = (map.len() - start) as u64;
        if there != due {
            let what = format!("the header tells of {due} bytes of items, and {there} are there");
            return Err(wrong(what));
        }
        Ok(NpyFile { header, map, start })
    }

    /// The bytes of all items, as they are in the file.
    pub(crate) fn items(&self) -> &[u8] {
        self.map.get(self.start..).unwrap_or_default()
    }
}

impl Header {
    /// The header at the start of `bytes`, and where the items start.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Header, usize), String> {
        if bytes.is_empty() {
            return Err("it is empty".into());
        }
        if !bytes.starts_with(MAGIC) {
            return Err("it does not start with NumPy's magic".into());
        }
        let cut = || "it is cut off within the header".to_owned();
        let version = *bytes.get(MAGIC.len()).ok_or_else(cut)?;
        let (len, text_start) = match version {
            1 => {
                let len =
                    bytes.get(PRELUDE..PRELUDE + 2).and_then(|len| len.try_into().ok()).ok_or_else(cut)?;
                (usize::from(u16::from_le_bytes(len)), PRELUDE + 2)
            }
            2 | 3 => {
                let len =
                    bytes.get(PRELUDE..PRELUDE + 4).and_then(|len| len.try_into().ok()).ok_or_else(cut)?;
                (usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX), PRELUDE + 4)
            }
            _ => return Err(format!("version {version} of the format; versions 1 to 3 are known")),
        };
        let start = text_start.checked_add(len).ok_or_else(cut)?;
        let text = bytes.get(text_start..start).ok_or_else(cut)?;
        let text = if version == 3 {
            std::str::from_utf8(text).map_err(|_| "the header is not UTF-8".to_owned())?.to_owned()
        } else {
            text.iter().map(|&byte| char::from(byte)).collect()
        };
        Ok((Header::of_text(&text).map_err(|what| format!("its header, {what}"))?, start))
    }

    fn of_text(text: &str) -> Result<Header, String> {
        let Literal::Dict(entries) = Literal::parse(text)? else { return Err("which is not a dict".into()) };
        let entry = |key: &str| {
            let found = entries.iter().find(|(other, ..)| other == key);
            found
                .map(|(_, value, place)| (value, place.clone()))
                .ok_or_else(|| format!("which has no '{key}'"))
        };
        let (descr, place) = entry("descr")?;
        let descr = match descr {
            Literal::Text(text) => text,
            Literal::Sequence(_) => text.get(place).unwrap_or_default(),
            _ => return Err("whose 'descr' is neither a string nor a list".into()),
        };
        let (dtype, order) = Dtype::parse_with_order(descr).map_err(|error| error.to_string())?;
        let fortran_order =
            entry("fortran_order")?.0.as_bool().ok_or("whose 'fortran_order' is not a bool")?;
        let shape = entry("shape")?.0.elements().and_then(|lens| lens.map(Literal::as_integer).collect());
        let shape = shape.ok_or("whose 'shape' is not a tuple of lengths")?;
        Ok(Header { dtype, order, fortran_order, shape })
    }

    /// Bytes of all items; `None` if that is more than 64 bits.
    pub(crate) fn byte_len(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(self.dtype.itemsize() as u64, |product, &len| product.checked_mul(len))
    }

    /// The header of a file of little-endian items in C order.
    pub(crate) fn encode(dtype: &Dtype, shape: &[u64]) -> Vec<u8> {
        let descr = match dtype {
            Dtype::Void(void) => void.descr().map(str::to_owned),
            _ => None,
        };
        let descr = descr.unwrap_or_else(|| format!("'{dtype}'"));
        let lens: Vec<String> = shape.iter().map(u64::to_string).collect();
        let tuple = match &lens[..] {
            [len] => format!("({len},)"),
            lens => format!("({})", lens.join(", ")),
        };
        let mut text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {tuple}, }}");
        if let Some(first) = lens.first() {
            text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(first.len())));
        }
        let latin1: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
        let (version, encoded) = match latin1 {
            Some(bytes) => (1, bytes),
            None => (3, text.into_bytes()),
        };
        wrap(version, &encoded).or_else(|| wrap(version.max(2), &encoded)).unwrap_or_default()
    }
}

/// The header with all that stands before it; `None` if its length does not fit in what the version has for it.
fn wrap(version: u8, text: &[u8]) -> Option<Vec<u8>> {
    let length_size = if version == 1 { 2 } else { 4 };
    let before = PRELUDE + length_size;
    // NumPy pads with 1 to 64 bytes, the last of which is the end of the line.
    let unpadded = before + text.len() + 1;
    let len = text.len() + 1 + ALIGNMENT - unpadded % ALIGNMENT;
    let mut header = [MAGIC, &[version, 0]].concat();
    if version == 1 {
        header.extend_from_slice(&u16::try_from(len).ok()?.to_le_bytes());
    } else {
        header.extend_from_slice(&u32::try_from(len).ok()?.to_le_bytes());
    }
    header.extend_from_slice(text);
    header.resize(before + len - 1, b' ');
    header.push(b'\n');
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickmap::VoidType;

    fn parsed(header: &[u8]) -> Header {
        let (parsed, start) = Header::parse(header).unwrap();
        assert_eq!(start, header.len());
        assert_eq!(start % ALIGNMENT, 0);
        parsed
    }

    #[test]
    fn headers_are_those_of_numpy() {
        let header = Header::encode(&Dtype::F32, &[300, 512, 512]);
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (300, 512, 512), }";
        let expected = [b"\x93NUMPY\x01\x00\x76\x00", text.as_bytes(), &[b' '; 49], b"\n"].concat();
        assert_eq!(header.len(), 128);
        assert_eq!(header, expected);
        assert_eq!(Header::encode(&Dtype::Bool, &[]).len(), 128);
    }

    #[test]
    fn headers_come_back() {
        let structured = |descr: &str| Dtype::Void(VoidType::structured(descr).unwrap());
        let wide: Vec<String> = (0..4000).map(|n| format!("('field{n}', '<f4')")).collect();
        for dtype in [
            Dtype::Bool,
            Dtype::Unicode(7),
            Dtype::parse("<M8[25us]").unwrap(),
            structured("[('a', '<f4'), ('b', '>i2', (3,))]"),
            structured("[('größe', '<f4'), ('面積', '<f8')]"),
            structured(&format!("[{}]", wide.join(", "))),
        ] {
            for shape in [vec![], vec![0], vec![5], vec![1 << 40, 3]] {
                let header = parsed(&Header::encode(&dtype, &shape));
                let expected =
                    Header { dtype: dtype.clone(), order: ByteOrder::Little, fortran_order: false, shape };
                assert_eq!(header, expected);
            }
        }
    }

    #[test]
    fn hostile_headers_are_errors() {
        let with = |text: &str| wrap(1, text.as_bytes()).unwrap();
        for text in [
            "",
            "[]",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': 5, 'fortran_order': False, 'shape': ()}",
            "{'descr': '|O', 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
            "{'descr': [('a', '<f4'), ('a', '<f4')], 'fortran_order': False, 'shape': ()}",
        ] {
            assert!(Header::parse(&with(text)).is_err(), "{text}");
        }
        let whole = Header::encode(&Dtype::F32, &[3]);
        for len in 0..whole.len() {
            assert!(Header::parse(&whole[..len]).is_err(), "{len}");
        }
        let version = [&whole[..6], &[9], &whole[7..]].concat();
        assert!(Header::parse(&version).unwrap_err().contains("version 9"));
        let huge = Header {
            dtype: Dtype::F64,
            order: ByteOrder::Little,
            fortran_order: false,
            shape: vec![1 << 62, 8],
        };
        assert_eq!(huge.byte_len(), None);
    }
}
