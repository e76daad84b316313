//! Writing arrays of a store as `.npy` files.

use super::Header;
use crate::boxes::{MemoryOrder, boxes};
use crate::failure::Failure;
use crate::output::OutputFile;
use crate::progress::Bar;
use brickmap::{Array, Dtype, Progress};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

/// How the message ends that tells of an existing file.
const WAY_OUT: &str = "give --force to replace it";

/// Creates a file for items of `dtype` in `shape`, with its header.
fn create(
    path: &Path,
    force: bool,
    dtype: &Dtype,
    shape: &[u64],
) -> Result<(OutputFile, File, u64), Failure> {
    let failed = |error: &std::io::Error| Failure::of_file("write", path, error);
    let (output, mut file) = OutputFile::create(path, force, WAY_OUT, |temporary| {
        File::options().write(true).create_new(true).open(temporary).map_err(|error| failed(&error))
    })?;
    let header = Header::encode(dtype, shape);
    file.write_all(&header).map_err(|error| failed(&error))?;
    Ok((output, file, header.len() as u64))
}

/// Writes a whole array, in memory for a box of it.
pub(crate) fn save_array(array: &Array, path: &Path, force: bool, quiet: bool) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::of_file("write", path, error);
    let (output, mut file, start) = create(path, force, array.dtype(), array.shape())?;
    let bar = Bar::new("Writing", quiet);
    let itemsize = array.dtype().itemsize();
    let mut progress = Progress { done: 0, total: array.nbytes() };
    for part in boxes(array.shape(), array.chunks(), itemsize, MemoryOrder::C) {
        let bytes = array.read_bytes(&part.selection())?;
        // Trailing dimensions that the box has whole are one run of the file, with the one before them.
        let whole =
            part.shape.iter().zip(array.shape()).rev().take_while(|(part, whole)| part == whole).count();
        let split = array.ndim().saturating_sub(whole + 1);
        let run: u64 = part.shape[split..].iter().product::<u64>() * itemsize as u64;
        let outer = &part.shape[..split];
        for (n, run_bytes) in (0u64..).zip(bytes.chunks(usize::try_from(run).unwrap_or(usize::MAX).max(1))) {
            let mut index = part.origin.clone();
            let mut rest = n;
            for (at, len) in index[..split].iter_mut().zip(outer).rev() {
                *at += rest % len;
                rest /= len;
            }
            let number = index.iter().zip(array.shape()).fold(0, |number, (at, len)| number * len + at);
            file.seek(SeekFrom::Start(start + number * itemsize as u64)).map_err(|error| failed(&error))?;
            file.write_all(run_bytes).map_err(|error| failed(&error))?;
        }
        progress.done += bytes.len() as u64;
        let _ = bar.tell(progress);
    }
    drop(file);
    output.publish()
}

/// Writes items that are in memory, as little-endian bytes in C order.
pub(crate) fn save_items(
    items: &[u8],
    dtype: &Dtype,
    shape: &[u64],
    path: &Path,
    force: bool,
) -> Result<(), Failure> {
    let (output, mut file, _) = create(path, force, dtype, shape)?;
    file.write_all(items).map_err(|error| Failure::of_file("write", path, &error))?;
    drop(file);
    output.publish()
}
