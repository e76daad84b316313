//! Writes a store with every dtype, codec and layout, and beside it what a reader should find there:
//! `every_feature DIRECTORY`.
//!
//! `DIRECTORY/every.brick` is the store, `expected.json` lists its arrays, and `N.bin` holds the items of array N in C
//! order. tests/test_reader.py compares them with what an independent reader makes of the store.

use brickmap::{ArraySpec, Codec, Dtype, Profile, Selection, Store, WriteOptions, Writer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: every_feature DIRECTORY")?);
    let store = Store::create(directory.join("every.brick"))?;
    let mut writer = store.writer()?;
    let mut expected = Expected { directory: &directory, arrays: Vec::new() };
    dtypes(&mut writer, &mut expected)?;
    writer.commit()?;
    codecs(&mut writer, &mut expected)?;
    writer.commit()?;
    layouts(&mut writer, &mut expected)?;
    resized(&mut writer, &mut expected)?;
    ragged(&mut writer, &mut expected)?;
    names_and_attributes(&mut writer)?;
    writer.commit()?;
    std::fs::write(directory.join("expected.json"), serde_json::to_vec_pretty(&expected.arrays)?)?;
    Ok(())
}

struct Expected<'a> {
    directory: &'a Path,
    arrays: Vec<Value>,
}

impl Expected<'_> {
    fn add(&mut self, path: &str, dtype: &Dtype, shape: &[u64], bytes: &[u8]) -> Outcome<()> {
        let file = format!("{}.bin", self.arrays.len());
        std::fs::write(self.directory.join(&file), bytes)?;
        self.arrays.push(json!({ "path": path, "dtype": dtype.to_string(), "shape": shape, "file": file }));
        Ok(())
    }
}

/// Bytes without a pattern; the same for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27).to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

/// Numbers that grow slowly along the last dimension, as bytes of `width` each.
fn ramp(count: usize, width: usize) -> Vec<u8> {
    (0..count as u64).flat_map(|n| (n * n / 7 + n).to_le_bytes()[..width].to_vec()).collect()
}

fn write(
    writer: &mut Writer,
    expected: &mut Expected<'_>,
    path: &str,
    dtype: Dtype,
    shape: &[u64],
    change: impl Fn(ArraySpec) -> ArraySpec,
    bytes: &[u8],
) -> Outcome<()> {
    writer.create_array(path, &change(ArraySpec::new(dtype.clone(), shape)))?;
    writer.write_bytes(path, &Selection::all(), bytes, WriteOptions::new())?;
    expected.add(path, &dtype, shape, bytes)
}

fn dtypes(writer: &mut Writer, expected: &mut Expected<'_>) -> Outcome<()> {
    let texts = [
        "|b1",
        "|i1",
        "<i2",
        "<i4",
        "<i8",
        "|u1",
        "<u2",
        "<u4",
        "<u8",
        "<f2",
        "<f4",
        "<f8",
        "<c8",
        "<c16",
        "<M8[ns]",
        "<M8[25s]",
        "<M8[D]",
        "<m8[us]",
        "<m8",
        "|S5",
        "<U3",
        "|V7",
        "|V300",
        "[('a', '<f4'), ('b', '>i2', (3,)), ('c', 'S4')]",
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let dtype: Dtype = text.parse()?;
        let shape = [7, 5, 3];
        let mut bytes = noise(n as u64, 105 * dtype.itemsize());
        match &dtype {
            Dtype::Bool => bytes.iter_mut().for_each(|byte| *byte &= 1),
            Dtype::Unicode(_) => {
                bytes.chunks_exact_mut(4).for_each(|it| it.copy_from_slice(&[it[0] | 1, 0, 0, 0]))
            }
            _ => {}
        }
        let cut = |spec: ArraySpec| spec.chunks([4, 3, 3]).blocks([2, 3, 2]);
        write(writer, expected, &format!("dtypes/{n}"), dtype, &shape, cut, &bytes)?;
    }
    write(writer, expected, "dtypes/0-d", Dtype::F64, &[], |spec| spec, &3.25f64.to_le_bytes())?;
    write(writer, expected, "dtypes/empty", Dtype::F64, &[3, 0, 2], |spec| spec, &[])
}

fn codecs(writer: &mut Writer, expected: &mut Expected<'_>) -> Outcome<()> {
    let codecs = [
        Codec::Auto { profile: Profile::Balanced, level: 1 },
        Codec::Auto { profile: Profile::Fast, level: -5 },
        Codec::Auto { profile: Profile::Small, level: 19 },
        Codec::Raw,
        Codec::Zstd { level: 3 },
        Codec::Planes { level: 1 },
        Codec::Delta { stride: 1, level: 1 },
        Codec::Delta { stride: 3, level: 1 },
        Codec::Delta { stride: 1000, level: 1 },
    ];
    for (n, codec) in codecs.into_iter().enumerate() {
        let cut = |spec: ArraySpec| {
            let spec = spec.codec(codec);
            if codec == Codec::Raw { spec } else { spec.chunks([40, 16]).blocks([16, 16]) }
        };
        for (kind, dtype) in [(0, Dtype::I64), (1, Dtype::U16), (2, Dtype::F32), (3, Dtype::Complex64)] {
            let (count, width) = (100 * 17, dtype.itemsize());
            let bytes = match kind {
                0 | 1 => ramp(count, width),
                2 => (0..count).flat_map(|n| (n as f32 * 0.01).sin().to_le_bytes()).collect(),
                _ => noise(n as u64, count * width),
            };
            write(writer, expected, &format!("codecs/{n}/{kind}"), dtype, &[100, 17], cut, &bytes)?;
        }
    }
    Ok(())
}

fn layouts(writer: &mut Writer, expected: &mut Expected<'_>) -> Outcome<()> {
    // Chunks that are absent, constant, and neither, in every order; the last one is cut by the array's edge.
    let shape = [11u64, 40];
    let spec = ArraySpec::new(Dtype::I32, shape).chunks([2, 40]).blocks([1, 16]).fill_value(-1i32);
    writer.create_array("layouts/kinds", &spec)?;
    let mut items = vec![-1i32; 440];
    for (chunk, kind) in [0, 1, 2, 1, 2, 1].into_iter().enumerate() {
        let rows = chunk * 2..(chunk * 2 + 2).min(11);
        for row in rows.clone() {
            for column in 0..40 {
                let item = [-1, 77, (row * 40 + column) as i32][kind];
                items[row * 40 + column] = item;
            }
        }
        if kind > 0 {
            let part = &items[rows.start * 40..rows.end * 40];
            writer.write("layouts/kinds", &Selection::from((rows.start..rows.end, ..)), part)?;
        }
    }
    expected.add("layouts/kinds", &Dtype::I32, &shape, bytes_of(&items).as_slice())?;
    // An index of three levels, with chunks here and there, written in two transactions and overwritten.
    let shape = [30u64, 300];
    writer.create_array("layouts/many", &ArraySpec::new(Dtype::I32, shape).chunks([1, 2]))?;
    let mut items = vec![0i32; 9000];
    for round in 1..4i32 {
        for row in (0..30usize).step_by(round as usize) {
            for column in row * 3..row * 3 + 100 {
                items[row * 300 + column] = round * 10_000 + column as i32;
            }
            let part = &items[row * 300 + row * 3..row * 300 + row * 3 + 100];
            writer.write("layouts/many", &Selection::from((row as i64, row * 3..row * 3 + 100)), part)?;
        }
        writer.commit()?;
    }
    expected.add("layouts/many", &Dtype::I32, &shape, &bytes_of(&items))?;
    // Raw chunks of several spans of 64 KiB.
    let bytes = noise(5, 60 * 3000 * 8);
    let raw = |spec: ArraySpec| spec.codec(Codec::Raw).chunks([16, 3000]);
    write(writer, expected, "layouts/raw", Dtype::F64, &[60, 3000], raw, &bytes)
}

/// Arrays that were written, cut, and grown again, some with a commit in between: chunks that do not reach the array's edge,
/// constants that were cut, raw rows, and keys with bits of all dimensions on top of each other.
fn resized(writer: &mut Writer, expected: &mut Expected<'_>) -> Outcome<()> {
    let cuts: [(&str, ArraySpec); 4] = [
        ("blocks", ArraySpec::new(Dtype::I32, [9, 10]).chunks([4, 4]).blocks([3, 2]).fill_value(-1i32)),
        ("one-chunk", ArraySpec::new(Dtype::I32, [9, 10]).chunks([40, 40]).blocks([3, 8]).fill_value(-1i32)),
        ("single-items", ArraySpec::new(Dtype::I32, [9, 10]).chunks([1, 1]).fill_value(-1i32)),
        ("raw", ArraySpec::new(Dtype::I32, [9, 10]).codec(Codec::Raw).chunks([4, 40]).fill_value(-1i32)),
    ];
    let shapes: [&[[u64; 2]]; 4] = [
        &[[9, 10], [20, 30]],
        &[[9, 10], [7, 9], [21, 33]],
        &[[9, 10], [0, 5], [5, 5], [3, 5], [3, 39], [300, 39]],
        &[[9, 10], [200, 10], [200, 11], [6, 11], [6, 2], [40, 40]],
    ];
    for (name, spec) in cuts {
        for (n, shapes) in shapes.into_iter().enumerate() {
            let path = format!("resized/{name}/{n}");
            writer.create_array(&path, &spec)?;
            let (mut shape, mut items) = ([9u64, 10], vec![-1i32; 90]);
            for (round, next) in (1i32..).zip(shapes) {
                writer.resize(&path, next)?;
                let at = |row: u64, column: u64, width: u64| (row * width + column) as usize;
                let mut moved = vec![-1i32; (next[0] * next[1]) as usize];
                for row in 0..shape[0].min(next[0]) {
                    for column in 0..shape[1].min(next[1]) {
                        moved[at(row, column, next[1])] = items[at(row, column, shape[1])];
                    }
                }
                (shape, items) = (*next, moved);
                // The lower right quarter, half of it constant, but nothing of the last shape.
                if round < shapes.len() as i32 {
                    let [rows, columns] = [shape[0] / 2..shape[0], shape[1] / 2..shape[1]];
                    let mut part = Vec::new();
                    for row in rows.clone() {
                        for column in columns.clone() {
                            let item = if row % 8 < 4 { 7 } else { round * 1000 + (row * column) as i32 };
                            items[at(row, column, shape[1])] = item;
                            part.push(item);
                        }
                    }
                    writer.write(&path, &Selection::from((rows, columns)), &part)?;
                }
                if (round as usize + n).is_multiple_of(2) {
                    writer.commit()?;
                }
            }
            expected.add(&path, &Dtype::I32, &shape, &bytes_of(&items))?;
        }
    }
    Ok(())
}

fn bytes_of(items: &[i32]) -> Vec<u8> {
    items.iter().flat_map(|item| item.to_le_bytes()).collect()
}

fn ragged(writer: &mut Writer, expected: &mut Expected<'_>) -> Outcome<()> {
    let strings = ["eins", "", "zwei zwei", "drei\n", "fünf", "六"];
    writer.create_strings("ragged/strings", &[2, 3], &strings)?;
    expected.arrays.push(json!({ "path": "ragged/strings", "shape": [2, 3], "strings": strings }));
    let runs: Vec<Vec<i32>> = (0..50).map(|n| (0..n % 7).map(|k| n * k).collect()).collect();
    writer.create_ragged("ragged/runs", &[50], &runs)?;
    expected.arrays.push(json!({ "path": "ragged/runs", "shape": [50], "runs": runs }));
    writer.create_strings::<&str>("ragged/none", &[0], &[])?;
    expected.arrays.push(json!({ "path": "ragged/none", "shape": [0], "strings": [] }));
    Ok(())
}

/// A catalog of several levels, with attributes small and large.
fn names_and_attributes(writer: &mut Writer) -> Outcome<()> {
    writer.create_group("empty group")?;
    for n in 0..300 {
        writer.create_group(&format!("groups/{n}/ä b"))?;
    }
    for (path, value) in
        [("", json!({ "title": "every feature" })), ("groups/7", json!({ "n": [1, null, -2.5] }))]
    {
        writer.set_attributes(path, value.as_object().ok_or("an object")?)?;
    }
    let large = json!({ "text": "long ".repeat(30_000) });
    writer.set_attributes("dtypes/3", large.as_object().ok_or("an object")?)?;
    Ok(())
}
