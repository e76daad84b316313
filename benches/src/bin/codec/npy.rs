//! Reading .npy files and cutting them into blocks as the library does.

use std::path::Path;
use std::{fs, io};

/// Bytes of a block of a table.
const TABLE_BLOCK: usize = 128 << 10;
/// Items of a block of a volume.
const VOLUME_BLOCK: [usize; 3] = [32, 32, 64];
/// Blocks that are taken of a file, evenly spaced.
const MOST: usize = 128;

/// The blocks of one array.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) itemsize: usize,
    /// Distances, in items, to a neighbour along some axis.
    pub(crate) strides: Vec<u32>,
    pub(crate) blocks: Vec<Vec<u8>>,
}

/// Every .npy file in this folder, by name; `only` keeps those whose name contains it.
pub(crate) fn rows(folder: &Path, only: &str) -> io::Result<Vec<Row>> {
    let mut files: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "npy"));
    files.sort();
    let name = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    files.retain(|file| name(file).contains(only));
    files.iter().map(|file| Ok(row(name(file), &fs::read(file)?))).collect()
}

/// An array in C order with little-endian numbers, as datasets.py writes them.
fn row(name: String, file: &[u8]) -> Row {
    let header_len = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = std::str::from_utf8(&file[10..10 + header_len]).expect("a header in ASCII");
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest).expect("a complete header");
    let descr = after("'descr': '").split('\'').next().unwrap_or_default();
    let itemsize: usize = descr[2..].parse().expect("a number type");
    assert!(header.contains("'fortran_order': False"), "{name} is not in C order");
    let shape: Vec<usize> = after("'shape': (")
        .split(')')
        .next()
        .unwrap_or_default()
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect();
    let items = &file[10 + header_len..];
    let (strides, blocks) = match shape[..] {
        [a, b, c] => (vec![1, 64, 2048], boxes(items, itemsize, [a, b, c])),
        _ => {
            let row = shape[1..].iter().product::<usize>();
            let rows = TABLE_BLOCK / (row * itemsize);
            let strides = match row {
                1 => vec![1, 2, 3],
                _ => vec![1, row, 2 * row, 3 * row, 5 * row, 6 * row],
            };
            (strides, items.chunks(rows * row * itemsize).map(<[u8]>::to_vec).collect())
        }
    };
    let strides = strides.into_iter().map(|stride| stride as u32).collect();
    Row { name, itemsize, strides, blocks: spread(blocks, MOST) }
}

/// The boxes of a volume, clipped at its ends.
fn boxes(items: &[u8], itemsize: usize, shape: [usize; 3]) -> Vec<Vec<u8>> {
    let starts = |axis: usize| (0..shape[axis]).step_by(VOLUME_BLOCK[axis]);
    let range = |axis: usize, start: usize| start..shape[axis].min(start + VOLUME_BLOCK[axis]);
    let mut boxes = Vec::new();
    for (z0, y0, x0) in starts(0).flat_map(|z| starts(1).flat_map(move |y| starts(2).map(move |x| (z, y, x))))
    {
        let mut block = Vec::new();
        for z in range(0, z0) {
            for y in range(1, y0) {
                let line = (z * shape[1] + y) * shape[2];
                let run = range(2, x0);
                block.extend_from_slice(&items[(line + run.start) * itemsize..(line + run.end) * itemsize]);
            }
        }
        boxes.push(block);
    }
    boxes
}

/// At most `most` of these, evenly spaced, from the first on.
pub(crate) fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}
