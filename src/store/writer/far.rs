//! Offsets around and beyond 4 GiB, in a file with a hole below.

use crate::{ArraySpec, Backend, Codec, Dtype, OpenOptions, Selection, Store};
use std::path::Path;

const FOUR_GIB: u64 = 1 << 32;
const ITEMS: u64 = 3000;

fn items(generation: u64) -> Vec<u64> {
    (0..ITEMS).map(|index| (index ^ generation).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
}

fn check(path: &Path, backend: Backend) {
    let store = OpenOptions::new().backend(backend).threads(1).open(path).unwrap();
    let snapshot = store.snapshot();
    for name in ["raw", "a"] {
        let array = snapshot.array(name).unwrap();
        assert!(array.read::<u64>(&Selection::all()).unwrap() == items(snapshot.generation()), "{name}");
    }
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

fn overwrite(store: &Store, path: &Path) {
    let mut writer = store.writer().unwrap();
    let items = items(writer.next_generation());
    writer.write("raw", &Selection::all(), &items).unwrap();
    // The chunk that both selections meet in is read to write the second.
    writer.write("a", &"[:1500]".parse().unwrap(), &items[..1500]).unwrap();
    writer.write("a", &"[1500:]".parse().unwrap(), &items[1500..]).unwrap();
    writer.commit().unwrap();
    check(path, Backend::Mmap);
    check(path, Backend::Pread);
}

#[test]
fn fault_22_offsets_past_4_gib_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("far.brick");
    for backend in [Backend::Mmap, Backend::Pread] {
        let store = OpenOptions::new().backend(backend).threads(1).create(&path).unwrap();
        let mut writer = store.writer().unwrap();
        let hole = writer.space.take(FOUR_GIB - 4096 - writer.space.end()).unwrap();
        let spec = ArraySpec::new(Dtype::U64, [ITEMS]).chunks([1024]).blocks([256]);
        writer.create_array("raw", &spec.clone().codec(Codec::Raw)).unwrap();
        writer.create_array("a", &spec).unwrap();
        // The hole is free, but as if the generation that this handle has pinned had used it.
        writer.space.release(hole, 1);
        let end = writer.commit().unwrap().file_bytes();
        assert!((FOUR_GIB - 4096..FOUR_GIB).contains(&end), "the next run crosses the boundary: {end}");
        drop(writer);

        for _ in 0..2 {
            overwrite(&store, &path);
        }
        let reader = OpenOptions::new().backend(backend).open(&path).unwrap();
        let array = reader.array("raw").unwrap();
        if backend == Backend::Mmap && cfg!(target_endian = "little") {
            assert!(array.view_checked::<u64>(&Selection::all()).unwrap() == items(4));
        }
        let end = reader.snapshot().file_bytes();
        assert!(end > FOUR_GIB + 2 * 8 * ITEMS, "{end}");
        let free = reader.snapshot().free_bytes().unwrap();
        assert!(free >= hole.len, "{free}");

        // Let go of, the hole is written to once no root lists who used it.
        store.refresh().unwrap();
        overwrite(&store, &path);
        let before = store.refresh().unwrap();
        overwrite(&store, &path);
        let after = store.refresh().unwrap();
        assert_eq!(after.file_bytes(), before.file_bytes());
        let mut start = [0; 64];
        store.shared.storage.read_at(hole.offset, &mut start).unwrap();
        assert_ne!(start, [0; 64]);
        assert!(array.read::<u64>(&Selection::all()).unwrap() == items(4));
        std::fs::remove_file(&path).unwrap();
    }
}
