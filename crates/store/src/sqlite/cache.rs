//! Decoded blocks that questions come back to. Blocks never change once written, so only directories' indexes, which grow
//! with every run, can be out of date.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Ident, Time};

use crate::EntityKey;
use crate::codec::members::Block;
use crate::codec::versions::Version;

/// Blocks (or directory entries) kept at most before all are dropped.
const MOST: usize = 4096;
const MOST_INDEXED: usize = 2_000_000;

/// Versions of a directory by device and inode.
pub type Inodes = HashMap<(u64, u64), Vec<(Ident, u32)>>;

/// Entities of a directory by the index of their version.
pub type Members = HashMap<u32, Vec<EntityKey>>;

/// What was decoded lately.
#[derive(Default)]
pub struct Cache {
    pub members: HashMap<i64, Rc<Block>>,
    /// By the key of the first version in the block.
    pub versions: BTreeMap<i64, Rc<Vec<Version>>>,
    /// Names by the version that introduced them.
    pub names: HashMap<i64, Bytes>,
    pub dirs: HashMap<u32, Bytes>,
    pub starts: HashMap<u32, Time>,
    pub inodes: HashMap<u32, Rc<Inodes>>,
    pub of_versions: HashMap<u32, Rc<Members>>,
    /// Whether anything is known of contents, if that has been asked: most questions to a store without need not ask for each version.
    pub any_facts: Option<bool>,
    indexed: usize,
    /// `PRAGMA data_version` when the indexes were made.
    data_version: i64,
}

impl Cache {
    /// Makes room, if it is full, by forgetting what was decoded.
    pub fn trim(&mut self) {
        if self.members.len() >= MOST {
            self.members.clear();
        }
        if self.versions.len() >= MOST {
            self.versions.clear();
        }
        if self.names.len() >= 16 * MOST {
            self.names.clear();
        }
        if self.dirs.len() >= 16 * MOST {
            self.dirs.clear();
        }
    }

    /// Keeps the versions of a directory.
    pub fn keep_inodes(&mut self, dir: u32, index: Rc<Inodes>) {
        self.make_room(index.len());
        self.inodes.insert(dir, index);
    }

    /// Keeps the entities of a directory.
    pub fn keep_members(&mut self, dir: u32, index: Rc<Members>) {
        self.make_room(index.len());
        self.of_versions.insert(dir, index);
    }

    fn make_room(&mut self, more: usize) {
        if self.indexed > MOST_INDEXED {
            self.forget_directories();
        }
        self.indexed += more;
    }

    /// Forgets directories' indexes if another process has written since.
    pub fn renew(&mut self, data_version: i64) {
        if self.data_version != data_version {
            self.data_version = data_version;
            self.forget_directories();
        }
    }

    /// Forgets directories' indexes.
    pub fn forget_directories(&mut self) {
        self.inodes.clear();
        self.of_versions.clear();
        self.indexed = 0;
    }
}
