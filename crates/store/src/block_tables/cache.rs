//! Decoded blocks that questions read again.
//!
//! A written block never changes while only this process writes. After another process has written,
//! everything is forgotten: see [`Cache::renew`].

use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use rustc_hash::{FxHashMap as HashMap, FxHashSet};

use crate::codec::activities::ActivityBlock;
use crate::codec::edge_lists::EdgeLists;
use crate::codec::members::Block;
use crate::codec::reverse::{Mention, Mentioned};
use crate::codec::texts::TextBlock;
use crate::codec::versions::Version;
use crate::facts::InodeFacts;
use crate::{EntityKey, RunRecord};

/// Blocks (or directory entries) kept at most before all are dropped.
const MOST: usize = 4096;
const MOST_INDEXED: usize = 2_000_000;
const MOST_MENTIONS: usize = 1_000_000;
/// A row of lists of edges with more bytes has one long list, which is not kept.
const LONG: usize = 16 << 10;
/// Records of runs kept at most. A record has some KB, most of them for the environment.
const MOST_RECORDS: usize = 256;
/// Bytes of texts, processes and lists of edges kept at most.
const MOST_BYTES: usize = 8 << 20;

/// Pairs that are found by their first part. A directory may have many thousands, so they are
/// sorted in one block of memory.
pub struct SortedPairs<K, V>(Box<[(K, V)]>);

impl<K: Copy + Ord, V: Copy + Ord> SortedPairs<K, V> {
    /// The pairs may come in any order.
    pub fn new(mut pairs: Vec<(K, V)>) -> SortedPairs<K, V> {
        pairs.sort_unstable();
        SortedPairs(pairs.into())
    }

    /// The second parts of the pairs with this first part, in ascending order.
    pub fn with(&self, key: K) -> Vec<V> {
        let first = self.0.partition_point(|(other, _)| *other < key);
        let rest = self.0[first..].iter();
        let found = rest.take_while(|(other, _)| *other == key);
        found.map(|(_, value)| *value).collect()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Versions of a directory by the key that `version_key` makes of their identities.
pub type Inodes = SortedPairs<i64, u32>;

/// Entities of a directory by the index of their version.
pub type Members = SortedPairs<u32, EntityKey>;

/// The runs of a store, by whether their renames are listed.
#[derive(Debug, Default)]
pub struct ListedRuns {
    /// Runs whose renames are listed.
    pub listed: FxHashSet<u32>,
    /// Runs that a program without lists appended.
    pub others: FxHashSet<u32>,
}

/// Recently decoded blocks.
#[derive(Default)]
pub struct Cache {
    pub members: HashMap<i64, Rc<Block>>,
    /// The activities that touched the entities of a block, by the block's key.
    mentions: HashMap<(i64, Mentioned), Rc<[Mention]>>,
    mentioned: usize,
    /// Blocks whose mentions were read once. On the second read the whole block is decoded.
    asked: FxHashSet<(i64, Mentioned)>,
    /// Blocks of processes, by the key of the first.
    activities: HashMap<i64, Rc<ActivityBlock>>,
    /// Rows of lists of edges.
    edge_lists: HashMap<i64, Rc<EdgeLists>>,
    /// Blocks of texts.
    texts: HashMap<i64, Rc<TextBlock>>,
    /// Bytes in `activities`, `edge_lists` and `texts`.
    bytes: usize,
    /// By the key of the first version in the block.
    pub versions: BTreeMap<i64, Rc<Vec<Version>>>,
    /// Names by the version that introduced them.
    pub names: HashMap<i64, Bytes>,
    pub dirs: HashMap<u32, Bytes>,
    pub starts: HashMap<u32, Time>,
    /// Records of runs by their numbers.
    records: HashMap<u32, RunRecord>,
    pub inodes: HashMap<u32, Rc<Inodes>>,
    pub of_versions: HashMap<u32, Rc<Members>>,
    /// The runs whose renames are listed, once that was read.
    pub listed_runs: Option<Rc<ListedRuns>>,
    /// Whether there are any facts, once that was read. Without facts, a question need not look for
    /// one for each version.
    pub any_facts: Option<bool>,
    /// Facts that a question has read. They hold for one state of the database.
    pub facts: InodeFacts,
    indexed: usize,
    /// `PRAGMA data_version` when the blocks were read.
    data_version: i64,
}

impl Cache {
    /// Makes room, if the cache is full, by dropping decoded records.
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

    /// Whether the mentions of a block were read before now.
    pub fn asked_for_mentions(&mut self, block: (i64, Mentioned)) -> bool {
        if self.asked.len() >= 16 * MOST {
            self.asked.clear();
        }
        !self.asked.insert(block)
    }

    /// The activities that touched the entities of a block.
    pub fn mentions(&self, block: (i64, Mentioned)) -> Option<Rc<[Mention]>> {
        self.mentions.get(&block).cloned()
    }

    /// Stores the activities that touched the entities of a block.
    pub fn keep_mentions(&mut self, block: (i64, Mentioned), mentions: Rc<[Mention]>) {
        if self.mentioned > MOST_MENTIONS || self.mentions.len() >= MOST {
            self.mentions.clear();
            self.mentioned = 0;
        }
        self.mentioned += mentions.len();
        self.mentions.insert(block, mentions);
    }

    /// A block of processes.
    pub fn activities(&self, first: i64) -> Option<Rc<ActivityBlock>> {
        self.activities.get(&first).cloned()
    }

    /// Keeps a block of processes.
    pub fn keep_activities(&mut self, first: i64, block: Rc<ActivityBlock>) {
        self.make_room_for(block.size());
        self.activities.insert(first, block);
    }

    /// A row of lists of edges.
    pub fn edge_lists(&self, key: i64) -> Option<Rc<EdgeLists>> {
        self.edge_lists.get(&key).cloned()
    }

    /// Keeps a row of lists of edges, unless it is long.
    pub fn keep_edge_lists(&mut self, key: i64, lists: &Rc<EdgeLists>) {
        if lists.size() <= LONG {
            self.make_room_for(lists.size());
            self.edge_lists.insert(key, lists.clone());
        }
    }

    /// A block of texts.
    pub fn texts(&self, key: i64) -> Option<Rc<TextBlock>> {
        self.texts.get(&key).cloned()
    }

    /// Keeps a block of texts.
    pub fn keep_texts(&mut self, key: i64, block: Rc<TextBlock>) {
        self.make_room_for(block.size());
        self.texts.insert(key, block);
    }

    fn make_room_for(&mut self, bytes: usize) {
        if self.bytes > MOST_BYTES {
            self.activities.clear();
            self.texts.clear();
            self.edge_lists.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    /// The record of a run.
    pub fn record(&self, number: u32) -> Option<RunRecord> {
        self.records.get(&number).cloned()
    }

    /// Keeps the record of a run.
    pub fn keep_record(&mut self, record: &RunRecord) {
        if self.records.len() >= MOST_RECORDS {
            self.records.clear();
        }
        self.records.insert(record.key.0, record.clone());
    }

    /// Forgets the records of runs: one of them gets another label.
    pub fn forget_records(&mut self) {
        self.records.clear();
    }

    /// Forgets facts about contents: another one will be added.
    pub fn forget_facts(&mut self) {
        self.any_facts = None;
        self.facts = InodeFacts::default();
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

    /// Forgets everything if another process has written since. A process that removes runs may
    /// give numbers of texts and directories to others.
    pub fn renew(&mut self, data_version: i64) {
        if self.data_version != data_version {
            *self = Cache {
                data_version,
                ..Cache::default()
            };
        }
    }

    /// Forgets directories' indexes, and which runs list their renames.
    pub fn forget_directories(&mut self) {
        self.listed_runs = None;
        self.inodes.clear();
        self.of_versions.clear();
        self.indexed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_by_their_first_part_in_ascending_order() {
        let pairs = SortedPairs::new(vec![(7, 3), (-2, 1), (7, 1), (9, 0)]);
        assert_eq!(pairs.with(7), [1, 3]);
        assert_eq!(pairs.with(-2), [1]);
        assert_eq!(pairs.with(8), [0; 0]);
        assert_eq!(SortedPairs::<i64, u32>::new(Vec::new()).with(7), [0; 0]);
    }
}
