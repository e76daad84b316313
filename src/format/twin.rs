//! Twin pages (SPEC.md §3): 4096 bytes that hold the same 2048-byte record twice.

use super::wire::checksum;

/// Length of a page.
pub(crate) const PAGE_LEN: usize = 4096;
/// Length of each of its two records.
pub(crate) const RECORD_LEN: usize = 2048;
const SUM_AT: usize = RECORD_LEN - 8;

/// The two records of a page, each `None` unless its magic and checksum are right.
pub(crate) fn valid_copies(page: &[u8; PAGE_LEN], magic: [u8; 8]) -> [Option<&[u8; RECORD_LEN]>; 2] {
    let check = |record: &'_ [u8]| {
        let stored = record.get(SUM_AT..).is_some_and(|sum| sum == checksum(&record[..SUM_AT]).to_le_bytes());
        stored && record.starts_with(&magic)
    };
    let (first, second) = page.split_at(RECORD_LEN);
    [first, second].map(|record| if check(record) { record.try_into().ok() } else { None })
}

/// A page with `record` in both places, its checksum filled in.
pub(crate) fn page(mut record: [u8; RECORD_LEN]) -> [u8; PAGE_LEN] {
    let sum = checksum(&record[..SUM_AT]);
    record[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    let mut page = [0; PAGE_LEN];
    page[..RECORD_LEN].copy_from_slice(&record);
    page[RECORD_LEN..].copy_from_slice(&record);
    page
}
