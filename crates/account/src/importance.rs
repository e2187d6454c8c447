//! Which steps a reader needs most, if not all fit a screen.
//!
//! In: an account and its steps. Out: a [`Weight`] for each step.
//!
//! - A step weighs more the more of the user's own files flow through it.
//! - A step weighs more if it uses files that few other steps use.
//! - The maker of the subject weighs most. Towards the results, the nearest step weighs most.
//! - Programs that only look after a package's directory weigh least.

use backstory_ordering::SmallSort;
use backstory_workflow::steps::is_one;
use backstory_workflow::tools::knowledge;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Direction;
use crate::account::Account;
use crate::siblings::Siblings;

/// The weight of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    /// It made the subject.
    pub subject: bool,
    /// It only looks after a package's directory, or prints into pipes.
    pub helps: bool,
    /// The files that flow through it, and those that few others use.
    pub flow: f64,
}

impl Weight {
    /// A number by which steps can be sorted.
    pub fn rank(&self) -> f64 {
        match (self.subject, self.helps) {
            (true, _) => f64::MAX,
            (_, true) => self.flow / 1e6,
            _ => self.flow,
        }
    }
}

/// The weight of each step.
pub fn weights(account: &Account, steps: &[Siblings]) -> Vec<Weight> {
    let of: FxHashMap<usize, usize> = (0..)
        .zip(steps)
        .flat_map(|(step, siblings)| siblings.commands.iter().map(move |&at| (at, step)))
        .collect();
    let mut users: FxHashMap<usize, FxHashSet<usize>> = FxHashMap::default();
    for (&at, &step) in &of {
        for file in account.sources(at) {
            users.entry(file).or_default().insert(step);
        }
    }
    let through = through(account, steps);
    let weigh = |(step, siblings): (usize, &Siblings)| {
        let sources: FxHashSet<usize> = siblings
            .commands
            .iter()
            .flat_map(|&at| account.sources(at))
            .collect();
        let rare: f64 = sources
            .iter()
            .map(|file| 1.0 / users[file].len() as f64)
            .sum();
        let writes = || {
            siblings
                .commands
                .iter()
                .flat_map(|&at| &account.commands[at].writes)
        };
        let subject = writes().any(|file| account.roots.contains(file));
        let is_file = |&file: &usize| account.files[file].is_content();
        let mut reads = siblings
            .commands
            .iter()
            .flat_map(|&at| &account.commands[at].reads);
        let files = match account.direction {
            Direction::Back => writes().any(is_file),
            Direction::Forth => writes().any(is_file) || reads.any(is_file),
        };
        Weight {
            subject,
            helps: !files || housekeeps(siblings),
            flow: match account.direction {
                Direction::Back => 4.0 * rare + through[step] as f64 + 1.0,
                // The nearer to the subject, the more.
                Direction::Forth => (steps.len() - step) as f64,
            },
        }
    };
    steps.iter().enumerate().map(weigh).collect()
}

/// Some of the user's own files, one bit for each. In a long history, thousands of commands pass
/// thousands of files on.
#[derive(Clone, Default)]
struct FileSet(Vec<u64>);

impl FileSet {
    fn insert(&mut self, file: usize) {
        let word = file / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (file % 64);
    }

    fn add(&mut self, other: &FileSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            *own |= more;
        }
    }

    fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The number of the user's own files whose content each step passes on.
fn through(account: &Account, steps: &[Siblings]) -> Vec<usize> {
    let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
    let mut passed: Vec<Option<FileSet>> = vec![None; account.commands.len()];
    let mut order: Vec<usize> = account.chain.clone();
    if account.direction == Direction::Back {
        order.reverse();
    }
    for at in order {
        let mut own = FileSet::default();
        for source in account.sources(at) {
            let next = numbers.len();
            own.insert(*numbers.entry(source).or_insert(next));
        }
        let mut makers: Vec<usize> = Vec::new();
        for &file in &account.commands[at].reads {
            makers.extend(&account.files[file].makers);
        }
        makers.sort_small();
        makers.dedup();
        for earlier in makers.iter().filter_map(|maker| passed[*maker].as_ref()) {
            own.add(earlier);
        }
        passed[at] = Some(own);
    }
    let count = |siblings: &Siblings| {
        let mut all = FileSet::default();
        for at in &siblings.commands {
            passed[*at].iter().for_each(|own| all.add(own));
        }
        all.len()
    };
    steps.iter().map(count).collect()
}

/// True for a program that only looks after the directory of a package.
fn housekeeps(siblings: &Siblings) -> bool {
    let program = siblings.words.first().map(|word| word.text.as_bytes());
    program.is_some_and(|name| {
        let beginnings = &knowledge().programs.housekeepers;
        let base = backstory_workflow::paths::base_name(name);
        is_one(name, beginnings)
            || beginnings.iter().any(|beginning| {
                let beginning = beginning.strip_suffix('*').map(str::as_bytes);
                beginning.is_some_and(|beginning| base.starts_with(beginning))
            })
    })
}
