//! Locks on ranges of a file that belong to its open description: the kernel drops them when the last descriptor of
//! that description is closed, so that a process that dies leaves none.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

/// Locks the byte `at`, for this description alone or together with others; `false` if another one is in the way.
pub(super) fn lock(file: &File, at: u64, alone: bool) -> io::Result<bool> {
    let kind = if alone { libc::F_WRLCK } else { libc::F_RDLCK };
    let request = request(kind, at..at + 1)?;
    match uninterrupted(|| fcntl(file, FcntlArg::F_OFD_SETLK(&request))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Lets the byte `at` go.
pub(super) fn unlock(file: &File, at: u64) -> io::Result<()> {
    let request = request(libc::F_UNLCK, at..at + 1)?;
    uninterrupted(|| fcntl(file, FcntlArg::F_OFD_SETLK(&request)))?;
    Ok(())
}

/// A range that another description has locked and that meets `range`; any one of them, as the kernel likes.
pub(super) fn conflict(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let mut answer = request(libc::F_WRLCK, range)?;
    uninterrupted(|| fcntl(file, FcntlArg::F_OFD_GETLK(&mut answer)))?;
    if i32::from(answer.l_type) == libc::F_UNLCK {
        return Ok(None);
    }
    let start = u64::try_from(answer.l_start).unwrap_or(0);
    // A length of 0 stands for everything from there on.
    let len = u64::try_from(answer.l_len).ok().filter(|&len| len > 0).unwrap_or(u64::MAX);
    Ok(Some(start..start.saturating_add(len)))
}

/// Processes that hold the byte `at` for themselves alone, as far as this user may see them.
pub(super) fn holders(file: &File, at: u64) -> Vec<u32> {
    let Ok(inode) = file.metadata().map(|data| data.ino()) else { return Vec::new() };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        descriptors.filter_map(|info| std::fs::read_to_string(info.path()).ok()).any(|info| {
            info.lines().any(|line| {
                line.starts_with("lock:")
                    && line.contains("OFDLCK")
                    && line.contains("WRITE")
                    && line.contains(&format!(":{inode} {at} "))
            })
        })
    })
    .collect()
}

/// Makes a call again for as long as signals interrupt it: on network file systems a lock is asked for elsewhere, and
/// that may take time.
fn uninterrupted(mut call: impl FnMut() -> nix::Result<libc::c_int>) -> nix::Result<libc::c_int> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

fn request(kind: libc::c_int, range: Range<u64>) -> io::Result<libc::flock> {
    let number = |value: u64| libc::off_t::try_from(value).map_err(|_| io::ErrorKind::InvalidInput);
    Ok(libc::flock {
        l_type: libc::c_short::try_from(kind).map_err(|_| io::ErrorKind::InvalidInput)?,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: number(range.start)?,
        l_len: number(range.end - range.start)?,
        l_pid: 0,
    })
}
