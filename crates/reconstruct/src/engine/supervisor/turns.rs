//! The order of threads on one resource: that of the record, as a hint.
//!
//! A thread whose turn it is not waits for a moment. It goes on when the other thread does not
//! come: that one may wait for a lock that this one has. The order of locks is not recorded.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use std::time::Duration;

/// A call waits for its turn so long, also while all other threads sleep.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Calls of a process that wait for their turn in vain, before none waits any more.
const MOST_IN_VAIN: u32 = 16;

impl Supervisor {
    /// Parks a call if the next recorded one on its resource, which returned at this time, was
    /// another thread's.
    pub(super) fn awaits_turn(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        next: Option<u64>,
    ) -> Option<Response> {
        if self.part.is_some() {
            // Other threads may serve the requests that are fed.
            return None;
        }
        let movers = &self.matchers[index].rest.movers;
        let mover = *movers.get(&next?)?;
        if self.in_vain[index] >= MOST_IN_VAIN || mover == self.recorded_thread(call.tid, index) {
            return None;
        }
        let waits = self.parked_for < LONGEST_WAIT || self.holds_back(call, false);
        self.in_vain[index] += u32::from(!waits);
        waits.then_some(Response::Park)
    }
}
