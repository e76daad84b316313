//! What a power loss may leave of a file, tried for every moment and every part of what had not been synced.
//!
//! [`Disk`] is a file in memory that logs what a writer asks of it. The log is then played back up to each of its entries: what came before the last sync
//! is on the disk, and of what came after it any part may be. Whatever is left must open at the last commit that was
//! acknowledged, or at the one that was under way, and be whole.

use super::create::write_new_store;
use super::pins::PINS;
use super::writer::WriterLock;
use super::{Durability, OpenOptions, Store, newest_snapshot, snapshot_again};
use crate::format::twin::PAGE_LEN;
use crate::storage::{Source, Storage};
use crate::{ArraySpec, Dtype, Error, Selection};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What a writer asked of the file.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Sync,
    /// The system gave up on what was written before; it is not tried again by the next sync.
    FailedSync,
    /// The file took its name.
    Named,
    SyncDirectory,
    /// A commit was published, and others may have seen it.
    Published(u64),
    /// All commits up to this one were acknowledged to be on the disk.
    Acknowledged(u64),
}

/// The boot of the system that writes, and the one after the power came back.
const BOOT: [u8; 16] = [7; 16];
const NEXT_BOOT: [u8; 16] = [8; 16];

/// A file in memory that remembers what was asked of it.
#[derive(Default)]
struct Disk {
    bytes: Mutex<Vec<u8>>,
    steps: Mutex<Vec<Step>>,
    /// Bytes that others have locked.
    others: Mutex<BTreeSet<u64>>,
    /// A byte that another one will lock when the next root is being written.
    late: Mutex<Option<u64>>,
    /// Whether the next sync fails.
    failing: Mutex<bool>,
    /// How many reads from now on meet each root page as it is being written, one half of each copy from before.
    torn: Mutex<u32>,
    boot_id: [u8; 16],
}

impl Disk {
    fn new(bytes: Vec<u8>, boot_id: [u8; 16]) -> Arc<Disk> {
        Arc::new(Disk { bytes: Mutex::new(bytes), boot_id, ..Disk::default() })
    }
}

fn apply(bytes: &mut Vec<u8>, offset: u64, new: &[u8]) {
    let offset = offset as usize;
    bytes.resize(bytes.len().max(offset + new.len()), 0);
    bytes[offset..][..new.len()].copy_from_slice(new);
}

impl Storage for Arc<Disk> {
    fn name(&self) -> &Path {
        Path::new("<disk>")
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock();
        let part = bytes.get(offset as usize..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        let mut torn = self.torn.lock();
        if offset == 0 && *torn > 0 {
            *torn -= 1;
            for copy in buf.chunks_mut(PAGE_LEN / 2).skip(2) {
                copy[8] ^= *torn as u8 + 1;
            }
        }
        Ok(())
    }

    fn source(&self, _end: u64, _copying: bool) -> io::Result<Arc<dyn Source>> {
        Ok(Arc::new(DiskSource(self.clone())))
    }

    fn lock(&self, _at: u64, _alone: bool) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock(&self, _at: u64) -> io::Result<()> {
        Ok(())
    }

    fn conflict(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Ok(self.others.lock().range(range).next_back().map(|&byte| byte..byte + 1))
    }

    fn lock_whole(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock_whole(&self) -> io::Result<()> {
        Ok(())
    }

    fn reopen(&self, _write: bool) -> io::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }

    fn boot_id(&self) -> [u8; 16] {
        self.boot_id
    }

    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if root_page(offset).is_some() && bytes.len() == PAGE_LEN {
            self.others.lock().extend(self.late.lock().take());
        }
        apply(&mut self.bytes.lock(), offset, bytes);
        self.steps.lock().push(Step::Write(offset, bytes.to_vec()));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if std::mem::take(&mut *self.failing.lock()) {
            self.steps.lock().push(Step::FailedSync);
            return Err(io::Error::other("the disk failed"));
        }
        self.steps.lock().push(Step::Sync);
        Ok(())
    }

    fn take_name(&self, _over: Option<&dyn Storage>) -> io::Result<()> {
        self.steps.lock().push(Step::Named);
        Ok(())
    }

    fn present_path(&self) -> &Path {
        self.name()
    }

    fn permissions(&self) -> io::Result<std::fs::Permissions> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.steps.lock().push(Step::SyncDirectory);
        Ok(())
    }
}

struct DiskSource(Arc<Disk>);

impl Source for DiskSource {
    fn borrow(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
}

const ITEMS: u64 = 600;

fn items(generation: u64) -> Vec<u32> {
    (0..ITEMS as u32).map(|n| (n ^ generation as u32).wrapping_mul(0x9E37_79B9)).collect()
}

fn open(disk: &Arc<Disk>) -> Store {
    Store::open_storage(Arc::new(disk.clone()), &OpenOptions::new().threads(1), true).unwrap()
}

/// Overwrites the array once for each durability, with a writer for each one or two commits.
fn commit(disk: &Arc<Disk>, plan: &[Durability]) {
    commit_to(open(disk), plan, |step| disk.steps.lock().push(step));
}

fn commit_to(store: Store, plan: &[Durability], note: impl Fn(Step)) {
    let mut writer = store.writer().unwrap();
    for (n, &durability) in plan.iter().enumerate() {
        if n % 2 == 1 {
            drop(writer);
            writer = store.writer().unwrap();
        }
        let generation = writer.next_generation();
        if writer.kind("a").unwrap().is_none() {
            let spec = ArraySpec::new(Dtype::U32, [ITEMS]).chunks([256]).blocks([64]);
            writer.create_array("a", &spec).unwrap();
        }
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        writer.commit_with(durability).unwrap();
        note(match durability {
            Durability::Full => Step::Acknowledged(generation),
            _ => Step::Published(generation),
        });
        if n % 5 == 4 {
            writer.sync().unwrap();
            note(Step::Acknowledged(generation));
        }
    }
    // What is left to sync when the handle goes is not what is looked at.
    std::mem::forget((writer, store));
}

const FULL: [Durability; 7] = [Durability::Full; 7];
/// The fifth and the tenth commit are synced afterwards.
const MIXED: [Durability; 12] = {
    use Durability::{Deferred, Full};
    [Deferred, Deferred, Full, Deferred, Deferred, Deferred, Full, Deferred, Full, Deferred, Deferred, Full]
};

/// A new store, as it is on the disk, and the log of some commits to it.
fn history(plan: &[Durability]) -> (Vec<u8>, Vec<Step>) {
    let disk = Disk::new(Vec::new(), BOOT);
    write_new_store(&disk, true).unwrap();
    let new = disk.bytes.lock().clone();
    disk.steps.lock().clear();
    commit(&disk, plan);
    let steps = disk.steps.lock().clone();
    (new, steps)
}

/// The log of a new store, which gets its name at once, or with its first commit in the place of another.
fn history_of_new(replaces: bool, durability: Durability) -> Vec<Step> {
    let disk = Disk::new(Vec::new(), BOOT);
    let options = OpenOptions::new().threads(1).durability(durability);
    let locked = |disk: &Arc<Disk>| {
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let lock = WriterLock::take(&storage, &options).unwrap();
        (storage, lock)
    };
    let ((storage, lock), old) = (locked(&disk), locked(&Disk::new(Vec::new(), BOOT)));
    let store = if replaces {
        Store::replace_in(storage, lock, Some(old), &options).unwrap()
    } else {
        let store = Store::create_in(storage, lock, &options).unwrap();
        disk.steps.lock().push(Step::Acknowledged(1));
        store
    };
    let mut writer = store.writer().unwrap();
    for generation in 2..4 {
        if generation == 2 {
            let spec = ArraySpec::new(Dtype::U32, [ITEMS]).chunks([256]).blocks([64]);
            writer.create_array("a", &spec).unwrap();
        }
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        writer.commit().unwrap();
        // The first one is synced in any case, since it has to be there before it has a name.
        disk.steps.lock().push(match durability {
            Durability::Full => Step::Acknowledged(generation),
            _ => Step::Published(generation),
        });
    }
    std::mem::forget((writer, store));
    disk.steps.lock().clone()
}

/// What may be left, and what was promised by then.
struct Loss<'a> {
    bytes: &'a [u8],
    /// The newest commit that was said to be on the disk.
    acknowledged: u64,
    /// The commit that was published last or is under way.
    newest: u64,
    /// Whether the file has its name.
    named: bool,
}

impl Loss<'_> {
    /// That it opens at a commit between the acknowledged one and the one under way, whole.
    fn check(&self, boot_id: [u8; 16]) -> Result<u64, String> {
        if !self.named {
            return match self.acknowledged {
                0 => Ok(0),
                acknowledged => Err(format!("the file is not there, {acknowledged} was acknowledged")),
            };
        }
        let store = Arc::new(Disk::new(self.bytes.to_vec(), boot_id));
        let store = Store::open_storage(store, &OpenOptions::new().threads(1), false)
            .map_err(|error| format!("does not open: {error}"))?;
        let generation = store.snapshot().generation();
        if !(self.acknowledged..=self.newest).contains(&generation) {
            return Err(format!("opens at {generation}, {} was acknowledged", self.acknowledged));
        }
        if generation > 1 {
            let array = store.array("a").map_err(|error| error.to_string())?;
            let found: Vec<u32> = array.read(&Selection::all()).map_err(|error| error.to_string())?;
            if found != items(generation) {
                return Err(format!("generation {generation} has items of another"));
            }
        }
        let report = store.verify().map_err(|error| error.to_string())?;
        // A root page may have been torn; the next writer mends it.
        match report.findings.iter().find(|finding| !finding.what.starts_with("copy ")) {
            None => Ok(generation),
            Some(finding) => Err(format!("verify: {finding:?}")),
        }
    }
}

type Visit<'a> = dyn FnMut(&Loss<'_>) -> Result<(), String> + 'a;

/// Calls `visit` with what may be left after each step of a history that begins with generation `first`.
fn losses(new: &[u8], first: u64, steps: &[Step], visit: &mut Visit<'_>) -> Result<(), String> {
    let (mut durable, mut acknowledged, mut newest) = (new.to_vec(), first, first);
    let mut pending: Vec<(u64, &[u8])> = Vec::new();
    // Whether the name may be taken, and whether it must be.
    let (mut named, mut surely_named) = (!new.is_empty(), !new.is_empty());
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Write(offset, bytes) => pending.push((*offset, bytes)),
            Step::Sync => {
                pending.drain(..).for_each(|(offset, bytes)| apply(&mut durable, offset, bytes));
            }
            Step::FailedSync => pending.clear(),
            Step::Named => named = true,
            Step::SyncDirectory => surely_named = named,
            Step::Published(_) => {}
            Step::Acknowledged(generation) => acknowledged = *generation,
        }
        let under_way = steps[n..].iter().find_map(|step| match step {
            Step::Published(generation) | Step::Acknowledged(generation) => Some(*generation),
            _ => None,
        });
        newest = newest.max(under_way.unwrap_or(0));
        let mut leave = |bytes: Vec<u8>| {
            let loss = Loss { bytes: &bytes, acknowledged, newest, named };
            visit(&loss)?;
            if named == surely_named { Ok(()) } else { visit(&Loss { named: surely_named, ..loss }) }
        };
        for kept in subsets(pending.len()) {
            let mut bytes = durable.clone();
            kept.iter().for_each(|&n| apply(&mut bytes, pending[n].0, pending[n].1));
            leave(bytes)?;
        }
        // The last write may be torn, with all before it or none.
        if let (Step::Write(offset, last), Some((_, before))) = (step, pending.split_last()) {
            for before in [before, &[]] {
                for cut in cuts(last.len()) {
                    for part in [0..cut, cut..last.len()] {
                        let mut bytes = durable.clone();
                        before.iter().for_each(|(offset, new)| apply(&mut bytes, *offset, new));
                        apply(&mut bytes, offset + part.start as u64, &last[part]);
                        leave(bytes)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Which of `count` writes reached the disk: each subset if they are few; else none, all, each prefix, all but one, one.
fn subsets(count: usize) -> Vec<Vec<usize>> {
    if count <= 6 {
        return (0..1usize << count)
            .map(|bits| (0..count).filter(|n| bits >> n & 1 == 1).collect())
            .collect();
    }
    let mut subsets: Vec<Vec<usize>> = (0..=count).map(|len| (0..len).collect()).collect();
    subsets.extend((0..count).map(|without| (0..count).filter(|&n| n != without).collect()));
    subsets.extend((0..count).map(|one| vec![one]));
    subsets
}

/// Where a write of `len` bytes may be torn: at sectors and pages, and at some bytes between.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    (1..len).filter(|cut| cut % 512 == 0 || cut % 173 == 0)
}

/// The first loss that breaks a promise.
fn first_broken(new: &[u8], steps: &[Step]) -> Option<String> {
    losses(new, 1, steps, &mut |loss| loss.check(NEXT_BOOT).map(|_| ())).err()
}

fn root_page(offset: u64) -> Option<u64> {
    (4096..16384).contains(&offset).then_some(offset / 4096)
}

fn is_root(step: &Step) -> bool {
    matches!(step, Step::Write(offset, bytes) if bytes.len() == PAGE_LEN && root_page(*offset).is_some())
}

#[test]
fn a_power_loss_leaves_the_last_commit_or_the_one_under_way() {
    let (new, steps) = history(&FULL);
    assert_eq!(first_broken(&new, &steps), None);
}

#[test]
fn a_power_loss_leaves_the_last_synced_commit_or_a_whole_younger_one() {
    let (new, steps) = history(&MIXED);
    assert_eq!(first_broken(&new, &steps), None);
}

#[test]
fn a_store_goes_on_after_a_power_loss_and_after_another_one() {
    for plan in [&FULL[..4], &MIXED[..7]] {
        let (new, steps) = history(plan);
        let mut seen = 0;
        losses(&new, 1, &steps, &mut |loss| {
            let found = loss.check(NEXT_BOOT)?;
            seen += 1;
            // Some are enough: the second history has as many losses as the first.
            if seen % 23 != 0 {
                return Ok(());
            }
            let disk = Disk::new(loss.bytes.to_vec(), NEXT_BOOT);
            commit(&disk, &[Durability::Deferred, Durability::Full, Durability::Deferred]);
            let report = open(&disk).verify().map_err(|error| error.to_string())?;
            assert!(report.is_clean(), "{report:?}");
            let steps = disk.steps.lock().clone();
            losses(loss.bytes, found, &steps, &mut |loss| loss.check([9; 16]).map(|_| ()))
        })
        .unwrap();
        assert!(seen > 100);
    }
}

/// The first loss of a new store that breaks a promise; `least` is what must be there if anything is.
fn first_broken_of_new(steps: &[Step], least: u64) -> Option<String> {
    let check = |loss: &Loss<'_>| match loss.check(NEXT_BOOT)? {
        found if loss.named && found < least => Err(format!("{found} took the place of another store")),
        _ => Ok(()),
    };
    losses(&[], 0, steps, &mut |loss| check(loss)).err()
}

#[test]
fn a_power_loss_leaves_a_new_store_whole_or_what_was_there() {
    assert_eq!(first_broken_of_new(&history_of_new(false, Durability::Full), 1), None);
    assert_eq!(first_broken_of_new(&history_of_new(true, Durability::Full), 2), None);
    assert_eq!(first_broken_of_new(&history_of_new(true, Durability::Deferred), 2), None);
    // Further commits without a sync are those that may be lost with the store; the first is not.
    let mut steps = history_of_new(true, Durability::None);
    steps.truncate(steps.iter().position(|step| matches!(step, Step::Published(2))).unwrap() + 1);
    assert_eq!(first_broken_of_new(&steps, 2), None);
}

#[test]
fn without_the_syncs_around_the_name_a_power_loss_breaks_it() {
    for replaces in [false, true] {
        let steps = history_of_new(replaces, Durability::Full);
        let named = steps.iter().position(|step| matches!(step, Step::Named)).unwrap();
        assert!(matches!((&steps[named - 1], &steps[named + 1]), (Step::Sync, Step::SyncDirectory)));
        for lost in [named - 1, named + 1] {
            let mut steps = steps.clone();
            steps.remove(lost);
            assert!(
                first_broken_of_new(&steps, 1 + u64::from(replaces)).is_some(),
                "{replaces}, step {lost}"
            );
        }
    }
}

#[test]
fn a_deferred_root_that_is_believed_breaks_it() {
    let (new, steps) = history(&MIXED);
    assert!(losses(&new, 1, &steps, &mut |loss| loss.check(BOOT).map(|_| ())).is_err());
}

#[test]
fn without_the_sync_before_a_commit_is_made_durable_a_power_loss_breaks_it() {
    let (new, mut steps) = history(&MIXED);
    // The commit was published; then there are a sync, its root once more, and another sync.
    let at = steps.iter().position(|step| matches!(step, Step::Published(6))).unwrap() + 1;
    assert!(matches!(steps[at], Step::Sync) && is_root(&steps[at + 1]));
    steps.remove(at);
    assert!(first_broken(&new, &steps).is_some());
}

#[test]
fn without_the_sync_before_the_root_a_power_loss_breaks_it() {
    let (new, mut steps) = history(&FULL);
    let before_root = |n: usize| steps.get(n + 1).is_some_and(is_root);
    let lost: Vec<usize> =
        (0..steps.len()).filter(|&n| matches!(steps[n], Step::Sync) && before_root(n)).collect();
    assert_eq!(lost.len(), 7);
    lost.into_iter().rev().for_each(|n| drop(steps.remove(n)));
    assert!(first_broken(&new, &steps).is_some());
}

#[test]
fn without_the_sync_after_the_root_a_power_loss_breaks_it() {
    let (new, mut steps) = history(&FULL);
    for n in (1..steps.len()).rev() {
        if matches!((&steps[n - 1], &steps[n]), (Step::Sync, Step::Acknowledged(_))) {
            steps.remove(n - 1);
        }
    }
    assert!(first_broken(&new, &steps).is_some());
}

#[test]
fn a_commit_writes_another_page_than_that_of_the_newest_root() {
    // A torn page does no harm by itself, since a record stands twice in it; but a page may be lost as a whole.
    let (_, steps) = history(&[Durability::Full; 9]);
    let pages: Vec<u64> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Write(offset, bytes) if bytes.len() == PAGE_LEN => root_page(*offset),
            _ => None,
        })
        .collect();
    assert_eq!(pages.len(), 9);
    // The new store's root is in the first page. Each commit takes the oldest one.
    assert_eq!(pages[..4], [2, 3, 1, 2]);
    assert!(pages.windows(3).all(|last| last[0] != last[1] && last[1] != last[2] && last[0] != last[2]));
}

#[test]
fn space_of_the_last_synced_root_that_is_reused_breaks_it() {
    let (new, mut steps) = history(&FULL);
    // The root of each commit comes to the disk with the one after it: what it let go of is overwritten too early.
    let roots: Vec<usize> = (0..steps.len()).filter(|&n| is_root(&steps[n])).collect();
    let last = *roots.last().unwrap();
    let root = steps.remove(last);
    steps.push(root);
    for n in roots[..roots.len() - 1].iter().rev() {
        let root = steps.remove(*n);
        let next = steps[*n..].iter().position(|step| matches!(step, Step::Acknowledged(_))).unwrap();
        steps.insert(n + next + 1, root);
    }
    assert!(first_broken(&new, &steps).is_some());
}

#[test]
fn a_pin_that_comes_while_the_root_is_written_is_seen_before_space_is_reused() {
    let disk = Disk::new(Vec::new(), BOOT);
    write_new_store(&disk, true).unwrap();
    commit(&disk, &FULL[..3]);
    // The writer's own handle has the state before pinned, and not this one.
    let store = open(&disk);
    let mut writer = store.writer().unwrap();
    let generation = writer.next_generation();
    writer.write("a", &Selection::all(), &items(generation)).unwrap();
    drop(writer.commit().unwrap());
    let old = open(&disk).snapshot();
    *disk.late.lock() = Some(PINS + old.generation());
    for _ in 0..6 {
        let generation = writer.next_generation();
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        let newest = writer.commit().unwrap();
        let listed = newest.root().alive.iter().any(|(generation, _)| *generation == old.generation());
        assert!(!listed, "a pin that came too late to be listed does not become alive");
        let found: Vec<u32> = old.array("a").unwrap().read(&Selection::all()).unwrap();
        assert_eq!(found, items(old.generation()));
    }
}

#[test]
fn roots_that_are_being_written_are_read_again() {
    let disk = Disk::new(Vec::new(), BOOT);
    write_new_store(&disk, true).unwrap();
    commit(&disk, &FULL[..2]);
    let store = open(&disk);
    for reads in [1, 2, 7] {
        *disk.torn.lock() = reads;
        assert_eq!(store.refresh().unwrap().generation(), 3);
        assert_eq!(open(&disk).snapshot().generation(), 3);
        assert_eq!(*disk.torn.lock(), 0);
    }
    // What stays as it is is damage, and told at once.
    disk.bytes.lock()[PAGE_LEN + 8] ^= 1;
    disk.bytes.lock()[PAGE_LEN + PAGE_LEN / 2 + 8] ^= 1;
    assert!(matches!(store.refresh(), Err(Error::Corrupt { .. })));
}

#[test]
fn a_reader_that_was_slow_starts_again_unless_its_generation_is_alive() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("a", &ArraySpec::new(Dtype::U32, [ITEMS])).unwrap();
    let mut overwrite = || {
        let generation = writer.next_generation();
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        writer.commit().unwrap().generation()
    };
    let first = overwrite();
    let reader = Store::open(&path).unwrap();
    store.refresh().unwrap();
    // Read, and pinned by somebody else: alive, whatever is published before it is pinned here.
    let roots = reader.shared.roots().unwrap();
    assert_eq!(roots.newest.generation, first);
    let slow = Store::open(&path).unwrap();
    let last = (0..5).map(|_| overwrite()).last().unwrap();
    let snapshot = newest_snapshot(&slow.shared, roots.clone()).unwrap();
    assert_eq!(snapshot.generation(), first);
    assert_eq!(snapshot.array("a").unwrap().read::<u32>(&Selection::all()).unwrap(), items(first));
    // Let go by all: it is gone, and the newest is taken.
    drop((snapshot, slow, reader));
    store.refresh().unwrap();
    let newest = (0..5).map(|_| overwrite()).last().unwrap();
    let late = Store::open(&path).unwrap();
    let snapshot = newest_snapshot(&late.shared, roots).unwrap();
    assert_eq!(snapshot.generation(), newest);
    assert!(newest > last);
}

#[test]
fn a_deferred_state_that_was_handed_over_is_doubted_after_a_power_loss() {
    let disk = Disk::new(Vec::new(), BOOT);
    write_new_store(&disk, true).unwrap();
    commit(&disk, &FULL[..1]);
    let store = open(&disk);
    let mut writer = store.writer().unwrap();
    let synced = disk.bytes.lock().clone();
    disk.steps.lock().clear();
    let mut defer = || {
        let generation = writer.next_generation();
        writer.write("a", &Selection::all(), &items(generation)).unwrap();
        let snapshot = writer.commit_with(Durability::Deferred).unwrap();
        (snapshot, std::mem::take(&mut *disk.steps.lock()))
    };
    let (first, first_steps) = defer();
    let (second, second_steps) = defer();
    assert!(second.root().alive.contains(&first.root().id()));
    std::mem::forget((writer, store));

    let after = |steps: &[Step], kept: fn(&Step) -> bool, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        for step in steps.iter().filter(|step| kept(step)) {
            let Step::Write(offset, new) = step else { continue };
            apply(&mut bytes, *offset, new);
        }
        bytes
    };
    let all = |_: &Step| true;
    let (first_left, first_torn) = (after(&first_steps, all, &synced), after(&first_steps, is_root, &synced));
    for (bytes, again, what) in [
        (first_torn.clone(), &first, "its data was lost"),
        (
            after(&second_steps, is_root, &first_left),
            &first,
            "only a root that was lost says that it is kept",
        ),
        (after(&second_steps, all, &first_torn), &first, "it is kept, and its data was lost"),
    ] {
        let mut bytes = bytes;
        bytes.resize(bytes.len().max(disk.bytes.lock().len()), 0);
        let store = open(&Disk::new(bytes, NEXT_BOOT));
        match snapshot_again(&store.shared, again.root().clone()) {
            Err(Error::Gone { .. }) => {}
            Err(error) => panic!("{what}: {error}"),
            Ok(snapshot) => panic!("{what}: {:?} is taken", snapshot.root().id()),
        }
    }
    for (bytes, again) in [
        (first_left.clone(), &first),
        (after(&second_steps, all, &first_left), &first),
        (after(&second_steps, all, &first_left), &second),
    ] {
        let store = open(&Disk::new(bytes, NEXT_BOOT));
        let snapshot = snapshot_again(&store.shared, again.root().clone()).unwrap();
        let found: Vec<u32> = snapshot.array("a").unwrap().read(&Selection::all()).unwrap();
        assert_eq!(found, items(again.generation()));
    }
}

/// What is lost with a failed sync looks whole as long as it is in memory, and the next sync has nothing to do for it.
#[test]
fn a_commit_whose_sync_failed_is_not_called_durable_by_the_next_one() {
    for same_handle in [true, false] {
        let disk = Disk::new(Vec::new(), BOOT);
        write_new_store(&disk, true).unwrap();
        let new = disk.bytes.lock().clone();
        disk.steps.lock().clear();
        commit(&disk, &FULL[..1]);
        disk.steps.lock().push(Step::Acknowledged(2));
        let store = open(&disk);
        let mut writer = store.writer().unwrap();
        writer.write("a", &Selection::all(), &items(3)).unwrap();
        drop(writer.commit_with(Durability::Deferred).unwrap());
        disk.steps.lock().push(Step::Published(3));
        *disk.failing.lock() = true;
        writer.sync().unwrap_err();
        drop(writer);
        let next = if same_handle { store } else { open(&disk) };
        next.writer().unwrap().sync().unwrap();
        disk.steps.lock().push(Step::Acknowledged(3));
        let steps = disk.steps.lock().clone();
        let found = losses(&new, 1, &steps, &mut |loss| loss.check(NEXT_BOOT).map(|_| ()));
        assert_eq!(found, Ok(()), "by the same handle: {same_handle}");
    }
}

/// Tells this program, started again by the test below, where to write.
#[cfg(target_os = "linux")]
const FILE: &str = "BRICKMAP_TEST_FILE";

/// Not a test of its own: the run that is traced by the one below.
#[cfg(target_os = "linux")]
#[test]
fn traced_run() {
    let Some(path) = std::env::var_os(FILE) else { return };
    drop(Store::create(&path).unwrap());
    commit_to(OpenOptions::new().threads(1).write(true).open(&path).unwrap(), &MIXED, |_| {});
}

/// What the system is asked for in the same run is what the simulation logs.
#[cfg(target_os = "linux")]
#[test]
fn a_real_run_asks_the_system_for_what_is_simulated() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log) = (directory.path().join("a.brick"), directory.path().join("log"));
    let traced = std::process::Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-s",
            "0",
            "-e",
            "trace=openat,pwrite64,write,fdatasync,fsync,ftruncate,renameat2,rename",
            "-o",
        ])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "store::power_loss::traced_run", "--quiet"])
        .env(FILE, &path)
        .output();
    let Ok(output) = traced else {
        println!("skipped: there is no strace");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(log).unwrap();
    let calls: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim()).collect();
    let start = calls.iter().position(|call| call.contains("openat") && call.contains("O_CREAT")).unwrap();
    let real: Vec<String> = calls[start..]
        .iter()
        .filter_map(|call| {
            let (name, arguments) = call.split_once('(')?;
            let last: Vec<&str> = arguments.rsplit(')').next_back()?.rsplit(", ").take(2).collect();
            match name {
                "pwrite64" => Some(format!("write {} bytes at {}", last[1], last[0])),
                "fdatasync" => Some("sync".into()),
                "fsync" => Some("sync the directory".into()),
                "renameat2" => Some("take the name".into()),
                "ftruncate" | "rename" => Some((*call).to_owned()),
                _ => None,
            }
        })
        .collect();

    let disk = Disk::new(Vec::new(), BOOT);
    let options = OpenOptions::new().threads(1);
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let lock = WriterLock::take(&storage, &options).unwrap();
    drop(Store::create_in(storage, lock, &options).unwrap());
    commit(&disk, &MIXED);
    let simulated: Vec<String> = disk
        .steps
        .lock()
        .iter()
        .filter_map(|step| match step {
            Step::Write(offset, bytes) => Some(format!("write {} bytes at {offset}", bytes.len())),
            Step::Sync => Some("sync".into()),
            Step::Named => Some("take the name".into()),
            Step::SyncDirectory => Some("sync the directory".into()),
            Step::FailedSync | Step::Published(_) | Step::Acknowledged(_) => None,
        })
        .collect();
    assert_eq!(real, simulated);
}
