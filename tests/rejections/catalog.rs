//! Sections 8 to 10: tree pages, records, attributes and dtypes.

use super::{
    Case,
    Due::{Corrupt, Unsupported},
    case, check, flip,
};
use crate::forge::*;
use brickmap::Store;

// Section 8. The sample's catalog has three leaves below one inner page.

const ASCEND: &str = "within a page, and over all leaves, they ascend strictly";
const LEVELS: &str =
    "level: 0 is a leaf. The page that an inner page points to has its level less one. At most 32";
const BOUNDS: &str = "The keys below a pointer of an inner page are at least the key of its cell and below the key of the next \
    cell.";

/// Where cell `n` of a tree page starts.
pub(super) fn cell(page: &[u8], n: usize) -> usize {
    u32::from_le_bytes(page[24 + 4 * n..28 + 4 * n].try_into().unwrap()) as usize
}

#[rustfmt::skip]
pub(super) const TREES: &[Case] = &[
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
pub(super) const RECORDS: &[Case] = &[
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
        record.splice(123..123, [1; 62]);
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
    case(PARTS, "record runs offsets", |record| record[96] = 3, "ragged runs", Corrupt, &["what they must be"]),
    case(PARTS, "record runs offsets", |record| { set8(record, 72, 5); set8(record, 80, 5); set8(record, 88, 5) },
        "ragged runs", Corrupt, &["what they must be"]),
    case(PARTS, "record runs offsets", |record| record[0] = 1, "ragged runs", Corrupt, &["another kind"]),
    case("array record of the values: one dimension; for strings dtype u8", "record strings values", |record| record[96] = 2,
        "ragged strings", Corrupt, &["what they must be"]),
    case("array record of the values: one dimension; for strings dtype u8", "record strings values", |record| {
        // The same without dimensions.
        record[1] = 0;
        record.drain(72..96);
    }, "ragged strings", Corrupt, &["what they must be"]),
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
    case("bytes of an array, of a chunk | 2^63 - 1", "record group/raw", |record| {
        for at in [88, 96, 104, 112] {
            set8(record, at, 1 << 40);
        }
    }, "array group/raw", Corrupt, &["chunk of shape"]),
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
pub(super) const DTYPES: &[Case] = &[
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
