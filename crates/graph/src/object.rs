//! Objects, which descriptors and names lead to, and the versions that an object goes through.
//!
//! An object is an inode, a pipe, one direction of a socket, or a memory file. Its last version is
//! its present one.
//!
//! Invariant: a version stays in memory while an open descriptor may use it. All other versions but
//! the last are dropped as soon as no descriptor leads to the object.

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;

use crate::model::{Entity, EntityKind};
use crate::paths::PathId;
use crate::serial::Serial;
use crate::version::{ContentVersion, InodeKey};

/// The number of an object within the fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// The type bits of `st_mode`.
const FORMAT: u32 = 0o170_000;

/// The kind of an inode, by its mode.
pub fn kind_of(mode: u32) -> EntityKind {
    match mode & FORMAT {
        0o040_000 => EntityKind::Directory,
        0o120_000 => EntityKind::Symlink,
        0o010_000 => EntityKind::Pipe,
        0o140_000 => EntityKind::Socket,
        0o020_000 | 0o060_000 => EntityKind::Device,
        _ => EntityKind::File,
    }
}

/// True if a write to such an object starts a version.
pub fn has_versions(kind: EntityKind) -> bool {
    matches!(
        kind,
        EntityKind::File | EntityKind::Memory | EntityKind::Resource
    )
}

/// The history of a file whose names this run has changed, and nothing else. The history starts
/// when the run first uses the file, or when the writer of the file closes it.
#[derive(Debug, Clone)]
pub struct MoveHistory {
    /// The number of the version at that time.
    pub number: u32,
    /// When that version began: when the file was first used, or made.
    pub began: Time,
    /// When the file itself was last renamed, and not only a directory above it. Its status changed
    /// at that time.
    pub own: Option<Time>,
    /// The version's node as it was then, once that version has been dropped.
    pub first: Option<Box<Entity>>,
}

/// Something with versions; or, if it is not `versioned`, with one version for the whole run.
#[derive(Debug, Clone)]
pub struct TrackedObject {
    pub kind: EntityKind,
    /// Its name, if it has no path.
    pub label: Option<Bytes>,
    pub key: Option<InodeKey>,
    /// Its identity after the run.
    pub settled: Option<Ident>,
    /// The identity after the run is the one that an earlier run left.
    pub made_before: bool,
    /// Its identity before the command and at the command's end, if the command inherited a
    /// descriptor of it. Programs outside the run may have it open, too.
    pub inherited: Option<(Ident, Ident)>,
    versions: Vec<ContentVersion>,
    /// How many descriptors may write to it.
    pub writers: u32,
    /// How many descriptors lead to it.
    pub holders: u32,
    /// Names that lead to it.
    pub names: Vec<PathId>,
    /// It has more than one hard link, or may have.
    pub linked: bool,
    /// The epoch that made its last hard link.
    pub linker: Option<Serial>,
    /// When the run made it; `None` if the run did not.
    pub made: Option<Time>,
    /// Its key is a guess: it comes from the file at its name after the run, which may have been
    /// replaced.
    pub guessed: bool,
    /// The run changed its names: its status change time just before, and the time of the change.
    /// The run had not changed anything else of it before.
    pub renamed: Option<(i64, Time)>,
    /// Set while the run has only moved it and its identity before that is not known.
    pub moves: Option<MoveHistory>,
    /// The fold took two names for one file because they lead to one file after the run. They may
    /// have led to two files before.
    pub doubtful: bool,
}

impl TrackedObject {
    /// An object that the run meets first by the name `path`. `number` is 0 for an object that is
    /// older than the run, 1 for one that the run made.
    pub fn new(kind: EntityKind, path: PathId, time: Time, number: u32) -> TrackedObject {
        let versions = vec![ContentVersion::new(number, time, path)];
        TrackedObject {
            kind,
            label: None,
            key: None,
            settled: None,
            made_before: false,
            inherited: None,
            versions,
            writers: 0,
            holders: 0,
            names: Vec::new(),
            linked: false,
            linker: None,
            made: (number > 0).then_some(time),
            guessed: false,
            renamed: None,
            moves: None,
            doubtful: false,
        }
    }

    /// Sets the kind of an object whose kind was not known when its node was announced.
    pub fn turned_out(&mut self, kind: EntityKind) {
        if self.kind == EntityKind::File && kind != self.kind {
            self.kind = kind;
            self.now_mut().news = true;
        }
    }

    /// True if a write starts a version. Pipes, sockets, devices and directories have one state for
    /// the whole run.
    pub fn versioned(&self) -> bool {
        has_versions(self.kind)
    }

    /// The present version.
    pub fn now(&self) -> &ContentVersion {
        // There is a version from the start, and `forget` leaves the last.
        &self.versions[self.versions.len() - 1]
    }

    /// The present version.
    pub fn now_mut(&mut self) -> &mut ContentVersion {
        let last = self.versions.len() - 1;
        &mut self.versions[last]
    }

    /// Version `number`, or the nearest that is still in memory.
    pub fn kept(&mut self, number: u32) -> &mut ContentVersion {
        let at = number.saturating_sub(self.versions[0].number) as usize;
        let last = self.versions.len() - 1;
        &mut self.versions[at.min(last)]
    }

    /// Gives a file without a name its first name. All versions in memory are known by it.
    pub fn name_versions(&mut self, path: PathId) {
        self.label = None;
        for version in &mut self.versions {
            version.path = path;
            version.news |= version.entity.is_some();
        }
    }

    /// Starts the next version. A version that comes from a write ends the history of moves.
    pub fn begin(&mut self, time: Time, path: PathId) -> &mut ContentVersion {
        let next = self.now().number + 1;
        self.moves = None;
        self.versions.push(ContentVersion::new(next, time, path));
        self.now_mut()
    }

    /// Takes out the versions that no descriptor can use any more.
    pub fn forget(&mut self) -> Vec<ContentVersion> {
        if self.holders == 0 && self.versions.len() > 1 {
            return self.versions.drain(..self.versions.len() - 1).collect();
        }
        Vec::new()
    }

    /// Notes that this run adds or removes a name. `before` is the identity just before that. Such
    /// a change sets the ctime, and leaves the content.
    pub fn names_change(&mut self, before: &Ident, time: Time, slack: Time) {
        let before = self.ctime_without_names(before, slack);
        self.renamed = Some((before, time));
    }

    /// When the status last changed, apart from this run's changes of the names.
    pub fn ctime_without_names(&self, ident: &Ident, slack: Time) -> i64 {
        match self.renamed {
            Some((before, time)) if (time - slack..=time + slack).contains(&ident.ctime) => before,
            _ => ident.ctime,
        }
    }

    /// True if the file did not change from before the command to the command's end.
    pub fn untouched(&self) -> bool {
        let state = |i: &Ident| (i.size, i.mtime, i.ctime);
        self.inherited
            .is_some_and(|(before, after)| state(&before) == state(&after))
    }

    /// Notes the identity that the file had before a call. It belongs to the present version,
    /// unless a process has the file open for writing.
    pub fn was(&mut self, ident: Option<Ident>) {
        if let (Some(ident), 0) = (ident, self.writers) {
            let now = self.now_mut();
            now.news |= now.entity.is_some() && now.ident != Some(ident);
            now.ident = Some(ident);
        }
    }

    /// True if the content certainly stayed the same from `time` to the end of the run.
    pub fn unchanged_since(&self, time: Time, slack: Time) -> bool {
        self.settled
            .is_some_and(|s| self.made_before || s.ctime < time - slack && s.mtime < time - slack)
    }
}
