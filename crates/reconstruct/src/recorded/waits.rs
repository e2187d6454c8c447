//! Arranges the waits for several descriptors.

use super::{Arranging, ended};
use crate::process::{HandlerRun, ReadyTurn};
use crate::ready::{epoll_events, poll_list};
use backstory_abi::deep;
use backstory_deep::Call;
use libc::c_long;

impl Arranging {
    pub(super) fn turn(&mut self, call: &Call, ready: Vec<(i32, u32)>) {
        // `select` fails if one of its descriptors leads nowhere.
        let is_closed = call.result == -i64::from(libc::EBADF);
        if is_closed || is_sleep(call) || call.result == 0 && self.polls_kernel_only(call) {
            // A new execution takes it for a sleep, or leaves it to the kernel.
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
            thread: call.tid,
            child_ended: None,
        };
        self.add_turn(call, turn);
    }

    pub(super) fn epoll_turn(&mut self, call: &Call) {
        if call.result <= 0 && self.has_kernel_only(call.fd) {
            // A new execution leaves it to the kernel.
            self.last_was_wait = false;
            return;
        }
        let events = call.entered_at(1).map(epoll_events).unwrap_or_default();
        let registered = &self.registered;
        let of = |(events, data)| (registered.get(&(call.fd, data)).copied(), events);
        let turn = ReadyTurn {
            ready: events.into_iter().map(of).collect(),
            value: call.result,
            time: ended(call),
            thread: call.tid,
            child_ended: None,
        };
        self.add_turn(call, turn);
    }

    /// Adds a wait. The record of a handler that ran in it came before its own, so it was taken for
    /// one that ran behind the wait before.
    fn add_turn(&mut self, call: &Call, mut turn: ReadyTurn) {
        if self.in_outline {
            return;
        }
        let ends = self.child_signals.get(&call.tid);
        let last = ends.and_then(|times| times.last().copied());
        turn.child_ended = last.filter(|time| *time >= call.time);
        if let Some(before) = self.process.turns.back_mut()
            && turn.child_ended.is_some()
            && before.child_ended == turn.child_ended
        {
            let returned = before.time;
            let signals = self.process.signals.iter().rev();
            let mut behind = signals.take_while(|(_, time)| *time >= returned);
            let own = behind.find(|(signal, time)| *signal == libc::SIGCHLD && *time < call.time);
            before.child_ended = own.map(|(_, time)| *time);
        }
        self.process.turns.push_back(turn);
    }

    /// True if `poll` waited for the kernel's own objects alone. The sets of `select` do not say
    /// for what it waited when its time was up.
    fn polls_kernel_only(&self, call: &Call) -> bool {
        let list = poll_list(call.entered_at(0).unwrap_or_default());
        let mut fds = list.iter().map(|(fd, ..)| *fd).filter(|fd| *fd >= 0);
        let is_poll = matches!(c_long::from(call.number), libc::SYS_poll | libc::SYS_ppoll);
        is_poll && fds.all(|fd| self.is_kernels(fd) == Some(true))
    }

    /// True if a set of epoll has the kernel's own objects alone, or nothing. A closed descriptor
    /// leaves its sets.
    fn has_kernel_only(&self, set: i32) -> bool {
        let Some(set) = self.table.get(&set) else {
            return false;
        };
        let members = self.members.get(set);
        let mut members = members.into_iter().flatten();
        self.run.resources[*set].is_kernel_object()
            && members.all(|(fd, was_known)| *was_known && self.is_kernels(*fd) != Some(false))
    }

    /// Whether a descriptor leads to one of the kernel's own objects. `None`: it leads nowhere, or
    /// no call has said where.
    fn is_kernels(&self, fd: i32) -> Option<bool> {
        let id = self.table.get(&fd)?;
        Some(self.run.resources[*id].is_kernel_object())
    }

    /// A handler of a signal began.
    pub(super) fn signal(&mut self, call: &Call) {
        let signal = call.result as i32;
        self.process.signals.push_back((signal, call.time));
        let handled = self.handled.entry(call.tid).or_default();
        handled.push((signal, call.time));
        let open = self.open_handlers.entry(call.tid).or_default();
        open.push(self.process.handlers.len());
        self.process.handlers.push(HandlerRun {
            signal,
            time: call.time,
            thread: call.tid,
            in_call: false,
            next_call: u64::MAX,
        });
        if signal != libc::SIGCHLD {
            return;
        }
        let signals = self.child_signals.entry(call.tid).or_default();
        signals.push(call.time);
        if let Some(turn) = self.process.turns.back_mut()
            && self.last_was_wait
        {
            turn.child_ended = Some(call.time);
        }
    }

    /// Notes the end of a child that a thread learned of in its last read, or between that and this
    /// call. The record of a handler that ran in a call comes before that of the call.
    pub(super) fn note_child_end(&mut self, call: &Call) {
        if call.in_handler {
            return;
        }
        let last_read = self.last_reads.remove(&call.tid);
        let Some(signals) = self.child_signals.get_mut(&call.tid) else {
            return;
        };
        if let Some((began, returned)) = last_read {
            let near = began..call.time;
            let last = signals.iter().rfind(|time| near.contains(*time));
            let last = last.map(|time| (returned, *time));
            self.process.child_ends.extend(last);
        }
        signals.retain(|time| *time >= call.time);
    }

    /// Notes where the handlers ran that a thread has run since its call before: in this one, or
    /// before it. A sleep is no such call.
    pub(super) fn note_handlers(&mut self, call: &Call) {
        if call.in_handler || is_sleep(call) {
            return;
        }
        let open = self.open_handlers.remove(&call.tid);
        for at in open.into_iter().flatten() {
            if let Some(ran) = self.process.handlers.get_mut(at) {
                ran.in_call = ran.time >= call.time;
                ran.next_call = call.time;
            }
        }
    }

    pub(super) fn register(&mut self, call: &Call) {
        let member = call.b as i32;
        if call.result == 0
            && let Some(set) = self.table.get(&call.fd)
        {
            let members = self.members.entry(*set).or_default();
            match call.a as i32 {
                libc::EPOLL_CTL_DEL => members.remove(&member),
                _ => members.insert(member, self.table.contains_key(&member)),
            };
        }
        let event = call.section(deep::LEFT, 3).map(epoll_events);
        if let Some((_, data)) = event.and_then(|events| events.first().copied())
            && let Some(id) = self.table.get(&member)
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

/// True for `poll` and `select` without descriptors whose time was up, or that a signal
/// interrupted. Calls that failed have no lists in the log, so the number of descriptors tells.
fn is_sleep(call: &Call) -> bool {
    let number = c_long::from(call.number);
    let polls = matches!(number, libc::SYS_poll | libc::SYS_ppoll);
    let selects = matches!(number, libc::SYS_select | libc::SYS_pselect6);
    let is_empty = match call.result {
        0 => has_no_descriptor(call),
        result => result == -i64::from(libc::EINTR) && call.a == 0,
    };
    (polls || selects) && is_empty
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
