//! The guard: a seccomp filter, and the threads that receive its notifications.
//!
//! In: the listener of a filter. Out: one or more records for every watched call, wherever in a
//! program it was made. The guard observes and lets every call go on; it emulates nothing. It sees
//! attempts, and concludes their outcome from the file system where that leaves no doubt.
//!
//! ```text
//! table ──> filter           which calls notify
//!   └─────> decode           arguments ──> DecodedCall   (memory, arguments, callers)
//!              │
//! receiver ──> call_handler ──> call_logger ──> conclude ──> call_records ──> RecordSink
//!                   │              │            (caller_files, path_resolver, mounts)
//!                   │              ├──> deferred         concluded after the response
//!                   │              └──> preserve_queue   parked while contents are preserved
//!                   ├──> uring            calls about rings
//!                   ├──> held_call        calls that wait until the log is durable
//!                   ├──> recorder_request requests of recorders
//!                   └──> simulator        calls of programs that the byte engine executes
//! ```
//!
//! - `guard_state` is shared by all threads. `receivers` starts them, `threads` wakes and ends
//!   them. `prepared_receivers` does the most part of the start before the filter exists.
//! - `notification_buffers` outlives the supervisor in the keeper, and `release` continues calls
//!   there.
//! - `descriptor_tracker` lists the descriptors of processes without a recorder.
//! - `exit_watcher` awaits the exits of processes.
//! - `stuck_receivers` acts when all receivers wait for a program's memory.
//!
//! Absent: the meaning of records, the log, and how contents are preserved. `hooks` has the
//! services of the supervisor for the guard.

mod announced_change;
mod arguments;
mod call_handler;
mod call_logger;
mod call_records;
mod caller;
mod caller_files;
mod callers;
mod change_preserver;
mod conclude;
mod conclude_change;
mod conclude_open;
mod conclusion;
mod continued_call;
mod decode;
mod decoded_call;
mod deferred;
mod descriptor_list;
mod descriptor_tracker;
mod environment;
mod exit_watcher;
pub mod filter;
#[doc(hidden)]
pub mod fuzz_entry;
mod guard_state;
mod hash;
mod held_call;
mod hooks;
mod later_calls;
mod memory;
mod mounts;
mod new_process;
mod notification_buffers;
mod on_demand;
mod own_names;
mod parked_call;
mod path_resolver;
mod pending_effect;
mod prepared_receivers;
mod preserve_queue;
mod process_map;
mod receiver;
mod receivers;
mod record_fields;
mod record_writer;
mod recorder_request;
mod release;
mod resolved_file;
mod response;
mod rights;
mod simulator;
mod stuck_receivers;
pub mod table;
mod threads;
mod uring;

pub use announced_change::{AnnouncedChange, KeptRecord};
pub use filter::{Filter, FilterSpec, InstallError};
pub use hooks::{
    ChangeKind, ContentChange, ContentPreserver, Effort, EffortExceeded, FindFile, FoundFile,
    GuardSettings, Hooks, PreservedContent,
};
pub use mounts::MountFacts;
pub use notification_buffers::{Notification, NotificationBuffers, SharedBuffers};
pub use parked_call::ParkedCall;
pub use prepared_receivers::PreparedReceivers;
pub use receivers::Receivers;
pub use record_writer::RecordWriter;
pub use release::{continue_all, continue_pending, continue_received};
pub use simulator::Simulator;
pub use stuck_receivers::StuckReceiverMonitor;
