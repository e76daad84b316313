//! Names that go and change: what they stand for comes with them or goes whole, and costs what the catalog says of it.

mod common;
mod forge;

use brickmap::{
    ArraySpec, Attributes, Backend, Codec, Dtype, EntryKind, Error, OpenOptions, Result, Selection, Snapshot,
    Store, Writer,
};
use common::{Random, cases, check};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Names whose keys stand between those of others and what is below them.
const NAMES: [&str; 14] = [
    "a",
    "a-b",
    "a/b",
    "a/b/c",
    "a/b-c",
    "a0",
    "ab",
    "a\u{1}",
    "b",
    "b/a",
    "b/a/b/c/d",
    "ä/ö",
    "long/but/not/too/long/to/be/a/name",
    "z",
];

#[derive(Clone, Debug)]
enum Step {
    CreateGroup { name: usize },
    CreateArray { name: usize, seed: u64 },
    CreateStrings { name: usize, seed: u64 },
    Write { entry: usize, seed: u64 },
    SetAttributes { entry: usize, seed: u64 },
    Delete { entry: usize },
    Rename { entry: usize, name: usize },
    Commit,
    Rollback,
    Reopen { map: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0..1000usize;
    let seed = any::<u64>;
    prop_oneof![
        1 => number().prop_map(|name| Step::CreateGroup { name }),
        4 => (number(), seed()).prop_map(|(name, seed)| Step::CreateArray { name, seed }),
        2 => (number(), seed()).prop_map(|(name, seed)| Step::CreateStrings { name, seed }),
        3 => (number(), seed()).prop_map(|(entry, seed)| Step::Write { entry, seed }),
        3 => (number(), seed()).prop_map(|(entry, seed)| Step::SetAttributes { entry, seed }),
        3 => number().prop_map(|entry| Step::Delete { entry }),
        4 => (number(), number()).prop_map(|(entry, name)| Step::Rename { entry, name }),
        3 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => any::<bool>().prop_map(|map| Step::Reopen { map }),
    ]
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Group,
    Array(Vec<u32>),
    Strings(Vec<String>),
}

/// The content of a store, by path; the attributes of the root group have the empty path.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    nodes: BTreeMap<String, Node>,
    attributes: BTreeMap<String, Attributes>,
}

/// Whether `path` is `top` or below it.
fn is_of(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

impl State {
    fn nth(&self, number: usize) -> Option<String> {
        self.nodes.keys().nth(number % self.nodes.len().max(1)).cloned()
    }

    fn is_free(&self, path: &str) -> bool {
        let mut above = parents(path);
        !self.nodes.contains_key(path)
            && above.all(|parent| self.nodes.get(parent).is_none_or(|it| *it == Node::Group))
    }

    fn add(&mut self, path: &str, node: Node) {
        for parent in parents(path) {
            self.nodes.entry(parent.to_owned()).or_insert(Node::Group);
        }
        self.nodes.insert(path.to_owned(), node);
    }

    fn delete(&mut self, top: &str) {
        self.nodes.retain(|path, _| !is_of(path, top));
        self.attributes.retain(|path, _| !is_of(path, top));
    }

    fn rename(&mut self, from: &str, to: &str) {
        fn renamed<T>(map: &mut BTreeMap<String, T>, from: &str, to: &str) {
            for (path, node) in std::mem::take(map) {
                let path = if is_of(&path, from) { format!("{to}{}", &path[from.len()..]) } else { path };
                map.insert(path, node);
            }
        }
        self.add(to, Node::Group);
        self.nodes.remove(to);
        renamed(&mut self.nodes, from, to);
        renamed(&mut self.attributes, from, to);
    }

    fn entries(&self) -> Vec<(String, EntryKind)> {
        let kind = |node: &Node| match node {
            Node::Group => EntryKind::Group,
            Node::Array(_) => EntryKind::Array,
            Node::Strings(_) => EntryKind::Ragged,
        };
        let mut entries: Vec<_> = self.nodes.iter().map(|(path, node)| (path.clone(), kind(node))).collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        entries
    }

    #[track_caller]
    fn assert_staged(&self, writer: &mut Writer) {
        let entries = writer.entries().unwrap().into_iter().map(|entry| (entry.path, entry.kind));
        assert_eq!(entries.collect::<Vec<_>>(), self.entries());
        for (path, node) in &self.nodes {
            assert_eq!(writer.attributes(path).unwrap(), self.attributes_of(path), "{path}");
            if let Node::Array(items) = node {
                assert_eq!(writer.read::<u32>(path, &Selection::all()).unwrap(), *items, "{path}");
            }
        }
        assert_eq!(writer.attributes("").unwrap(), self.attributes_of(""));
    }

    #[track_caller]
    fn assert_is(&self, snapshot: &Snapshot) {
        let entries = snapshot.entries().unwrap().into_iter().map(|entry| (entry.path, entry.kind));
        assert_eq!(entries.collect::<Vec<_>>(), self.entries());
        for (path, node) in &self.nodes {
            assert_eq!(snapshot.attributes(path).unwrap(), self.attributes_of(path), "{path}");
            match node {
                Node::Group => {}
                Node::Array(items) => {
                    let found: Vec<u32> = snapshot.array(path).unwrap().read(&Selection::all()).unwrap();
                    assert_eq!(found, *items, "{path}");
                }
                Node::Strings(strings) => {
                    let ragged = snapshot.ragged(path).unwrap();
                    let found = ragged.read_strings(&Selection::all()).unwrap();
                    assert!(found.iter().eq(strings.iter()), "{path}");
                }
            }
        }
        assert_eq!(snapshot.attributes("").unwrap(), self.attributes_of(""));
    }

    fn attributes_of(&self, path: &str) -> Attributes {
        self.attributes.get(path).cloned().unwrap_or_default()
    }
}

#[track_caller]
fn assert_clean(path: &Path) {
    let report = Store::open(path).unwrap().verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// Attributes, some of which stand in a blob.
fn attributes(seed: u64) -> Attributes {
    let text = "x".repeat([0, 10, 500, 3000][(seed % 4) as usize]);
    Attributes::from_iter([("seed".to_owned(), seed.into()), ("text".to_owned(), text.into())])
}

fn numbers(seed: u64, count: u64) -> Vec<u32> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next() as u32).collect()
}

fn words(seed: u64) -> Vec<String> {
    (0..seed % 5).map(|n| "wörd".repeat((seed % (n + 3)) as usize)).collect()
}

#[test]
fn names_that_go_and_change_match_a_model() {
    check("names", cases(60), vec(step(), 1..60), |steps| play(&steps));
}

fn play(steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let path = &directory.path().join("names.brick");
    let mut store = Store::create(path).unwrap();
    let mut writer = store.writer().unwrap();
    let (mut staged, mut committed) = (State::default(), State::default());
    let mut older: Vec<(Snapshot, State)> = Vec::new();
    for step in steps {
        let before = staged.clone();
        match *step {
            Step::CreateGroup { name } => {
                let name = NAMES[name % NAMES.len()];
                if staged.is_free(name) {
                    writer.create_group(name).unwrap();
                    staged.add(name, Node::Group);
                }
            }
            Step::CreateArray { name, seed } => {
                let (name, codec) =
                    (NAMES[name % NAMES.len()], [Codec::default(), Codec::Raw][(seed % 2) as usize]);
                let count = seed % 300;
                if staged.is_free(name) {
                    let spec = ArraySpec::new(Dtype::U32, [count]).codec(codec).chunks([16]);
                    writer.create_array(name, &spec).unwrap();
                    staged.add(name, Node::Array(vec![0; count as usize]));
                }
            }
            Step::CreateStrings { name, seed } => {
                let name = NAMES[name % NAMES.len()];
                if staged.is_free(name) {
                    let words = words(seed);
                    writer.create_strings(name, &[words.len() as u64], &words).unwrap();
                    staged.add(name, Node::Strings(words));
                }
            }
            Step::Write { entry, seed } => {
                let Some(name) = staged.nth(entry) else { continue };
                if let Some(Node::Array(items)) = staged.nodes.get_mut(&name) {
                    *items = numbers(seed, items.len() as u64);
                    writer.write(&name, &Selection::all(), items).unwrap();
                }
            }
            Step::SetAttributes { entry, seed } => {
                let name = if seed % 5 == 0 { Some(String::new()) } else { staged.nth(entry) };
                let Some(name) = name else { continue };
                writer.set_attributes(&name, &attributes(seed)).unwrap();
                staged.attributes.insert(name, attributes(seed));
            }
            Step::Delete { entry } => {
                let Some(name) = staged.nth(entry) else { continue };
                writer.delete(&name).unwrap();
                staged.delete(&name);
                assert!(matches!(writer.delete(&name), Err(Error::NotFound { .. })));
            }
            Step::Rename { entry, name } => {
                let Some(from) = staged.nth(entry) else { continue };
                let to = NAMES[name % NAMES.len()];
                let outcome = writer.rename(&from, to);
                if from != to && is_of(to, &from) {
                    assert!(
                        matches!(outcome, Err(Error::InvalidArgument { .. })),
                        "{from} {to}: {outcome:?}"
                    );
                } else if staged.nodes.contains_key(to) {
                    assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "{from} {to}: {outcome:?}");
                } else if !staged.is_free(to) {
                    assert!(
                        matches!(outcome, Err(Error::InvalidArgument { .. })),
                        "{from} {to}: {outcome:?}"
                    );
                } else {
                    outcome.unwrap();
                    staged.rename(&from, to);
                }
            }
            Step::Commit => {
                let snapshot = writer.commit().unwrap();
                committed = staged.clone();
                committed.assert_is(&snapshot);
                older.push((snapshot, committed.clone()));
                assert_clean(path);
            }
            Step::Rollback => {
                drop(writer);
                staged = committed.clone();
                committed.assert_is(&store.refresh().unwrap());
                assert_clean(path);
                writer = store.writer().unwrap();
            }
            Step::Reopen { map } => {
                drop(writer);
                staged = committed.clone();
                let backend = if map { Backend::Mmap } else { Backend::Pread };
                store = OpenOptions::new().write(true).backend(backend).open(path).unwrap();
                committed.assert_is(&store.snapshot());
                writer = store.writer().unwrap();
            }
        }
        if staged != before {
            staged.assert_staged(&mut writer);
        }
    }
    staged.assert_staged(&mut writer);
    staged.assert_is(&writer.commit().unwrap());
    assert_clean(path);
    for (snapshot, state) in &older {
        state.assert_is(snapshot);
    }
}

#[test]
fn a_group_of_very_many_is_renamed_and_deleted_whole() {
    const COUNT: usize = 3000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut state = State::default();
    let spec = ArraySpec::new(Dtype::U32, [4]);
    for n in 0..COUNT {
        let name = format!("group/{}/{n:05}", n % 3);
        writer.create_array(&name, &spec).unwrap();
        state.add(&name, Node::Array(vec![0; 4]));
        if n % 100 == 0 {
            writer.write(&name, &Selection::all(), &[n as u32; 4]).unwrap();
            writer.set_attributes(&name, &attributes(n as u64)).unwrap();
            state.nodes.insert(name.clone(), Node::Array(vec![n as u32; 4]));
            state.attributes.insert(name, attributes(n as u64));
        }
        if n == COUNT / 2 {
            writer.commit().unwrap();
        }
    }
    let before = writer.commit().unwrap().file_bytes();
    writer.rename("group", "other/name").unwrap();
    state.rename("group", "other/name");
    // Some are staged with what was renamed, some are stored.
    writer.write("other/name/1/00001", &Selection::all(), &[9u32; 4]).unwrap();
    state.nodes.insert("other/name/1/00001".into(), Node::Array(vec![9; 4]));
    state.assert_is(&writer.commit().unwrap());
    writer.delete("other/name/1").unwrap();
    state.delete("other/name/1");
    let snapshot = writer.commit().unwrap();
    state.assert_is(&snapshot);
    assert!(snapshot.file_bytes() < 3 * before, "{} {before}", snapshot.file_bytes());
    assert_clean(&path);
    writer.delete("other").unwrap();
    assert_eq!(writer.commit().unwrap().entries().unwrap(), []);
    assert_clean(&path);
}

#[test]
fn renaming_writes_the_catalog_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cost.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let items = numbers(1, 1_000_000);
    writer.create_array("group/large", &ArraySpec::new(Dtype::U32, [1_000_000]).chunks([1000])).unwrap();
    writer.write("group/large", &Selection::all(), &items).unwrap();
    writer.set_attributes("group/large", &attributes(3)).unwrap();
    let before = writer.commit().unwrap();
    writer.rename("group/large", "group/larger").unwrap();
    let renamed = writer.commit().unwrap();
    assert!(renamed.file_bytes() - before.file_bytes() < 2048, "an array");
    writer.rename("group", "a/b/c").unwrap();
    let moved = writer.commit().unwrap();
    assert!(moved.file_bytes() - renamed.file_bytes() < 2048, "a group");
    let found: Vec<u32> = moved.array("a/b/c/larger").unwrap().read(&Selection::all()).unwrap();
    assert!(found == items);
    assert_eq!(moved.attributes("a/b/c/larger").unwrap(), attributes(3));
    assert_clean(&path);
}

/// A store with everything in it that can take space, as a program of its own forged it and as the library writes it.
fn everything(path: &Path) -> Store {
    std::fs::write(path, forge::sample().0).unwrap();
    let store = OpenOptions::new().write(true).open(path).unwrap();
    let mut writer = store.writer().unwrap();
    for (n, codec) in [Codec::default(), Codec::Raw].into_iter().enumerate() {
        let name = format!("written/{n}");
        let spec = ArraySpec::new(Dtype::U32, [200, 50]).codec(codec).chunks([10, 50]);
        writer.create_array(&name, &spec).unwrap();
        writer.write(&name, &Selection::all(), &numbers(n as u64, 10_000)).unwrap();
        writer.set_attributes(&name, &attributes(3)).unwrap();
    }
    writer.create_strings("written/words", &[3], &["one", "two", "three"]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    store
}

/// The entries of a snapshot, and the items of its arrays but one.
fn content(snapshot: &Snapshot, but: &str) -> Vec<(String, EntryKind, Vec<u8>)> {
    let items = |path: &str, kind| match kind {
        EntryKind::Array if path != but => {
            snapshot.array(path).unwrap().read_bytes(&Selection::all()).unwrap()
        }
        _ => Vec::new(),
    };
    let entries = snapshot.entries().unwrap().into_iter();
    entries.map(|entry| (entry.path.clone(), entry.kind, items(&entry.path, entry.kind))).collect()
}

#[test]
fn what_is_deleted_is_free_to_the_last_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("space.brick");
    for staged in [false, true] {
        let store = everything(&path);
        let mut writer = store.writer().unwrap();
        let entries = store.refresh().unwrap().entries().unwrap();
        for entry in entries.iter().filter(|entry| !entry.path.contains('/')) {
            if staged && entry.kind == EntryKind::Array {
                let all = writer.read::<u8>(&entry.path, &Selection::all());
                assert!(matches!(all, Ok(_) | Err(Error::DtypeMismatch { .. })));
                let shape = store.array(&entry.path).unwrap().shape().to_vec();
                let other: Vec<u64> = shape.iter().map(|len| len.saturating_sub(1)).collect();
                writer.resize(&entry.path, &other).unwrap();
            }
            writer.delete(&entry.path).unwrap();
        }
        writer.set_attributes("", &Attributes::new()).unwrap();
        assert_eq!(writer.entries().unwrap(), []);
        let snapshot = writer.commit().unwrap();
        let unused = snapshot.file_bytes() - 16384 - snapshot.free_bytes().unwrap();
        // Nothing is left but what says so.
        assert!(unused < 8192, "{unused} of {}", snapshot.file_bytes());
        assert_clean(&path);
        drop((snapshot, writer));
        store.refresh().unwrap();
        let mut writer = store.writer().unwrap();
        writer.create_group("x").unwrap();
        let end = writer.commit().unwrap().file_bytes();
        writer.create_array("again", &ArraySpec::new(Dtype::U32, [10_000])).unwrap();
        writer.write("again", &Selection::all(), &numbers(8, 10_000)).unwrap();
        assert!(writer.commit().unwrap().file_bytes() <= end, "space is used again");
        assert_clean(&path);
        drop(writer);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_name_is_free_again_within_the_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("again.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let fill = |writer: &mut Writer, count: u64, item: u32| {
        writer.create_array("g/a", &ArraySpec::new(Dtype::U32, [count]).chunks([8])).unwrap();
        writer.write("g/a", &Selection::all(), &vec![item; count as usize]).unwrap();
    };
    fill(&mut writer, 100, 1);
    writer.set_attributes("g/a", &attributes(2)).unwrap();
    writer.delete("g/a").unwrap();
    fill(&mut writer, 50, 2);
    writer.commit().unwrap();
    writer.delete("/g/").unwrap();
    assert_eq!(writer.kind("g").unwrap(), None);
    writer.create_strings("g", &[1], &["now an array"]).unwrap();
    writer.rename("g", "h").unwrap();
    fill(&mut writer, 20, 3);
    assert_eq!(writer.attributes("g/a").unwrap(), Attributes::new());
    let snapshot = writer.commit().unwrap();
    assert_eq!(snapshot.array("g/a").unwrap().read::<u32>(&Selection::all()).unwrap(), [3; 20]);
    let words = snapshot.ragged("h").unwrap().read_strings(&Selection::all()).unwrap();
    assert_eq!(words.get(0), Some("now an array"));
    assert_clean(&path);
}

#[test]
fn what_was_gathered_to_append_comes_with_the_name_or_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gathered.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    for name in ["g/a", "g/b", "g/c"] {
        writer.create_array(name, &ArraySpec::new(Dtype::U32, [0]).chunks([8])).unwrap();
        writer.append(name, 0, &numbers(1, 11)).unwrap();
    }
    writer.delete("g/a").unwrap();
    writer.rename("g", "h").unwrap();
    writer.append("h/b", 0, &[5u32, 6]).unwrap();
    writer.append("h/c", 0, &[7u32]).unwrap();
    writer.insert("h/c", 1, &[8u32]).unwrap();
    let snapshot = writer.commit().unwrap();
    let read = |name| snapshot.array(name).unwrap().read::<u32>(&Selection::all()).unwrap();
    let appended = numbers(1, 11);
    assert_eq!(read("h/b"), [&appended[..], &[5, 6]].concat());
    assert_eq!(read("h/c"), [&appended[..1], &[8], &appended[1..], &[7]].concat());
    assert_eq!(snapshot.kind("h/a").unwrap(), None);
    assert_clean(&path);
}

#[test]
fn rolled_back_changes_of_names_leave_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rollback.brick");
    let store = everything(&path);
    let before = store.refresh().unwrap();
    let generation = before.generation();
    let (items, free) = (content(&before, ""), before.free_bytes().unwrap());
    drop(before);
    let mut writer = store.writer().unwrap();
    writer.rename("written", "other").unwrap();
    writer.write("other/0", &Selection::from(0), &[5u32; 50]).unwrap();
    writer.delete("other/1").unwrap();
    writer.delete("group").unwrap();
    writer.delete("pieces").unwrap();
    drop(writer);
    let after = store.refresh().unwrap();
    assert_eq!(after.generation(), generation);
    assert!(content(&after, "") == items);
    assert_eq!(after.free_bytes().unwrap(), free);
    assert_clean(&path);
}

#[test]
fn what_is_unknown_is_renamed_and_not_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("unknown.brick");
    let mut forged = forge::Forge::new();
    forged.change("record group/raw", &|record| record[0] = 9);
    std::fs::write(&path, forge::sample_with(forged).0).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let generation = store.snapshot().generation();
    let mut writer = store.writer().unwrap();
    for name in ["group", "group/raw"] {
        let error = writer.delete(name).unwrap_err();
        assert!(error.to_string().contains("'group/raw', which is a record of kind 9"), "{error}");
        assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    }
    assert_eq!(writer.commit().unwrap().generation(), generation, "nothing was changed");
    let kind = |writer: &Writer, name: &str| {
        writer.entries().unwrap().iter().find(|entry| entry.path == name).map(|entry| entry.kind)
    };
    writer.rename("group/raw", "group/later").unwrap();
    writer.rename("group", "new/group").unwrap();
    assert_eq!(kind(&writer, "new/group/later"), Some(EntryKind::Unknown));
    writer.commit().unwrap();
    writer.rename("new/group", "group").unwrap();
    writer.rename("group/later", "group/raw").unwrap();
    writer.delete("new").unwrap();
    let snapshot = writer.commit().unwrap();
    let before = store.snapshot();
    assert_eq!(snapshot.changes_since(&before).unwrap(), [], "the record is what it was");
}

#[test]
fn a_delete_that_fails_midway_ends_the_writer_and_leaves_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.brick");
    let mut forged = forge::Forge::new();
    forged.change("deep leaf 1", &|page| page[24] = 99);
    std::fs::write(&path, forge::sample_with(forged).0).unwrap();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let before = content(&store.snapshot(), "deep");
    let mut writer = store.writer().unwrap();
    assert!(matches!(writer.delete("deep"), Err(Error::Corrupt { .. })));
    assert!(matches!(writer.delete("b"), Err(Error::InvalidState { .. })));
    assert!(matches!(writer.commit(), Err(Error::InvalidState { .. })));
    drop(writer);
    assert_eq!(content(&store.refresh().unwrap(), "deep"), before);
    // A name is no part of what is damaged.
    let mut writer = store.writer().unwrap();
    writer.rename("deep", "damaged").unwrap();
    writer.delete("b").unwrap();
    writer.commit().unwrap();
}

#[test]
fn names_that_cannot_be_are_refused_before_anything_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let deep = format!("group/{}/x", "deep".repeat(100));
    writer.create_array("array", &ArraySpec::new(Dtype::U8, [3])).unwrap();
    writer.create_array(&deep, &ArraySpec::new(Dtype::U8, [3])).unwrap();
    writer.create_strings("strings", &[1], &["a"]).unwrap();
    let generation = writer.commit().unwrap().generation();
    let long = "n".repeat(1000);
    let (longest, too_long) = ("n".repeat(1024 - deep.len() + 5), "n".repeat(1024 - deep.len() + 6));
    let mut refused = |outcome: &dyn Fn(&mut Writer) -> Result<()>, about: &str| {
        let error = outcome(&mut writer).unwrap_err();
        assert!(error.to_string().contains(about), "'{error}' does not contain '{about}'");
        assert_eq!(writer.commit().unwrap().generation(), generation, "nothing was changed: {error}");
        format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
    };
    for root in ["", "/"] {
        assert_eq!(refused(&|writer| writer.delete(root), "root group"), "InvalidArgument");
        assert_eq!(refused(&|writer| writer.rename(root, "b"), "root group"), "InvalidArgument");
        assert_eq!(refused(&|writer| writer.rename("array", root), "root group"), "InvalidArgument");
    }
    assert_eq!(refused(&|writer| writer.delete("arrau"), "'array'"), "NotFound");
    assert_eq!(refused(&|writer| writer.delete("array/below"), "no array"), "NotFound");
    assert_eq!(refused(&|writer| writer.delete(&"x".repeat(5000)), "no array"), "NotFound");
    assert_eq!(refused(&|writer| writer.rename("strngs", "b"), "'strings'"), "NotFound");
    assert_eq!(refused(&|writer| writer.rename("array", "strings"), "exists"), "AlreadyExists");
    assert_eq!(refused(&|writer| writer.rename("array", "array"), "exists"), "AlreadyExists");
    assert_eq!(refused(&|writer| writer.rename(&deep, "group"), "exists"), "AlreadyExists");
    assert_eq!(refused(&|writer| writer.rename("group", "group/b"), "below itself"), "InvalidArgument");
    assert_eq!(refused(&|writer| writer.rename("array", "array/b"), "below itself"), "InvalidArgument");
    assert_eq!(refused(&|writer| writer.rename("group", "array/b"), "not a group"), "InvalidArgument");
    assert_eq!(refused(&|writer| writer.rename("group", "strings/b/c"), "not a group"), "InvalidArgument");
    for bad in ["a//b", "a/../b", ".", "a\0"] {
        assert_eq!(refused(&|writer| writer.rename("array", bad), "the name"), "InvalidArgument");
    }
    assert_eq!(refused(&|writer| writer.rename("array", &"x".repeat(1025)), "1025 bytes"), "TooLarge");
    assert_eq!(refused(&|writer| writer.rename("group", &long), "at most 1024"), "TooLarge");
    assert_eq!(refused(&|writer| writer.rename("group", &too_long), "1025 bytes"), "TooLarge");
    assert_eq!(refused(&|writer| writer.entries_below("grup").map(drop), "'group'"), "NotFound");
    writer.rename("group", &longest).unwrap();
    // A near name may also be staged.
    writer.create_group("pressure").unwrap();
    assert!(
        matches!(writer.delete("presure"), Err(Error::NotFound { near: Some(near), .. }) if near == "pressure")
    );
    writer.commit().unwrap();
    assert_clean(&path);
}
