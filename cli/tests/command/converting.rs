//! `convert`, there and back.

use crate::support::{Folder, noise, npy, with_header};

#[test]
fn items_of_every_dtype_come_back_byte_for_byte() {
    let structured = "[('a', '<f4'), ('b', '>i2', (3,)), ('größe', '|S3')]";
    let dtypes = [
        ("|b1", 1),
        ("|i1", 1),
        ("<i2", 2),
        ("<i4", 4),
        ("<i8", 8),
        ("|u1", 1),
        ("<u2", 2),
        ("<u4", 4),
        ("<u8", 8),
        ("<f2", 2),
        ("<f4", 4),
        ("<f8", 8),
        ("<c8", 8),
        ("<c16", 16),
        ("<M8[ns]", 8),
        ("<M8[25us]", 8),
        ("<m8", 8),
        ("|S5", 5),
        ("<U2", 8),
        ("|V3", 3),
        ("[('x', '<f4'), ('y', '>i2', (3,))]", 10),
    ];
    let folder = Folder::new();
    for (descr, itemsize) in dtypes {
        for shape in [&[][..], &[7], &[0, 3], &[5, 6, 7], &[1, 1, 1, 1]] {
            let items = noise(shape.iter().product::<u64>() as usize * itemsize);
            let file = npy(descr, false, shape, &items);
            folder.write("in.npy", &file);
            folder.good("convert in.npy out.brick --force --quiet");
            folder.good("convert out.brick back.npy --force --quiet");
            assert!(folder.bytes("back.npy") == file, "{descr} {shape:?}");
        }
    }
    // Names outside Latin-1 need version 3, for which NumPy falls back to UTF-8.
    let header =
        format!("{{'descr': {}, 'fortran_order': False, 'shape': (), }}", structured.replace('ö', "面"));
    let file = with_header(3, &header, &noise(13));
    folder.write("in.npy", &file);
    folder.good("convert in.npy out.brick --force --quiet");
    folder.good("convert out.brick back.npy --force --quiet");
    assert!(folder.bytes("back.npy") == file);
}

#[test]
fn fortran_order_and_big_endian_items_are_converted() {
    let folder = Folder::new();
    let shape = [13u64, 9, 21];
    let item = |index: [u64; 3]| (index[0] * 1000 + index[1] * 30 + index[2]) as i32;
    let mut c_order = Vec::new();
    let mut fortran_order = Vec::new();
    for a in 0..shape[0] {
        for b in 0..shape[1] {
            for c in 0..shape[2] {
                c_order.push(item([a, b, c]));
            }
        }
    }
    for c in 0..shape[2] {
        for b in 0..shape[1] {
            for a in 0..shape[0] {
                fortran_order.push(item([a, b, c]));
            }
        }
    }
    let little: Vec<u8> = c_order.iter().flat_map(|item| item.to_le_bytes()).collect();
    let expected = npy("<i4", false, &shape, &little);
    for (descr, fortran) in [("<i4", true), (">i4", true), (">i4", false)] {
        let items = if fortran { &fortran_order } else { &c_order };
        let bytes = |item: &i32| if descr == "<i4" { item.to_le_bytes() } else { item.to_be_bytes() };
        folder
            .write("in.npy", &npy(descr, fortran, &shape, &items.iter().flat_map(bytes).collect::<Vec<_>>()));
        for options in ["", "--codec raw", "--chunks 4,4,4 --blocks 2,2,2"] {
            folder.good(&format!("convert in.npy out.brick --force --quiet {options}"));
            folder.good("convert out.brick back.npy --force --quiet");
            assert!(folder.bytes("back.npy") == expected, "{descr} {fortran} {options}");
        }
    }
    folder.write("in.npy", &npy(">u2", true, &[3], &[1, 2, 3, 4, 5, 6]));
    folder.good("convert in.npy out.brick --force --quiet");
    assert_eq!(folder.json("read out.brick in"), serde_json::json!([0x0102, 0x0304, 0x0506]));
}

#[test]
fn options_say_how_the_array_is_stored() {
    let folder = Folder::new();
    folder.write("v.npy", &npy("<f4", false, &[40, 40], &noise(6400)));
    for (options, codec) in [
        ("", "auto, balanced profile, level 1"),
        ("--profile small --level 9", "auto, small profile, level 9"),
        ("--codec zstd --level -3", "zstd, level -3"),
        ("--codec planes", "planes, level 1"),
        ("--codec delta:40", "delta:40, level 1"),
    ] {
        folder.good(&format!(
            "convert v.npy v.brick -f --name a/b --chunks 20,30 --blocks 10,15 --threads 2 {options}"
        ));
        let info = folder.good("info v.brick a/b");
        for expected in [codec, "(20, 30)", "(10, 15)", "float32", "(40, 40)"] {
            assert!(info.contains(expected), "{options}: {info}");
        }
        folder.good("convert v.brick back.npy -qf");
        assert_eq!(folder.bytes("back.npy"), folder.bytes("v.npy"), "{options}");
    }
    folder.good("convert v.npy v.brick -f --codec raw");
    assert!(folder.good("info v.brick").contains("raw"));
}

#[test]
fn an_array_is_added_to_a_store() {
    let folder = Folder::new();
    folder.write("a.npy", &npy("|u1", false, &[3], &[1, 2, 3]));
    folder.write("b.npy", &npy("|u1", false, &[2], &[4, 5]));
    folder.good("convert a.npy all.brick --append --quiet");
    folder.good("convert b.npy all.brick --append --quiet --name deep/down/b");
    assert_eq!(folder.good("read all.brick a"), "[1 2 3]\n");
    assert_eq!(folder.good("read all.brick deep/down/b"), "[4 5]\n");
    folder.bad(
        "convert b.npy all.brick --append --name a",
        2,
        "all.brick has 'a' already; choose another name with --name",
    );
    folder.bad(
        "convert all.brick out.npy",
        2,
        "all.brick has 2 arrays; choose one with --name: 'a', 'deep/down/b'",
    );
    folder.good("convert all.brick out.npy --name a --quiet");
    assert_eq!(folder.bytes("out.npy"), folder.bytes("a.npy"));
    assert_eq!(folder.good("verify all.brick --quiet"), "");
}

#[test]
fn existing_files_are_replaced_only_when_told_and_only_by_whole_ones() {
    let folder = Folder::new();
    folder.write("a.npy", &npy("|u1", false, &[3], &[1, 2, 3]));
    folder.good("convert a.npy a.brick --quiet");
    let before = folder.bytes("a.brick");
    folder.bad(
        "convert a.npy a.brick",
        2,
        "'a.brick' exists already; give --force to replace it or --append to add to it",
    );
    folder.write("cut.npy", &folder.bytes("a.npy")[..130]);
    folder.bad("convert cut.npy a.brick --force", 1, "the header tells of 3 bytes of items, and 2 are there");
    folder.bad("convert a.npy a.brick --force --codec raw --chunks 1,1", 2, "chunk shape");
    // The failure comes after the temporary file is there.
    folder.bad("convert a.npy a.brick --force --name a//b", 2, "has an empty part");
    assert_eq!(folder.bytes("a.brick"), before);

    folder.bad("convert a.brick a.npy", 2, "'a.npy' exists already; give --force to replace it");
    let mut damaged = folder.bytes("a.brick");
    let len = damaged.len();
    damaged.truncate(len - 1);
    folder.write("damaged.brick", &damaged);
    folder.bad("convert damaged.brick a.npy --force", 1, "it was cut off");
    assert_eq!(folder.bytes("a.npy"), npy("|u1", false, &[3], &[1, 2, 3]));
    folder.good("convert a.brick a.npy --force --quiet");
    assert_eq!(folder.files(), ["a.brick", "a.npy", "cut.npy", "damaged.brick"]);
}

#[cfg(unix)]
#[test]
fn replacing_keeps_permissions_and_symbolic_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    folder.write("a.npy", &npy("|u1", false, &[3], &[1, 2, 3]));
    folder.write("real.brick", b"old");
    std::fs::set_permissions(folder.path("real.brick"), std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.brick", folder.path("link.brick")).unwrap();
    folder.good("convert a.npy link.brick --force --quiet");
    assert!(folder.path("link.brick").is_symlink());
    assert_eq!(folder.good("read real.brick a"), "[1 2 3]\n");
    assert_eq!(std::fs::metadata(folder.path("real.brick")).unwrap().permissions().mode() & 0o777, 0o640);
    symlink("/dev/null", folder.path("null.brick")).unwrap();
    folder.bad("convert a.npy null.brick --force", 2, "'null.brick' is there and is not a regular file");
}

#[test]
fn hostile_npy_files_are_errors() {
    let folder = Folder::new();
    let header = |text: &str| with_header(1, text, &[0; 64]);
    let deep = format!("{{'descr': {}", "[".repeat(60_000));
    for (bytes, message) in [
        (b"".to_vec(), "it is empty"),
        (b"\x93NUMP".to_vec(), "does not start with NumPy's magic"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "cut off within the header"),
        (b"\x93NUMPY\x07\x00\x00\x00".to_vec(), "version 7"),
        (header("nonsense"), "its header, character 1"),
        (header(&deep), "too deep"),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
            "more than 64 bits",
        ),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,), }"),
            "64 are there",
        ),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (8,), }"), "Python objects"),
        (header("{'descr': '<f16', 'fortran_order': False, 'shape': (4,), }"), "long double"),
    ] {
        folder.write("in.npy", &bytes);
        folder.bad("convert in.npy out.brick", 1, message);
    }
    assert_eq!(folder.files(), ["in.npy"]);
}

#[test]
fn the_summary_has_the_numbers() {
    let folder = Folder::new();
    folder.write("a.npy", &npy("<i8", false, &[1000], &[0; 8000]));
    let text = folder.good("convert a.npy a.brick");
    assert!(text.starts_with("a.brick: array 'a', int64 (1000,), 8.00 kB (stored as 0 B, -), in "), "{text}");
    let json = folder.json("convert a.npy a.brick --force");
    assert_eq!(json["bytes"], 8000);
    assert_eq!(json["shape"], serde_json::json!([1000]));
    assert_eq!(folder.good("convert a.brick b.npy --quiet"), "");
}

#[cfg(unix)]
#[test]
fn an_interrupted_conversion_leaves_nothing() {
    let folder = Folder::new();
    // Incompressible and at the highest level, so that it takes long.
    folder.write("a.npy", &npy("|u1", false, &[64 << 20], &noise(64 << 20)));
    let mut child = folder
        .command()
        .args(["convert", "a.npy", "a.brick", "--codec", "zstd", "--level", "22"])
        .spawn()
        .unwrap();
    while folder.files().len() == 1 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before the test saw its file");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.files(), ["a.npy"]);
}
