//! The caller and the circumstances of an event, while it is folded.

use backstory_eventlog::event::{Outcome, Pid, Time, Via};
use backstory_files::Ident;

use crate::model::Certainty;
use crate::serial::Serial;

/// Errors that mean that no file has this name.
const ENOENT: i32 = -2;
const ENOTDIR: i32 = -20;

/// The caller and the circumstances of the event that is being folded.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallContext {
    pub(super) time: Time,
    pub(super) pid: Pid,
    pub(super) tid: Pid,
    pub(super) epoch: Serial,
    pub(super) via: Via,
    pub(super) outcome: Outcome,
    pub(super) ident: Option<Ident>,
    pub(super) resolved: bool,
}

impl CallContext {
    /// True if the call is known to have succeeded.
    pub(super) fn ok(&self) -> bool {
        self.outcome.value().is_some_and(|v| v >= 0)
    }

    /// True if no file had the name.
    pub(super) fn absent(&self) -> bool {
        matches!(self.outcome.value(), Some(ENOENT | ENOTDIR))
    }

    /// How certain the outcome makes the operation.
    pub(super) fn certainty(&self) -> Certainty {
        match self.outcome {
            Outcome::Unknown => Certainty::Possible,
            _ => Certainty::Seen,
        }
    }
}
