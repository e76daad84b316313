//! Every mistake is told with its way out, and with exit code 2; what fails gives 1.

use crate::support::{Folder, npy};

#[test]
fn mistakes_with_files() {
    let folder = Folder::new();
    folder.write("text.brick", b"hello, this is not a store");
    folder.write("a.npy", &npy("|u1", false, &[1], &[1]));
    folder.write("empty.brick", b"");
    std::fs::create_dir(folder.path("folder.brick")).unwrap();
    for command in ["info", "ls", "verify"] {
        folder.bad(&format!("{command} missing.brick"), 2, "there is no file 'missing.brick'");
    }
    folder.bad("read missing.brick a", 2, "there is no file 'missing.brick'");
    folder.bad("convert missing.npy a.brick", 2, "there is no file 'missing.npy'");
    folder.bad("convert missing.brick b.npy", 2, "there is no file 'missing.brick'");
    folder.bad("info text.brick", 1, "text.brick is not a brick file");
    folder.bad("info empty.brick", 1, "empty.brick is not a brick file: it is empty");
    folder.bad("ls a.npy", 1, "to make one of it: brickmap convert a.npy a.brick");
    folder.bad("ls folder.brick", 2, "'folder.brick' is a directory");
    folder.bad("convert a.npy nowhere/a.brick", 2, "there is no folder 'nowhere'");
    folder.bad(
        "convert a.npy a.h5",
        2,
        "'a.h5' has the extension .h5; files of .npy and .brick can be converted",
    );
    folder.bad("convert a a.brick", 2, "'a' has no extension");
    folder.bad("convert a.npy b.npy", 2, "input and output are of the same kind");
}

#[test]
fn mistakes_with_names() {
    let folder = Folder::new();
    folder.store("s.brick");
    folder.bad("read s.brick velocty/x", 2, "no array 'velocty/x'; did you mean 'velocity/x'?");
    folder.bad("read s.brick nothing-like-it", 2, "no array 'nothing-like-it'");
    folder.bad("info s.brick labls", 2, "did you mean 'labels'?");
    folder.bad("ls s.brick velocit", 2, "did you mean 'velocity'?");
    folder.bad(
        "ls s.brick labels",
        2,
        "'labels' is an array, not a group; to see what it is: brickmap info s.brick labels",
    );
    folder.bad(
        "read s.brick velocity",
        2,
        "'velocity' is a group, not an array; name an array in it, such as 'velocity/x'",
    );
    folder.bad("convert s.brick a.npy --name velocity", 2, "'velocity' is a group, not an array");
    folder.bad("convert s.brick a.npy --name velocty/x", 2, "did you mean 'velocity/x'?");
    let store = brickmap::Store::create(folder.path("empty.brick")).unwrap();
    drop(store);
    folder.bad("convert empty.brick a.npy", 2, "empty.brick has no arrays");
}

#[test]
fn mistakes_with_selections() {
    let folder = Folder::new();
    folder.store("s.brick");
    for (selection, message) in [
        ("'1:2:0'", "the step is 0"),
        ("'a'", "at character 1 ('a'): expected an index, a slice such as 2:10:2"),
        ("'20'", "index 20 is out of bounds for axis 0 with length 20"),
        ("'0, -31'", "index -31 is out of bounds for axis 1 with length 30"),
        ("'0, 0, 0'", "the selection has entries for 3 dimensions, but the array has 2"),
        ("'[0, 1'", "expected ',' or ']'"),
        ("'..., ...'", "at most one ellipsis"),
    ] {
        folder.bad(&format!("read s.brick velocity/x {selection}"), 2, message);
    }
    folder.bad(
        "read s.brick velocity/x 0 -o x.txt",
        2,
        "items are written to .npy files, and 'x.txt' is none",
    );
    folder.bad("read s.brick velocity/x 0 --force", 2, "--output");
}

#[test]
fn mistakes_with_options() {
    let folder = Folder::new();
    folder.store("s.brick");
    folder.write("a.npy", &npy("<f4", false, &[2, 2], &[0; 16]));
    for (options, message) in [
        ("--codec lz4", "codecs are auto, raw, zstd, planes and delta:STRIDE"),
        ("--codec delta:x", "the stride of delta is a number of items"),
        ("--codec raw --level 3", "--level with --codec raw, which does not compress"),
        ("--codec raw --blocks 1,1", "--blocks with --codec raw, which has no blocks"),
        ("--codec planes --profile fast", "--profile is for --codec auto"),
        ("--level 23", "23 is not in -7..=22"),
        ("--chunks 2", "a chunk shape of 1 dimensions for an array of 2"),
        ("--chunks 0,2", "give a length of at least 1 for each dimension"),
        ("--blocks 2,x", "give a length of at least 1 for each dimension"),
        ("--threads 0", "give a number from 1 to 1024"),
        ("--force --append", "cannot be used with"),
        ("--name a/../b", "has a part '.' or '..'"),
        ("--codek zstd", "--codec"),
    ] {
        folder.bad(&format!("convert a.npy a.brick {options}"), 2, message);
    }
    for option in ["--append", "--chunks 1", "--blocks 1", "--codec raw", "--profile fast", "--level 1"] {
        let message = "is for writing a .brick file, not a .npy file";
        folder.bad(&format!("convert s.brick b.npy --name velocity/x {option}"), 2, message);
    }
    folder.bad("", 2, "Usage: brickmap");
    folder.bad("reed s.brick x", 2, "read");
    assert_eq!(folder.files(), ["a.npy", "s.brick"]);
}
