//! Writes the seeds of fuzz/corpus/read_bytes: small stores that have every codec, dtype and layout between them, and
//! some that are damaged. From the root: `cargo run --manifest-path fuzz/Cargo.toml --example seeds`.

use brickmap::{
    ArraySpec, Attributes, Codec, Dtype, Durability, OpenOptions, Result, Selection, Store, Writer,
};
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/read_bytes"));
    std::fs::create_dir_all(&corpus).expect("the corpus can be made");
    write(&corpus, "empty", |_| Ok(()))?;
    write(&corpus, "dtypes", dtypes)?;
    write(&corpus, "codecs", codecs)?;
    write(&corpus, "raw", raw)?;
    write(&corpus, "ragged", ragged)?;
    write(&corpus, "catalog", catalog)?;
    write(&corpus, "chunks", chunks)?;
    deferred(&corpus.join("deferred"))?;
    damage(&corpus, "codecs", "cut_off", |bytes| bytes.truncate(10_000));
    damage(&corpus, "ragged", "one_bit", |bytes| {
        let at = bytes.len() - 100;
        bytes[at] ^= 4;
    });
    Ok(())
}

/// Makes the seed `name` and writes to it in two commits, so that there is an older root, and free space.
fn write(corpus: &Path, name: &str, fill: impl Fn(&mut Writer) -> Result<()>) -> Result<()> {
    let path = corpus.join(name);
    if path.exists() {
        std::fs::remove_file(&path).expect("the old seed can be removed");
    }
    let mut writer = Store::create(&path)?.writer()?;
    fill(&mut writer)?;
    writer.commit()?;
    writer.set_attributes("", &Attributes::from_iter([("seed".to_owned(), name.into())]))?;
    writer.commit()?;
    Ok(())
}

/// A store whose last commits nobody waited for.
fn deferred(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_file(path).expect("the old seed can be removed");
    }
    let store = OpenOptions::new().durability(Durability::Deferred).create(path)?;
    let mut writer = store.writer()?;
    codecs(&mut writer)?;
    writer.commit()?;
    raw(&mut writer)?;
    writer.commit()?;
    // Else they would be waited for now.
    std::mem::forget((writer, store));
    Ok(())
}

/// Makes the seed `name` of the bytes of `whole`.
fn damage(corpus: &Path, whole: &str, name: &str, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(corpus.join(whole)).expect("the seed was written");
    change(&mut bytes);
    std::fs::write(corpus.join(name), bytes).expect("a seed can be written");
}

/// Bytes that repeat here and there, so that every coding has something to do.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * n / 7 % 251) as u8).collect()
}

fn write_pattern(writer: &mut Writer, path: &str, spec: &ArraySpec, bytes: usize) -> Result<()> {
    writer.create_array(path, spec)?;
    writer.write_bytes(path, &Selection::all(), &pattern(bytes), Default::default())
}

fn dtypes(writer: &mut Writer) -> Result<()> {
    let notations = [
        "i1",
        "<i2",
        "<i4",
        "<i8",
        "u1",
        "<u2",
        "<u4",
        "<u8",
        "<f2",
        "<f4",
        "<f8",
        "<c8",
        "<c16",
        "<M8[25us]",
        "<m8[D]",
        "S3",
        "<U2",
        "V5",
        "[('a', '<f4'), ('b', '>i2', (3,))]",
    ];
    for (n, notation) in notations.into_iter().enumerate() {
        let dtype = Dtype::parse(notation)?;
        let bytes = 6 * dtype.itemsize();
        write_pattern(writer, &format!("a{n}"), &ArraySpec::new(dtype, [2, 3]), bytes)?;
    }
    writer.create_array("bool", &ArraySpec::new(Dtype::Bool, [5]).fill_value(1u8))?;
    writer.write("bool", &Selection::from(1..3), &[0u8, 1])?;
    write_pattern(writer, "scalar", &ArraySpec::new(Dtype::F64, []), 8)
}

fn codecs(writer: &mut Writer) -> Result<()> {
    let codecs = [
        ("auto", Codec::default()),
        ("zstd", Codec::Zstd { level: 1 }),
        ("planes", Codec::Planes { level: 1 }),
        ("delta", Codec::Delta { stride: 1, level: 1 }),
        ("rows", Codec::Delta { stride: 8, level: 1 }),
    ];
    let ramp: Vec<i32> = (0..128).map(|n| n * n / 3 - 700).collect();
    for (name, codec) in codecs {
        writer.create_array(name, &ArraySpec::new(Dtype::I32, [16, 8]).codec(codec).blocks([8, 8]))?;
        writer.write(name, &Selection::all(), &ramp)?;
    }
    Ok(())
}

fn raw(writer: &mut Writer) -> Result<()> {
    let spec = ArraySpec::new(Dtype::F32, [10, 8]).codec(Codec::Raw).chunks([4, 8]).fill_value(1.5f32);
    write_pattern(writer, "whole", &spec, 10 * 8 * 4)?;
    writer.create_array("part", &spec)?;
    writer.write("part", &Selection::from((2..7, 1..4)), &[0.25f32; 15])
}

fn ragged(writer: &mut Writer) -> Result<()> {
    writer.create_strings("names", &[2, 3], &["", "one", "zwölf", "三", "🧱", "and a longer one"])?;
    writer.create_ragged::<f64, _>("runs", &[3], &[&[1.0, 2.0][..], &[], &[3.0]])?;
    writer.create_ragged::<i32, _>("none", &[0], &[] as &[&[i32]])
}

fn catalog(writer: &mut Writer) -> Result<()> {
    // Enough names that the tree has inner pages, and attributes that do not fit in one.
    for n in 0..30 {
        writer.create_group(&format!(
            "a group with a long name, so that a page of the tree holds few of them: number {n:02}"
        ))?;
    }
    writer.create_array("group/array", &ArraySpec::new(Dtype::U8, [0, 3]))?;
    let long: String = (0..1500).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    for (path, value) in [("", "of the store"), ("group", &long), ("group/array", "of an array")] {
        writer.set_attributes(path, &Attributes::from_iter([("what".to_owned(), value.into())]))?;
    }
    Ok(())
}

fn chunks(writer: &mut Writer) -> Result<()> {
    // Two levels of index pages, with chunks that are absent, constant and clipped, in three dimensions.
    let spec = ArraySpec::new(Dtype::I16, [40, 9, 7]).chunks([2, 4, 4]).blocks([1, 4, 2]).fill_value(-1i16);
    writer.create_array("sparse", &spec)?;
    for row in [0i64, 17, 39] {
        let items: Vec<i16> = (0..63).map(|n| n * 3).collect();
        writer.write("sparse", &Selection::from(row), &items)?;
    }
    writer.write("sparse", &Selection::from(4..8), &[7i16; 4 * 63])?;
    writer.create_array("huge", &ArraySpec::new(Dtype::U8, [1 << 40, 1 << 20]).chunks([64, 64]))?;
    writer.write("huge", &Selection::from((123_456_789_012i64, 100..110)), &[1u8, 2, 3, 4, 5, 6, 7, 8, 9, 10])
}
