//! Records one run. In: a command. Out: the event log of its run.
//!
//! Three processes stand beside the command:
//!
//! - The *launcher* (`launcher`) is the process that the shell started. It represents the command
//!   and exits with it.
//! - The *keeper* (`keeper`) is its child and outlives the supervisor.
//! - The *supervisor* (`supervisor`) is the keeper's child. It starts the command (`launch`),
//!   drains the arena into the log (`drain`), runs the guard (`guarding`) and ends the log
//!   (`watch`). If the command is a recorded shell, each of its lines has a log (`lines`).
//!
//! Absent: the meaning of records, and everything about graphs and stores.

mod background;
mod broker;
pub mod clock;
mod clock_tick;
mod committer;
mod confirming;
mod control;
mod deep_mark;
mod deep_sink;
mod drain;
mod error;
mod fallback_responder;
mod filter_code;
mod function_tables;
#[doc(hidden)]
pub mod fuzz_entry;
mod group_signals;
mod guard_filters;
mod guard_socket;
mod guarding;
mod header;
mod identity_resolver;
mod inherited_state;
mod instruction_redirections;
mod job_rank;
mod keeper;
mod keeper_messages;
mod keeper_socket;
mod late_stop;
mod launch;
mod launcher;
mod library;
mod lines;
mod options;
mod part_lock;
mod plain_programs;
mod plain_start;
mod preserve_requests;
mod record;
mod recover;
mod redact;
mod report;
mod setting;
mod source_run;
mod supervisor;
mod sweep;
mod watch;

pub use background::spawn as spawn_in_background;
pub use backstory_abi::ENV_FUNCTIONS;
pub use clock::Moment;
pub use confirming::is_confirming;
pub use deep_mark::{deep_log_ends, let_deep_log_end};
pub use error::Error;
pub use identity_resolver::IdentityResolver;
pub use inherited_state::observe_children;
pub use library::library_path;
pub use lines::LinePolicy;
pub use options::{LineOptions, Options, RecordingResult, SimulatorOptions};
pub use part_lock::is_recording;
pub use record::{end_by_signal, record};
pub use recover::recover;
pub use redact::{Secrets, redacted_value};
pub use source_run::SourceRun;
pub use sweep::sweep;
