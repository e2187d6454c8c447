//! A map from process ids to values that forgets processes after they have ended.
//!
//! Invariant: no living process is forgotten, and there are never many more entries than processes,
//! however many have come and gone. Ends are noticed late, so a caller has to recognize an id that
//! was given to another process.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::collections::HashMap;

/// Entries before any process is looked for.
const LEAST: usize = 4096;

/// A value for each process.
#[derive(Debug)]
pub(crate) struct ProcessMap<V> {
    of: HashMap<u32, V>,
    /// At this many entries the ended processes are forgotten. At least half of the entries are
    /// then new, so each costs one look.
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

    /// Inserts a value, and returns the one before.
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

/// True if the process exists or has not been collected by its parent. A process that may not be
/// signalled exists too.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_map_forgets_processes_that_have_ended() {
        let mut known = ProcessMap::default();
        let me = std::process::id();
        known.insert(me, 1);
        // No process can have these ids.
        for pid in 1 << 23..(1 << 23) + 10 * LEAST as u32 {
            assert_eq!(known.insert(pid, 2), None);
            assert!(known.of.len() <= LEAST);
        }
        assert_eq!(known.get(me), Some(&1));
    }

    #[test]
    fn a_process_map_keeps_living_processes_and_does_not_look_for_each_again() {
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
