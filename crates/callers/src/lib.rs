//! Finds the processes behind operations on files that a source of the kernel reports, and writes
//! the records of these operations.
//!
//! In: the id of a thread that sent a request, or of a process that caused an event. Out: the
//! caller as the records name it, and records in the arena.
//!
//! ```text
//! request ──> caller_table ──> operation_log ──> arena
//! event   ──────────┘
//!                 (process_news: the kernel; observers, process_facts: /proc)
//! ```
//!
//! Invariants:
//!
//! - No two processes share an identity. A process that cannot be identified is an unknown process.
//! - The record of a process precedes the records of its operations.
//!
//! Absent: what the operations mean, and where requests and events come from.

mod caller_table;
mod descriptor_limit;
mod observers;
mod open_numbers;
mod operation_log;
mod process_facts;
mod process_news;

pub use caller_table::{Caller, CallerTable, EndedProcesses, PathShown};
pub use descriptor_limit::raise_descriptor_limit;
pub use open_numbers::OpenNumbers;
pub use operation_log::{Operation, OperationLog};
pub use process_news::NewsSocket;
