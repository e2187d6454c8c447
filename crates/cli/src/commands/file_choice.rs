//! Which files `files` and `processes` are about, and which of them are the user's own.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_query::answer::Access;
use backstory_query::{self as query, FileFilter, TextPattern};
use backstory_workflow::callers_files;
use backstory_workflow::ownership::{FileOwner, Ownership};

use crate::args::search::FileChoice;
use crate::current_store::CurrentStore;
use crate::error::Failure;

/// The files that an answer counts instead of listing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hiding {
    /// Nothing: everything is listed.
    Nothing,
    /// System files that were not changed.
    System,
    /// All that is not the user's own.
    NotOwn,
}

/// The files that are counted: those that the user chose, or at a terminal all that are not the
/// user's own.
pub fn hiding(which: &FileChoice) -> Hiding {
    let chosen_place = !which.under.is_empty();
    match (which.own, which.all) {
        (true, _) => Hiding::NotOwn,
        (_, true) => Hiding::Nothing,
        _ if chosen_place => Hiding::Nothing,
        _ if std::io::stdout().is_terminal() => Hiding::NotOwn,
        _ => Hiding::System,
    }
}

/// The conditions as the query takes them.
pub fn filter(which: &FileChoice) -> Result<FileFilter, Failure> {
    use Access::*;
    let groups: [(bool, &[Access]); 4] = [
        (which.read, &[Read, Exec]),
        (which.written, &[Write, Rename, Meta]),
        (which.deleted, &[Delete]),
        (which.looked_up, &[Stat, Dir, Missing, Link]),
    ];
    let chosen = groups.iter().filter(|(chosen, _)| *chosen);
    let mut under = Vec::new();
    for dir in &which.under {
        under.extend(directory(dir)?);
    }
    Ok(FileFilter {
        access: chosen
            .flat_map(|(_, group)| group.iter().copied())
            .collect(),
        by: which.by.as_deref().map(TextPattern::new).transpose()?,
        under,
        ..FileFilter::default()
    })
}

/// The absolute paths of a directory: in the text, and with links followed.
fn directory(dir: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let absolute = std::path::absolute(dir).map_err(|error| {
        Failure::not_found(format!("cannot tell where {} is: {error}", dir.display()))
    })?;
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let text = backstory_workflow::paths::absolute(&bytes(&absolute), b"/");
    let real = absolute.canonicalize().ok().map(|real| bytes(&real));
    Ok(std::iter::once(text).chain(real).collect())
}

/// Says which files of a run are the user's own, by the one definition of all commands.
pub struct OwnFilter {
    ownership: RefCell<Ownership>,
    /// Files that the run printed to, and that are its caller's.
    callers: Vec<Vec<u8>>,
}

impl OwnFilter {
    /// For the files of one run.
    pub fn of(current: &CurrentStore, run: &str) -> Result<OwnFilter, Failure> {
        let store = &current.store;
        let directory = query::facts(store, run)?.summary.cwd;
        let ownership = Ownership::indexed(&current.home.packages_path(), [&*directory]);
        Ok(OwnFilter {
            ownership: RefCell::new(ownership),
            callers: callers_files(store, run)?,
        })
    }

    /// True if a file is the user's own, or a file of the system that the run changed. A file that
    /// the caller redirected the run's output to is not, unless it is the run's only result or the
    /// run read it.
    pub fn is_own(&self, path: &[u8], access: &[Access]) -> bool {
        let read = access
            .iter()
            .any(|one| matches!(one, Access::Read | Access::Exec));
        if !read && self.callers.iter().any(|printed| **printed == *path) {
            return false;
        }
        let changed = access.iter().any(is_change);
        let removed = access.contains(&Access::Delete) && access.contains(&Access::Write);
        let mut ownership = self.ownership.borrow_mut();
        match changed {
            true => {
                let temporary = removed && ownership.owner_of_removed(path) == FileOwner::Temporary;
                !temporary && ownership.is_own_result(path)
            }
            false => ownership.is_own(path),
        }
    }

    /// True if a file that no longer exists has a name that a program made up for a moment.
    pub fn was_temporary(&self, path: &[u8]) -> bool {
        let gone = std::fs::symlink_metadata(OsStr::from_bytes(path)).is_err();
        gone && self.ownership.borrow_mut().owner(path) == FileOwner::Temporary
    }
}

/// True if it changes something.
pub fn is_change(access: &Access) -> bool {
    matches!(
        access,
        Access::Write | Access::Delete | Access::Rename | Access::Meta
    )
}
