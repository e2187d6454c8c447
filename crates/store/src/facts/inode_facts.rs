//! The facts about the versions of some inodes, in memory.
//!
//! In: all facts about an inode. Out: the fact about one version.
//!
//! File systems use inodes again, so a long history has hundreds of versions with one inode. A
//! database finds facts by inode, and has to decode all of them to find the fact about a version.
//!
//! Invariant: of an inode that is here, all facts are here. They are those of one state of the
//! store, so their owner drops them when the state may change.

use backstory_files::{Ident, VersionId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Fact;
use crate::same_version;

/// Facts kept, before all are dropped.
const MOST: usize = 1 << 14;

/// The facts about some inodes.
#[derive(Debug, Default)]
pub struct InodeFacts {
    /// The keys by which the database finds facts.
    inodes: FxHashSet<i64>,
    /// Nearly every version has one fact at most.
    facts: FxHashMap<VersionId, Vec<Fact>>,
    count: usize,
}

impl InodeFacts {
    /// Drops all facts if there are many. So it comes before the look at what is here.
    pub fn make_room(&mut self) {
        if self.count > MOST {
            *self = InodeFacts::default();
        }
    }

    /// Whether the facts about the inode with this key are here.
    pub fn has(&self, inode: i64) -> bool {
        self.inodes.contains(&inode)
    }

    /// Keeps all facts about the inodes with these keys.
    pub fn keep(&mut self, inodes: Vec<i64>, facts: Vec<Fact>) {
        self.count += facts.len();
        self.inodes.extend(inodes);
        for fact in facts {
            let version = fact.ident.version_id();
            self.facts.entry(version).or_default().push(fact);
        }
    }

    /// The fact about a version whose inode is here.
    pub fn of(&self, ident: &Ident) -> Option<&Fact> {
        let mut alike = self.facts.get(&ident.version_id())?.iter();
        alike.find(|fact| same_version(&fact.ident, ident))
    }
}
