//! How long work tells how far it has come, and is told to stop.

use crate::error::{Error, Result};
use std::ops::ControlFlow;

/// How far long work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Called now and then with the progress of long work. `Break` cancels it.
pub type ProgressCallback<'a> = dyn Fn(Progress) -> ControlFlow<()> + Sync + 'a;

impl Progress {
    /// Tells `callback`, if there is one.
    pub(crate) fn tell(self, callback: Option<&ProgressCallback<'_>>) -> Result<()> {
        match callback.map(|callback| callback(self)) {
            Some(ControlFlow::Break(())) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}
