//! From `.npy` to a store.

use super::super::options;
use super::{Arguments, CodecName, Converted, ProfileName, Storing};
use crate::boxes::{MemoryOrder, boxes, gather};
use crate::failure::Failure;
use crate::npy::NpyFile;
use crate::output::Unfinished;
use crate::progress::Bar;
use crate::terminal;
use brickmap::{
    ArraySpec, ByteOrder, Codec, Durability, Error, OpenOptions, Profile, Progress, Selection, Snapshot,
    Store, WriteOptions, Writer,
};
use std::io;
use std::path::Path;

pub(super) fn run(arguments: &Arguments) -> Result<Converted, Failure> {
    let npy = NpyFile::open(&arguments.input)?;
    let name = name(arguments)?;
    let spec = spec(&arguments.storing, &npy)?;
    let output = &arguments.output;
    let options = options(arguments.threads);
    let snapshot = if arguments.append && output.exists() {
        let store = options.write(true).open(output)?;
        write(&store, &name, &spec, &npy, arguments)?
    } else {
        let durability = if arguments.sync { Durability::Full } else { Durability::None };
        let store = create(output, arguments.force, options.durability(durability))?;
        // The first commit takes the name; until then the file goes if the command is interrupted.
        let _unfinished = store.temporary_path().map(Unfinished::new);
        write(&store, &name, &spec, &npy, arguments)?
    };
    let array = snapshot.array(&name)?;
    Ok(Converted {
        array: array.path().to_owned(),
        dtype: terminal::dtype(array.dtype()),
        shape: array.shape().to_vec(),
        bytes: array.nbytes(),
        stored_bytes: array.stored_bytes(),
    })
}

/// A store that appears with its first commit. What is there is replaced if `force` is set.
fn create(output: &Path, force: bool, options: OpenOptions) -> Result<Store, Failure> {
    let shown = output.display();
    if let Ok(there) = output.metadata()
        && !there.is_file()
    {
        return Err(Failure::usage(format!("'{shown}' is there and is not a regular file")));
    }
    let created = if force { options.replace(output) } else { options.create_on_commit(output) };
    created.map_err(|error| match error {
        Error::AlreadyExists { .. } => Failure::usage(format!(
            "'{shown}' exists already; give --force to replace it or --append to add to it"
        )),
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            let folder = output.parent().unwrap_or(output).display();
            Failure::usage(format!("there is no folder '{folder}'"))
        }
        Error::Io { action, source, .. } => Failure::of_file(&action, output, &source),
        other => other.into(),
    })
}

/// The name of the new array.
fn name(arguments: &Arguments) -> Result<String, Failure> {
    if let Some(name) = &arguments.name {
        return Ok(name.clone());
    }
    let stem = arguments.input.file_stem().and_then(|stem| stem.to_str());
    stem.map(str::to_owned)
        .ok_or_else(|| Failure::usage("the name of the input is not UTF-8; name the array with --name"))
}

fn spec(storing: &Storing, npy: &NpyFile) -> Result<ArraySpec, Failure> {
    let header = &npy.header;
    let mut spec = ArraySpec::new(header.dtype.clone(), header.shape.clone()).codec(codec(storing)?);
    if let Some(chunks) = &storing.chunks {
        spec = spec.chunks(chunks.0.clone());
    }
    if let Some(blocks) = &storing.blocks {
        if matches!(storing.codec, Some(CodecName::Raw)) {
            return Err(Failure::usage("--blocks with --codec raw, which has no blocks"));
        }
        spec = spec.blocks(blocks.0.clone());
    }
    Ok(spec)
}

fn codec(storing: &Storing) -> Result<Codec, Failure> {
    let level = storing.level.unwrap_or(1);
    let profile = match storing.profile {
        None | Some(ProfileName::Balanced) => Profile::Balanced,
        Some(ProfileName::Fast) => Profile::Fast,
        Some(ProfileName::Small) => Profile::Small,
    };
    let codec = match storing.codec {
        None | Some(CodecName::Auto) => return Ok(Codec::Auto { profile, level }),
        Some(CodecName::Raw) => Codec::Raw,
        Some(CodecName::Zstd) => Codec::Zstd { level },
        Some(CodecName::Planes) => Codec::Planes { level },
        Some(CodecName::Delta(stride)) => Codec::Delta { stride, level },
    };
    if storing.profile.is_some() {
        return Err(Failure::usage("--profile is for --codec auto, which chooses by it"));
    }
    if codec == Codec::Raw && storing.level.is_some() {
        return Err(Failure::usage("--level with --codec raw, which does not compress"));
    }
    Ok(codec)
}

/// Adds the array and commits.
fn write(
    store: &Store,
    name: &str,
    spec: &ArraySpec,
    npy: &NpyFile,
    arguments: &Arguments,
) -> Result<Snapshot, Failure> {
    let mut writer = store.writer()?;
    writer.create_array(name, spec).map_err(|error| match error {
        Error::AlreadyExists { name } => {
            let output = arguments.output.display();
            Failure::usage(format!("{output} has '{name}' already; choose another name with --name"))
        }
        other => other.into(),
    })?;
    let bar = Bar::new("Writing", arguments.common.quiet);
    let header = &npy.header;
    // In one dimension, and in none, both orders are the same.
    let fortran = header.fortran_order && header.shape.len() > 1;
    if !fortran && header.order == ByteOrder::Little {
        let options = WriteOptions::new();
        let tell = |progress| bar.tell(progress);
        writer.write_bytes(name, &Selection::all(), npy.items(), options.progress(&tell))?;
    } else {
        let order = if fortran { MemoryOrder::Fortran } else { MemoryOrder::C };
        write_boxes(&mut writer, name, spec, npy, order, &bar)?;
    }
    Ok(writer.commit()?)
}

/// Writes items that do not stand in the file as the library takes them, box by box.
fn write_boxes(
    writer: &mut Writer,
    name: &str,
    spec: &ArraySpec,
    npy: &NpyFile,
    order: MemoryOrder,
    bar: &Bar,
) -> Result<(), Failure> {
    let header = &npy.header;
    let itemsize = header.dtype.itemsize();
    let (chunks, _) = spec.resolved_shapes()?;
    let mut progress = Progress { done: 0, total: npy.items().len() as u64 };
    for part in boxes(&header.shape, &chunks, itemsize, order) {
        let mut bytes = gather(npy.items(), &header.shape, itemsize, order, &part);
        if header.order == ByteOrder::Big {
            header.dtype.swap_bytes(&mut bytes);
        }
        writer.write_bytes(name, &part.selection(), &bytes, WriteOptions::new())?;
        progress.done += bytes.len() as u64;
        let _ = bar.tell(progress);
    }
    Ok(())
}
