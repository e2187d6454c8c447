//! The file that a question is about, as users write it.
//!
//! | notation | meaning |
//! | --- | --- |
//! | `PATH` | the newest version; else, if no run has seen the file, its content under another name |
//! | `PATH@RUN` | the newest version that the run used or made |
//! | `PATH@{2 days ago}` | the version that was there at that moment |
//! | `commit:HASH`, `git:HASH` | the object of a git commit, also by the beginning of its hash |
//! | `ARCHIVE/MEMBER` | a member of a tar or zip archive: a file with its content |
//! | `DIGEST`, `blake3:DIGEST`, `sha256:DIGEST` | a content, also by the beginning of its digest |
//!
//! In: a text. Out: a [`FileSubject`]. Invariant: a file whose name contains `@` is found by that
//! name. The notations are tried only if no file has the name, and no run has seen it.

mod digest_notation;
mod found_version;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Time;
use backstory_files::Digest;
use backstory_graph::marks;
use backstory_graph::model::EntityKind;
use backstory_query as query;
use backstory_query::answer::{Node, Scope};
use backstory_query::subject as versions;
use backstory_query::{PathChange, PathEvent, TableGaps};
use backstory_store::{EntityKey, GraphStore, RunKey};

use crate::commit_subject;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::member_subject;
use crate::mounted_paths::unseen;
use crate::text::paths::shown;
use crate::text::when::moment;
use crate::when;

pub use digest_notation::content;
use found_version::{name_of, said_at, said_content, said_equal};

/// The versions that a question is about.
#[derive(Debug)]
pub struct FileSubject {
    /// The versions, the one that matters most first.
    pub versions: Vec<EntityKey>,
    /// Sentences for people, a line each: how the version was found, if not by the path itself, and
    /// what the answer may lack.
    pub notes: Vec<String>,
}

/// Which versions are wanted of a file that was found by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The newest.
    Newest,
    /// All versions, in every run that knows them.
    EveryVersion,
}

impl Reach {
    /// The versions to start from, of all with one content.
    fn of(self, mut versions: Vec<EntityKey>) -> Vec<EntityKey> {
        if self == Reach::Newest {
            versions.truncate(1);
        }
        versions
    }
}

/// A path with what stands behind its `@`.
#[derive(Debug, Clone, PartialEq)]
pub enum PathNotation {
    /// A path alone.
    Plain(PathBuf),
    /// `PATH@RUN`, with the run's id.
    OfRun(PathBuf, String),
    /// `PATH@{DATE}`
    AtMoment(PathBuf, Time),
}

/// Reads the notation of a path. A file that exists or was recorded by the whole text is meant
/// itself.
pub fn notation(current: &CurrentStore, wanted: &OsStr) -> Result<PathNotation, Failure> {
    let bytes = wanted.as_bytes();
    let plain = || Ok(PathNotation::Plain(wanted.into()));
    let path = |end: usize| PathBuf::from(OsStr::from_bytes(&bytes[..end]));
    let text = |from: usize, to: usize| std::str::from_utf8(&bytes[from..to]).ok();
    let at = bytes.iter().rposition(|&byte| byte == b'@');
    let braced = bytes.windows(2).rposition(|pair| pair == b"@{");
    if at.is_none_or(|at| at == 0) || is_literal(current, wanted)? {
        return plain();
    }
    if let Some(at) = braced.filter(|&at| at > 0 && bytes.ends_with(b"}"))
        && let Some(date) = text(at + 2, bytes.len() - 1)
    {
        let time = when::parse(date).map_err(Failure::misuse)?;
        return Ok(PathNotation::AtMoment(path(at), time));
    }
    let Some((at, run)) = at.and_then(|at| Some((at, text(at + 1, bytes.len())?))) else {
        return plain();
    };
    match current.run(Some(run)) {
        Ok(run) => Ok(PathNotation::OfRun(path(at), run)),
        // The part before the `@` may be a file, or all of it may be an unknown one.
        Err(failure) if is_literal(current, path(at).as_os_str())? => Err(failure),
        Err(_) => plain(),
    }
}

/// True if a file of this name exists or was recorded.
fn is_literal(current: &CurrentStore, name: &OsStr) -> Result<bool, Failure> {
    let path = Path::new(name);
    if path.symlink_metadata().is_ok() {
        return Ok(true);
    }
    match versions::newest(&current.store, path, None) {
        Ok(_) => Ok(true),
        Err(query::Error::Store(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// Finds the versions that a question means. `run`: only versions of this run.
pub fn find(
    current: &CurrentStore,
    wanted: &OsStr,
    run: Option<&str>,
    reach: Reach,
) -> Result<FileSubject, Failure> {
    let store = &current.store;
    let by_path = |path: &Path, run: Option<&str>| match reach {
        Reach::Newest => versions::newest(store, path, run).map(|key| vec![key]),
        Reach::EveryVersion => versions::all(store, path, run),
    };
    let of_run = |path: &Path, run: &str| match reach {
        Reach::Newest => by_path(path, Some(run)),
        Reach::EveryVersion => versions::newest_everywhere(store, path, Some(run)),
    };
    let found = |versions, note: Option<String>| {
        let notes = note.into_iter().collect();
        Ok(FileSubject { versions, notes })
    };
    let path = match notation(current, wanted)? {
        PathNotation::OfRun(path, run) => {
            let error = match of_run(&path, &run) {
                Ok(keys) => return found(keys, None),
                Err(error) => error,
            };
            return match of_member(current, &path, (Some(run.as_str()), None), reach, &error)? {
                Some(member) => Ok(member),
                None => Err(unseen(current, &path, error)),
            };
        }
        PathNotation::AtMoment(path, time) => {
            let event = event_at(current, &path, time)?;
            let Some(version) = event.version else {
                return found(by_path(&path, None)?, None);
            };
            return found(vec![version], Some(said_at(current, &event)?));
        }
        PathNotation::Plain(path) => path,
    };
    let error = match by_path(&path, run) {
        Ok(keys) => return found(keys, None),
        Err(error @ (query::Error::NotFound(_) | query::Error::OnlyMissing(_))) => error,
        Err(error) => return Err(error.into()),
    };
    if path.is_file() {
        let Some(digest) = digest_of_file(&path) else {
            return Err(error.into());
        };
        let keys = versions::with_content(store, &digest)?;
        if keys.is_empty() {
            return Err(error.into());
        }
        let note = said_equal(current, wanted, &path, &keys)?;
        return found(reach.of(keys), Some(note));
    }
    if let Some(member) = of_member(current, &path, (run, run), reach, &error)? {
        return Ok(member);
    }
    if let Some(hash) = commit_subject::notation(wanted.as_bytes()) {
        let object = commit_subject::object(current, hash)?;
        let of_pack = if object.is_packed { "a part of " } else { "" };
        let name = name_of(current, &object.versions)?;
        let note = format!("the commit {} is {of_pack}{name}", object.hash);
        return found(reach.of(object.versions), Some(note));
    }
    match content(current, wanted)? {
        Some(digest) => {
            let keys = versions::with_content(store, &digest)?;
            if keys.is_empty() {
                return Err(Failure::not_found(format!(
                    "the content {digest} is stored, but no recorded version has it"
                )));
            }
            let note = said_content(current, &digest, &keys)?;
            found(reach.of(keys), Some(note))
        }
        None if marks::is_name(wanted.as_bytes()) => Err(unnamed(wanted)),
        None => Err(unseen(current, &path, error)),
    }
}

/// The error for the name of a thing that no run knows. It is no path, so it is not made absolute.
fn unnamed(wanted: &OsStr) -> Failure {
    let name = shown(wanted.as_bytes());
    let whole = wanted.to_str().and_then(|name| name.split_once('#'));
    let hint = whole.map_or(String::new(), |(whole, _)| {
        let whole = shown(whole.as_bytes());
        format!("; `backstory of {whole}` answers for the whole, if a program named that")
    });
    Failure::not_found(format!(
        "no recorded program has named {name}, and no run has seen a file of that name{hint}"
    ))
}

/// Finds files with the content of a member of an archive, if a path is not found as itself.
/// `run`: the archive is a version of this run. `within`: so are the files. `None`: the path names
/// no member.
fn of_member(
    current: &CurrentStore,
    path: &Path,
    (run, within): (Option<&str>, Option<&str>),
    reach: Reach,
    error: &query::Error,
) -> Result<Option<FileSubject>, Failure> {
    if !matches!(
        error,
        query::Error::NotFound(_) | query::Error::OnlyMissing(_)
    ) {
        return Ok(None);
    }
    let Some(member) = member_subject::find(current, path, run)? else {
        return Ok(None);
    };
    let name = &member.name;
    let sources = match member.archive {
        Some(archive) => sources_with(current, archive, within, &member.content)?,
        None => Vec::new(),
    };
    let only = match within {
        Some(run) => {
            let run = query::resolve(&current.store, Some(run))?;
            current.store.run(&run)?.map(|record| record.key)
        }
        None => None,
    };
    let mut same = versions::with_content_in(&current.store, &member.content, only)?;
    let (note, keys) = if !sources.is_empty() {
        let of = name_of(current, &sources)?;
        let note =
            format!("{name} has the content of {of}, which is among the sources of the archive");
        same.retain(|key| !sources.contains(key));
        (note, [sources, same].concat())
    } else if !same.is_empty() {
        let of = name_of(current, &same)?;
        let note = format!(
            "{name} has the same content as {of}, which is not known as a source of the archive"
        );
        (note, same)
    } else if let Some(archive) = member.archive {
        let none = within.map_or("no recorded file", |_| "no file of the run");
        let note = format!("{none} has the content of {name}, so the answer is about the archive");
        (note, vec![archive])
    } else {
        return Err(Failure::not_found(format!(
            "no run has seen the archive, and no recorded file has the content of {name}"
        )));
    };
    Ok(Some(FileSubject {
        versions: reach.of(keys),
        notes: vec![note],
    }))
}

/// The versions with a content among the sources of an archive. `within`: only in this run.
fn sources_with(
    current: &CurrentStore,
    archive: EntityKey,
    within: Option<&str>,
    content: &Digest,
) -> Result<Vec<EntityKey>, Failure> {
    let scope = Scope {
        run: within.map(str::to_owned),
        ..Scope::default()
    };
    let lineage = query::ancestry_of(&current.store, &[archive], &scope)?;
    let source = |node: &Node| match node {
        Node::Entity {
            id,
            kind: EntityKind::File,
            digest: Some(digest),
            ..
        } if digest == content => Some(EntityKey(*id)),
        _ => None,
    };
    Ok(lineage.nodes.iter().filter_map(source).collect())
}

/// Finds all versions of a table, or of a row of it, that a question means, the newest first.
pub fn of_table(
    current: &CurrentStore,
    table: &str,
    key: Option<&str>,
    run: Option<RunKey>,
) -> query::Result<FileSubject> {
    let store = &current.store;
    let versions = query::table_versions(store, table, key, run)?;
    let asked = match key {
        Some(_) => TableGaps::Changes,
        None => TableGaps::Transactions,
    };
    // Another run may have another table that the given name means, too.
    let gaps = query::watch_gaps_of(store, &versions, run, asked)?;
    let note =
        |gap: String| format!("changes of table {table} may be missing from the answer: {gap}");
    let notes = query::gap_lines(&gaps).into_iter().map(note).collect();
    Ok(FileSubject { versions, notes })
}

/// The last event at a path up to a moment, at which a file was there.
pub fn event_at(current: &CurrentStore, path: &Path, time: Time) -> Result<PathEvent, Failure> {
    let event = versions::at(&current.store, path, time)?;
    let name = shown(path.as_os_str().as_bytes());
    let Some(event) = event else {
        return Err(Failure::not_found(format!(
            "no version of {name} is known from before {}; `backstory log -- {name}` lists all",
            moment(time)
        )));
    };
    if event.change == PathChange::GoneUnseen {
        return Err(Failure::not_found(format!(
            "{name} is not there any more; `backstory log -- {name}` lists its versions"
        )));
    }
    if !event.change.leaves_file() {
        return Err(Failure::not_found(format!(
            "{name} was not there on {}: it was gone since {}; `backstory log -- {name}` says why",
            moment(time),
            moment(event.time)
        )));
    }
    Ok(event)
}

/// The digest of a file as it is now.
pub fn digest_of_file(path: &Path) -> Option<Digest> {
    backstory_currency::held(path.as_os_str().as_bytes())
}
