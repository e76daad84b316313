//! Every rejection that SPEC.md asks for has a test that needs it.
//!
//! Each case of the tables in `rejections` quotes the sentence of SPEC.md that it is about, breaks just that rule in a forged file
//! in which all checksums are right, and says which read must fail, how, and what the message must name. The same file
//! without the change is the control. That the quotes still stand in SPEC.md is tested too.

mod everything;
mod forge;
mod rejections;

use brickmap::{Selection, Store};
use forge::*;
use rejections::{Due, Plain, due_of, words};

/// Offsets are compared across chunks, also with chunks that are not stored.
#[test]
fn offsets_that_descend_from_one_chunk_to_the_next_are_found() {
    let le = |offsets: &[i64]| offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect::<Vec<u8>>();
    let rising: [&[i64]; 4] = [&[0, 1, 2, 2], &[2, 2, 2, 2], &[2, 3, 4, 5], &[5]];
    let mut cases: Vec<(Vec<Option<Vec<i64>>>, bool)> =
        vec![(rising.iter().map(|it| Some(it.to_vec())).collect(), true)];
    for chunk in 0..4 {
        // Not stored: all 0.
        let mut chunks = cases[0].0.clone();
        chunks[chunk] = None;
        cases.push((chunks, false));
        let mut chunks = cases[0].0.clone();
        chunks[chunk].as_mut().unwrap()[0] += 2;
        cases.push((chunks, chunk == 3));
    }
    for (chunks, right) in cases {
        let mut forge = Forge::new();
        let (mut entries, mut frames) = (Vec::new(), Vec::new());
        for (key, offsets) in chunks.iter().enumerate() {
            let Some(offsets) = offsets else { continue };
            let entry = if key == 1 && offsets.iter().all(|&offset| offset == offsets[0]) {
                constant(&le(&offsets[..1]))
            } else {
                frames.push(forge.chunk("offsets", (0, 0, 0), &[offsets.len() as u64], &[(0, le(offsets))]));
                frames[frames.len() - 1]
            };
            entries.push((key as u64, entry));
        }
        let stored = entries.len() as u64;
        let index = forge.index("index", 0, 0, &entries);
        let offsets = Record::new(dtype(2, 8), &[13], &[4], &[4], &[0, 0])
            .index(index)
            .stores(stored, &frames, 0)
            .encode();
        let text = forge.chunk("text", (0, 0, 0), &[7], &[(0, b"letters".to_vec())]);
        let values =
            Record::new(dtype(3, 1), &[7], &[7], &[7], &[]).index(text).stores(1, &[text], 0).encode();
        let catalog = forge.catalog(vec![(b"s".to_vec(), inline(&ragged(0, &[12], &offsets, &values)))]);
        let store = Store::from_bytes(forge.finish(catalog, NULL)).unwrap();
        let read = store.ragged("s").unwrap().read_strings(&Selection::all());
        // The first chunk, if it is not stored, holds what it would hold but for one item.
        let right = right || chunks[0].is_none();
        assert_eq!(read.is_ok(), right, "{chunks:?}: {read:?}");
        assert_eq!(store.verify().unwrap().is_clean(), right, "{chunks:?}");
    }
}

/// The names that a hostile file may have: none may come out of a listing, since programs make paths of them.
#[test]
fn names_that_cannot_be_are_rejected() {
    let rule =
        "A component is not empty, not `.` or `..`, and has no zero byte. A path has at most 1024 bytes.";
    assert!(words(include_str!("../SPEC.md")).contains(rule));
    let long = vec![b'x'; 1025];
    let bad: [&[u8]; 9] = [b"/a", b"a/", b"a//b", b"../a", b"a/./b", b"a/..", b"a\0b", b"\xFF\xFE", &long];
    for name in bad {
        let mut forge = Forge::new();
        let group = [(name.to_vec(), inline(&[1])), (b"\0".to_vec(), inline(b"{}"))];
        let catalog = forge.catalog(group.to_vec());
        let store = Store::from_bytes(forge.finish(catalog, NULL)).unwrap();
        let error = store.snapshot().entries().unwrap_err();
        assert_eq!(due_of(&error), Some(Due::Corrupt), "{name:?}: {error}");
        assert!(error.to_string().contains("name"), "{error}");
    }
}

/// What a later version may add is listed, and does not keep the rest from being read.
#[test]
fn what_is_not_supported_is_listed_as_such() {
    let changes: [(&str, Plain); 4] = [
        ("b", |record| record[0] = 9),
        ("b", |record| record[2] = 2),
        ("b", |record| record[123] = 11),
        ("strings", |record| record[1] = 2),
    ];
    for (path, change) in changes {
        let mut forge = Forge::new();
        let part = format!("record {path}");
        forge.change(&part, &change);
        let (file, _) = sample_with(forge);
        let snapshot = Store::from_bytes(file).unwrap().snapshot();
        let entries = snapshot.entries().unwrap();
        let entry = entries.iter().find(|entry| entry.path == path).unwrap();
        assert_eq!(entry.kind, brickmap::EntryKind::Unknown);
        assert_eq!(snapshot.kind(path).unwrap(), Some(brickmap::EntryKind::Unknown));
    }
}

/// A file in memory with one catalog leaf.
fn store_of(mut forge: Forge<'_>, records: &[(&str, Record)]) -> Store {
    let entries = records.iter().map(|(path, record)| (path.as_bytes().to_vec(), inline(&record.encode())));
    let catalog = forge.catalog(entries.collect());
    Store::from_bytes(forge.finish(catalog, NULL)).unwrap()
}

/// The cache of decoded blocks must not take one for the other: they have the same stored bytes at the same place.
#[test]
fn arrays_that_decode_the_same_block_differently_do_not_disturb_each_other() {
    let mut forge = Forge::new();
    let chunk = forge.chunk("chunk", (2, 0, 0), &[8], &[(1, vec![7]), (1, vec![7])]);
    let array = |blocks| Record::new(dtype(3, 1), &[8], &[8], &[blocks], &[]).index(chunk);
    let store = store_of(forge, &[("five", array(5)), ("four", array(4))]);
    for path in ["five", "five", "four", "four", "five"] {
        let items = store.array(path).unwrap().read::<u8>(&Selection::all()).unwrap();
        assert_eq!(items, [7; 8], "{path}");
    }
}

/// Raw chunks may be longer than the array also in the dimensions that are not cut.
#[test]
fn views_of_chunks_that_are_wider_than_the_array_are_exact() {
    let mut forge = Forge::new();
    let items: Vec<u8> = (0..128).collect();
    let chunks = [forge.extent(&items), forge.end()];
    let table = |forge: &mut Forge<'_>, n: u64| {
        let mut head = vec![0; 16];
        head.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
        let sum = checksum(&items[64 * n as usize..][..64]);
        [chunks[0] + 64 * n, 64, 2, 32, sum]
            .iter()
            .for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
        forge.frame("table", RAW_TABLE, head, &[])
    };
    let tables = [(0, table(&mut forge, 0)), (1, table(&mut forge, 1))];
    let index = forge.index("index", 0, 0, &tables);
    let array = Record::new(dtype(3, 1), &[4, 32], &[2, 100], &[2, 100], &[0]).raw().index(index);
    let store = store_of(forge, &[("wide", array)]);
    let array = store.array("wide").unwrap();
    assert_eq!(array.view::<u8>(&Selection::all()).unwrap(), items);
    assert_eq!(array.view_checked::<u8>(&"[1:3]".parse().unwrap()).unwrap(), &items[32..96]);
    assert_eq!(array.view_checked::<u8>(&"[3, 5:9]".parse().unwrap()).unwrap(), &items[101..105]);
}

/// What informs writers is not to be trusted either.
#[test]
fn writers_take_records_that_ask_for_what_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let asked: [[u8; 8]; 5] = [
        [3, 0, 1, 0, 0, 0, 0, 0],
        [3, 0, 1, 3, 0, 0, 0, 0],
        [4, 0, 1, 8, 1, 0, 0, 0],
        [4, 9, 127, 4, 0, 0, 0, 0],
        [200, 200, 200, 200, 200, 200, 200, 200],
    ];
    for (n, codec) in asked.into_iter().enumerate() {
        let mut forge = Forge::new();
        let mut record = Record::new(dtype(2, 4), &[100], &[30], &[7], &[0, 0]);
        (record.codec, record.stored) = (codec, [u64::MAX; 2]);
        let entries = vec![(b"a".to_vec(), inline(&record.encode()))];
        let catalog = forge.catalog(entries);
        let path = directory.path().join(n.to_string());
        std::fs::write(&path, forge.finish(catalog, NULL)).unwrap();
        let store = brickmap::OpenOptions::new().write(true).open(&path).unwrap();
        let items: Vec<i32> = (0..100).map(|n| n * n).collect();
        let mut writer = store.writer().unwrap();
        writer.write("a", &Selection::all(), &items).unwrap();
        writer.commit().unwrap();
        let read = Store::open(&path).unwrap().array("a").unwrap().read::<i32>(&Selection::all()).unwrap();
        assert_eq!(read, items, "{codec:?}");
    }
}

/// A root of the last generation can be read, and none can follow it.
#[test]
fn no_commit_follows_the_last_generation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("last.brick");
    let mut forge = Forge::new();
    forge.generation = 1 << 61;
    let (file, _) = sample_with(forge);
    std::fs::write(&path, &file).unwrap();
    let store = brickmap::OpenOptions::new().write(true).open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_group("new").unwrap();
    let outcome = writer.commit();
    assert!(matches!(outcome, Err(brickmap::Error::TooLarge { .. })), "{:?}", outcome.err());
    assert!(std::fs::read(&path).unwrap()[..16384] == file[..16384]);
}

/// Lists of free space that lie in each other: together they have far more bytes than the file.
#[test]
fn lists_of_free_space_without_end_are_rejected() {
    let file = |lists: usize| {
        let mut forge = Forge::new();
        let at = forge.extent(&vec![0; 64 * lists]);
        let (mut rest, mut newest) = (Vec::new(), NULL);
        for n in (0..lists).rev() {
            let len = 64 * (lists - n);
            let mut list = b"FREE".to_vec();
            list.extend_from_slice(&(len as u32).to_le_bytes());
            list.extend_from_slice(&(len as u64).to_le_bytes());
            list.extend_from_slice(&newest);
            list.extend_from_slice(&[0; 8]);
            list.append(&mut rest);
            let offset = at + 64 * n as u64;
            newest = pointer(FREE, offset, len as u64, forge.generation, checksum(&list), len as u32);
            rest = list;
        }
        forge.poke(at, &rest);
        let catalog = forge.catalog(vec![(b"group".to_vec(), inline(&[1]))]);
        forge.finish(catalog, newest)
    };
    let free_bytes = |file: Vec<u8>| Store::from_bytes(file).unwrap().snapshot().free_bytes();
    assert_eq!(free_bytes(file(3)).unwrap(), 0);
    let many = file(64);
    let error = free_bytes(many.clone()).unwrap_err();
    assert!(error.to_string().contains("without end"), "{error}");
    let report = Store::from_bytes(many.clone()).unwrap().verify().unwrap();
    assert!(report.findings.iter().any(|finding| finding.what.contains("without end")), "{report:?}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.brick");
    std::fs::write(&path, many).unwrap();
    let store = brickmap::OpenOptions::new().write(true).open(&path).unwrap();
    assert!(matches!(store.writer().map(drop), Err(brickmap::Error::Corrupt { .. })));
}
