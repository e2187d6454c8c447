//! Compares recorded runs, replays them, and brings results up to date.
//!
//! In: a store. Out: differences, a replay and its verdict, or the steps that are stale.
//!
//! - [`diff`] finds the earliest difference between two runs, or between the ancestries of two
//!   versions of a file.
//! - [`plan`] says what a replay needs and where it is available. [`root`] builds the file system
//!   of the replay. [`verdict`] compares the result with the record, and names possible causes of
//!   differences.
//! - [`rerun`] finds the stale steps behind a file, and runs them through the caller's
//!   [`rerun::execution::StepRunner`].
//!
//! Invariant: recorded data is read through `workflow`, `query`, `store` and `contents` only. The
//! caller runs a plan's command, and may record it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod diff;
pub mod plan;
pub mod rerun;
pub mod root;
pub mod verdict;

mod error;

pub use error::{Error, Lack, Result};
