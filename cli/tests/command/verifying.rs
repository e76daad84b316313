//! `verify`.

use crate::support::{Folder, flip};
use serde_json::{Value, json};

#[test]
fn a_whole_file_is_clean() {
    let folder = Folder::new();
    folder.store("s.brick");
    let text = folder.good("verify s.brick");
    assert!(text.starts_with("s.brick: no damage; 2 arrays, 1 group, "), "{text}");
    assert_eq!(folder.good("verify s.brick --quiet"), "");
    let report = folder.json("verify s.brick");
    assert_eq!(
        (&report["clean"], &report["findings"], &report["arrays"]),
        (&json!(true), &json!([]), &json!(2))
    );
    assert_eq!(folder.good("verify s.brick s.brick --json").lines().count(), 2);
}

#[test]
fn damage_is_named_by_array_chunk_and_block() {
    let folder = Folder::new();
    // Incompressible, so that the items can be found in the file.
    let store = brickmap::Store::create(folder.path("s.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let spec = brickmap::ArraySpec::new(brickmap::Dtype::U8, [64, 64]).chunks([32, 64]).blocks([16, 64]);
    writer.create_array("speed", &spec).unwrap();
    let items = crate::support::noise(4096);
    writer.write("speed", &brickmap::Selection::all(), &items).unwrap();
    writer.commit().unwrap();
    drop((writer, store));

    // In the second block of the second chunk.
    let bytes = folder.bytes("s.brick");
    let offset = bytes.windows(32).position(|window| window == &items[3200..3232]).unwrap();
    flip(&folder.path("s.brick"), offset);
    let done = folder.run("verify s.brick");
    assert_eq!((done.code, &done.err[..]), (Some(1), ""), "{}", done.out);
    assert!(done.out.contains("array 'speed', chunk [1, 0], block 1"), "{}", done.out);
    assert!(done.out.contains("s.brick: 1 damaged place; 1 array"), "{}", done.out);
    let done = folder.run("verify s.brick --json");
    assert_eq!(done.code, Some(1));
    let report: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["clean"], false);
    let finding = &report["findings"][0];
    assert_eq!(
        json!([finding["array"], finding["chunk"], finding["block"]]),
        json!(["speed", [1, 0], 1]),
        "{finding}"
    );
    // What is whole can still be read, what is not is an error that says where.
    assert_eq!(folder.good("read s.brick speed 0,0"), format!("{}\n", items[0]));
    folder.bad("read s.brick speed 60,0", 1, "array 'speed', chunk [1, 0], block 1");
    folder.bad("convert s.brick out.npy", 1, "damaged: ");
    assert_eq!(folder.files(), ["s.brick"]);
}

#[test]
fn files_that_cannot_be_opened_are_damaged() {
    let folder = Folder::new();
    folder.store("s.brick");
    let whole = folder.bytes("s.brick");
    folder.write("cut.brick", &whole[..whole.len() - 64]);
    folder.write("text.brick", b"no store");
    for (name, message) in [("cut.brick", "it was cut off"), ("text.brick", "not a brick file")] {
        let done = folder.run(&format!("verify {name} s.brick"));
        assert_eq!(done.code, Some(1), "{name}");
        assert!(done.out.contains(message) && done.out.contains(name), "{}", done.out);
        assert!(done.out.contains("s.brick: no damage"), "{}", done.out);
    }
}
