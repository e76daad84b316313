//! What the operating system refuses, interrupts or does not survive: each call in turn, beneath the library as it is
//! shipped. `faults/shim.c` is put between this program, started again to play a part, and the C library.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

#[path = "faults/child.rs"]
mod child;

use brickmap::{ArraySpec, Backend, Codec, Dtype, Error, OpenOptions, Result, Selection, Store, Writer};
use child::{Outcome, command, descriptors, mark, play, say};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

const ITEMS: u64 = 3000;
/// The generation that [`history`] comes to if nothing fails.
const LAST: u64 = 4;

fn brick(directory: &Path) -> PathBuf {
    directory.join("a.brick")
}

fn options() -> OpenOptions {
    OpenOptions::new().write(true).threads(1).cache_bytes(0)
}

fn items(generation: u64) -> Vec<u64> {
    (0..ITEMS).map(|index| (index ^ generation).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
}

/// Makes a call again if it fails: it must have left what is staged such that this can be done, or the writer must refuse.
fn twice<R>(mut call: impl FnMut() -> Result<R>) -> Result<R> {
    call().or_else(|first| match call() {
        Err(Error::InvalidState { .. }) => Err(first),
        Err(error) => Err(error),
        Ok(result) => {
            report(&first);
            Ok(result)
        }
    })
}

/// Stages the whole of the next generation.
fn fill(writer: &mut Writer) -> Result<()> {
    let generation = writer.next_generation();
    let spec = ArraySpec::new(Dtype::U64, [ITEMS]).chunks([1024]).blocks([256]);
    for (name, spec) in [("a", spec.clone()), ("raw", spec.codec(Codec::Raw))] {
        if twice(|| writer.kind(name))?.is_none() {
            twice(|| writer.create_array(name, &spec))?;
        }
    }
    let attributes = [("generation".to_owned(), generation.into())].into_iter().collect();
    twice(|| writer.set_attributes("a", &attributes))?;
    let items = items(generation);
    // The chunk that both selections meet in is read to write the second.
    for (name, selection, items) in
        [("a", "[:1500]", &items[..1500]), ("a", "[1500:]", &items[1500..]), ("raw", "[:]", &items[..])]
    {
        let selection: Selection = selection.parse()?;
        twice(|| writer.write(name, &selection, items))?;
    }
    Ok(())
}

/// The generation that a store shows, all of which must be there.
fn check(store: &Store) -> Result<u64> {
    let snapshot = store.snapshot();
    let generation = snapshot.generation();
    if generation > 1 {
        assert_eq!(snapshot.attributes("a")?["generation"], generation);
        for name in ["a", "raw"] {
            let found: Vec<u64> = snapshot.array(name)?.read(&Selection::all())?;
            assert!(found == items(generation), "items of '{name}' are not those of generation {generation}");
        }
    }
    Ok(generation)
}

/// The generation that this process acknowledged last.
static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);

fn acknowledge(generation: u64) {
    ACKNOWLEDGED.store(generation, Ordering::Relaxed);
    say(&format!("committed {generation}"));
}

/// Writes and commits with one writer, `commits` times. A writer that failed to commit must be done for.
fn commit(store: &Store, commits: usize) -> Result<()> {
    let mut writer = store.writer().inspect_err(|_| mark("failed"))?;
    for _ in 0..commits {
        fill(&mut writer)?;
        match writer.commit() {
            Ok(snapshot) => acknowledge(snapshot.generation()),
            Err(error) => {
                mark("failed");
                assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })));
                assert!(matches!(fill(&mut writer), Err(Error::InvalidState { .. })));
                drop(writer);
                mark("dropped");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// As [`commit`]; after an error once again, with another writer of the same handle.
fn insist(store: &Store, commits: usize) -> Result<()> {
    commit(store, commits).or_else(|error| {
        report(&error);
        commit(store, 1)
    })
}

/// What the tests below have fail: creating a store, three commits with two writers, reading and verifying. What fails is
/// done again with the same handles, but for the creation.
fn history(path: &Path, options: OpenOptions) -> Result<()> {
    let store = options.create(path).inspect_err(|_| mark("failed"))?;
    acknowledge(1);
    insist(&store, 2)?;
    twice(|| store.refresh())?;
    insist(&store, 1)?;
    twice(|| store.refresh())?;
    twice(|| check(&store))?;
    let reader = twice(|| options.clone().write(false).open(path))?;
    assert!(reader.snapshot().is_pinned());
    twice(|| check(&reader))?;
    for finding in twice(|| reader.verify())?.findings {
        assert!(finding.what.starts_with("cannot read "), "{finding:?}");
        say(&format!("failed Io: {}", finding.what));
    }
    Ok(())
}

fn report(error: &Error) {
    let text = format!("{error:?}");
    say(&format!("failed {}: {error}", text.split(' ').next().unwrap_or_default()));
}

fn tell(outcome: Result<()>) {
    match outcome {
        Ok(()) => say("done"),
        Err(error) => report(&error),
    }
}

/// Not a test of its own: what the other processes of the tests below do.
#[test]
fn parts() {
    let Some(directory) = std::env::var_os(child::DIRECTORY) else { return };
    let (directory, part) = (Path::new(&directory), std::env::var(child::PART).unwrap());
    let path = brick(directory);
    match &part[..] {
        "history, mapped" => tell(history(&path, options())),
        "history, read" => tell(history(&path, options().backend(Backend::Pread))),
        "history, on threads" => tell(history(&path, options().threads(3))),
        "small disks" => small_disks(directory),
        "write without locks" => write_without_locks(&path),
        "grow" => grow(&options().open(&path).unwrap(), &path),
        "be refused locks" => be_refused_locks(&path),
        "be refused the writer's lock" => {
            let store = options().open(&path).unwrap();
            assert_names_the_way_out(store.writer().map(drop));
            drop(store.writer().unwrap());
            commit(&store, 1).unwrap();
        }
        "be refused the list of readers" => {
            let store = options().open(&path).unwrap();
            assert!(store.snapshot().is_pinned());
            assert_names_the_way_out(store.writer().map(drop));
        }
        "use up descriptors" => use_up_descriptors(directory),
        part => panic!("no part '{part}'"),
    }
    assert_eq!(descriptors(directory), 0, "descriptors stay open");
}

/// What may be there after a run that came to the end of its process, and that it goes on from there.
fn check_left(directory: &Path, acknowledged: u64) {
    let path = brick(directory);
    if acknowledged == 0 && !path.exists() {
        assert_eq!(check(&options().create(&path).unwrap()).unwrap(), 1);
    }
    let store = options().open(&path).unwrap();
    let found = check(&store).unwrap();
    assert!(found == acknowledged || found == acknowledged + 1, "{found} after {acknowledged}");
    let findings = store.verify().unwrap().findings;
    // A root page may be torn; the next writer mends it.
    assert!(findings.iter().all(|finding| finding.what.starts_with("copy ")), "{findings:?}");
    drop(store.writer().unwrap());
    assert!(store.verify().unwrap().is_clean());
    commit(&store, 1).unwrap();
    store.refresh().unwrap();
    assert_eq!(check(&store).unwrap(), found + 1);
    assert!(store.verify().unwrap().is_clean());
    check_nothing_unfinished(directory);
}

/// That no store is there that has no name yet.
fn check_nothing_unfinished(directory: &Path) {
    let hidden = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = hidden.filter(|name| name.as_encoded_bytes().ends_with(b".brick-new")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Plays a part with the fault for N = 1, 2 and so on, for as long as it is met.
fn walk(part: &str, fault: impl Fn(usize) -> String, mut visit: impl FnMut(&Path, &Outcome)) -> usize {
    for n in 1.. {
        let directory = tempfile::tempdir().unwrap();
        let outcome = play(part, directory.path(), &fault(n));
        if !outcome.hit() {
            assert!(outcome.said.contains("\ndone"), "{}", outcome.said);
            return n - 1;
        }
        visit(directory.path(), &outcome);
    }
    unreachable!("a run ends")
}

/// That a run that met an error said so, and what it left.
fn failed_well(directory: &Path, outcome: &Outcome) {
    for failure in outcome.lines("failed ") {
        assert!(failure.starts_with("Io: "), "{failure}");
    }
    check_left(directory, outcome.acknowledged());
}

/// Lets each call fail, once or from there on.
fn each_call_fails(part: &str, fault: impl Fn(usize) -> String, least: usize) {
    if child::shim().is_none() {
        return;
    }
    let (mut failures, once) = (0, !fault(1).contains('+'));
    let calls = walk(part, fault, |directory, outcome| {
        failures += usize::from(outcome.lines("failed ").next().is_some());
        if once && outcome.acknowledged() > 0 {
            assert!(outcome.said.contains("\ndone"), "it works when it is done again: {}", outcome.said);
        }
        failed_well(directory, outcome);
    });
    // Letting a lock go may fail unnoticed; little else may.
    assert!(calls >= least && failures > calls * 4 / 5, "{calls} calls, {failures} failures");
}

#[test]
fn fault_1_each_call_fails_once_mapped() {
    each_call_fails("history, mapped", |n| format!("all:{n}:EIO"), 100);
}

#[test]
fn fault_1_each_call_fails_once_read() {
    each_call_fails("history, read", |n| format!("all:{n}:EIO"), 200);
}

#[test]
fn fault_1_each_call_fails_once_on_threads() {
    each_call_fails("history, on threads", |n| format!("all:{n}:EIO"), 100);
}

#[test]
fn fault_1_all_calls_fail_from_one_on_mapped() {
    each_call_fails("history, mapped", |n| format!("all:{n}+:EIO"), 100);
}

#[test]
fn fault_1_all_calls_fail_from_one_on_read() {
    each_call_fails("history, read", |n| format!("all:{n}+:EIO"), 200);
}

#[test]
fn fault_1_each_write_is_torn_and_fails() {
    each_call_fails("history, mapped", |n| format!("pwrite:{n}:torn"), 30);
}

#[test]
fn fault_2_interrupted_calls_are_made_again_and_short_ones_completed() {
    if child::shim().is_none() {
        return;
    }
    let interrupted = ["open", "pread", "pwrite", "fdatasync", "fsync", "setlk", "getlk"]
        .map(|call| format!("{call}:*:EINTR"))
        .join(",");
    let short = "pread:every:short,pwrite:every:short";
    for part in ["history, mapped", "history, read"] {
        for fault in [interrupted.clone(), short.to_owned(), format!("{interrupted},{short}")] {
            let directory = tempfile::tempdir().unwrap();
            let outcome = play(part, directory.path(), &fault);
            assert!(outcome.said.contains("\ndone"), "{part}, {fault}: {}", outcome.said);
            assert_eq!(outcome.acknowledged(), LAST);
            assert!(outcome.lines("failed").next().is_none(), "{}", outcome.said);
            for rule in fault.split(',') {
                let name = rule.split(':').next().unwrap();
                assert!(outcome.log.iter().any(|call| call.injected && call.name == name), "no {name}");
            }
            check_left(directory.path(), LAST);
        }
    }
}

#[test]
fn fault_2_calls_that_are_never_interrupted_are() {
    if child::shim().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let outcome = play("history, mapped", directory.path(), "all:*:EINTR");
    assert!(outcome.hit());
    failed_well(directory.path(), &outcome);
}

#[test]
fn fault_3_a_failed_sync_fails_the_commit_and_nothing_is_tried_again() {
    if child::shim().is_none() {
        return;
    }
    let (mut syncs, mut commits) = (0, 0);
    for call in ["fdatasync", "fsync"] {
        for more in ["", "+"] {
            syncs += walk(
                "history, mapped",
                |n| format!("{call}:{n}{more}:EIO"),
                |directory, outcome| {
                    let log = &outcome.log;
                    let at = log.iter().position(|call| call.injected).unwrap();
                    let position = |mark: &str| (at..log.len()).find(|&n| log[n].name == mark);
                    let failed = position("failed").expect("an error");
                    let dropped = position("dropped").unwrap_or(failed);
                    commits += usize::from(dropped > failed);
                    for call in &log[at + 1..dropped] {
                        let changes = ["pwrite", "fdatasync", "fsync", "ftruncate"].contains(&&call.name[..]);
                        assert!(!changes, "{call:?} after a failed sync");
                    }
                    assert!(outcome.lines("failed Io: ").next().is_some(), "{}", outcome.said);
                    if more.is_empty() && outcome.acknowledged() > 0 {
                        assert!(outcome.said.contains("\ndone"), "the next writer works: {}", outcome.said);
                    }
                    failed_well(directory, outcome);
                },
            );
        }
    }
    // Twice, once and for good: creation and its directory, and two for each commit.
    assert!(syncs >= 2 * 8, "{syncs}");
    assert_eq!(commits, 2 * 6);
}

/// Whether this user may mount a small disk that nobody else sees.
fn may_mount(directory: &Path) -> bool {
    let mut probe = Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "tmpfs"]).arg(directory);
    let may = probe.output().is_ok_and(|output| output.status.success());
    if !may {
        println!("skipped: no disk can be mounted");
    }
    may
}

fn run(command: &str, arguments: &[&str], directory: &Path) {
    let output = Command::new(command).args(arguments).arg(directory).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Goes through the history on disks of which each has room for one page more, and says what was acknowledged on each.
fn small_disks(directory: &Path) {
    const BALLAST: usize = 256 << 10;
    for backend in [Backend::Mmap, Backend::Pread] {
        for pages in 1.. {
            run(
                "mount",
                &["-t", "tmpfs", "-o", &format!("size={}", BALLAST + pages * 4096), "tmpfs"],
                directory,
            );
            let ballast = directory.join("ballast");
            std::fs::write(&ballast, vec![1; BALLAST]).unwrap();
            ACKNOWLEDGED.store(0, Ordering::Relaxed);
            let outcome = history(&brick(directory), options().backend(backend));
            let acknowledged = ACKNOWLEDGED.load(Ordering::Relaxed);
            if let Err(Error::Io { source, .. }) = &outcome {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull, "{source}");
                say(&format!("full after {acknowledged}"));
            } else {
                outcome.as_ref().unwrap();
            }
            if acknowledged > 0 {
                let store = OpenOptions::new().backend(backend).open(brick(directory)).unwrap();
                let found = check(&store).unwrap();
                assert!(found == acknowledged || found == acknowledged + 1);
                assert!(store.verify().unwrap().is_clean());
            }
            std::fs::remove_file(&ballast).unwrap();
            check_left(directory, acknowledged);
            run("umount", &[], directory);
            if outcome.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn fault_4_a_full_disk_is_an_error_and_old_data_stay() {
    let directory = tempfile::tempdir().unwrap();
    if !may_mount(directory.path()) {
        return;
    }
    let part = command("small disks", directory.path());
    let output = Command::new("unshare")
        .arg("-Urm")
        .arg(part.get_program())
        .args(part.get_args())
        .envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let full: Vec<u64> =
        said.lines().filter_map(|line| line.strip_prefix("full after ")?.parse().ok()).collect();
    assert!(full.len() > 20, "{full:?}");
    assert!([0, 1, 2].iter().all(|generation| full.contains(generation)), "{full:?}");
}

#[test]
fn fault_7_killed_at_each_call() {
    if child::shim().is_none() {
        return;
    }
    for (part, call, what, least) in [
        ("history, mapped", "any", "kill", 40),
        ("history, mapped", "any", "kill-after", 40),
        ("history, mapped", "pwrite", "kill-torn", 30),
        ("history, on threads", "any", "kill", 40),
    ] {
        let mut acknowledged = BTreeSet::new();
        let calls = walk(
            part,
            |n| format!("{call}:{n}:{what}"),
            |directory, outcome| {
                acknowledged.insert(outcome.acknowledged());
                check_left(directory, outcome.acknowledged());
            },
        );
        assert!(calls >= least, "{calls} calls");
        assert_eq!(acknowledged, BTreeSet::from_iter(0..LAST));
    }
}

/// Overwrites the whole store some times, and says how long the file is each time.
fn grow(store: &Store, path: &Path) {
    for _ in 0..6 {
        commit(store, 1).unwrap();
        store.refresh().unwrap();
        check(store).unwrap();
        say(&format!("len {}", std::fs::metadata(path).unwrap().len()));
    }
}

/// By how many bytes the file became longer with each commit.
fn growth(outcome: &Outcome) -> Vec<u64> {
    let lens: Vec<u64> = outcome.lines("len ").map(|len| len.parse().unwrap()).collect();
    assert_eq!(lens.len(), 6);
    lens.windows(2).map(|lens| lens[1] - lens[0]).collect()
}

fn write_without_locks(path: &Path) {
    let store = options().open(path).unwrap();
    assert!(!store.snapshot().is_pinned());
    assert_eq!(store.readers().unwrap(), None);
    check(&store).unwrap();
    let array = store.array("raw").unwrap();
    assert!(matches!(array.view::<u64>(&Selection::all()), Err(Error::InvalidState { .. })));
    let writer = store.writer().unwrap();
    let other = options().open(path).unwrap();
    assert!(matches!(other.writer(), Err(Error::Locked { .. })));
    drop(writer);
    drop(other.writer().unwrap());
    grow(&store, path);
    drop(options().create(path.with_extension("new")).unwrap());
}

/// A directory with a store in it.
fn with_store() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    commit(&options().create(brick(directory.path())).unwrap(), 1).unwrap();
    directory
}

#[test]
fn fault_19_without_locks_a_reader_is_unpinned_a_writer_locks_the_file_and_no_space_is_reused() {
    if child::shim().is_none() {
        return;
    }
    for error in ["EINVAL", "ENOSYS", "EOPNOTSUPP"] {
        let directory = with_store();
        let fault = format!("setlk:1+:{error},getlk:1+:{error}");
        let outcome = play("write without locks", directory.path(), &fault);
        assert!(growth(&outcome).iter().all(|&more| more > 8 * ITEMS), "{:?}", growth(&outcome));
        assert!(outcome.log.iter().all(|call| call.injected || call.name != "setlk"));
        // Readers that cannot pin, and readers that cannot be seen.
        for call in ["setlk", "getlk"] {
            let outcome = play("grow", directory.path(), &format!("{call}:1+:{error}"));
            let growth = growth(&outcome);
            assert!(outcome.hit() && growth.iter().all(|&more| more > 8 * ITEMS), "{growth:?}");
        }
        let outcome = play("grow", directory.path(), "");
        assert_eq!(growth(&outcome).last(), Some(&0), "with locks space is reused");
    }
}

#[track_caller]
fn assert_names_the_way_out(outcome: Result<()>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("OpenOptions::locking(false)"), "{error}");
}

fn be_refused_locks(path: &Path) {
    assert_names_the_way_out(Store::open(path).map(drop));
    assert_names_the_way_out(options().open(path).map(drop));
    let new = path.with_extension("new");
    assert_names_the_way_out(options().create(&new).map(drop));
    assert!(!new.exists());
    check_nothing_unfinished(new.parent().unwrap());
    let unlocked = options().locking(false);
    drop(unlocked.create(&new).unwrap());
    let store = unlocked.open(path).unwrap();
    assert!(!store.snapshot().is_pinned());
    check(&store).unwrap();
    grow(&store, path);
}

#[test]
fn fault_19_a_lock_that_fails_is_an_error_that_names_the_option() {
    if child::shim().is_none() {
        return;
    }
    for error in ["ENOLCK", "EIO"] {
        let directory = with_store();
        let fault = format!("setlk:1+:{error},getlk:1+:{error}");
        let outcome = play("be refused locks", directory.path(), &fault);
        assert!(outcome.hit() && growth(&outcome).iter().all(|&more| more > 0), "{:?}", growth(&outcome));
        assert!(play("be refused the writer's lock", directory.path(), &format!("setlk:2:{error}")).hit());
        let fault = format!("getlk:1+:{error}");
        assert!(play("be refused the list of readers", directory.path(), &fault).hit());
    }
}

fn use_up_descriptors(directory: &Path) {
    let path = brick(directory);
    let none_left = |outcome: Result<Store>| match outcome {
        Err(Error::Io { source, .. }) => assert_eq!(source.raw_os_error(), Some(24), "{source}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a descriptor was left"),
    };
    let mut stores = vec![options().open(&path).unwrap()];
    // The first writer of a handle syncs the directory too.
    drop(stores[0].writer().unwrap());
    let outcome = loop {
        match Store::open(&path) {
            Ok(store) => stores.push(store),
            outcome => break outcome,
        }
        assert!(stores.len() < 16, "no limit was met");
    };
    none_left(outcome);
    assert!(stores.len() > 5);
    // What is open goes on.
    commit(&stores[0], 1).unwrap();
    stores[0].refresh().unwrap();
    check(&stores[0]).unwrap();
    none_left(options().create(directory.join("new.brick")));
    // One for the file, none for its directory.
    stores.pop();
    assert_eq!(descriptors(directory), stores.len());
    none_left(options().create(directory.join("new.brick")));
    assert!(!directory.join("new.brick").exists());
    // The second writer is told so, though it cannot be found out by whom.
    stores.pop();
    let other = options().open(&path).unwrap();
    let spare = Store::open(&path).unwrap();
    let writer = stores[0].writer().unwrap();
    assert!(matches!(other.writer(), Err(Error::Locked { .. })));
    drop((writer, spare, other, stores));
    assert_eq!(descriptors(directory), 0);
    drop(options().create(directory.join("new.brick")).unwrap());
}

#[test]
fn fault_24_without_descriptors_opening_fails_and_what_is_open_goes_on() {
    let directory = with_store();
    let part = command("use up descriptors", directory.path());
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 16; exec \"$0\" \"$@\""])
        .arg(part.get_program())
        .args(part.get_args())
        .envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("committed 3"), "{said}");
}

#[test]
fn fault_24_without_maps_it_fails_or_reads() {
    each_call_fails("history, mapped", |n| format!("mmap:{n}:ENOMEM"), 5);
    each_call_fails("history, mapped", |n| format!("mmap:{n}+:ENOMEM"), 5);
    if child::shim().is_some() {
        let directory = tempfile::tempdir().unwrap();
        let outcome = play("history, read", directory.path(), "mmap:1+:ENOMEM");
        assert!(outcome.said.contains("\ndone"), "{}", outcome.said);
    }
}
