//! What the command does, as a user sees it: what it prints, which files it leaves, which exit codes it gives.

mod compacting;
mod converting;
mod demo;
mod errors;
mod listing;
mod reading;
mod support;
mod verifying;
mod watching;
