//! Section 13, and what else only a check of the whole file sees.

use super::catalog::cell;
use super::{Plain, outcomes};
use crate::forge::*;

// Section 13, and what only a check of the whole file sees. The newer list has the offset of its second entry at 96, and the
// length, birth and freed at 104, 112 and 120.

const FREED: &str = "freed is the generation whose commit no longer reached it, and birth <= freed <= the root's\ngeneration.";
const OVERLAP: &str = "The rules for extents (§6) hold for all entries, and free extents overlap nothing.";

#[rustfmt::skip]
pub(super) const WHOLE_FILES: &[(&str, &str, Plain, &str)] = &[
    ("Another one,\na multiple of 64, is that of a free extent", "free", |list| set8(list, 104, 63), "63 bytes"),
    (FREED, "free", |list| set8(list, 112, 9), "generation 9"),
    (FREED, "free", |list| set8(list, 120, 10), "freed in 10"),
    (OVERLAP, "free", |list| list[96] += 32, "extent"),
    (OVERLAP, "free", |list| list[103] = 0x40, "logical end"),
    (OVERLAP, "free", |list| set8(list, 104, 128), "overlaps"),
    (OVERLAP, "free", |list| list[97] -= 1, "overlaps"),
    ("Of an offset that stands in several lists, the newest one counts.", "free", |list| set8(list, 56, 1), "overlaps"),
    ("A length of 0 says that no free extent begins there any more.", "free", |list| set8(list, 104, 0), "belong to nothing"),
    ("by strictly ascending offset", "free", |list| list.copy_within(96..104, 64), "ascend"),
    ("number n of entries", "free", |list| set8(list, 56, 4), "room for 3"),
    ("pointer to the list before, of kind 8, or null", "free", |list| list[16 + 36] = BLOB, "list of free space"),
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
    ("every byte belongs to exactly one extent that the root reaches (§6) or that is listed as free (§13), or to the \
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
