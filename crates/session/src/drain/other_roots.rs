//! Without the guard: which programs were never heard of that were executed in another root.
//!
//! There a name leads to what cannot be looked up from here, and is often gone when it could be. So the program is not looked at: one that
//! has a recorder says so, in a chunk of its own, with the first thing that it does. Of one that stays silent nothing is known, whatever it
//! is; that it may have done nothing is no proof.

use super::executed::ProgramEvent;
use std::collections::{BTreeSet, HashMap, HashSet};

/// So many processes are remembered.
const PROCESSES: usize = 10_000;
/// So many generations an ancestor is looked for.
const GENERATIONS: usize = 16;

/// What processes executed, and which of them had gone to another root.
#[derive(Debug, Default)]
pub(super) struct ProgramsInOtherRoots {
    went: HashSet<u32>,
    processes: HashMap<u32, LastHeard>,
}

/// What was last heard of a process.
#[derive(Debug, Default)]
struct LastHeard {
    parent: u32,
    /// The latest start of its recorder.
    epoch: u64,
    /// What it executed after that.
    executed: Option<Box<[u8]>>,
}

impl ProgramsInOtherRoots {
    /// A process's recorder has started, the `epoch`th of the run.
    pub(super) fn heard(&mut self, pid: u32, parent: u32, epoch: u64) {
        if let Some(process) = self.process(pid) {
            process.parent = parent;
            if epoch > process.epoch {
                process.epoch = epoch;
                process.executed = None;
            }
        }
    }

    /// A process does this, which that start of its recorder tells.
    pub(super) fn does(&mut self, pid: u32, epoch: u64, told: ProgramEvent<'_>) {
        match told {
            ProgramEvent::Root if self.went.len() < PROCESSES => {
                self.went.insert(pid);
            }
            ProgramEvent::Program(path) => self.executes(pid, epoch, path),
            ProgramEvent::Spawned(child, path) if child != 0 => {
                if let Some(process) = self.process(child) {
                    process.parent = pid;
                }
                self.executes(child, epoch, path);
            }
            _ => {}
        }
    }

    fn executes(&mut self, pid: u32, epoch: u64, path: &[u8]) {
        if let Some(process) = self.process(pid).filter(|process| process.epoch <= epoch) {
            process.executed = Some(path.into());
        }
    }

    fn process(&mut self, pid: u32) -> Option<&mut LastHeard> {
        let known = self.processes.len() < PROCESSES || self.processes.contains_key(&pid);
        known.then(|| self.processes.entry(pid).or_default())
    }

    /// True if a process, or an ancestor, is known to have gone to another root.
    pub(super) fn is(&self, mut pid: u32) -> bool {
        for _ in 0..GENERATIONS {
            if self.went.contains(&pid) {
                return true;
            }
            let Some(process) = self.processes.get(&pid) else {
                break;
            };
            pid = process.parent;
        }
        false
    }

    /// The programs in other roots that were executed and never heard of.
    pub(super) fn silent(&self) -> BTreeSet<&[u8]> {
        let silent = self.processes.iter().filter(|(pid, _)| self.is(**pid));
        silent
            .filter_map(|(_, process)| process.executed.as_deref())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_heard_of_after_it_was_executed_is_known() {
        let mut elsewhere = ProgramsInOtherRoots::default();
        elsewhere.heard(7, 1, 1);
        elsewhere.does(7, 1, ProgramEvent::Root);
        elsewhere.does(7, 1, ProgramEvent::Program(b"/bin/sh"));
        assert_eq!(elsewhere.silent(), BTreeSet::from([&b"/bin/sh"[..]]));
        elsewhere.heard(7, 1, 2);
        assert!(elsewhere.silent().is_empty());
        elsewhere.does(7, 1, ProgramEvent::Program(b"/bin/sh"));
        assert!(
            elsewhere.silent().is_empty(),
            "told once more, it was not later"
        );
        elsewhere.does(7, 2, ProgramEvent::Spawned(8, b"/bin/cp"));
        assert_eq!(elsewhere.silent(), BTreeSet::from([&b"/bin/cp"[..]]));
        elsewhere.heard(8, 7, 3);
        assert!(elsewhere.silent().is_empty());
    }

    #[test]
    fn descendants_are_where_their_ancestor_went_and_others_are_not() {
        let mut elsewhere = ProgramsInOtherRoots::default();
        for pid in 2..6 {
            elsewhere.heard(pid, pid - 1, u64::from(pid));
            elsewhere.does(
                pid,
                u64::from(pid),
                ProgramEvent::Program(format!("/{pid}").as_bytes()),
            );
        }
        assert!(elsewhere.silent().is_empty());
        elsewhere.does(4, 4, ProgramEvent::Root);
        assert_eq!(elsewhere.silent(), BTreeSet::from([&b"/4"[..], b"/5"]));
    }
}
