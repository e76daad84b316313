//! What changes to arrays of a float32 volume cost, one round of one task at a time:
//! `changes volume|boxes|append|first VOLUME.npy DIRECTORY [--threads N] [--durability deferred|full] [--codec NAME]
//! [--chunks 64,256,256] [--blocks 32,32,64] [--places 1,2,3;4,5,6] [--count N] [--commit each|end]`.
//! Prints one JSON line: milliseconds, and bytes given to the system.
//!
//! `benches/changes.py` makes the volume and runs this beside python-blosc2.

use brickmap::{ArraySpec, Axis, Dtype, Durability, OpenOptions, Selection, Store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: changes volume|boxes|append|first VOLUME.npy DIRECTORY [--threads N] [--durability deferred|full] \
                     [--codec balanced|fast|small|planes] [--chunks LENGTHS] [--blocks LENGTHS] [--places POSITIONS] \
                     [--count N] [--commit each|end]";
/// Planes of the volume that the array of `boxes` has.
const PLANES: u64 = 50;
/// Length of a box.
const BOX: u64 = 10;
/// The items of a box are those of the volume this many planes further.
const FURTHER: u64 = 100;
/// Items of a row of `append`.
const ROW: usize = 4096;

struct Task {
    path: PathBuf,
    options: OpenOptions,
    shape: Vec<u64>,
    items: Vec<f32>,
    codec: String,
    chunks: Option<Vec<u64>>,
    blocks: Option<Vec<u64>>,
    places: Vec<Vec<u64>>,
    count: usize,
    each: bool,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or(USAGE);
    let (name, volume, directory) = (next()?, next()?, next()?);
    let (shape, items) = brickmap_benches::read_npy_f32(Path::new(&volume))?;
    let mut task = Task {
        path: Path::new(&directory).join("changes.brick"),
        options: OpenOptions::new().durability(Durability::Deferred).write(true),
        shape,
        items,
        codec: "planes".into(),
        chunks: None,
        blocks: None,
        places: Vec::new(),
        count: 20_000,
        each: true,
    };
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match (option.as_str(), value.as_str()) {
            ("--threads", _) => task.options = task.options.threads(value.parse()?),
            ("--durability", "deferred") => {}
            ("--durability", "full") => task.options = task.options.durability(Durability::Full),
            ("--codec", _) => task.codec = value,
            ("--chunks", _) => task.chunks = Some(lengths(&value)?),
            ("--blocks", _) => task.blocks = Some(lengths(&value)?),
            ("--places", _) => task.places = value.split(';').map(lengths).collect::<Outcome<_>>()?,
            ("--count", _) => task.count = value.parse()?,
            ("--commit", "each" | "end") => task.each = value == "each",
            _ => return Err(USAGE.into()),
        }
    }
    let _ = std::fs::remove_file(&task.path);
    let report = match name.as_str() {
        "volume" => task.volume(),
        "boxes" => task.boxes(),
        "append" => task.append(),
        "first" => task.first(),
        _ => Err(USAGE.into()),
    }?;
    println!("{report}");
    std::fs::remove_file(&task.path)?;
    Ok(())
}

impl Task {
    fn spec(&self, shape: &[u64]) -> Outcome<ArraySpec> {
        let mut spec = ArraySpec::new(Dtype::F32, shape).codec(brickmap_benches::codec(&self.codec)?);
        if let Some(chunks) = &self.chunks {
            spec = spec.chunks(chunks.clone());
        }
        if let Some(blocks) = &self.blocks {
            spec = spec.blocks(blocks.clone());
        }
        Ok(spec)
    }

    /// The first write of the volume, then three times another volume over it in the opened file.
    fn volume(&self) -> Outcome<Value> {
        let spec = self.spec(&self.shape)?;
        let before = bytes_written();
        let start = Instant::now();
        let store = self.options.create(&self.path)?;
        let mut writer = store.writer()?;
        writer.create_array("a", &spec)?;
        writer.write("a", &Selection::all(), &self.items)?;
        let snapshot = writer.commit()?;
        let first = milliseconds(start);
        let first_wrote = bytes_written() - before;
        let array = snapshot.array("a")?;
        let (stored, chunks, blocks) =
            (array.stored_bytes(), array.chunks().to_vec(), array.blocks().to_vec());
        writer.sync()?;
        drop((array, snapshot, writer, store));
        let file = self.file_bytes()?;

        let other: Vec<f32> = self.items.iter().map(|item| -item).collect();
        let (mut over, mut wrote) = (Vec::new(), Vec::new());
        for items in [&other, &self.items, &other] {
            // Opened anew each time: a handle keeps the generation that it opened, and so the space of it.
            let store = self.options.open(&self.path)?;
            let (before, start) = (bytes_written(), Instant::now());
            let mut writer = store.writer()?;
            writer.write("a", &Selection::all(), items)?;
            writer.commit()?;
            over.push(milliseconds(start));
            wrote.push(bytes_written() - before);
            writer.sync()?;
            drop(writer);
            self.check(&store, items)?;
        }
        Ok(json!({
            "first": first, "first_wrote": first_wrote, "stored": stored, "file": file, "chunks": chunks, "blocks": blocks,
            "over": over, "wrote": wrote, "file_after": self.file_bytes()?,
        }))
    }

    /// The first write of the volume alone, `count` times, each time into a new file: for a profile.
    fn first(&self) -> Outcome<Value> {
        let spec = self.spec(&self.shape)?;
        let mut times = Vec::new();
        for _ in 0..self.count {
            let _ = std::fs::remove_file(&self.path);
            let start = Instant::now();
            let mut writer = self.options.create(&self.path)?.writer()?;
            writer.create_array("a", &spec)?;
            writer.write("a", &Selection::all(), &self.items)?;
            writer.commit()?;
            times.push(milliseconds(start));
        }
        Ok(json!({ "times": times }))
    }

    /// Boxes of items at `places`, a commit each, in a file that stays open.
    fn boxes(&self) -> Outcome<Value> {
        let plane = self.items.len() / self.shape[0] as usize;
        let shape = [PLANES, self.shape[1], self.shape[2]];
        let mut expected = self.items[..plane * PLANES as usize].to_vec();
        let store = self.options.create(&self.path)?;
        let mut writer = store.writer()?;
        writer.create_array("a", &self.spec(&shape)?)?;
        writer.write("a", &Selection::all(), &expected)?;
        let array = writer.commit()?.array("a")?;
        let (stored, chunks, blocks) =
            (array.stored_bytes(), array.chunks().to_vec(), array.blocks().to_vec());
        drop(array);
        writer.sync()?;

        let (mut times, before) = (Vec::new(), bytes_written());
        let mut spent = 0;
        for place in &self.places {
            let selection = Selection::new(place.iter().map(|&at| Axis::from(at as i64..(at + BOX) as i64)));
            let mut items = Vec::new();
            for z in place[0]..place[0] + BOX {
                for y in place[1]..place[1] + BOX {
                    let at = |z: u64| ((z * shape[1] + y) * shape[2] + place[2]) as usize;
                    let row = &self.items[at(z + FURTHER)..][..BOX as usize];
                    expected[at(z)..][..BOX as usize].copy_from_slice(row);
                    items.extend_from_slice(row);
                }
            }
            let start = Instant::now();
            writer.write("a", &selection, &items)?;
            writer.commit()?;
            times.push(milliseconds(start));
            spent = bytes_written() - before;
        }
        drop(writer);
        self.check(&store, &expected)?;
        Ok(json!({
            "times": times, "wrote": spent / self.places.len() as u64, "stored": stored, "chunks": chunks,
            "blocks": blocks, "file": self.file_bytes()?,
        }))
    }

    /// Rows one by one, each a chunk: milliseconds of each tenth.
    fn append(&self) -> Outcome<Value> {
        let rows: Vec<&[f32]> = self.items.chunks_exact(ROW).cycle().take(self.count).collect();
        let spec = self.spec(&[0, ROW as u64])?;
        let before = bytes_written();
        let store = self.options.create(&self.path)?;
        let mut writer = store.writer()?;
        writer.create_array("a", &spec)?;
        let (mut times, mut start, mut done) = (Vec::new(), Instant::now(), 0);
        for tenth in 1..=10 {
            for row in &rows[done..self.count * tenth / 10] {
                writer.append("a", 0, row)?;
                done += 1;
                if self.each || done == self.count {
                    writer.commit()?;
                }
            }
            times.push(milliseconds(start));
            start = Instant::now();
        }
        let wrote = bytes_written() - before;
        drop(writer);
        let stored = store.refresh()?.array("a")?.stored_bytes();
        self.check(&store, &rows.concat())?;
        Ok(json!({ "times": times, "wrote": wrote, "stored": stored, "file": self.file_bytes()? }))
    }

    fn file_bytes(&self) -> Outcome<u64> {
        Ok(std::fs::metadata(&self.path)?.len())
    }

    fn check(&self, store: &Store, items: &[f32]) -> Outcome<()> {
        if store.refresh()?.array("a")?.read::<f32>(&Selection::all())? == items {
            Ok(())
        } else {
            Err("the array is not as it was written".into())
        }
    }
}

fn lengths(text: &str) -> Outcome<Vec<u64>> {
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Bytes that this process has given the system to write; 0 where that is not known.
fn bytes_written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or(0)
}
