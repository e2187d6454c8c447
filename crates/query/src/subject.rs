//! Finds the versions of a file that a question means: by path, run, moment, or content.
//!
//! In: a store, and what the user named. Out: the keys of versions, to start a search from. The
//! text that a user writes (`PATH@RUN`, `PATH@{2 days ago}`) is parsed elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use backstory_eventlog::event::Time;
use backstory_files::Digest;
use backstory_graph::model::EntityKind;
use backstory_store::{EntityKey, RunKey, Store, VersionMatch};

use crate::history::{PathEvent, at_moment, history};
use crate::root::{self, Asked};
use crate::runs::{record, resolve};
use crate::{Error, Result};

/// The newest version of the file at a path, or the newest that a run used or made.
///
/// # Errors
///
/// [`Error::NotFound`] or [`Error::OnlyMissing`] if no such version is recorded.
pub fn newest(store: &dyn Store, path: &Path, run: Option<&str>) -> Result<EntityKey> {
    let run = match run {
        Some(run) => Some(record(store, &resolve(store, Some(run))?)?.key),
        None => None,
    };
    let (newest, entity) = root::find(store, path, run)?;
    match entity.kind {
        EntityKind::Missing => Err(Error::OnlyMissing(Asked::new(path)?.absolute)),
        _ => Ok(newest),
    }
}

/// The newest version of the file at a path, and the same version in all other runs, for a search
/// of what came from it.
pub fn newest_everywhere(
    store: &dyn Store,
    path: &Path,
    run: Option<&str>,
) -> Result<Vec<EntityKey>> {
    let run = match run {
        Some(run) => Some(record(store, &resolve(store, Some(run))?)?.key),
        None => None,
    };
    root::find_all(store, path, run)
}

/// All versions of the file at a path, in every run that knows them, the newest version first.
///
/// These are the versions of the present file, wherever it was, and all that were recorded at the
/// path.
///
/// # Errors
///
/// [`Error::NotFound`] if no version is recorded.
pub fn all(store: &dyn Store, path: &Path, run: Option<&str>) -> Result<Vec<EntityKey>> {
    let mut found = newest_everywhere(store, path, run)?;
    let run = match run {
        Some(run) => Some(record(store, &resolve(store, Some(run))?)?.key),
        None => None,
    };
    let mut others = Vec::new();
    for name in Asked::new(path)?.names() {
        others.extend(store.at_path(name)?);
    }
    others.sort_unstable();
    others.dedup();
    let known: BTreeSet<EntityKey> = found.iter().copied().collect();
    for key in others.into_iter().rev() {
        let wanted = run.is_none_or(|run| key.run() == run) && !known.contains(&key);
        if wanted && store.entity(key)?.kind != EntityKind::Missing {
            found.push(key);
        }
    }
    Ok(found)
}

/// The last event of a path's history up to a moment. `None` if the history
/// begins later.
pub fn at(store: &dyn Store, path: &Path, time: Time) -> Result<Option<PathEvent>> {
    Ok(at_moment(&history(store, path)?, time).cloned())
}

/// The versions with a content: those that runs made if there are any, else all; the latest first.
pub fn with_content(store: &dyn Store, digest: &Digest) -> Result<Vec<EntityKey>> {
    with_content_in(store, digest, None)
}

/// The same. `run`: only versions of this run.
pub fn with_content_in(
    store: &dyn Store,
    digest: &Digest,
    run: Option<RunKey>,
) -> Result<Vec<EntityKey>> {
    let idents = store.with_content(digest)?;
    for which in [VersionMatch::Made, VersionMatch::Any] {
        let mut found = Vec::new();
        for ident in &idents {
            found.extend(store.same(ident, which)?);
        }
        found.retain(|key| run.is_none_or(|run| key.run() == run));
        found.sort_unstable();
        found.dedup();
        found.reverse();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}
