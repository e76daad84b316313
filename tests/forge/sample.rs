//! A file with every structure of SPEC.md in it, and what it holds.

use super::*;

/// What a file holds, by path.
#[derive(Default)]
pub struct Contents {
    pub arrays: Vec<Dense>,
    pub strings: Vec<(String, Vec<String>)>,
    pub runs: Vec<(String, Vec<Vec<f32>>)>,
    /// JSON.
    pub attributes: Vec<(String, String)>,
    pub groups: Vec<String>,
}

/// An array in memory: items in C order, as bytes.
pub struct Dense {
    pub path: String,
    pub shape: Vec<u64>,
    pub itemsize: usize,
    pub items: Vec<u8>,
}

impl Contents {
    pub fn array(&mut self, path: &str, shape: &[u64], items: impl IntoIterator<Item = u8>) {
        let items: Vec<u8> = items.into_iter().collect();
        let itemsize = items.len() / shape.iter().product::<u64>() as usize;
        self.arrays.push(Dense { path: path.into(), shape: shape.into(), itemsize, items });
    }
}

impl Dense {
    /// The items at every second index of each dimension, last first: what `[::-2, ::-2, ...]` selects.
    pub fn every_second_from_the_end(&self) -> Vec<u8> {
        let counts: Vec<u64> = self.shape.iter().map(|len| len.div_ceil(2)).collect();
        let bytes = positions(&counts).into_iter().flat_map(|at| {
            let number =
                at.iter().zip(&self.shape).fold(0, |number, (at, len)| number * len + (len - 1 - 2 * at));
            let start = number as usize * self.itemsize;
            self.items[start..start + self.itemsize].to_vec()
        });
        bytes.collect()
    }
}

/// The bytes of the sample file.
pub fn sample() -> (Vec<u8>, Contents) {
    sample_with(Forge::new())
}

/// The sample file with the changes that are registered with `forge`.
///
/// | path | what |
/// | --- | --- |
/// | `b` | i32 (10, 7) in chunks (4, 4) of blocks (2, 3), one chunk for each coding, one absent |
/// | `deep` | u8 (200) in chunks of 1, an index of two levels |
/// | `one` | i64 without dimensions, whose index pointer is the chunk |
/// | `const` | u16 (10) in chunks of 4: constant, absent, and a chunk frame at the edge |
/// | `grown` | i16 (8) in chunks of 8, of which 5 items are valid; the fill value is -1 |
/// | `wide` | S20 (3), too wide for a constant |
/// | `struct`, `time` | a structured dtype and dates |
/// | `pieces` | i16 (10, 2) in chunks (8, 2): three pieces, and one that does not fill its chunk |
/// | `group/raw` | f64 (6, 4) in the raw layout, chunks of 4 rows |
/// | `strings` | (2, 2) strings |
/// | `runs` | three runs of f32 |
pub fn sample_with(mut forge: Forge<'_>) -> (Vec<u8>, Contents) {
    let mut contents = Contents::default();
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut record = |forge: &Forge<'_>, path: &'static str, record: Record| {
        let mut bytes = record.encode();
        forge.edit(&format!("record {path}"), &mut bytes);
        entries.push((path.into(), bytes));
    };

    // b: values i * 7 + j. Keys: bit 0 from dimension 1, bits 1 and 2 from dimension 0.
    let value = |at: &[u64]| i32::try_from(at[0] * 7 + at[1]).unwrap();
    let mut pointers = Vec::new();
    for key in 0..5u64 {
        let (row, column) = (4 * (key >> 1), 4 * (key & 1));
        let valid = [4.min(10 - row), 4.min(7 - column)];
        let items =
            block_items(&valid, &[2, 3], &|at| value(&[at[0] + row, at[1] + column]).to_le_bytes().to_vec());
        let (filter, blocks): (_, Vec<_>) = match key {
            0 => ((0, 0, 0), items.into_iter().map(|items| (0, items)).collect()),
            1 => ((2, 0, 0), items.into_iter().map(|items| (2, zstd_stored(&items))).collect()),
            2 => ((3, 4, 0), items.into_iter().map(|items| (3, planes(&items, 4, &[2, 0, 0, 1]))).collect()),
            3 => {
                let delta = |items: Vec<u8>| (4, planes(&differences(&items, 4, 1), 4, &[1, 0, 1, 2]));
                ((4, 4, 1), items.into_iter().map(delta).collect())
            }
            _ => {
                let delta = |items: Vec<u8>| (4, planes(&differences(&items, 2, 3), 2, &[3, 1]));
                ((4, 2, 3), items.into_iter().map(delta).collect())
            }
        };
        let name = format!("b chunk {key}");
        pointers.push((key, forge.chunk(&name, filter, &valid, &blocks)));
    }
    let index = forge.index("b index", 0, 0, &pointers);
    let b = Record::new(dtype(2, 4), &[10, 7], &[4, 4], &[2, 3], &[1, 0, 0]).fill(&(-1i32).to_le_bytes());
    let frames: Vec<Pointer> = pointers.iter().map(|(_, frame)| *frame).collect();
    record(&forge, "b", b.index(index).stores(5, &frames, 0));
    let expected = positions(&[10, 7]).into_iter().flat_map(|at| {
        let absent = at[0] >= 8 && at[1] >= 4;
        (if absent { -1 } else { value(&at) }).to_le_bytes()
    });
    contents.array("b", &[10, 7], expected);

    // deep: 200 chunks of one item; 0, 70 and 199 are stored.
    let (mut leaves, mut frames) = (Vec::new(), Vec::new());
    for key in [0u64, 70, 199] {
        let chunk = forge.chunk(&format!("deep chunk {key}"), (0, 0, 0), &[1], &[(0, vec![key as u8 + 1])]);
        let leaf = forge.index(&format!("deep leaf {}", key >> 6), 0, key >> 6, &[(key & 63, chunk)]);
        leaves.push((key >> 6, leaf));
        frames.push(chunk);
    }
    let index = forge.index("deep top", 1, 0, &leaves);
    record(
        &forge,
        "deep",
        Record::new(dtype(3, 1), &[200], &[1], &[1], &[0; 8]).index(index).stores(3, &frames, 0),
    );
    let mut expected = vec![0; 200];
    [0, 70, 199].iter().for_each(|&at| expected[at] = at as u8 + 1);
    contents.array("deep", &[200], expected);

    // one: a single item, coded as constant.
    let chunk = forge.chunk("one chunk", (2, 0, 0), &[], &[(1, 77i64.to_le_bytes().to_vec())]);
    record(&forge, "one", Record::new(dtype(2, 8), &[], &[], &[], &[]).index(chunk).stores(1, &[chunk], 0));
    contents.array("one", &[], 77i64.to_le_bytes());

    // const: a constant chunk, an absent one, a frame with two blocks.
    let edge = forge.chunk("const edge", (2, 0, 0), &[2], &[(1, le(&[8u16.to_le_bytes()])), (0, vec![9, 0])]);
    let mut value = constant(&7u16.to_le_bytes()).to_vec();
    forge.edit("const entry", &mut value);
    let index = forge.index("const index", 0, 0, &[(0, value.try_into().unwrap()), (2, edge)]);
    record(
        &forge,
        "const",
        Record::new(dtype(3, 2), &[10], &[4], &[1], &[0, 0]).index(index).stores(2, &[edge], 0),
    );
    contents.array("const", &[10], le(&[7u16, 7, 7, 7, 0, 0, 0, 0, 8, 9].map(u16::to_le_bytes)));

    // grown: the chunk was written when the array was shorter.
    let block = |items: &[i16]| (0, items.iter().flat_map(|item| item.to_le_bytes()).collect());
    let chunk = forge.chunk("grown chunk", (0, 0, 0), &[5], &[block(&[1, 2, 3]), block(&[4, 5])]);
    let grown = Record::new(dtype(2, 2), &[8], &[8], &[3], &[]).fill(&(-1i16).to_le_bytes());
    record(&forge, "grown", grown.index(chunk).stores(1, &[chunk], 0));
    contents.array("grown", &[8], le(&[1i16, 2, 3, 4, 5, -1, -1, -1].map(i16::to_le_bytes)));

    // wide: items of more than 16 bytes.
    let items = [*b"a rather long item..", *b"another, also long..", [0; 20]].concat();
    let chunk = forge.chunk("wide chunk", (2, 0, 0), &[2], &[(2, zstd_stored(&items[..40]))]);
    let index = forge.index("wide index", 0, 0, &[(0, chunk)]);
    record(
        &forge,
        "wide",
        Record::new(dtype(8, 20), &[3], &[2], &[2], &[0]).index(index).stores(1, &[chunk], 0),
    );
    contents.array("wide", &[3], items);

    // struct and time: dtypes with more than a class and a size.
    let fields = dtype_with(10, 0, 10, 0, "[('a', '<f4'), ('b', '>i2', (3,))]");
    let items: Vec<u8> = (0..20).collect();
    let chunk = forge.chunk("struct chunk", (0, 0, 0), &[2], &[(0, items.clone())]);
    record(&forge, "struct", Record::new(fields, &[2], &[2], &[2], &[]).index(chunk).stores(1, &[chunk], 0));
    contents.array("struct", &[2], items);
    let days = dtype_with(6, 4, 8, 1, "");
    let chunk =
        forge.chunk("time chunk", (0, 0, 0), &[2], &[(0, le(&[1i64, i64::MIN].map(i64::to_le_bytes)))]);
    record(&forge, "time", Record::new(days, &[2], &[2], &[2], &[]).index(chunk).stores(1, &[chunk], 0));
    contents.array("time", &[2], le(&[1i64, i64::MIN].map(i64::to_le_bytes)));

    // pieces: rows 0 to 2, 3, 4 to 7 of the first chunk; row 8 of the second.
    let piece = |forge: &mut Forge<'_>, name: &str, rows: std::ops::Range<i16>| {
        let items = block_items(&[rows.len() as u64, 2], &[2, 2], &|at| {
            (100 * (rows.start + at[0] as i16) + at[1] as i16).to_le_bytes().to_vec()
        });
        let blocks: Vec<_> = items.into_iter().map(|items| (0, items)).collect();
        (rows.start as u64 % 8, forge.chunk(name, (0, 0, 0), &[rows.len() as u64, 2], &blocks))
    };
    let first = [
        piece(&mut forge, "pieces frame 0", 0..3),
        piece(&mut forge, "pieces frame 1", 3..4),
        piece(&mut forge, "pieces frame 2", 4..8),
    ];
    let second = [piece(&mut forge, "pieces frame 3", 8..9)];
    let frames: Vec<Pointer> = first.iter().chain(&second).map(|(_, frame)| *frame).collect();
    let first = forge.pieces("pieces page", 8, &first);
    let second = forge.pieces("pieces tail", 1, &second);
    let index = forge.index("pieces index", 0, 0, &[(0, first), (1, second)]);
    let pieces = Record::new(dtype(2, 2), &[10, 2], &[8, 2], &[2, 2], &[0]).fill(&(-7i16).to_le_bytes());
    record(&forge, "pieces", pieces.index(index).stores(2, &frames, 0));
    let expected = positions(&[10, 2])
        .into_iter()
        .flat_map(|at| (if at[0] < 9 { 100 * at[0] as i16 + at[1] as i16 } else { -7 }).to_le_bytes());
    contents.array("pieces", &[10, 2], expected);

    // group/raw: two chunks.
    let items: Vec<u8> = (0..24).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    let tables = [
        (0, forge.raw("raw chunk 0", &[4, 4], &items[..128])),
        (1, forge.raw("raw chunk 1", &[2, 4], &items[128..])),
    ];
    let index = forge.index("raw index", 0, 0, &tables);
    let raw = Record::new(dtype(4, 8), &[6, 4], &[4, 4], &[4, 4], &[0]).raw();
    record(&forge, "group/raw", raw.index(index).stores(2, &[tables[0].1, tables[1].1], 192));
    contents.array("group/raw", &[6, 4], items);

    // strings and runs.
    let parts =
        |forge: &mut Forge<'_>, path: &str, offsets: &[i64], class: u8, size: u32, values: Vec<u8>| {
            let n = offsets.len() as u64;
            let items = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            let index = forge.chunk(&format!("{path} offsets"), (0, 0, 0), &[n], &[(0, items)]);
            let mut offsets =
                Record::new(dtype(2, 8), &[n], &[n], &[n], &[]).index(index).stores(1, &[index], 0).encode();
            forge.edit(&format!("record {path} offsets"), &mut offsets);
            let n = values.len() as u64 / u64::from(size);
            let index = forge.chunk(&format!("{path} values"), (0, 0, 0), &[n], &[(0, values)]);
            let mut values = Record::new(dtype(class, size), &[n], &[n], &[n], &[])
                .index(index)
                .stores(1, &[index], 0)
                .encode();
            forge.edit(&format!("record {path} values"), &mut values);
            (offsets, values)
        };
    let strings = ["brick", "", "é", "map"];
    let (offsets, values) =
        parts(&mut forge, "strings", &[0, 5, 5, 7, 10], 3, 1, strings.concat().into_bytes());
    let mut bytes = ragged(0, &[2, 2], &offsets, &values);
    forge.edit("record strings", &mut bytes);
    entries.push((b"strings".to_vec(), bytes));
    contents.strings.push(("strings".into(), strings.map(str::to_owned).to_vec()));
    let values = le(&[1f32, 2., 3., 4., 5.].map(f32::to_le_bytes));
    let (offsets, values) = parts(&mut forge, "runs", &[0, 2, 2, 5], 4, 4, values);
    let mut bytes = ragged(1, &[3], &offsets, &values);
    forge.edit("record runs", &mut bytes);
    entries.push((b"runs".to_vec(), bytes));
    contents.runs.push(("runs".into(), vec![vec![1., 2.], vec![], vec![3., 4., 5.]]));

    // Groups and attributes, one of them in a blob.
    let mut group = vec![1];
    forge.edit("record group", &mut group);
    entries.push((b"group".to_vec(), group));
    contents.groups.push("group".into());
    let mut title = br#"{"title":"forged"}"#.to_vec();
    forge.edit("attributes", &mut title);
    entries.push((b"\0".to_vec(), title));
    contents.attributes.push((String::new(), r#"{"title":"forged"}"#.into()));
    let long = format!(r#"{{"long":"{}"}}"#, "x".repeat(1500));
    let mut blob = long.clone().into_bytes();
    forge.edit("long attributes", &mut blob);
    let blob = forge.blob("blob", &blob);
    contents.attributes.push(("b".into(), long));

    let mut cells: Vec<(Vec<u8>, Vec<u8>)> =
        entries.into_iter().map(|(key, value)| (key, inline(&value))).collect();
    let mut reference = in_blob(&blob);
    forge.edit("blob reference", &mut reference);
    cells.push((b"b\0".to_vec(), reference));
    cells.sort();
    // Three leaves below one inner page. The first holds the keys up to "const", the last "time" and "wide".
    let bound = |key: &[u8]| cells.partition_point(|(other, _)| other[..] < *key);
    let cuts = [0, bound(b"deep"), bound(b"struct"), cells.len()];
    let leaves: Vec<(Vec<u8>, Vec<u8>)> = (0..3)
        .map(|n| {
            let page = forge.tree(&format!("leaf {n}"), 0, &cells[cuts[n]..cuts[n + 1]]);
            (if n == 0 { Vec::new() } else { cells[cuts[n]].0.clone() }, page.to_vec())
        })
        .collect();
    let catalog = forge.tree("catalog", 1, &leaves);
    let free = forge.extent(&[0; 64]);
    // The second list corrects the first.
    let before = forge.free_list("free before", NULL, &[[DATA_START, 64, 3, 8], [free, 128, 3, 8]]);
    let lists = forge.free_list("free", before, &[[DATA_START, 0, 0, 0], [free, 64, 3, 8]]);
    (forge.finish(catalog, lists), contents)
}
