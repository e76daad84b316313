//! How new files get their names.
//!
//! A file is made under a temporary name beside the one that it is for, and gets that one when it is whole. The temporary
//! name follows from the other, so that whoever comes next finds what a killed process left.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// File systems take names of 255 bytes; longer ones are told apart by their checksum.
const LONGEST: usize = 240;

/// Where a file named `path` is made.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let mut temporary = OsString::from(".");
    if name.len() <= LONGEST {
        temporary.push(name);
    } else {
        let sum = twox_hash::XxHash3_64::oneshot(name.as_encoded_bytes());
        temporary.push(format!("{sum:016x}"));
    }
    temporary.push(".brick-new");
    path.with_file_name(temporary)
}

/// The path without symbolic links, also where its last part is a link to a name that is free, or is free itself.
pub(super) fn resolve(path: &Path) -> io::Result<PathBuf> {
    /// As many links as Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = std::fs::canonicalize(directory(&path))?;
        let whole = directory.join(name);
        match std::fs::read_link(&whole) {
            Ok(target) => path = directory.join(target),
            Err(_) => return Ok(whole),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The directory that `path` is in.
pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new(OsStr::new(""))).unwrap_or(Path::new("."))
}

/// Waits until the names in the directory of `path` are on the disk.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let directory = match File::open(directory(path)) {
        // Files may be made in it, but nobody may see which: nothing more can be done.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        outcome => outcome?,
    };
    match directory.sync_all() {
        // File systems that know no such thing write names at once, or when they like.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        outcome => outcome,
    }
}

/// Renames a file, to a name that must be free.
pub(super) fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use nix::errno::Errno;
        use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
        match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {}
            outcome => return outcome.map_err(io::Error::from),
        }
    }
    std::fs::hard_link(from, to)?;
    // A second name that stays does no harm; the next writer takes it away.
    let _ = std::fs::remove_file(from);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_stand_beside_and_are_not_too_long() {
        assert_eq!(temporary(Path::new("a/b.brick")), Path::new("a/.b.brick.brick-new"));
        assert_eq!(temporary(Path::new("b")), Path::new(".b.brick-new"));
        let long = temporary(Path::new(&"x".repeat(255)));
        assert!(long.as_os_str().len() < 255);
        assert_ne!(long, temporary(Path::new(&"y".repeat(255))));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_to_free_names_too() {
        let directory = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(directory.path()).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, real.join(name)).unwrap();
        link("b", "a");
        link("c", "b");
        assert_eq!(resolve(&real.join("a")).unwrap(), real.join("c"));
        assert_eq!(resolve(&real.join("./d")).unwrap(), real.join("d"));
        link("round", "round");
        assert!(resolve(&real.join("round")).is_err());
        assert!(resolve(&real.join("none/d")).is_err());
    }

    #[test]
    fn a_file_is_renamed_to_a_free_name_only() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        let error = rename_to_free(&from, &to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&to).unwrap(), b"old");
        std::fs::remove_file(&to).unwrap();
        rename_to_free(&from, &to).unwrap();
        assert!(!from.exists() && std::fs::read(&to).unwrap() == b"new");
    }
}
