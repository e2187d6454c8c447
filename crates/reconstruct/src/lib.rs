//! Runs recorded programs again against virtual resources that a deep log feeds.
//!
//! - [`RecordedRun`] arranges a deep log by process and resource.
//! - [`matcher`] gives each call of the new execution its recorded result, whatever the lengths of
//!   reads and writes, and finds the first divergence.
//! - [`engine`] starts the program under a filter of system calls and responds to its calls.
//!
//! In: a [`backstory_deep::DeepLog`]. Out: a [`verdict::Reconstruction`].
//! `docs/design/deep-replay.md` says why it is so. Invariant: the log alone answers for a recorded
//! resource.
//!
//! Absent: the namespaces and the files of the root, which belong to `backstory-replay`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod behind_start;
pub mod control;
mod dates;
pub mod divergence;
pub mod engine;
pub mod error;
mod exact;
mod file_writes;
pub mod input;
pub mod log_context;
mod made_processes;
pub mod matcher;
mod names;
pub mod omitted;
pub mod origin;
mod other_part;
pub mod output;
mod pipe_ends;
pub mod process;
mod questions;
mod random_bytes;
pub mod read_files;
pub mod read_log;
pub mod ready;
pub mod recorded;
mod related;
pub mod request;
pub mod resource;
pub mod search;
mod selection;
pub mod shift;
pub mod sighting;
pub mod temporary_names;
pub mod time;
mod time_spans;
pub mod unit;
mod used;
pub mod verdict;
pub mod volatile;
pub mod window;

pub use error::Error;
pub use read_log::ReadLog;
pub use recorded::RecordedRun;
