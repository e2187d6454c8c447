//! The domain library of steps: the commands that a person would have written, found in what ran.
//!
//! In: a store. Out: a [`recording::Recording`] of each run in memory, and the [`steps`] that its processes amount to. [`paths`]
//! says to whom a path belongs, [`shell`] writes words that a shell reads back.
//!
//! Reads only through query and store. Formats, replays and the command line are the callers' business.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod paths;
pub mod recording;
pub mod selection;
pub mod shell;
pub mod steps;

mod error;

pub use error::{Error, Result};
pub use selection::{Selection, Subject};
