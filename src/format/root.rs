//! Root records (SPEC.md §5): one committed state of the store each.
//!
//! | offset | size | what |
//! | --- | --- | --- |
//! | 0 | 8 | magic |
//! | 8 | 8 | generation |
//! | 16 | 8 | commit id |
//! | 24 | 8 | logical end |
//! | 32 | 40 | catalog |
//! | 72 | 40 | free-space tree |
//! | 112 | 8 | flags |
//! | 120 | 16 | boot id |
//! | 136 | 8 | number of alive generations |
//! | 144 | 16 each | alive generations |

use super::pointer::{Bounds, Kind, Pointer};
use super::twin;
use super::twin::{PAGE_LEN, RECORD_LEN, valid_copies};
use super::wire::Fields;
use super::{ALIGNMENT, DATA_START};
use crate::error::{Damage, Refusal};

pub(crate) const MAGIC: [u8; 8] = *b"BRKROOT\0";
const ALIVE_AT: usize = 144;

/// How many alive generations a root record holds.
pub(crate) const MAX_ALIVE: usize = (RECORD_LEN - 8 - ALIVE_AT) / 16;

/// The highest generation: so low that a lock for each can stand far beyond any data.
pub(crate) const MAX_GENERATION: u64 = 1 << 61;

const FLAG_DEFERRED: u64 = 1;
const FLAGS_REQUIRED: u64 = 0xFFFF_FFFF;

/// A checked root record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) generation: u64,
    pub(crate) commit_id: u64,
    pub(crate) end: u64,
    pub(crate) catalog: Pointer,
    pub(crate) free: Pointer,
    /// The boot id of the system that wrote a deferred commit.
    pub(crate) deferred: Option<[u8; 16]>,
    /// Older generations that readers had pinned, with their commit ids.
    pub(crate) alive: Vec<(u64, u64)>,
}

impl Root {
    /// The root of a store with nothing in it.
    #[cfg(feature = "write")]
    pub(crate) fn empty(generation: u64, commit_id: u64) -> Root {
        Root {
            generation,
            commit_id,
            end: DATA_START,
            catalog: Pointer::Null,
            free: Pointer::Null,
            deferred: None,
            alive: Vec::new(),
        }
    }

    /// What a commit is known by.
    pub(crate) fn id(&self) -> (u64, u64) {
        (self.generation, self.commit_id)
    }

    /// Of the roots of a file the one with the highest rank counts. A commit that was deferred and then synced stands in two
    /// pages.
    pub(crate) fn rank(&self) -> (u64, bool) {
        (self.generation, self.deferred.is_none())
    }

    /// What pointers below this root may say.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { end: self.end, generation: self.generation }
    }

    /// The record of a page: of two valid copies the one with the higher generation.
    pub(crate) fn parse_page(page: &[u8; PAGE_LEN]) -> Result<Root, Refusal> {
        match Self::record(page) {
            Some(record) => Self::parse(record),
            None => Err(Damage::new("neither copy of the root record has the right checksum").into()),
        }
    }

    /// The page as it was before a copy was torn or lost: the record that counts, twice.
    #[cfg(feature = "write")]
    pub(crate) fn mended_page(page: &[u8; PAGE_LEN]) -> [u8; PAGE_LEN] {
        Self::record(page).map_or(*page, |record| twin::page(*record))
    }

    fn record(page: &[u8; PAGE_LEN]) -> Option<&[u8; RECORD_LEN]> {
        let generation =
            |record: &&[u8; RECORD_LEN]| Fields::new(&record[8..], "root record").u64().unwrap_or(0);
        valid_copies(page, MAGIC).into_iter().flatten().max_by_key(generation)
    }

    /// The root of a record of which the end, from the alive generations on, is zero and left out.
    pub(crate) fn parse_start(start: &[u8]) -> Result<Root, Refusal> {
        let mut record = [0; RECORD_LEN];
        let known = record.get_mut(..start.len()).ok_or_else(|| Damage::new("more than a root record"))?;
        known.copy_from_slice(start);
        Root::parse(&record)
    }

    fn parse(record: &[u8; RECORD_LEN]) -> Result<Root, Refusal> {
        let mut fields = Fields::new(record, "root record");
        fields.skip(MAGIC.len())?;
        let (generation, commit_id, end) = (fields.u64()?, fields.u64()?, fields.u64()?);
        if generation > MAX_GENERATION {
            return Err(Damage::new(format!("a root record of generation {generation}")).into());
        }
        if end < DATA_START || !end.is_multiple_of(ALIGNMENT) {
            return Err(Damage::new(format!("a root record with the logical end {end}")).into());
        }
        let bounds = Bounds { end, generation };
        let catalog = Pointer::parse(&fields.array()?, bounds)?.expect(Kind::Tree)?;
        let free = Pointer::parse(&fields.array()?, bounds)?.expect(Kind::Free)?;
        let flags = fields.u64()?;
        if flags & FLAGS_REQUIRED & !FLAG_DEFERRED != 0 {
            return Err(Refusal::Unsupported(format!("a root record with flags {flags:#x}")));
        }
        let boot_id = fields.array()?;
        let count = fields.u64()?;
        if count > MAX_ALIVE as u64 {
            return Err(Damage::new(format!("a root record with {count} alive generations")).into());
        }
        let mut alive: Vec<(u64, u64)> = Vec::with_capacity(MAX_ALIVE);
        for _ in 0..count {
            let (older, id) = (fields.u64()?, fields.u64()?);
            if older >= generation || alive.last().is_some_and(|(last, _)| *last >= older) {
                return Err(
                    Damage::new("a root record whose alive generations do not ascend to its own").into()
                );
            }
            alive.push((older, id));
        }
        let deferred = (flags & FLAG_DEFERRED != 0).then_some(boot_id);
        Ok(Root { generation, commit_id, end, catalog, free, deferred, alive })
    }

    pub(crate) fn encode(&self) -> [u8; PAGE_LEN] {
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(&MAGIC);
        record[8..16].copy_from_slice(&self.generation.to_le_bytes());
        record[16..24].copy_from_slice(&self.commit_id.to_le_bytes());
        record[24..32].copy_from_slice(&self.end.to_le_bytes());
        record[32..72].copy_from_slice(&self.catalog.encode());
        record[72..112].copy_from_slice(&self.free.encode());
        if let Some(boot_id) = self.deferred {
            record[112..120].copy_from_slice(&FLAG_DEFERRED.to_le_bytes());
            record[120..136].copy_from_slice(&boot_id);
        }
        let alive = &self.alive[..self.alive.len().min(MAX_ALIVE)];
        record[136..144].copy_from_slice(&(alive.len() as u64).to_le_bytes());
        for (slot, (generation, id)) in record[ALIVE_AT..RECORD_LEN - 8].chunks_exact_mut(16).zip(alive) {
            slot[..8].copy_from_slice(&generation.to_le_bytes());
            slot[8..].copy_from_slice(&id.to_le_bytes());
        }
        twin::page(record)
    }
}
