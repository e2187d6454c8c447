//! What is known of processes, by their numbers: forgotten once they have ended.
//!
//! Invariant: of a process that is there nothing is forgotten; and there are never many more entries than processes, however many have come
//! and gone. A number that is given to another process is the business of who asks: ends are noticed late.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::collections::HashMap;

/// Entries before anybody is looked for.
const LEAST: usize = 4096;

/// A value for each process.
#[derive(Debug)]
pub(crate) struct ProcessMap<V> {
    of: HashMap<u32, V>,
    /// So many entries, and the ended ones are forgotten: half of them at least are new then, so that each costs one look.
    limit: usize,
}

impl<V> Default for ProcessMap<V> {
    fn default() -> ProcessMap<V> {
        ProcessMap {
            of: HashMap::new(),
            limit: LEAST,
        }
    }
}

impl<V> ProcessMap<V> {
    pub(crate) fn get(&self, pid: u32) -> Option<&V> {
        self.of.get(&pid)
    }

    /// Returns what was known before.
    pub(crate) fn insert(&mut self, pid: u32, value: V) -> Option<V> {
        if self.of.len() >= self.limit {
            self.of.retain(|pid, _| exists(*pid));
            self.limit = LEAST.max(2 * self.of.len());
        }
        self.of.insert(pid, value)
    }

    pub(crate) fn remove(&mut self, pid: u32) {
        self.of.remove(&pid);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

/// A process, or what its parent has not collected yet. Who may not be sent a signal exists, too.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_processes_come_and_go_only_those_that_are_there_are_known() {
        let mut known = ProcessMap::default();
        let me = std::process::id();
        known.insert(me, 1);
        // Numbers that no process can have.
        for pid in 1 << 23..(1 << 23) + 10 * LEAST as u32 {
            assert_eq!(known.insert(pid, 2), None);
            assert!(known.of.len() <= LEAST);
        }
        assert_eq!(known.get(me), Some(&1));
    }

    #[test]
    fn nobody_who_is_there_is_forgotten_or_looked_for_again_and_again() {
        let mut known = ProcessMap {
            of: HashMap::new(),
            limit: 1,
        };
        known.insert(std::process::id(), 1);
        known.insert(std::process::id(), 2);
        known.insert(1, 1);
        assert_eq!((known.of.len(), known.limit), (2, LEAST));
    }
}
