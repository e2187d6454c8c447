//! Narrows an account to the steps that a question is about.
//!
//! In: an account and a [`Narrowing`]. Out: the same account with a shorter chain. Files and
//! commands keep their numbers.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashMap};

use backstory_query::Globs;

use crate::account::Account;
use crate::chain::{beyond, onward};

/// Which steps of an account a question is about. The default is all.
#[derive(Debug, Clone, Default)]
pub struct Narrowing {
    /// Only the commands within so many steps from the subject.
    pub depth: Option<usize>,
    /// Only the commands that used or made a file of one of these patterns.
    pub only: Option<Globs>,
    /// Only the ways between the subject and its origins (or results) that lead through a file of
    /// one of these patterns.
    pub through: Option<Globs>,
}

impl Account {
    /// Leaves out the commands that a question is not about.
    pub fn narrow(&mut self, to: &Narrowing) {
        if let Some(most) = to.depth {
            let depths = self.depths();
            let before = self.chain.len();
            self.chain
                .retain(|at| depths.get(at).is_some_and(|depth| *depth <= most));
            self.cut |= self.chain.len() < before;
        }
        if let Some(globs) = &to.through {
            let kept = self.through(globs);
            self.chain.retain(|at| kept.contains(at));
        }
        if let Some(globs) = &to.only {
            let touching: BTreeSet<usize> = self
                .chain
                .iter()
                .copied()
                .filter(|&at| self.touches(at, globs))
                .into_tree();
            self.chain.retain(|at| touching.contains(at));
        }
        let kept: BTreeSet<usize> = self.chain.iter().copied().into_tree();
        self.own.retain(|at| kept.contains(at));
        let starters: BTreeSet<usize> = self
            .chain
            .iter()
            .flat_map(|&at| &self.commands[at].drivers)
            .copied()
            .into_tree();
        self.drivers.retain(|at| starters.contains(at));
    }

    /// True if a command used or made a file that matches.
    fn touches(&self, command: usize, globs: &Globs) -> bool {
        let command = &self.commands[command];
        let mut files = command.reads.iter().chain(&command.writes);
        files.any(|&file| globs.matches(&self.files[file].path))
    }

    /// The number of steps from the subject to each command of the chain.
    fn depths(&self) -> HashMap<usize, usize> {
        let chain: BTreeSet<usize> = self.chain.iter().copied().into_tree();
        let mut depths = HashMap::new();
        let roots = self.roots.iter();
        let mut level: Vec<usize> = roots.flat_map(|&root| beyond(self, root)).collect();
        let mut depth = 1;
        while !level.is_empty() {
            let mut next = Vec::new();
            for at in level {
                if chain.contains(&at) && !depths.contains_key(&at) {
                    depths.insert(at, depth);
                    next.extend(onward(self, at).iter().flat_map(|&file| beyond(self, file)));
                }
            }
            level = next;
            depth += 1;
        }
        depths
    }

    /// The commands on the ways through a file that matches, on both sides of it.
    fn through(&self, globs: &Globs) -> BTreeSet<usize> {
        let gate = |file: usize| globs.matches(&self.files[file].path);
        // Beyond the file: everything that it leads to.
        let mut far = BTreeSet::new();
        let files = self.chain.iter().flat_map(|&at| {
            let command = &self.commands[at];
            command.reads.iter().chain(&command.writes).copied()
        });
        let mut waiting: Vec<usize> = files
            .filter(|&file| gate(file))
            .flat_map(|file| beyond(self, file))
            .collect();
        while let Some(at) = waiting.pop() {
            if far.insert(at) {
                waiting.extend(onward(self, at).iter().flat_map(|&file| beyond(self, file)));
            }
        }
        // On this side: commands from which the file can be reached. Those nearer to the subject
        // stand first in the chain, so one pass from the back sees the others first.
        let mut near = BTreeSet::new();
        for &at in self.chain.iter().rev() {
            let mut files = onward(self, at).iter();
            let leads = |file: usize| {
                gate(file) || beyond(self, file).iter().any(|other| near.contains(other))
            };
            if files.any(|&file| leads(file)) {
                near.insert(at);
            }
        }
        near.union(&far).copied().collect()
    }
}
