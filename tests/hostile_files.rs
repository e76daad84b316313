//! Every rejection that SPEC.md asks for has a test that needs it.
//!
//! Each case of the tables below quotes the sentence of SPEC.md that it is about, breaks just that rule in a forged file
//! in which all checksums are right, and says which read must fail, how, and what the message must name. The same file
//! without the change is the control. That the quotes still stand in SPEC.md is tested too.

mod everything;
mod forge;

use brickmap::{Error, Finding, Store};
use everything::{Outcome, read_everything};
use forge::*;

/// The error that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    NotAStore,
    Unsupported,
    Corrupt,
}
use Due::{Corrupt, NotAStore, Unsupported};

struct Case {
    /// A sentence of SPEC.md.
    rule: &'static str,
    /// Which part of the forged file is changed, and how.
    part: &'static str,
    change: fn(&mut Vec<u8>),
    /// The read that must fail, as `everything` names it; or `open`.
    read: &'static str,
    due: Due,
    /// What the message must contain.
    says: &'static [&'static str],
}

const fn case(
    rule: &'static str,
    part: &'static str,
    change: fn(&mut Vec<u8>),
    read: &'static str,
    due: Due,
    says: &'static [&'static str],
) -> Case {
    Case { rule, part, change, read, due, says }
}

/// What came of reading the sample file with a change.
#[derive(Debug, Default)]
struct Outcomes {
    /// The reads that failed, by name.
    errors: Vec<(String, Error)>,
    wrong: Vec<String>,
    /// What `verify` found.
    findings: Vec<Finding>,
}

fn outcomes(part: &str, change: Change<'_>) -> Outcomes {
    let mut forge = Forge::new();
    if !part.is_empty() {
        forge.change(part, change);
    }
    let (file, contents) = sample_with(forge);
    let mut outcomes = Outcomes::default();
    match Store::from_bytes(file) {
        Err(error) => outcomes.errors.push(("open".to_owned(), error)),
        Ok(store) => {
            read_everything(&store, &contents, &mut |what, outcome| match outcome {
                Outcome::Right => {}
                Outcome::Wrong(parts) => outcomes.wrong.push(format!("{what}: {parts}")),
                Outcome::Failed(error) => outcomes.errors.push((what.to_owned(), error)),
            });
            outcomes.findings = store.verify().unwrap().findings;
        }
    }
    outcomes
}

fn due_of(error: &Error) -> Option<Due> {
    match error {
        Error::NotAStore { .. } => Some(NotAStore),
        Error::Unsupported { .. } => Some(Unsupported),
        Error::Corrupt { .. } => Some(Corrupt),
        _ => None,
    }
}

/// Checks the cases. With `local`, damage in one array must be none of another, nor of the list of names.
fn check(cases: &[Case], local: bool) {
    let mut failures = Vec::new();
    for case in cases {
        let Outcomes { errors, wrong, findings } = outcomes(case.part, &case.change);
        let mut fail = |why: String| failures.push(format!("\"{}\" ({}): {why}", case.rule, case.part));
        match errors.iter().find(|(read, _)| read == case.read) {
            None => fail(format!("'{}' did not fail; what failed: {errors:?}, wrong: {wrong:?}", case.read)),
            Some((_, error)) => {
                let text = error.to_string();
                if due_of(error) != Some(case.due) {
                    fail(format!("{:?} is due, not {error:?}", case.due));
                }
                for says in case.says.iter().filter(|says| !text.contains(**says)) {
                    fail(format!("the message does not say '{says}': {text}"));
                }
            }
        }
        if case.read != "open" && findings.is_empty() {
            fail("verify finds nothing".into());
        }
        if local && (case.read.starts_with("array") || case.read.starts_with("ragged")) {
            for (read, error) in errors.iter().filter(|(read, _)| read != case.read) {
                fail(format!("'{read}' failed too: {error}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Changes after which everything must read as before.
fn check_harmless(cases: &[(&str, &str, fn(&mut Vec<u8>))]) {
    for (rule, part, change) in cases {
        let outcomes = outcomes(part, change);
        assert!(outcomes.errors.is_empty() && outcomes.wrong.is_empty(), "\"{rule}\" ({part}): {outcomes:?}");
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_sample_file_without_a_change_reads_as_it_should() {
    let outcomes = outcomes("", &|_| {});
    assert!(
        outcomes.errors.is_empty() && outcomes.wrong.is_empty() && outcomes.findings.is_empty(),
        "{outcomes:?}"
    );
}

#[test]
fn every_rule_that_is_quoted_stands_in_the_specification() {
    let specification = words(include_str!("../SPEC.md"));
    let tables = [PAGES, POINTERS, TREES, RECORDS, DTYPES, INDEXES, CHUNKS, BLOCKS, RAW, PIECES_PAGES];
    let rules = tables.iter().flat_map(|cases| cases.iter().map(|case| case.rule));
    let rules = rules
        .chain(HARMLESS.iter().map(|(rule, ..)| *rule))
        .chain(WHOLE_FILES.iter().map(|(rule, ..)| *rule));
    for rule in rules {
        assert!(specification.contains(&words(rule)), "SPEC.md does not say \"{rule}\"");
    }
}

/// Flips a bit.
fn flip(bytes: &mut [u8], at: usize) {
    bytes[at] ^= 1;
}

// Sections 1 to 5.

const NO_COPY: &str = "A file in which one of the four pages has none is rejected";
const BROKEN_COPY: &str =
    "and so is one with a valid copy whose fields break a rule: an older root is never taken instead";
const TEXT_MODE: &str = "where no copy is valid and bytes 1 to 3 of the file are 42 52 4B, but the magic is not there, the high bit, \
    the line ends or the end-of-file byte were changed that way";

#[rustfmt::skip]
const PAGES: &[Case] = &[
    case(BROKEN_COPY, "root 2", |root| root[68] = 99, "open", Corrupt, &["12288", "kind 99"]),
    case(NO_COPY, "page 0", |page| { flip(page, 40); flip(page, 2088) }, "open", Corrupt,
        &["superblock", "checksum"]),
    case(NO_COPY, "page 1", |page| { flip(page, 9); flip(page, 2057) }, "open", Corrupt,
        &["root", "checksum", "4096"]),
    case(NO_COPY, "page 2", |page| { flip(page, 9); flip(page, 2057) }, "open", Corrupt,
        &["root", "checksum", "8192"]),
    case(NO_COPY, "page 3", |page| { flip(page, 9); flip(page, 2057) }, "open", Corrupt,
        &["root", "checksum", "12288"]),
    case("A copy is **valid** if its magic and its checksum are right.", "root 2", |root| root[0] = b'b', "open", Corrupt,
        &["root"]),
    case("A copy is **valid** if its magic and its checksum are right.", "superblock", |record| record[0] = 0x0A, "open",
        Corrupt, &["text mode"]),
    case("A copy is **valid** if its magic and its checksum are right.", "superblock",
        |record| record[..8].copy_from_slice(b"\x89HDF\r\n\x1a\n"), "open", NotAStore, &["HDF5"]),
    case("format version, 1. A reader refuses any other", "superblock", |record| record[8] = 2, "open", Unsupported,
        &["version 2"]),
    case("format version, 1. A reader refuses any other", "superblock", |record| record[8] = 0, "open", Unsupported,
        &["version 0"]),
    case("required feature bits: a reader refuses a file with a bit that it does not know.", "superblock",
        |record| record[16] = 4, "open", Unsupported, &["0x4"]),
    case("required feature bits: a reader refuses a file with a bit that it does not know.", "superblock",
        |record| record[23] = 0x80, "open", Unsupported, &["0x8000000000000000"]),
    case(TEXT_MODE, "file",
        |file| { file.remove(4); }, "open", Corrupt, &["text mode"]),
    case(TEXT_MODE, "file",
        |file| file.iter_mut().for_each(|byte| *byte &= 0x7F), "open", Corrupt, &["text mode"]),
    case("A file that ends before the logical end is damaged.", "file", |file| { file.pop(); }, "open", Corrupt,
        &["cut off"]),
    case("A file that ends before the logical end is damaged.", "file", |file| file.truncate(16383), "open", Corrupt,
        &["cut off"]),
    case("logical end: a multiple of 64, at least 16384", "root 0", |root| add8(root, 24, -1), "open", Corrupt,
        &["logical end"]),
    case("logical end: a multiple of 64, at least 16384", "root 1", |root| set8(root, 24, 16320), "open", Corrupt,
        &["logical end", "8192"]),
    case("Bits 1 to 31: a reader refuses the file.", "root 0", |root| root[112] = 2, "open", Unsupported, &["flags 0x2"]),
    case("Bits 1 to 31: a reader refuses the file.", "root 0", |root| root[115] = 0x80, "open", Unsupported, &["flags"]),
    case("generation | 2^61", "root 0", |root| set8(root, 8, (1 << 61) + 1), "open", Corrupt, &["2305843009213693953"]),
    case("number n of alive generations, at most 118", "root 0", |root| set8(root, 136, 119), "open", Corrupt,
        &["119 alive generations"]),
    case("number n of alive generations, at most 118", "root 0", |root| set8(root, 136, u64::MAX), "open", Corrupt,
        &["alive generations"]),
    case("generations strictly ascending and below the root's own", "root 0", |root| { set8(root, 136, 1); set8(root, 144, 9) }, "open",
        Corrupt, &["alive generations"]),
    case("generations strictly ascending and below the root's own", "root 0",
        |root| { set8(root, 136, 2); set8(root, 144, 3); set8(root, 160, 3) }, "open", Corrupt, &["alive generations"]),
    case("pointer to the root page of the catalog (§9), or null: no entries", "catalog root pointer", |it| it[36] = BLOB,
        "open", Corrupt, &["blob", "tree page"]),
    case("pointer to the root page of the catalog (§9), or null: no entries", "catalog root pointer", |it| it[36] = CONSTANT,
        "open", Corrupt, &["constant", "tree page"]),
    case("pointer to the root page of the free-space tree (§13), or null", "free pointer", |it| it[36] = INDEX, "open", Corrupt,
        &["index page", "tree page"]),
];

#[test]
fn superblocks_and_roots_that_break_a_rule_are_rejected() {
    check(PAGES, false);
}

#[rustfmt::skip]
const HARMLESS: &[(&str, &str, fn(&mut Vec<u8>))] = &[
    ("A page with one valid copy is used.", "page 0", |page| page[..2048].fill(0xFF)),
    ("A page with one valid copy is used.", "page 0", |page| page[2048..].fill(0)),
    ("A page with one valid copy is used.", "page 1", |page| page[..2048].fill(0)),
    ("A page with one valid copy is used.", "page 1", |page| page[2048..].fill(0xFF)),
    ("Of two valid root copies the one with the higher generation counts", "page 1", |page| older(&mut page[..2048])),
    ("Of two valid root copies the one with the higher generation counts", "page 1", |page| older(&mut page[2048..])),
    ("of two valid superblock copies the first", "page 0", |page| later_version(&mut page[2048..])),
    ("optional feature bits: a reader ignores those it does not know.", "superblock", |record| record[24..32].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "superblock", |record| {
        record[12..16].fill(0xFF);
        record[48..].fill(0xFF);
    }),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "root 0", |root| root[144..].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "b chunk 1 pointer", |it| it[37..].fill(0xFF)),
    ("the bytes behind it and 16 to 35 are reserved", "const entry", |it| it[16..36].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "leaf 0", |page| page[17..20].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "b index", |page| page[17..24].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "b chunk 0", |head| head[19] = 0xFF),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "raw chunk 0", |head| head[17..24].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "pieces page", |head| head[20..24].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "record strings", |record| record[3..8].fill(0xFF)),
    ("\"Reserved\" bytes are written as zero and ignored by readers.", "record b", |record| record[125..127].fill(0xFF)),
    ("Bits 32 to 63: ignored", "root 0", |root| root[116..120].fill(0xFF)),
    ("a value that is not listed there is no reason to reject an array", "record b", |record| {
        record[4..12].fill(0x77);
        record[24..32].fill(0xFF);
    }),
    ("reader takes the root with the highest generation, and of equals the lowest page", "root 1", |root| set8(root, 8, 8)),
    ("reader takes the root with the highest generation, and of equals the lowest page", "root 1", |root| set8(root, 8, 9)),
    ("one item; the bytes behind it and 16 to 35 are reserved", "const entry", |it| it[2..16].fill(0xFF)),
    ("a reader takes one that has a content size", "b chunk 1 block 0", |frame| {
        // One byte of content size, the smallest window.
        *frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0x20, 24][..], &frame[6..]].concat();
    }),
    ("for writers, reading does not depend on it", "b chunk 1", |head| head[16] = 200),
    ("for the others it means nothing", "b chunk 1", |head| { head[18] = 3; set4(head, 20, 0) }),
    ("Bytes from the logical end on are what a writer left that died before its commit: readers ignore them.", "file",
        |file| file.extend_from_slice(&[0xA5; 1000])),
];

fn older(copy: &mut [u8]) {
    set8(copy, 8, 8);
    set8(copy, 24, DATA_START);
    copy[32..112].fill(0);
    reseal(copy);
}

fn later_version(copy: &mut [u8]) {
    copy[8] = 2;
    reseal(copy);
}

fn reseal(copy: &mut [u8]) {
    let sum = checksum(&copy[..2040]);
    set8(copy, 2040, sum);
}

#[test]
fn what_a_reader_must_ignore_changes_nothing() {
    check_harmless(HARMLESS);
}

// Sections 6 and 7.

const REJECTED_POINTERS: &str = "A reader must reject: a kind that is unknown or not allowed where the pointer stands; an \
    offset that is not a multiple of 64 or below 16384; an extent that ends after the logical end; a birth above the root's \
    generation; lengths that break the rules above; and an extent whose first `checked` bytes do not have the checksum.";
const DIFFERS: &str = "A tag or number that differs from what the pointer says is rejected.";
const CHUNK_00: &[&str] = &["array 'b'", "chunk [0, 0]"];

#[rustfmt::skip]
const POINTERS: &[Case] = &[
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| it[36] = 8, "array b", Corrupt, &["kind 8", "'b'", "chunk [0, 0]"]),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| it[36] = 255, "array b", Corrupt, &["kind 255"]),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| it[36] = TREE, "array b", Corrupt, CHUNK_00),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| it[36] = BLOB, "array b", Corrupt, CHUNK_00),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| it[36] = INDEX, "array b", Corrupt, CHUNK_00),
    case("A null pointer is 40 zero bytes.", "b chunk 0 pointer", |it| it[36] = 0, "array b", Corrupt, CHUNK_00),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| add8(it, 0, 32), "array b", Corrupt, CHUNK_00),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| set8(it, 0, 16320), "array b", Corrupt, &["16320", "'b'"]),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| set8(it, 0, 0), "array b", Corrupt, CHUNK_00),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| set8(it, 8, 1 << 20), "array b", Corrupt, &["logical end", "'b'"]),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| set8(it, 0, 1 << 40), "array b", Corrupt, &["logical end"]),
    case("Sums and products of numbers from the file must not overflow 64 bits; one that does is rejected.",
        "b chunk 0 pointer", |it| set8(it, 8, u64::MAX - 63), "array b", Corrupt, &["logical end", "'b'"]),
    case("Sums and products of numbers from the file must not overflow 64 bits; one that does is rejected.",
        "b chunk 0 pointer", |it| set8(it, 0, u64::MAX - 63), "array b", Corrupt, &["logical end", "'b'"]),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| set8(it, 16, 10), "array b", Corrupt, &["generation 10", "9"]),
    case("checked: at least 16, at most the length", "b chunk 0 pointer", |it| set4(it, 32, 15), "array b", Corrupt, CHUNK_00),
    case("checked: at least 16, at most the length", "b chunk 0 pointer", |it| set4(it, 32, 1 << 12), "array b", Corrupt,
        &["checks 4096"]),
    case("length of the extent, at least 16", "b chunk 0 pointer", |it| { set8(it, 8, 15); set4(it, 32, 15) }, "array b",
        Corrupt, CHUNK_00),
    case("index page (§11) | `INDX` | whole", "record b", |record| set4(record, 64, 64), "array b", Corrupt,
        &["index page", "part"]),
    case("blob (§8) | `BLOB` | whole", "blob reference", |it| set4(it, 36, 64), "attributes b", Corrupt, &["blob", "part"]),
    case("raw table (§12.3) | `RAWT` | whole", "raw chunk 0 pointer", |it| set4(it, 32, 32), "array group/raw", Corrupt,
        &["raw table", "part"]),
    case("pieces page (§12.4) | `PIEC` | whole", "pieces page pointer", |it| set4(it, 32, 32), "array pieces", Corrupt,
        &["pieces page", "part"]),
    case(REJECTED_POINTERS, "b chunk 0 pointer", |it| flip(it, 24), "array b", Corrupt, &["checksum", "'b'", "[0, 0]"]),
    case("Only arrays whose items have at most 16 bytes use it", "wide chunk pointer",
        |it| it.copy_from_slice(&constant(b"x")), "array wide", Corrupt, &["constant", "chunk [0]"]),
    case("only for a chunk that lies inside the array as a whole", "b chunk 4 pointer",
        |it| it.copy_from_slice(&constant(b"1234")), "array b", Corrupt, &["constant", "chunk [2, 0]"]),
    case(DIFFERS, "b chunk 0 sealed", |head| head[0] = b'c', "array b", Corrupt, CHUNK_00),
    case(DIFFERS, "b chunk 0 sealed", |head| set4(head, 4, 111), "array b", Corrupt, CHUNK_00),
    case(DIFFERS, "b chunk 0 sealed", |head| set8(head, 8, 111), "array b", Corrupt, CHUNK_00),
    case(DIFFERS, "b index sealed", |head| flip(head, 3), "array b", Corrupt, &["index page", "'b'"]),
    case(DIFFERS, "blob sealed", |head| flip(head, 3), "attributes b", Corrupt, &["blob"]),
    case(DIFFERS, "raw chunk 1 sealed", |head| flip(head, 8), "array group/raw", Corrupt, &["raw table", "chunk [1, 0]"]),
    case(DIFFERS, "pieces page sealed", |head| flip(head, 4), "array pieces", Corrupt, &["pieces page", "chunk [0, 0]"]),
    case(DIFFERS, "catalog sealed", |head| flip(head, 1), "entries", Corrupt, &["tree page"]),
];

#[test]
fn pointers_and_frame_headers_that_break_a_rule_are_rejected() {
    check(POINTERS, true);
}

// Section 8. The sample's catalog has three leaves below one inner page.

const ASCEND: &str = "within a page, and over all leaves, they ascend strictly";
const LEVELS: &str =
    "level: 0 is a leaf. The page that an inner page points to has its level less one. At most 32";
const BOUNDS: &str = "The keys below a pointer of an inner page are at least the key of its cell and below the key of the next \
    cell.";

/// Where cell `n` of a tree page starts.
fn cell(page: &[u8], n: usize) -> usize {
    u32::from_le_bytes(page[24 + 4 * n..28 + 4 * n].try_into().unwrap()) as usize
}

#[rustfmt::skip]
const TREES: &[Case] = &[
    case("tree page (§8) | `TREE` | whole", "leaf 2 pointer", |it| set4(it, 32, 32), "array time", Corrupt,
        &["tree page", "part"]),
    case(LEVELS, "leaf 1", |page| page[16] = 1, "array deep", Corrupt, &["level 1"]),
    case(LEVELS, "catalog", |page| page[16] = 2, "entries", Corrupt, &["level 0"]),
    case(LEVELS, "catalog", |page| page[16] = 33, "entries", Corrupt, &["level 33"]),
    case("number n of cells, at least 1", "leaf 2", |page| { page.truncate(24); set4(page, 20, 0) }, "array time", Corrupt,
        &["without cells"]),
    case("number n of cells, at least 1", "leaf 2", |page| set4(page, 20, u32::MAX), "array time", Corrupt, &["tree page"]),
    case("the cells, in order, with no bytes between them or after the last", "leaf 2", |page| page.push(0), "array time",
        Corrupt, &["tree page", "1 bytes too many"]),
    case("the cells, in order, with no bytes between them or after the last", "leaf 2", |page| {
        let at = cell(page, 0);
        set4(page, 24, at as u32 + 1);
    }, "array time", Corrupt, &["cells"]),
    case("the cells, in order, with no bytes between them or after the last", "leaf 2", |page| { page.pop(); }, "array time",
        Corrupt, &["tree page"]),
    case("a key at most 1040 bytes", "leaf 2", |page| {
        let at = cell(page, 0);
        page[at..at + 2].copy_from_slice(&1041u16.to_le_bytes());
        page.splice(at + 2..at + 2, [b'z'; 1037]);
    }, "array time", Corrupt, &["key of 1041 bytes"]),
    case(ASCEND, "leaf 0", |page| { let at = cell(page, 1) + 2; page[at] = b'c' }, "entries", Corrupt, &["order"]),
    case(ASCEND, "leaf 0", |page| {
        // Two equal keys: "b" becomes "b" and a zero byte.
        let at = cell(page, 1);
        page.splice(at..at + 2, [2, 0]);
        page.insert(at + 3, 0);
        for n in 2..u32::from_le_bytes(page[20..24].try_into().unwrap()) as usize {
            let moved = cell(page, n) as u32 + 1;
            set4(page, 24 + 4 * n, moved);
        }
    }, "entries", Corrupt, &["order"]),
    case(ASCEND, "leaf 2", |page| { let at = cell(page, 1) + 2; page[at] = b'a' }, "array time", Corrupt, &["order"]),
    case(BOUNDS, "leaf 1", |page| { let at = cell(page, 0) + 2; page[at] = b'c' }, "array deep", Corrupt, &["order"]),
    case(BOUNDS, "catalog", |page| { let at = cell(page, 2) + 2; page[at..at + 6].copy_from_slice(b"string") }, "array deep",
        Corrupt, &["order"]),
    case("The first cell of an inner page has the lower bound of the page as its key (in the root page: the empty key).",
        "catalog", |page| {
            // The first key, of no bytes, becomes one of one byte.
            let at = cell(page, 0);
            page.splice(at..at + 2, [1, 0, 0]);
            for n in 1..3 {
                let moved = cell(page, n) as u32 + 1;
                set4(page, 24 + 4 * n, moved);
            }
        }, "entries", Corrupt, &["order"]),
    case("A page has at most 65536 bytes", "leaf 2", |page| {
        // A value that would belong in a blob.
        let at = cell(page, 1);
        let mut long = tree_page(0, &[("time", page[cell(page, 0) + 6..at].to_vec()), ("wide", inline(&[1; 65_600]))]);
        std::mem::swap(page, &mut long);
    }, "array time", Corrupt, &["tree page", "bytes"]),
    case("2^31: the value stands in a blob, and the 40 bytes that follow are the pointer to it. Otherwise below 2^31",
        "blob reference", |it| it[0] = 1, "entries", Corrupt, &["value of 2147483649 bytes"]),
    case("or the pointer, of kind 7", "blob reference", |it| it[40] = CHUNK, "array b", Corrupt, &["chunk frame", "blob"]),
    case("or the pointer, of kind 7", "blob reference", |it| it[4..].fill(0), "array b", Corrupt, &["blob"]),
    case("in an inner page: pointer | 40 | of kind 6", "leaf 1 pointer", |it| it[36] = BLOB, "entries", Corrupt,
        &["blob", "tree page"]),
    case("in an inner page: pointer | 40 | of kind 6", "leaf 1 pointer", |it| it.fill(0), "entries", Corrupt, &["tree page"]),
];

#[test]
fn tree_pages_that_break_a_rule_are_rejected() {
    check(TREES, false);
}

// Section 9. The record of `b` has its shape at 72, chunk shape at 88, block shape at 104, three key bits at 120, the
// dtype at 123 and the fill value at 139.

const JSON: &str = "a JSON object (RFC 8259, so no NaN) in UTF-8, at most 127 levels deep";
const REFUSED_ALONE: &str = "a reader refuses the array of an unknown kind, and only that";
const LISTED: &str =
    "record kind, dtype class, layout, ragged element | refuses that array as not supported, and lists it";
const AT_LEAST_1: &str = "Every chunk and block length is at least 1, also where the shape has a 0.";
const PARTS: &str = "array record of the offsets: dtype i64, shape (n+1), n the number of items";
const OFFSETS: &str =
    "Offsets must not descend nor reach outside the values; the first need not be 0. A string must be UTF-8.";
const LIMITS: &str = "A reader must check all of them before it allocates.";

/// An object of so many levels.
fn nested(levels: usize) -> Vec<u8> {
    [br#"{"a":"#.repeat(levels - 1), b"{}".to_vec(), b"}".repeat(levels - 1)].concat()
}

#[test]
fn attributes_of_as_many_levels_as_are_allowed_are_read() {
    let mut forge = Forge::new();
    let catalog = forge.catalog(vec![(b"\0".to_vec(), inline(&nested(127)))]);
    let snapshot = Store::from_bytes(forge.finish(catalog, NULL)).unwrap().snapshot();
    assert_eq!(serde_json::to_vec(&snapshot.attributes("").unwrap()).unwrap(), nested(127));
}

#[rustfmt::skip]
const RECORDS: &[Case] = &[
    case(JSON, "attributes", |json| json.truncate(5), "attributes ", Corrupt, &["JSON"]),
    case(JSON, "attributes", |json| *json = b"[1]".to_vec(), "attributes ", Corrupt, &["JSON"]),
    case(JSON, "long attributes", |json| json[4] = 0xFF, "attributes b", Corrupt, &["JSON", "'b'"]),
    case(JSON, "long attributes", |json| {
        *json = [b"{\"a\":".to_vec(), b"[".repeat(100_000)].concat();
    }, "attributes b", Corrupt, &["JSON", "'b'"]),
    case(JSON, "attributes", |json| *json = br#"{"a":NaN}"#.to_vec(), "attributes ", Corrupt, &["JSON"]),
    case(JSON, "attributes", |json| *json = nested(128), "attributes ", Corrupt, &["JSON"]),
    case(REFUSED_ALONE, "record b", |record| record[0] = 9, "array b", Unsupported, &["'b'", "kind 9"]),
    case(LISTED, "record b", |record| record[2] = 2, "array b", Unsupported, &["'b'", "layout 2"]),
    case(LISTED, "record b", |record| record[123] = 11, "array b", Unsupported, &["'b'", "class 11"]),
    case(LISTED, "record strings", |record| record[1] = 2, "ragged strings", Unsupported, &["'strings'", "element"]),
    case("number d of dimensions, at most 32", "record b", |record| record[1] = 33, "array b", Corrupt, &["33 dimensions"]),
    case("number d of dimensions, at most 32", "record b", |record| record[1] = 255, "array b", Corrupt, &["255 dimensions"]),
    case("number d of dimensions, at most 32", "record strings", |record| record[2] = 33, "ragged strings", Corrupt,
        &["33 dimensions"]),
    case("number b of key bits, at most 64", "record b", |record| {
        record[3] = 65;
        record.splice(120..123, [1; 65]);
    }, "array b", Corrupt, &["key bits"]),
    case("The record ends with the fill value.", "record b", |record| record.push(0), "array b", Corrupt,
        &["array record", "1 bytes too many"]),
    case("The record ends with the fill value.", "record b", |record| { record.pop(); }, "array b", Corrupt,
        &["array record ends too early"]),
    case("**Group** (kind 1): the one byte.", "record b", |record| record[0] = 1, "array b", Corrupt, &["group"]),
    case(AT_LEAST_1, "record b", |record| set8(record, 88, 0), "array b", Corrupt, &["chunk length of 0", "dimension 0"]),
    case(AT_LEAST_1, "record b", |record| set8(record, 112, 0), "array b", Corrupt, &["block length of 0", "dimension 1"]),
    case(AT_LEAST_1, "record b", |record| { record[72..88].fill(0); record[88..104].fill(0); record[104..120].fill(0) },
        "array b", Corrupt, &["chunk length of 0"]),
    case("A block is at most as long as the chunk in each dimension.", "record b", |record| set8(record, 104, 5), "array b",
        Corrupt, &["block length of 5"]),
    case("In the raw layout chunks are cut along the first dimension only: in the others the chunk is at least as long as the array. \
        The block shape is then the chunk shape",
        "record group/raw", |record| { set8(record, 96, 2); set8(record, 112, 2) }, "array group/raw", Corrupt, &["raw"]),
    case("In the raw layout chunks are cut along the first dimension only: in the others the chunk is at least as long as the array. \
        The block shape is then the chunk shape",
        "record group/raw", |record| set8(record, 104, 2), "array group/raw", Corrupt, &["raw"]),
    case("key bits: the dimension of each, bit 0 first", "record b", |record| record[121] = 2, "array b", Corrupt,
        &["key bit of dimension 2"]),
    case("The number of bits given to a dimension must be enough for its grid.", "record b", |record| record[121] = 1,
        "array b", Corrupt, &["key bits"]),
    case("pointer of the offsets index (§11)", "record b", |record| record[68] = CHUNK, "array b", Corrupt, &["wrong kind"]),
    case("pointer of the offsets index (§11)", "record b", |record| record[68] = TREE, "array b", Corrupt, &["wrong kind"]),
    case("With b = 0 that pointer is the entry of the only chunk.", "record one", |record| record[68] = INDEX, "array one",
        Corrupt, &["'one'"]),
    case("With b = 0 that pointer is the entry of the only chunk.", "record one", |record| record[68] = RAW_TABLE, "array one",
        Corrupt, &["'one'"]),
    case(PARTS, "record runs offsets", |record| record[96] = 3, "ragged runs", Corrupt, &["offsets"]),
    case(PARTS, "record runs offsets", |record| { set8(record, 72, 5); set8(record, 80, 5); set8(record, 88, 5) },
        "ragged runs", Corrupt, &["offsets"]),
    case(PARTS, "record runs offsets", |record| record[0] = 1, "ragged runs", Corrupt, &["another kind"]),
    case("array record of the values: one dimension; for strings dtype u8", "record strings values", |record| record[96] = 2,
        "ragged strings", Corrupt, &["values"]),
    case("array record of the values: one dimension; for strings dtype u8", "record strings values", |record| {
        // The same without dimensions.
        record[1] = 0;
        record.drain(72..96);
    }, "ragged strings", Corrupt, &["values"]),
    case("length of the next part", "record runs", |record| record.push(7), "ragged runs", Corrupt, &["ragged"]),
    case("length of the next part", "record runs", |record| set4(record, 16, u32::MAX), "ragged runs", Corrupt, &["ragged"]),
    case(OFFSETS, "runs offsets block 0", |items| set8(items, 8, 4), "ragged runs", Corrupt, &["offsets", "'runs'"]),
    case(OFFSETS, "runs offsets block 0", |items| set8(items, 24, 6), "ragged runs", Corrupt, &["offsets", "'runs'"]),
    case(OFFSETS, "runs offsets block 0", |items| set8(items, 0, u64::MAX), "ragged runs", Corrupt, &["offsets", "'runs'"]),
    case(OFFSETS, "runs offsets block 0", |items| set8(items, 24, 1 << 62), "ragged runs", Corrupt, &["offsets", "'runs'"]),
    case(OFFSETS, "strings values block 0", |text| text[2] = 0xFF, "ragged strings", Corrupt, &["UTF-8", "'strings'"]),
    case(OFFSETS, "strings offsets block 0", |items| { set8(items, 16, 6) }, "ragged strings", Corrupt,
        &["character", "'strings'"]),
    case("length of a dimension | 2^63 - 1", "record b", |record| { set8(record, 72, 0); set8(record, 80, 1 << 63) }, "array b",
        Corrupt, &["9223372036854775808"]),
    case("length of a dimension | 2^63 - 1", "record strings", |record| { set8(record, 8, 0); set8(record, 16, 1 << 63) },
        "ragged strings", Corrupt, &["ragged"]),
    case("bytes of an array, of a chunk | 2^63 - 1", "record b", |record| { set8(record, 72, 1 << 40); set8(record, 80, 1 << 40) },
        "array b", Corrupt, &["array of shape"]),
    case("bytes of an array, of a chunk | 2^63 - 1", "record b", |record| { set8(record, 88, 1 << 40); set8(record, 96, 1 << 40) },
        "array b", Corrupt, &["chunk of shape"]),
    case("bytes of a block; itemsize | 2^24", "record b", |record| {
        for at in [72, 80, 88, 96, 104, 112] {
            set8(record, at, 1 << 12);
        }
    }, "array b", Corrupt, &["block of shape"]),
    case("blocks of a chunk | 2^27", "record b", |record| {
        set8(record, 88, 1 << 20);
        set8(record, 96, 1 << 10);
        record[104..120].copy_from_slice(&le(&[1u64, 1].map(u64::to_le_bytes)));
    }, "array b", Corrupt, &["blocks"]),
    case(LIMITS, "record b", |record| {
        // 33 bits for each of two dimensions.
        set8(record, 72, (1 << 32) + 1);
        set8(record, 80, 1 << 28);
        record[88..120].copy_from_slice(&le(&[1u64, 1, 1, 1].map(u64::to_le_bytes)));
    }, "array b", Corrupt, &["bits"]),
];

#[test]
fn records_and_values_that_break_a_rule_are_rejected() {
    check(RECORDS, true);
}

// Section 10. The dtype of `b` stands at 123 of its record, that of `struct` at 96, that of `time` too.

#[rustfmt::skip]
const DTYPES: &[Case] = &[
    case("itemsize, 1 to 2^24", "record struct", |record| set4(record, 100, 0), "array struct", Corrupt, &["item size of 0"]),
    case("itemsize, 1 to 2^24", "record struct", |record| set4(record, 100, (1 << 24) + 1), "array struct", Corrupt,
        &["16777217"]),
    case("signed integer | 1, 2, 4, 8", "record b", |record| set4(record, 127, 3), "array b", Corrupt, &["3", "class 2"]),
    case("bool, one byte, 0 or 1 | 1", "record b", |record| record[123] = 1, "array b", Corrupt, &["4", "class 1"]),
    case("complex, real part first | 8, 16", "record b", |record| record[123] = 5, "array b", Corrupt, &["4", "class 5"]),
    case("UCS-4 text, padded with zero characters | multiple of 4", "record wide", |record| {
        record[97] = 9;
        set4(record, 101, 18);
    }, "array wide", Corrupt, &["18", "class 9"]),
    case("multiple of the time unit, at least 1; 0 in other classes", "record time", |record| set4(record, 104, 0), "array time",
        Corrupt, &["multiplier 0"]),
    case("multiple of the time unit, at least 1; 0 in other classes", "record b", |record| set4(record, 131, 1), "array b",
        Corrupt, &["time unit"]),
    case("Time units: 0 none (generic), 1 year, 2 month, 3 week, 4 day, 5 h, 6 min, 7 s, 8 ms, 9 us, 10 ns, 11 ps, 12 fs, 13 as; \
        0 in other classes than 6 and 7.", "record time", |record| record[97] = 14, "array time", Corrupt, &["unit 14"]),
    case("Time units: 0 none (generic), 1 year, 2 month, 3 week, 4 day, 5 h, 6 min, 7 s, 8 ms, 9 us, 10 ns, 11 ps, 12 fs, 13 as; \
        0 in other classes than 6 and 7.", "record b", |record| record[124] = 4, "array b", Corrupt, &["unit 4"]),
    case("length of the description; 0 in other classes than 10", "record struct", |record| record[96] = 8, "array struct",
        Corrupt, &["description"]),
    case("length of the description; 0 in other classes than 10", "record struct", |record| flip(record, 108), "array struct",
        Corrupt, &["description"]),
    case("A description is NumPy's list of fields", "record struct", |record| record[112] = b'(', "array struct", Corrupt,
        &["description", "'struct'"]),
    case("A description is NumPy's list of fields", "record struct", |record| record[114] = 0xFF, "array struct", Corrupt,
        &["UTF-8"]),
    case("A description is NumPy's list of fields", "record struct", |record| record[122] = b'8', "array struct", Corrupt,
        &["item size", "description"]),
];

#[test]
fn dtypes_that_break_a_rule_are_rejected() {
    check(DTYPES, true);
}

// Section 11.

const IMPLIED: &str = "The level and the prefix must be those that the way to the page implies, and the bitmap must not be zero.";
const ENTRIES: &str = "An entry of level 0 is a pointer of kind 2, 3 or 4 in the blocks layout and of kind 5 in the raw layout; \
    above, of kind 1.";

#[rustfmt::skip]
const INDEXES: &[Case] = &[
    case(IMPLIED, "deep leaf 1", |page| page[16] = 1, "array deep", Corrupt, &["index page", "elsewhere", "'deep'"]),
    case(IMPLIED, "deep top", |page| page[16] = 0, "array deep", Corrupt, &["index page", "elsewhere", "'deep'"]),
    case(IMPLIED, "deep leaf 1", |page| set8(page, 24, 2), "array deep", Corrupt, &["elsewhere", "chunk [64]"]),
    case(IMPLIED, "deep top", |page| set8(page, 24, 1), "array deep", Corrupt, &["elsewhere"]),
    case(IMPLIED, "deep leaf 1", |page| { set8(page, 32, 0); page.truncate(40) }, "array deep", Corrupt, &["bitmap"]),
    case("the entries that are there, in ascending order of j", "b index", |page| page[32] = 0x3F, "array b", Corrupt,
        &["bitmap"]),
    case("the entries that are there, in ascending order of j", "b index", |page| page.push(0), "array b", Corrupt, &["bitmap"]),
    case("An entry is never null.", "b index", |page| page[40..80].fill(0), "array b", Corrupt,
        &["entry for nothing", "chunk [0, 0]"]),
    case(ENTRIES, "b chunk 0 pointer", |it| it[36] = RAW_TABLE, "array b", Corrupt, CHUNK_00),
    case(ENTRIES, "raw chunk 0 pointer", |it| it[36] = CHUNK, "array group/raw", Corrupt, &["chunk [0, 0]"]),
    case(ENTRIES, "raw chunk 0 pointer", |it| it[36] = PIECES, "array group/raw", Corrupt, &["chunk [0, 0]"]),
    case(ENTRIES, "raw chunk 0 pointer", |it| it.copy_from_slice(&constant(&[0; 8])), "array group/raw", Corrupt,
        &["chunk [0, 0]"]),
    case(ENTRIES, "deep leaf 1 pointer", |it| it[36] = CHUNK, "array deep", Corrupt, &["'deep'", "level"]),
    case(ENTRIES, "deep leaf 1 pointer", |it| it.copy_from_slice(&constant(&[1])), "array deep", Corrupt, &["'deep'", "level"]),
];

#[test]
fn index_pages_that_break_a_rule_are_rejected() {
    check(INDEXES, true);
}

/// A table in the place of a chunk frame, and the reverse, with everything else as it should be.
#[test]
fn a_chunk_of_the_other_layout_is_rejected() {
    for raw in [false, true] {
        let mut forge = Forge::new();
        let items: Vec<u8> = (0..16).collect();
        let [table, chunk] =
            [forge.raw("table", &[16], &items), forge.chunk("chunk", (0, 0, 0), &[16], &[(0, items)])];
        let mut entries = Vec::new();
        for (name, entry) in
            [("right", if raw { table } else { chunk }), ("wrong", if raw { chunk } else { table })]
        {
            let index = forge.index("index", 0, 0, &[(0, entry)]);
            let record = Record::new(dtype(3, 1), &[16], &[16], &[16], &[0]).index(index);
            entries.push((name.into(), inline(&if raw { record.raw() } else { record }.encode())));
        }
        let catalog = forge.catalog(entries);
        let store = Store::from_bytes(forge.finish(catalog, NULL)).unwrap();
        let read = |path| store.array(path).unwrap().read::<u8>(&brickmap::Selection::all());
        assert_eq!(read("right").unwrap(), (0..16).collect::<Vec<u8>>());
        let error = read("wrong").unwrap_err();
        assert_eq!(due_of(&error), Some(Corrupt), "{error}");
    }
}

// Section 12.1. The header of chunk (0, 0) of `b`, of valid shape (4, 4), has its four table entries from 48 on.

const VALID: &str = "at least 1 and at most what of the chunk lies inside the array, in each dimension";
const ENDS: &str = "Ends do not descend, and the last is where the frame ends.";

#[rustfmt::skip]
const CHUNKS: &[Case] = &[
    case("number d of dimensions, that of the array", "b chunk 0", |head| head[17] = 1, "array b", Corrupt,
        &["1 dimensions", "chunk [0, 0]"]),
    case(VALID, "b chunk 0", |head| set8(head, 32, 0), "array b", Corrupt, &["valid shape", "chunk [0, 0]"]),
    case(VALID, "b chunk 0", |head| set8(head, 40, 5), "array b", Corrupt, &["valid shape", "chunk [0, 0]"]),
    case(VALID, "b chunk 4", |head| set8(head, 32, 3), "array b", Corrupt, &["valid shape", "chunk [2, 0]"]),
    case(VALID, "b chunk 0", |head| set8(head, 40, u64::MAX), "array b", Corrupt, &["valid shape"]),
    case("n must be their number", "b chunk 0", |head| set8(head, 24, 3), "array b", Corrupt, &["3 blocks", "chunk [0, 0]"]),
    case("n must be their number", "b chunk 0", |head| { set8(head, 24, 5); head.extend_from_slice(&[0; 16]) }, "array b",
        Corrupt, &["5 blocks"]),
    case("n must be their number", "b chunk 0", |head| set8(head, 24, 1 << 60), "array b", Corrupt, &["blocks"]),
    case("block table: (end and coding u64, checksum u64) for each block", "b chunk 0", |head| head.extend_from_slice(&[0; 16]),
        "array b", Corrupt, &["chunk frame", "16 bytes too many"]),
    case("block table: (end and coding u64, checksum u64) for each block", "b chunk 0", |head| head.truncate(96), "array b",
        Corrupt, &["chunk frame"]),
    case(ENDS, "b chunk 0", |head| set8(head, 64, 7), "array b", Corrupt, &["follow", "chunk [0, 0]", "block 1"]),
    case(ENDS, "b chunk 0", |head| set8(head, 48, 1 << 40), "array b", Corrupt, &["follow", "block"]),
    case(ENDS, "b chunk 0", |head| set8(head, 48 + 48, 63), "array b", Corrupt, &["last block", "chunk [0, 0]"]),
    case(ENDS, "b chunk 0", |head| set8(head, 48 + 48, 65), "array b", Corrupt, &["last block", "chunk [0, 0]"]),
    case("The checksum is that of the block's stored bytes.", "b chunk 0", |head| flip(head, 56), "array b", Corrupt,
        &["checksum", "chunk [0, 0]", "block 0"]),
    case("The checksum is that of the block's stored bytes.", "b chunk 1", |head| flip(head, 72), "array b", Corrupt,
        &["checksum", "chunk [0, 1]", "block 1"]),
];

#[test]
fn chunk_frames_that_break_a_rule_are_rejected() {
    check(CHUNKS, true);
}

// Section 12.2. Chunk 1 of `b` is zstd, 2 planes, 3 delta; the first block of each has 24 bytes of items.

const EXACT: &str = "decode to exactly the length that is due";
const ONE_FRAME: &str = "It must be one frame, not a skippable one, with nothing behind it";

fn coding(head: &mut [u8], block: usize, id: u8) {
    head[48 + 16 * block + 7] = id;
}

#[rustfmt::skip]
const BLOCKS: &[Case] = &[
    case("| pointer kind, coding, stream kind | rejects what is behind it |", "b chunk 0", |head| coding(head, 0, 5), "array b",
        Corrupt, &["coding 5", "chunk [0, 0]", "block 0"]),
    case("| pointer kind, coding, stream kind | rejects what is behind it |", "b chunk 0", |head| coding(head, 3, 255),
        "array b", Corrupt, &["coding 255", "block 3"]),
    case("0 | raw | the block's bytes, items in C order, exactly", "b chunk 0 block 0", |bytes| bytes.push(0), "array b", Corrupt,
        &["25 stored bytes", "block 0"]),
    case("0 | raw | the block's bytes, items in C order, exactly", "b chunk 0 block 1", |bytes| { bytes.pop(); }, "array b", Corrupt,
        &["7 stored bytes", "block 1"]),
    case("1 | constant | one item, exactly, which the block repeats", "const edge block 0", |bytes| bytes.push(0), "array const", Corrupt,
        &["3 stored bytes", "chunk [2]", "block 0"]),
    case("1 | constant | one item, exactly, which the block repeats", "one chunk block 0", |bytes| bytes.clear(), "array one", Corrupt,
        &["0 stored bytes", "chunk []", "block 0"]),
    case(EXACT, "b chunk 1 block 0", |frame| *frame = zstd_stored(&[0; 23]), "array b", Corrupt,
        &["23 bytes instead of 24", "chunk [0, 1]"]),
    case(EXACT, "b chunk 1 block 0", |frame| *frame = zstd_stored(&[0; 25]), "array b", Corrupt, &["zstd", "chunk [0, 1]"]),
    case(EXACT, "b chunk 1 block 0", |frame| *frame = zstd_repeated(0, 1 << 30), "array b", Corrupt, &["zstd", "chunk [0, 1]"]),
    case(EXACT, "b chunk 1 block 0", Vec::clear, "array b", Corrupt, &["zstd", "block 0"]),
    case(ONE_FRAME, "b chunk 1 block 0", |frame| frame[0] = 0, "array b", Corrupt, &["zstd", "block 0"]),
    case(ONE_FRAME, "b chunk 1 block 0", |frame| { frame.pop(); }, "array b", Corrupt, &["zstd"]),
    case(ONE_FRAME, "b chunk 1 block 0", |frame| *frame = [0x50, 0x2A, 0x4D, 0x18, 24, 0, 0, 0].iter().copied().chain([0; 24])
        .collect(), "array b", Corrupt, &["zstd"]),
    case(ONE_FRAME, "b chunk 1 block 0", |frame| frame.push(0), "array b", Corrupt, &["zstd"]),
    case(ONE_FRAME, "b chunk 1 block 0", |frame| *frame = [zstd_stored(&[1; 12]), zstd_stored(&[2; 12])].concat(), "array b",
        Corrupt, &["zstd"]),
    case(ONE_FRAME, "b chunk 1 block 0", |frame| {
        // A skippable frame, which zstd passes over, before the right one.
        *frame = [vec![0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 7], frame.clone()].concat();
    }, "array b", Corrupt, &["zstd"]),
    case("3 | planes | a directory of `word` u32, then the streams", "b chunk 2 block 0", |bytes| bytes.truncate(15), "array b",
        Corrupt, &["directory", "chunk [1, 0]", "block 0"]),
    case("| 3 | rejected |", "b chunk 2 block 0", |bytes| bytes[3] |= 0xC0, "array b", Corrupt,
        &["kind", "chunk [1, 0]", "block 0"]),
    case("the low 8 bits of the entry are the byte, bits 8 to 29 are zero, nothing is stored", "b chunk 2 block 0",
        |bytes| bytes[5] = 1, "array b", Corrupt, &["constant", "block 0"]),
    case("the low 8 bits of the entry are the byte, bits 8 to 29 are zero, nothing is stored", "b chunk 2 block 0",
        |bytes| bytes[11] |= 0x20, "array b", Corrupt, &["constant", "block 0"]),
    case("| 1 | raw: n bytes |", "b chunk 2 block 0", |bytes| { bytes[12] = 7; bytes.push(0) }, "array b", Corrupt,
        &["7 bytes instead of 6", "block 0"]),
    case("| 2 | zstd: a zstd frame of n bytes |", "b chunk 2 block 0", |bytes| {
        let frame = zstd_stored(&[1, 2, 3, 4, 5]);
        bytes[0] = frame.len() as u8;
        bytes.splice(16..bytes.len() - 6, frame);
    }, "array b", Corrupt, &["5 bytes instead of 6", "block 0"]),
    case("The lengths of the streams add up to what is stored after the directory.", "b chunk 2 block 0", |bytes| bytes.push(0),
        "array b", Corrupt, &["1 bytes follow", "block 0"]),
    case("The lengths of the streams add up to what is stored after the directory.", "b chunk 2 block 0",
        |bytes| { bytes.pop(); }, "array b", Corrupt, &["past the end", "block 0"]),
    case("The lengths of the streams add up to what is stored after the directory.", "b chunk 2 block 0",
        |bytes| bytes[0..4].copy_from_slice(&(2u32 << 30 | 0x3FFF_FFFF).to_le_bytes()), "array b", Corrupt, &["past the end"]),
    case("For the codings 3 and 4 the word must divide the itemsize", "b chunk 2", |head| head[18] = 3, "array b", Corrupt,
        &["words of 3 bytes", "chunk [1, 0]"]),
    case("For the codings 3 and 4 the word must divide the itemsize", "b chunk 2", |head| head[18] = 0, "array b", Corrupt, &["words of 0 bytes"]),
    case("For the codings 3 and 4 the word must divide the itemsize", "b chunk 3", |head| head[18] = 8, "array b", Corrupt, &["words of 8 bytes"]),
    case("In coding 4, word is 1, 2, 4 or 8 and stride at least 1.", "b chunk 3", |head| set4(head, 20, 0), "array b", Corrupt,
        &["stride 0", "chunk [1, 1]"]),
    case("In coding 4, word is 1, 2, 4 or 8 and stride at least 1.", "wide chunk", |head| {
        head[18] = 5;
        set4(head, 20, 1);
        head[40 + 7] = 4;
    }, "array wide", Corrupt, &["words of 5 bytes"]),
    case("A block's stored bytes are at most its bytes and 65536 more", "b chunk 0 block 0",
        |bytes| bytes.resize(24 + 65537, 0), "array b", Corrupt, &["65561 stored bytes", "block 0"]),
];

#[test]
fn blocks_that_break_a_rule_are_rejected() {
    check(BLOCKS, true);
}

// Section 12.3. The table of the first chunk: payload at 24, valid shape at 40, one checksum at 56.

#[rustfmt::skip]
const RAW: &[Case] = &[
    case("number d of dimensions, that of the array", "raw chunk 0", |head| head[16] = 1, "array group/raw", Corrupt,
        &["1 dimensions", "chunk [0, 0]"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| add8(head, 24, 32),
        "array group/raw", Corrupt, &["extent", "chunk [0, 0]"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| set8(head, 24, 64), "array group/raw", Corrupt,
        &["extent"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| set8(head, 24, 1 << 30), "array group/raw", Corrupt,
        &["logical end"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| set8(head, 24, u64::MAX & !63), "array group/raw",
        Corrupt, &["logical end"]),
    case("length of the payload: the items of the valid shape, exactly", "raw chunk 0", |head| set8(head, 32, 120),
        "array group/raw", Corrupt, &["120 bytes", "chunk [0, 0]"]),
    case("length of the payload: the items of the valid shape, exactly", "raw chunk 0", |head| set8(head, 40, 3),
        "array group/raw", Corrupt, &["128 bytes", "chunk [0, 0]"]),
    case("valid shape: as in a chunk frame", "raw chunk 1", |head| set8(head, 40, 3), "array group/raw", Corrupt,
        &["valid shape", "chunk [1, 0]"]),
    case("valid shape: as in a chunk frame", "raw chunk 1", |head| { set8(head, 40, 0); set8(head, 32, 0) }, "array group/raw",
        Corrupt, &["valid shape", "chunk [1, 0]"]),
    case("checksum of each 65536 bytes of the payload, the last of what is left", "raw chunk 0", |head| head.truncate(56),
        "array group/raw", Corrupt, &["raw table"]),
    case("checksum of each 65536 bytes of the payload, the last of what is left", "raw chunk 0",
        |head| head.extend_from_slice(&[0; 8]), "array group/raw", Corrupt, &["raw table", "8 bytes too many"]),
    case("checksum of each 65536 bytes of the payload, the last of what is left", "raw chunk 1", |head| flip(head, 60),
        "array group/raw", Corrupt, &["checksum", "chunk [1, 0]"]),
];

#[test]
fn raw_tables_that_break_a_rule_are_rejected() {
    check(RAW, true);
}

// Section 12.4. Pieces of 48 bytes from 32 on.

const ROWS: &str = "The first piece starts at row 0, the rows ascend strictly, and a piece goes to where the next one starts, the \
    last to the number of rows.";

#[rustfmt::skip]
const PIECES_PAGES: &[Case] = &[
    case("number n of pieces, at least 1", "pieces page", |page| { set4(page, 16, 0); page.truncate(32) }, "array pieces",
        Corrupt, &["without pieces", "chunk [0, 0]"]),
    case("number n of pieces, at least 1", "pieces page", |page| set4(page, 16, 2), "array pieces", Corrupt,
        &["pieces page", "48 bytes too many"]),
    case("number n of pieces, at least 1", "pieces page", |page| set4(page, 16, u32::MAX), "array pieces", Corrupt,
        &["pieces page"]),
    case("rows in all: at most what of the chunk lies inside the array", "pieces page", |page| set8(page, 24, 9), "array pieces",
        Corrupt, &["9 rows", "chunk [0, 0]"]),
    case("rows in all: at most what of the chunk lies inside the array", "pieces tail", |page| set8(page, 24, 3), "array pieces",
        Corrupt, &["3 rows", "chunk [1, 0]"]),
    case(ROWS, "pieces page", |page| set8(page, 32, 1), "array pieces", Corrupt, &["piece 0", "order"]),
    case(ROWS, "pieces page", |page| set8(page, 80, 4), "array pieces", Corrupt, &["chunk [0, 0]"]),
    case(ROWS, "pieces page", |page| set8(page, 128, 3), "array pieces", Corrupt, &["piece 2", "order"]),
    case(ROWS, "pieces page", |page| set8(page, 128, 8), "array pieces", Corrupt, &["piece 2", "order"]),
    case("The valid shape of a piece's frame has that number of rows.", "pieces frame 2", |head| {
        // Three rows instead of four, in as many blocks.
        set8(head, 32, 3);
    }, "array pieces", Corrupt, &["rows", "chunk [0, 0]"]),
    case("(first row u64, pointer of kind 2)", "pieces frame 0 pointer", |it| {
        it[36] = RAW_TABLE;
        let len = get8(it, 8) as u32;
        set4(it, 32, len);
    }, "array pieces", Corrupt, &["chunk [0, 0]", "raw table", "chunk frame"]),
    case("(first row u64, pointer of kind 2)", "pieces frame 0 pointer", |it| it.copy_from_slice(&constant(&[1, 0])),
        "array pieces", Corrupt, &["constant"]),
    case("(first row u64, pointer of kind 2)", "pieces frame 1 pointer", |it| it.fill(0), "array pieces", Corrupt, &["piece 1"]),
];

#[test]
fn pieces_pages_that_break_a_rule_are_rejected() {
    check(PIECES_PAGES, true);
}

// Section 13, and what only a check of the whole file sees. The one leaf of the free-space tree has its key at 30, and
// length, birth and freed at 42, 50 and 58.

const FREED: &str = "length (a multiple of 64, not 0) u64, birth u64, freed u64: the generation whose commit no longer reached the \
    extent; birth <= freed <= the root's generation.";
const OVERLAP: &str = "The rules for extents (§6) hold for them, and they overlap nothing.";

#[rustfmt::skip]
const WHOLE_FILES: &[(&str, &str, fn(&mut Vec<u8>), &str)] = &[
    (FREED, "free", |page| set8(page, 42, 63), "63 bytes"),
    (FREED, "free", |page| set8(page, 42, 0), "0 bytes"),
    (FREED, "free", |page| set8(page, 50, 9), "generation 9"),
    (FREED, "free", |page| set8(page, 58, 10), "freed in 10"),
    (OVERLAP, "free", |page| page[37] += 32, "extent"),
    (OVERLAP, "free", |page| page[30] = 0x40, "logical end"),
    (OVERLAP, "free", |page| set8(page, 42, 128), "overlaps"),
    (OVERLAP, "free", |page| page[36] -= 1, "overlaps"),
    ("Keys are the offset of a free extent as 8 bytes", "free", |page| { page[28] = 7; page.remove(31); },
        "free-space tree"),
    ("Values have 24 bytes", "free", |page| { page[38] = 23; page.pop(); }, "free-space tree"),
    ("a reader that goes through a whole index must reject them", "record deep", |record| {
        // 199 items: the last chunk is outside.
        set8(record, 72, 199);
    }, "outside the chunk grid"),
    ("Attributes belong to a record that is there, or to the root group.", "leaf 0", |page| {
        let at = cell(page, 2) + 2;
        page[at] = b'c';
    }, "attributes of something that is not there"),
    ("Every group above an array or group has a record of its own", "record group", |record| record[0] = 9, "group"),
    ("a check of the whole file compares the bytes 16 to 31 with what is stored", "record b", |record| record[24] += 1, "6 chunks"),
    ("a check of the whole file compares the bytes 16 to 31 with what is stored", "record b", |record| record[16] += 1, "of 878"),
    ("every byte belongs to exactly one extent that the root reaches (§6) or that the free-space tree lists (§13), or to the \
        padding of one", "free pointer", |it| it.fill(0), "belong to nothing"),
    ("the padding is zero", "file", |file| {
        // Behind the chunk frame of `one`, 64 bytes and an item long.
        let at = file.windows(8).position(|bytes| *bytes == 77i64.to_le_bytes()).unwrap() + 8;
        assert_eq!(file[at], 0);
        file[at] = 1;
    }, "padding"),
];

#[test]
fn a_check_of_the_whole_file_finds_what_no_read_sees() {
    for (rule, part, change, says) in WHOLE_FILES {
        let outcomes = outcomes(part, change);
        let said = outcomes.findings.iter().any(|finding| finding.what.contains(says));
        assert!(said, "\"{rule}\" ({part}): {outcomes:?}");
    }
}

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
        let read = store.ragged("s").unwrap().read_strings(&brickmap::Selection::all());
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
        assert_eq!(due_of(&error), Some(Corrupt), "{name:?}: {error}");
        assert!(error.to_string().contains("name"), "{error}");
    }
}

/// What a later version may add is listed, and does not keep the rest from being read.
#[test]
fn what_is_not_supported_is_listed_as_such() {
    let changes: [(&str, fn(&mut Vec<u8>)); 4] = [
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
        let items = store.array(path).unwrap().read::<u8>(&brickmap::Selection::all()).unwrap();
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
    assert_eq!(array.view::<u8>(&brickmap::Selection::all()).unwrap(), items);
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
        writer.write("a", &brickmap::Selection::all(), &items).unwrap();
        writer.commit().unwrap();
        let read =
            Store::open(&path).unwrap().array("a").unwrap().read::<i32>(&brickmap::Selection::all()).unwrap();
        assert_eq!(read, items, "{codec:?}");
    }
}
