//! Taking frames out of a source, checked.

use super::Shared;
use crate::error::{Damage, Error, Place, Result};
use crate::format::{Bounds, Extent, FRAME_HEADER_LEN, Pointer, checksum};
use crate::num::saturating_usize;
use crate::storage::{Source, fetch};
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The frames below one root. Everything it hands out has been checked against the checksum of the pointer that led
/// there, but for what [`Frames::unchecked`] says.
#[derive(Clone)]
pub(crate) struct Frames {
    source: Arc<dyn Source>,
    bounds: Bounds,
    file: Arc<Path>,
    /// Of a snapshot without a pin: where newer roots are. What it reads may have been overwritten.
    unpinned: Option<Arc<Shared>>,
}

impl Frames {
    pub(crate) fn new(source: Arc<dyn Source>, bounds: Bounds, file: Arc<Path>) -> Frames {
        Frames { source, bounds, file, unpinned: None }
    }

    /// The frames of a snapshot that no pin keeps.
    pub(super) fn unpinned(self, shared: Arc<Shared>) -> Frames {
        Frames { unpinned: Some(shared), ..self }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    #[cfg(feature = "write")]
    pub(crate) fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The checked bytes of the frame that `pointer` leads to.
    pub(crate) fn checked<'a>(&'a self, pointer: &Pointer, buf: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let Pointer::Frame { extent, checked, .. } = pointer else {
            return Err(self.damage(Damage::new("a pointer that leads nowhere"), None));
        };
        let head = self.unchecked(Extent { len: u64::from(*checked), ..*extent }, buf)?;
        pointer.check_frame(head).map_err(|damage| self.lost(damage, extent.offset))?;
        Ok(head)
    }

    /// As [`Frames::checked`], owned where the source cannot lend.
    pub(crate) fn checked_cow(&self, pointer: &Pointer) -> Result<Cow<'_, [u8]>> {
        if let Pointer::Frame { extent, checked, .. } = pointer
            && let Some(head) = self.source.borrow(extent.offset, *checked as usize)
        {
            pointer.check_frame(head).map_err(|damage| self.lost(damage, extent.offset))?;
            return Ok(Cow::Borrowed(head));
        }
        let mut buf = Vec::new();
        let len = self.checked(pointer, &mut buf)?.len();
        buf.truncate(len);
        Ok(Cow::Owned(buf))
    }

    /// The bytes of an extent that has the checksum `sum`.
    pub(crate) fn summed<'a>(&'a self, extent: Extent, sum: u64, buf: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let bytes = self.unchecked(extent, buf)?;
        if checksum(bytes) == sum {
            Ok(bytes)
        } else {
            Err(self.lost(Damage::new("the stored bytes do not have their checksum"), extent.offset))
        }
    }

    /// The bytes of an extent as they are.
    pub(crate) fn unchecked<'a>(&'a self, extent: Extent, buf: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        fetch(&*self.source, extent.offset, saturating_usize(extent.len), buf)
            .map_err(|error| self.failed(error, extent))
    }

    /// A copy of the value in the blob that `pointer` leads to.
    pub(crate) fn blob(&self, pointer: &Pointer) -> Result<Vec<u8>> {
        let mut buf = Vec::new();
        let value = self.checked(pointer, &mut buf)?.get(FRAME_HEADER_LEN..).unwrap_or_default();
        let mut copy = Vec::new();
        copy.try_reserve_exact(value.len()).map_err(|_| no_memory(value.len() as u64))?;
        copy.extend_from_slice(value);
        Ok(copy)
    }

    /// An error of the source, for an extent.
    pub(crate) fn failed(&self, error: io::Error, extent: Extent) -> Error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return self.damage(Damage::new("the file ends before"), Some(extent.offset));
        }
        if error.kind() == io::ErrorKind::OutOfMemory {
            return no_memory(extent.len);
        }
        Error::Io {
            action: format!("read {} bytes at {}", extent.len, extent.offset),
            file: self.file.to_path_buf(),
            source: error,
        }
    }

    /// Bytes that are not what a pointer or checksum says: damage, unless they may have been used again.
    pub(crate) fn lost(&self, damage: Damage, offset: u64) -> Error {
        let generation = self.bounds.generation;
        let moved =
            |shared: &Arc<Shared>| shared.roots().is_ok_and(|roots| roots.newest.generation != generation);
        if self.unpinned.as_ref().is_some_and(moved) {
            return Error::Gone { file: self.file.to_path_buf(), generation };
        }
        self.damage(damage, Some(offset))
    }

    /// Says where some damage is.
    pub(crate) fn damage(&self, damage: Damage, offset: Option<u64>) -> Error {
        damage.at(Place { file: self.file.to_path_buf(), offset, ..Place::default() })
    }
}

fn no_memory(len: u64) -> Error {
    Error::TooLarge { what: format!("{len} stored bytes; there is not that much memory") }
}
