//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod census;
mod inner_calls;
mod kept;
mod verdict_file;
mod verdict_times;
mod verdicts;
