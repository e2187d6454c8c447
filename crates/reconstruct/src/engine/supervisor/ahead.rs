//! Threads that are ahead of the others of their process.
//!
//! The record has no order of threads between their calls. So a thread that has come to the end of
//! its record may be too early. Another one may be about to end the process, or to set a variable
//! that ends a loop. The end of a wait, which takes no time here, may be too early as well.
//!
//! Invariant: such a thread waits only while another one of its process may do something, or is in
//! a recorded wait. The wait has a bound. Two threads never wait for each other by this: a thread
//! behind its record is in no recorded wait.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::process::ReadyTurn;
use std::time::Duration;

/// Behind its record, a thread lets the others go on for so long at most, if output is missing that
/// came before the next signal.
const MOST_BEFORE_SIGNAL: Duration = Duration::from_secs(60);

/// Behind its record, a thread lets the others go on for so long at most, if no output is missing.
const MOST_BEHIND_RECORD: Duration = Duration::from_secs(10);

/// Behind its record, a thread waits so long before a signal while all others sleep. One of them
/// may be about to wake up.
const FOR_SLEEPERS: Duration = Duration::from_millis(20);

/// A thread that looks for a file that does not exist lets the others go on for so long at most.
const MOST_FOR_FILE: Duration = Duration::from_secs(2);

/// A wait with a timeout takes its time for so long at most.
const MOST_OF_TIMEOUT: Duration = Duration::from_secs(2);

impl Supervisor {
    /// True if a call behind the record waits, because another thread of its process may still do
    /// something. That may come before the next signal, or end the wait.
    pub(super) fn threads_go_on(&mut self, call: &NotifiedCall, index: usize) -> bool {
        let matcher = &self.matchers[index];
        if matcher.rest.threads.is_empty() {
            return false;
        }
        let next = matcher.rest.signals.front();
        let longest = match next.is_some_and(|(_, time)| matcher.owes(&self.resources, *time)) {
            true => MOST_BEFORE_SIGNAL,
            false => MOST_BEHIND_RECORD,
        };
        let lets_wake = next.is_some() && self.parked_for < FOR_SLEEPERS;
        let lets_wait = self.parked_for < longest && self.another_waits(call, index);
        (lets_wake || lets_wait) && self.stays_in(call) || self.lets_others(call, longest)
    }

    /// True if a wait of another thread of the process is recorded, and takes its time.
    fn another_waits(&self, call: &NotifiedCall, index: usize) -> bool {
        let group = self.group_of(call);
        let mut others = self.staying.iter().filter(|tid| **tid != call.tid);
        others.any(|tid| {
            let is_own = self.groups.get(tid) == Some(&group);
            is_own && self.matchers[index].next_call(*tid).is_some()
        })
    }

    /// True if a call that looks for a missing file waits. Its thread has no further recorded call,
    /// and the record does not have this one. In the record, the process can have ended before it.
    pub(super) fn looks_too_early(&mut self, call: &NotifiedCall, index: usize) -> bool {
        self.has_no_further_call(call, index) && self.lets_others(call, MOST_FOR_FILE)
    }

    /// True if other threads of a whole run may have recorded calls, and the caller has none.
    pub(super) fn has_no_further_call(&self, call: &NotifiedCall, index: usize) -> bool {
        let matcher = &self.matchers[index];
        let has_threads = !matcher.rest.threads.is_empty();
        self.part.is_none() && has_threads && matcher.next_call(call.tid).is_none()
    }

    /// True if the next recorded wait that `fits` accepts was over because its time was up, and
    /// this one takes its time, too. `timeout`: in ns.
    pub(super) fn time_is_not_up(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        timeout: Option<i64>,
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> bool {
        let is_over = self.matchers[index].next_time_up(fits).is_some();
        is_over && timeout.is_some_and(|timeout| self.lasts_on(call, index, timeout))
    }

    /// True if a wait takes its time, because another thread of the process may do something
    /// meanwhile. `timeout`: in ns.
    pub(super) fn lasts_on(&mut self, call: &NotifiedCall, index: usize, timeout: i64) -> bool {
        let longest = MOST_OF_TIMEOUT.min(Duration::from_nanos(timeout.max(0) as u64));
        let has_threads = !self.matchers[index].rest.threads.is_empty();
        has_threads && self.part.is_none() && self.lets_others(call, longest)
    }

    /// True while another thread of the process may do something, up to a bound.
    fn lets_others(&mut self, call: &NotifiedCall, longest: Duration) -> bool {
        self.parked_for < longest
            && self.may_do_something(self.group_of(call), call.tid)
            && self.stays_in(call)
    }

    /// The caller stays in its call, so no other thread waits for it. Always true.
    fn stays_in(&mut self, call: &NotifiedCall) -> bool {
        self.staying.insert(call.tid);
        true
    }
}
