//! `undo` and `redo`: bring another recorded version of a file back, from the stored contents.
//!
//! The versions are those of the file's history, each content once in a row, and the former files
//! that `rerun` overwrote. The present content must be one of them, so that nothing is lost. A note
//! in the store's directory says which one, as the same content may have been there several times.
//!
//! A file that `rerun` overwrote comes back with its holes, extended attributes, mode and times. If
//! it had several names, it is linked with one of them that is in its directory. The present
//! file is kept before in the same way.
//!
//! Invariant: the file has its old content or its new one at each moment.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Time;
use backstory_files::{Digest, regular};
use backstory_ordering::SmallSort;
use backstory_query as query;
use backstory_replay::rerun::overwritten_files::OverwrittenFile;
use backstory_replay::rerun::{faithful_copy, overwritten_files};
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
    source: FormerSource,
    run: Option<String>,
    time: Time,
}

/// Where a content is.
enum FormerSource {
    /// In the store of contents: that of this version.
    Version(EntityKey),
    /// In a copy that `rerun` or `undo` kept.
    Copy(OverwrittenFile),
}

/// Replaces the file's content.
pub fn run(args: &UndoArgs, step: HistoryMove, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let name = shown(args.path.as_os_str().as_bytes());
    let path = fs::canonicalize(&args.path).unwrap_or_else(|_| args.path.clone());
    let (mut states, unknown) = states(&current, &path)?;
    let note = UndoNote::of(current.home.dir(), &path)?;
    let present = present(&path, &name)?;
    let now = present.as_deref().map(digest_of).transpose()?;
    if let Some(now) = now {
        add_present(&mut states, now, note.read());
    }
    let overwritten = current.home.dir().join(overwritten_files::DIRECTORY);
    let has_copies = states
        .iter()
        .any(|state| matches!(state.source, FormerSource::Copy(_)));
    let at = match now {
        None => None,
        Some(now) => match position(&states, now, note.read()) {
            // It is kept before it is replaced, and is the newest.
            None if has_copies && step == HistoryMove::Back => Some(states.len()),
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
    let content = content_of(&current, state, &name)?;
    if !args.dry_run {
        let is_lost = at == Some(states.len());
        let is_kept = !is_lost && !is_copy_to_keep(&states, state, now);
        let kept = match now.is_none() || is_kept {
            true => Ok(()),
            false => keep(&overwritten, &path),
        };
        let replaced = kept.and_then(|()| match &state.source {
            FormerSource::Version(_) => replace(&path, &content, now),
            FormerSource::Copy(file) => put_back(&path, file, now),
        });
        replaced.map_err(|error| {
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
            "{name} {verb} as {} on {} ({})",
            match &state.source {
                FormerSource::Version(_) => format!("run {of_run} left it"),
                FormerSource::Copy(_) => "it was before it was overwritten".to_owned(),
            },
            moment(state.time),
            summary(&compared.difference)
        )?;
        match args.dry_run {
            true => Ok(()),
            false => writeln!(out, "`backstory {other} {name}` takes that back"),
        }
    })
}

/// True if the file gets a copy back, and the present content has no copy yet. A copy has the
/// attributes that the store of contents lacks.
fn is_copy_to_keep(states: &[FormerState], wanted: &FormerState, now: Option<Digest>) -> bool {
    let is_copy = |state: &FormerState| matches!(state.source, FormerSource::Copy(_));
    let mut known = states.iter().filter(|state| is_copy(state));
    is_copy(wanted) && !known.any(|state| Some(state.digest) == now)
}

/// The content of a former state.
fn content_of(current: &CurrentStore, state: &FormerState, name: &str) -> Result<Vec<u8>, Failure> {
    let content = match &state.source {
        FormerSource::Version(version) => VersionContents::new(current).read(*version)?,
        FormerSource::Copy(file) => fs::read(&file.copy).ok(),
    };
    let content =
        content.filter(|content| digest_of(content).is_ok_and(|digest| digest == state.digest));
    if let Some(content) = content {
        return Ok(content);
    }
    let of_run = state.run.as_deref().unwrap_or("an unknown run");
    let why = match &state.source {
        FormerSource::Copy(file) => {
            format!("the copy {} of {name} cannot be read", file.copy.display())
        }
        FormerSource::Version(version) => match digest_of_version(current, *version) {
            Err(failure) => failure.line,
            Ok(_) => format!(
                "the content of {name} of run {of_run} cannot be read from the store; `backstory store verify` says why"
            ),
        },
    };
    Err(Failure::not_found(why))
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
            source: FormerSource::Version(state.version),
            run: run_of(current, &state.event)?,
            time: state.event.time,
        })
    };
    let known: Result<Vec<FormerState>, Failure> = states.known.into_iter().map(state).collect();
    Ok((with_copies(current, path, known?), states.unknown))
}

/// The contents, with those of the copies of overwritten files.
fn with_copies(
    current: &CurrentStore,
    path: &Path,
    mut states: Vec<FormerState>,
) -> Vec<FormerState> {
    let root = current.home.dir().join(overwritten_files::DIRECTORY);
    for file in overwritten_files::of(&root, path.as_os_str().as_bytes()) {
        let Some(digest) = subject::digest_of_file(&file.copy) else {
            continue;
        };
        states.push(FormerState {
            digest,
            run: None,
            time: file.time,
            source: FormerSource::Copy(file),
        });
    }
    states.sort_small_by_key(|state| state.time);
    // The copy of a version has its attributes, too.
    let mut all: Vec<FormerState> = Vec::new();
    for state in states {
        match all.last_mut() {
            Some(last) if last.digest == state.digest => {
                let run = last.run.take().or(state.run);
                if matches!(state.source, FormerSource::Copy(_)) {
                    last.source = state.source;
                }
                last.run = run;
            }
            _ => all.push(state),
        }
    }
    all
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

/// Adds the present content at the end, if it is that of an earlier state and a copy came after it.
/// A step then overwrote the copied file with the former content. `noted`: where `undo` left the
/// file.
fn add_present(states: &mut Vec<FormerState>, now: Digest, noted: Option<(Digest, usize)>) {
    let Some(at) = position(states, now, noted) else {
        return;
    };
    let is_noted = noted == Some((now, at));
    let mut later = states[at + 1..].iter();
    let overwritten = later.any(|state| matches!(state.source, FormerSource::Copy(_)));
    let FormerSource::Version(version) = states[at].source else {
        return;
    };
    if overwritten && !is_noted {
        states.push(FormerState {
            digest: now,
            source: FormerSource::Version(version),
            run: states[at].run.clone(),
            time: states[at].time,
        });
    }
}

/// Keeps the present file, so that it can come back with everything that belongs to it.
fn keep(overwritten: &Path, path: &Path) -> io::Result<()> {
    let mut file = regular::open(path)?;
    let found = file.metadata()?;
    let inode = (found.nlink() > 1).then(|| (found.dev(), found.ino()));
    let place = overwritten_files::place_for(overwritten, path.as_os_str().as_bytes(), inode)?;
    let mut kept = tempfile::NamedTempFile::new_in(overwritten)?;
    faithful_copy::copy(&mut file, kept.as_file_mut())?;
    kept.persist(place).map_err(|error| error.error).map(drop)
}

/// Puts a copy of an overwritten file at the path, with everything that belonged to the file.
fn put_back(path: &Path, former: &OverwrittenFile, now: Option<Digest>) -> io::Result<()> {
    let mut from = fs::File::open(&former.copy)?;
    if let Some(inode) = former.inode
        && let Some(other) = other_name(path, inode)?
    {
        // With the inode the file has its other names again.
        if other != path {
            let beside = beside(path);
            fs::hard_link(&other, &beside)?;
            fs::rename(&beside, path)?;
        }
        let mut file = fs::File::options().read(true).write(true).open(path)?;
        return faithful_copy::copy(&mut from, &mut file);
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut beside = tempfile::Builder::new()
        .prefix(".backstory-undo-")
        .tempfile_in(directory)?;
    faithful_copy::copy(&mut from, beside.as_file_mut())?;
    if subject::digest_of_file(path) != now {
        return Err(io::Error::other(
            "it was changed meanwhile; nothing was done",
        ));
    }
    beside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A name of an inode in the directory of a file: its own if it has that inode.
fn other_name(path: &Path, inode: (u64, u64)) -> io::Result<Option<PathBuf>> {
    let is_it = |path: &Path| {
        let found = path.symlink_metadata();
        found.is_ok_and(|found| found.is_file() && (found.dev(), found.ino()) == inode)
    };
    if is_it(path) {
        return Ok(Some(path.to_owned()));
    }
    let entries = fs::read_dir(path.parent().unwrap_or(Path::new("/")))?;
    let mut names = entries.flatten().map(|entry| entry.path());
    Ok(names.find(|name| is_it(name)))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".backstory-undo");
    path.with_file_name(name)
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
