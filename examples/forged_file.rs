//! Writes the file of the tests that is assembled byte by byte, with what no writer makes: `forged_file DIRECTORY`.
//!
//! `DIRECTORY/forged.brick` is the file, `forged.json` says what is in it, and `forged.bin` has the items one after the
//! other; of ragged arrays the lengths of the items, as i64, and then the values. tests/test_reader_forged.py compares them
//! with what an independent reader makes of the file.

#[path = "../tests/forge/mod.rs"]
mod forge;

use serde_json::{Map, json};
use std::path::PathBuf;

fn main() {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("usage: forged_file DIRECTORY"));
    let (file, contents) = forge::sample();
    let (mut names, mut attributes, mut items) = (Map::new(), Map::new(), Vec::new());
    for path in &contents.groups {
        names.insert(path.clone(), json!({"kind": "group", "shape": [], "offset": 0, "len": 0}));
    }
    for array in &contents.arrays {
        let about =
            json!({"kind": "array", "shape": array.shape, "offset": items.len(), "len": array.items.len()});
        names.insert(array.path.clone(), about);
        items.extend_from_slice(&array.items);
    }
    for (path, json) in &contents.attributes {
        attributes.insert(path.clone(), serde_json::from_str(json).expect("attributes are JSON"));
    }
    let mut ragged = |path: &String, lengths: Vec<usize>, shape: &[usize], values: Vec<u8>| {
        let offset = items.len();
        items.extend(lengths.iter().flat_map(|&len| (len as i64).to_le_bytes()));
        items.extend(values);
        let about = json!({"kind": "ragged", "shape": shape, "offset": offset, "len": items.len() - offset});
        names.insert(path.clone(), about);
    };
    for (path, strings) in &contents.strings {
        ragged(path, strings.iter().map(String::len).collect(), &[2, 2], strings.concat().into_bytes());
    }
    for (path, runs) in &contents.runs {
        let values = runs.concat().into_iter().flat_map(f32::to_le_bytes).collect();
        ragged(path, runs.iter().map(Vec::len).collect(), &[runs.len()], values);
    }
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.join(name), bytes).expect("the directory can be written to");
    };
    write("forged.brick", &file);
    write("forged.json", json!({"names": names, "attributes": attributes}).to_string().as_bytes());
    write("forged.bin", &items);
}
