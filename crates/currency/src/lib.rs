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
//! | `influence`, `reductions` | Which activities does it depend on, and until when? |
//! | `present_makers` | Which run makes the file that is at a path now? |
//! | `repetition` | Which later execution stands for an activity? |
//! | `takings` | What did an activity take in that has changed? |
//! | `step_inputs`, `looks` | Would a use of a file, or a look at it, find the same now? |
//! | `program_texts`, `name_patterns` | What does the text of a script prove? |
//! | `shell_flow` | Which children of a shell can depend on what it took in? |
//! | `step_group` | Why is a step stale? |
//! | `deciders`, `decisions`, `decision` | May a step stand alone, or did something decide on it? |
//! | `derived_views`, `library_index` | What did a program take from a file that everybody reads? |
//! | `file_state`, `present_files` | Has a file the recorded content? |
//! | `sources` | Which sources has a result, and which results has a source? |
//! | `planning`, `whole_run`, `environment` | How do stale steps run again? |
//!
//! Invariant: recorded data is read through `workflow`, `query`, `store` and `contents` only.
//! Nothing is executed and nothing is changed here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod deciders;
mod decision;
mod decisions;
mod derived_views;
mod environment;
mod error;
mod file_state;
mod file_status;
mod influence;
mod judgement;
mod kept_results;
mod library_index;
mod loaded_runs;
mod looks;
mod name_patterns;
mod planned_step;
mod planning;
mod present_files;
mod present_makers;
mod program_texts;
mod reason;
mod reductions;
mod repetition;
mod results;
mod shell_flow;
mod sources;
mod step_group;
mod step_inputs;
mod takings;
mod whole_run;

pub use error::{Error, Result};
pub use file_state::FileState;
pub use file_status::FileStatus;
pub use judgement::{FileOrigin, origin, plan, status, whole_command};
pub use kept_results::{KeptResults, kept_results};
pub use planned_step::PlannedStep;
pub use present_files::held;
pub use reason::Reason;
pub use sources::{InfluencingFile, influenced, sources};
