//! Waits, writes and reads that a signal interrupted in the record, as that of a child or a timer.
//!
//! The signal comes from the kernel, when the child ends again, or the time of the timer is up
//! again. Input that came later is there from the beginning, so it waits until then. Servers allow
//! a signal only while they wait (`ppoll`). So the kernel makes such a wait, on nothing else than
//! the signal.
//!
//! A write takes the recorded part of its bytes, or none, when its signals are there. The kernel
//! holds them back while the call waits for its answer, so their handlers run behind the call. A
//! timer of the program sends its signal again. A signal that does not come is sent. The same holds
//! for a read that got no byte.

use super::child_waits::has_ended;
use super::data::waits_for_room;
use super::processes::{Role, state_and_time};
use super::signal_sets::{bit, handled_signals, is_for_thread, own_mask};
use super::tool::BEGINS_AGAIN;
use super::waiting::Ready;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::output::Interruption;
use crate::process::{HandlerRun, ReadyTurn, RecordedProcess};
use crate::resource::ResourceId;
use backstory_sys as sys;
use libc::*;
use std::io;

/// The signals that a terminal sends for its keys and for another size of its window.
const OF_TERMINALS: [i32; 4] = [SIGINT, SIGQUIT, SIGTSTP, SIGWINCH];

/// A list of descriptors in a thread's memory: its address, the bytes of the thread, and those that
/// are there while it waits.
pub(super) type HiddenList = (u64, Vec<u8>, Vec<u8>);

impl Supervisor {
    /// The answer to a wait if the next recorded one was interrupted.
    pub(super) fn interruption(&mut self, call: &NotifiedCall, index: usize) -> Option<Ready> {
        let thread = self.only_thread(call, index);
        loop {
            let next = self.matchers[index].rest.turns.front()?;
            let is_own = thread.is_none_or(|thread| thread == next.thread);
            if next.value != -i64::from(EINTR) || !is_own {
                return None;
            }
            let (time, waited) = (next.time, next.thread);
            let alarm = self.alarm_in_wait(call, index, (waited, time));
            let alarm_is_awaited = alarm.is_some_and(|ran| self.alarm_may_come(index, &ran));
            // In this order: a child that ends in between has sent its signal.
            let waits = alarm_is_awaited || self.awaits_child(call, index, time);
            let comes = self.is_interrupted(call).unwrap_or(false);
            if waits && !comes {
                return Some(Ready::Later);
            }
            let rings = alarm.is_some() && is_pending(call, SIGALRM);
            if let Some(ran) = alarm.filter(|_| rings || !comes) {
                self.ends_alarm(index, &ran, rings);
            }
            let matcher = &mut self.matchers[index];
            matcher.rest.turns.pop_front();
            if comes {
                matcher.matched += 1;
                matcher.reached(time);
                return Some(Ready::Interrupted);
            }
        }
    }

    /// The handler of `SIGALRM` that ran in a wait of a thread, which returned at this time.
    ///
    /// `None`: another signal interrupted the wait, or the thread does not handle this one now. In
    /// a process with several threads, another one may get it.
    fn alarm_in_wait(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        (thread, returned): (u32, u64),
    ) -> Option<HandlerRun> {
        if self.due[index].is_empty() || !self.matchers[index].rest.threads.is_empty() {
            return None;
        }
        self.pass_handlers(index);
        let found = self.due[index].last_in_call(thread, returned);
        let ran = found.filter(|ran| ran.signal == SIGALRM)?;
        let (handled, _) = handled_signals(call.tid, own_mask(call).ok()?).ok()?;
        (handled & bit(SIGALRM) != 0).then_some(ran)
    }

    /// The signal of a timer has interrupted its wait, or does not come any more.
    fn ends_alarm(&mut self, index: usize, ran: &HandlerRun, comes: bool) {
        self.due[index].remove(ran);
        if comes {
            let signals = &mut self.matchers[index].rest.signals;
            signals.retain(|one| *one != (ran.signal, ran.time));
        } else {
            self.due[index].miss();
        }
    }

    /// True if a child is to end before this wait does. In the record, its signal was there when
    /// the wait ended.
    pub(super) fn child_ends_first(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> bool {
        let next = self.matchers[index].next_turn(fits);
        let ended = next.and_then(|turn| turn.child_ended);
        ended.is_some_and(|time| self.awaits_child(call, index, time))
    }

    /// The same for a read. `read`: when the recorded one returned.
    pub(super) fn child_ends_in_read(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        read: u64,
    ) -> bool {
        let ended = self.matchers[index].rest.child_ends.get(&read).copied();
        ended.is_some_and(|time| self.awaits_child(call, index, time))
    }

    /// True if a child runs that had ended before this time in the record, and it may still end.
    pub(super) fn awaits_child(&mut self, call: &NotifiedCall, index: usize, time: u64) -> bool {
        let children = self.late_children(call, index, time);
        !children.is_empty() && self.may_end(call.tid, children)
    }

    /// True if a child still computes that had ended before this connection came in the record. A
    /// server may make other children when it ends. Only one that computes counts: the end of
    /// another one may belong to a request that is left out.
    pub(super) fn has_late_child(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        connection: Option<u64>,
    ) -> bool {
        let late = connection.map(|time| self.late_children(call, index, time));
        let late = late.unwrap_or_default();
        // Its last call may not have been received yet.
        let computes = |pid: &u32| {
            let state = state_and_time(*pid).map(|(state, _)| state);
            matches!(state, Some('R' | 'D')) || self.may_do_something(*pid, call.tid)
        };
        late.iter().any(computes) && self.may_end(call.tid, late)
    }

    /// The children that run and had ended before this time in the record. A new one may have made
    /// no call yet.
    fn late_children(&self, call: &NotifiedCall, index: usize, time: u64) -> Vec<u32> {
        let parent = self.matchers[index].rest.pid;
        let had_ended = |rest: &RecordedProcess| {
            rest.parent == parent && rest.ended.is_some_and(|ended| ended < time)
        };
        // A child may execute programs one after the other, of which the last one ended.
        let ended = self.matchers.iter().filter(|one| had_ended(&one.rest));
        let ended: Vec<u32> = ended.map(|one| one.rest.pid).collect();
        let own = self.groups.get(&call.tid);
        let own = own.and_then(|group| self.live.get(group));
        let is_new = |pid: &&u32| own.is_some_and(|own| own.children.contains(&i64::from(**pid)));
        let mut late: Vec<u32> = ended.iter().filter(is_new).copied().collect();
        late.extend(self.live.iter().filter_map(|(pid, process)| {
            let (Role::Program(child) | Role::Waiting(child)) = process.role else {
                return None;
            };
            let is_late = ended.contains(&self.matchers[child].rest.pid)
                && has_ended(&pid.to_string()) == Some(false);
            is_late.then_some(*pid)
        }));
        late
    }

    /// True if a signal is there that the call lets through. A process with several threads may
    /// take it in another one.
    pub(super) fn is_interrupted(&self, call: &NotifiedCall) -> io::Result<bool> {
        let own = self.groups.get(&call.tid);
        if self
            .groups
            .values()
            .filter(|group| Some(*group) == own)
            .count()
            != 1
        {
            return Ok(false);
        }
        self.has_signal(call)
    }

    /// True if a signal with a handler is there for this thread, and the call lets it through.
    pub(super) fn has_signal(&self, call: &NotifiedCall) -> io::Result<bool> {
        Ok(handled_signals(call.tid, own_mask(call)?)?.1 != 0)
    }

    /// Where signals interrupt a write of so many bytes, as in the record. `None`: nowhere, or the
    /// thread would not handle them now.
    pub(super) fn write_interruption(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        count: usize,
    ) -> Option<Interruption> {
        let output = &self.matchers[index].streams(id).output;
        let found = output.interruption(count as u64)?;
        let is_cut = found.after > 0;
        if is_cut && self.takes_all_or_none(id, count) || !waits_for_room(call) {
            return None;
        }
        self.handled_here(call, index, found)
    }

    /// The same for a read of a blocking descriptor.
    pub(super) fn read_interruption(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
    ) -> Option<Interruption> {
        let found = self.matchers[index].streams(id).input.interruption()?;
        self.handled_here(call, index, found)
    }

    /// A read takes the input behind an interruption. That of another thread stays.
    pub(super) fn leaves_interruption(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        waits: bool,
    ) {
        let found = self.matchers[index].streams(id).input.interruption();
        if found.is_some_and(|found| self.is_of_another(call, index, &found)) {
            let input = &mut self.matchers[index].streams(id).input;
            input.postpone_interruption(waits);
        }
    }

    /// True if another thread than that of a call was interrupted.
    fn is_of_another(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        interruption: &Interruption,
    ) -> bool {
        let movers = &self.matchers[index].rest.movers;
        let mover = movers.get(&interruption.time).copied();
        mover.is_some_and(|mover| mover != self.recorded_thread(call.tid, index))
    }

    /// An interruption with those of its signals that the thread of a call handles. `None`: it was
    /// another thread's, or the thread handles none of them now.
    fn handled_here(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        mut found: Interruption,
    ) -> Option<Interruption> {
        if self.is_of_another(call, index, &found) {
            return None;
        }
        let (handled, _) = handled_signals(call.tid, None).ok()?;
        let due = &self.matchers[index].rest.signals;
        found
            .signals
            .retain(|signal| due.iter().any(|one| one.0 == *signal) && handled & bit(*signal) != 0);
        (!found.signals.is_empty()).then_some(found)
    }

    /// True if the signals of a write or read may still come. A timer of the program takes at most
    /// as long as the program had run in the record. Signals that have not come by then are sent.
    /// That of a child is sent if no child is late, and that of a key at once.
    pub(super) fn awaits_signals(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        interruption: &Interruption,
    ) -> bool {
        let signals = &interruption.signals;
        // In this order: a child that ends in between has sent its signal.
        let child_is_late =
            signals.contains(&SIGCHLD) && self.awaits_child(call, index, interruption.time);
        let (_, pending) = handled_signals(call.tid, None).unwrap_or_default();
        let signals = signals.iter().copied();
        let missing: Vec<i32> = signals.filter(|one| pending & bit(*one) == 0).collect();
        if missing.is_empty() {
            return false;
        }
        let began = self.matchers[index].rest.began;
        let longest = self.clock.between(began, interruption.time);
        let is_device = self.resources[id].kind == S_IFCHR;
        let may_come = match missing.as_slice() {
            [SIGCHLD] => child_is_late,
            // The new execution has no terminal.
            keys if is_device && keys.iter().all(|one| OF_TERMINALS.contains(one)) => false,
            _ => self.parked_for < longest.min(self.patience / 2),
        };
        if may_come {
            return true;
        }
        if let Some(group) = self.groups.get(&call.tid) {
            for signal in missing {
                let _ = sys::kill_thread(*group as sys::Pid, call.tid as sys::Pid, signal);
            }
        }
        false
    }

    /// The kernel makes the wait. Stand-ins would end it, so the caller's list of descriptors is
    /// replaced until its next call.
    pub(super) fn interrupt(
        &mut self,
        call: &NotifiedCall,
        lists: Vec<HiddenList>,
    ) -> io::Result<Response> {
        for list in lists {
            call.put(list.0, &list.2)?;
            self.hidden.entry(call.tid).or_default().push(list);
        }
        Ok(Response::Continue)
    }

    /// A new call came. The caller gets its lists back. Where the function that had a list has
    /// returned, the memory may be gone, or have other bytes: these stay.
    pub(super) fn show_lists(&mut self, call: &NotifiedCall) {
        for (at, own, replaced) in self.hidden.remove(&call.tid).unwrap_or_default() {
            let present = call.bytes(at, replaced.len());
            if present.is_ok_and(|present| present == replaced) {
                let _ = call.put(at, &own);
            }
        }
    }
}

/// The response to a read or an `accept` that a signal has been sent to. The kernel makes the call
/// again if the handler has `SA_RESTART`, and lets it fail with `EINTR` otherwise. A handler of
/// `SIGCHLD` may have that flag in a replay only (`handlers.rs`), so the call fails.
///
/// Invariant: the signal is there for this thread alone. Otherwise the program would see the error
/// by which the call begins again.
pub(super) fn interrupted_by(call: &NotifiedCall, signal: i32) -> Response {
    match signal != SIGCHLD && is_for_thread(call.tid, signal) {
        true => Response::Errno(BEGINS_AGAIN),
        false => Response::Errno(EINTR),
    }
}

/// True if this signal is there for the caller, which has a handler for it and lets it through.
fn is_pending(call: &NotifiedCall, signal: i32) -> bool {
    let found = own_mask(call).and_then(|mask| handled_signals(call.tid, mask));
    found.is_ok_and(|(_, there)| there & bit(signal) != 0)
}
