//! Who keeps whom out, across open files and processes.

mod processes;

use brickmap::{ArraySpec, Backend, Codec, Dtype, Error, OpenOptions, Selection, Store};
#[cfg(target_os = "linux")]
use processes::{FILE, PART, calls_on, count, system_calls};
use processes::{hear, say, start};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
#[cfg(target_os = "linux")]
use std::process::Command;
use std::time::Duration;

const ITEMS: u64 = 200_000;

fn open_to_write(path: &Path) -> Store {
    OpenOptions::new().write(true).open(path).unwrap()
}

fn create(path: &Path) -> Store {
    let store = Store::create(path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U64, [ITEMS]).chunks([8192]).blocks([2048])).unwrap();
    fill(&mut writer);
    writer.commit().unwrap();
    drop(writer);
    store
}

fn value(index: u64, generation: u64) -> u64 {
    (index ^ generation).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn fill(writer: &mut brickmap::Writer) {
    let generation = writer.next_generation();
    let items: Vec<u64> = (0..ITEMS).map(|index| value(index, generation)).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
}

fn check(store: &Store) -> u64 {
    let snapshot = store.snapshot();
    let items: Vec<u64> = snapshot.array("a").unwrap().read(&Selection::all()).unwrap();
    let wrong = (0..ITEMS).position(|index| items[index as usize] != value(index, snapshot.generation()));
    assert_eq!(wrong, None, "an item of generation {}", snapshot.generation());
    snapshot.generation()
}

/// What the commit of a generation does to an array: it gets this length, and items from here on are written.
fn change(generation: u64) -> (u64, u64) {
    const STEP: u64 = 7001;
    match generation % 8 {
        0 => (ITEMS, 0),
        phase @ 1..=4 => (ITEMS + phase * STEP, ITEMS + (phase - 1) * STEP),
        5 => (ITEMS / 2, u64::MAX),
        6 => (ITEMS, u64::MAX),
        _ => (ITEMS + STEP, ITEMS / 2),
    }
}

/// The items of a generation: what was done since all of them were written.
fn resized(generation: u64) -> Vec<u64> {
    let start = generation - generation % 8;
    let mut items = Vec::new();
    for generation in start..=generation {
        let (len, from) = change(generation);
        items.resize(len as usize, 0);
        (from..len).for_each(|index| items[index as usize] = value(index, generation));
    }
    items
}

fn check_resized(snapshot: &brickmap::Snapshot) {
    let due = resized(snapshot.generation());
    for name in ["a", "raw"] {
        let array = snapshot.array(name).unwrap();
        assert_eq!(array.shape(), [due.len() as u64], "generation {}", snapshot.generation());
        let items: Vec<u64> = array.read(&Selection::all()).unwrap();
        let wrong = (0..due.len()).position(|index| items[index] != due[index]);
        assert_eq!(wrong, None, "an item of '{name}' in generation {}", snapshot.generation());
    }
}

/// Not a test of its own: what the other processes of the tests below do.
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    let path = &path;
    match &part[..] {
        "hold" => {
            let store = open_to_write(path);
            let _writer = store.writer().unwrap();
            say("\nholding");
            let _ = std::io::stdin().read(&mut [0]);
        }
        "commit for ever" => {
            let store = open_to_write(path);
            let mut writer = store.writer().unwrap();
            loop {
                fill(&mut writer);
                say(&format!("\ncommitted {}", writer.commit().unwrap().generation()));
            }
        }
        "follow" => {
            let store = Store::open(path).unwrap();
            let (mut last, mut seen) = (0, 0);
            say("\nfollowing");
            let until = std::time::Instant::now() + Duration::from_secs(3);
            while std::time::Instant::now() < until {
                store.refresh().unwrap();
                let generation = check(&store);
                assert!(generation >= last);
                seen += u64::from(generation > last);
                last = generation;
            }
            say(&format!("\nsaw {seen}"));
        }
        "follow resizes" => {
            let store = Store::open(path).unwrap();
            let (mut last, mut seen) = (0, 0);
            say("\nfollowing");
            let until = std::time::Instant::now() + Duration::from_secs(3);
            while std::time::Instant::now() < until {
                let snapshot = store.refresh().unwrap();
                check_resized(&snapshot);
                assert!(snapshot.generation() >= last);
                seen += u64::from(snapshot.generation() > last);
                last = snapshot.generation();
            }
            say(&format!("\nsaw {seen}"));
        }
        "write to the limit" => {
            let store = open_to_write(path);
            let mut committed = 0u64;
            let error = loop {
                let mut writer = store.writer().unwrap();
                let name = format!("more{committed}");
                writer.create_array(&name, &ArraySpec::new(Dtype::U64, [ITEMS]).codec(Codec::Raw)).unwrap();
                let outcome = writer.write(&name, &Selection::all(), &vec![committed; ITEMS as usize]);
                match outcome.and_then(|()| writer.commit()) {
                    Ok(_) => committed += 1,
                    Err(error) => break error,
                }
                assert!(committed < 100, "no limit was met");
            };
            assert!(error.to_string().contains("RLIMIT_FSIZE"), "{error}");
            store.refresh().unwrap();
            assert_eq!(store.array("a").unwrap().get::<u64>(&[77]).unwrap(), value(77, 2));
            assert!(store.verify().unwrap().is_clean());
            say(&format!("\nstopped after {committed}"));
        }
        "read one item" => {
            let store = OpenOptions::new().backend(Backend::Pread).threads(1).open(path).unwrap();
            assert_eq!(store.array("a").unwrap().get::<u64>(&[100_000]).unwrap(), value(100_000, 2));
        }
        "create and write" => drop(create(path)),
        #[cfg(unix)]
        "read-what-may-not-be-written" => read_what_may_not_be_written(path),
        part => panic!("no part '{part}'"),
    }
}

#[test]
fn fault_16_two_writers_in_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path);
    let writer = store.writer().unwrap();
    assert!(matches!(store.writer(), Err(Error::Locked { .. })), "the same handle");
    let other = open_to_write(&path);
    let before = std::fs::read(&path).unwrap();
    let Err(Error::Locked { what }) = other.writer() else { panic!("another handle") };
    assert!(what.contains(&format!("process {}", std::process::id())), "{what}");
    assert!(std::fs::read(&path).unwrap() == before, "nothing was touched");
    drop(writer);
    other.writer().unwrap();
}

/// The lock is one for the whole open file: the next writer of a handle must not take it while the one before lets it go.
#[test]
fn fault_16_a_writer_that_follows_another_of_its_handle_keeps_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path);
    let other = open_to_write(&path);
    for _ in 0..100 {
        let mut writer = store.writer().unwrap();
        for n in 0..20 {
            writer.create_array(&format!("b{n}"), &ArraySpec::new(Dtype::U64, [100]).chunks([1])).unwrap();
            writer.write(&format!("b{n}"), &Selection::all(), &[n as u64; 100]).unwrap();
        }
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                loop {
                    if let Ok(writer) = store.writer() {
                        break writer;
                    }
                }
            });
            drop(writer);
            let next = next.join().unwrap();
            assert!(matches!(other.writer(), Err(Error::Locked { .. })));
            drop(next);
        });
    }
}

#[test]
fn fault_16_two_writers_in_two_processes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    drop(create(&path));
    let mut holder = start("hold", &path);
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    hear(&mut lines, "holding");
    let before = std::fs::read(&path).unwrap();
    let Err(Error::Locked { what }) = open_to_write(&path).writer() else { panic!("locked") };
    assert!(what.contains(&format!("process {}", holder.id())), "{what}");
    assert!(std::fs::read(&path).unwrap() == before, "nothing was touched");
    // Waiting pays when the other one ends meanwhile.
    let waiting = OpenOptions::new().write(true).lock_timeout(Duration::from_secs(60)).open(&path).unwrap();
    let waiter = std::thread::spawn(move || waiting.writer().map(drop));
    std::thread::sleep(Duration::from_millis(50));
    holder.kill().unwrap();
    waiter.join().unwrap().unwrap();
    holder.wait().unwrap();
}

#[test]
fn fault_17_a_stray_close_of_the_same_path_lets_nothing_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path);
    let reader = Store::open(&path).unwrap();
    let writer = store.writer().unwrap();
    for _ in 0..3 {
        drop(std::fs::File::open(&path).unwrap());
        drop(Store::open(&path).unwrap());
    }
    assert!(matches!(open_to_write(&path).writer(), Err(Error::Locked { .. })));
    drop(writer);
    for _ in 0..5 {
        let mut writer = store.writer().unwrap();
        fill(&mut writer);
        writer.commit().unwrap();
        drop(Store::open(&path).unwrap());
        assert_eq!(check(&reader), 2);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn fault_5_a_limit_of_file_size_is_an_error_and_not_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    drop(create(&path));
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 20000; exec \"$0\" --exact parts --nocapture --quiet"])
        .arg(std::env::current_exe().unwrap())
        .env(PART, "write to the limit")
        .env(FILE, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("stopped after "), "{said}");
    // Without the limit it goes on.
    let store = open_to_write(&path);
    fill(&mut store.writer().unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn opening_and_reading_one_slice_takes_few_system_calls() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    drop(create(&path));
    let Some(calls) = system_calls("read one item", &path) else { return };
    let (opened, calls) = calls_on(&calls, path.to_str().unwrap());
    assert_eq!(opened, 1);
    // The first pages, the same again once the pin is there, the chunk's block table, the block; and one page each of
    // the catalog and the index.
    assert_eq!(count(&calls, "pread64("), 4 + 1 + 1, "{calls:#?}");
    assert_eq!(count(&calls, " read("), 0, "{calls:#?}");
    assert_eq!(count(&calls, "F_OFD_SETLK"), 2, "pinned and let go: {calls:#?}");
    assert_eq!(count(&calls, "close("), 1, "{calls:#?}");
}

#[cfg(target_os = "linux")]
#[test]
fn creating_writing_and_committing_opens_and_closes_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let Some(calls) = system_calls("create and write", &path) else { return };
    let made = directory.path().join(".a.brick.brick-new");
    let (opened, on_file) = calls_on(&calls, made.to_str().unwrap());
    assert_eq!((opened, count(&on_file, "close(")), (1, 1), "{on_file:#?}");
    let (opened, on_directory) = calls_on(&calls, directory.path().to_str().unwrap());
    assert_eq!((opened, count(&on_directory, "fsync(")), (1, 1), "{on_directory:#?}");
    // A new store; the frames of the commit; its root.
    assert_eq!(count(&on_file, "fdatasync("), 3, "{on_file:#?}");
    let position = |what: &str| on_file.iter().position(|call| call.contains(what)).unwrap();
    assert!(position("F_OFD_SETLK") < position("pwrite64("), "locked before a byte is written: {on_file:#?}");
}

#[test]
fn fault_6_a_killed_writer_leaves_what_it_committed_and_no_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    drop(create(&path));
    for round in 0..processes::from_environment("BRICKMAP_KILLS", 12) {
        let mut writer = start("commit for ever", &path);
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        for _ in 0..=round % 4 {
            let line = hear(&mut lines, "committed");
            acknowledged = line["committed ".len()..].parse::<u64>().unwrap();
        }
        std::thread::sleep(Duration::from_micros(733 * (round % 40)));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let rest =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("committed ")?.parse().ok());
        let acknowledged = rest.last().unwrap_or(acknowledged);
        let store = open_to_write(&path);
        let found = check(&store);
        assert!(found == acknowledged || found == acknowledged + 1, "{found} after {acknowledged}");
        assert!(store.verify().unwrap().is_clean());
        drop(store.writer().unwrap());
    }
}

#[test]
fn fault_15_readers_follow_a_writer_and_never_see_two_generations() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    drop(create(&path));
    let mut readers: Vec<Child> = (0..4).map(|_| start("follow", &path)).collect();
    let mut said: Vec<_> =
        readers.iter_mut().map(|reader| BufReader::new(reader.stdout.take().unwrap()).lines()).collect();
    said.iter_mut().for_each(|lines| drop(hear(lines, "following")));
    let store = open_to_write(&path);
    let mut writer = store.writer().unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(2);
    while std::time::Instant::now() < until {
        fill(&mut writer);
        writer.commit().unwrap();
    }
    for (mut reader, mut lines) in readers.into_iter().zip(said) {
        let seen: u64 = hear(&mut lines, "saw")["saw ".len()..].parse().unwrap();
        assert!(seen > 1, "a reader saw {seen} generations");
        assert!(reader.wait().unwrap().success());
    }
    // The newest, the one before, and one for each reader that was slow. Later states are larger than the first one.
    let len = std::fs::metadata(&path).unwrap().len();
    let live = store.refresh().unwrap().to_bytes().unwrap().len() as u64;
    assert!(len < 6 * live, "{len} bytes, {live} live");
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn fault_15_readers_follow_a_writer_that_appends_and_resizes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    for (name, codec) in [("a", Codec::default()), ("raw", Codec::Raw)] {
        let spec = ArraySpec::new(Dtype::U64, [0]).chunks([8192]).blocks([2048]).codec(codec);
        writer.create_array(name, &spec).unwrap();
    }
    let mut commit = || {
        let generation = writer.next_generation();
        let (len, from) = change(generation);
        for name in ["a", "raw"] {
            writer.resize(name, &[len]).unwrap();
            let items: Vec<u64> = (from..len).map(|index| value(index, generation)).collect();
            if from < len {
                writer.write(name, &Selection::from(from..len), &items).unwrap();
            }
        }
        writer.commit().unwrap()
    };
    // Until one has written all items.
    while commit().generation() % 8 > 0 {}
    let live = std::fs::metadata(&path).unwrap().len();
    let mut readers: Vec<Child> = (0..4).map(|_| start("follow resizes", &path)).collect();
    let mut said: Vec<_> =
        readers.iter_mut().map(|reader| BufReader::new(reader.stdout.take().unwrap()).lines()).collect();
    said.iter_mut().for_each(|lines| drop(hear(lines, "following")));
    let until = std::time::Instant::now() + Duration::from_secs(2);
    while std::time::Instant::now() < until {
        check_resized(&commit());
    }
    for (mut reader, mut lines) in readers.into_iter().zip(said) {
        let seen: u64 = hear(&mut lines, "saw")["saw ".len()..].parse().unwrap();
        assert!(seen > 1, "a reader saw {seen} generations");
        assert!(reader.wait().unwrap().success());
    }
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(len < 7 * live, "{len} bytes, {live} at first");
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn fault_14_a_replaced_file_is_noticed_and_read_on() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("a.brick"), directory.path().join("b.brick"));
    let store = create(&path);
    let reader = Store::open(&path).unwrap();
    drop(create(&other));
    std::fs::rename(&other, &path).unwrap();
    assert!(matches!(reader.refresh(), Err(Error::Replaced { .. })));
    assert_eq!(check(&reader), 2);
    assert!(matches!(store.writer(), Err(Error::Replaced { .. })), "a writer of a file that has no name");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(reader.refresh(), Err(Error::Replaced { .. })));
    assert_eq!(check(&reader), 2);
}

#[test]
fn pins_of_one_handle_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = create(&path);
    let reader = Store::open(&path).unwrap();
    let array = reader.snapshot().array("a").unwrap();
    // Looks for a newer state, and pins and lets go the same generation.
    reader.refresh().unwrap();
    for round in 0..6 {
        let mut writer = store.writer().unwrap();
        fill(&mut writer);
        writer.commit().unwrap();
        reader.refresh().unwrap();
        let items: Vec<u64> = array.read(&Selection::all()).unwrap();
        assert_eq!(items[77], value(77, 2), "round {round}");
    }
}

/// Reads a file that may not be written, in a folder that may not be written either, and sees that nothing changes.
#[cfg(unix)]
fn read_what_may_not_be_written(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let folder = path.parent().unwrap();
    let state = || {
        let times = [path, folder].map(|path| {
            let data = std::fs::metadata(path).unwrap();
            (data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec())
        });
        let names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        (times, names)
    };
    let before = state();
    for backend in [Backend::Mmap, Backend::Pread] {
        let reader = OpenOptions::new().backend(backend).open(path).unwrap();
        assert!(reader.snapshot().is_pinned());
        check(&reader);
        reader.refresh().unwrap();
        assert!(reader.verify().unwrap().is_clean());
        assert!(matches!(reader.writer(), Err(Error::InvalidState { .. })));
    }
    for outcome in [
        OpenOptions::new().write(true).open(path),
        Store::replace(path),
        Store::create(folder.join("b.brick")),
        OpenOptions::new().open_or_create(path),
    ] {
        assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
    }
    assert_eq!(state(), before);
}

#[cfg(unix)]
#[test]
fn fault_20_a_file_that_may_not_be_written_is_read_pinned_and_left_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("a.brick");
    drop(create(&path));
    let program = directory.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for (path, mode) in [(&path, 0o444), (&folder, 0o555), (&directory.path().to_path_buf(), 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut part = processes::part("read-what-may-not-be-written", &path, &program);
    if std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0) {
        // To root everything may be written.
        part.uid(65534).gid(65534);
    }
    let output = part.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn fault_20_a_mount_that_may_not_be_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    drop(create(&path));
    let mount = directory.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    let part = processes::part(
        "read-what-may-not-be-written",
        &mount.join("a.brick"),
        &std::env::current_exe().unwrap(),
    );
    let script = "mount -t tmpfs tmpfs \"$0/mount\" && cp \"$0/a.brick\" \"$0/mount\" && mount -o remount,ro \"$0/mount\" || \
        { echo no mount; exit 0; }; shift 0; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script])
        .arg(directory.path())
        .arg(part.get_program())
        .args(part.get_args())
        .envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output();
    match output {
        Ok(output)
            if String::from_utf8_lossy(&output.stdout).contains("no mount") || output.stdout.is_empty() =>
        {
            println!("skipped: nothing can be mounted");
        }
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("skipped: there is no unshare: {error}"),
    }
}
