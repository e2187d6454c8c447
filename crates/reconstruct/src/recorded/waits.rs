//! Arranges the waits for several descriptors.

use super::{Arranging, ended};
use crate::process::ReadyTurn;
use crate::ready::{epoll_events, poll_list};
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

/// True for `poll` and `select` without descriptors. `poll` leaves out those below 0. The log has
/// the sets of `select` as the kernel left them. So a set with room for descriptors counts as one
/// that had some.
fn has_no_descriptor(call: &Call) -> bool {
    let list = poll_list(call.entered_at(0).unwrap_or_default());
    let mut sets = 1..=3;
    list.iter().all(|(fd, ..)| *fd < 0)
        && sets.all(|arg| call.entered_at(arg).is_none_or(<[u8]>::is_empty))
}

#[cfg(test)]
mod tests {
    use super::has_no_descriptor;
    use backstory_abi::deep;
    use backstory_deep::{Call, Section};

    /// A call with these bytes at an argument.
    fn with(arg: u16, bytes: Vec<u8>) -> Call {
        let kind = deep::ENTERED;
        Call {
            sections: vec![Section { kind, arg, bytes }],
            ..Call::default()
        }
    }

    /// A `struct pollfd` that nothing ended.
    fn entry(fd: i32) -> Vec<u8> {
        [&fd.to_le_bytes()[..], &1u16.to_le_bytes(), &[0; 2]].concat()
    }

    #[test]
    fn a_wait_is_a_sleep_only_if_it_has_no_descriptor() {
        assert!(has_no_descriptor(&Call::default()));
        for arg in 0..=3 {
            assert!(has_no_descriptor(&with(arg, Vec::new())));
        }
        assert!(has_no_descriptor(&with(0, entry(-1))));
        assert!(!has_no_descriptor(&with(0, [entry(-1), entry(3)].concat())));
        for arg in 1..=3 {
            assert!(!has_no_descriptor(&with(arg, vec![0; 8])));
        }
    }
}
