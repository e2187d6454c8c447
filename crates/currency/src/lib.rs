//! Judges whether files are current: the one definition that `status` and `rerun` share.
//!
//! In: a store and paths. Out: the [`FileStatus`] of each file ([`status`]), or the steps behind
//! the files, each with the [`Reason`]s why it is stale ([`plan`]). [`origin`] has the steps for
//! exports. `docs/currency.md` states the rules.
//!
//! | module | question that it answers |
//! | --- | --- |
//! | `judgement` | Is a result current, and which steps are stale? |
//! | `results` | Which recorded version does a path stand for? |
//! | `reach` | Which runs and activities are behind it? |
//! | `step_group` | Why is a step stale? |
//! | `step_inputs` | Would a step find the same file now? |
//! | `decided` | Has a program decided anew since? |
//! | `derived_views`, `library_index` | What did a program take from a file that everybody reads? |
//! | `file_state`, `present_files` | Has a file the recorded content? |
//! | `planning`, `whole_run`, `environment` | How do stale steps run again? |
//!
//! Invariant: recorded data is read through `workflow`, `query`, `store` and `contents` only.
//! Nothing is executed and nothing is changed here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod decided;
mod derived_views;
mod environment;
mod error;
mod file_state;
mod file_status;
mod judgement;
mod kept_results;
mod library_index;
mod loaded_runs;
mod planned_step;
mod planning;
mod present_files;
mod reach;
mod reason;
mod results;
mod step_group;
mod step_inputs;
mod whole_run;

pub use error::{Error, Result};
pub use file_state::FileState;
pub use file_status::FileStatus;
pub use judgement::{FileOrigin, origin, plan, status};
pub use kept_results::{KeptResults, kept_results};
pub use planned_step::PlannedStep;
pub use present_files::held;
pub use reason::Reason;
