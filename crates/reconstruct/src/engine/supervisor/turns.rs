//! The order of threads on one resource: that of the record, as a hint.
//!
//! A thread whose turn it is not waits for a moment. It goes on when the other thread does not
//! come: that one may wait for a lock that this one has. The order of locks is not recorded.

use super::waiting::Awaited;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::ReadyTurn;
use crate::ready::IN;
use crate::resource::ResourceId;
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

    /// True if a call waits for bytes that another thread of its process writes, as into the pipe
    /// that wakes an event loop. `waits`: the descriptor is blocking.
    pub(super) fn awaits_own_bytes(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        waits: bool,
    ) -> bool {
        let knows_order = self.part.is_none() && self.in_vain[index] < MOST_IN_VAIN;
        if !knows_order || !self.owes_itself(index, id, waits) {
            return false;
        }
        // A thread is not known before its first call, so there may be one.
        let holds = self.holds_back(call, true);
        self.in_vain[index] += u32::from(!holds && !self.parked_for.is_zero());
        holds
    }

    /// The same for a wait for descriptors: for the recorded ones that `fits` accepts, or for those
    /// of the list if it has no timeout.
    pub(super) fn thread_writes_first(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        list: &[Awaited],
        timeout: Option<i64>,
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> bool {
        let awaited: Vec<ResourceId> = match (self.matchers[index].next_turn(fits), timeout) {
            (Some(turn), _) => {
                let input = turn.ready.iter().filter(|(_, events)| events & IN != 0);
                input.filter_map(|(id, _)| *id).collect()
            }
            (None, Some(_)) => Vec::new(),
            (None, None) => {
                let input = list.iter().filter(|one| one.events & IN != 0);
                input.filter_map(|one| one.resource).collect()
            }
        };
        let mut awaited = awaited.into_iter();
        awaited.any(|id| self.awaits_own_bytes(call, index, id, true))
    }
}
