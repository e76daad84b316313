//! The nine tasks of reading slices out of a float32 volume, timed: `slices VOLUME.npy DIRECTORY [--threads N]
//! [--seconds S]`. Prints one JSON line: milliseconds per task (median), by cache setting.
//!
//! `benches/slices.py` makes the volume and runs this beside python-blosc2.

use brickmap::{ArraySpec, Dtype, OpenOptions, Selection};
use std::path::Path;
use std::time::{Duration, Instant};

const TASKS: [(&str, &str); 9] = [
    ("full", ":"),
    ("box200x400x400", "50:250, 51:451, 57:457"),
    ("box128", "101:229, 101:229, 101:229"),
    ("box32", "133:165, 133:165, 133:165"),
    ("box10", "101:111, 101:111, 101:111"),
    ("plane_z", "150"),
    ("plane_x", ":, :, 200"),
    ("line_z", ":, 200, 200"),
    ("one", "150, 200, 200"),
];
const CHUNKS: [u64; 3] = [64, 256, 256];
const BLOCKS: [u64; 3] = [32, 32, 64];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: slices VOLUME.npy DIRECTORY [--threads N] [--seconds S] [--codec balanced|fast|small|planes] [--only TASK]";
    let (volume, directory) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let (mut threads, mut seconds, mut codec, mut only) = (2, 1.0, String::from("balanced"), String::new());
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(usage)?;
        match option.as_str() {
            "--threads" => threads = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--codec" => codec = value,
            "--only" => only = value,
            _ => return Err(usage.into()),
        }
    }
    let budget = Duration::from_secs_f64(seconds);
    let (shape, items) = brickmap_benches::read_npy_f32(Path::new(&volume))?;
    let path = Path::new(&directory).join("slices.brick");
    let spec = ArraySpec::new(Dtype::F32, shape)
        .chunks(CHUNKS)
        .blocks(BLOCKS)
        .codec(brickmap_benches::codec(&codec)?);
    let options = OpenOptions::new().threads(threads);
    let mut write = Vec::new();
    for _ in 0..3 {
        let _ = std::fs::remove_file(&path);
        let start = Instant::now();
        let mut writer = options.create(&path)?.writer()?;
        writer.create_array("volume", &spec)?;
        writer.write("volume", &Selection::all(), &items)?;
        writer.commit()?;
        write.push(start.elapsed());
    }
    write.sort();
    let mut report = serde_json::Map::new();
    report.insert("write".into(), milliseconds(write[1]).into());
    report.insert("bytes".into(), std::fs::metadata(&path)?.len().into());
    for (name, cache) in [("uncached", 0), ("default", 64 << 20)] {
        let array = options.clone().cache_bytes(cache).open(&path)?.array("volume")?;
        let mut times = serde_json::Map::new();
        for (task, text) in TASKS.into_iter().filter(|(task, _)| task.starts_with(&only)) {
            let selection: Selection = text.parse()?;
            let time = median(budget, || {
                array.read::<f32>(&selection).map(|items| drop(std::hint::black_box(items)))
            })?;
            times.insert(task.into(), milliseconds(time).into());
        }
        if array.read::<f32>(&Selection::all())? != items {
            return Err("the volume did not come back as it was".into());
        }
        report.insert(name.into(), times.into());
    }
    println!("{}", serde_json::Value::Object(report));
    std::fs::remove_file(&path)?;
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The median time of `work`, called for about `budget` and at least three times after a first call.
fn median(budget: Duration, mut work: impl FnMut() -> brickmap::Result<()>) -> brickmap::Result<Duration> {
    work()?;
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 3 || (start.elapsed() < budget && times.len() < 100_000) {
        let once = Instant::now();
        work()?;
        times.push(once.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}
