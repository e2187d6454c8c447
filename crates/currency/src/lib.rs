//! Judges whether files are current: the one definition that `status` and `rerun` share.
//!
//! In: a store and paths. Out: the steps behind the paths, each with the [`Reason`]s why it is
//! stale.
//!
//! Invariant: recorded data is read through `workflow`, `query`, `store` and `contents` only.
//! Nothing is executed and nothing is changed here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod judgement;
mod planned_step;
mod staleness;
mod whole_run;

pub use error::{Error, Result};
pub use judgement::plan;
pub use planned_step::PlannedStep;
pub use staleness::{Reason, held};
