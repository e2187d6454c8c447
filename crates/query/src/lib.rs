//! Answers questions about provenance. In: a store. Out: plain data. Only reads; never prints.
//!
//! - [`ancestry`] (`of`) and [`influence`] (`uses`) follow time-respecting paths in either
//!   direction, over all runs.
//! - [`files`], [`processes`], [`runs`], [`details`] and [`contents`] describe runs.
//! - [`status`] compares files with their recorded versions.
//! - [`RunFilter`] selects runs, by time, command, file and more.
//! - [`Globs`], [`FilePattern`] and [`TextPattern`] are patterns of paths and of texts.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;

mod alike;
mod contents;
mod decided;
mod error;
mod file_pattern;
mod files;
mod globs;
mod heirs;
mod lineage;
mod neighbours;
mod now;
mod replaced;
mod root;
mod run_filter;
mod runs;
mod status;
mod text_pattern;

pub use contents::{Content, Role, RunContents, born, contents, kind, known, stayed};
pub use decided::decided_since;
pub use error::{Error, Result};
pub use file_pattern::FilePattern;
pub use files::files;
pub use globs::Globs;
pub use heirs::heirs;
pub use lineage::{ancestry, influence};
pub use replaced::replaced;
pub use run_filter::RunFilter;
pub use runs::{details, processes, resolve, running, runs, runs_where};
pub use status::status;
pub use text_pattern::TextPattern;
