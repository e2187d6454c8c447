//! The inputs whose bytes came into a file: a line of `of`, if the run that made it was refined.
//!
//! Invariant: a store without refined runs costs one look-up of a directory.

use std::collections::BTreeSet;

use backstory_account::Account;
use backstory_query::{ByteSources, RefinedRuns};
use backstory_store::EntityKey;

use crate::commands::near;
use crate::current_store::CurrentStore;
use crate::json::Value;

/// The most names in the line.
const NAMED: usize = 4;

/// The sources of the bytes of a file.
#[derive(Debug)]
pub struct FileBytes(ByteSources);

impl FileBytes {
    /// The sources of all bytes of a version. `None` if its run was not refined, or if the engine
    /// has no write to the file. The line is an addition to another answer, so a trouble is not
    /// reported.
    pub fn of_version(current: &CurrentStore, version: EntityKey) -> Option<FileBytes> {
        let run = current.store.run_id(version.run()).ok().flatten()?;
        if !current.home.bytes_dir(&run).exists() {
            return None;
        }
        let sources = ByteSources::of_version(&mut refined_runs(current), version);
        sources.ok().flatten().map(FileBytes)
    }

    /// The user's files that the run used on the way to the file, and that gave it no byte.
    /// Nothing is certain about them if more is possible than was found.
    fn without(&self, account: &Account) -> BTreeSet<Vec<u8>> {
        if self.0.is_possible {
            return BTreeSet::new();
        }
        let own = account.chain.iter().filter(|&&at| {
            let run = account.commands[at].run;
            account.runs[run].details.summary.id == self.0.run
        });
        let own: Vec<usize> = own.copied().collect();
        // The engine counts the bytes of programs as constants.
        let programs = own.iter().flat_map(|&at| &account.commands[at].executes);
        let programs: BTreeSet<usize> = programs.copied().collect();
        let used = own.iter().flat_map(|&at| account.sources(at));
        let files = used
            .filter(|file| !programs.contains(file))
            .map(|file| account.files[file].path.to_vec());
        files.filter(|path| !self.0.passed.contains(path)).collect()
    }

    /// The line of a screen.
    pub fn line(&self, account: &Account) -> String {
        let mut from = names(&self.0.from);
        if self.0.from_others {
            from.push("other inputs".to_owned());
        }
        let from = match from.is_empty() {
            true => "from no input".to_owned(),
            false => format!("from {}", from.join(", ")),
        };
        let without = names(&self.without(account));
        let none = match (without.is_empty(), self.0.is_possible) {
            (_, true) => "; possibly also from others".to_owned(),
            (true, false) => String::new(),
            // A branch may have depended on them.
            (false, false) => format!("; none from {}, apart from decisions", without.join(", ")),
        };
        let last = self.0.length.saturating_sub(1);
        let file = near(&self.0.path);
        format!("bytes: {from}{none} (`of {file} --bytes 0-{last}` has the ranges)")
    }

    /// The same for programs.
    pub fn json(&self, account: &Account) -> Value {
        let list = |paths: &BTreeSet<Vec<u8>>| Value::array(paths.iter().map(Vec::as_slice));
        Value::Object(vec![
            ("from", list(&self.0.from)),
            ("from_others", self.0.from_others.into()),
            ("none_from", list(&self.without(account))),
            ("possible", self.0.is_possible.into()),
        ])
    }
}

/// The runs of a store that the byte engine followed.
pub fn refined_runs(current: &CurrentStore) -> RefinedRuns<'_> {
    RefinedRuns::of(&*current.store, &current.home.bytes_dir(""))
}

/// The first names, and the number of the others.
pub fn names(paths: &BTreeSet<Vec<u8>>) -> Vec<String> {
    let mut names: Vec<String> = paths.iter().take(NAMED).map(|path| near(path)).collect();
    if paths.len() > NAMED {
        names.push(format!("{} more", paths.len() - NAMED));
    }
    names
}
