//! Section 13, and what else only a check of the whole file sees.

use super::catalog::cell;
use super::{Plain, outcomes};
use crate::forge::*;

// Section 13, and what only a check of the whole file sees. The one leaf of the free-space tree has its key at 30, and
// length, birth and freed at 42, 50 and 58.

const FREED: &str = "length (a multiple of 64, not 0) u64, birth u64, freed u64: the generation whose commit no longer reached the \
    extent; birth <= freed <= the root's generation.";
const OVERLAP: &str = "The rules for extents (§6) hold for them, and they overlap nothing.";

#[rustfmt::skip]
pub(super) const WHOLE_FILES: &[(&str, &str, Plain, &str)] = &[
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
    ("a check of the whole file compares the bytes 16 to 31 with what is stored", "record b", |record| record[16] += 1, "of 876"),
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
