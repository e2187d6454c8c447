//! Programs whose records end before they did.
//!
//! Such a program is ended where it waits for more. It then starts nothing of what it started
//! later. It may wait for a process that it made. So it stays while a program below it may still do
//! what the record has, and the programs below it are ended first.
//!
//! If the log lacks records without a trace, the maker of a program may be missing, too.
//!
//! Invariant: two kinds of programs do not start for this reason. No recorded call made them, or
//! their maker did not start for this reason. All others have to be started again.

use super::child_work::children_of;
use super::ends::is_alive;
use super::killed::longest_wait;
use super::processes::{LiveProcess, Role};
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::standin;
use backstory_sys as sys;
use std::time::Duration;

impl Supervisor {
    /// An `accept` on a socket that the record does not have. No program connects to it, so a
    /// program behind its record waits there for ever.
    pub(super) fn accept_unrecorded(&mut self, call: &NotifiedCall, index: usize) -> Response {
        let is_behind = self.part.is_none() && self.matchers[index].rest.is_past_record();
        match is_behind && standin::waits(call.tid, call.int(0)) {
            true => self.beyond_the_record(call, index, "a socket".to_owned()),
            false => Response::Continue,
        }
    }

    /// How long all programs may make no call before those behind their records are ended. One of
    /// them may be about to kill another one.
    pub(super) fn longest_behind_record(&self) -> Duration {
        longest_wait(self.patience)
    }

    /// Ends the programs that wait behind the ends of their records for the kernel's own objects.
    /// False if no program does so, or if one computes. `idle`: since the last call.
    pub(super) fn ends_behind_record(&mut self, idle: Duration) -> bool {
        if self.part.is_some() || self.has_tool || self.closing.is_some() {
            return false;
        }
        let program = |(pid, process): (&u32, &LiveProcess)| match process.role {
            Role::Program(index) => Some((*pid, index)),
            _ => None,
        };
        let mut waiting: Vec<(u32, usize)> = self.live.iter().filter_map(program).collect();
        waiting.retain(|(pid, index)| {
            let is_past = self.matchers[*index].rest.is_past_record() && is_alive(*pid);
            is_past && !self.has_work_below(*pid, idle)
        });
        if waiting.is_empty() || self.a_thread_runs() {
            return false;
        }
        for (pid, index) in waiting {
            self.explained_ends.insert(pid);
            let matcher = &mut self.matchers[index];
            matcher.end(&self.resources, None);
            // A process that survives is killed the next time.
            let signal = matcher.rest.killed_by.replace(libc::SIGKILL);
            let _ = sys::kill(pid as sys::Pid, signal.unwrap_or(libc::SIGKILL));
        }
        true
    }

    /// True if a program below this process may go on within its record, or has to be ended before
    /// this one. In the record, the next act of a program came after a time without any. So long a
    /// timer of the kernel may take again.
    fn has_work_below(&self, pid: u32, idle: Duration) -> bool {
        let longest = self.longest_behind_record();
        let may_act = |index, maker| idle <= longest.saturating_add(self.silence_of(index, maker));
        let mut above = vec![pid];
        while let Some(parent) = above.pop() {
            let children = children_of(parent);
            for child in children.iter().filter(|child| is_alive(**child)) {
                let has_work = match self.live.get(child).map(|process| process.role) {
                    Some(Role::Program(index)) => {
                        self.matchers[index].rest.is_past_record() || may_act(index, index)
                    }
                    Some(_) => false,
                    // It has made no notified call, so the supervisor cannot end it.
                    None => {
                        let unborn = self.unborn_program(parent, *child);
                        unborn.is_some_and(|(index, maker)| may_act(index, maker))
                    }
                };
                if has_work {
                    return true;
                }
            }
            above.extend(children);
        }
        false
    }

    /// The recorded program of a child that has made no notified call, and its maker. It may wait
    /// for a signal, since the supervisor leaves a first wait of that kind to the kernel at once.
    fn unborn_program(&self, parent: u32, child: u32) -> Option<(usize, usize)> {
        let process = self.live.get(&parent)?;
        let Role::Program(maker) = process.role else {
            return None;
        };
        let made = &process.children;
        let same = made.iter().find(|pid| **pid == i64::from(child));
        let recorded = same.or_else(|| made.front())?;
        let index = self.next_program(u32::try_from(*recorded).ok()?, None)?;
        Some((index, maker))
    }

    /// The recorded time until the next act of a program that it has not done again. It counts from
    /// the last act of a program: the same one, or the maker of one that has done nothing yet.
    fn silence_of(&self, index: usize, last: usize) -> Duration {
        let reached = self.matchers[last].passed_until();
        let next = self.matchers[index].rest.next_after(reached);
        next.map_or(Duration::ZERO, |next| self.clock.between(reached, next))
    }

    /// By program: true for these.
    pub(super) fn behind_records(&self) -> Vec<bool> {
        let mut found = Vec::with_capacity(self.matchers.len());
        for (index, started) in self.started.iter().enumerate() {
            let is_behind = !started && self.is_behind_record(index, &found);
            found.push(is_behind);
        }
        found
    }

    /// `before`: the same of the programs that began before.
    fn is_behind_record(&self, index: usize, before: &[bool]) -> bool {
        let rest = &self.matchers[index].rest;
        let lacks_start = |maker: usize| {
            let of = &self.matchers[maker].rest;
            let is_later = of.whole_until.unwrap_or(0) < rest.began;
            before[maker] || self.started[maker] && of.ends_early && is_later
        };
        let earlier = (0..before.len()).rev();
        let mut same = earlier.clone();
        if rest.start.by_exec
            && let Some(executor) = same.find(|at| self.matchers[*at].rest.pid == rest.pid)
        {
            return lacks_start(executor);
        }
        match self.made.get(&rest.pid) {
            // The record has the call that made it.
            Some(maker) => before.get(*maker).copied().unwrap_or(false),
            None => {
                let mut makers = earlier.filter(|at| self.matchers[*at].rest.pid == rest.parent);
                let is_unknown = makers.clone().next().is_none();
                let lacks_records = self.is_whole && self.result.lacks_because.is_some();
                let lacks_maker = is_unknown && lacks_records && index != self.first;
                lacks_maker || makers.any(lacks_start)
            }
        }
    }
}
