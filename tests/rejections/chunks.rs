//! Sections 11 and 12: index pages, chunk frames, blocks, raw tables and pieces pages.

use super::head::CHUNK_00;
use super::{Case, Due::Corrupt, case, check, due_of, flip};
use crate::forge::*;
use brickmap::Store;

// Section 11.

const IMPLIED: &str = "The level and the prefix must be those that the way to the page implies, and the bitmap must not be zero.";
const ENTRIES: &str = "An entry of level 0 is a pointer of kind 2, 3 or 4 in the blocks layout and of kind 5 in the raw layout; \
    above, of kind 1.";

#[rustfmt::skip]
pub(super) const INDEXES: &[Case] = &[
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
pub(super) const CHUNKS: &[Case] = &[
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
const RUNS: &str = "| 3 | runs: pairs of bytes (value, length less 1), which give n bytes together |";
const ONE_FRAME: &str = "It must be one frame, not a skippable one, with nothing behind it";

fn coding(head: &mut [u8], block: usize, id: u8) {
    head[48 + 16 * block + 7] = id;
}

#[rustfmt::skip]
pub(super) const BLOCKS: &[Case] = &[
    case("| pointer kind, coding | rejects what is behind it |", "b chunk 0", |head| coding(head, 0, 5), "array b",
        Corrupt, &["coding 5", "chunk [0, 0]", "block 0"]),
    case("| pointer kind, coding | rejects what is behind it |", "b chunk 0", |head| coding(head, 3, 255),
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
    case(RUNS, "b chunk 2 block 0", |bytes| {
        bytes[0..4].copy_from_slice(&(3u32 << 30 | 2).to_le_bytes());
        bytes.splice(16..bytes.len() - 6, [7, 4]);
    }, "array b", Corrupt, &["runs does not have 6 bytes", "block 0"]),
    case(RUNS, "b chunk 4 block 0", |bytes| bytes[9] += 1, "array b", Corrupt, &["runs does not have 12 bytes", "block 0"]),
    case(RUNS, "b chunk 4 block 0", |bytes| bytes[9] = 255, "array b", Corrupt, &["runs does not have 12 bytes", "block 0"]),
    case(RUNS, "b chunk 4 block 0", |bytes| {
        let len = bytes[0];
        bytes[0] += 1;
        bytes.insert(8 + usize::from(len), 0);
    }, "array b", Corrupt, &["runs does not have 12 bytes", "block 0"]),
    case(RUNS, "b chunk 4 block 0", |bytes| {
        let len = usize::from(bytes[0]);
        bytes[0] = 0;
        bytes.drain(8..8 + len);
    }, "array b", Corrupt, &["runs does not have 12 bytes", "block 0"]),
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
    case("A block's stored bytes are at most its bytes and 65536 more", "b chunk 1 block 0", |frame| {
        // Empty blocks before the one with the items, as many as there may be, and one more.
        frame.splice(6..6, [0; 3 * 21_845]);
    }, "array b", Corrupt, &["65568 stored bytes for a block of 24", "block 0"]),
    case("A block's stored bytes are at most its bytes and 65536 more", "b chunk 0 block 0",
        |bytes| bytes.resize(24 + 65537, 0), "array b", Corrupt, &["65561 stored bytes", "block 0"]),
];

#[test]
fn blocks_that_break_a_rule_are_rejected() {
    check(BLOCKS, true);
}

// Section 12.3. The table of the first chunk: payload at 24, valid shape at 40, one checksum at 56.

#[rustfmt::skip]
pub(super) const RAW: &[Case] = &[
    case("number d of dimensions, that of the array", "raw chunk 0", |head| head[16] = 1, "array group/raw", Corrupt,
        &["1 dimensions", "chunk [0, 0]"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| add8(head, 24, 32),
        "array group/raw", Corrupt, &["extent", "chunk [0, 0]"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| set8(head, 24, 64), "array group/raw", Corrupt,
        &["extent"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| set8(head, 24, 1 << 30), "array group/raw", Corrupt,
        &["logical end"]),
    case("The rules for extents (§6) hold for it.", "raw chunk 0", |head| set8(head, 24, !63), "array group/raw",
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
pub(super) const PIECES_PAGES: &[Case] = &[
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
