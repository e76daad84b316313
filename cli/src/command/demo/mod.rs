//! `brickmap demo`: the main work on data of a real size, with its numbers.

mod follow;
mod generate;
mod slices;

pub(crate) use self::follow::{FollowArguments, follow};

use self::follow::Followed;
use self::generate::Scale;
use self::slices::Timing;
use super::{output, print_json};
use crate::Common;
use crate::failure::Failure;
use crate::output::Unfinished;
use crate::progress::Bar;
use crate::terminal::{self, Align};
use brickmap::{ArraySpec, Dtype, Element, OpenOptions, Report, Selection, Store, WriteOptions};
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VOLUME: &str = "density";

/// Show what a store does: write, read slices, follow a writer, verify
///
/// Makes a noisy float32 volume of 300 x 512 x 512 items and a mesh of 4.9 million tetrahedra, writes both to one file,
/// reads parts and compares each with the data in memory, starts a second process that follows a writer and checks that no
/// read mixes two commits, and verifies the file. Takes less than a minute, 1 GB of memory and 1 GB of disk, and removes
/// its files at the end.
#[derive(Args)]
#[command(after_help = "Examples:\n  brickmap demo\n  brickmap demo --dir /scratch --keep")]
pub(crate) struct Arguments {
    /// Make the demo's folder in this one instead of the system's for temporary files
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Leave the file, to look into it
    #[arg(long)]
    keep: bool,

    /// Small data, for tests
    #[arg(long, hide = true)]
    small: bool,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let made = tempfile::Builder::new().prefix("brickmap-demo-").tempdir_in(&parent);
    let directory =
        made.map_err(|_| Failure::usage(format!("cannot make a folder in '{}'", parent.display())))?;
    let unfinished = Unfinished::new(directory.path().to_path_buf());
    let scale = if arguments.small { Scale::SMALL } else { Scale::FULL };
    let path = directory.path().join("demo.brick");
    let mut demo = Demo { scale, common: arguments.common, report: Map::new() };
    let start = Instant::now();
    demo.run(&path)?;
    let seconds = start.elapsed().as_secs_f64();
    if arguments.keep {
        let _ = directory.keep();
        demo.report.insert("file".into(), json!(path.display().to_string()));
        demo.say(&format!("All is as it should be. {seconds:.1} s in all. The file is {}", path.display()))?;
    } else {
        demo.say(&format!("All is as it should be. {seconds:.1} s in all."))?;
    }
    drop(unfinished);
    demo.report.insert("seconds".into(), json!(seconds));
    if arguments.common.json { print_json(&Value::Object(demo.report)) } else { Ok(()) }
}

/// A demo under way.
struct Demo {
    scale: Scale,
    common: Common,
    /// The numbers, for programs.
    report: Map<String, Value>,
}

/// An array, or some, that were written in one commit.
struct Written {
    what: String,
    bytes: u64,
    stored: u64,
    time: Duration,
}

impl Demo {
    fn run(&mut self, path: &Path) -> Result<(), Failure> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        self.say(&format!("{}, {}\n", path.display(), terminal::count(threads as u64, "thread")))?;
        let start = Instant::now();
        let volume = generate::volume(self.scale.volume);
        let mesh = generate::mesh(self.scale.points);
        self.say(&format!("Made the data in {}.\n", terminal::time(start.elapsed())))?;

        let store = Store::create(path)?;
        let written = [self.write_volume(&store, &volume)?, self.write_mesh(&store, &mesh)?];
        drop(store);
        self.show_written(&written)?;

        // Without the cache of blocks, so that each read decodes what it needs.
        let uncached = OpenOptions::new().cache_bytes(0).open(path)?;
        let mut timings = slices::read_all(&uncached.array(VOLUME)?, &volume)?;
        timings.push(slices::read_again(&Store::open(path)?.array(VOLUME)?, &volume)?);
        timings.push(read_mesh(&uncached, &mesh)?);
        drop((volume, mesh, uncached));
        self.show_read(&timings)?;

        let followed = follow::write_and_follow(path, self.scale)?;
        self.show_followed(&followed)?;
        if followed.mixed > 0 || followed.seen == 0 {
            return Err(Failure::failed("the reader process saw mixed generations, or none"));
        }

        let bar = Bar::new("Checking", self.common.quiet);
        let start = Instant::now();
        let report = Store::open(path)?.verify_with(Some(&|progress| bar.tell(progress)))?;
        let time = start.elapsed();
        drop(bar);
        self.show_verified(&report, time)?;
        match report.findings.first() {
            None => Ok(()),
            Some(finding) => Err(Failure::failed(format!("damaged: {} ({})", finding.what, finding.place))),
        }
    }

    fn write_volume(&self, store: &Store, volume: &[f32]) -> Result<Written, Failure> {
        let shape = self.scale.volume.map(|len| len as u64);
        let bar = Bar::new("Writing", self.common.quiet);
        let start = Instant::now();
        let mut writer = store.writer()?;
        writer.create_array(VOLUME, &ArraySpec::new(Dtype::F32, shape))?;
        let tell = |progress| bar.tell(progress);
        writer.write_with(VOLUME, &Selection::all(), volume, WriteOptions::new().progress(&tell))?;
        let snapshot = writer.commit()?;
        let time = start.elapsed();
        let array = snapshot.array(VOLUME)?;
        let what = format!("volume {} of float32", terminal::shape(&shape));
        Ok(Written { what, bytes: array.nbytes(), stored: array.stored_bytes(), time })
    }

    fn write_mesh(&self, store: &Store, mesh: &generate::Mesh) -> Result<Written, Failure> {
        let start = Instant::now();
        let mut writer = store.writer()?;
        let (points, cells) = (mesh.pressure.len() as u64, mesh.connectivity.len() as u64 / 4);
        let mut arrays = Vec::new();
        for (name, dtype, shape) in [
            ("mesh/Points", Dtype::F32, vec![points, 3]),
            ("mesh/Connectivity", Dtype::I64, vec![cells, 4]),
            ("mesh/PointData/pressure", Dtype::F32, vec![points]),
        ] {
            writer.create_array(name, &ArraySpec::new(dtype, shape))?;
            arrays.push(name);
        }
        writer.write("mesh/Points", &Selection::all(), &mesh.points)?;
        writer.write("mesh/Connectivity", &Selection::all(), &mesh.connectivity)?;
        writer.write("mesh/PointData/pressure", &Selection::all(), &mesh.pressure)?;
        let snapshot = writer.commit()?;
        let time = start.elapsed();
        let what = format!("mesh of {points} points, {cells} tetrahedra");
        let mut written = Written { what, bytes: 0, stored: 0, time };
        for name in arrays {
            let array = snapshot.array(name)?;
            written.bytes += array.nbytes();
            written.stored += array.stored_bytes();
        }
        Ok(written)
    }

    /// Prints a line, unless a program listens.
    fn say(&self, text: &str) -> Result<(), Failure> {
        if self.common.json || self.common.quiet {
            return Ok(());
        }
        let mut out = output();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Prints a table and an empty line, unless a program listens.
    fn show(&self, head: &[&str], columns: &[Align], rows: Vec<Vec<String>>) -> Result<(), Failure> {
        let head = head.iter().map(|&cell| cell.to_owned()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let mut text = Vec::new();
        terminal::table(&mut text, columns, &rows)?;
        self.say(&String::from_utf8_lossy(&text))
    }

    fn show_written(&mut self, written: &[Written]) -> Result<(), Failure> {
        use Align::{Left, Right};
        let rows = written.iter().map(|it| {
            vec![
                it.what.clone(),
                terminal::bytes(it.bytes),
                terminal::bytes(it.stored),
                terminal::ratio(it.bytes, it.stored),
                terminal::time(it.time),
                terminal::rate(it.bytes, it.time),
            ]
        });
        let head = ["Written, compressed and synced", "size", "stored", "ratio", "time", "rate"];
        self.show(&head, &[Left, Right, Right, Right, Right, Right], rows.collect())?;
        let entries = written.iter().map(|it| {
            json!({"what": it.what, "bytes": it.bytes, "stored_bytes": it.stored, "seconds": it.time.as_secs_f64()})
        });
        self.report.insert("written".into(), entries.collect());
        Ok(())
    }

    fn show_read(&mut self, timings: &[Timing]) -> Result<(), Failure> {
        use Align::{Left, Right};
        let rows = timings.iter().map(|it| {
            vec![
                it.what.to_owned(),
                terminal::bytes(it.bytes),
                terminal::time(it.time),
                terminal::rate(it.bytes, it.time),
                it.reads.to_string(),
            ]
        });
        let head = ["Read and compared", "size", "median time", "rate", "reads"];
        self.show(&head, &[Left, Right, Right, Right, Right], rows.collect())?;
        let entries = timings.iter().map(|it| {
            json!({"what": it.what, "bytes": it.bytes, "median_seconds": it.time.as_secs_f64(), "reads": it.reads})
        });
        self.report.insert("read".into(), entries.collect());
        Ok(())
    }

    fn show_followed(&mut self, followed: &Followed) -> Result<(), Failure> {
        let Followed { commits, seen, mixed, items, commit, delay } = followed;
        let bytes = terminal::bytes(items * size_of::<u32>() as u64);
        self.say(&format!(
            "A second process followed a writer: {commits} commits of {bytes} in {} each (median), {seen} generations\n\
             seen, {mixed} mixed; read and checked {} after the commit began (median).\n",
            terminal::time(*commit),
            terminal::time(*delay),
        ))?;
        let entry = json!({
            "commits": commits,
            "generations_seen": seen,
            "mixed": mixed,
            "bytes_per_commit": items * size_of::<u32>() as u64,
            "median_commit_seconds": commit.as_secs_f64(),
            "median_delay_seconds": delay.as_secs_f64(),
        });
        self.report.insert("followed".into(), entry);
        Ok(())
    }

    fn show_verified(&mut self, report: &Report, time: Duration) -> Result<(), Failure> {
        let bytes = report.live_bytes + report.free_bytes + report.tail_bytes;
        self.say(&format!(
            "Verified {} in {}: {} and {} in {}, {}.\n",
            terminal::bytes(bytes),
            terminal::time(time),
            terminal::count(report.chunks, "chunk"),
            terminal::count(report.blocks, "block"),
            terminal::count(report.arrays, "array"),
            if report.is_clean() { "no damage" } else { "damaged" },
        ))?;
        let entry = json!({"bytes": bytes, "seconds": time.as_secs_f64(), "findings": report.findings.len()});
        self.report.insert("verified".into(), entry);
        Ok(())
    }
}

/// Reads all arrays of the mesh.
fn read_mesh(store: &Store, mesh: &generate::Mesh) -> Result<Timing, Failure> {
    const READS: usize = 3;
    let mut times = Vec::new();
    for _ in 0..READS {
        let mut time = Duration::ZERO;
        time += read_and_compare(store, "mesh/Points", &mesh.points)?;
        time += read_and_compare(store, "mesh/Connectivity", &mesh.connectivity)?;
        time += read_and_compare(store, "mesh/PointData/pressure", &mesh.pressure)?;
        times.push(time);
    }
    times.sort_unstable();
    let bytes =
        size_of_val(&mesh.points[..]) + size_of_val(&mesh.connectivity[..]) + size_of_val(&mesh.pressure[..]);
    Ok(Timing { what: "the mesh", bytes: bytes as u64, time: times[READS / 2], reads: READS })
}

/// Reads a whole array, and says how long that took.
fn read_and_compare<T: Element + PartialEq>(
    store: &Store,
    name: &str,
    items: &[T],
) -> Result<Duration, Failure> {
    let array = store.array(name)?;
    let start = Instant::now();
    let read: Vec<T> = array.read(&Selection::all())?;
    let time = start.elapsed();
    if read == items {
        return Ok(time);
    }
    Err(Failure::failed(format!("array '{name}' came back with other items than were written")))
}
