//! In: a store. Out: the provenance of a run or a file in a format that other tools read.
//!
//! - [`View::load`] reads the asked part of the graph as plain data, at the asked level of detail, with the [`backstory_workflow::steps`] behind it: the
//!   commands that a person would have written.
//! - A [`Format`] writes a view down; [`ALL`] lists them, one file each in `formats/`.
//! - [`export`] writes it to a file or directory completely or not at all.
//!
//! Reads only through query, store and contents; knows nothing of how events were captured.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod file_contents;
pub mod format;
pub mod image_tree;
pub mod inventory;
pub mod sandbox;
pub mod unfinished;
pub mod view;

mod atomic_output;
mod error;
mod formats;

pub use atomic_output::{export, export_to};
pub use backstory_workflow::Subject;
pub use error::{Error, Result};
pub use format::{ALL, Family, Format, Shape, Target, find, names};
pub use formats::dot_string;
pub use view::{Level, Request, View};
