//! Processes that a signal killed. Their record ends in the middle of their work.
//!
//! A broken pipe is such an end: the reader had gone, and no call says so. The new execution has
//! no such reader. So a process is killed where it goes on behind its record. Where another process
//! of the run may have killed it, that one gets the time to do so again.

use super::processes::Role;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::{field, signals};
use crate::resource::ResourceId;
use backstory_sys as sys;
use std::fs;
use std::time::Duration;

/// A process waits so long for the one that kills it, and the killer for its output.
const LONGEST: Duration = Duration::from_secs(3);

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
        let signal = self.matchers[index].rest.killed_by;
        let is_known = signal.is_some_and(|signal| signal != libc::SIGPIPE);
        index != self.first && is_known && self.parked_for < LONGEST
    }

    /// True for a process in which a signal killed this program.
    fn is_killed(&self, index: usize) -> bool {
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
        if self.parked_for < LONGEST {
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

    /// A process sends a signal. If this signal killed the other one, it first does what it had
    /// done until then. If it would kill one that ended by itself in the record, it waits until
    /// that one has a handler or has ended.
    pub(super) fn send_signal(&self, call: &NotifiedCall) -> Response {
        let (pid, signal) = (call.int(0), call.int(1));
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
        match is_early && self.part.is_none() && self.parked_for < LONGEST {
            true => Response::Park,
            false => Response::Continue,
        }
    }
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
    use super::dumping_signal;
    use libc::{SIGABRT, SIGQUIT, SIGTERM};

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
