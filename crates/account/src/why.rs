//! The shortest way between the subject and another file, step by step.
//!
//! In: an account and a file of it. Out: the commands on the way, from the subject to the file. A
//! way of the data is preferred. A file may have decided only which commands ran, as a Makefile
//! does. Such a file is found if no data flowed from it. The pipes that a starter read do not
//! count.

use std::collections::{HashMap, VecDeque};

use backstory_query::address_of;

use crate::Direction;
use crate::account::Account;
use crate::chain::onward;

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

    /// The connections with this address, in either direction, in the order of their numbers.
    pub fn connections_with(&self, address: &[u8]) -> Vec<usize> {
        (0..self.files.len())
            .filter(|&file| address_of(&self.files[file].path) == Some(address))
            .collect()
    }

    /// The shortest way from the subject to one of these files. `None` if there is no way.
    pub fn way(&self, wanted: &[usize]) -> Option<Vec<WayStep>> {
        let of_data = self.way_by(wanted, &|near| self.used(near));
        of_data.or_else(|| self.way_by(wanted, &|near| self.used_or_started(near)))
    }

    /// The shortest way of the steps that `from` finds.
    fn way_by(
        &self,
        wanted: &[usize],
        from: &dyn Fn(usize) -> Vec<WayStep>,
    ) -> Option<Vec<WayStep>> {
        let mut came: HashMap<usize, WayStep> = HashMap::new();
        let mut waiting: VecDeque<usize> = self.roots.iter().copied().collect();
        while let Some(near) = waiting.pop_front() {
            for step in from(near) {
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

    /// The steps from a file: what its makers used, or what its users made.
    fn used(&self, near: usize) -> Vec<WayStep> {
        let commands = self.commands_at(near).iter();
        let step = |command, far| WayStep {
            near,
            command,
            far,
            starter: None,
        };
        commands
            .flat_map(|&at| onward(self, at).iter().map(move |&far| step(at, far)))
            .collect()
    }

    /// The same, then the files that the starters of the makers read.
    fn used_or_started(&self, near: usize) -> Vec<WayStep> {
        let mut steps = self.used(near);
        if self.direction == Direction::Forth {
            return steps;
        }
        for &command in self.commands_at(near) {
            for &starter in &self.commands[command].drivers {
                let reads = self.commands[starter].reads.iter().copied();
                let files = reads.filter(|&far| self.files[far].is_content());
                steps.extend(files.map(|far| WayStep {
                    near,
                    command,
                    far,
                    starter: Some(starter),
                }));
            }
        }
        steps
    }

    /// The commands on the far side of a file.
    fn commands_at(&self, file: usize) -> &[usize] {
        match self.direction {
            Direction::Back => &self.files[file].makers,
            Direction::Forth => &self.files[file].users,
        }
    }
}
