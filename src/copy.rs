//! Copying arrays and groups, within a store and from one to another.

use crate::array::{Changes, Codec, Copied, Tally, bytes_to_tell, copy_array, record_of_copy};
use crate::error::{Error, Result};
use crate::format::{ArrayRecord, RaggedRecord, Record};
use crate::progress::ProgressCallback;
use crate::store::{Frames, Listed, Listing, Snapshot, Writer};

/// What a copy is to be like where it is not to be like what is copied, and who is told how far it has come.
///
/// Chunks whose array keeps its chunk shape, block shape and codec are copied as they are stored; others are decoded and
/// encoded anew.
///
/// ```
/// use brickmap::{Codec, CopyOptions};
///
/// let options = CopyOptions::new().codec(Codec::default().level(9));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct CopyOptions<'a> {
    changes: Changes,
    progress: Option<&'a ProgressCallback<'a>>,
}

impl std::fmt::Debug for CopyOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Changes { chunks, blocks, codec } = &self.changes;
        f.debug_struct("CopyOptions")
            .field("chunks", chunks)
            .field("blocks", blocks)
            .field("codec", codec)
            .finish_non_exhaustive()
    }
}

impl<'a> CopyOptions<'a> {
    /// Everything stays as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chunk length of the copy in each dimension: for one array.
    pub fn chunks(mut self, chunks: impl Into<Vec<u64>>) -> Self {
        self.changes.chunks = Some(chunks.into());
        self
    }

    /// Block length of the copy in each dimension: for one array. What is longer than a chunk is cut to it.
    pub fn blocks(mut self, blocks: impl Into<Vec<u64>>) -> Self {
        self.changes.blocks = Some(blocks.into());
        self
    }

    /// How the chunks of every array that is copied are coded. An array that becomes raw, or was raw, gets chunks by default.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.changes.codec = Some(codec);
        self
    }

    /// Called on the calling thread before anything is copied, and about every 64 MiB. `Break` cancels the copy: it returns [`Error::Cancelled`], and the
    /// writer can only be dropped.
    pub fn progress(mut self, callback: &'a ProgressCallback<'a>) -> Self {
        self.progress = Some(callback);
        self
    }
}

impl Snapshot {
    /// Copies an array, or a group with all that is below it, into a writer of this or of another store, with all
    /// attributes. The name `to` must be free; groups above it are created. The empty path `from` is the whole store: with
    /// an empty `to` too, everything keeps its name, and none of the names may be taken.
    ///
    /// What is copied as it is stored is compared with its checksums on the way, so that damage is an error and never
    /// carried along; absent and constant chunks stay so. What is cut or coded anew is read and written a few chunks at a time: memory
    /// is needed for 64 MiB before compression, or for one chunk. Both use the threads of the writer's store. The catalog
    /// entries that are copied are in memory meanwhile.
    ///
    /// ```
    /// use brickmap::{ArraySpec, Codec, CopyOptions, Dtype, Selection, Store};
    ///
    /// # let directory = std::env::temp_dir().join(format!("brickmap-copy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let store = Store::create(directory.join("run.brick"))?;
    /// let mut writer = store.writer()?;
    /// writer.create_array("step/pressure", &ArraySpec::new(Dtype::F32, [100, 100]))?;
    /// writer.write("step/pressure", &Selection::all(), &[1.5f32; 10_000])?;
    /// let snapshot = writer.commit()?;
    ///
    /// let archive = Store::create(directory.join("archive.brick"))?;
    /// let mut writer = archive.writer()?;
    /// snapshot.copy_to("step", &mut writer, "run/1", CopyOptions::new().codec(Codec::default().level(9)))?;
    /// let pressure: Vec<f32> = writer.commit()?.array("run/1/pressure")?.read(&Selection::all())?;
    /// assert!(pressure == [1.5; 10_000]);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no `from`, [`Error::AlreadyExists`] if a name is taken, [`Error::InvalidArgument`] and
    /// [`Error::TooLarge`] for names, chunks, blocks and codecs that cannot be, [`Error::Unsupported`] for what a later version
    /// stored: all these before anything is changed. [`Error::Corrupt`] names the array, chunk and block that is damaged,
    /// [`Error::Io`] is of either file, [`Error::Cancelled`] of the progress callback; after these the writer can only be
    /// dropped.
    pub fn copy_to(&self, from: &str, writer: &mut Writer, to: &str, options: CopyOptions<'_>) -> Result<()> {
        let plan = Plan::new(from, self.listed(from)?, writer, to, &options)?;
        plan.run(self.frames()?, writer, &options)
    }
}

impl Writer {
    /// Copies an array, or a group with all that is below it, as it is staged, with all attributes. The name `to` must be
    /// free; groups above it are created. Costs as [`Snapshot::copy_to`] without changes: the copy has frames of its own.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::copy_to`]; [`Error::InvalidArgument`] for a copy of a group that would be in it.
    pub fn copy(&mut self, from: &str, to: &str) -> Result<()> {
        let within = to.trim_matches('/').strip_prefix(from.trim_matches('/'));
        if from.trim_matches('/').is_empty() || within.is_some_and(|rest| rest.starts_with('/')) {
            return Err(Error::invalid(format!("a copy of '{from}' to '{to}', which would be in it")));
        }
        self.check_new(to)?;
        let options = CopyOptions::new();
        let listed = self.listed(from).inspect_err(|error| {
            if !matches!(error, Error::NotFound { .. }) {
                self.poison(error);
            }
        });
        let (frames, listed) = listed?;
        let plan = Plan::new(from, listed, self, to, &options)?;
        plan.run(&frames, self, &options)
    }
}

/// What is to be copied, and to where.
struct Plan {
    from: String,
    entries: Vec<Planned>,
    /// Bytes that will be told of.
    total: u64,
}

/// One entry of the new catalog.
struct Planned {
    to: String,
    what: Entry,
}

enum Entry {
    Group,
    Attributes(Vec<u8>),
    /// The array that is copied, by its path below what is, and what becomes of it.
    Array {
        below: String,
        from: Box<ArrayRecord>,
        to: Box<ArrayRecord>,
    },
    Ragged {
        below: String,
        from: Box<RaggedRecord>,
        to: Box<RaggedRecord>,
    },
}

impl Plan {
    /// Checks all that can be checked before anything is changed.
    fn new(
        from: &str,
        listed: Vec<Listed>,
        writer: &Writer,
        to: &str,
        options: &CopyOptions<'_>,
    ) -> Result<Plan> {
        let (from, to) = (from.trim_matches('/'), to.trim_matches('/'));
        let mut plan = Plan { from: from.to_owned(), entries: Vec::with_capacity(listed.len()), total: 0 };
        let one_array =
            matches!(listed.first().map(|first| &first.what), Some(Listing::Record(Record::Array(_))));
        if !one_array && (options.changes.chunks.is_some() || options.changes.blocks.is_some()) {
            return Err(Error::invalid(format!(
                "a chunk or block shape for the copy of '{from}', which is not one array"
            )));
        }
        let is_whole = from.is_empty() && to.is_empty();
        for Listed { below, what } in listed {
            let name = join(to, &below);
            let what = match what {
                Listing::Attributes(json) => {
                    if name.is_empty() && !writer.attributes("")?.is_empty() {
                        return Err(Error::AlreadyExists { name: "the attributes of the store".into() });
                    }
                    Entry::Attributes(json)
                }
                // The root group is there already.
                Listing::Record(Record::Group) if is_whole && below.is_empty() => continue,
                Listing::Record(record) => {
                    writer.check_new(&name)?;
                    plan.record(below, record, &options.changes)?
                }
            };
            plan.entries.push(Planned { to: name, what });
        }
        Ok(plan)
    }

    fn record(&mut self, below: String, record: Record, changes: &Changes) -> Result<Entry> {
        let mut changed = |from: &ArrayRecord| -> Result<ArrayRecord> {
            let to = record_of_copy(from, changes)?;
            self.total = self.total.saturating_add(bytes_to_tell(from, &to));
            Ok(to)
        };
        match record {
            Record::Group => Ok(Entry::Group),
            Record::Array(from) => {
                let to = Box::new(changed(&from)?);
                Ok(Entry::Array { below, from, to })
            }
            Record::Ragged(from) => {
                let (offsets, values) = (changed(&from.offsets)?, changed(&from.values)?);
                let shape = from.shape.clone();
                let to = Box::new(RaggedRecord { element: from.element, shape, offsets, values });
                Ok(Entry::Ragged { below, from, to })
            }
            Record::Unknown(what) => Err(Error::Unsupported {
                what: format!("'{}' is {what}, of a later version", join(&self.from, &below)),
            }),
        }
    }

    fn run(self, frames: &Frames, writer: &mut Writer, options: &CopyOptions<'_>) -> Result<()> {
        let mut tally = Tally::new(frames.bounds().end, self.total, options.progress);
        let from = self.from;
        let outcome = tally.tell(0).and_then(|()| {
            self.entries.into_iter().try_for_each(|entry| entry.copy(&from, frames, writer, &mut tally))
        });
        outcome.inspect_err(|error| writer.poison(error))
    }
}

impl Planned {
    fn copy(self, root: &str, frames: &Frames, writer: &mut Writer, tally: &mut Tally<'_>) -> Result<()> {
        match self.what {
            Entry::Group => writer.add_group(&self.to),
            Entry::Attributes(json) => {
                tally.meet(frames, json.len() as u64)?;
                writer.add_attributes(&self.to, json)
            }
            Entry::Array { below, from, to } => {
                let path = join(root, &below);
                let copied = Copied { frames, record: &from, path: &path };
                writer.add_filled(&self.to, *to, |array| copy_array(&copied, array, tally))
            }
            Entry::Ragged { below, from, to } => {
                let path = join(root, &below);
                let part = |record| Copied { frames, record, path: &path };
                let (offsets, values) = (part(&from.offsets), part(&from.values));
                // One after the other.
                let tally = std::cell::RefCell::new(tally);
                writer.add_filled_ragged(
                    &self.to,
                    *to,
                    |array| copy_array(&offsets, array, &mut tally.borrow_mut()),
                    |array| copy_array(&values, array, &mut tally.borrow_mut()),
                )
            }
        }
    }
}

/// The path of what is `below` a group.
fn join(group: &str, below: &str) -> String {
    match (group, below) {
        ("", path) | (path, "") => path.to_owned(),
        (group, below) => format!("{group}/{below}"),
    }
}
