//! Processes that a signal killed. Their record ends in the middle of their work.
//!
//! A broken pipe is such an end: the reader had gone, and no call says so. The new execution has
//! no such reader. So a process is killed where it goes on behind its record. Where another process
//! of the run may have killed it, that one gets the time to do so again.

use super::ends::is_alive;
use super::processes::Role;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::{field, signals};
use crate::process::HandlerRun;
use crate::resource::ResourceId;
use backstory_sys as sys;
use std::fs;
use std::time::Duration;

/// With the usual patience, a process waits so long for the one that kills it, and the killer for
/// its output.
const USUAL: Duration = Duration::from_secs(3);

/// Parked calls are looked at so often for a signal that ends their process.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The signals that end a process with a dump of its memory, unless it handles them.
const DUMPS: [i32; 10] = [
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];

impl Supervisor {
    /// True if a process that was killed has written all that it had written, and now writes more.
    pub(super) fn is_killed_here(&self, index: usize, id: ResourceId) -> bool {
        let matcher = &self.matchers[index];
        self.is_killed(index) && matcher.has_no_more(id) && matcher.wrote_all(&self.resources)
    }

    /// True if a process that was killed has done all that its record has, and now sleeps, or does
    /// what its record lacks.
    pub(super) fn is_killed_asleep(&self, index: usize) -> bool {
        let matcher = &self.matchers[index];
        self.is_killed(index)
            && matcher.wrote_all(&self.resources)
            && matcher.read_all(&self.resources)
    }

    /// True while another process may still kill this one, as in the record.
    pub(super) fn may_be_killed(&self, index: usize) -> bool {
        self.matchers[index].rest.killed_by.is_some() && self.awaits_kill(index)
    }

    /// The same for a process of which the record may not say that a signal killed it.
    pub(super) fn awaits_kill(&self, index: usize) -> bool {
        let is_own = self.matchers[index].rest.killed_by == Some(libc::SIGPIPE);
        let waits = || self.parked_for < self.longest(index);
        index != self.first && !is_own && waits()
    }

    /// How long a process waits for the one that kills it. That one may wait for its own timer.
    fn longest(&self, index: usize) -> Duration {
        let since = self.matchers[index].passed_until();
        let killed_at = self.killed_at(index);
        let Some(killed_at) = killed_at.filter(|at| self.has_timer(index, since, *at)) else {
            return longest_wait(self.patience);
        };
        let recorded = self.clock.between(since, killed_at);
        let longest = recorded.saturating_add(longest_wait(self.patience));
        longest.min(self.patience / 2)
    }

    /// When a signal killed a process, or else one above it.
    fn killed_at(&self, index: usize) -> Option<u64> {
        let mut own = &self.matchers[index].rest;
        // A damaged log may name a process as its own parent, or among those above it.
        for _ in 0..self.matchers.len() {
            if own.killed_at.is_some() {
                return own.killed_at;
            }
            let parent = own.parent;
            let mut programs = self.matchers.iter().map(|matcher| &matcher.rest);
            own = programs.find(|one| one.pid == parent)?;
        }
        None
    }

    /// True if a timer of another program that runs ended between these times of the record.
    pub(super) fn has_timer(&self, index: usize, from: u64, to: u64) -> bool {
        let ends = |ran: &HandlerRun| {
            ran.signal == libc::SIGALRM && (from.saturating_add(1)..=to).contains(&ran.time)
        };
        self.live.iter().any(|(pid, process)| {
            let Role::Program(other) = process.role else {
                return false;
            };
            let mut handlers = self.matchers[other].rest.handlers.iter();
            other != index && handlers.any(ends) && is_alive(*pid)
        })
    }

    /// True for a process whose record ends without its end, and that has done all that is in its
    /// record. A signal killed it, and no recorded process waited for it.
    pub(super) fn never_ended(&self, index: usize) -> bool {
        let matcher = &self.matchers[index];
        let rest = &matcher.rest;
        let is_cut = rest.ends_early || rest.gap.is_some() || !self.is_whole;
        let has_end = rest.has_exited || rest.killed_by.is_some() || is_cut;
        !has_end
            && rest.children.is_empty()
            && self.next_program(rest.pid, Some(index)).is_none()
            && matcher.wrote_all(&self.resources)
            && matcher.read_all(&self.resources)
    }

    /// True for a process in which a signal killed this program.
    pub(super) fn is_killed(&self, index: usize) -> bool {
        let rest = &self.matchers[index].rest;
        let is_last = || self.next_program(rest.pid, Some(index)).is_none();
        rest.killed_by.is_some() && self.part.is_none() && is_last()
    }

    /// The call of a process waits for the signal that killed it. If none comes, the process is
    /// killed: another process than those of the run did it.
    pub(super) fn await_killer(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        errno: i32,
    ) -> Response {
        if self.may_be_killed(index) {
            return Response::Park;
        }
        self.kill_as_recorded(call, index, errno)
    }

    /// A child without a record goes no further, unless it executes a program: in the record it was
    /// killed before. If no signal comes, it is killed here.
    pub(super) fn await_early_killer(&mut self, call: &NotifiedCall, signal: i32) -> Response {
        if self.parked_for < longest_wait(self.patience) {
            return Response::Park;
        }
        let group = self.group_of(call);
        let _ = sys::kill(group as sys::Pid, signal);
        if let Some(process) = self.live.get_mut(&group) {
            // A process that survives is killed at its next call.
            process.role = Role::KilledEarly(libc::SIGKILL);
        }
        Response::Errno(libc::EINTR)
    }

    /// Ends a process where its record ends, by the signal that killed it. The call fails with
    /// this error if the process survives.
    pub(super) fn kill_as_recorded(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        errno: i32,
    ) -> Response {
        self.notes_end(call);
        let matcher = &mut self.matchers[index];
        matcher.end(&self.resources, None);
        // A process that survives is killed at its next call.
        let signal = matcher.rest.killed_by.replace(libc::SIGKILL);
        let signal = signal.unwrap_or(libc::SIGKILL);
        let Some(group) = self.groups.get(&call.tid) else {
            return Response::Errno(errno);
        };
        let _ = sys::kill(*group as sys::Pid, signal);
        Response::Errno(errno)
    }

    /// Lets a parked call return if a signal is there that ends its process with a dump. The kernel
    /// makes SIGKILL of other deadly signals, and lets a thread die of that while its call waits.
    pub(super) fn lets_die(&self, call: &NotifiedCall) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", call.tid));
        let signal = status.ok().and_then(|status| dumping_signal(&status));
        let (Some(group), Some(signal)) = (self.groups.get(&call.tid), signal) else {
            return false;
        };
        // The kernel may have chosen another thread for it. This one must not see the error.
        let _ = sys::kill_thread(*group as sys::Pid, call.tid as sys::Pid, signal);
        self.answer(call, Response::Errno(libc::EINTR));
        true
    }

    /// A process sends a signal. If the other one handled it, or if the signal killed it, that one
    /// first does what it had done until then. If it would kill one that ended by itself in the
    /// record, it waits until that one has a handler or has ended.
    pub(super) fn send_signal(&mut self, call: &NotifiedCall) -> Response {
        let (pid, signal) = (call.int(0), call.int(1));
        if let Some(sent) = self.signal_group(call, pid, signal) {
            return sent;
        }
        if let Some(is_early) = self.comes_before_its_place(call, pid, signal) {
            return match is_early {
                true => Response::Park,
                false => Response::Continue,
            };
        }
        let mut programs = self.matchers.iter().zip(&self.started).rev();
        let last = programs.find(|(matcher, _)| i64::from(matcher.rest.pid) == i64::from(pid));
        let is_own = i64::from(self.group_of(call)) == i64::from(pid);
        let is_early = last.is_some_and(|(matcher, started)| {
            if matcher.rest.has_exited {
                return !is_own && would_kill(pid, signal);
            }
            let has_made_all = matcher.rest.children.is_empty();
            let is_over = *started && has_made_all && matcher.wrote_all(&self.resources);
            matcher.rest.killed_by == Some(signal) && !is_over
        });
        let may_wait = self.parked_for < longest_wait(self.patience);
        match is_early && self.part.is_none() && may_wait {
            true => Response::Park,
            false => Response::Continue,
        }
    }

    /// True if a signal is sent before the other process has come to the place where its recorded
    /// handler ran. `None`: the record has no such handler. The signal is sent at last.
    fn comes_before_its_place(
        &mut self,
        call: &NotifiedCall,
        pid: i32,
        signal: i32,
    ) -> Option<bool> {
        let other = u32::try_from(pid).ok()?;
        if self.part.is_some() || other == self.group_of(call) {
            return None;
        }
        let Role::Program(index) = self.live.get(&other)?.role else {
            return None;
        };
        self.pass_handlers(index);
        let due = self.due[index].unsent(signal)?;
        let ran = due.ran;
        // The order of calls that several signals interrupt may be another one.
        if ran.in_call && self.matchers[index].rest.killed_by != Some(signal) {
            return None;
        }
        let owes = || self.matchers[index].owes(&self.resources, ran.time);
        // Between two calls, the process sleeps, or waits in the kernel.
        let goes_on = || !ran.in_call && !due.is_in_kernel() && self.is_awake(other);
        let is_early = would_kill(pid, signal) || owes() || goes_on();
        if is_early && self.parked_for < longest_wait(self.patience) {
            return Some(true);
        }
        if is_early {
            self.due[index].miss();
        }
        self.due[index].send(&ran);
        if !ran.in_call {
            let signals = &mut self.matchers[index].rest.signals;
            signals.retain(|one| *one != (signal, ran.time));
        }
        Some(false)
    }
}

/// How long a process waits for its killer, and a killer for the other process. The patience would
/// end all before if this were longer. On a slow machine, a user gives more patience.
pub(super) fn longest_wait(patience: Duration) -> Duration {
    USUAL.min(patience / 2).max(patience / 10)
}

/// The signal that ends a thread's process with a dump as soon as its call returns. `status`: the
/// file of the thread in `/proc`.
fn dumping_signal(status: &str) -> Option<i32> {
    let set = |name| signals(status, name);
    let kept = set("SigBlk") | set("SigIgn") | set("SigCgt");
    let there = (set("SigPnd") | set("ShdPnd")) & !kept;
    let mut all = DUMPS.into_iter();
    all.find(|signal| there & (1 << (signal - 1)) != 0)
}

/// True if this signal would kill a process now: the process neither handles, ignores nor blocks
/// it.
fn would_kill(pid: i32, signal: i32) -> bool {
    use libc::{SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
    const KILL_NONE: [i32; 8] = [
        SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH,
    ];
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return false;
    };
    let set = |name| signals(&status, name);
    let kept = set("SigBlk") | set("SigIgn") | set("SigCgt");
    let has_ended = field(&status, "State").is_some_and(|state| state.starts_with(['Z', 'X']));
    let kills = (1..=64).contains(&signal) && !KILL_NONE.contains(&signal);
    kills && kept & (1 << (signal - 1)) == 0 && !has_ended
}

#[cfg(test)]
mod tests {
    use super::{dumping_signal, longest_wait};
    use libc::{SIGABRT, SIGQUIT, SIGTERM};
    use std::time::Duration;

    #[test]
    fn a_killed_process_waits_for_a_part_of_the_patience() {
        for (patience, waits) in [(1, 500), (4, 2_000), (6, 3_000), (30, 3_000), (300, 30_000)] {
            let longest = longest_wait(Duration::from_secs(patience));
            assert_eq!(longest, Duration::from_millis(waits), "{patience} s");
        }
    }

    #[test]
    fn a_signal_ends_a_parked_call_unless_the_process_keeps_it() {
        let status = |signal: i32, place: &str, keeps: &str| {
            let bit = 1u64 << (signal - 1);
            format!("Name:\tx\n{place}:\t{bit:016x}\n{keeps}:\t{bit:016x}\n")
        };
        for signal in [SIGABRT, SIGQUIT] {
            for place in ["SigPnd", "ShdPnd"] {
                assert_eq!(dumping_signal(&status(signal, place, "None")), Some(signal));
                for keeps in ["SigBlk", "SigIgn", "SigCgt"] {
                    assert_eq!(
                        dumping_signal(&status(signal, place, keeps)),
                        None,
                        "{keeps}"
                    );
                }
            }
        }
        // The kernel ends the wait by itself.
        assert_eq!(dumping_signal(&status(SIGTERM, "ShdPnd", "None")), None);
        assert_eq!(dumping_signal(""), None);
    }
}
