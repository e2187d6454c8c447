//! The work of the children whose end a wait awaits. If they do nothing, the wait gives up.
//!
//! Invariant: only these children and their descendants count. A process that looks around now and
//! then does not prolong the waits of others. The waits of a program have one bound together.

use super::Supervisor;
use super::processes::{Role, state_and_time};
use std::fs;
use std::time::{Duration, Instant};

/// A wait gives up when the children have done nothing for so long.
const LONGEST_STILL: Duration = Duration::from_secs(2);

/// All waits of a program last so long at most, however much the children do.
const LONGEST: Duration = Duration::from_secs(60);

/// The children are looked at so often.
const LOOK: Duration = Duration::from_millis(100);

/// Without a look for so long, the program has done something else.
const PAUSE: Duration = Duration::from_secs(1);

/// The children that a program waits for, at the last look.
#[derive(Debug)]
pub(super) struct ChildWork {
    children: Vec<u32>,
    /// The calls of these and of their descendants, and their processor time.
    progress: (u64, u64),
    /// Since when these are the same.
    since: Instant,
    looked: Instant,
    /// How long the program has waited for children so far.
    waited: Duration,
}

impl ChildWork {
    fn of(children: &[u32]) -> ChildWork {
        ChildWork {
            children: children.to_vec(),
            progress: (0, 0),
            since: Instant::now(),
            looked: Instant::now(),
            waited: Duration::ZERO,
        }
    }
}

impl Supervisor {
    /// True if these children of a program may still end: they do something.
    pub(super) fn may_end(&mut self, program: usize, mut children: Vec<u32>) -> bool {
        children.sort_unstable();
        let known = self.child_work.remove(&program);
        let mut known = known.unwrap_or_else(|| ChildWork::of(&children));
        let passed = known.looked.elapsed();
        if known.children != children {
            known.children = children;
            known.since = Instant::now();
        }
        if passed >= LOOK {
            let (runs, progress) = self.work_of(&known.children);
            if runs || progress != known.progress || passed >= PAUSE {
                known.since = Instant::now();
            }
            if passed < PAUSE {
                known.waited += passed;
            }
            known.progress = progress;
            known.looked = Instant::now();
        }
        let may_end = known.waited < LONGEST && known.since.elapsed() < LONGEST_STILL;
        self.child_work.insert(program, known);
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

/// The children of all threads of a process.
fn children_of(pid: u32) -> Vec<u32> {
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
