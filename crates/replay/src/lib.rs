//! In: a store. Out: what two recordings differ in; a run played again, and how that came out.
//!
//! - [`diff`] finds the earliest divergence of two runs, or of what two versions of a file came from.
//! - [`plan`] says what has to be there for a run to be played again, and where it can be had; [`root`] is the place it is built in;
//!   [`verdict`] compares what was left with what was recorded, and says what can have made a difference.
//!
//! - [`rerun`] finds which of the steps behind a file have to be done again, and does them, through a runner of the caller's.
//!
//! Reads only through query, store and contents; knows nothing of how events were captured. Whoever runs a plan's command is the
//! caller: it may record it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod diff;
pub mod plan;
pub mod rerun;
pub mod root;
pub mod verdict;

mod error;

pub use error::{Error, Lack, Result};
