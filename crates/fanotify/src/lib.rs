//! Records what any process does in a whole file system, by the kernel's notifications (fanotify).
//!
//! In: a directory of the file system, the options of a run. Out: a run like any other.
//!
//! ```text
//! kernel ── notifications ──> event_batch ──> event_recorder ──> OperationLog ──> arena ──> log
//!                                                  │  open_uses: what was opened, and how?
//!                                                  ├─ directory_table: which path?
//!                                                  └─ CallerTable (crate callers): which process?
//! ```
//!
//! Invariants:
//!
//! - No process waits for this crate: it never asks to permit an operation.
//! - A notification names a file by a handle. The handle's path is found by directories and names
//!   that the notifications themselves tell. So files that are gone keep their paths.
//! - Everything that this crate knows to be missing becomes a reason of the run.
//!
//! Absent: look-ups, memory mappings, attributes, operations that failed, and the times of
//! operations. A record has the time at which its notification was read.

mod directory_table;
mod error;
mod event_batch;
mod event_recorder;
mod filesystem_watch;
mod open_uses;

pub use error::Error;
pub use filesystem_watch::{FilesystemNews, FilesystemTarget, watch};
