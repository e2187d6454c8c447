//! Whether a file still is as the version that an answer is about. `of` and `uses` say so first: a
//! person takes the answer for one about the file that is there.
//!
//! In: a version. Out: the change of its path since. Invariant: nothing is said of a file of
//! another machine or mount, and of a version whose identity is not known.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::{Digest, Ident};
use backstory_graph::model::EntityKind;
use backstory_query::{self as query, PathChange, PathEvent};
use backstory_store::{EntityKey, GraphStore, same_version};
use rustix::io::Errno;

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::Value;
use crate::subject;
use crate::text::paths::shown;
use crate::undo_note::is_put_back;

/// Larger files are not read to compare their contents.
const LARGEST_READ: i64 = 256 << 20;

/// A change of a file since a version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileChange {
    /// It has another content.
    Changed,
    /// It was deleted.
    Deleted,
    /// It has another name, or lies elsewhere.
    Moved,
    /// `undo` or `redo` brought back an earlier content.
    BroughtBack,
}

impl FileChange {
    fn word(self) -> &'static str {
        match self {
            FileChange::Changed => "changed",
            FileChange::Deleted => "deleted",
            FileChange::Moved => "moved",
            FileChange::BroughtBack => "brought_back",
        }
    }
}

/// A file that is not as a version any more.
#[derive(Debug)]
pub struct ChangedFile {
    change: FileChange,
    /// The run that did it. `None`: nothing recorded it.
    run: Option<String>,
    /// The run of the version, and whether it made the version.
    version_run: (String, bool),
    /// The version whose content `undo` or `redo` brought back.
    brought_back: Option<EntityKey>,
}

impl ChangedFile {
    /// The change of the file of a version. `None` if the file is as the version, or if that is not
    /// known.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn since(current: &CurrentStore, version: EntityKey) -> Result<Option<Self>, Failure> {
        let store = &current.store;
        let entity = store.entity(version)?;
        let (EntityKind::File, Some(ident)) = (entity.kind, entity.ident) else {
            return Ok(None);
        };
        let path = Path::new(OsStr::from_bytes(&entity.path));
        // The version of a link's path is that of its target.
        let now = match query::try_present_identity(path, true) {
            Ok(now) => Some(now),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(_) => return Ok(None),
        };
        if !is_on_its_device(path, &ident) {
            return Ok(None);
        }
        let is_same = now.is_some_and(|now| same_version(&now, &ident));
        if is_same || has_digest(current, path, (now, ident))? {
            return Ok(None);
        }
        let Some(record) = store.run_by_key(version.run())? else {
            return Ok(None);
        };
        let here = rustix::system::uname();
        let is_here = record.header.machine.host.as_bytes() == here.nodename().to_bytes();
        if !is_here || record.header.imported.is_some() {
            return Ok(None);
        }
        let events = query::history(store, path)?;
        let Some(last) = events.last() else {
            return Ok(None);
        };
        let run = match last.activity.and(last.run) {
            Some(run) => store.run_id(run)?,
            None => None,
        };
        let change = change(current, path, (now, last));
        let brought_back = match change {
            FileChange::BroughtBack => with_content_of(current, path, &entity.path)?,
            _ => None,
        };
        Ok(Some(ChangedFile {
            change,
            run,
            version_run: (record.header.id.clone(), entity.version > 0),
            brought_back,
        }))
    }

    /// The version whose content `undo` or `redo` brought back.
    pub fn brought_back(&self) -> Option<EntityKey> {
        self.brought_back
    }

    /// In one line, for a file of this name.
    pub fn line(&self, name: &[u8]) -> String {
        let name = shown(name);
        let (run, made) = &self.version_run;
        let verb = if *made { "made" } else { "used" };
        let by = match &self.run {
            Some(run) => format!("by run {run}"),
            None => "outside of any recording".to_owned(),
        };
        match self.change {
            FileChange::Changed => {
                format!("{name} was changed since, {by}; this is about what run {run} {verb}")
            }
            FileChange::Deleted => {
                format!("{name} was deleted since, {by}; this is about what run {run} {verb}")
            }
            FileChange::Moved => {
                format!("{name} was moved since, {by}; this is about what run {run} {verb}")
            }
            FileChange::BroughtBack => {
                format!(
                    "{name} was brought back by `undo` or `redo`; run {run} {verb} another content"
                )
            }
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        Value::Object(vec![
            ("state", self.change.word().into()),
            ("run", self.run.as_ref().into()),
            ("version_of", self.version_run.0.as_str().into()),
        ])
    }
}

/// True if a path leads to the device of a version. The path of a file in a container, or below a
/// mount that is gone, leads to another one.
fn is_on_its_device(path: &Path, version: &Ident) -> bool {
    let there = path
        .ancestors()
        .find_map(|place| query::present_identity(place, true));
    there.is_some_and(|there| there.dev == version.dev)
}

/// True if the file has the content of the version, under another identity.
fn has_digest(
    current: &CurrentStore,
    path: &Path,
    (now, ident): (Option<Ident>, Ident),
) -> Result<bool, Failure> {
    let is_alike = now.is_some_and(|now| now.size == ident.size && now.size <= LARGEST_READ);
    if !is_alike {
        return Ok(false);
    }
    let known = query::known(&current.store, Some(&ident))?;
    let digest: Option<Digest> = known.and_then(|(digest, _)| digest);
    Ok(digest.is_some() && digest == subject::digest_of_file(path))
}

fn change(
    current: &CurrentStore,
    path: &Path,
    (now, last): (Option<Ident>, &PathEvent),
) -> FileChange {
    match (now, &last.change) {
        (Some(_), _) if is_put_back(current.home.dir(), path) => FileChange::BroughtBack,
        (Some(_), _) => FileChange::Changed,
        (None, PathChange::RenamedTo(_)) => FileChange::Moved,
        (None, _) => FileChange::Deleted,
    }
}

/// The newest version of a path that has its present content.
fn with_content_of(
    current: &CurrentStore,
    path: &Path,
    recorded: &[u8],
) -> Result<Option<EntityKey>, Failure> {
    let Some(digest) = subject::digest_of_file(path) else {
        return Ok(None);
    };
    for version in query::subject::with_content(&current.store, &digest)? {
        if *current.store.entity(version)?.path == *recorded {
            return Ok(Some(version));
        }
    }
    Ok(None)
}
