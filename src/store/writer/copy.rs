//! Entering copies: names and arrays that come whole, so that nothing of them stays staged.

use super::space::PageBatch;
use super::{Staged, StagedArray, Writer, WriterLock};
use crate::error::{Error, Result};
use crate::format::{ArrayRecord, RaggedRecord, Record};
use crate::store::listing::{self, Listed};
use crate::store::{Frames, Shared, Space, path};
use std::sync::Arc;

/// A new array without chunks, and what it takes to give it some.
pub(crate) struct NewArray<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) frames: &'a Frames,
    pub(crate) space: &'a mut Space,
    pub(crate) array: &'a mut StagedArray,
}

impl NewArray<'_> {
    /// Whether what is written need only have its place.
    pub(crate) fn only_counts(&self) -> bool {
        self.shared.storage.only_counts()
    }
}

impl Writer {
    /// Everything from `path` on as it is staged, with what reads it. The pages that changed are written for that.
    pub(crate) fn listed(&mut self, path: &str) -> Result<(Frames, Vec<Listed>)> {
        let path = path::normalize(path);
        if self.kind(path)?.is_none() {
            return Err(Error::NotFound { name: path.to_owned(), near: self.near(path) });
        }
        self.append_all_gathered()?;
        let mut batch = PageBatch::default();
        for (path, staged) in &mut self.staged {
            let record = match staged {
                Staged::Array(array) => {
                    Record::Array(Box::new(array.flush(&mut self.space, &mut batch)?.clone()))
                }
                Staged::Ragged(ragged) => {
                    ragged.record.offsets = ragged.offsets.flush(&mut self.space, &mut batch)?.clone();
                    ragged.record.values = ragged.values.flush(&mut self.space, &mut batch)?.clone();
                    Record::Ragged(Box::new(ragged.record.clone()))
                }
            };
            self.catalog.insert(&self.frames, &mut self.space, path.as_bytes(), record.encode())?;
        }
        let catalog = self.catalog.flush(&mut self.space, &mut batch)?;
        self.write_pages(&batch)?;
        self.cover_staged()?;
        Ok((self.frames.clone(), listing::list(&self.frames, &catalog, path)?))
    }

    /// The lock that it holds.
    pub(in crate::store) fn lock(&self) -> Arc<WriterLock> {
        self.lock.clone()
    }

    /// That there can be something new of this name.
    pub(crate) fn check_new(&self, path: &str) -> Result<()> {
        self.check_free(path::normalize(path))
    }

    /// Enters a group that is not there.
    pub(crate) fn add_group(&mut self, path: &str) -> Result<()> {
        self.add_record(path, Record::Group)
    }

    /// Enters the attributes of a name that has none, as JSON.
    pub(crate) fn add_attributes(&mut self, path: &str, json: Vec<u8>) -> Result<()> {
        self.changed = true;
        self.catalog.insert(&self.frames, &mut self.space, &path::attributes_key(path), json)
    }

    /// Enters an array that is not there, with the chunks that `fill` gives it.
    pub(crate) fn add_filled(
        &mut self,
        path: &str,
        record: ArrayRecord,
        fill: impl FnOnce(NewArray<'_>) -> Result<()>,
    ) -> Result<()> {
        let record = self.filled(record, fill)?;
        self.add_record(path, Record::Array(Box::new(record)))
    }

    /// Enters a ragged array that is not there, with the chunks that are given to its two arrays.
    pub(crate) fn add_filled_ragged(
        &mut self,
        path: &str,
        record: RaggedRecord,
        offsets: impl FnOnce(NewArray<'_>) -> Result<()>,
        values: impl FnOnce(NewArray<'_>) -> Result<()>,
    ) -> Result<()> {
        let offsets = self.filled(record.offsets, offsets)?;
        let values = self.filled(record.values, values)?;
        self.add_record(path, Record::Ragged(Box::new(RaggedRecord { offsets, values, ..record })))
    }

    fn filled(
        &mut self,
        record: ArrayRecord,
        fill: impl FnOnce(NewArray<'_>) -> Result<()>,
    ) -> Result<ArrayRecord> {
        let mut array = StagedArray::new(record);
        let (frames, space) = (&self.frames, &mut self.space);
        fill(NewArray { shared: &self.shared, frames, space, array: &mut array })?;
        let mut batch = PageBatch::default();
        array.flush(&mut self.space, &mut batch)?;
        self.write_pages(&batch)?;
        Ok(array.record)
    }

    fn write_pages(&self, batch: &PageBatch) -> Result<()> {
        batch.runs().iter().try_for_each(|(offset, bytes)| {
            let failed = |source| self.failed(&format!("write {} bytes at {offset}", bytes.len()), source);
            self.shared.storage.write_at(*offset, bytes).map_err(failed)
        })
    }
}
