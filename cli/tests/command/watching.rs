//! `watch`, and what `info` says of readers and space.

use crate::support::Folder;
use brickmap::{ArraySpec, Dtype, OpenOptions, Selection, Store};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn watch_prints_each_commit_with_what_it_changed() {
    let folder = Folder::new();
    folder.store("s.brick");
    let mut watch = folder
        .command()
        .args(["watch", "s.brick", "--interval", "0.01", "--count", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "s.brick: generation 2");
    let store = OpenOptions::new().write(true).open(folder.path("s.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_array("pressure", &ArraySpec::new(Dtype::F32, [3, 4])).unwrap();
    writer.write("velocity/x", &Selection::new([3, 4]), &[-1i32]).unwrap();
    writer.commit().unwrap();
    assert!(lines.next().unwrap().starts_with("generation 3, "));
    assert_eq!(lines.next().unwrap(), "  added    pressure (3, 4)");
    assert_eq!(lines.next().unwrap(), "  changed  velocity/x (20, 30)");
    let attributes = json!({ "run": 7 });
    writer.set_attributes("", attributes.as_object().unwrap()).unwrap();
    writer.commit().unwrap();
    assert!(lines.next().unwrap().starts_with("generation 4, "));
    assert_eq!(lines.next().unwrap(), "  changed  the store's attributes");
    assert_eq!(lines.next(), None);
    assert!(watch.wait().unwrap().success());
}

#[test]
fn watch_refuses_what_cannot_be() {
    let folder = Folder::new();
    folder.store("s.brick");
    folder.bad("watch s.brick --interval 0", 2, "give seconds");
    folder.bad("watch none.brick", 2, "there is no file 'none.brick'");
}

#[test]
fn info_tells_who_reads_and_what_is_free() {
    let folder = Folder::new();
    folder.store("s.brick");
    let info = folder.json("info s.brick");
    assert_eq!((&info["readers"], &info["generation"]), (&json!([]), &json!(2)));
    let reader = Store::open(folder.path("s.brick")).unwrap();
    let store = OpenOptions::new().write(true).open(folder.path("s.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.write("velocity/x", &Selection::all(), &vec![5i32; 600]).unwrap();
    let newest = writer.commit().unwrap();
    let info = folder.json("info s.brick");
    // The old state is read by one handle, and by the one that the writer came from.
    assert_eq!((&info["readers"], &info["generation"]), (&json!([2, 3]), &json!(3)));
    assert_eq!(info["reclaimable_bytes"], newest.free_bytes().unwrap());
    assert!(newest.free_bytes().unwrap() > 0);
    let text = folder.good("info s.brick");
    assert!(text.contains("readers     at generation 2, 3"), "{text}");
    drop((reader, store, writer, newest));
    assert!(folder.good("info s.brick").contains("readers     none"));
}
