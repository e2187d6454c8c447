//! In: a store. Out: answers to questions about provenance, as plain data. Reads only; never prints.
//!
//! [`ancestry`] (`of`) and [`influence`] (`uses`) follow time-respecting paths in either direction, over all runs; [`files`],
//! [`processes`], [`runs`], [`details`], [`contents`] tell of runs; [`status`] compares files with what is remembered of them.
//! Patterns to leave paths out are [`Globs`].

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
mod now;
mod replaced;
mod root;
mod runs;
mod status;
mod steps;

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
