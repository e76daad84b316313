//! The four pages at the start of a file, and the roots that count in them.

use crate::error::{Damage, Error, Place, Refusal, Result};
use crate::format::twin::PAGE_LEN;
use crate::format::{Root, Superblock, SuperblockError};
use crate::storage::Storage;
use std::io;
use std::path::Path;

/// The four pages at the start of a file, read at once.
pub(super) struct Head {
    pages: [[u8; PAGE_LEN]; 4],
    /// How many of their bytes the file has.
    len: usize,
    /// What the last three of them say.
    roots: [Result<Root, Refusal>; 3],
}

/// The roots that count: the newest one, and the newest of those that were synced.
#[derive(Clone)]
pub(super) struct Roots {
    pub(super) newest: Root,
    pub(super) synced: Option<Root>,
}

impl Roots {
    /// The roots that count among those of the pages, in their order.
    pub(super) fn among<'a>(pages: impl Iterator<Item = &'a Root> + Clone) -> Option<Roots> {
        let newest = |pages: &mut dyn Iterator<Item = &'a Root>| {
            pages.reduce(|best, root| if root.rank() > best.rank() { root } else { best }).cloned()
        };
        Some(Roots {
            newest: newest(&mut pages.clone())?,
            synced: newest(&mut pages.filter(|root| root.deferred.is_none())),
        })
    }

    /// The newest root, or, if that is the one that is doubted, the newest synced one.
    pub(super) fn best(&self, doubted: Option<(u64, u64)>, file: &Path) -> Result<Root> {
        if doubted != Some(self.newest.id()) {
            return Ok(self.newest.clone());
        }
        self.synced.clone().ok_or_else(|| {
            let what =
                "the newest commit was not synced and is not whole, and there is no older one that was";
            Damage::new(what).at(Place { file: file.to_path_buf(), ..Place::default() })
        })
    }

    /// Whether the space behind `root` is kept for whoever pinned it before these roots were read.
    pub(super) fn keep(&self, root: &Root) -> bool {
        let same = |kept: &Root| kept.id() == root.id();
        same(&self.newest) || self.synced.as_ref().is_some_and(same) || self.newest.alive.contains(&root.id())
    }
}

/// How often the pages are read that change all the time.
const ATTEMPTS: usize = 1000;

impl Head {
    /// Reads the pages. One that is being written meanwhile may come in parts of before and after, so that neither of its copies is
    /// whole; but at each moment one of them is. So they are read again, until nothing is wrong or nothing changes.
    pub(super) fn read(storage: &dyn Storage) -> Result<Head> {
        let mut head = Head::read_once(storage)?;
        for _ in 0..ATTEMPTS {
            if head.roots.iter().all(Result::is_ok) {
                break;
            }
            let again = Head::read_once(storage)?;
            if again.pages == head.pages {
                break;
            }
            head = again;
        }
        Ok(head)
    }

    fn read_once(storage: &dyn Storage) -> Result<Head> {
        let failed = |source: io::Error| Error::Io {
            action: "read the first pages".into(),
            file: storage.name().to_path_buf(),
            source,
        };
        let mut pages = [[0; PAGE_LEN]; 4];
        let bytes = pages.as_flattened_mut();
        let len = bytes.len().min(crate::num::saturating_usize(storage.len().map_err(failed)?));
        storage.read_at(0, &mut bytes[..len]).map_err(failed)?;
        let roots = [1, 2, 3].map(|page| Root::parse_page(&pages[page]));
        Ok(Head { pages, len, roots })
    }

    pub(super) fn superblock(&self, file: &Path) -> Result<Superblock> {
        if self.len == 0 {
            return Err(Error::NotAStore { file: file.to_path_buf(), found: "it is empty".into() });
        }
        Superblock::parse(&self.pages[0]).map_err(|error| match error {
            SuperblockError::NotAStore(found) => Error::NotAStore { file: file.to_path_buf(), found },
            SuperblockError::Unsupported(what) => {
                Error::Unsupported { what: format!("{}: {what}", file.display()) }
            }
            SuperblockError::Damaged(damage) => {
                damage.at(Place { file: file.to_path_buf(), ..Place::default() })
            }
        })
    }

    /// The root in page `slot`.
    fn root(&self, slot: usize, file: &Path) -> Result<Root> {
        let offset = crate::format::root_offset(slot);
        let place = Place { file: file.to_path_buf(), offset: Some(offset), ..Place::default() };
        if self.len < self.pages.as_flattened().len() {
            return Err(Damage::new("the file ends before its roots do: it was cut off").at(place));
        }
        self.roots[slot].clone().map_err(|refusal| refusal.at(place))
    }

    /// The roots of all three pages. A page without a valid copy is damage.
    #[cfg(feature = "write")]
    pub(super) fn slots(&self, file: &Path) -> Result<[Root; 3]> {
        Ok([self.root(0, file)?, self.root(1, file)?, self.root(2, file)?])
    }

    #[cfg(feature = "write")]
    pub(super) fn root_pages(&self) -> [[u8; PAGE_LEN]; 3] {
        [self.pages[1], self.pages[2], self.pages[3]]
    }

    /// The roots that count. A page without a valid copy is damage, since the newest root may have stood there; to recover
    /// what is readable, those that are left will do.
    pub(super) fn roots(&self, file: &Path, recover: bool) -> Result<Roots> {
        let mut pages = Vec::with_capacity(3);
        let mut damage = None;
        for slot in 0..3 {
            match self.root(slot, file) {
                Ok(root) => pages.push(root),
                Err(error) => damage = damage.or(Some(error)),
            }
        }
        match (Roots::among(pages.iter()), damage) {
            (Some(roots), None) => Ok(roots),
            (Some(roots), Some(_)) if recover => Ok(roots),
            (_, Some(error)) => Err(error),
            (None, None) => Err(Damage::new("no root").at(Place { file: file.into(), ..Place::default() })),
        }
    }
}
