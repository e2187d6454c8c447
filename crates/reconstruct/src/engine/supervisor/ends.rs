//! The ends of processes, compared with the record.
//!
//! A process ends by a call, or a signal kills it. The kernel notifies of the call only. So a
//! signal killed each process that made no such call, and that the supervisor did not end.
//! Invariant: a process that a signal killed in the record, too, does not differ by that. The same
//! holds for one that still runs when all are ended.

use super::processes::{Role, state_and_time};
use super::{Response, Supervisor};
use crate::divergence::DivergenceKind;
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::threads;
use backstory_sys as sys;

impl Supervisor {
    /// The process of a call ends by it, or the supervisor ends the process there.
    pub(super) fn notes_end(&mut self, call: &NotifiedCall) {
        let group = self.group_of(call);
        self.explained_ends.insert(group);
    }

    /// True if all programs have ended, although a snapshot of them has the filter.
    pub(super) fn has_ended_beside_snapshot(&self) -> bool {
        self.in_copy.is_some()
            && self.result.status.is_some()
            && !self.live.keys().any(|pid| is_alive(*pid))
    }

    /// Ends all processes that still run.
    pub(super) fn kill_all(&mut self) {
        for pid in self.live.keys() {
            if is_alive(*pid) {
                self.explained_ends.insert(*pid);
            }
            let _ = sys::kill(*pid as sys::Pid, libc::SIGKILL);
        }
    }

    /// A program ends by itself.
    pub(super) fn exit(&mut self, call: &NotifiedCall, index: usize) -> Response {
        let status = call.int(0);
        let came = format!("status {}", status & 0xff);
        if self.is_killed_asleep(index) {
            let signal = self.matchers[index].rest.killed_by;
            let fault = signal.filter(|signal| is_fault(*signal));
            let Some(signal) = fault.filter(|_| !self.may_be_killed(index)) else {
                return self.await_killer(call, index, libc::EINTR);
            };
            // Its own fault ended it in the record.
            self.differs_at_end(index, format!("signal {signal}"), came.clone());
        }
        self.matchers[index].end(&self.resources, Some(status));
        self.ends_before_record(index, &came);
        self.part_exits(index);
        Response::Continue
    }

    /// Notes that a program ends before its record does, if the record ends before the recorded
    /// program did. In a process with threads, another thread may be the one that is behind: their
    /// order is not recorded.
    pub(super) fn ends_before_record(&mut self, index: usize, came: &str) {
        let rest = &self.matchers[index].rest;
        if rest.ends_early && rest.threads.is_empty() && !rest.has_come_to_its_end() {
            let recorded = "the program goes on".to_owned();
            self.differs_at_end(index, recorded, came.to_owned());
        }
    }

    /// Compares the ends of the processes that a signal killed. In a part of a run, the output
    /// decides.
    pub(super) fn compare_killed(&mut self) {
        if self.part.is_some() {
            return;
        }
        let unexplained = self.live.iter().filter_map(|(pid, process)| {
            let Role::Program(index) = process.role else {
                return None;
            };
            let is_explained = self.explained_ends.contains(pid) || self.is_below_cut(index);
            (!is_explained).then_some((index, *pid))
        });
        let mut killed: Vec<(usize, u32)> = unexplained.collect();
        killed.sort_unstable();
        for (index, pid) in killed {
            self.compare_kill(index, pid);
        }
    }

    /// A signal killed this program in the new execution.
    fn compare_kill(&mut self, index: usize, pid: u32) {
        let signal = self.signal_of(pid);
        let came = match signal {
            Some(signal) => format!("signal {signal}"),
            None => "a signal".to_owned(),
        };
        let rest = &self.matchers[index].rest;
        let recorded = match (rest.killed_by, signal) {
            (Some(recorded), Some(signal)) if recorded != signal => format!("signal {recorded}"),
            (Some(recorded), _) => {
                // Another process may kill it earlier than in the record, its own fault may not.
                if is_fault(recorded) {
                    self.matchers[index].end(&self.resources, None);
                }
                return;
            }
            (None, _) if rest.has_exited => match rest.exit {
                Some(status) => format!("status {}", status & 0xff),
                None => "an exit".to_owned(),
            },
            (None, _) => return self.ends_before_record(index, &came),
        };
        self.differs_at_end(index, recorded, came);
    }

    fn differs_at_end(&mut self, index: usize, recorded: String, came: String) {
        let matcher = &mut self.matchers[index];
        let object = "the end of the process".to_owned();
        let mut divergence = matcher.blank(DivergenceKind::OtherEnd, object);
        (divergence.recorded, divergence.came) = (recorded, came);
        matcher.diverge(divergence);
    }

    /// The signal that killed a process, if it is the first one. The others have other parents.
    fn signal_of(&self, pid: u32) -> Option<i32> {
        let is_first = pid == self.child as u32 && !self.has_tool;
        let status = self.result.status.filter(|_| is_first)?;
        libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
    }

    /// True for a process below one that was ended because its record ends early: a pipe to that
    /// one breaks. The verdict says that not all is recorded.
    fn is_below_cut(&self, index: usize) -> bool {
        let mut above = self.matchers[index].rest.parent;
        // A damaged log may name a process as its own parent, or among those above it.
        for _ in 0..self.matchers.len() {
            if above == self.matchers[index].rest.pid {
                return false;
            }
            let programs = self.matchers.iter().zip(&self.started);
            let mut programs = programs.filter(|(matcher, _)| matcher.rest.pid == above);
            let Some((first, _)) = programs.clone().next() else {
                return false;
            };
            if programs.any(|(matcher, started)| *started && matcher.rest.ends_early) {
                return true;
            }
            above = first.rest.parent;
        }
        false
    }
}

/// True for a signal by which the kernel or the program itself ends a program that fails.
fn is_fault(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    matches!(
        signal,
        SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP
    )
}

/// True if a process has not ended. Its first thread may have ended before the others.
pub(super) fn is_alive(pid: u32) -> bool {
    let state = state_and_time(pid).map(|(state, _)| state);
    threads(pid) > 1 || state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
