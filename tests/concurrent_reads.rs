//! Threads that share a handle read what one alone reads.

mod common;

use brickmap::{Array, ArraySpec, Axis, Backend, Codec, Dtype, OpenOptions, Selection, Store};
use common::dense::{Dense, pick};
use common::draw::{self, Case};
use common::{Aligned, cases, check};
use proptest::collection::vec;
use proptest::strategy::Strategy;
use std::sync::atomic::{AtomicBool, Ordering};

const THREADS: usize = 8;

/// Raises a flag when it goes, also in a panic, so that those who wait for it do not wait for ever.
struct RaiseAtEnd<'a>(&'a AtomicBool);

impl Drop for RaiseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn many_threads_on_one_handle_read_what_one_alone_reads() {
    let several = (vec(draw::case(), 1..4), draw::large_case().prop_map(|case| vec![case]));
    check("concurrent_reads", cases(8), several, |(small, large)| {
        let cases: Vec<Case> = small.into_iter().chain(large).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("threads.brick");
        let store = Store::create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        let made: Vec<Dense> =
            cases.iter().enumerate().map(|(n, case)| case.create(&mut writer, &n.to_string())).collect();
        writer.commit().unwrap();
        let options = OpenOptions::new;
        let stores = [
            options().open(&path).unwrap(),
            options().threads(2).cache_bytes(200_000).open(&path).unwrap(),
            options().backend(Backend::Pread).threads(1).cache_bytes(200_000).open(&path).unwrap(),
            options().from_bytes(Aligned::read(&path)).unwrap(),
        ];
        for store in &stores {
            let arrays: Vec<Array> = (0..cases.len()).map(|n| store.array(&n.to_string()).unwrap()).collect();
            let reads: Vec<(&Array, &[Axis], Vec<u8>)> = cases
                .iter()
                .zip(&arrays)
                .zip(&made)
                .flat_map(|((case, array), dense)| {
                    let read = |axes| dense.read(&pick(axes, &dense.shape));
                    case.selections.iter().map(move |axes| (array, &axes[..], read(axes)))
                })
                .collect();
            let start = std::sync::Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (reads, start) = (&reads, &start);
                    scope.spawn(move || {
                        start.wait();
                        // All begin with the same reads, then drift apart.
                        for n in 0..3 * reads.len() {
                            let (array, axes, due) = &reads[(n + n / reads.len() * thread) % reads.len()];
                            let read = array.read_bytes(&Selection::from(axes.to_vec())).unwrap();
                            assert!(read == *due, "{axes:?} of {array:?}");
                        }
                    });
                }
            });
        }
    });
}

/// Readers of snapshots, old and new, while a writer commits: each sees one commit, whole.
#[test]
fn readers_see_one_commit_each_while_a_writer_goes_on() {
    const LEN: usize = 5000;
    for backend in [Backend::Mmap, Backend::Pread] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("follow.brick");
        let store = OpenOptions::new().backend(backend).create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        for (name, codec) in [("a", Codec::default()), ("b", Codec::Raw)] {
            writer
                .create_array(name, &ArraySpec::new(Dtype::U32, [LEN as u64]).chunks([512]).codec(codec))
                .unwrap();
        }
        writer.commit().unwrap();
        let first = store.refresh().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = RaiseAtEnd(&done);
            for own_handle in [false, true, true] {
                let (store, path, done, first) = (&store, &path, &done, &first);
                scope.spawn(move || {
                    let own = OpenOptions::new().backend(backend).open(path).unwrap();
                    let mut newest = 0;
                    while !done.load(Ordering::Relaxed) {
                        let snapshot = if own_handle { own.refresh() } else { store.refresh() }.unwrap();
                        assert!(snapshot.generation() >= newest, "a refresh never goes back");
                        newest = snapshot.generation();
                        let a: Vec<u32> = snapshot.array("a").unwrap().read(&Selection::all()).unwrap();
                        let b: Vec<u32> = snapshot.array("b").unwrap().read(&Selection::all()).unwrap();
                        assert!(a == b, "generation {newest}");
                        let held = first.array("a").unwrap().read::<u32>(&Selection::all()).unwrap();
                        assert!(held.iter().all(|item| *item == 0), "the first snapshot");
                    }
                });
            }
            for round in 1..40u32 {
                let step = Axis::Range {
                    start: Some(i64::from(round % 7)),
                    stop: None,
                    step: 1 + i64::from(round % 3),
                };
                let selection = Selection::new([step]);
                let len = selection.shape(&[LEN as u64]).unwrap()[0];
                let items: Vec<u32> = (0..len as u32).map(|n| n / 100 * round + 1).collect();
                for name in ["a", "b"] {
                    writer.write(name, &selection, &items).unwrap();
                }
                writer.commit().unwrap();
            }
        });
    }
}
