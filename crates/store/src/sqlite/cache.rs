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

/// Entities of a directory by inode.
pub type DirIndex = HashMap<(u64, u64), Vec<(Ident, EntityKey)>>;

/// What was decoded lately.
#[derive(Default)]
pub struct Cache {
    pub members: HashMap<i64, Rc<Block>>,
    /// By the key of the first version in the block.
    pub versions: BTreeMap<i64, Rc<Vec<Version>>>,
    pub dirs: HashMap<u32, Bytes>,
    pub starts: HashMap<u32, Time>,
    pub indexes: HashMap<u32, Rc<DirIndex>>,
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
        if self.dirs.len() >= 16 * MOST {
            self.dirs.clear();
        }
    }

    /// Keeps a directory's index.
    pub fn keep_index(&mut self, dir: u32, index: Rc<DirIndex>) {
        if self.indexed > MOST_INDEXED {
            self.forget_directories();
        }
        self.indexed += index.len();
        self.indexes.insert(dir, index);
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
        self.indexes.clear();
        self.indexed = 0;
    }
}
