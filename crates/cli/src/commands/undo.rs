//! `undo` and `redo`: bring another recorded version of a file back, from the stored contents.
//!
//! The versions are those of the file's history, each content once in a row. The present content
//! must be one of them, so that nothing is lost. A note in the store's directory says which one, as
//! the same content may have been there several times.
//!
//! Invariant: the file has its old content or its new one at each moment.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use backstory_eventlog::event::Time;
use backstory_files::{Digest, regular};
use backstory_query as query;
use backstory_store::EntityKey;

use super::contents::digest_of_version;
use super::contents::store_contents;
use super::path_log::run_of;
use super::{Outcome, answer};
use crate::args::inspect::UndoArgs;
use crate::commands::diff::summary;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use crate::file_inspector::FileInspector;
use crate::subject;
use crate::text::line::printable;
use crate::text::paths::shown;
use crate::text::when::moment;
use crate::text::words::counted;
use crate::undo_note::{UndoNote, digest_of};
use crate::version_contents::VersionContents;

/// Where to go in the file's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryMove {
    /// To the version before.
    Back,
    /// To the version after.
    Forward,
}

/// A content that the file had.
struct FormerState {
    digest: Digest,
    version: EntityKey,
    run: Option<String>,
    time: Time,
}

/// Replaces the file's content.
pub fn run(args: &UndoArgs, step: HistoryMove, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let name = shown(args.path.as_os_str().as_bytes());
    let path = fs::canonicalize(&args.path).unwrap_or_else(|_| args.path.clone());
    let (states, unknown) = states(&current, &path)?;
    let note = UndoNote::of(current.home.dir(), &path)?;
    let present = present(&path, &name)?;
    let now = present.as_deref().map(digest_of).transpose()?;
    let at = match now {
        None => None,
        Some(now) => match position(&states, now, note.read()) {
            None => return Err(Failure::not_found(not_stored(&current, &unknown, &name)?)),
            at => at,
        },
    };
    let wanted = match (step, at) {
        // A file that is gone comes back as it was last.
        (HistoryMove::Back, None) => states.len().checked_sub(1),
        (HistoryMove::Back, Some(at)) => at.checked_sub(1),
        (HistoryMove::Forward, at) => at.map(|at| at + 1).filter(|&at| at < states.len()),
    };
    let Some(wanted) = wanted else {
        return Err(Failure::not_found(nowhere_to_go(
            &current, step, &unknown, &name,
        )?));
    };
    let state = &states[wanted];
    let of_run = state.run.as_deref().unwrap_or("an unknown run");
    let content = VersionContents::new(&current).read(state.version)?;
    let content =
        content.filter(|content| digest_of(content).is_ok_and(|digest| digest == state.digest));
    let Some(content) = content else {
        let why = match digest_of_version(&current, state.version) {
            Err(failure) => failure.line,
            Ok(_) => format!(
                "the content of {name} of run {of_run} cannot be read from the store; `backstory store verify` says why"
            ),
        };
        return Err(Failure::not_found(why));
    };
    if !args.dry_run {
        replace(&path, &content, now).map_err(|error| {
            Failure::not_found(format!("cannot put the version of {name} back: {error}"))
        })?;
        note.write(state.digest, wanted);
    }
    let compared = FileInspector::new(None).compare(
        path.as_os_str().as_bytes(),
        present.as_deref().unwrap_or_default(),
        &content,
    );
    if let Some(trouble) = &compared.trouble {
        complain(&printable(trouble.to_string().as_bytes()));
    }
    let verb = if args.dry_run { "would become" } else { "is" };
    let other = if step == HistoryMove::Back {
        "redo"
    } else {
        "undo"
    };
    answer(|out| {
        writeln!(
            out,
            "{name} {verb} as run {of_run} left it on {} ({})",
            moment(state.time),
            summary(&compared.difference)
        )?;
        match args.dry_run {
            true => Ok(()),
            false => writeln!(out, "`backstory {other} {name}` takes that back"),
        }
    })
}

/// Why there is no version in that direction, and what helps. `unknown`: recorded versions whose
/// content is not stored.
fn nowhere_to_go(
    current: &CurrentStore,
    step: HistoryMove,
    unknown: &[EntityKey],
    name: &str,
) -> Result<String, Failure> {
    if step == HistoryMove::Forward {
        return Ok(format!(
            "no later version of {name} is recorded; `backstory log -- {name}` lists all"
        ));
    }
    let Some(newest) = unknown.last() else {
        return Ok(format!(
            "no former version of {name} is recorded: a content that no recorded command had read or made is stored before a command overwrites it only with `backstory record --contents=all`"
        ));
    };
    let versions = counted(unknown.len(), "recorded version", "recorded versions");
    let why = query::why_unknown(&current.store, *newest)?;
    Ok(format!(
        "no former version of {name} is stored: {versions} cannot be restored, the newest because {why}; `backstory log -- {name}` lists all"
    ))
}

/// The contents that the file had, the oldest first, and the versions whose content is not stored.
fn states(
    current: &CurrentStore,
    path: &Path,
) -> Result<(Vec<FormerState>, Vec<EntityKey>), Failure> {
    let states = query::content_states(&current.store, path)?;
    let state = |state: query::ContentState| {
        Ok(FormerState {
            digest: state.digest,
            version: state.version,
            run: run_of(current, &state.event)?,
            time: state.event.time,
        })
    };
    let known: Result<Vec<FormerState>, Failure> = states.known.into_iter().map(state).collect();
    Ok((known?, states.unknown))
}

/// The file's content. `None` if the file is gone.
fn present(path: &Path, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    match regular::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::not_found(format!("cannot read {name}: {error}"))),
    }
}

/// The place of the present content in the history. `None` if the store does not have it.
fn position(states: &[FormerState], now: Digest, noted: Option<(Digest, usize)>) -> Option<usize> {
    let noted = noted.filter(|(digest, at)| {
        *digest == now && states.get(*at).is_some_and(|state| state.digest == now)
    });
    let newest = states.iter().rposition(|state| state.digest == now);
    noted.map(|(_, at)| at).or(newest)
}

/// Why the present content would be lost. `unknown`: recorded versions whose content is not stored.
fn not_stored(
    current: &CurrentStore,
    unknown: &[EntityKey],
    name: &str,
) -> Result<String, Failure> {
    let why = match unknown.last() {
        // It may be one of these versions.
        Some(newest) => query::why_unknown(&current.store, *newest)?,
        None => "it was changed outside of recorded runs".to_owned(),
    };
    Ok(format!(
        "the present content of {name} is stored nowhere and would be lost: {why}. Copy it away, or record a command that reads it"
    ))
}

/// Writes beside the file and renames. `now` is what the file had when it was read.
fn replace(path: &Path, content: &[u8], now: Option<Digest>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut beside = tempfile::Builder::new()
        .prefix(".backstory-undo-")
        .tempfile_in(directory)?;
    beside.write_all(content)?;
    let meta = fs::symlink_metadata(path);
    if let Ok(meta) = &meta {
        // Only root may give a file to another user.
        let _ = fchown(beside.as_file(), Some(meta.uid()), Some(meta.gid()));
    }
    let mode = meta.map_or(0o644, |meta| meta.mode() & 0o7777);
    beside
        .as_file()
        .set_permissions(fs::Permissions::from_mode(mode))?;
    beside.as_file().sync_all()?;
    if subject::digest_of_file(path) != now {
        return Err(io::Error::other(
            "it was changed meanwhile; nothing was done",
        ));
    }
    match now {
        Some(_) => beside.persist(path).map_err(|error| error.error)?,
        None => beside
            .persist_noclobber(path)
            .map_err(|error| error.error)?,
    };
    Ok(())
}
