//! From how much on a second thread pays: `threads VOLUME.npy DIRECTORY`.
//!
//! Reads more and more blocks of a float32 volume with one thread and with two, the block cache off, and prints the median
//! times. `array/read.rs` takes its threshold from here.

use brickmap::{ArraySpec, Codec, Dtype, OpenOptions, Selection};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: threads VOLUME.npy DIRECTORY";
    let (volume, directory) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let (shape, items) = brickmap_benches::read_npy_f32(Path::new(&volume))?;
    let path = Path::new(&directory).join("threads.brick");
    let _ = std::fs::remove_file(&path);
    let spec = ArraySpec::new(Dtype::F32, shape).chunks([64, 256, 256]).blocks([32, 32, 64]);
    let mut writer = OpenOptions::new().create(&path)?.writer()?;
    writer.create_array("volume", &spec.codec(Codec::Planes { level: 1 }))?;
    writer.write("volume", &Selection::all(), &items)?;
    writer.commit()?;
    println!("{:>8}{:>12}{:>14}{:>14}{:>10}", "blocks", "KiB", "1 thread us", "2 threads us", "ratio");
    let open = |threads| OpenOptions::new().cache_bytes(0).threads(threads).open(&path)?.array("volume");
    let (one, two) = (open(1)?, open(2)?);
    for (z, y, x) in
        [(1, 1, 1), (1, 1, 2), (1, 1, 4), (1, 2, 4), (1, 4, 4), (1, 8, 4), (2, 8, 4), (2, 8, 8), (4, 8, 8)]
    {
        let selection = Selection::from((0..32 * z, 0..32 * y, 0..64 * x));
        let time = |array: &brickmap::Array| -> brickmap::Result<f64> {
            let (mut times, start) = (Vec::new(), Instant::now());
            while start.elapsed() < Duration::from_millis(300) {
                let once = Instant::now();
                std::hint::black_box(array.read::<f32>(&selection)?);
                times.push(once.elapsed());
            }
            times.sort();
            Ok(times[times.len() / 2].as_secs_f64() * 1e6)
        };
        let (alone, both) = (time(&one)?, time(&two)?);
        let blocks = z * y * x;
        println!("{blocks:>8}{:>12}{alone:>14.1}{both:>14.1}{:>10.2}", blocks * 256, alone / both);
    }
    std::fs::remove_file(&path)?;
    Ok(())
}
