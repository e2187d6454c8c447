//! Tells how a file came to be, or what came from it, in the commands that a person would have
//! written.
//!
//! In: a store, and the lineage of a file from `query`. Out: an [`Account`]: commands and the files
//! that flow between them, from the file to the sources or to the results.
//!
//! ```text
//! lineage ── commands ── flow ── Account ── siblings ── lines for a reader
//! ```
//!
//! - [`commands`] decides which processes are one command.
//! - [`flow`] joins the processes of a lineage to commands, and finds the files between them.
//! - [`siblings`] joins commands that differ in the names of files only.
//! - [`Account::narrow`] and [`Account::way`] answer narrower questions.
//! - [`patterns`] writes many paths as one.
//! - [`weights`] says which steps a reader needs most.
//! - [`command_touches`] joins the processes that touched a file to commands.
//! - [`run_files`] lists the files of a run with the commands that used them.
//! - [`packages`] counts the files of packages.
//!
//! Invariant: only the activities and entities on the lineage are read, and the activities above
//! them. Absent: text for terminals and JSON, which belong to `cli`; replays and exports, whose
//! steps are those of `workflow`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account;
mod chain;
mod commands;
mod flow;
mod importance;
mod named_files;
mod narrow;
mod packages;
mod patterns;
mod run_files;
mod siblings;
mod touched;
mod why;

pub use account::{Account, AccountRun, Command, Heading, PathNode};
pub use backstory_packages::PackageTally;
pub use backstory_query::Direction;
pub use backstory_workflow::{Error, Result};
pub use importance::{Weight, weights};
pub use narrow::Narrowing;
pub use packages::packages;
pub use patterns::{pattern, pattern_text};
pub use run_files::{CommandFile, RunFiles, run_files};
pub use siblings::{CommonWord, Siblings, siblings};
pub use touched::{CommandTouch, command_touches};
pub use why::WayStep;
