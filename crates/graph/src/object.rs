//! What descriptors and names lead to, and the versions it goes through.
//!
//! An object is an inode, a pipe, a direction of a socket, a memory file. Its last version is its present one. Invariant: versions
//! that an open descriptor may still use are kept; the others are forgotten as soon as nothing holds the object.

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;

use crate::activity::Serial;
use crate::model::{ByName, Certainty, Entity, EntityId, EntityKind, Relation};
use crate::paths::PathId;

/// Names an object for the whole fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// What makes two names one inode: device, number and birth.
pub type InodeKey = (u64, u64, i64);

/// The key of an identity.
pub fn key(ident: &Ident) -> InodeKey {
    (ident.dev, ident.ino, ident.birth)
}

/// The type bits of `st_mode`.
const FORMAT: u32 = 0o170_000;

/// What sort of thing an inode is, by its mode.
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

/// True if what is written to such a thing starts versions.
pub fn has_versions(kind: EntityKind) -> bool {
    matches!(kind, EntityKind::File | EntityKind::Memory)
}

/// Who may have written a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writers {
    #[default]
    None,
    One(Serial),
    Many,
}

impl Writers {
    /// Counts one more.
    pub fn add(&mut self, who: Serial) {
        *self = match *self {
            Writers::None => Writers::One(who),
            Writers::One(other) if other == who => return,
            _ => Writers::Many,
        };
    }
}

/// A further name of a version.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    pub path: PathId,
    /// It leads through a symbolic link: what is done by it is done to the file of the plain name as well.
    pub soft: bool,
    /// What was done by it.
    pub by: ByName,
}

/// One content state.
#[derive(Debug)]
pub struct ContentVersion {
    pub number: u32,
    pub began: Time,
    /// The name it was first used by.
    pub path: PathId,
    /// Its node, once something used it.
    pub entity: Option<EntityId>,
    pub previous: Option<EntityId>,
    pub aliases: Vec<Alias>,
    /// What was done by the first name.
    pub by_path: ByName,
    /// The first name leads through a symbolic link; set once there is another.
    pub soft: bool,
    /// Nodes for further hard links to it.
    pub links: Vec<(PathId, EntityId)>,
    pub ident: Option<Ident>,
    /// That is of what was kept by its name, at this time: if it loses the name before, it is another file's.
    pub kept: Option<Time>,
    /// The identity of the version before, if it was taken just before this one began.
    pub before: Option<Ident>,
    /// Something read it.
    pub read: bool,
    pub writers: Writers,
    /// Some write was observed.
    pub written: bool,
    /// It began empty.
    pub fresh: bool,
    /// Its node was last given as the one that the file system holds at the end.
    pub reported_last: bool,
    /// Something was learned since its node was last given.
    pub news: bool,
}

impl ContentVersion {
    fn new(number: u32, began: Time, path: PathId) -> ContentVersion {
        ContentVersion {
            number,
            began,
            path,
            entity: None,
            previous: None,
            aliases: Vec::new(),
            by_path: ByName::default(),
            soft: false,
            links: Vec::new(),
            ident: None,
            kept: None,
            before: None,
            read: false,
            writers: Writers::None,
            written: false,
            fresh: false,
            reported_last: false,
            news: false,
        }
    }
}

impl ContentVersion {
    /// It loses its name at this time, or is `ident` then: what was kept by that name later, or is another file, is not what it was.
    pub fn was_not_kept(&mut self, time: Time, ident: Option<&Ident>) {
        let anothers = match (ident, &self.ident) {
            (Some(own), Some(kept)) => key(own) != key(kept),
            _ => true,
        };
        if anothers && self.kept.is_some_and(|at| at >= time) {
            (self.ident, self.kept) = (None, None);
            self.news |= self.entity.is_some();
        }
    }

    /// True if the version has a node by this name.
    pub fn known_as(&self, path: PathId) -> bool {
        self.path == path || self.has_alias(path) || self.links.iter().any(|(p, _)| *p == path)
    }

    /// True if `path` is one of its further names.
    pub fn has_alias(&self, path: PathId) -> bool {
        self.aliases.iter().any(|alias| alias.path == path)
    }

    /// Another name it was used by. `soft`: whether that, and the first name, lead through a symbolic link.
    pub fn add_alias(&mut self, path: PathId, soft: bool, first_soft: bool) {
        if self.has_alias(path) {
            return;
        }
        self.soft = first_soft;
        let by = match first_soft && !soft {
            true => self.by_path,
            false => ByName::default(),
        };
        self.aliases.push(Alias { path, soft, by });
        self.news = true;
    }

    /// The version is at `path`: that is its first name from now on. `name`, a way there through a symbolic link, becomes an alias if
    /// it was the first.
    pub fn exchange_name(&mut self, name: PathId, path: PathId) {
        if self.path != name {
            return;
        }
        let used = self.by_path;
        if let Some(at) = self.aliases.iter().position(|alias| alias.path == path) {
            let known = self.aliases.remove(at);
            self.by_path.join(known.by);
        }
        let alias = Alias {
            path: name,
            soft: true,
            by: used,
        };
        self.aliases.insert(0, alias);
        (self.path, self.soft) = (path, false);
        self.news |= self.entity.is_some();
    }

    /// Notes what was done by a name: by the first one if `path` is none of the aliases.
    pub fn note(&mut self, path: PathId, relation: Relation, certainty: Certainty) {
        let mut news = false;
        if let Some(alias) = self.aliases.iter_mut().find(|alias| alias.path == path) {
            news |= alias.by.add(relation, certainty);
            if alias.soft && !self.soft {
                news |= self.by_path.add(relation, certainty);
            }
        } else {
            news |= self.by_path.add(relation, certainty);
            for plain in self
                .aliases
                .iter_mut()
                .filter(|alias| self.soft && !alias.soft)
            {
                news |= plain.by.add(relation, certainty);
            }
        }
        self.news |= news && !self.aliases.is_empty();
    }

    /// What could have been done by some name was done. By which of several of one sort is not known.
    pub fn confirm(&mut self, relation: Relation) {
        for soft in [false, true] {
            let first = (self.soft == soft).then_some(&mut self.by_path);
            let others = self.aliases.iter_mut().filter(|alias| alias.soft == soft);
            let mut can: Vec<&mut ByName> = first
                .into_iter()
                .chain(others.map(|alias| &mut alias.by))
                .filter(|by| (by.seen | by.possible) & relation.bit() != 0)
                .collect();
            if let [one] = can.as_mut_slice() {
                self.news |= one.add(relation, Certainty::Seen);
            }
        }
    }

    /// What was done by each name, the first one first; nothing if there is only that.
    pub fn by_name(&self) -> Vec<ByName> {
        if self.aliases.is_empty() {
            return Vec::new();
        }
        let others = self.aliases.iter().map(|alias| alias.by);
        std::iter::once(self.by_path).chain(others).collect()
    }
}

/// A file to which this run has done nothing but give it other names, since it first used it, if it was there before, or since whoever wrote
/// it had let go of it.
#[derive(Debug)]
pub struct MoveHistory {
    /// Which version it was then.
    pub number: u32,
    /// When that began: when the file was first used, or made.
    pub began: Time,
    /// When it was last given another name itself, not only with its directory: its status has changed since then.
    pub own: Option<Time>,
    /// Its node as it was then, once that version is forgotten.
    pub first: Option<Box<Entity>>,
}

/// Something that has versions (or, if not `versioned`, one for ever).
#[derive(Debug)]
pub struct TrackedObject {
    pub kind: EntityKind,
    /// What it is called if it has no path.
    pub label: Option<Bytes>,
    pub key: Option<InodeKey>,
    /// Its identity after the run.
    pub settled: Option<Ident>,
    /// That is what an earlier run made of it.
    pub made_before: bool,
    /// What it held before the command and at the command's end, if the command inherited a descriptor of it: others have it, too.
    pub inherited: Option<(Ident, Ident)>,
    versions: Vec<ContentVersion>,
    /// Descriptors that may write to it.
    pub writers: u32,
    /// Descriptors that lead to it.
    pub holders: u32,
    /// Names that lead to it.
    pub names: Vec<PathId>,
    /// It has, or may have, more than one hard link.
    pub linked: bool,
    /// Who gave it its last hard link.
    pub linker: Option<Serial>,
    /// When the run made it, if it did.
    pub made: Option<Time>,
    /// Its key is a guess: what its name led to after the run, though that was changed since.
    pub guessed: bool,
    /// A change of its names by this run: its status change time just before, and when. Nothing else happened to it before.
    pub renamed: Option<(i64, Time)>,
    /// It has only been moved, and what it was at first is not known yet.
    pub moves: Option<MoveHistory>,
    /// Two names were taken for one file by what they led to after the run: they may have led to two files before.
    pub doubtful: bool,
}

impl TrackedObject {
    /// An object first met by the name `path`; `number` is 0 if it was there before the run, 1 if the run made it.
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

    /// What it is was not known when its node was given.
    pub fn turned_out(&mut self, kind: EntityKind) {
        if self.kind == EntityKind::File && kind != self.kind {
            self.kind = kind;
            self.now_mut().news = true;
        }
    }

    /// True if what is written starts versions; pipes, sockets, devices and directories have one state for the whole run.
    pub fn versioned(&self) -> bool {
        has_versions(self.kind)
    }

    /// The present version.
    pub fn now(&self) -> &ContentVersion {
        // There is one from the start, and `forget` keeps the last.
        &self.versions[self.versions.len() - 1]
    }

    /// The present version.
    pub fn now_mut(&mut self) -> &mut ContentVersion {
        let last = self.versions.len() - 1;
        &mut self.versions[last]
    }

    /// Version `number`, or the nearest that is still kept.
    pub fn kept(&mut self, number: u32) -> &mut ContentVersion {
        let at = number.saturating_sub(self.versions[0].number) as usize;
        let last = self.versions.len() - 1;
        &mut self.versions[at.min(last)]
    }

    /// A file without a name gets its first one: the versions it has are known by that name.
    pub fn name_versions(&mut self, path: PathId) {
        self.label = None;
        for version in &mut self.versions {
            version.path = path;
            version.news |= version.entity.is_some();
        }
    }

    /// Starts the next version, which is no mere move.
    pub fn begin(&mut self, time: Time, path: PathId) -> &mut ContentVersion {
        let next = self.now().number + 1;
        self.moves = None;
        self.versions.push(ContentVersion::new(next, time, path));
        self.now_mut()
    }

    /// Takes out the versions that nothing can use any more.
    pub fn forget(&mut self) -> Vec<ContentVersion> {
        if self.holders == 0 && self.versions.len() > 1 {
            return self.versions.drain(..self.versions.len() - 1).collect();
        }
        Vec::new()
    }

    /// This run gives it a name or takes one away, and `before` is what it was just before: that changes its ctime, not its content.
    pub fn names_change(&mut self, before: &Ident, time: Time, slack: Time) {
        let before = self.ctime_without_names(before, slack);
        self.renamed = Some((before, time));
    }

    /// When its status last changed otherwise than by this run's changes of its names.
    pub fn ctime_without_names(&self, ident: &Ident, slack: Time) -> i64 {
        match self.renamed {
            Some((before, time)) if (time - slack..=time + slack).contains(&ident.ctime) => before,
            _ => ident.ctime,
        }
    }

    /// True if nobody changed it from before the command to the command's end.
    pub fn untouched(&self) -> bool {
        let state = |i: &Ident| (i.size, i.mtime, i.ctime);
        self.inherited
            .is_some_and(|(before, after)| state(&before) == state(&after))
    }

    /// A call says what it was before that call: so the present version is, unless somebody is writing it.
    pub fn was(&mut self, ident: Option<Ident>) {
        if let (Some(ident), 0) = (ident, self.writers) {
            let now = self.now_mut();
            now.news |= now.entity.is_some() && now.ident != Some(ident);
            now.ident = Some(ident);
        }
    }

    /// True if its content certainly stayed as it was from `time` to the end of the run.
    pub fn unchanged_since(&self, time: Time, slack: Time) -> bool {
        self.settled
            .is_some_and(|s| self.made_before || s.ctime < time - slack && s.mtime < time - slack)
    }
}
