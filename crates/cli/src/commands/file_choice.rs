//! Which files `files` and `processes` are about, and which of them are the user's own.

use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::Ident;
use backstory_query::answer::Access;
use backstory_query::{self as query, FileFilter, TextPattern};
use backstory_store::Store;
use backstory_workflow::paths::{is_of_kernel, is_tool};

use crate::args::search::FileChoice;
use crate::error::Failure;
use crate::text::paths::is_system;

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

/// True if a file is the user's own, or a system file that the run changed.
pub fn is_own(
    store: &dyn Store,
    path: &[u8],
    ident: Option<&Ident>,
    access: &[Access],
) -> query::Result<bool> {
    if is_of_kernel(path) {
        return Ok(false);
    }
    let changed = access.iter().any(is_change);
    match (is_system(path), is_tool(path)) {
        (true, _) => Ok(changed),
        (false, true) => Ok(false),
        _ if changed => Ok(true),
        // A file of a package elsewhere: a virtual environment, `node_modules`.
        _ => {
            let known = query::known(store, ident)?;
            Ok(known.is_none_or(|(_, availability)| availability.package().is_none()))
        }
    }
}

/// True if it changes something.
pub fn is_change(access: &Access) -> bool {
    matches!(
        access,
        Access::Write | Access::Delete | Access::Rename | Access::Meta
    )
}
