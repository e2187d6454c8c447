//! The time that a recorded result moved, so that another call can give the result back.

use super::ProcessMatcher;

/// When a recorded call returned, and the time that had been reached before its result was taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenTime {
    pub returned: u64,
    /// By the process.
    before: u64,
    /// By the thread that called.
    of_caller: u64,
}

impl ProcessMatcher {
    /// The result of a call that returned at this time is taken next.
    pub(super) fn taken_at(&self, returned: u64) -> TakenTime {
        TakenTime {
            returned,
            before: self.time,
            of_caller: self.threads.callers_time().unwrap_or(self.time),
        }
    }

    /// That result answered no call.
    pub(super) fn take_back(&mut self, taken: TakenTime) {
        self.matched = self.matched.saturating_sub(1);
        if self.time == taken.returned {
            self.time = taken.before;
        }
        self.threads.take_back(taken.returned, taken.of_caller);
    }
}
