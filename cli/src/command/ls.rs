//! `brickmap ls`: the names in a store.

use super::describe::Described;
use super::{open, output, print_json};
use crate::Common;
use crate::failure::Failure;
use crate::terminal::{self, Align};
use brickmap::EntryKind;
use clap::Args;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;

/// List the groups and arrays of a store
#[derive(Args)]
#[command(
    after_help = "Examples:\n  brickmap ls run.brick\n  brickmap ls run.brick step/0042 -l\n  brickmap ls run.brick --json"
)]
pub(crate) struct Arguments {
    /// The brick file
    file: PathBuf,

    /// Only what is below this group
    group: Option<String>,

    /// One line for each, with its full path, sizes and ratio
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let snapshot = open(&arguments.file, None)?.snapshot();
    let group = arguments.group.as_deref().unwrap_or("").trim_matches('/');
    let group = match snapshot.kind(group)? {
        None | Some(EntryKind::Group) => group,
        Some(_) => {
            let hint = format!("to see what it is: brickmap info {} {group}", arguments.file.display());
            return Err(Failure::usage(format!(
                "'{}' is an array, not a group; {hint}",
                terminal::name(group)
            )));
        }
    };
    let mut entries = Vec::new();
    for entry in snapshot.entries_below(group)? {
        let described = Described::open(&snapshot, &entry)?;
        entries.push((entry.path, described));
    }
    if arguments.common.json {
        let entries = entries.iter().map(|(path, entry)| Value::Object(entry.json(path)));
        return print_json(&Value::Array(entries.collect()));
    }
    let mut out = output();
    if arguments.long {
        print_long(&mut out, &entries)?;
    } else {
        let root =
            if group.is_empty() { arguments.file.display().to_string() } else { terminal::name(group) };
        writeln!(out, "{root}")?;
        print_tree(&mut out, group, &entries)?;
    }
    Ok(out.flush()?)
}

fn print_long(out: &mut dyn Write, entries: &[(String, Described)]) -> Result<(), Failure> {
    let row = |(path, entry): &(String, Described)| {
        let slash = if matches!(entry, Described::Group) { "/" } else { "" };
        let sizes = entry.sizes();
        vec![
            format!("{}{slash}", terminal::name(path)),
            entry.dtype(),
            entry.shape().map(terminal::shape).unwrap_or_default(),
            sizes.map(|(bytes, _)| terminal::bytes(bytes)).unwrap_or_default(),
            sizes.map(|(_, stored)| terminal::bytes(stored)).unwrap_or_default(),
            sizes.map(|(bytes, stored)| terminal::ratio(bytes, stored)).unwrap_or_default(),
        ]
    };
    let head = ["name", "dtype", "shape", "size", "stored", "ratio"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(entries.iter().map(row)).collect();
    use Align::{Left, Right};
    Ok(terminal::table(out, &[Left, Left, Left, Right, Right, Right], &rows)?)
}

/// The entries, which come in the order of their paths, with lines that show what lies in what.
fn print_tree(out: &mut dyn Write, group: &str, entries: &[(String, Described)]) -> Result<(), Failure> {
    let below = if group.is_empty() { 0 } else { group.len() + 1 };
    let mut nodes: Vec<(Vec<&str>, &Described)> = entries
        .iter()
        .map(|(path, entry)| (path.get(below..).unwrap_or_default().split('/').collect(), entry))
        .collect();
    // The catalog's order is that of bytes, in which `a-b` stands between `a` and `a/b`.
    nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
    // From the last to the first: at which depths a line goes on below.
    let mut open: Vec<bool> = Vec::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (parts, entry) in nodes.iter().rev() {
        let depth = parts.len() - 1;
        let continues = open.get(depth).copied().unwrap_or(false);
        open.resize(depth + 1, false);
        open[depth] = true;
        let mut label: String =
            open[..depth].iter().map(|&line| if line { "│   " } else { "    " }).collect();
        label.push_str(if continues { "├── " } else { "└── " });
        label.push_str(&terminal::name(parts[depth]));
        let about = match entry.shape() {
            Some(shape) => format!("{} {}", entry.dtype(), terminal::shape(shape)),
            None => String::new(),
        };
        rows.push(vec![label, about]);
    }
    rows.reverse();
    Ok(terminal::table(out, &[Align::Left, Align::Left], &rows)?)
}
