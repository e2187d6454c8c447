//! Brings a file up to date: runs those recorded steps behind it again whose inputs or outputs have
//! changed.
//!
//! In: the [`PlannedStep`]s of `backstory_currency`, with the reasons why they are stale. Out:
//! their execution ([`execution::bring_up_to_date`]) through the caller's runner.

pub mod execution;

pub use backstory_currency::{PlannedStep, Reason, plan};
