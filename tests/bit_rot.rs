//! Every single-bit flip and every truncation of a small file with all features gives an error or the right data through
//! every read call: never a panic, never wrong data. [`brickmap::Store::verify`] names each byte that has changed.
//!
//! The one read call that is left out is `view`, whose documentation says that it does not check.

mod everything;
mod forge;

use brickmap::{ArraySpec, Attributes, Backend, Codec, Dtype, Error, OpenOptions, Selection, Store, Writer};
use everything::{Outcome, Part, name, parts, read_part};
use forge::Contents;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

/// Where the extents start.
const DATA_START: usize = 16384;

/// A file, and what it holds.
struct Sample {
    file: Vec<u8>,
    contents: Contents,
}

/// Writes an array of items of any type, given as bytes, and notes what it holds.
fn write(
    writer: &mut Writer,
    contents: &mut Contents,
    path: &str,
    spec: ArraySpec,
    shape: &[u64],
    items: Vec<u8>,
) {
    writer.create_array(path, &spec).unwrap();
    writer.write_bytes(path, &Selection::all(), &items, brickmap::WriteOptions::new()).unwrap();
    contents.array(path, shape, items);
}

fn bytes<const N: usize>(count: i64, item: impl Fn(i64) -> [u8; N]) -> Vec<u8> {
    (0..count).flat_map(item).collect()
}

fn attributes(json: &str) -> Attributes {
    serde_json::from_str(json).unwrap()
}

/// What the writer writes: several commits with each kind of structure.
fn written() -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("written.brick");
    let mut contents = Contents::default();
    let mut writer = Store::create(&path).unwrap().writer().unwrap();
    let group = attributes(r#"{"title":"bit rot","scale":[1,2.5]}"#);
    writer.create_group("empty/group").unwrap();
    contents.groups.extend(["empty", "empty/group"].map(str::to_owned));

    // Each codec, in an array whose edges cut chunks and blocks.
    let shape = [13, 11];
    let smooth = bytes(13 * 11, |n| (1000 + 3 * n + n % 4).to_le_bytes());
    let codecs = [
        ("auto", Codec::default()),
        ("zstd", Codec::Zstd { level: 3 }),
        ("planes", Codec::Planes { level: 1 }),
        ("delta", Codec::Delta { stride: 1, level: 1 }),
    ];
    for (path, codec) in codecs {
        let spec = ArraySpec::new(Dtype::I64, shape).chunks([8, 8]).blocks([4, 5]).codec(codec);
        write(&mut writer, &mut contents, path, spec, &shape, smooth.clone());
    }
    // Commits that leave free space.
    for round in 0..2 {
        writer.commit().unwrap();
        writer.write_bytes("zstd", &Selection::all(), &smooth, brickmap::WriteOptions::new()).unwrap();
        writer.set_attributes("empty", &attributes(&format!(r#"{{"round":{round}}}"#))).unwrap();
    }
    contents.attributes.push(("empty".into(), r#"{"round":1}"#.into()));
    // An index of two levels, most chunks absent or constant.
    let items = bytes(300, |n| {
        if n < 100 {
            [0; 2]
        } else if n < 200 {
            [7, 0]
        } else {
            (n as u16 * 3).to_le_bytes()
        }
    });
    let spec = ArraySpec::new(Dtype::U16, [300]).chunks([4]).blocks([4]);
    write(&mut writer, &mut contents, "group/many", spec, &[300], items);
    contents.groups.push("group".into());
    // The raw layout: chunks with a gap between them, one cut by the edge.
    let spec = ArraySpec::new(Dtype::F64, [5, 3]).chunks([2, 3]).codec(Codec::Raw);
    write(
        &mut writer,
        &mut contents,
        "group/raw",
        spec,
        &[5, 3],
        bytes(15, |n| (n as f64 / 7.0).to_le_bytes()),
    );
    // One item, text, a structure.
    write(&mut writer, &mut contents, "one", ArraySpec::new(Dtype::F32, []), &[], vec![0, 0, 0xC0, 0x7F]);
    let spec = ArraySpec::new(Dtype::Bytes(20), [4]).chunks([3]).blocks([2]);
    write(
        &mut writer,
        &mut contents,
        "text",
        spec,
        &[4],
        bytes(4, |_| *b"twenty letters 0....")
            .iter()
            .enumerate()
            .map(|(n, it)| if *it == b'0' { n as u8 } else { *it })
            .collect(),
    );
    let dtype = Dtype::parse("[('a', '<f4'), ('b', '>i2', (3,))]").unwrap();
    write(&mut writer, &mut contents, "structure", ArraySpec::new(dtype, [3]), &[3], (0..30).collect());
    // Ragged arrays.
    let strings = ["brick", "", "é", "map"];
    writer.create_strings("strings", &[2, 2], &strings).unwrap();
    contents.strings.push(("strings".into(), strings.map(str::to_owned).to_vec()));
    let runs = vec![vec![1.5f32, 2.5], vec![], vec![-0.0]];
    writer.create_ragged("runs", &[3], &runs).unwrap();
    contents.runs.push(("runs".into(), runs));
    // Attributes of the store, and some that stand in a blob.
    writer.set_attributes("", &group).unwrap();
    contents.attributes.push((String::new(), serde_json::to_string(&group).unwrap()));
    let long = format!(r#"{{"long":"{}"}}"#, "x".repeat(1100));
    writer.set_attributes("auto", &attributes(&long)).unwrap();
    contents.attributes.push(("auto".into(), long));
    writer.commit().unwrap();
    Sample { file: std::fs::read(&path).unwrap(), contents }
}

/// What SPEC.md allows beyond that: pieces, blocks of each coding in one array, planes that are constant or raw.
fn forged() -> Sample {
    let (file, contents) = forge::sample();
    Sample { file, contents }
}

fn options() -> OpenOptions {
    OpenOptions::new().threads(1).cache_bytes(0)
}

/// Reads some parts, and panics if one is read wrong. Returns those that failed; all if the store does not open.
fn read(
    store: brickmap::Result<Store>,
    contents: &Contents,
    parts: &[Part],
    change: &dyn Fn() -> String,
) -> Vec<Part> {
    let Ok(store) = store else { return parts.to_vec() };
    let snapshot = store.snapshot();
    let mut failed = parts.to_vec();
    failed.retain(|&part| match read_part(&snapshot, contents, part) {
        Outcome::Right => false,
        Outcome::Failed(error) => {
            assert!(!error.to_string().is_empty());
            true
        }
        Outcome::Wrong(what) => panic!("{}: {}: wrong {what}", change(), name(part, contents)),
    });
    failed
}

/// The samples, with what [`Sample::failing`] says of each. Made once: all tests need them.
static WRITTEN: LazyLock<(Sample, Vec<Vec<Part>>)> = LazyLock::new(|| written().with_failing());
static FORGED: LazyLock<(Sample, Vec<Vec<Part>>)> = LazyLock::new(|| forged().with_failing());

fn samples() -> [&'static Sample; 2] {
    [&WRITTEN.0, &FORGED.0]
}

impl Sample {
    fn with_failing(self) -> (Sample, Vec<Vec<Part>>) {
        let all = self.all_parts();
        assert_eq!(read(options().from_bytes(self.file.clone()), &self.contents, &all, &String::new), []);
        let failing = self.failing();
        (self, failing)
    }

    fn all_parts(&self) -> Vec<Part> {
        parts(&self.contents)
    }

    /// For each byte behind the first pages the parts that cannot be read when all of it is changed.
    fn failing(&self) -> Vec<Vec<Part>> {
        let all = self.all_parts();
        let bytes = DATA_START..self.file.len();
        bytes.map(|at| self.read_changed(at, !self.file[at], &all)).collect()
    }

    /// Reads the file with another byte at `at`.
    fn read_changed(&self, at: usize, byte: u8, parts: &[Part]) -> Vec<Part> {
        let mut file = self.file.clone();
        file[at] = byte;
        read(options().from_bytes(file), &self.contents, parts, &|| format!("byte {at} is {byte:#x}"))
    }

    /// Reads the file with every other value of each byte that flips one bit, and with 0x00 and 0xFF. A change of some
    /// bits of a byte is seen by the reads that see a change of all of them.
    fn check_every_change(&self, failing: &[Vec<Part>]) {
        let mut seen = 0;
        for (at, failing) in (DATA_START..).zip(failing) {
            let byte = self.file[at];
            let flips = (0..8)
                .map(|bit| byte ^ 1 << bit)
                .chain([0x00, 0xFF].into_iter().filter(|&other| other != byte));
            for changed in flips {
                let failed = self.read_changed(at, changed, failing);
                assert_eq!(failed, *failing, "byte {at} is {changed:#x}");
            }
            seen += usize::from(!failing.is_empty());
        }
        assert!(seen > 4000, "{seen} bytes matter");
    }
}

#[test]
fn fault_8_no_flip_in_a_written_file_gives_wrong_data() {
    WRITTEN.0.check_every_change(&WRITTEN.1);
}

#[test]
fn fault_8_no_flip_in_a_forged_file_gives_wrong_data() {
    FORGED.0.check_every_change(&FORGED.1);
}

/// The first four pages hold each record twice: a flip in one copy changes nothing.
#[test]
fn fault_8_no_flip_in_the_first_pages_is_seen() {
    let sample = &WRITTEN.0;
    let due = Store::from_bytes(sample.file.clone()).unwrap();
    let mut file = sample.file.clone();
    for at in 0..DATA_START {
        let byte = file[at];
        let flips = (0..8).map(|bit| byte ^ 1 << bit).chain([0x00, 0xFF]);
        for changed in flips {
            file[at] = changed;
            let store = options().from_bytes(file.clone()).unwrap();
            assert_eq!(store.file_id(), due.file_id());
            assert_eq!(store.snapshot().generation(), due.snapshot().generation());
            assert_eq!(store.snapshot().file_bytes(), due.snapshot().file_bytes());
        }
        if at % 64 == 8 {
            let parts = sample.all_parts();
            assert_eq!(read(options().from_bytes(file.clone()), &sample.contents, &parts, &String::new), []);
        }
        file[at] = byte;
    }
}

/// Flips in both copies of a record, at the same place and at others.
#[test]
fn fault_8_flips_in_both_copies_of_a_record_are_refused() {
    let sample = &WRITTEN.0;
    for page in 0..4 {
        for at in (0..2048).step_by(13) {
            let mut file = sample.file.clone();
            file[page * 4096 + at] ^= 1;
            file[page * 4096 + 2048 + (at * 7) % 2048] ^= 0x80;
            assert!(options().from_bytes(file).is_err(), "page {page}, byte {at}");
        }
    }
}

/// The same through a file: each byte with one bit flipped.
fn flips_in_a_file(backend: Backend) {
    for (sample, failing) in [&*WRITTEN, &*FORGED] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rot.brick");
        std::fs::write(&path, &sample.file).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for (at, failing) in (DATA_START..).zip(failing) {
            let byte = sample.file[at];
            file.write_all_at(&[byte ^ 1 << (at % 8)], at as u64).unwrap();
            let change = || format!("a flip in byte {at}");
            let failed = read(options().backend(backend).open(&path), &sample.contents, failing, &change);
            assert_eq!(failed, *failing, "{}", change());
            file.write_all_at(&[byte], at as u64).unwrap();
        }
        let parts = sample.all_parts();
        assert_eq!(read(options().backend(backend).open(&path), &sample.contents, &parts, &String::new), []);
    }
}

#[test]
fn fault_8_no_flip_in_a_mapped_file_gives_wrong_data() {
    flips_in_a_file(Backend::Mmap);
}

#[test]
fn fault_8_no_flip_in_a_file_that_is_read_gives_wrong_data() {
    flips_in_a_file(Backend::Pread);
}

#[test]
fn fault_9_every_truncation_is_refused() {
    for sample in samples() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("short.brick");
        std::fs::write(&path, &sample.file).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for len in (0..sample.file.len()).rev() {
            assert!(options().from_bytes(sample.file[..len].to_vec()).is_err(), "{len} bytes");
            file.set_len(len as u64).unwrap();
            for backend in [Backend::Mmap, Backend::Pread] {
                assert!(options().backend(backend).open(&path).is_err(), "{len} bytes, {backend:?}");
            }
        }
    }
}

/// What a writer left that died before its commit.
#[test]
fn fault_9_bytes_behind_the_logical_end_are_ignored() {
    for sample in samples() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.brick");
        for tail in [1, 63, 64, 4096, 100_000] {
            let mut file = sample.file.clone();
            file.extend((0..tail).map(|n| (n * 31 + n / 256) as u8));
            std::fs::write(&path, &file).unwrap();
            let stores = [
                options().from_bytes(file),
                options().backend(Backend::Mmap).open(&path),
                options().backend(Backend::Pread).open(&path),
            ];
            for store in stores {
                assert_eq!(
                    read(store, &sample.contents, &sample.all_parts(), &String::new),
                    [],
                    "{tail} bytes"
                );
            }
        }
    }
}

/// Only in free space is there something to change that `verify` has no word for.
#[test]
fn fault_8_verify_names_every_flip() {
    for sample in samples() {
        let report = options().from_bytes(sample.file.clone()).unwrap().verify().unwrap();
        assert_eq!(report.findings, []);
        let mut unnamed = 0;
        let mut file = sample.file.clone();
        for at in 0..file.len() {
            file[at] ^= 1 << (at % 8);
            let named = match options().from_bytes(file.clone()).and_then(|store| store.verify()) {
                Ok(report) => !report.is_clean(),
                Err(_) => true,
            };
            unnamed += u64::from(!named);
            file[at] = sample.file[at];
        }
        assert_eq!(unnamed, report.free_bytes);
    }
}

#[test]
fn a_lost_root_page_is_refused_unless_what_is_left_will_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    for generation in 2..=5u32 {
        if generation == 2 {
            writer.create_array("a", &ArraySpec::new(Dtype::U32, [100])).unwrap();
        }
        writer.write("a", &Selection::all(), &[generation; 100]).unwrap();
        writer.commit().unwrap();
    }
    drop((writer, store));
    let whole = std::fs::read(&path).unwrap();
    let recovering = || OpenOptions::new().recover(true);
    for slot in 0..3 {
        let page = 4096 * (slot + 1);
        let lost = u64::from_le_bytes(whole[page + 8..page + 16].try_into().unwrap());
        let mut bytes = whole.clone();
        bytes[page..page + 4096].fill(0xA5);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Store::open(&path), Err(Error::Corrupt { .. })), "page {slot}");
        let snapshot = recovering().open(&path).unwrap().snapshot();
        assert_eq!(snapshot.generation(), if lost == 5 { 4 } else { 5 });
        assert!(matches!(recovering().write(true).open(&path), Err(Error::InvalidArgument { .. })));
    }
    let mut bytes = whole;
    bytes[4096..4 * 4096].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(recovering().open(&path), Err(Error::Corrupt { .. })));
}
