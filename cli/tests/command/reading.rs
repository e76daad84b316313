//! `read`: what is printed, as JSON, and as files.

use crate::support::{Folder, npy};
use serde_json::json;

#[test]
fn selections_are_those_of_numpy() {
    let folder = Folder::new();
    folder.store("s.brick");
    // The item at (a, b) is 30 a + b.
    for (selection, expected) in [
        ("'3, 4'", json!(94)),
        ("'-1, -1'", json!(599)),
        ("'2:4, :2'", json!([[60, 61], [90, 91]])),
        ("'::-10, 0'", json!([570, 270])),
        ("-3:,0", json!([510, 540, 570])),
        ("'[5, 1, 5], 1'", json!([151, 31, 151])),
        ("'..., 29, None' --quiet", json!((0..20).map(|a| [30 * a + 29]).collect::<Vec<_>>())),
        ("'[0, 0:2]'", json!([0, 1])),
        ("'5:5'", json!([])),
    ] {
        assert_eq!(folder.json(&format!("read s.brick velocity/x {selection}")), expected, "{selection}");
    }
    assert_eq!(folder.good("read s.brick /velocity/x/ '0, :3'"), "[0 1 2]\n");
    assert_eq!(folder.good("read s.brick velocity/x -1,-1"), "599\n");
    assert_eq!(folder.good("read s.brick velocity/x '0, 5:5'"), "[]\n");
}

#[test]
fn long_results_are_shortened_and_json_is_whole() {
    let folder = Folder::new();
    let items: Vec<u8> = (0..2000u16).flat_map(u16::to_le_bytes).collect();
    folder.write("a.npy", &npy("<u2", false, &[2000], &items));
    folder.good("convert a.npy a.brick --quiet");
    assert_eq!(folder.good("read a.brick a"), "[   0    1    2 ... 1997 1998 1999]\n");
    assert_eq!(folder.good("read a.brick a ::-1"), "[1999 1998 1997 ...    2    1    0]\n");
    assert_eq!(folder.json("read a.brick a"), json!((0..2000).collect::<Vec<_>>()));
}

#[test]
fn results_are_written_to_npy_files() {
    let folder = Folder::new();
    folder.store("s.brick");
    let text = folder.good("read s.brick velocity/x '2, 5:8' -o line.npy");
    assert_eq!(text, "line.npy: int32 (3,), 12 B\n");
    let items: Vec<u8> = [65i32, 66, 67].into_iter().flat_map(i32::to_le_bytes).collect();
    assert_eq!(folder.bytes("line.npy"), npy("<i4", false, &[3], &items));
    folder.bad(
        "read s.brick velocity/x 0 -o line.npy",
        2,
        "'line.npy' exists already; give --force to replace it",
    );
    let summary = folder.json("read s.brick velocity/x 0,0 -f -o line.npy");
    assert_eq!((&summary["shape"], &summary["bytes"]), (&json!([]), &json!(4)));
    assert_eq!(folder.bytes("line.npy"), npy("<i4", false, &[], &[0; 4]));
    assert_eq!(folder.good("read s.brick velocity/x -qo all.npy"), "");
    let items: Vec<u8> = (0..600i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(folder.bytes("all.npy"), npy("<i4", false, &[20, 30], &items));
}

#[test]
fn strings_and_runs_are_printed() {
    let folder = Folder::new();
    folder.store("s.brick");
    assert_eq!(folder.good("read s.brick labels"), "['one' \"it's\" '']\n");
    assert_eq!(folder.good("read s.brick labels 1"), "\"it's\"\n");
    assert_eq!(folder.json("read s.brick labels ::-1"), json!(["", "it's", "one"]));
    folder.bad("read s.brick labels -o labels.npy", 2, "'labels' has items of various lengths");
    folder.bad("convert s.brick labels.npy --name labels", 2, "'labels' has items of various lengths");

    let store = brickmap::Store::create(folder.path("r.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_ragged("runs", &[3], &[vec![1.5f32, 2.0], vec![], vec![-1.0]]).unwrap();
    writer.commit().unwrap();
    assert_eq!(folder.good("read r.brick runs"), "[[1.5, 2. ] [] [-1.]]\n");
    assert_eq!(folder.json("read r.brick runs"), json!([[1.5, 2.0], [], [-1.0]]));
    assert_eq!(folder.json("read r.brick runs 0"), json!([1.5, 2.0]));
}

#[test]
fn structures_dates_and_numbers_that_json_lacks_are_printed() {
    let folder = Folder::new();
    let items = [&1i16.to_be_bytes()[..], &f32::NAN.to_le_bytes(), &18_262i64.to_le_bytes()].concat();
    folder.write("s.npy", &npy("[('n', '>i2'), ('x', '<f4'), ('day', '<M8[D]')]", false, &[1], &items));
    folder.good("convert s.npy s.brick -q");
    assert_eq!(folder.good("read s.brick s"), "[(1, nan, '2020-01-01')]\n");
    assert_eq!(folder.json("read s.brick s 0"), json!({"n": 1, "x": "NaN", "day": "2020-01-01"}));
}
