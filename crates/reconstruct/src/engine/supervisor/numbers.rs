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
    /// same time would get the number instead, so it waits until the number is in use. It does not
    /// wait for one that handles a signal first: that one gets its number later
    /// ([`Self::goes_on_creating`]). False: the namespace gives another number.
    pub(super) fn announce(&mut self, call: &NotifiedCall, number: u32) -> bool {
        if let Some((creator, before)) = self.creating.take()
            && creator != call.tid
            && !is_created(creator, before)
        {
            self.interrupted_creations.insert(creator, before);
        }
        // A former thread of that number may have ended while it handled its signal.
        self.interrupted_creations.remove(&number);
        let is_given = next_pid(number);
        self.creating = is_given.then_some((call.tid, number));
        is_given
    }

    /// A caller may begin its last creation again. The kernel first lets the caller handle a signal
    /// that was there (`ERESTARTNOINTR`), and has given no number yet. True: this is such a call,
    /// and its number is announced.
    pub(super) fn goes_on_creating(&mut self, call: &NotifiedCall) -> bool {
        if let Some(number) = self.interrupted_creations.remove(&call.tid) {
            self.announce(call, number);
            return true;
        }
        let announced = self.creating.filter(|(creator, _)| *creator == call.tid);
        announced.is_some_and(|(_, number)| !is_given(number))
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

/// Waits until the kernel has given `number`, which a creation of `creator` is to get. False: the
/// creator handles a signal first, and makes the call again.
fn is_created(creator: u32, number: u32) -> bool {
    for _ in 0..CREATION_CHECKS {
        let at = format!("/proc/{creator}");
        let text = fs::read_to_string(format!("{at}/syscall"));
        if is_given(number) || !Path::new(&at).exists() {
            return true;
        }
        if text.is_ok_and(|text| is_in_another_call(&text)) {
            return false;
        }
        thread::sleep(CHECK);
    }
    is_given(number)
}

/// Whether the namespace gives another number next.
fn is_given(number: u32) -> bool {
    last_pid().is_none_or(|last| last + 1 != number)
}

/// Whether a thread waits in a call that creates nothing, by `/proc/TID/syscall` (proc(5)). One
/// that runs may still be in its creation.
fn is_in_another_call(text: &str) -> bool {
    let number = text.split_whitespace().next();
    let Some(call) = number.and_then(|number| number.parse::<i64>().ok()) else {
        return false;
    };
    let creates = [
        libc::SYS_fork,
        libc::SYS_vfork,
        libc::SYS_clone,
        libc::SYS_clone3,
    ];
    !creates.contains(&call)
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
