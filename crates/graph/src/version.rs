//! One content state of a file: its node, its names, and the epochs that may have written it.

use backstory_eventlog::event::Time;
use backstory_files::Ident;

use crate::model::{ByName, Certainty, EntityId, Relation};
use crate::paths::PathId;
use crate::serial::Serial;

/// A key that two names share if they lead to one inode: its device, number and birth.
pub type InodeKey = (u64, u64, i64);

/// The key of an identity.
pub fn key(ident: &Ident) -> InodeKey {
    (ident.dev, ident.ino, ident.birth)
}

/// The epochs that may have written a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writers {
    #[default]
    None,
    One(Serial),
    Many,
}

impl Writers {
    /// Adds an epoch.
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
    /// The name leads through a symbolic link. A use by it is a use of the file by its plain name
    /// as well.
    pub soft: bool,
    /// The relations of activities to the version by this name.
    pub by: ByName,
}

/// One content state.
#[derive(Debug, Clone)]
pub struct ContentVersion {
    pub number: u32,
    pub began: Time,
    /// The name by which it was first used.
    pub path: PathId,
    /// Its node, once an activity has used it.
    pub entity: Option<EntityId>,
    pub previous: Option<EntityId>,
    pub aliases: Vec<Alias>,
    /// The relations of activities to the version by the first name.
    pub by_path: ByName,
    /// The first name leads through a symbolic link. Set when the version gets a second name.
    pub soft: bool,
    /// The nodes of its further hard links.
    pub links: Vec<(PathId, EntityId)>,
    pub ident: Option<Ident>,
    /// The identity is that of the content preserved by its name, at this time. If the version
    /// loses the name before that time, the identity belongs to another file.
    pub kept: Option<Time>,
    /// The identity of the version before, if it was taken just before this version began.
    pub before: Option<Ident>,
    /// An activity has read it.
    pub read: bool,
    pub writers: Writers,
    /// A write was observed.
    pub written: bool,
    /// It began empty.
    pub fresh: bool,
    /// Its node was last announced as the one that the file system holds at the end.
    pub reported_last: bool,
    /// The node has to be announced again, because the fold has learned more since.
    pub news: bool,
}

impl ContentVersion {
    pub fn new(number: u32, began: Time, path: PathId) -> ContentVersion {
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
    /// Notes that the version loses its name at this time, or that its identity is `ident` then.
    /// Content preserved by that name later, or with another key, does not belong to this version.
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

    /// Adds another name. `soft` and `first_soft` say whether it, and the first name, lead through
    /// a symbolic link.
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

    /// Makes `path` the first name of the version. `name`, which leads there through a symbolic
    /// link, becomes an alias if it was the first name.
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

    /// Notes the relation of an activity to the version by a name. It counts for the first name if
    /// `path` is not an alias.
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

    /// Confirms a relation that was possible. If several names of one sort can have been used, the
    /// relation stays possible for each.
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

    /// The relations by each name, those by the first name first. Empty if there is only one name.
    pub fn by_name(&self) -> Vec<ByName> {
        if self.aliases.is_empty() {
            return Vec::new();
        }
        let others = self.aliases.iter().map(|alias| alias.by);
        std::iter::once(self.by_path).chain(others).collect()
    }
}
