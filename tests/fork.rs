//! A process that forks while it reads: the child reads on, and takes nothing from its parent.
#![cfg(target_os = "linux")]

mod processes;

use brickmap::{Array, ArraySpec, Dtype, Error, OpenOptions, Selection, Store};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use processes::{hear, say, start};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ITEMS: u64 = 300_000;

fn value(index: u64, generation: u64) -> u64 {
    (index ^ generation).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn commit(store: &Store) -> u64 {
    let mut writer = store.writer().unwrap();
    let generation = writer.next_generation();
    if writer.kind("a").unwrap().is_none() {
        writer
            .create_array("a", &ArraySpec::new(Dtype::U64, [ITEMS]).chunks([32_768]).blocks([2048]))
            .unwrap();
    }
    let items: Vec<u64> = (0..ITEMS).map(|index| value(index, generation)).collect();
    writer.write("a", &Selection::all(), &items).unwrap();
    writer.commit().unwrap().generation()
}

fn open_to_write(path: &Path) -> Store {
    OpenOptions::new().write(true).open(path).unwrap()
}

/// Whether an array has the items of its generation. Large enough to be read by several threads.
fn is_right(array: &Array) -> bool {
    let generation = array.snapshot().generation();
    let items: Result<Vec<u64>, Error> = array.read(&Selection::all());
    items.is_ok_and(|items| (0..ITEMS).all(|index| items[index as usize] == value(index, generation)))
}

/// Runs `work` in a forked child and returns whether it returned true before a minute was over.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    let child = fork_off(work);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).unwrap() {
            WaitStatus::StillAlive if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            WaitStatus::StillAlive => {
                kill(child, Signal::SIGKILL).unwrap();
                waitpid(child, None).unwrap();
                return false;
            }
            WaitStatus::Exited(_, code) => return code == 0,
            _ => return false,
        }
    }
}

fn fork_off(work: impl FnOnce() -> bool) -> Pid {
    // SAFETY: with several threads, the child may only do what is safe in a signal handler. It does more, and may hang, which
    // is what these tests are about; the C library makes its allocator ready for that.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(i32::from(!right)) }
        }
    }
}

/// Calls `work` while other threads read the array again and again.
fn while_others_read(array: &Array, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(is_right(array));
                    array.get::<u64>(&[77]).unwrap();
                }
            });
        }
        work();
        stop.store(true, Ordering::Relaxed);
    });
}

/// Not a test of its own: what the other processes of the tests below do. Forking copies a whole test program, so that each
/// test does it in a process of its own.
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    match part.as_str() {
        "fork-while-reading" => {
            let store = Store::open(&path).unwrap();
            let array = store.array("a").unwrap();
            while_others_read(&array, || {
                for n in 0..40 {
                    // The child lets these go, and so does the parent.
                    let options = if n % 2 == 0 { OpenOptions::new() } else { OpenOptions::new().threads(2) };
                    let own = options.open(&path).unwrap();
                    let own_array = own.array("a").unwrap();
                    assert!(is_right(&own_array));
                    let child = || {
                        let inherited = is_right(&array) && is_right(&own_array);
                        let newest = own.refresh().unwrap().array("a").unwrap();
                        let grandchild = in_child(|| is_right(&own_array) && is_right(&newest));
                        drop((own_array, own));
                        inherited && grandchild && is_right(&newest) && is_right(&store.array("a").unwrap())
                    };
                    assert!(in_child(child), "fork {n}");
                }
            });
        }
        "fork-a-writer" => {
            let store = open_to_write(&path);
            let writer = store.writer().unwrap();
            let mut held = Some((writer, store));
            let child = || {
                // The child's copy; the parent's stays where it is.
                let Some((mut writer, store)) = held.take() else { return false };
                let refused = matches!(
                    writer.create_group("group").and_then(|()| writer.commit()),
                    Err(Error::InvalidState { .. })
                );
                let locked = matches!(store.writer(), Err(Error::Locked { .. }));
                drop((writer, store));
                refused && locked && matches!(open_to_write(&path).writer(), Err(Error::Locked { .. }))
            };
            assert!(in_child(child));
            let Some((mut writer, _store)) = held else { return };
            assert!(matches!(open_to_write(&path).writer(), Err(Error::Locked { .. })));
            writer.create_group("group").unwrap();
            writer.commit().unwrap();
        }
        "fork-a-reader" => {
            let store = open_to_write(&path);
            let reader = Store::open(&path).unwrap();
            let old = reader.array("a").unwrap();
            let mut held = Some((Store::open(&path).unwrap(), reader.snapshot()));
            assert!(in_child(|| {
                drop(held.take());
                is_right(&old)
            }));
            for _ in 0..6 {
                commit(&store);
                // What a child let go of is not let go of here.
                assert!(in_child(|| is_right(&old)));
                assert!(is_right(&old));
            }
        }
        "outlive-the-parent" => {
            let store = Store::open(&path).unwrap();
            let array = store.array("a").unwrap();
            let (mut wait, mut done) = std::io::pipe().unwrap();
            fork_off(|| {
                let before = is_right(&array);
                done.write_all(b"x").unwrap();
                say("\nchild reads");
                let _ = std::io::stdin().read(&mut [0]);
                let after = is_right(&array);
                say(if before && after { "\nchild was right" } else { "\nchild was wrong" });
                true
            });
            wait.read_exact(&mut [0]).unwrap();
            // Lets its pin go. The child has one of its own by now.
        }
        "use-what-is-gone" => {
            let store = Store::open(&path).unwrap();
            let array = store.array("a").unwrap();
            fork_off(|| {
                say("\nchild waits");
                let _ = std::io::stdin().read(&mut [0]);
                let error = array.read::<u64>(&Selection::all()).map(drop);
                let gone = matches!(error, Err(Error::Gone { generation: 2, .. }));
                let newest = store.refresh().unwrap();
                let goes_on = is_right(&newest.array("a").unwrap()) && newest.generation() > 2;
                say(if gone && goes_on { "\nchild was told" } else { "\nchild was wrong" });
                true
            });
            // Lets its pin go, which the child has not taken up.
        }
        part => panic!("no part '{part}'"),
    }
}

fn create(directory: &Path) -> PathBuf {
    let path = directory.join("a.brick");
    commit(&Store::create(&path).unwrap());
    path
}

/// Plays a part in a process that must end well.
fn play(part: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = create(directory.path());
    assert!(start(part, &path).wait().unwrap().success());
    let store = open_to_write(&path);
    assert!(store.writer().is_ok(), "no lock is left");
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn fault_18_children_of_a_process_whose_threads_read() {
    play("fork-while-reading");
}

#[test]
fn fault_18_a_child_cannot_use_or_end_a_writer() {
    play("fork-a-writer");
}

#[test]
fn fault_18_a_child_takes_no_pin_from_its_parent() {
    play("fork-a-reader");
}

/// The parent plays `part` and ends after its child said `first`; then the file is written again and again, and the child is
/// told to go on.
fn outlive(part: &str, first: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = create(directory.path());
    let mut parent = start(part, &path);
    let mut input = parent.stdin.take().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    hear(&mut lines, first);
    assert!(parent.wait().unwrap().success());
    let store = open_to_write(&path);
    for _ in 0..6 {
        commit(&store);
        // Or this handle keeps what the child is after.
        store.refresh().unwrap();
    }
    input.write_all(b"x").unwrap();
    hear(&mut lines, "child was")
}

#[test]
fn fault_18_a_child_that_reads_keeps_its_state_after_its_parent_ended() {
    assert_eq!(outlive("outlive-the-parent", "child reads"), "child was right");
}

#[test]
fn fault_18_a_child_that_did_not_read_in_time_is_told_that_the_state_is_gone() {
    assert_eq!(outlive("use-what-is-gone", "child waits"), "child was told");
}
