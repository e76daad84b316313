//! Running the command in a folder of its own, and making files for it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that the command runs in.
pub(crate) struct Folder(tempfile::TempDir);

/// What the command did.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names of the files, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brickmap"));
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs the command with arguments that are separated by white space; what is in single quotes is one.
    pub(crate) fn run(&self, line: &str) -> Done {
        let output = self.command().args(arguments(line)).output().unwrap();
        Done {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the command, which must do what it is asked without a word on standard error, and returns what it prints.
    #[track_caller]
    pub(crate) fn good(&self, line: &str) -> String {
        let done = self.run(line);
        assert_eq!((done.code, &done.err[..]), (Some(0), ""), "{line}: {}", done.out);
        done.out
    }

    /// As [`Folder::good`], for a command that prints JSON.
    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.good(&format!("{line} --json"))).unwrap()
    }

    /// Runs the command, which must fail with `code` and print nothing but one line that has `message` in it.
    #[track_caller]
    pub(crate) fn bad(&self, line: &str, code: i32, message: &str) {
        let done = self.run(line);
        assert_eq!(done.code, Some(code), "{line}: {}", done.err);
        assert!(done.err.contains(message), "{line}: {}", done.err);
        assert_eq!(done.out, "", "{line}");
        assert!(!done.err.contains("panicked"), "{line}: {}", done.err);
    }

    /// Makes `name`, a store with the array `velocity/x`, i32 numbers of the shape (20, 30), and the strings `labels`.
    pub(crate) fn store(&self, name: &str) {
        let store = brickmap::Store::create(self.path(name)).unwrap();
        let mut writer = store.writer().unwrap();
        let spec = brickmap::ArraySpec::new(brickmap::Dtype::I32, [20, 30]).chunks([8, 16]).blocks([4, 16]);
        writer.create_array("velocity/x", &spec).unwrap();
        let items: Vec<i32> = (0..600).collect();
        writer.write("velocity/x", &brickmap::Selection::all(), &items).unwrap();
        writer.create_strings("labels", &[3], &["one", "it's", ""]).unwrap();
        let attributes = serde_json::json!({"unit": "m/s"});
        writer.set_attributes("velocity/x", attributes.as_object().unwrap()).unwrap();
        writer.commit().unwrap();
    }
}

fn arguments(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    for (n, part) in line.split('\'').enumerate() {
        if n % 2 == 1 {
            arguments.push(part.to_owned());
        } else {
            arguments.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    arguments
}

/// A `.npy` file as `numpy.save` writes it.
pub(crate) fn npy(descr: &str, fortran_order: bool, shape: &[u64], items: &[u8]) -> Vec<u8> {
    let lens: String = shape.iter().map(|len| format!("{len}, ")).collect();
    let tuple = if shape.len() == 1 { lens.trim_end() } else { lens.trim_end_matches(", ") };
    let order = if fortran_order { "True" } else { "False" };
    let descr = if descr.starts_with('[') { descr.to_owned() } else { format!("'{descr}'") };
    let mut header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({tuple}), }}");
    let growing = if fortran_order { shape.last() } else { shape.first() };
    if let Some(len) = growing {
        header.push_str(&" ".repeat(21 - len.to_string().len()));
    }
    with_header(1, &header, items)
}

/// A `.npy` file of any version with any header.
pub(crate) fn with_header(version: u8, header: &str, items: &[u8]) -> Vec<u8> {
    let length_size = if version == 1 { 2 } else { 4 };
    let padding = 64 - (8 + length_size + header.len() + 1) % 64;
    let len = (header.len() + padding + 1) as u32;
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    file.extend(&len.to_le_bytes()[..length_size]);
    file.extend(header.as_bytes());
    file.resize(file.len() + padding, b' ');
    file.push(b'\n');
    file.extend(items);
    file
}

/// Bytes without a pattern.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Flips the lowest bit of a byte of a file.
pub(crate) fn flip(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
