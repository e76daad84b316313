//! Decoded blocks, kept for repeated small reads.
//!
//! A set-associative table. Each way has a tag that is read without a lock, so that a miss takes none; only a hit, and
//! an insertion, lock the one way that they touch. A block enters when it is met a second time while its tag still
//! stands: a block that is read once costs the cache nothing, and a first read may decode just what it needs.

use crate::codec::Filter;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

const WAYS: usize = 8;
/// Room for that many bytes is one way: smaller blocks fill the table before they fill the budget.
const BYTES_PER_WAY: usize = 16 << 10;

/// What identifies a decoded block. Space is reused, so the offset alone does not; and the same stored bytes at the same
/// place may come to be decoded otherwise: one stored item, for instance, stands for blocks of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey {
    pub(crate) offset: u64,
    pub(crate) checksum: u64,
    pub(crate) filter: Filter,
    /// Bytes of its items.
    pub(crate) bytes: u64,
}

impl BlockKey {
    /// A tag, never 0.
    fn tag(self) -> u64 {
        let mixed = (self.offset ^ self.checksum.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29) | 1 << 63
    }
}

/// A decoded block and what it is, or room for one.
type Way = Option<(BlockKey, Arc<[u8]>)>;

#[derive(Default)]
struct Set {
    tags: [AtomicU64; WAYS],
    blocks: [Mutex<Way>; WAYS],
    hand: AtomicU32,
}

/// What the cache knows of a block.
pub(crate) enum Lookup {
    /// The decoded block.
    Hit(Arc<[u8]>),
    /// Not there, but it was asked for not long ago: worth inserting.
    Seen,
    /// Not there.
    Miss,
}

pub(crate) struct BlockCache {
    sets: Box<[Set]>,
    budget: usize,
    used: AtomicUsize,
    hand: AtomicUsize,
}

impl BlockCache {
    pub(crate) fn new(budget: usize) -> BlockCache {
        let ways = budget / BYTES_PER_WAY;
        let sets = if ways == 0 { 0 } else { ways.div_ceil(WAYS).next_power_of_two() };
        let sets = (0..sets).map(|_| Set::default()).collect();
        BlockCache { sets, budget, used: AtomicUsize::new(0), hand: AtomicUsize::new(0) }
    }

    /// Reads that touch more decoded bytes than this go past the cache.
    pub(crate) fn largest_read(&self) -> u64 {
        (self.budget / 8) as u64
    }

    pub(crate) fn get(&self, key: BlockKey) -> Lookup {
        let Some(set) = self.set(key) else { return Lookup::Miss };
        let tag = key.tag();
        for way in 0..WAYS {
            if set.tags[way].load(Ordering::Relaxed) == tag {
                return match &*set.blocks[way].lock() {
                    Some((found, block)) if *found == key => Lookup::Hit(block.clone()),
                    _ => Lookup::Seen,
                };
            }
        }
        let way = set.hand.fetch_add(1, Ordering::Relaxed) as usize % WAYS;
        if let Some(mut slot) = set.blocks[way].try_lock() {
            self.clear(&mut slot);
            set.tags[way].store(tag, Ordering::Relaxed);
        }
        Lookup::Miss
    }

    /// Keeps a block that [`BlockCache::get`] has seen before.
    pub(crate) fn insert(&self, key: BlockKey, block: Arc<[u8]>) {
        if block.len() > self.budget / 2 {
            return;
        }
        let Some(set) = self.set(key) else { return };
        let tag = key.tag();
        for way in 0..WAYS {
            if set.tags[way].load(Ordering::Relaxed) != tag {
                continue;
            }
            if let Some(mut slot) = set.blocks[way].try_lock() {
                self.clear(&mut slot);
                self.used.fetch_add(block.len(), Ordering::Relaxed);
                *slot = Some((key, block));
            }
            break;
        }
        self.shrink(key);
    }

    /// Lets go of blocks, anywhere but at `keep`, until the budget holds.
    fn shrink(&self, keep: BlockKey) {
        let total = self.sets.len() * WAYS;
        for _ in 0..total {
            if self.used.load(Ordering::Relaxed) <= self.budget {
                break;
            }
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % total;
            if let Some(mut slot) = self.sets[at / WAYS].blocks[at % WAYS].try_lock()
                && slot.as_ref().is_some_and(|(key, _)| *key != keep)
            {
                self.clear(&mut slot);
            }
        }
    }

    fn clear(&self, slot: &mut Way) {
        if let Some((_, block)) = slot.take() {
            self.used.fetch_sub(block.len(), Ordering::Relaxed);
        }
    }

    fn set(&self, key: BlockKey) -> Option<&Set> {
        self.sets.get(crate::num::saturating_usize(key.tag() >> 17) & self.sets.len().wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> BlockKey {
        BlockKey {
            offset: n * 64,
            checksum: n.wrapping_mul(0x1234_5678_9ABC_DEF1),
            filter: Filter::RAW,
            bytes: 10,
        }
    }

    #[test]
    fn a_block_enters_at_the_second_sight_and_the_budget_holds() {
        let cache = BlockCache::new(1 << 20);
        for round in 0..3 {
            for n in 0..4 {
                match (round, cache.get(key(n))) {
                    (0, Lookup::Miss) => {}
                    (1, Lookup::Seen) => cache.insert(key(n), vec![n as u8; 1000].into()),
                    (2, Lookup::Hit(block)) => assert_eq!(block[..], vec![n as u8; 1000]),
                    (round, _) => panic!("wrong outcome in round {round}"),
                }
            }
        }
        for n in 10..500 {
            cache.get(key(n));
            cache.insert(key(n), vec![0; 30_000].into());
            assert!(cache.used.load(Ordering::Relaxed) <= 1 << 20);
        }
    }

    #[test]
    fn the_same_place_with_another_content_or_decoding_is_another_block() {
        let cache = BlockCache::new(1 << 20);
        let old = key(1);
        cache.get(old);
        cache.insert(old, vec![1; 10].into());
        assert!(matches!(cache.get(old), Lookup::Hit(_)));
        let others = [
            BlockKey { checksum: 2, ..old },
            BlockKey { filter: Filter::ZSTD, ..old },
            BlockKey { bytes: 20, ..old },
        ];
        for other in others {
            assert!(!matches!(cache.get(other), Lookup::Hit(_)), "{other:?}");
        }
    }

    #[test]
    fn no_budget_is_no_cache() {
        let cache = BlockCache::new(0);
        cache.get(key(1));
        cache.insert(key(1), vec![1; 10].into());
        assert!(matches!(cache.get(key(1)), Lookup::Miss));
    }
}
