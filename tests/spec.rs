//! SPEC.md is what the code does: its example, its constants, and what it allows that no writer makes yet.

mod everything;
mod forge;

use brickmap::{ArraySpec, Axis, Dtype, Error, Selection, Store};
use everything::{Outcome, read_everything};
use forge::*;

const SPECIFICATION: &str = include_str!("../SPEC.md");

/// The file of section 16: an array `t` of three i16, with attributes. Its random numbers are made plain.
fn example() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.brick");
    // The handle goes before the commit, so that nothing is pinned: the id of a generation in use is random too.
    let mut writer = Store::create(&path).unwrap().writer().unwrap();
    writer.create_array("t", &ArraySpec::new(Dtype::I16, [3])).unwrap();
    writer.write("t", &Selection::all(), &[1i16, 2, -3]).unwrap();
    let attributes = serde_json::from_str(r#"{"units":"K"}"#).unwrap();
    writer.set_attributes("t", &attributes).unwrap();
    writer.commit().unwrap();
    let mut file = std::fs::read(&path).unwrap();
    for page in 0..4 {
        let mut record = file[page * 4096..page * 4096 + 2040].to_vec();
        if page == 0 {
            record[32..48].copy_from_slice(&std::array::from_fn::<u8, 16, _>(|n| n as u8));
        } else {
            record.copy_within(8..16, 16);
        }
        file[page * 4096..(page + 1) * 4096].copy_from_slice(&twin_page(&record));
    }
    file
}

/// Rows of 16 bytes, without rows of zeros and without the second copies in the first four pages.
fn dump(file: &[u8]) -> String {
    let mut text = String::new();
    for (n, row) in file.chunks(16).enumerate() {
        let offset = 16 * n;
        if row.iter().all(|&byte| byte == 0) || offset < 16384 && offset % 4096 >= 2048 {
            continue;
        }
        let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let letters: String = row
            .iter()
            .map(|&byte| if (0x20..0x7F).contains(&byte) { char::from(byte) } else { '.' })
            .collect();
        text += &format!("{offset:06x}  {}  {letters}\n", hex.join(" "));
    }
    text
}

/// With BRICKMAP_BLESS=1 in the environment the dump in SPEC.md is written anew; its explanation is for a person to write.
#[test]
fn the_example_in_the_specification_is_what_is_written() {
    let dump = dump(&example());
    let (before, rest) = SPECIFICATION.split_once("```hexdump\n").unwrap();
    let (found, after) = rest.split_once("```").unwrap();
    if std::env::var_os("BRICKMAP_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/SPEC.md");
        std::fs::write(path, format!("{before}```hexdump\n{dump}```{after}")).unwrap();
    } else {
        assert!(
            found == dump,
            "SPEC.md has another dump; run with BRICKMAP_BLESS=1 and read what changed:\n{dump}"
        );
    }
}

#[test]
fn the_explanation_of_the_example_is_about_its_bytes() {
    let file = example();
    let (_, explanation) = SPECIFICATION.split_once("| offset | bytes | what |").unwrap();
    let mut rows = 0;
    for row in explanation.lines().filter(|row| row.starts_with("| `")) {
        let mut columns = row.split('|').skip(1).map(|column| column.trim().trim_matches('`'));
        let offset = usize::from_str_radix(columns.next().unwrap(), 16).unwrap();
        let bytes: Vec<u8> =
            columns.next().unwrap().split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert_eq!(file[offset..offset + bytes.len()], bytes, "{row}");
        rows += 1;
    }
    assert!(rows > 50);
}

/// The number that a row of the table of limits gives, as in "2^63 - 1".
fn limit(what: &str) -> u64 {
    let (_, limits) = SPECIFICATION.split_once("## 14. Limits").unwrap();
    let row = limits.lines().find(|line| line.starts_with(&format!("| {what} |"))).unwrap();
    let number = row.split('|').nth(2).unwrap().trim().trim_end_matches(" bytes");
    let (number, less) = number.split_once(" - ").unwrap_or((number, "0"));
    let number = match number.split_once('^') {
        Some((base, exponent)) => base.parse::<u64>().unwrap().pow(exponent.parse().unwrap()),
        None => number.parse().unwrap(),
    };
    number - less.parse::<u64>().unwrap()
}

#[test]
fn the_limits_of_the_specification_are_those_of_the_code() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("limits.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let mut count = 0;
    let mut create = |spec: ArraySpec| {
        count += 1;
        writer.create_array(&format!("array {count}"), &spec)
    };
    let too_large = |outcome: Result<(), Error>, what: &str| {
        assert!(matches!(outcome, Err(Error::TooLarge { .. })), "{what}: {outcome:?}");
    };

    let ndim = limit("dimensions") as usize;
    assert_eq!(ndim, brickmap::MAX_NDIM);
    create(ArraySpec::new(Dtype::U8, vec![1; ndim])).unwrap();
    too_large(create(ArraySpec::new(Dtype::U8, vec![1; ndim + 1])), "dimensions");

    let len = limit("length of a dimension");
    assert_eq!(len, brickmap::MAX_LEN);
    create(ArraySpec::new(Dtype::U8, [len]).chunks([1 << 40])).unwrap();
    too_large(create(ArraySpec::new(Dtype::U8, [len + 1]).chunks([1 << 40])), "length");
    too_large(create(ArraySpec::new(Dtype::U8, [0, len + 1]).chunks([1, 1 << 40])), "length");

    let bytes = limit("bytes of an array, of a chunk");
    create(ArraySpec::new(Dtype::U16, [bytes / 2]).chunks([1 << 40])).unwrap();
    too_large(create(ArraySpec::new(Dtype::U16, [bytes / 2 + 1]).chunks([1 << 40])), "bytes of an array");
    too_large(
        create(ArraySpec::new(Dtype::U8, [1, 1]).chunks([1 << 30, 1 << 33]).blocks([1 << 23, 1])),
        "bytes of a chunk",
    );

    let block = limit("bytes of a block; itemsize");
    assert_eq!(block, u64::from(brickmap::MAX_ITEMSIZE));
    create(ArraySpec::new(Dtype::U8, [block + 1]).chunks([block + 1]).blocks([block])).unwrap();
    too_large(
        create(ArraySpec::new(Dtype::U8, [block + 1]).chunks([block + 1]).blocks([block + 1])),
        "block",
    );
    create(ArraySpec::new(Dtype::Bytes(block as u32), [1])).unwrap();
    too_large(create(ArraySpec::new(Dtype::Bytes(block as u32 + 1), [1])), "itemsize");

    let blocks = limit("blocks of a chunk");
    create(ArraySpec::new(Dtype::U8, [1]).chunks([blocks]).blocks([1])).unwrap();
    too_large(create(ArraySpec::new(Dtype::U8, [1]).chunks([blocks + 1]).blocks([1])), "blocks of a chunk");

    let bits = limit("key bits");
    assert_eq!(bits, 64);
    let pixels = |sides: [u64; 3]| ArraySpec::new(Dtype::U8, sides).chunks([1, 1, 1]);
    create(pixels([(1 << 32) + 1, (1 << 20) + 1, (1 << 9) + 1])).unwrap();
    too_large(create(pixels([(1 << 32) + 1, (1 << 21) + 1, (1 << 9) + 1])), "65 key bits");

    let path = limit("path") as usize;
    writer.create_group(&"g".repeat(path)).unwrap();
    assert!(matches!(writer.create_group(&"g".repeat(path + 1)), Err(Error::TooLarge { .. })));
}

/// Which of the indices of a dimension are taken, as a selection and as the indices themselves.
fn choices(len: i64) -> Vec<(Axis, Vec<i64>)> {
    let range = |start: i64, stop: i64, step: i64| {
        let indices: Vec<i64> = if step > 0 {
            (start..stop).step_by(step as usize).collect()
        } else {
            (0..).map(|n| start + n * step).take_while(|&index| index > stop).collect()
        };
        let stop = (stop >= 0).then_some(stop);
        (Axis::Range { start: Some(start), stop, step }, indices)
    };
    let list = |indices: Vec<i64>| (Axis::List(indices.clone()), indices);
    vec![
        range(0, len, 1),
        range(1, len - 1, 1),
        range(0, len, 3),
        range(len - 1, -1, -1),
        range(len - 1, 0, -2),
        range(2, 2, 1),
        (Axis::Index(len / 2), vec![len / 2]),
        (Axis::Index(-1), vec![len - 1]),
        list(vec![len - 1, 0, 2, 2, len / 2]),
        list(vec![]),
    ]
}

/// Reads every combination of selections of a two-dimensional i32 array and compares with a dense model of it.
fn check_all_selections(store: &Store, path: &str, dense: &[Vec<i32>]) {
    let array = store.array(path).unwrap();
    for (first, rows) in choices(dense.len() as i64) {
        for (second, columns) in choices(dense[0].len() as i64) {
            let selection = Selection::new([first.clone(), second.clone()]);
            let items = array.read::<i32>(&selection).unwrap();
            let due = rows.iter().flat_map(|&row| columns.iter().map(move |&column| (row, column)));
            let due: Vec<i32> = due.map(|(row, column)| dense[row as usize][column as usize]).collect();
            assert_eq!(items, due, "{path}: {selection:?}");
        }
    }
    for (row, items) in dense.iter().enumerate() {
        for (column, item) in items.iter().enumerate() {
            assert_eq!(
                array.get::<i32>(&[row as i64, column as i64]).unwrap(),
                *item,
                "{path}: {row}, {column}"
            );
        }
    }
}

/// An i32 array of (23, 5) in chunks (8, 3) of blocks (3, 2), with the fill value -1. `chunk(forge, row, column, valid)`
/// makes the entry of the chunk at a row and column of items.
fn tall_array(
    chunk: impl Fn(&mut Forge<'_>, u64, u64) -> (Pointer, Vec<[u64; 4]>),
) -> (Store, Vec<Vec<i32>>) {
    let mut forge = Forge::new();
    let mut dense = vec![vec![-1i32; 5]; 23];
    let mut entries = Vec::new();
    for key in 0..6u64 {
        // Bit 0 from dimension 1, bits 1 and 2 from dimension 0.
        let (row, column) = (8 * (key >> 1), 3 * (key & 1));
        let (entry, boxes) = chunk(&mut forge, row, column);
        if entry != NULL {
            entries.push((key, entry));
        }
        for [row, column, rows, columns] in boxes {
            for at in positions(&[rows, columns]) {
                let (row, column) = (row + at[0], column + at[1]);
                dense[row as usize][column as usize] = item(row, column);
            }
        }
    }
    let index = forge.index("index", 0, 0, &entries);
    let record = Record::new(dtype(2, 4), &[23, 5], &[8, 3], &[3, 2], &[1, 0, 0])
        .fill(&(-1i32).to_le_bytes())
        .index(index);
    let catalog = forge.catalog(vec![(b"a".to_vec(), inline(&record.encode()))]);
    (Store::from_bytes(forge.finish(catalog, NULL)).unwrap(), dense)
}

fn item(row: u64, column: u64) -> i32 {
    (100 * row + column) as i32
}

/// A frame with the items of a box.
fn frame(forge: &mut Forge<'_>, row: u64, column: u64, valid: [u64; 2]) -> Pointer {
    let items = block_items(&valid, &[3, 2], &|at| item(row + at[0], column + at[1]).to_le_bytes().to_vec());
    let coding = |n: usize, items: Vec<u8>| match n % 3 {
        0 => (0, items),
        1 => (3, planes(&items, 4, &[1, 2, 3])),
        _ => (2, zstd_stored(&items)),
    };
    let blocks: Vec<_> = items.into_iter().enumerate().map(|(n, items)| coding(n, items)).collect();
    forge.chunk("frame", (3, 4, 0), &valid, &blocks)
}

#[test]
fn chunks_in_pieces_read_as_whole_ones_through_all_selections() {
    let cuts: [&[u64]; 5] = [&[8], &[1, 2, 3, 4, 5, 6, 7, 8], &[3, 8], &[5, 6, 7], &[2]];
    for cuts in cuts {
        let (store, dense) = tall_array(|forge, row, column| {
            let limit = [8.min(23 - row), 3.min(5 - column)];
            let (mut pieces, mut boxes, mut from) = (Vec::new(), Vec::new(), 0);
            for &to in cuts.iter().filter(|&&to| to <= limit[0]) {
                // The piece in the middle of the array is narrower than its chunk.
                let columns = if row == 8 { 1 } else { limit[1] };
                pieces.push((from, frame(forge, row + from, column, [to - from, columns])));
                boxes.push([row + from, column, to - from, columns]);
                from = to;
            }
            if pieces.is_empty() { (NULL, boxes) } else { (forge.pieces("pieces", from, &pieces), boxes) }
        });
        check_all_selections(&store, "a", &dense);
    }
}

#[test]
fn what_a_chunk_does_not_hold_of_a_grown_array_reads_as_the_fill_value() {
    for valid in [[1, 1], [8, 1], [1, 3], [7, 2], [5, 3], [7, 3]] {
        let (store, dense) = tall_array(|forge, row, column| {
            let valid = [valid[0].min(23 - row), valid[1].min(5 - column)];
            match (row, column) {
                (8, 3) => (NULL, Vec::new()),
                _ => (frame(forge, row, column, valid), vec![[row, column, valid[0], valid[1]]]),
            }
        });
        check_all_selections(&store, "a", &dense);
    }
}

#[test]
fn raw_chunks_of_a_grown_array_read_as_the_fill_value_where_nothing_was_written() {
    let mut forge = Forge::new();
    let mut dense = vec![vec![-1i32; 4]; 10];
    let mut entries = Vec::new();
    for (chunk, rows) in [(0u64, 4u64), (1, 1)] {
        let items =
            positions(&[rows, 4]).into_iter().flat_map(|at| item(4 * chunk + at[0], at[1]).to_le_bytes());
        let items: Vec<u8> = items.collect();
        entries.push((chunk, forge.raw("chunk", &[rows, 4], &items)));
        for at in positions(&[rows, 4]) {
            dense[(4 * chunk + at[0]) as usize][at[1] as usize] = item(4 * chunk + at[0], at[1]);
        }
    }
    let index = forge.index("index", 0, 0, &entries);
    let record = Record::new(dtype(2, 4), &[10, 4], &[4, 4], &[4, 4], &[0, 0]).raw();
    let record = record.fill(&(-1i32).to_le_bytes()).index(index);
    let catalog = forge.catalog(vec![(b"a".to_vec(), inline(&record.encode()))]);
    let store = Store::from_bytes(forge.finish(catalog, NULL)).unwrap();
    check_all_selections(&store, "a", &dense);
    let array = store.array("a").unwrap();
    for rows in [0..4usize, 4..5] {
        let view = array.view_checked::<i32>(&Selection::from(rows.clone())).unwrap();
        assert_eq!(view, dense[rows].concat());
    }
    for rows in [0..5, 4..6, 5..6, 8..9] {
        let partly = array.view_checked::<i32>(&Selection::from(rows));
        assert!(matches!(partly, Err(Error::InvalidState { .. })), "{partly:?}");
    }
}

/// A deferred root whose commit is whole is taken, wherever it was written.
#[test]
fn deferred_roots_and_alive_generations_are_read() {
    let mut forge = Forge::new();
    (forge.flags, forge.boot_id) = (1, [7; 16]);
    forge.alive = vec![(2, 22), (3, 33), (8, 88)];
    let (file, contents) = sample_with(forge);
    let store = Store::from_bytes(file).unwrap();
    assert_eq!(store.snapshot().generation(), 9);
    read_everything(&store, &contents, &mut |what, outcome| {
        assert!(matches!(outcome, Outcome::Right), "{what}: {outcome:?}")
    });
}

/// One whose commit is not whole is not: the older roots of a forged file are empty.
#[test]
fn a_deferred_root_with_a_flipped_bit_anywhere_is_not_taken() {
    let sample = || {
        let mut forge = Forge::new();
        (forge.flags, forge.boot_id) = (1, [7; 16]);
        sample_with(forge).0
    };
    let whole = sample();
    let checked = Store::from_bytes(whole.clone()).unwrap().verify().unwrap();
    assert!(checked.is_clean() && checked.free_bytes > 0, "{checked:?}");
    let (mut taken, mut refused) = (0u64, 0u64);
    for at in (DATA_START as usize..whole.len()).step_by(3) {
        let mut file = whole.clone();
        file[at] ^= 1 << (at % 8);
        match Store::from_bytes(file).unwrap().snapshot().generation() {
            0 => refused += 1,
            9 => taken += 1,
            generation => panic!("generation {generation}"),
        }
    }
    // Padding and free space have no checksum.
    assert!(refused > 3 * taken && taken > 0, "{refused} refused, {taken} taken");
}

/// What is met again and again is not looked at without end.
#[test]
fn a_deferred_root_that_reaches_more_than_the_file_has_is_not_taken() {
    let file = |arrays: usize, flags: u64| {
        let mut forge = Forge::new();
        (forge.flags, forge.boot_id) = (flags, [7; 16]);
        let chunk = forge.raw("chunk", &[4000, 4], &vec![1; 4000 * 4 * 4]);
        let index = forge.index("index", 0, 0, &[(0, chunk)]);
        let record = Record::new(dtype(2, 4), &[4000, 4], &[4000, 4], &[4000, 4], &[0, 0]).raw().index(index);
        let entries = (0..arrays).map(|n| (format!("{n:02}").into_bytes(), inline(&record.encode())));
        let catalog = forge.catalog(entries.collect());
        forge.finish(catalog, NULL)
    };
    let generation = |file: Vec<u8>| Store::from_bytes(file).unwrap().snapshot().generation();
    assert_eq!(generation(file(1, 1)), 9);
    assert_eq!(generation(file(10, 1)), 0);
    assert_eq!(generation(file(10, 0)), 9, "a synced one is taken without looking");
}

/// As many alive generations as a root holds.
#[test]
fn a_full_list_of_alive_generations_is_read() {
    let mut forge = Forge::new();
    forge.generation = 1000;
    forge.alive = (0..118).map(|n| (8 * n, n)).collect();
    let (file, contents) = sample_with(forge);
    let store = Store::from_bytes(file).unwrap();
    read_everything(&store, &contents, &mut |what, outcome| {
        assert!(matches!(outcome, Outcome::Right), "{what}: {outcome:?}")
    });
}
