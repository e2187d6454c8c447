//! Events: the operations of a run, independent of their observer.
//!
//! An event is the decoded form of one record of the log: process, time, operation and outcome.
//! Paths and arguments are bytes as the program gave them. Only [`Via`] says how an event was
//! captured.

use backstory_files::Ident;

pub use crate::described::{Described, WordRole};
pub use crate::operation::{
    Bytes, CWD, FunctionStep, MetadataPart, Op, Pid, PreserveMethod, ResourceAccess, Spawn,
    ThreadStep, ValuePointer,
};

/// Nanoseconds since 1970-01-01 UTC, converted from the log's time-stamp counter with the run's
/// clock frames.
pub type Time = i64;

/// Ids above this represent processes whose ids were not observed. No kernel gives such ids, and
/// each represents one process of one log.
pub const UNNUMBERED: Pid = 1 << 30;

backstory_vocabulary::vocabulary! {
    /// The observer of an event.
    pub enum Via: "observer" {
        /// The recorder in the process.
        Library = "library",
        /// The guard's supervisor, through a notification.
        Kernel = "kernel",
        /// Another tool, whose log was imported. No log and no store has this word: it is the
        /// answer for all events of such a run ([`crate::run::RunHeader::observer`]).
        Import = "import",
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It returned this: at least 0, or `-errno`.
    Done(i32),
    /// The supervisor concluded this from the file system. It did not see the call return.
    Predicted(i32),
    /// Unknown: the process died in the call, or only the attempt was seen. A successful `exec`
    /// never returns.
    Unknown,
}

impl Outcome {
    /// The return value, seen or predicted.
    pub fn value(self) -> Option<i32> {
        match self {
            Outcome::Done(v) | Outcome::Predicted(v) => Some(v),
            Outcome::Unknown => None,
        }
    }

    /// True if the call is known (or predicted) to have failed.
    pub fn failed(self) -> bool {
        self.value().is_some_and(|v| v < 0)
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The start of the call.
    pub time: Time,
    /// Process id.
    pub pid: Pid,
    /// Thread id.
    pub tid: Pid,
    /// The observer.
    pub via: Via,
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The identity of the file concerned. Its exact meaning depends on the operation (see
    /// `backstory_abi.h`).
    pub ident: Option<Ident>,
    /// Path strings are absolute, because the guard resolved them in the caller's view.
    pub resolved: bool,
    /// The operation.
    pub op: Op,
}
