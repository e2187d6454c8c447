//! The verdicts about single files that a classifier knows: its own, and those of earlier runs.
//!
//! In: the state of a file, and what was found out about its content. Out: the same, for a file in
//! the same state. The verdict about a program with its libraries is made of these anew each time.
//! So another library, or another cache of the loader, gives another verdict.
//!
//! Invariants:
//!
//! - A verdict is about one content: a file in another state is not found.
//! - That a file is plain is believed of an earlier run only if the file is root's, and no other
//!   user can write to it. A recorded program can write into the file of verdicts, as its user can.
//!   So it cannot make a program of its own count as plain.
//! - That a file is not plain is believed of any file. It costs a filter, and no record.

use crate::part::{NotPlain, Part};
use crate::verdicts::VerdictKind;
use backstory_files::Ident;
use rustix::fs::{FileType, Statx, fstatfs};
use std::collections::HashMap;
use std::os::fd::AsFd;

/// Most verdicts of a file, the latest first.
pub(crate) const MOST_KEPT: usize = 2048;
/// Most verdicts of a run.
const MOST_KNOWN: usize = 16 * MOST_KEPT;
/// The type of file systems whose owner, mode and times a process of any user decides.
const FUSE: u64 = 0x6573_5546;

/// A file in one of its roles.
pub(crate) type FileRole = (VerdictKind, u64, u64);

/// The knowledge about a file.
#[derive(Debug, Clone)]
pub(crate) struct KnownFile {
    /// Its size, and the times of its last change and of its last change of status.
    pub(crate) state: [i64; 3],
    pub(crate) part: Result<Part, NotPlain>,
    /// Its place in the file of verdicts, from the latest on. A verdict that this run made or used
    /// is the latest.
    pub(crate) rank: usize,
    /// This run has classified it.
    pub(crate) own: bool,
    /// A later run can believe it.
    pub(crate) lasts: bool,
}

/// The known files.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    pub(crate) files: HashMap<FileRole, KnownFile>,
    /// This run has a verdict for later ones.
    pub(crate) has_news: bool,
    /// The devices of files that were looked up, and whether a user can decide what is there.
    pub(crate) users: HashMap<u64, bool>,
}

fn role(kind: VerdictKind, file: Ident) -> FileRole {
    (kind, file.dev, file.ino)
}

fn state(file: Ident) -> [i64; 3] {
    [file.size, file.mtime, file.ctime]
}

impl KnownFiles {
    /// Returns what is known about a file in this state.
    pub(crate) fn get(
        &mut self,
        kind: VerdictKind,
        file: impl AsFd,
        found: &Statx,
    ) -> Option<Result<Part, NotPlain>> {
        let ident = Ident::from(found);
        let known = self.files.get(&role(kind, ident))?;
        let believed = known.own || known.part.is_err() || self.is_roots(file, found);
        let known = self.files.get_mut(&role(kind, ident))?;
        (believed && known.state == state(ident)).then(|| {
            known.rank = 0;
            known.part.clone()
        })
    }

    /// Adds what this run has found out about a file that was in this state before and afterwards.
    pub(crate) fn put(
        &mut self,
        kind: VerdictKind,
        file: impl AsFd,
        found: &Statx,
        part: Result<Part, NotPlain>,
    ) {
        let ident = Ident::from(found);
        let lasts = part.is_err() || self.is_roots(file, found);
        let known = KnownFile {
            state: state(ident),
            part,
            rank: 0,
            own: true,
            lasts,
        };
        if self.files.len() < MOST_KNOWN {
            self.has_news |= lasts;
            self.files.insert(role(kind, ident), known);
        }
    }

    /// True if the file is root's, and no other user can write to it.
    fn is_roots(&mut self, file: impl AsFd, found: &Statx) -> bool {
        let mode = found.stx_mode.into();
        let is_file = FileType::from_raw_mode(mode) == FileType::RegularFile;
        is_file && found.stx_uid == 0 && mode & 0o022 == 0 && !self.is_of_user(file, found)
    }

    /// True if a process of a user may decide what the file's state is.
    fn is_of_user(&mut self, file: impl AsFd, found: &Statx) -> bool {
        let device = Ident::from(found).dev;
        *self.users.entry(device).or_insert_with(|| {
            // The low half of the number says the type, whatever the width of the field.
            fstatfs(file).map_or(true, |of| of.f_type as u64 & 0xffff_ffff == FUSE)
        })
    }
}
