//! What the benchmark programs share.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Shape and items of a `.npy` file of little-endian float32 in C order.
pub fn read_npy_f32(path: &Path) -> Result<(Vec<u64>, Vec<f32>)> {
    let (descr, shape, data) = read_npy(path)?;
    if descr != "<f4" {
        return Err(Error::new(ErrorKind::InvalidData, format!("items of {descr} where <f4 is needed")));
    }
    Ok((
        shape,
        data.chunks_exact(4).map(|item| f32::from_le_bytes([item[0], item[1], item[2], item[3]])).collect(),
    ))
}

/// Dtype, shape and bytes of a `.npy` file in C order, of the simple kind that `benches/datasets.py` writes.
pub fn read_npy(path: &Path) -> Result<(String, Vec<u64>, Vec<u8>)> {
    let mut bytes = std::fs::read(path)?;
    let wrong = |what: &str| Error::new(ErrorKind::InvalidData, format!("{}: {what}", path.display()));
    if bytes.get(..6) != Some(b"\x93NUMPY") || bytes.len() < 10 {
        return Err(wrong("not a .npy file"));
    }
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = bytes.get(10..start).ok_or_else(|| wrong("cut off"))?;
    let header = String::from_utf8_lossy(header).into_owned();
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest);
    let descr = after("'descr': '")
        .and_then(|rest| rest.split('\'').next())
        .ok_or_else(|| wrong("no plain dtype"))?;
    if !header.contains("'fortran_order': False") {
        return Err(wrong("not in C order"));
    }
    let shape =
        after("'shape': (").and_then(|rest| rest.split(')').next()).ok_or_else(|| wrong("no shape"))?;
    let shape: Vec<u64> = shape.split(',').filter_map(|len| len.trim().parse().ok()).collect();
    let data = bytes.split_off(start);
    Ok((descr.to_owned(), shape, data))
}

/// The codec of a name on the command line, at zstd level 1.
pub fn codec(name: &str) -> Result<brickmap::Codec> {
    use brickmap::{Codec, Profile};
    let level = 1;
    Ok(match name {
        "balanced" => Codec::Auto { profile: Profile::Balanced, level },
        "fast" => Codec::Auto { profile: Profile::Fast, level },
        "small" => Codec::Auto { profile: Profile::Small, level },
        "planes" => Codec::Planes { level },
        _ => return Err(Error::new(ErrorKind::InvalidInput, format!("no codec '{name}'"))),
    })
}
