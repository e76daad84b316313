//! Handing a snapshot over to another process.
//!
//! Only three roots are in the file, and the one of the snapshot may not be among them any more. So a token carries the
//! root record itself, without the list of alive generations, which is read from the file.

use super::{OpenOptions, Snapshot, Store};
use crate::error::{Error, Result};
use crate::format::{Root, checksum};
use std::path::Path;

const ID_LEN: usize = 16;
/// What a root record says before its list of alive generations.
const ROOT_LEN: usize = 136;
const LEN: usize = ID_LEN + ROOT_LEN + 8;

impl Snapshot {
    /// Bytes that stand for this state of the store: with them [`OpenOptions::open_snapshot`] opens the same state in another
    /// process, as long as this snapshot is held. Of one that was taken while the next commit was just being published, and of some where over
    /// 118 generations are held, the file does not say that they are; then it is [`Error::Gone`] all the same.
    pub fn token(&self) -> Vec<u8> {
        let root = Root { alive: Vec::new(), ..self.root().clone() };
        let mut token = self.file_id().to_vec();
        token.extend_from_slice(&root.encode()[..ROOT_LEN]);
        token.extend_from_slice(&checksum(&token).to_le_bytes());
        token
    }
}

impl OpenOptions {
    /// Opens the store at `path` in the state of a snapshot that another handle holds, in this process or another;
    /// `token` is that of [`Snapshot::token`]. [`Store::refresh`] goes on from there.
    ///
    /// ```
    /// use brickmap::{OpenOptions, Store};
    ///
    /// # let path = std::env::temp_dir().join(format!("brickmap-token-{}.brick", std::process::id()));
    /// let store = Store::create(&path)?;
    /// let snapshot = store.snapshot();
    /// let token = snapshot.token();
    /// // In another process, while a writer goes on:
    /// let there = OpenOptions::new().open_snapshot(&path, &token)?;
    /// assert_eq!(there.snapshot().generation(), snapshot.generation());
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), brickmap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`]; [`Error::Gone`] if nobody holds that state any more and its space may have been used
    /// again; [`Error::Replaced`] if there is another store at `path` now; [`Error::InvalidArgument`] for bytes that are
    /// no token.
    pub fn open_snapshot(&self, path: impl AsRef<Path>, token: &[u8]) -> Result<Store> {
        let (file_id, root) = parse(token)?;
        Store::open_file(path.as_ref(), self, Some((file_id, root)))
    }
}

fn parse(token: &[u8]) -> Result<([u8; ID_LEN], Root)> {
    let invalid = || Error::invalid("bytes that are not the token of a snapshot");
    let token: &[u8; LEN] = token.try_into().map_err(|_| invalid())?;
    let (said, sum) = token.split_at(LEN - 8);
    if checksum(said).to_le_bytes() != sum {
        return Err(invalid());
    }
    let (id, root) = said.split_at(ID_LEN);
    let root = Root::parse_start(root).map_err(|_| invalid())?;
    Ok((id.try_into().map_err(|_| invalid())?, root))
}
