//! `Store::verify` accounts for every byte of what the writer writes, and names what is damaged.

use brickmap::{ArraySpec, Codec, Dtype, Selection, Store};

/// A store with several commits, so that there is free space, and each layout.
fn store_bytes() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("all.brick");
    let store = Store::create(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let items: Vec<f32> = (0..40 * 50 * 60).map(|n| (n as f32 * 0.01).sin()).collect();
    let spec = ArraySpec::new(Dtype::F32, [40, 50, 60]);
    writer.create_array("a/field", &spec.clone().chunks([16, 32, 64]).blocks([8, 16, 32])).unwrap();
    writer.create_array("a/raw", &spec.clone().codec(Codec::Raw).chunks([4, 50, 60])).unwrap();
    writer.create_array("constant", &spec.clone().chunks([20, 25, 30])).unwrap();
    writer.create_strings("names", &[3], &["one", "", "drei"]).unwrap();
    for round in 0..4u8 {
        writer.write("a/field", &Selection::all(), &items).unwrap();
        writer
            .write(
                "a/raw",
                &Selection::from((i64::from(round)..20, ..)),
                &items[..(20 - round as usize) * 3000],
            )
            .unwrap();
        writer.write("constant", &Selection::all(), &vec![f32::from(round); items.len()]).unwrap();
        let attributes = serde_json::json!({ "round": round, "text": "x".repeat(3000) });
        writer.set_attributes("a", attributes.as_object().unwrap()).unwrap();
        writer.commit().unwrap();
    }
    std::fs::read(&path).unwrap()
}

#[test]
fn what_the_writer_writes_is_clean() {
    let bytes = store_bytes();
    let report = Store::from_bytes(bytes).unwrap().verify().unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.groups, report.arrays), (1, 4));
    assert!(report.free_bytes > 0 && report.live_bytes > 0 && report.blocks > 30, "{report:?}");
}

#[test]
fn a_changed_block_is_named() {
    let mut bytes = store_bytes();
    let clean = bytes.clone();
    let mut named = 0;
    for at in (16384..bytes.len()).step_by(997) {
        bytes[at] ^= 1;
        let report = Store::from_bytes(bytes.clone()).unwrap().verify().unwrap();
        named += usize::from(
            report.findings.iter().any(|it| it.place.block.is_some() && it.place.chunk.is_some()),
        );
        bytes[at] = clean[at];
    }
    assert!(named > 20, "{named}");
}

#[test]
fn a_changed_root_copy_is_found() {
    for at in [0, 2048, 4096, 4096 + 2048, 8192 + 100, 12288 + 2048 + 100] {
        let mut bytes = store_bytes();
        bytes[at] ^= 0x80;
        let report = Store::from_bytes(bytes).unwrap().verify().unwrap();
        assert_eq!(report.findings.len(), 1, "{report:?}");
        assert!(report.findings[0].what.contains("copy"), "{report:?}");
    }
}

#[test]
fn bytes_behind_the_logical_end_are_counted_and_do_no_harm() {
    let mut bytes = store_bytes();
    bytes.extend_from_slice(&[7; 1000]);
    let report = Store::from_bytes(bytes).unwrap().verify().unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.tail_bytes, 1000);
}
