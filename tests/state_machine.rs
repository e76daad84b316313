//! Any sequence of what a store can do, with crashes, against a model in memory: committed states by generation, and what
//! is staged. Every snapshot is, and stays, the state of its generation.

mod common;

use brickmap::{
    Attributes, Axis, Backend, Dtype, Durability, Element, EntryKind, Error, OpenOptions, Selection,
    Snapshot, Store, Writer,
};
use common::dense::{Dense, pick};
use common::draw::{self, Drawn, SelectionRecipe, Values, items};
use common::{Random, cases, check, typed};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAMES: [&str; 6] = ["a", "b", "g/a", "g/h/c", "long name ä/array", "z"];
const GROUPS: [&str; 4] = ["g", "g/h", "other", "other/deep/group"];
const READERS: usize = 3;

/// What happens. Arrays, groups and held snapshots are given by numbers that are taken modulo how many there are.
#[derive(Clone, Debug)]
enum Step {
    Create { name: usize, array: Drawn },
    Write { array: usize, selection: SelectionRecipe, values: Values, seed: u64 },
    Fill { array: usize, selection: SelectionRecipe, values: Values, seed: u64 },
    Read { array: usize, selection: SelectionRecipe },
    Append { array: usize, values: Values, seed: u64 },
    Resize { array: usize, seed: u64 },
    InsertRows { array: usize, values: Values, seed: u64 },
    RemoveRows { array: usize, seed: u64 },
    Copy { array: usize, name: usize },
    Compact,
    Delete { entry: usize },
    Rename { entry: usize, name: usize },
    SetAttributes { entry: usize, seed: u64 },
    CreateGroup { name: usize },
    Commit { durability: Durability },
    Sync,
    Abort,
    Reopen { close: bool, backend: Backend },
    Refresh { reader: usize },
    Hold { reader: usize },
    ReadHeld { snapshot: usize },
    LetGo { snapshot: usize },
    Crash,
}

const DURABILITIES: [Durability; 3] = [Durability::Full, Durability::Deferred, Durability::None];

fn step() -> impl Strategy<Value = Step> {
    let number = || 0..1000usize;
    let backend = || select(vec![Backend::Mmap, Backend::Pread]);
    let durability = prop_oneof![
        2 => Just(Durability::Full),
        2 => Just(Durability::Deferred),
        1 => Just(Durability::None)
    ];
    prop_oneof![
        3 => (number(), draw::array()).prop_map(|(name, array)| Step::Create { name, array }),
        9 => (number(), draw::selection(), draw::values(), any::<u64>())
            .prop_map(|(array, selection, values, seed)| Step::Write { array, selection, values, seed }),
        2 => (number(), draw::selection(), draw::values(), any::<u64>())
            .prop_map(|(array, selection, values, seed)| Step::Fill { array, selection, values, seed }),
        2 => (number(), draw::selection()).prop_map(|(array, selection)| Step::Read { array, selection }),
        9 => (number(), draw::values(), any::<u64>())
            .prop_map(|(array, values, seed)| Step::Append { array, values, seed }),
        7 => (number(), any::<u64>()).prop_map(|(array, seed)| Step::Resize { array, seed }),
        3 => (number(), draw::values(), any::<u64>())
            .prop_map(|(array, values, seed)| Step::InsertRows { array, values, seed }),
        3 => (number(), any::<u64>()).prop_map(|(array, seed)| Step::RemoveRows { array, seed }),
        2 => (number(), number()).prop_map(|(array, name)| Step::Copy { array, name }),
        2 => Just(Step::Compact),
        1 => number().prop_map(|entry| Step::Delete { entry }),
        2 => (number(), number()).prop_map(|(entry, name)| Step::Rename { entry, name }),
        3 => (number(), any::<u64>()).prop_map(|(entry, seed)| Step::SetAttributes { entry, seed }),
        1 => number().prop_map(|name| Step::CreateGroup { name }),
        9 => durability.prop_map(|durability| Step::Commit { durability }),
        2 => Just(Step::Sync),
        2 => Just(Step::Abort),
        2 => (any::<bool>(), backend()).prop_map(|(close, backend)| Step::Reopen { close, backend }),
        3 => number().prop_map(|reader| Step::Refresh { reader }),
        3 => number().prop_map(|reader| Step::Hold { reader }),
        3 => number().prop_map(|snapshot| Step::ReadHeld { snapshot }),
        1 => number().prop_map(|snapshot| Step::LetGo { snapshot }),
        3 => Just(Step::Crash),
    ]
}

/// The content of a store.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    arrays: BTreeMap<String, Modelled>,
    groups: Vec<String>,
    attributes: BTreeMap<String, Attributes>,
}

#[derive(Clone, Debug)]
struct Modelled {
    drawn: Drawn,
    /// The chunk shape, past which raw arrays do not grow in all dimensions but the first.
    chunks: Vec<u64>,
    dense: Dense,
}

impl PartialEq for Modelled {
    fn eq(&self, other: &Modelled) -> bool {
        self.dense == other.dense
    }
}

/// Whether `path` is `top` or below it.
fn is_of(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl State {
    fn nth_array(&mut self, number: usize) -> Option<(&String, &mut Modelled)> {
        let count = self.arrays.len();
        self.arrays.iter_mut().nth(number % count.max(1))
    }

    /// Adds the groups above a name that are not there.
    fn add_parents(&mut self, path: &str) {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for parent in ends.map(|at| path[..at].to_owned()) {
            if !self.groups.contains(&parent) {
                self.groups.push(parent);
            }
        }
    }

    /// All arrays and groups.
    fn paths(&self) -> Vec<String> {
        self.arrays.keys().chain(&self.groups).cloned().collect()
    }

    fn delete(&mut self, top: &str) {
        self.arrays.retain(|path, _| !is_of(path, top));
        self.groups.retain(|path| !is_of(path, top));
        self.attributes.retain(|path, _| !is_of(path, top));
    }

    fn rename(&mut self, from: &str, to: &str) {
        let renamed = |path: String| {
            if is_of(&path, from) { format!("{to}{}", &path[from.len()..]) } else { path }
        };
        self.add_parents(to);
        self.arrays =
            std::mem::take(&mut self.arrays).into_iter().map(|(path, it)| (renamed(path), it)).collect();
        self.groups = std::mem::take(&mut self.groups).into_iter().map(renamed).collect();
        self.attributes =
            std::mem::take(&mut self.attributes).into_iter().map(|(path, it)| (renamed(path), it)).collect();
    }

    /// That a snapshot is this state, exactly.
    #[track_caller]
    fn assert_is(&self, snapshot: &Snapshot, when: &str) {
        let when = format!("generation {} {when}", snapshot.generation());
        let entries = snapshot.entries().unwrap();
        let mut found: Vec<&str> = entries.iter().map(|entry| &entry.path[..]).collect();
        let mut due: Vec<&str> = self.arrays.keys().chain(&self.groups).map(|path| &path[..]).collect();
        found.sort_unstable();
        due.sort_unstable();
        assert_eq!(found, due, "{when}");
        for path in found.into_iter().chain([""]) {
            let attributes = self.attributes.get(path).cloned().unwrap_or_default();
            assert_eq!(snapshot.attributes(path).unwrap(), attributes, "attributes of '{path}' in {when}");
        }
        for (path, Modelled { drawn, chunks, dense }) in &self.arrays {
            let array = snapshot.array(path).unwrap();
            assert_eq!((array.dtype(), array.chunks()), (&drawn.dtype, &chunks[..]), "'{path}' in {when}");
            assert_eq!(array.shape(), dense.shape, "'{path}' in {when}");
            assert!(array.read_bytes(&Selection::all()).unwrap() == dense.bytes, "'{path}' in {when}");
        }
    }
}

/// The store, and the model of it.
struct World {
    directory: tempfile::TempDir,
    /// How many crashes there were: each goes on with another file.
    crashes: usize,
    store: Store,
    /// Always there but for a moment.
    writer: Option<Writer>,
    readers: Vec<Store>,
    held: Vec<(Snapshot, Arc<State>)>,
    generations: BTreeMap<u64, Arc<State>>,
    staged: State,
    /// Whether a commit may do without any sync.
    unsynced: bool,
    /// Whether the handle makes files without any sync.
    careless: bool,
}

fn path(directory: &Path, crashes: usize) -> PathBuf {
    directory.join(format!("{crashes}.brick"))
}

fn open_readers(path: &Path) -> Vec<Store> {
    let backend = |n: usize| if n == 1 { Backend::Pread } else { Backend::Mmap };
    let options = OpenOptions::new;
    (0..READERS).map(|n| options().backend(backend(n)).threads(1).open(path).unwrap()).collect()
}

fn open_to_write(path: &Path, backend: Backend) -> Store {
    OpenOptions::new().write(true).backend(backend).threads(1).open(path).unwrap()
}

impl World {
    fn new(durability: Durability) -> World {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), 0);
        let store = OpenOptions::new().durability(durability).threads(1).create(&path).unwrap();
        let generation = store.snapshot().generation();
        World {
            directory,
            crashes: 0,
            writer: Some(store.writer().unwrap()),
            store,
            readers: open_readers(&path),
            held: Vec::new(),
            generations: BTreeMap::from([(generation, Arc::default())]),
            staged: State::default(),
            unsynced: durability == Durability::None,
            careless: durability == Durability::None,
        }
    }

    fn path(&self) -> PathBuf {
        path(self.directory.path(), self.crashes)
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().unwrap()
    }

    fn newest(&self) -> (u64, Arc<State>) {
        self.generations.last_key_value().map(|(generation, state)| (*generation, state.clone())).unwrap()
    }

    /// What is staged is gone.
    fn roll_back(&mut self) {
        self.writer = None;
        self.staged = (*self.newest().1).clone();
    }

    /// That the newest state of the file is the last commit, and nothing is wrong with the file.
    fn assert_newest(&self, store: &Store, when: &str) {
        let (generation, state) = self.newest();
        let snapshot = store.snapshot();
        assert_eq!(snapshot.generation(), generation, "{when}");
        state.assert_is(&snapshot, when);
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{when}: {report:?}");
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create { name, array } => self.create(NAMES[name % NAMES.len()], array),
            Step::Write { array, selection, values, seed } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let axes = selection.axes(&it.dense.shape);
                let picked = pick(&axes, &it.dense.shape);
                let bytes = items(&it.drawn.dtype, *values, *seed, picked.len());
                it.dense.write(&picked, &bytes);
                let (writer, selection) = (self.writer.as_mut().unwrap(), Selection::from(axes));
                draw::write(writer, path, &it.drawn.dtype, &selection, &picked.shape, &bytes, *seed);
            }
            Step::Fill { array, selection, values, seed } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let axes = selection.axes(&it.dense.shape);
                let picked = pick(&axes, &it.dense.shape);
                let fill = it.drawn.fill_item();
                let item = if seed % 3 == 0 { fill } else { items(&it.drawn.dtype, *values, *seed, 1) };
                it.dense.write(&picked, &item.repeat(picked.len()));
                self.writer.as_mut().unwrap().fill_bytes(path, &Selection::from(axes), &item).unwrap();
            }
            Step::Append { array, values, seed } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let limits = it.drawn.limits(&it.chunks);
                let Some((axis, len)) = draw::growth(&it.dense.shape, &limits, *seed) else { return };
                let bytes = it.dense.grow(axis, len, |count| items(&it.drawn.dtype, *values, *seed, count));
                self.writer.as_mut().unwrap().append_bytes(path, axis, &bytes).unwrap();
            }
            Step::Read { array, selection } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let axes = selection.axes(&it.dense.shape);
                let due = it.dense.read(&pick(&axes, &it.dense.shape));
                let writer = self.writer.as_mut().unwrap();
                typed!(it.drawn.dtype, assert_staged(writer, path, &axes, &due));
            }
            Step::Resize { array, seed } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let limits = it.drawn.limits(&it.chunks);
                let shape = draw::other_shape(&it.dense.shape, &limits, *seed);
                it.dense = it.dense.resized(&shape, &it.drawn.fill_item());
                self.writer.as_mut().unwrap().resize(path, &shape).unwrap();
            }
            Step::InsertRows { array, values, seed } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let Some(row) = it.dense.shape.get(1..).map(|row| row.iter().product::<u64>()) else {
                    return;
                };
                let (mut random, chunk) = (Random(*seed), it.chunks[0]);
                let at = random.below(it.dense.shape[0] + 1);
                let (at, count) = match random.below(2) {
                    0 => (at, 1 + random.below(4)),
                    _ => (at / chunk * chunk, chunk),
                };
                if row == 0 || (it.dense.shape[0] + count) * row > 4000 {
                    return;
                }
                let bytes = items(&it.drawn.dtype, *values, *seed, (count * row) as usize);
                it.dense.insert_rows(at, &bytes);
                self.writer.as_mut().unwrap().insert_bytes(path, at, &bytes).unwrap();
            }
            Step::RemoveRows { array, seed } => {
                let Some((path, it)) = self.staged.nth_array(*array) else { return };
                let Some(&rows) = it.dense.shape.first() else { return };
                let (mut random, chunk) = (Random(*seed), it.chunks[0]);
                let at = random.below(rows + 1);
                let (at, count) = match random.below(2) {
                    0 => (at, 1 + random.below(4)),
                    _ => (at / chunk * chunk, chunk),
                };
                let gone = at..(at + count).min(rows);
                it.dense.remove_rows(gone.clone());
                self.writer.as_mut().unwrap().remove(path, gone).unwrap();
            }
            Step::Copy { array, name } => {
                let Some((from, it)) = self.staged.nth_array(*array) else { return };
                let (from, it, to) = (from.clone(), it.clone(), NAMES[name % NAMES.len()]);
                let outcome = self.writer().copy(&from, to);
                if self.staged.arrays.contains_key(to) {
                    assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "'{from}' to '{to}'");
                    return;
                }
                outcome.unwrap();
                self.staged.add_parents(to);
                self.staged.arrays.insert(to.to_owned(), it);
                if let Some(attributes) = self.staged.attributes.get(&from).cloned() {
                    self.staged.attributes.insert(to.to_owned(), attributes);
                }
            }
            Step::Compact => {
                self.roll_back();
                self.store = self.store.compact(None).unwrap();
                let (_, state) = self.newest();
                self.unsynced = self.careless;
                // Numbers start anew; what is held stays what it is.
                self.generations = BTreeMap::from([(self.store.snapshot().generation(), state)]);
                self.readers = open_readers(&self.path());
                self.assert_newest(&self.store, "compact");
                assert_eq!(self.store.snapshot().free_bytes().unwrap(), 0);
                self.writer = Some(self.store.writer().unwrap());
            }
            Step::Delete { entry } => {
                let paths = self.staged.paths();
                let Some(path) = paths.get(entry % paths.len().max(1)) else { return };
                self.writer().delete(path).unwrap();
                self.staged.delete(path);
            }
            Step::Rename { entry, name } => {
                let paths = self.staged.paths();
                let Some(from) = paths.get(entry % paths.len().max(1)) else { return };
                let is_array = self.staged.arrays.contains_key(from);
                let to = if is_array { NAMES[name % NAMES.len()] } else { GROUPS[name % GROUPS.len()] };
                let outcome = self.writer().rename(from, to);
                if from != to && is_of(to, from) {
                    assert!(matches!(outcome, Err(Error::InvalidArgument { .. })), "'{from}' to '{to}'");
                } else if paths.iter().any(|path| path == to) {
                    assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "'{from}' to '{to}'");
                } else {
                    outcome.unwrap();
                    self.staged.rename(from, to);
                }
            }
            Step::SetAttributes { entry, seed } => self.set_attributes(*entry, *seed),
            Step::CreateGroup { name } => {
                let path = GROUPS[name % GROUPS.len()];
                match self.writer().create_group(path) {
                    Ok(()) => {
                        self.staged.add_parents(path);
                        self.staged.groups.push(path.to_owned());
                    }
                    Err(Error::AlreadyExists { .. }) => {
                        assert!(self.staged.groups.iter().any(|group| group == path), "{path}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Commit { durability } => self.commit(*durability),
            Step::Sync => {
                self.writer().sync().unwrap();
                self.unsynced = false;
                self.assert_newest(&Store::open(self.path()).unwrap(), "after a sync");
            }
            Step::Abort => {
                self.roll_back();
                self.writer = Some(self.store.writer().unwrap());
            }
            Step::Reopen { close, backend } => {
                self.roll_back();
                let next = open_to_write(&self.path(), *backend);
                let last = std::mem::replace(&mut self.store, next);
                if *close {
                    last.close().unwrap();
                }
                (self.unsynced, self.careless) = (false, false);
                self.assert_newest(&self.store, "opened again");
                self.writer = Some(self.store.writer().unwrap());
            }
            Step::Refresh { reader } => {
                let snapshot = self.readers[reader % READERS].refresh().unwrap();
                let (generation, state) = self.newest();
                assert_eq!(snapshot.generation(), generation);
                state.assert_is(&snapshot, "refreshed");
            }
            Step::Hold { reader } => {
                let snapshot = self.readers[reader % READERS].snapshot();
                let state = self.generations[&snapshot.generation()].clone();
                self.held.push((snapshot, state));
            }
            Step::ReadHeld { snapshot } => {
                if let Some((snapshot, state)) = self.held.get(snapshot % self.held.len().max(1)) {
                    state.assert_is(snapshot, "held");
                }
            }
            Step::LetGo { snapshot } => {
                if !self.held.is_empty() {
                    self.held.swap_remove(snapshot % self.held.len());
                }
            }
            Step::Crash => self.crash(),
        }
    }

    fn create(&mut self, path: &str, array: &Drawn) {
        match self.writer().create_array(path, &array.spec()) {
            Ok(()) => {
                self.staged.add_parents(path);
                let (chunks, _) = array.spec().resolved_shapes().unwrap();
                let modelled = Modelled { drawn: array.clone(), chunks, dense: array.empty() };
                assert!(self.staged.arrays.insert(path.to_owned(), modelled).is_none(), "{path} was there");
            }
            Err(Error::AlreadyExists { .. }) => assert!(self.staged.arrays.contains_key(path), "{path}"),
            Err(error) => panic!("{error}"),
        }
    }

    fn set_attributes(&mut self, entry: usize, seed: u64) {
        let paths: Vec<String> =
            self.staged.arrays.keys().chain(&self.staged.groups).cloned().chain([String::new()]).collect();
        let path = &paths[entry % paths.len()];
        let mut random = Random(seed);
        let mut attributes = Attributes::new();
        for _ in 0..random.below(3) {
            // Some are long enough for a place of their own.
            let text = "x".repeat(random.below(5) as usize * random.below(900) as usize);
            attributes.insert(format!("key {}", random.below(4)), text.into());
        }
        self.writer().set_attributes(path, &attributes).unwrap();
        assert_eq!(self.writer().attributes(path).unwrap(), attributes);
        let expected =
            if self.staged.arrays.contains_key(path) { EntryKind::Array } else { EntryKind::Group };
        assert_eq!(self.writer().kind(path).unwrap(), Some(expected));
        self.staged.attributes.insert(path.clone(), attributes);
        self.staged.attributes.retain(|_, attributes| !attributes.is_empty());
    }

    fn commit(&mut self, durability: Durability) {
        let (last, before) = self.newest();
        let outcome = self.writer().commit_with(durability);
        if durability == Durability::None && !self.unsynced {
            assert!(matches!(outcome, Err(Error::InvalidState { .. })), "a commit without a sync");
            return;
        }
        let snapshot = outcome.unwrap();
        let generation = snapshot.generation();
        let changed = generation == last + 1;
        assert!(changed || generation == last && self.staged == *before, "{generation} after {last}");
        self.unsynced &= match durability {
            Durability::Full => false,
            Durability::Deferred => !changed,
            _ => true,
        };
        self.generations.insert(generation, Arc::new(self.staged.clone()));
        self.staged.assert_is(&snapshot, "committed");
        self.assert_newest(&Store::open(self.path()).unwrap(), "after a commit");
    }

    /// Goes on with a copy of the file as it is at this moment, which is what a process leaves that is killed.
    fn crash(&mut self) {
        let left = std::fs::read(self.path()).unwrap();
        self.roll_back();
        self.crashes += 1;
        std::fs::write(self.path(), left).unwrap();
        self.assert_newest(&Store::open(self.path()).unwrap(), "after a crash");
        self.store = open_to_write(&self.path(), Backend::Mmap);
        (self.unsynced, self.careless) = (false, false);
        self.writer = Some(self.store.writer().unwrap());
        self.assert_newest(&self.store, "with a writer after a crash");
        self.readers = open_readers(&self.path());
    }
}

fn assert_staged<T: Element>(writer: &mut Writer, path: &str, axes: &[Axis], due: &[u8]) {
    let items = writer.read::<T>(path, &Selection::from(axes.to_vec())).unwrap();
    assert!(bytemuck::cast_slice::<T, u8>(&items) == due, "staged {axes:?} of {path}");
}

#[test]
fn every_snapshot_is_the_model_of_its_generation() {
    let steps = (select(DURABILITIES.to_vec()), vec(step(), 5..45));
    check("state_machine", cases(150), steps, |(durability, steps)| {
        let mut world = World::new(durability);
        steps.iter().for_each(|step| world.step(step));
        world.held.iter().for_each(|(snapshot, state)| state.assert_is(snapshot, "held to the end"));
        world.crash();
    });
}
