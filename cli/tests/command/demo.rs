//! `demo`, on small data.

use crate::support::Folder;
use serde_json::json;

#[test]
fn the_demo_shows_its_numbers_and_leaves_nothing() {
    let folder = Folder::new();
    let text = folder.good("demo --small --dir .");
    for expected in [
        "volume (30, 52, 50) of float32",
        "box 32 x 32 x 32",
        "generations\nseen, 0 mixed",
        "no damage",
        "All is as it should be",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(folder.files(), Vec::<String>::new());
}

#[test]
fn the_demo_prints_json_and_keeps_its_file() {
    let folder = Folder::new();
    let report = folder.json("demo --small --dir . --keep");
    assert_eq!(report["followed"]["mixed"], 0);
    assert_eq!(report["followed"]["commits"], 5);
    assert_eq!(report["verified"]["findings"], 0);
    assert!(report["read"].as_array().unwrap().len() > 5);
    let file = report["file"].as_str().unwrap();
    let info = folder.json(&format!("info {file} density"));
    assert_eq!(info["entries"][0]["shape"], json!([30, 52, 50]));
    assert_eq!(folder.files().len(), 1);
    folder.bad("demo --dir missing", 2, "cannot make a folder in 'missing'");
}
