//! Answers questions about provenance. In: a store. Out: plain data. Only reads; never prints.
//!
//! - [`ancestry`] (`of`) and [`influence`] (`uses`) follow time-respecting paths in either
//!   direction, over all runs.
//! - [`files`], [`processes`], [`runs`], [`details`] and [`contents`] describe runs.
//! - [`status`] compares files with their recorded versions.
//! - [`Globs`] are patterns of paths to leave out.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;

mod alike;
mod contents;
mod decided;
mod error;
mod files;
mod globs;
mod heirs;
mod lineage;
mod neighbours;
mod now;
mod replaced;
mod root;
mod runs;
mod status;

pub use contents::{Content, Role, RunContents, born, contents, kind, known, stayed};
pub use decided::decided_since;
pub use error::{Error, Result};
pub use files::files;
pub use globs::Globs;
pub use heirs::heirs;
pub use lineage::{ancestry, influence};
pub use replaced::replaced;
pub use runs::{details, processes, resolve, runs};
pub use status::status;
