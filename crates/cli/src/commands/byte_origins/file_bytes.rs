//! The inputs whose bytes came into a file: a line of `of`, if the run that made it was refined.
//!
//! Invariant: a store without refined runs costs one look-up of a directory.

use std::collections::BTreeSet;
use std::slice;

use backstory_account::Account;
use backstory_bytes::EntityKind;
use backstory_store::{EntityKey, GraphStore};

use super::RefinedRuns;
use crate::commands::near;
use crate::current_store::CurrentStore;
use crate::json::Value;

/// The most names in the line.
const NAMED: usize = 4;

/// The sources of the bytes of a file.
#[derive(Debug)]
pub struct FileBytes {
    /// The run that wrote them.
    run: String,
    path: Vec<u8>,
    length: u64,
    /// The files from before all refined runs, in order.
    from: BTreeSet<Vec<u8>>,
    /// These, and the files between them and this one.
    passed: BTreeSet<Vec<u8>>,
    /// True if bytes came from something else than a file: a pipe, a connection, arguments.
    others: bool,
    /// True if more is possible than was found.
    possible: bool,
}

impl FileBytes {
    /// The sources of all bytes of a version. `None` if its run was not refined, or if the engine
    /// has no write to the file. The line is an addition to another answer, so a trouble is not
    /// reported.
    pub fn of_version(current: &CurrentStore, version: EntityKey) -> Option<FileBytes> {
        let run = current.store.run_id(version.run()).ok().flatten()?;
        if !current.home.bytes_dir(&run).exists() {
            return None;
        }
        FileBytes::in_runs(&mut RefinedRuns::of(current).ok()?, current, version)
    }

    /// As [`FileBytes::of_version`], with the refined runs that the caller has read.
    pub fn in_runs(
        runs: &mut RefinedRuns<'_>,
        current: &CurrentStore,
        version: EntityKey,
    ) -> Option<FileBytes> {
        let run = current.store.run_id(version.run()).ok().flatten()?;
        if !runs.has(&run) {
            return None;
        }
        let entity = current.store.entity(version).ok()?;
        let length = u64::try_from(entity.ident?.size).ok()?;
        let found = runs
            .origins(&run, &entity.path, slice::from_ref(&(0..length)))
            .ok()??;
        let files = found
            .sources
            .iter()
            .filter(|one| one.entity.kind == EntityKind::File);
        Some(FileBytes {
            run,
            path: entity.path.to_vec(),
            length,
            from: files.map(|one| one.entity.path.clone()).collect(),
            others: found
                .sources
                .iter()
                .any(|one| one.entity.kind != EntityKind::File),
            possible: !found.possible.is_empty() || found.coarse,
            passed: found.passed,
        })
    }

    /// True if bytes of one of these files came into it. `None`: that is only possible.
    pub fn has_bytes_of(&self, paths: &BTreeSet<Vec<u8>>) -> Option<bool> {
        match self.passed.is_disjoint(paths) {
            false => Some(true),
            true => (!self.possible).then_some(false),
        }
    }

    /// The user's files that the run used on the way to the file, and that gave it no byte.
    /// Nothing is certain about them if more is possible than was found.
    fn without(&self, account: &Account) -> BTreeSet<Vec<u8>> {
        if self.possible {
            return BTreeSet::new();
        }
        let own = account.chain.iter().filter(|&&at| {
            let run = account.commands[at].run;
            account.runs[run].details.summary.id == self.run
        });
        let own: Vec<usize> = own.copied().collect();
        // The engine counts the bytes of programs as constants.
        let programs = own.iter().flat_map(|&at| &account.commands[at].executes);
        let programs: BTreeSet<usize> = programs.copied().collect();
        let used = own.iter().flat_map(|&at| account.sources(at));
        let files = used
            .filter(|file| !programs.contains(file))
            .map(|file| account.files[file].path.to_vec());
        files.filter(|path| !self.passed.contains(path)).collect()
    }

    /// The line of a screen.
    pub fn line(&self, account: &Account) -> String {
        let mut from = names(&self.from);
        if self.others {
            from.push("other inputs".to_owned());
        }
        let from = match from.is_empty() {
            true => "from no input".to_owned(),
            false => format!("from {}", from.join(", ")),
        };
        let without = names(&self.without(account));
        let none = match (without.is_empty(), self.possible) {
            (_, true) => "; possibly also from others".to_owned(),
            (true, false) => String::new(),
            // A branch may have depended on them.
            (false, false) => format!("; none from {}, apart from decisions", without.join(", ")),
        };
        let last = self.length.saturating_sub(1);
        let file = near(&self.path);
        format!("bytes: {from}{none} (`of {file} --bytes 0-{last}` has the ranges)")
    }

    /// The same for programs.
    pub fn json(&self, account: &Account) -> Value {
        let list = |paths: &BTreeSet<Vec<u8>>| Value::array(paths.iter().map(Vec::as_slice));
        Value::Object(vec![
            ("from", list(&self.from)),
            ("from_others", self.others.into()),
            ("none_from", list(&self.without(account))),
            ("possible", self.possible.into()),
        ])
    }
}

/// The first names, and the number of the others.
pub fn names(paths: &BTreeSet<Vec<u8>>) -> Vec<String> {
    let mut names: Vec<String> = paths.iter().take(NAMED).map(|path| near(path)).collect();
    if paths.len() > NAMED {
        names.push(format!("{} more", paths.len() - NAMED));
    }
    names
}
