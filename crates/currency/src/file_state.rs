//! The state of a file, compared with a recorded version: by identity, else by content.

use std::cell::RefCell;
use std::collections::HashMap;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::{CLOCK_GRANULARITY, Digest, Ident, VersionId};
use backstory_graph::model::{Entity, EntityKind};
use backstory_query as query;
use backstory_store::{Store, same_version};
use backstory_workflow::paths::base_name;
use rustix::io::Errno;

use crate::Result;
use crate::present_files::PresentFiles;

/// How much the file system's clock may lag behind the end of a run, in nanoseconds.
pub const CLOCK_LAG: Time = 20_000_000;

/// The state of a file, compared with the version that its last run left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// As the run left it, and the steps behind it would make the same again.
    Current,
    /// As the run left it, but a step behind it is stale.
    Outdated,
    /// Its content has changed since.
    Modified,
    /// It does not exist any more.
    Removed,
    /// No run wrote it.
    Unknown,
    /// It has changed in a way whose effect on its content cannot be determined.
    Uncertain,
    /// A run looked for it in vain, and it exists now.
    Appeared,
}

impl FileState {
    /// The word for users.
    pub fn word(self) -> &'static str {
        match self {
            FileState::Current => "current",
            FileState::Outdated => "outdated",
            FileState::Modified => "modified",
            FileState::Removed => "removed",
            FileState::Unknown => "unknown",
            FileState::Uncertain => "uncertain",
            FileState::Appeared => "appeared",
        }
    }
}

/// Compares files of this machine with recorded versions.
pub struct FileComparison<'s> {
    store: &'s dyn Store,
    /// The files as they are now.
    pub present: &'s PresentFiles,
    digests: RefCell<HashMap<VersionId, Option<Digest>>>,
}

impl<'s> FileComparison<'s> {
    /// Compares with the versions of this store.
    pub fn new(store: &'s dyn Store, present: &'s PresentFiles) -> FileComparison<'s> {
        FileComparison {
            store,
            present,
            digests: RefCell::default(),
        }
    }

    /// The state of the file at `path`. `ended` is [`LoadedRun::ended`], which decides if the
    /// version's identity is not known. An input must then be older than the end by more than the
    /// clock's granularity, since it may have changed after its use.
    ///
    /// [`LoadedRun::ended`]: crate::loaded_runs::LoadedRun::ended
    pub fn state(&self, path: &Bytes, version: &Entity, ended: Time) -> Result<FileState> {
        let now = match version.kind {
            EntityKind::Symlink => self.present.link(path),
            _ => self.present.ident(path),
        };
        Ok(match (now, version.ident) {
            (Err(Errno::NOENT | Errno::NOTDIR), _) => FileState::Removed,
            (Err(_), _) => FileState::Uncertain,
            (Ok(_), _) if version.kind == EntityKind::Directory => FileState::Current,
            (Ok(now), Some(then)) => match self.holds(path, &now, &then)? {
                Some(true) => FileState::Current,
                Some(false) => FileState::Modified,
                None => FileState::Uncertain,
            },
            (Ok(now), None) => {
                let doubt = match version.version {
                    0 => CLOCK_LAG + CLOCK_GRANULARITY,
                    _ => 0,
                };
                match now.mtime.max(now.ctime) <= ended - doubt {
                    true => FileState::Current,
                    false => FileState::Uncertain,
                }
            }
        })
    }

    /// Whether the file has the recorded content: by identity, else by digest. A changed status
    /// (`st_ctime`) may come from a change of the name or the mode. It may also come from a program
    /// that changed the content and put the modification time back. So the digest decides; `None`
    /// if it is not known.
    pub fn holds(&self, path: &Bytes, now: &Ident, then: &Ident) -> Result<Option<bool>> {
        let same = same_version(now, then);
        if same && (now.ctime == then.ctime || then.ctime == 0) {
            return Ok(Some(true));
        }
        if now.size != then.size {
            return Ok(Some(false));
        }
        match self.digest(then)? {
            Some(digest) => Ok(Some(self.present.digest(path) == Some(digest))),
            None if same => Ok(None),
            None => Ok(Some(false)),
        }
    }

    /// The recorded digest of a version, if it is known.
    pub fn digest(&self, ident: &Ident) -> Result<Option<Digest>> {
        let by = ident.version_id();
        if let Some(known) = self.digests.borrow().get(&by) {
            return Ok(*known);
        }
        let digest = query::known(self.store, Some(ident))?.and_then(|(digest, _)| digest);
        self.digests.borrow_mut().insert(by, digest);
        Ok(digest)
    }
}

/// True for a file that was made without a name (`O_TMPFILE`, open(2)) and never got one. The graph
/// calls it `#` and a number.
pub fn is_nameless(path: &[u8]) -> bool {
    let number = base_name(path).strip_prefix(b"#");
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}
