//! Writes recorded provenance in formats that other tools read.
//!
//! In: a store and a [`Request`]. Out: a file, a directory or a stream in one of the formats of
//! [`ALL`].
//!
//! - [`View::load`] reads the requested part of the graph as plain data, with the steps behind it
//!   ([`backstory_workflow::steps`]).
//! - A [`Format`] writes a view; each has a file in `formats/`.
//! - [`export`] writes to a file or directory completely or not at all.
//!
//! Invariant: recorded data is read through `workflow`, `query`, `store` and `contents` only.
//! Absent on purpose: any dependency on how events were captured.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod file_contents;
pub mod format;
pub mod hermeticity;
pub mod image_tree;
pub mod inventory;
pub mod sandbox;
pub mod unfinished;
pub mod view;

mod atomic_output;
mod error;
mod family;
mod formats;
mod registry;

pub use atomic_output::{export, export_to};
pub use backstory_workflow::Subject;
pub use error::{Error, Result};
pub use family::Family;
pub use format::{Format, Shape, Target};
pub use formats::{OpmElement, dot_string, opm_elements, opm_value};
pub use registry::{ALL, find, names};
pub use view::{Level, Request, View};
