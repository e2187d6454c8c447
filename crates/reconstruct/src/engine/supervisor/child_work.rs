//! The work of the children whose end a wait awaits. If they do nothing, the wait gives up.
//!
//! Invariant: only these children and their descendants count. A process that looks around now and
//! then does not prolong the waits of others. The waits of a thread have a bound together, which
//! begins anew when one of the children has ended. So a build may have many short children.

use super::Supervisor;
use super::processes::{Role, state_and_time};
use std::fs;
use std::time::{Duration, Instant};

/// A wait gives up when the children have done nothing for so long.
const LONGEST_STILL: Duration = Duration::from_secs(2);

/// The waits last so long at most without the end of a child, however much the children do.
const LONGEST: Duration = Duration::from_secs(60);

/// All waits of a thread last so long at most.
const LONGEST_IN_ALL: Duration = Duration::from_secs(4 * 3600);

/// The children are looked at so often.
const LOOK: Duration = Duration::from_millis(100);

/// Without a look for so long, the program has done something else.
const PAUSE: Duration = Duration::from_secs(1);

/// The children that a thread waits for, at the last look.
#[derive(Debug)]
pub(super) struct ChildWork {
    children: Vec<u32>,
    /// The calls of these and of their descendants, and their processor time.
    progress: (u64, u64),
    /// Since when these are the same.
    since: Instant,
    looked: Instant,
    /// How long the thread has waited since the last of them ended.
    waited: Duration,
    /// How long it has waited for children so far.
    in_all: Duration,
}

impl ChildWork {
    fn of(children: &[u32]) -> ChildWork {
        ChildWork {
            children: children.to_vec(),
            progress: (0, 0),
            since: Instant::now(),
            looked: Instant::now(),
            waited: Duration::ZERO,
            in_all: Duration::ZERO,
        }
    }

    /// The thread waits for these children now.
    fn awaits(&mut self, children: Vec<u32>, has_ended: impl Fn(u32) -> bool) {
        if self.children == children {
            return;
        }
        let mut gone = self.children.iter().filter(|pid| !children.contains(pid));
        if gone.any(|pid| has_ended(*pid)) {
            self.waited = Duration::ZERO;
        }
        self.children = children;
        self.since = Instant::now();
    }

    fn waits(&mut self, time: Duration) {
        self.waited += time;
        self.in_all += time;
    }

    fn has_waited_enough(&self) -> bool {
        self.waited >= LONGEST || self.in_all >= LONGEST_IN_ALL
    }
}

impl Supervisor {
    /// True if these children, for which a thread waits, may still end: they do something.
    pub(super) fn may_end(&mut self, thread: u32, mut children: Vec<u32>) -> bool {
        children.sort_unstable();
        let known = self.child_work.remove(&thread);
        let mut known = known.unwrap_or_else(|| ChildWork::of(&children));
        let passed = known.looked.elapsed();
        known.awaits(children, has_ended);
        if passed >= LOOK {
            let (runs, progress) = self.work_of(&known.children);
            if runs || progress != known.progress || passed >= PAUSE {
                known.since = Instant::now();
            }
            if passed < PAUSE {
                known.waits(passed);
            }
            known.progress = progress;
            known.looked = Instant::now();
        }
        let may_end = !known.has_waited_enough() && known.since.elapsed() < LONGEST_STILL;
        self.child_work.insert(thread, known);
        may_end
    }

    /// Whether one of these processes or of their descendants runs, their calls, and their
    /// processor time. On a busy machine, one that runs may make no call for seconds.
    fn work_of(&self, processes: &[u32]) -> (bool, (u64, u64)) {
        let mut rest = processes.to_vec();
        let (mut runs, mut calls, mut used) = (false, 0, 0);
        while let Some(pid) = rest.pop() {
            let Some((state, time)) = state_and_time(pid) else {
                continue;
            };
            runs |= matches!(state, 'R' | 'D');
            used += time;
            if let Some(Role::Program(index)) = self.live.get(&pid).map(|process| process.role) {
                calls += self.matchers[index].came;
            }
            rest.extend(children_of(pid));
        }
        (runs, (calls, used))
    }
}

/// True for a process that has ended.
fn has_ended(pid: u32) -> bool {
    let state = state_and_time(pid).map(|(state, _)| state);
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// The children of all threads of a process.
pub(super) fn children_of(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let mut found = Vec::new();
    for list in lists {
        found.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{ChildWork, LONGEST};

    #[test]
    fn a_thread_may_wait_for_any_number_of_short_children() {
        let mut work = ChildWork::of(&[1]);
        for next in 2..400 {
            work.waits(LONGEST / 2);
            work.awaits(vec![next], |_| true);
            assert!(!work.has_waited_enough(), "child {next}");
        }
    }

    #[test]
    fn other_children_do_not_prolong_the_wait_for_one_that_has_not_ended() {
        let mut work = ChildWork::of(&[1]);
        work.waits(LONGEST / 2);
        work.awaits(vec![1, 2], |_| true);
        work.awaits(vec![2], |_| false);
        work.waits(LONGEST / 2);
        assert!(work.has_waited_enough());
    }
}
