//! Brings a file up to date: runs those recorded steps behind it again whose inputs or outputs have
//! changed.
//!
//! In: the [`PlannedStep`]s of `backstory_currency`, with the reasons why they are stale. Out:
//! their execution ([`execution::bring_up_to_date`]) through the caller's runner.
//!
//! | module | question that it answers |
//! | --- | --- |
//! | [`work_list`] | Which of the steps may run? |
//! | [`hazards`] | What must the user agree to before? |
//! | [`execution`] | In which order do they run? |
//! | [`output_states`] | Has the step touched any of its outputs? |
//! | [`set_aside`] | What becomes of the old outputs? |
//! | [`divergence`] | Why does a step give other bytes from the same inputs? |

pub mod divergence;
pub mod execution;
pub mod hazards;
mod inode_state;
pub mod output_states;
pub mod set_aside;
pub mod work_list;

pub use backstory_currency::{PlannedStep, Reason, held, plan};
