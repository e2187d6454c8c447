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
//!   So it cannot make a program of its own count as plain. It can make one of the system do so.
//!   So each file that is believed to be plain is noted, and classified again after the run. This
//!   finds the file by its path, so a file that its path does not lead to is not believed.
//! - That a file is not plain is believed of any file. It costs a filter, and no record.

use crate::part::{C_LIBRARY, NotPlain, Part, WANTED};
use crate::verdicts::VerdictKind;
use backstory_files::Ident;
use rustix::fs::{AtFlags, CWD, FileType, Statx, fstatfs, statx};
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

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

impl KnownFile {
    /// True if later runs learn nothing more from the other one.
    fn says_as_much_as(&self, other: &KnownFile) -> bool {
        self.lasts && self.state == other.state && self.part == other.part
    }
}

/// True if a file in this role can have this verdict, by the word of an earlier run. Every plain
/// program needs the C library. One that needs it only by another library is classified anew in
/// each run.
pub(crate) fn can_be(kind: VerdictKind, part: &Result<Part, NotPlain>) -> bool {
    let needs = |part: &Part| part.needed.iter().any(|name| name == C_LIBRARY);
    kind == VerdictKind::Library || part.as_ref().map_or(true, needs)
}

/// A file that is plain by the word of an earlier run.
#[derive(Debug)]
pub(crate) struct BelievedFile {
    pub(crate) role: FileRole,
    pub(crate) path: PathBuf,
    known: KnownFile,
}

impl BelievedFile {
    /// True if a file in this state, with this content, is the same.
    pub(crate) fn is(&self, found: Ident, part: &Part) -> bool {
        role(self.role.0, found) == self.role
            && state(found) == self.known.state
            && self.known.part.as_ref() == Ok(part)
    }
}

/// The known files.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    pub(crate) files: HashMap<FileRole, KnownFile>,
    /// Those that this run believed an earlier one to be plain.
    pub(crate) believed: HashMap<FileRole, BelievedFile>,
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

/// True if the path leads to the file in this state.
fn leads_to(path: &Path, file: Ident) -> bool {
    let there = statx(CWD, path, AtFlags::empty(), WANTED);
    there.is_ok_and(|there| Ident::from(&there) == file)
}

impl KnownFiles {
    /// Returns what is known about a file in this state.
    pub(crate) fn get(
        &mut self,
        kind: VerdictKind,
        (file, path): (impl AsFd, &Path),
        found: &Statx,
    ) -> Option<Result<Part, NotPlain>> {
        let ident = Ident::from(found);
        let role = role(kind, ident);
        let known = self.files.get(&role)?;
        if known.state != state(ident) {
            return None;
        }
        let is_own = known.own || known.part.is_err();
        if !is_own && !self.can_believe(role, (file, path), found) {
            return None;
        }
        let known = self.files.get_mut(&role)?;
        known.rank = 0;
        if !is_own {
            let believed = || BelievedFile {
                role,
                path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
                known: known.clone(),
            };
            self.believed.entry(role).or_insert_with(believed);
        }
        Some(known.part.clone())
    }

    /// True if an earlier verdict that a file is plain can be believed, and confirmed later. A
    /// process in another mount namespace may have opened the file. Its path is then that of
    /// another file here, or of none.
    fn can_believe(
        &mut self,
        role: FileRole,
        (file, path): (impl AsFd, &Path),
        found: &Statx,
    ) -> bool {
        self.is_roots(file, found)
            && (self.believed.contains_key(&role) || leads_to(path, Ident::from(found)))
    }

    /// The paths of the files that this run believed an earlier one to be plain.
    pub(crate) fn believed_paths(&self) -> Vec<PathBuf> {
        let believed = self.believed.values();
        let mut paths: Vec<PathBuf> = believed.map(|file| file.path.clone()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// The files that this run believed an earlier one to be plain. They are not known any more.
    pub(crate) fn take_believed(&mut self) -> Vec<BelievedFile> {
        let believed = std::mem::take(&mut self.believed);
        self.files
            .retain(|role, known| known.own || !believed.contains_key(role));
        believed.into_values().collect()
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
        let lasts = can_be(kind, &part) && (part.is_err() || self.is_roots(file, found));
        let known = KnownFile {
            state: state(ident),
            part,
            rank: 0,
            own: true,
            lasts,
        };
        if self.files.len() < MOST_KNOWN {
            let before = self.files.insert(role(kind, ident), known.clone());
            let is_kept = before.is_some_and(|before| before.says_as_much_as(&known));
            self.has_news |= lasts && !is_kept;
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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn only_a_verdict_that_a_later_run_can_believe_is_news() {
        let path = Path::new("/usr/bin/env");
        let file = File::open(path).unwrap();
        let found = statx(&file, c"", AtFlags::EMPTY_PATH, WANTED).unwrap();
        let needs = |name: &[u8]| {
            Ok(Part {
                needed: vec![name.to_vec()],
                ..Part::default()
            })
        };
        let mut known = KnownFiles::default();
        let lasts = known.is_roots(&file, &found);
        known.put(VerdictKind::Program, &file, &found, needs(b"libm.so.6"));
        assert!(!known.has_news, "it needs the C library by another one");
        known.put(VerdictKind::Program, &file, &found, needs(C_LIBRARY));
        assert_eq!(known.has_news, lasts);
        known.has_news = false;
        known.put(VerdictKind::Program, &file, &found, needs(C_LIBRARY));
        assert!(!known.has_news, "it is known");
    }

    #[test]
    fn a_file_that_its_path_does_not_lead_to_is_not_believed() {
        let path = Path::new("/usr/bin/env");
        let file = File::open(path).unwrap();
        let found = statx(&file, c"", AtFlags::EMPTY_PATH, WANTED).unwrap();
        let mut known = KnownFiles::default();
        let lasts = known.is_roots(&file, &found);
        known.put(VerdictKind::Library, &file, &found, Ok(Part::default()));
        let kept = known.files.values_mut().next().unwrap();
        kept.own = false; // as of an earlier run
        let mut believes = |path: &str| {
            let place = (&file, Path::new(path));
            let found = known.get(VerdictKind::Library, place, &found);
            (found.is_some(), known.believed_paths())
        };
        for other in ["/nowhere/env", "/proc/self/exe", ""] {
            assert_eq!(believes(other), (false, Vec::new()), "{other}");
        }
        let (is_believed, paths) = believes("/usr/bin/env");
        assert_eq!(is_believed, lasts);
        assert_eq!(paths, vec![path.to_owned(); usize::from(lasts)]);
    }
}
