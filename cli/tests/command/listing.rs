//! `ls` and `info`.

use crate::support::Folder;
use serde_json::json;
use std::io::Read;
use std::process::Stdio;

#[test]
fn ls_shows_a_tree() {
    let folder = Folder::new();
    folder.store("s.brick");
    let tree = "\
s.brick
├── labels    strings (3,)
└── velocity
    └── x     int32 (20, 30)
";
    assert_eq!(folder.good("ls s.brick"), tree);
    assert_eq!(folder.good("ls s.brick velocity/"), "velocity\n└── x  int32 (20, 30)\n");
    let long = folder.good("ls s.brick -l");
    let lines: Vec<Vec<&str>> = long.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["name", "dtype", "shape", "size", "stored", "ratio"]);
    assert_eq!(lines[2], ["velocity/", "group"]);
    assert_eq!(lines[3][..6], ["velocity/x", "int32", "(20,", "30)", "2.40", "kB"]);
}

#[test]
fn ls_and_info_print_json() {
    let folder = Folder::new();
    folder.store("s.brick");
    let list = folder.json("ls s.brick");
    let kinds: Vec<_> =
        list.as_array().unwrap().iter().map(|entry| (&entry["path"], &entry["kind"])).collect();
    assert_eq!(json!(kinds), json!([["labels", "strings"], ["velocity", "group"], ["velocity/x", "array"]]));
    let info = folder.json("info s.brick velocity/x");
    assert_eq!(info["generation"], 2);
    let entry = &info["entries"][0];
    for (key, expected) in [
        ("path", json!("velocity/x")),
        ("dtype", json!("<i4")),
        ("shape", json!([20, 30])),
        ("chunks", json!([8, 16])),
        ("blocks", json!([4, 16])),
        ("codec", json!({"name": "auto", "profile": "balanced", "level": 1})),
        ("bytes", json!(2400)),
        ("attributes", json!({"unit": "m/s"})),
    ] {
        assert_eq!(entry[key], expected, "{key}");
    }
    assert_eq!(info["file_bytes"], folder.bytes("s.brick").len());
}

#[test]
fn info_tells_of_a_store_a_group_or_an_array() {
    let folder = Folder::new();
    folder.store("s.brick");
    let info = folder.good("info s.brick");
    for expected in [
        "generation  2",
        "2 arrays, 1 group",
        "\nlabels\n",
        "\nvelocity/\n",
        "\nvelocity/x\n",
        "unit = \"m/s\"",
    ] {
        assert!(info.contains(expected), "{expected}: {info}");
    }
    assert!(!folder.good("info s.brick velocity").contains("labels"));
    assert!(!folder.good("info s.brick labels").contains("velocity"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    let store = brickmap::Store::create(folder.path("many.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    for n in 0..5000 {
        writer.create_group(&format!("a group with a rather long name, so that pipes fill up {n}")).unwrap();
    }
    writer.commit().unwrap();
    for arguments in [&["ls", "many.brick"][..], &["ls", "many.brick", "--json"], &["info", "many.brick"]] {
        let mut child =
            folder.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The other end is closed after the first bytes.
        child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{arguments:?}");
    }
}

#[test]
fn names_cannot_colour_the_screen() {
    let folder = Folder::new();
    let store = brickmap::Store::create(folder.path("s.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_group("red\u{1b}[31m").unwrap();
    writer.commit().unwrap();
    for command in ["ls s.brick", "ls -l s.brick", "info s.brick"] {
        let out = folder.good(command);
        assert!(out.contains("red\\u{1b}[31m") && !out.contains('\u{1b}'), "{out}");
    }
}
