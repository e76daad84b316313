//! From a store to `.npy`.

use super::super::{open, read};
use super::{Arguments, Converted};
use crate::failure::Failure;
use crate::{npy, terminal};
use brickmap::{EntryKind, Snapshot};

/// So many arrays are listed where one has to be chosen.
const LISTED: usize = 20;

pub(super) fn run(arguments: &Arguments) -> Result<Converted, Failure> {
    refuse_storing(arguments)?;
    let snapshot = open(&arguments.input, arguments.threads)?.snapshot();
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => only_array(&snapshot, arguments)?,
    };
    if snapshot.kind(&name)? == Some(EntryKind::Ragged) {
        return Err(read::not_in_npy(&name));
    }
    let array = snapshot.array(&name)?;
    npy::save_array(&array, &arguments.output, arguments.force, arguments.common.quiet)?;
    Ok(Converted {
        array: array.path().to_owned(),
        dtype: terminal::dtype(array.dtype()),
        shape: array.shape().to_vec(),
        bytes: array.nbytes(),
        stored_bytes: array.stored_bytes(),
    })
}

/// Options of the other direction would do nothing here.
fn refuse_storing(arguments: &Arguments) -> Result<(), Failure> {
    let storing = &arguments.storing;
    let given = [
        ("--append", arguments.append),
        ("--chunks", storing.chunks.is_some()),
        ("--blocks", storing.blocks.is_some()),
        ("--codec", storing.codec.is_some()),
        ("--profile", storing.profile.is_some()),
        ("--level", storing.level.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} is for writing a .brick file, not a .npy file")))
        }
        None => Ok(()),
    }
}

/// The array of a store that has one.
fn only_array(snapshot: &Snapshot, arguments: &Arguments) -> Result<String, Failure> {
    let entries = snapshot.entries()?;
    let arrays: Vec<&str> =
        entries.iter().filter(|entry| entry.kind != EntryKind::Group).map(|entry| &entry.path[..]).collect();
    let input = arguments.input.display();
    match arrays[..] {
        [array] => Ok(array.to_owned()),
        [] => Err(Failure::usage(format!("{input} has no arrays"))),
        _ => {
            let mut list: Vec<String> =
                arrays.iter().take(LISTED).map(|name| format!("'{}'", terminal::name(name))).collect();
            if arrays.len() > LISTED {
                list.push(format!("and {} others", arrays.len() - LISTED));
            }
            let count = arrays.len();
            Err(Failure::usage(format!(
                "{input} has {count} arrays; choose one with --name: {}",
                list.join(", ")
            )))
        }
    }
}
