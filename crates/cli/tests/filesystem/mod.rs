//! `backstory watch --filesystem`: what any process does in a file system is recorded, without a
//! mount point of ours.
//!
//! All tests need root. They mount file systems of their own below temporary directories.
#![allow(clippy::unwrap_used)]

mod gaps;
mod names;
mod recorded;
mod watched;
