//! Finds the commands through which content flowed, and their order.
//!
//! In: an account whose commands and files are known. Out: its `chain` and its `drivers`. The chain
//! follows files and pipes, not the start of processes. A driver's own inputs are followed to the
//! commands that made them: `configure` made the Makefile.
//!
//! In the chain each command stands behind all commands that are nearer to the subject.

use backstory_ordering::SmallSort;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use backstory_graph::model::EntityKind;
use backstory_workflow::paths::is_option_file;

use crate::Direction;
use crate::account::Account;

/// Fills in the chain and the drivers.
pub fn find(account: &mut Account) {
    let mut started: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (at, command) in account.commands.iter().enumerate() {
        for driver in &command.drivers {
            started.entry(*driver).or_default().push(at);
        }
    }
    let mut finder = ChainFinder {
        account,
        started,
        reached: BTreeSet::new(),
        drivers: BTreeSet::new(),
    };
    finder.reach();
    let (reached, drivers) = (finder.reached, finder.drivers);
    let mut chain = ordered(account, &reached);
    if account.direction == Direction::Forth {
        chain.retain(|&at| leaves_files(account, at));
    }
    account.chain = chain;
    account.own = match account.direction {
        Direction::Back => own(account),
        Direction::Forth => account.chain.iter().copied().collect(),
    };
    let mut drivers: Vec<usize> = drivers
        .into_iter()
        .filter(|driver| !reached.contains(driver))
        .collect();
    drivers.sort_small_by_key(|&at| std::cmp::Reverse(account.commands[at].start));
    account.drivers = drivers;
}

struct ChainFinder<'a> {
    account: &'a Account,
    /// The commands that each command started.
    started: FxHashMap<usize, Vec<usize>>,
    reached: BTreeSet<usize>,
    drivers: BTreeSet<usize>,
}

impl ChainFinder<'_> {
    fn reach(&mut self) {
        let mut waiting: Vec<usize> = self
            .account
            .roots
            .iter()
            .flat_map(|&root| beyond(self.account, root))
            .collect();
        while let Some(at) = waiting.pop() {
            if !self.reached.insert(at) {
                continue;
            }
            let command = &self.account.commands[at];
            for &file in onward(self.account, at) {
                waiting.extend(beyond(self.account, file));
            }
            if self.account.direction == Direction::Forth {
                // A driver passes the content of a file on to the commands that it starts later.
                if let Some(first) = command.first_read {
                    let started = self.started.get(&at).into_iter().flatten();
                    let later = |other: &usize| self.account.commands[*other].start >= first;
                    waiting.extend(started.copied().filter(later));
                }
                continue;
            }
            for &driver in &command.drivers {
                if !self.drivers.insert(driver) {
                    continue;
                }
                let reads = self.account.commands[driver].reads.iter();
                let files = reads.filter(|&&file| self.account.files[file].is_content());
                for &file in files {
                    waiting.extend(beyond(self.account, file));
                }
            }
        }
    }
}

/// True if a command used or made a file. A builder that only showed what its commands printed, and
/// kept its own records, did not.
fn leaves_files(account: &Account, command: usize) -> bool {
    let command = &account.commands[command];
    let mut files = command.reads.iter().chain(&command.writes);
    files.any(|&file| {
        let file = &account.files[file];
        file.kind != EntityKind::Pipe && !file.cache
    })
}

/// The commands of the chain that used a source of the user's own, a connection, or what such a
/// command made. A command that made one of the user's own files of nothing (`seq 9 > numbers`) is
/// there, too. So are the parts that a program named: it named them for a reader.
fn own(account: &Account) -> BTreeSet<usize> {
    let mut own = BTreeSet::new();
    let is_own = |file: usize| account.is_source(file) && account.files[file].own;
    // Without a time of modification, the file was gone when the run ended. Trials of a builder are
    // no work of the user.
    let stays = |file: usize| {
        let file = &account.files[file];
        let kept = file.modified.is_some() && !is_option_file(&file.path);
        file.own && file.is_content() && kept
    };
    // The makers stand behind the users, so one pass from the back sees them first. A pipe that a
    // command and its reader write to in turn makes a second pass necessary.
    loop {
        let before = own.len();
        for &at in account.chain.iter().rev() {
            let reads = &account.commands[at].reads;
            let leads = |file: usize| {
                is_own(file)
                    || account.files[file]
                        .makers
                        .iter()
                        .any(|maker| own.contains(maker))
            };
            let begins = || account.commands[at].writes.iter().any(|&file| stays(file));
            if account.commands[at].is_part || reads.iter().any(|&file| leads(file)) || begins() {
                own.insert(at);
            }
        }
        if own.len() == before {
            return own;
        }
    }
}

/// The files of a command that lead on.
pub(crate) fn onward(account: &Account, command: usize) -> &[usize] {
    match account.direction {
        Direction::Back => &account.commands[command].reads,
        Direction::Forth => &account.commands[command].writes,
    }
}

/// The commands behind a file. A cache leads nowhere.
pub(crate) fn beyond(account: &Account, file: usize) -> Vec<usize> {
    let file = &account.files[file];
    if file.cache {
        return Vec::new();
    }
    match account.direction {
        Direction::Back => file.makers.clone(),
        Direction::Forth => file.users.clone(),
    }
}

/// The reached commands, each behind those that are nearer to the subject.
fn ordered(account: &Account, reached: &BTreeSet<usize>) -> Vec<usize> {
    // A depth-first search leaves a command after all that lie beyond it. It has no recursion: a
    // chain can be as deep as the store is old.
    let mut done: BTreeSet<usize> = BTreeSet::new();
    let mut order = Vec::new();
    let next = |at: usize| -> Vec<usize> {
        let files = onward(account, at).iter();
        let mut all: Vec<usize> = files.flat_map(|&file| beyond(account, file)).collect();
        all.retain(|other| *other != at && reached.contains(other));
        all.sort_small_by_key(|&other| account.commands[other].start);
        all.dedup();
        all
    };
    let mut first: Vec<usize> = reached.iter().copied().collect();
    first.sort_small_by_key(|&at| account.commands[at].start);
    if account.direction == Direction::Forth {
        first.reverse();
    }
    for at in first {
        if !done.insert(at) {
            continue;
        }
        let mut stack = vec![(at, next(at).into_iter())];
        while let Some((at, others)) = stack.last_mut() {
            match others.next() {
                Some(other) if done.insert(other) => stack.push((other, next(other).into_iter())),
                Some(_) => {}
                None => {
                    order.push(*at);
                    stack.pop();
                }
            }
        }
    }
    order.reverse();
    order
}
