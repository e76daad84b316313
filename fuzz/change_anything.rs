//! Drives a store with operations that are read from bytes, and compares every state with a model in memory: a vector of
//! items for each array. What the bytes ask for may be anything; what is right must be done, what is not must be refused
//! and change nothing.

use brickmap::{
    ArraySpec, Codec, CopyOptions, Dtype, Durability, Error, OpenOptions, Selection, Snapshot, Store, Writer,
};
use std::collections::BTreeMap;
use std::path::Path;

/// An array of rows, each of `width` items of two bytes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rows {
    width: usize,
    items: Vec<u16>,
}

type State = BTreeMap<String, Rows>;

const NAMES: [&str; 5] = ["a", "b", "g/a", "g/b", "h"];
const FILL: u16 = 9;
/// No array gets more items.
const MOST: usize = 4000;

/// Takes numbers from bytes, zeros when there are no more.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first.into()
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() % end.max(1)
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }

    /// Items that are all alike, count up, or neither.
    fn items(&mut self, count: usize) -> Vec<u16> {
        let (kind, start) = (self.next(), self.next() as u16);
        let item = |n: usize| match kind % 4 {
            0 => start,
            1 => FILL,
            2 => start.wrapping_add(n as u16),
            _ => (n as u16 ^ start).wrapping_mul(40_503),
        };
        (0..count).map(item).collect()
    }
}

/// Plays the operations that `bytes` spell in a new store below `directory`.
pub(crate) fn change_anything(bytes: &[u8], directory: &Path) {
    let path = directory.join("changed.brick");
    let mut bytes = Bytes(bytes);
    let options = OpenOptions::new().durability(Durability::Deferred).threads(1).write(true);
    let mut store = options.replace(&path).expect("a new store");
    let mut writer = store.writer().expect("its writer");
    let mut committed = State::new();
    let mut staged = State::new();
    let mut held: Vec<(Snapshot, State)> = Vec::new();
    while !bytes.0.is_empty() {
        match bytes.below(16) {
            0 => {
                held.push((writer.commit().expect("a commit"), staged.clone()));
                committed = staged.clone();
                if held.len() > 2 {
                    held.remove(0);
                }
            }
            1 => {
                drop(writer);
                writer = store.writer().expect("a writer after one that was dropped");
                staged = committed.clone();
            }
            2 if !held.is_empty() => {
                drop(writer);
                store = store.compact(None).expect("a compact store");
                assert_is(&store.snapshot(), &committed);
                writer = store.writer().expect("a writer of the compact store");
                staged = committed.clone();
            }
            _ => step(&mut bytes, &mut writer, &mut staged, &held),
        }
        held.iter().for_each(|(snapshot, state)| assert_is(snapshot, state));
    }
    for (name, rows) in &staged {
        assert_eq!(writer.read::<u16>(name, &Selection::all()).expect("staged items"), rows.items, "{name}");
    }
    let snapshot = writer.commit().expect("the last commit");
    assert_is(&snapshot, &staged);
    let report = store.verify().expect("a check");
    assert!(report.is_clean(), "{report:?}");
    let bytes = snapshot.to_bytes().expect("its bytes");
    assert_is(&Store::from_bytes(bytes).expect("a store of bytes").snapshot(), &staged);
}

fn step(bytes: &mut Bytes<'_>, writer: &mut Writer, staged: &mut State, held: &[(Snapshot, State)]) {
    let (what, name) = (bytes.below(13), bytes.name());
    if what == 0 {
        let rows = Rows { width: 1 + bytes.below(6), items: Vec::new() };
        let (chunk, block) = (1 + bytes.below(12) as u64, 1 + bytes.below(6) as u64);
        let width = rows.width as u64;
        let codec = if bytes.below(4) == 0 { Codec::Raw } else { Codec::default() };
        let spec = ArraySpec::new(Dtype::U16, [0, width]).chunks([chunk, width]).blocks([block, 2]);
        let outcome = writer.create_array(name, &spec.codec(codec).fill_value(FILL));
        match outcome {
            Ok(()) => assert!(staged.insert(name.to_owned(), rows).is_none()),
            Err(Error::AlreadyExists { .. }) => assert!(staged.contains_key(name)),
            Err(error) => panic!("{error}"),
        }
        return;
    }
    if what == 1 {
        let to = bytes.name();
        match (writer.rename(name, to), staged.contains_key(name) && !staged.contains_key(to)) {
            (Ok(()), true) => drop(staged.remove(name).map(|rows| staged.insert(to.to_owned(), rows))),
            (Ok(()), false) => assert!(name == to && staged.contains_key(name)),
            (Err(_), right) => assert!(!right),
        }
        return;
    }
    if what == 2 {
        let to = bytes.name();
        let right = staged.contains_key(name) && !staged.contains_key(to);
        assert_eq!(writer.copy(name, to).is_ok(), right);
        if let (true, Some(rows)) = (right, staged.get(name).cloned()) {
            staged.insert(to.to_owned(), rows);
        }
        return;
    }
    if let (3, Some((snapshot, state))) = (what, held.last()) {
        let to = bytes.name();
        let codec = [Codec::Raw, Codec::default(), Codec::Zstd { level: 1 }][bytes.below(3)];
        let right = state.contains_key(name) && !staged.contains_key(to);
        assert_eq!(snapshot.copy_to(name, writer, to, CopyOptions::new().codec(codec)).is_ok(), right);
        if let (true, Some(rows)) = (right, state.get(name).cloned()) {
            staged.insert(to.to_owned(), rows);
        }
        return;
    }
    if let (4, Some((snapshot, state))) = (what, held.last()) {
        let Ok(more) = snapshot.array(name) else { return };
        let to = bytes.name();
        let right = staged.get(to).is_some_and(|rows| rows.width == state[name].width);
        if right && staged[to].items.len() + state[name].items.len() > MOST {
            return;
        }
        assert_eq!(writer.append_array(to, 0, &more).is_ok(), right);
        if let (true, Some(rows)) = (right, staged.get_mut(to)) {
            rows.items.extend(&state[name].items);
        }
        return;
    }
    let Some(rows) = staged.get_mut(name) else {
        assert!(matches!(writer.resize(name, &[1, 1]), Err(Error::NotFound { .. })), "{name}");
        return;
    };
    let (width, count) = (rows.width, rows.items.len() / rows.width);
    let room = MOST / width - count;
    match what {
        5 => {
            writer.delete(name).expect("an array that is there can be deleted");
            staged.remove(name);
        }
        6 => {
            let len = bytes.below(count + 20).min(count + room);
            writer.resize(name, &[len as u64, width as u64]).expect("a resize");
            rows.items.resize(len * width, FILL);
        }
        7 => {
            let (at, len) = (bytes.below(count + 1), bytes.below(9).min(room));
            let items = bytes.items(len * width);
            writer.insert(name, at as u64, &items).expect("an insert");
            rows.items.splice(at * width..at * width, items);
        }
        8 => {
            let from = bytes.below(count + 1);
            let to = from + bytes.below(count - from + 1);
            writer.remove(name, from as u64..to as u64).expect("a removal");
            rows.items.drain(from * width..to * width);
        }
        9 => {
            let (row, column) = (bytes.below(count + 1), bytes.below(width + 1));
            let (down, across) = (bytes.below(count - row + 1), bytes.below(width - column + 1));
            let items = bytes.items(down * across);
            let range = |from: usize, len: usize| from as i64..(from + len) as i64;
            let selection = Selection::from((range(row, down), range(column, across)));
            writer.write(name, &selection, &items).expect("a write");
            for (n, item) in items.into_iter().enumerate() {
                rows.items[(row + n / across) * width + column + n % across] = item;
            }
        }
        _ => {
            let len = bytes.below(5).min(room);
            let items = bytes.items(len * width);
            writer.append(name, 0, &items).expect("an append");
            rows.items.extend(items);
        }
    }
}

/// That a snapshot has these arrays with these items, and no others.
fn assert_is(snapshot: &Snapshot, state: &State) {
    let entries = snapshot.entries().expect("the entries");
    let arrays = entries.iter().filter(|entry| entry.kind == brickmap::EntryKind::Array);
    assert!(arrays.map(|entry| &entry.path).eq(state.keys()), "{entries:?}");
    for (name, rows) in state {
        let array = snapshot.array(name).expect("an array");
        assert_eq!(array.shape(), [(rows.items.len() / rows.width) as u64, rows.width as u64], "{name}");
        assert_eq!(array.read::<u16>(&Selection::all()).expect("its items"), rows.items, "{name}");
    }
}
