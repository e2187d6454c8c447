//! Brings a file up to date: runs those recorded steps behind it again whose inputs or outputs have
//! changed.
//!
//! In: the [`PlannedStep`]s of `backstory_currency`, with the reasons why they are stale. Out:
//! their execution ([`execution::bring_up_to_date`]) through the caller's runner.
//!
//! | module | question that it answers |
//! | --- | --- |
//! | [`unit_files`] | What did the commands of a step do to files? |
//! | [`kept_files`] | Which files are taken as they are? |
//! | [`refusals`] | What would a step destroy, and what can it not reproduce? |
//! | [`work_list`] | Which of the steps may run? |
//! | [`hazards`] | What must the user agree to before? |
//! | [`execution`] | In which order do they run? |
//! | [`output_states`] | Has the step made its outputs? |
//! | [`set_aside`] | What becomes of the old outputs? |
//! | [`overwritten_files`] | Which former files can `undo` bring back? |
//! | [`restored_files`] | Which files did a failed step get back? |
//! | [`faithful_copy`] | What belongs to a file beside its bytes? |
//! | [`divergence`] | Why does a step give other bytes from the same inputs? |

pub mod divergence;
pub mod execution;
pub mod faithful_copy;
pub mod hazards;
mod inode_state;
pub mod kept_files;
pub mod output_states;
pub mod overwritten_files;
pub mod refusals;
pub mod restored_files;
pub mod set_aside;
pub mod unit_files;
pub mod work_list;

pub use backstory_currency::{PlannedStep, Reason, held, plan};
