//! The numbers of new processes and threads: each gets its recorded one.
//!
//! Under a tool, too: a program passes its own number to calls that are not notified, such as
//! `F_SETOWN` of fcntl(2). Invariant: a tool takes no recorded number, unless it executes the
//! program in its own process.

use super::processes::{LiveProcess, Role, creation_flags};
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::start::{last_pid, next_pid};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A creation takes a few microseconds. After so many pauses of [`CHECK`] it has failed.
const CREATION_CHECKS: usize = 1_000;
const CHECK: Duration = Duration::from_micros(100);

/// The processes and threads of a tool get numbers from here on. Recorded ones are seldom so low.
const LOWEST_OF_TOOLS: u32 = 2;

impl Supervisor {
    /// A tool creates a process or thread. Until the program has started, each process may be the
    /// one that executes it, and gets its number. If the number is in use, as by a process that the
    /// tool makes to try the kernel, it is too early for the program.
    pub(super) fn tool_creates(&mut self, call: &NotifiedCall) -> io::Result<Response> {
        forget_ended_tools(&mut self.groups, &mut self.live, self.child as u32);
        let recorded = self.matchers[self.first].rest.pid;
        let is_process = creation_flags(call)? & libc::CLONE_THREAD as u64 == 0;
        let is_free = || !Path::new(&format!("/proc/{recorded}")).exists();
        let number = match is_process && !self.started[self.first] && is_free() {
            true => recorded,
            false => LOWEST_OF_TOOLS,
        };
        self.announce(call, number);
        Ok(Response::Continue)
    }

    /// The recorded thread that was created next.
    pub(super) fn next_thread(&self, index: usize) -> Option<u32> {
        let all = self.matchers[index].rest.threads.iter().copied();
        let mut rest = all.filter(|thread| !self.announced.contains(&(index, *thread)));
        rest.next()
    }

    /// The caller's new process or thread gets this number. Another caller that creates one at the
    /// same time would get the number instead, so it waits until the number is in use. False: the
    /// namespace gives another number.
    pub(super) fn announce(&mut self, call: &NotifiedCall, number: u32) -> bool {
        if let Some((creator, before)) = self.creating.take()
            && creator != call.tid
        {
            let is_pending = || last_pid().is_some_and(|last| last + 1 == before);
            for _ in 0..CREATION_CHECKS {
                if !is_pending() || !Path::new(&format!("/proc/{creator}")).exists() {
                    break;
                }
                thread::sleep(CHECK);
            }
        }
        let is_given = next_pid(number);
        self.creating = is_given.then_some((call.tid, number));
        is_given
    }

    /// True if a caller begins its last creation again. The kernel first lets the caller handle a
    /// signal that was there (`ERESTARTNOINTR`), and has given no number yet.
    pub(super) fn is_made_again(&self, call: &NotifiedCall) -> bool {
        let announced = self.creating.filter(|(creator, _)| *creator == call.tid);
        announced.is_some_and(|(_, number)| last_pid().is_some_and(|last| last + 1 == number))
    }

    /// The recorded number of a thread. A new thread gets it from the namespace ([`Self::fork`]).
    /// Where that is not permitted, threads have their numbers in the order of their creation.
    pub(super) fn recorded_thread(&mut self, tid: u32, index: usize) -> u32 {
        let group = self.groups.get(&tid).copied().unwrap_or(tid);
        let rest = &self.matchers[index].rest;
        if tid == group {
            return rest.own_pid;
        }
        if let Some(known) = self.threads.get(&(index, tid)) {
            return *known;
        }
        let found = match self.announced.contains(&(index, tid)) {
            true => tid,
            false => self.next_in_order(tid, group, index).unwrap_or(tid),
        };
        self.threads.insert((index, tid), found);
        found
    }

    /// The recorded thread that was created next after all that are known, and after those of the
    /// process that have made no call yet.
    fn next_in_order(&self, tid: u32, group: u32, index: usize) -> Option<u32> {
        let taken = self.threads.iter().filter(|((of, _), _)| *of == index);
        let taken: HashSet<u32> = taken.map(|(_, recorded)| *recorded).collect();
        let all = self.matchers[index].rest.threads.iter().copied();
        let mut free = all.filter(|thread| !taken.contains(thread));
        let tasks = fs::read_dir(format!("/proc/{group}/task"));
        let tasks = tasks.into_iter().flatten();
        let others = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        let earlier = others.filter(|other: &u32| {
            *other < tid && *other != group && !self.threads.contains_key(&(index, *other))
        });
        free.nth(earlier.count())
    }
}

/// Forgets the processes and threads of tools that have ended. Their numbers are low and soon given
/// again, perhaps to a child of the program that no recorded call made. `first`: the tool that the
/// supervisor started.
fn forget_ended_tools(
    groups: &mut HashMap<u32, u32>,
    live: &mut HashMap<u32, LiveProcess>,
    first: u32,
) {
    let is_there = |number: &u32| Path::new(&format!("/proc/{number}")).exists();
    let is_other = |process: &LiveProcess| process.role != Role::Tool;
    groups.retain(|tid, group| live.get(group).is_none_or(is_other) || is_there(tid));
    live.retain(|pid, process| *pid == first || is_other(process) || is_there(pid));
}

#[cfg(test)]
mod tests {
    use super::super::processes::{LiveProcess, Role};
    use super::forget_ended_tools;
    use std::collections::HashMap;

    #[test]
    fn a_process_that_gets_the_number_of_an_ended_tool_counts_as_a_new_one() {
        let own = std::process::id();
        // No process has these numbers (`PID_MAX_LIMIT` in proc(5)).
        let [first, ended, thread, program] = [0, 1, 2, 3].map(|number| (5 << 20) + number);
        let mut live = HashMap::from([
            (own, LiveProcess::tool()),
            (first, LiveProcess::tool()),
            (ended, LiveProcess::tool()),
            (program, LiveProcess::new(Role::Program(0))),
        ]);
        let groups = [
            (own, own),
            (thread, own),
            (ended, ended),
            (program, program),
        ];
        let mut groups = HashMap::from(groups);
        forget_ended_tools(&mut groups, &mut live, first);
        let mut left: Vec<u32> = live.into_keys().collect();
        left.sort_unstable();
        let mut expected = [own, first, program];
        expected.sort_unstable();
        assert_eq!(left, expected);
        assert_eq!(groups, HashMap::from([(own, own), (program, program)]));
    }
}
