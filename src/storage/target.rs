//! Memory that a store is written to once, from its start to its end, and the measure of how much that will be.

use super::{Source, Storage};
use crate::num::saturating_usize;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory is locked in parts of this many bytes, so that threads that write beside each other rarely meet.
const STRIPE: usize = 64 << 10;

/// A store in the making, whose bytes go to memory, or are only counted.
pub(crate) struct Target {
    /// The end of what was written so far.
    end: AtomicU64,
    /// The start of the file, which is read again.
    head: parking_lot::Mutex<Vec<u8>>,
    /// The memory, unless the bytes are only counted.
    stripes: Option<Vec<parking_lot::Mutex<Stripe>>>,
}

/// A part of the memory.
#[derive(Default)]
struct Stripe {
    /// Empty once the memory was given back.
    memory: &'static mut [MaybeUninit<u8>],
    /// What of it was written, ascending; ranges that touch are one.
    written: Vec<Range<usize>>,
}

impl Stripe {
    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let range = at..at + bytes.len();
        let memory = self.memory.get_mut(range.clone()).ok_or(io::ErrorKind::WriteZero)?;
        // SAFETY: `memory` has the length of `bytes`, and, being borrowed mutably, does not overlap them.
        unsafe { memory.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        let first = self.written.partition_point(|before| before.end < range.start);
        let after = self.written.partition_point(|behind| behind.start <= range.end);
        let joined = &self.written[first..after];
        let start = joined.first().map_or(range.start, |before| before.start.min(range.start));
        let end = joined.last().map_or(range.end, |behind| behind.end.max(range.end));
        self.written.splice(first..after, std::iter::once(start..end));
        Ok(())
    }

    fn is_filled(&self) -> bool {
        self.written.first() == Some(&(0..self.memory.len()))
    }
}

impl Target {
    /// One that counts: nothing but the first `head` bytes is kept.
    pub(crate) fn measure(head: usize) -> Target {
        Target { end: AtomicU64::new(0), head: parking_lot::Mutex::new(vec![0; head]), stripes: None }
    }

    /// Gives `work` one that writes to `memory` for as long as that runs, and returns the memory; `None` if not all of it
    /// was written.
    pub(crate) fn fill<E>(
        memory: &mut [MaybeUninit<u8>],
        head: usize,
        work: impl FnOnce(Arc<Target>) -> Result<(), E>,
    ) -> Result<Option<&mut [u8]>, E> {
        /// Takes the memory back, whoever still has the target.
        struct Loan(Arc<Target>);
        impl Drop for Loan {
            fn drop(&mut self) {
                self.0.stripes.iter().flatten().for_each(|stripe| stripe.lock().memory = &mut []);
            }
        }
        let (start, len) = (memory.as_mut_ptr(), memory.len());
        // SAFETY: the slice lives longer than it is used: it is cut into stripes, which have it behind their locks and give
        // it to nobody, and before this function returns or unwinds the loan has taken it from each of them. `memory`
        // is borrowed mutably all the time and is not touched meanwhile.
        let lent: &'static mut [MaybeUninit<u8>] = unsafe { std::slice::from_raw_parts_mut(start, len) };
        let stripes = lent.chunks_mut(STRIPE).map(|memory| Stripe { memory, written: Vec::new() });
        let stripes = Some(stripes.map(parking_lot::Mutex::new).collect());
        let loan = Loan(Arc::new(Target { stripes, ..Target::measure(head) }));
        work(loan.0.clone())?;
        let head = std::mem::take(&mut *loan.0.head.lock());
        let filled = loan.0.write_through(0, &head).is_ok()
            && loan.0.stripes.iter().flatten().all(|stripe| stripe.lock().is_filled());
        drop(loan);
        // SAFETY: every byte of every stripe was written, and the stripes make up the memory, which nobody else has any
        // more.
        Ok(filled.then(|| unsafe { std::slice::from_raw_parts_mut(start.cast(), len) }))
    }

    /// Writes to the memory.
    fn write_through(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(stripes) = &self.stripes else { return Ok(()) };
        let mut at = saturating_usize(offset);
        let mut rest = bytes;
        while !rest.is_empty() {
            let stripe = stripes.get(at / STRIPE).ok_or(io::ErrorKind::WriteZero)?;
            let (here, behind) = rest.split_at(rest.len().min(STRIPE - at % STRIPE));
            stripe.lock().write(at % STRIPE, here)?;
            at += here.len();
            rest = behind;
        }
        Ok(())
    }
}

impl Storage for Target {
    fn name(&self) -> &Path {
        Path::new("<memory>")
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.end.load(Ordering::Acquire))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let head = self.head.lock();
        let bytes = head.get(saturating_usize(offset)..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn source(&self, _end: u64, _copying: bool) -> io::Result<Arc<dyn Source>> {
        Ok(Arc::new(Nothing))
    }

    fn lock(&self, _at: u64, _alone: bool) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self, _at: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn conflict(&self, _range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock_whole(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock_whole(&self) -> io::Result<()> {
        Ok(())
    }

    fn reopen(&self, _write: bool) -> io::Result<Arc<dyn Storage>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn boot_id(&self) -> [u8; 16] {
        super::boot::id()
    }

    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.end.fetch_max(offset.saturating_add(bytes.len() as u64), Ordering::AcqRel);
        let mut head = self.head.lock();
        let here = head.len().saturating_sub(saturating_usize(offset)).min(bytes.len());
        let (first, rest) = bytes.split_at(here);
        if here > 0 {
            let at = saturating_usize(offset);
            head[at..at + here].copy_from_slice(first);
        }
        drop(head);
        self.write_through(offset.saturating_add(here as u64), rest)
    }

    fn only_counts(&self) -> bool {
        self.stripes.is_none()
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn take_name(&self, _over: Option<&dyn Storage>) -> io::Result<()> {
        Ok(())
    }

    fn present_path(&self) -> &Path {
        self.name()
    }

    fn permissions(&self) -> io::Result<std::fs::Permissions> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What has been written is not read again.
struct Nothing;

impl Source for Nothing {
    fn borrow(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    fn read_at(&self, _offset: u64, _buf: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: usize = 100;

    /// Fills memory by writes of these bounds, in their order.
    fn fill(len: usize, parts: &[(usize, usize)]) -> io::Result<Option<Vec<u8>>> {
        let mut memory = vec![MaybeUninit::uninit(); len];
        let mut kept = None;
        let filled = Target::fill(&mut memory, HEAD, |target| {
            kept = Some(target.clone());
            for &(start, end) in parts {
                let bytes: Vec<u8> = (start..end).map(|n| n as u8).collect();
                target.write_at(start as u64, &bytes)?;
            }
            Ok::<(), io::Error>(())
        })
        .map(|bytes| bytes.map(|bytes| bytes.to_vec()));
        // The memory is gone by now, whoever has the target.
        if len > HEAD {
            assert!(kept.unwrap().write_at(HEAD as u64, &[1]).is_err());
        }
        filled
    }

    #[test]
    fn memory_is_filled_or_not_given_back() {
        let end = 3 * STRIPE + 7;
        let middle = STRIPE + 9;
        for parts in [
            vec![(0, end)],
            vec![(0, HEAD), (HEAD, middle), (middle, end)],
            vec![(middle, end), (50, middle), (0, 50)],
            vec![(0, HEAD), (middle, end), (200, middle), (HEAD, 200)],
            vec![(0, 10), (0, HEAD), (HEAD, end), (middle, middle + 1)],
        ] {
            let bytes = fill(end, &parts).unwrap().unwrap();
            assert!(bytes.iter().enumerate().all(|(n, byte)| *byte == n as u8), "{parts:?}");
        }
        for parts in [vec![(0, end - 1)], vec![(0, middle), (middle + 1, end)], vec![(HEAD + 1, end)]] {
            assert_eq!(fill(end, &parts).unwrap(), None, "{parts:?}");
        }
        assert!(fill(end, &[(0, end + 1)]).is_err());
        assert_eq!(fill(HEAD - 1, &[(0, 1)]).unwrap(), None);
    }

    #[test]
    fn what_is_only_counted_is_not_kept() {
        let target = Target::measure(HEAD);
        target.write_at(0, &[5; HEAD]).unwrap();
        target.write_at(1 << 50, &[6; 10]).unwrap();
        assert_eq!(target.len().unwrap(), (1 << 50) + 10);
        let mut head = [0; HEAD];
        target.read_at(0, &mut head).unwrap();
        assert_eq!(head, [5; HEAD]);
        assert!(target.only_counts() && target.read_at(1 << 50, &mut head).is_err());
    }
}
