//! The domain library of workflows: the commands that a person would have written, found in the
//! processes that ran.
//!
//! In: a store. Out: the [`Selection`] of runs behind a run or a file, each as a
//! [`recording::Recording`] in memory, and the [`steps`] that its processes amount to.
//!
//! - [`ownership`] decides whether a file is the user's own, and which package provides it. Answers
//!   use it.
//! - [`callers_files`] are logs of whole runs, which are no results.
//! - [`paths`] decides by the text of a path whether it belongs to the system or to a tool:
//!   one part of that decision.
//! - [`shell`] quotes words so that a shell reads them back.
//! - [`tools`] knows programs and paths by name; the user can extend it.
//!
//! Invariant: the crate reads recorded data through `query` and `store` only. Absent on purpose:
//! formats, replays and the command line, which use this crate.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ownership;
pub mod paths;
pub mod recording;
pub mod selection;
pub mod shell;
pub mod steps;
pub mod tools;

mod callers_files;
mod error;

pub use callers_files::callers_files;
pub use error::{Error, Result};
pub use selection::{Selection, Subject};
