//! `compact`.

use crate::support::{Folder, flip, noise};
use brickmap::{ArraySpec, Dtype, OpenOptions, Selection};

/// Makes `s.brick`, half of which is free.
fn store(folder: &Folder) -> Vec<u8> {
    folder.store("s.brick");
    let store = OpenOptions::new().write(true).open(folder.path("s.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("noise", &ArraySpec::new(Dtype::U8, [50_000])).unwrap();
    let items = noise(50_000);
    for n in 0..3 {
        let items: Vec<u8> = items.iter().map(|item| item ^ n).collect();
        writer.write("noise", &Selection::all(), &items).unwrap();
        writer.commit().unwrap();
    }
    items.iter().map(|item| item ^ 2).collect()
}

#[test]
fn a_file_gets_smaller_and_holds_the_same() {
    let folder = Folder::new();
    store(&folder);
    let (before, numbers) = (folder.bytes("s.brick").len(), folder.good("read s.brick velocity/x"));
    let listed = folder.good("ls s.brick");
    let text = folder.good("compact s.brick");
    assert!(text.starts_with("s.brick: ") && text.contains(" less, in "), "{text}");
    let after = folder.bytes("s.brick").len();
    assert!(after < before - 50_000, "{before} {after}");
    assert_eq!(folder.good("read s.brick velocity/x"), numbers);
    assert_eq!(folder.good("ls s.brick"), listed);
    assert_eq!(folder.json("verify s.brick")["free_bytes"], 0);
    // Again.
    let report = folder.json("compact s.brick");
    assert_eq!((report["bytes_before"].as_u64(), report["bytes_after"].as_u64()), {
        let after = Some(after as u64);
        (after, after)
    });
    assert!(folder.good("compact s.brick").contains("nothing less"));
    assert_eq!(folder.good("compact s.brick --quiet"), "");
    assert_eq!(folder.files(), ["s.brick"]);
}

#[test]
fn a_new_file_leaves_the_old_one_alone() {
    let folder = Folder::new();
    store(&folder);
    let whole = folder.bytes("s.brick");
    let report = folder.json("compact s.brick --into new.brick");
    assert_eq!((&report["file"], &report["output"]), (&"s.brick".into(), &"new.brick".into()));
    assert_eq!(report["bytes_before"], whole.len());
    assert_eq!(report["bytes_after"], folder.bytes("new.brick").len());
    assert!(folder.bytes("s.brick") == whole);
    assert_eq!(folder.good("read new.brick labels"), folder.good("read s.brick labels"));
    folder.bad("compact s.brick --into new.brick", 2, "'new.brick' exists already");
    folder.bad("compact s.brick --into s.brick", 2, "'s.brick' exists already");
    folder.bad("compact s.brick --into none/new.brick", 2, "there is no folder 'none'");
    folder.bad("compact missing.brick", 2, "there is no file 'missing.brick'");
    folder.good("compact s.brick --into synced.brick --sync --threads 2 --quiet");
    folder.good("verify synced.brick");
    assert_eq!(folder.files(), ["new.brick", "s.brick", "synced.brick"]);
}

#[test]
fn of_a_damaged_file_nothing_is_made() {
    let folder = Folder::new();
    let items = store(&folder);
    let bytes = folder.bytes("s.brick");
    let offset = bytes.windows(32).position(|window| window == &items[20_000..20_032]).unwrap();
    flip(&folder.path("s.brick"), offset);
    let damaged = folder.bytes("s.brick");
    for line in ["compact s.brick", "compact s.brick --into new.brick"] {
        folder.bad(line, 1, "array 'noise', chunk [0], block 0");
    }
    assert!(folder.bytes("s.brick") == damaged);
    assert_eq!(folder.files(), ["s.brick"]);
}

#[test]
fn a_file_that_is_being_written_is_not_replaced() {
    let folder = Folder::new();
    store(&folder);
    let store = OpenOptions::new().write(true).open(folder.path("s.brick")).unwrap();
    let writer = store.writer().unwrap();
    folder.bad("compact s.brick", 1, "is being written by");
    folder.good("compact s.brick --into new.brick");
    drop(writer);
    folder.good("compact s.brick");
}
