//! A catalog of several levels keeps every name, in one transaction and over many.

use brickmap::{ArraySpec, Dtype, EntryKind, Selection, Store};

/// A number that no neighbour has, in an order that is not the names' order.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

#[test]
fn names_in_any_order_are_found_after_many_transactions() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("names.brick")).unwrap();
    let mut writer = store.writer().unwrap();
    let name = |n: u64| format!("group {}/a rather long name of an array {:08x}", n % 7, scattered(n));
    for n in 0..6000 {
        writer.create_array(&name(n), &ArraySpec::new(Dtype::U64, [1])).unwrap();
        writer.write(&name(n), &Selection::all(), &[n]).unwrap();
        let attributes = serde_json::json!({ "n": n, "text": "x".repeat((scattered(n) % 2000) as usize) });
        writer.set_attributes(&name(n), attributes.as_object().unwrap()).unwrap();
        // Small and large transactions, so that pages of each level are met both stored and edited.
        if n < 200 || n % 500 == 0 {
            writer.commit().unwrap();
        }
    }
    let snapshot = writer.commit().unwrap();
    for n in 0..6000 {
        assert_eq!(snapshot.array(&name(n)).unwrap().get::<u64>(&[0]).unwrap(), n);
        assert_eq!(snapshot.attributes(&name(n)).unwrap()["n"], n);
    }
    assert_eq!(snapshot.entries().unwrap().len(), 6007);
    assert_eq!(snapshot.entries_below("group 3").unwrap().len(), 6000 / 7);
    assert_eq!(snapshot.kind("group 3").unwrap(), Some(EntryKind::Group));
    assert_eq!(snapshot.kind("group 33").unwrap(), None);

    // Attributes are taken away again, in another order, and overwritten.
    for n in (0..6000).rev().step_by(3) {
        writer.set_attributes(&name(n), &serde_json::Map::new()).unwrap();
        if n % 100 == 0 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    let store = Store::open(store.path()).unwrap();
    let snapshot = store.snapshot();
    for n in 0..6000 {
        let kept = (5999 - n) % 3 != 0;
        assert_eq!(snapshot.attributes(&name(n)).unwrap().contains_key("n"), kept);
    }
    assert_eq!(store.verify().unwrap().findings, []);
}
