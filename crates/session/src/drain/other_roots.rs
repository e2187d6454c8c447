//! Without the guard: finds the programs that were executed in another root and never observed.
//!
//! In another root a path cannot be resolved from here, and the file is often gone later. Therefore
//! the program file is not examined. A program with a recorder makes itself known by a chunk of its
//! own, at its first operation. A program that stays silent is unknown, whatever it is: it may have
//! done nothing, but that cannot be proved.

use super::executed::ProgramEvent;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Most processes that are remembered.
const PROCESSES: usize = 10_000;
/// Most generations of ancestors that are searched.
const GENERATIONS: usize = 16;

/// The executions of processes, and the processes that changed their root.
#[derive(Debug, Default)]
pub(super) struct ProgramsInOtherRoots {
    went: HashSet<u32>,
    processes: HashMap<u32, LastHeard>,
}

/// The latest facts about a process.
#[derive(Debug, Default)]
struct LastHeard {
    parent: u32,
    /// The latest start of its recorder.
    epoch: u64,
    /// The program that it executed after that.
    executed: Option<Box<[u8]>>,
}

impl ProgramsInOtherRoots {
    /// The recorder of a process has started, as the `epoch`th of the run.
    pub(super) fn heard(&mut self, pid: u32, parent: u32, epoch: u64) {
        if let Some(process) = self.process(pid) {
            process.parent = parent;
            if epoch > process.epoch {
                process.epoch = epoch;
                process.executed = None;
            }
        }
    }

    /// A process did this, as recorded after that start of its recorder.
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

    /// True if a process or one of its ancestors is known to have changed its root.
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

    /// Programs that were executed in another root and never observed.
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
    fn a_program_observed_after_its_exec_is_known() {
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
