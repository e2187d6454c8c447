//! Arranges the waits for several descriptors.

use super::{Arranging, ended};
use crate::process::ReadyTurn;
use crate::ready::epoll_events;
use backstory_abi::deep;
use backstory_deep::Call;

impl Arranging {
    pub(super) fn turn(&mut self, call: &Call, ready: Vec<(i32, u32)>) {
        if call.result == 0 && has_no_descriptor(call) {
            // A new execution takes it for a sleep, and for no wait.
            self.last_was_wait = false;
            return;
        }
        // A program may wait for a descriptor before it first reads from it.
        let ready = ready.into_iter();
        let ready = ready.map(|(fd, events)| (Some(self.behind(fd, 0)), events));
        let turn = ReadyTurn {
            ready: ready.collect(),
            value: call.result,
            time: ended(call),
            child_ended: None,
        };
        self.process.turns.push_back(turn);
    }

    pub(super) fn epoll_turn(&mut self, call: &Call) {
        let events = call.entered_at(1).map(epoll_events).unwrap_or_default();
        let registered = &self.registered;
        let of = |(events, data)| (registered.get(&(call.fd, data)).copied(), events);
        let turn = ReadyTurn {
            ready: events.into_iter().map(of).collect(),
            value: call.result,
            time: ended(call),
            child_ended: None,
        };
        self.process.turns.push_back(turn);
    }

    /// A handler of a signal began.
    pub(super) fn signal(&mut self, call: &Call) {
        let signal = call.result as i32;
        self.process.signals.push_back(signal);
        let handled = self.handled.entry(call.tid).or_default();
        handled.push((signal, call.time));
        if let Some(turn) = self.process.turns.back_mut()
            && self.last_was_wait
            && signal == libc::SIGCHLD
        {
            turn.child_ended = Some(call.time);
        }
    }

    pub(super) fn register(&mut self, call: &Call) {
        let event = call.section(deep::LEFT, 3).map(epoll_events);
        if let Some((_, data)) = event.and_then(|events| events.first().copied())
            && let Some(id) = self.table.get(&(call.b as i32))
        {
            self.registered.insert((call.fd, data), *id);
        }
    }
}

/// True for `poll` and `select` without descriptors. The log has the list and the sets that were
/// passed.
fn has_no_descriptor(call: &Call) -> bool {
    (0..=3).all(|arg| call.entered_at(arg).is_none_or(<[u8]>::is_empty))
}
