//! Sections 1 to 7: superblock, roots, pointers and frame headers.

use super::{
    Case,
    Due::{Corrupt, NotAStore, Unsupported},
    Plain, case, check, check_harmless, flip,
};
use crate::forge::*;

// Sections 1 to 5.

const NO_COPY: &str = "A file in which one of the four pages has none is rejected";
const BROKEN_COPY: &str =
    "and so is one with a valid copy whose fields break a rule: an older root is never taken instead";
const TEXT_MODE: &str = "where no copy is valid and bytes 1 to 3 of the file are 42 52 4B, but the magic is not there, the high bit, \
    the line ends or the end-of-file byte were changed that way";

#[rustfmt::skip]
pub(super) const PAGES: &[Case] = &[
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
    case("logical end: a multiple of 64, at least 16384", "root 1", |root| add8(root, 24, 1), "open", Corrupt,
        &["logical end 16385", "8192"]),
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
pub(super) const HARMLESS: &[(&str, &str, Plain)] = &[
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
    ("reader takes the root with the highest generation; of equals a synced one, and of these the lowest page", "root 1", |root| set8(root, 8, 8)),
    ("reader takes the root with the highest generation; of equals a synced one, and of these the lowest page", "root 1", |root| set8(root, 8, 9)),
    ("one item; the bytes behind it and 16 to 35 are reserved", "const entry", |it| it[2..16].fill(0xFF)),
    ("a reader takes one that has a content size", "b chunk 1 block 0", |frame| {
        // One byte of content size, the smallest window.
        *frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0x20, 24][..], &frame[6..]].concat();
    }),
    ("A block's stored bytes are at most its bytes and 65536 more", "b chunk 1 block 0", |frame| {
        frame.splice(6..6, [0; 3 * 21_841]);
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
pub(super) const CHUNK_00: &[&str] = &["array 'b'", "chunk [0, 0]"];

#[rustfmt::skip]
pub(super) const POINTERS: &[Case] = &[
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
    case("checked: at least 16, at most the length", "b chunk 0 pointer", |it| set4(it, 32, 15), "array b", Corrupt,
        &["checks 15 of", "chunk [0, 0]"]),
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
