//! The shortest way between the subject and another file, step by step.
//!
//! In: an account and a file of it. Out: the commands on the way, from the subject to the file. A
//! file that only decided which commands ran, as a Makefile did, is found, too.

use std::collections::{HashMap, VecDeque};

use crate::Direction;
use crate::account::Account;

/// A step of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayStep {
    /// The file on the subject's side of the command.
    pub near: usize,
    /// The command.
    pub command: usize,
    /// The file on the other side.
    pub far: usize,
    /// The command that read `far` and started the step's command. `None` if the step's command
    /// used `far` itself.
    pub starter: Option<usize>,
}

impl Account {
    /// The files with this path, in the order of their numbers.
    pub fn files_at(&self, path: &[u8]) -> Vec<usize> {
        (0..self.files.len())
            .filter(|&file| *self.files[file].path == *path)
            .collect()
    }

    /// The shortest way from the subject to one of these files. `None` if there is no way.
    pub fn way(&self, wanted: &[usize]) -> Option<Vec<WayStep>> {
        let mut came: HashMap<usize, WayStep> = HashMap::new();
        let mut waiting: VecDeque<usize> = self.roots.iter().copied().collect();
        while let Some(near) = waiting.pop_front() {
            for step in self.steps_from(near) {
                let known = came.contains_key(&step.far) || self.roots.contains(&step.far);
                if known {
                    continue;
                }
                came.insert(step.far, step);
                if wanted.contains(&step.far) {
                    return Some(self.back(&came, step));
                }
                waiting.push_back(step.far);
            }
        }
        None
    }

    fn back(&self, came: &HashMap<usize, WayStep>, last: WayStep) -> Vec<WayStep> {
        let before = |step: &WayStep| came.get(&step.near).copied();
        let mut way: Vec<WayStep> = std::iter::successors(Some(last), before).collect();
        way.reverse();
        way
    }

    /// The steps from a file: what its makers used, then what their starters used.
    fn steps_from(&self, near: usize) -> Vec<WayStep> {
        let back = self.direction == Direction::Back;
        let file = &self.files[near];
        let commands = if back { &file.makers } else { &file.users };
        let step = |command, far, starter| WayStep {
            near,
            command,
            far,
            starter,
        };
        let mut steps = Vec::new();
        for &at in commands {
            let command = &self.commands[at];
            let far = if back {
                &command.reads
            } else {
                &command.writes
            };
            steps.extend(far.iter().map(|&far| step(at, far, None)));
        }
        for &at in commands.iter().filter(|_| back) {
            for &starter in &self.commands[at].drivers {
                let reads = self.commands[starter].reads.iter();
                steps.extend(reads.map(|&far| step(at, far, Some(starter))));
            }
        }
        steps
    }
}
