//! Decoded blocks that questions read again.
//!
//! A written block never changes while only this process writes. After another process has written,
//! everything is forgotten: see [`Cache::renew`].

use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use rustc_hash::{FxHashMap as HashMap, FxHashSet};

use crate::EntityKey;
use crate::codec::members::Block;
use crate::codec::reverse::Mention;
use crate::codec::versions::Version;

/// Blocks (or directory entries) kept at most before all are dropped.
const MOST: usize = 4096;
const MOST_INDEXED: usize = 2_000_000;
const MOST_MENTIONS: usize = 1_000_000;
/// Bytes of texts and of processes' records kept at most.
const MOST_BYTES: usize = 8 << 20;

/// Processes of a run whose records are read together: a question that reads one reads its
/// neighbours next.
pub const PAGE: u32 = 16;

/// The records of [`PAGE`] processes with neighbouring ids.
#[derive(Default)]
pub struct Page {
    bytes: Vec<u8>,
    /// Where in `bytes` each record ends; it begins where the one before ends.
    ends: [u32; PAGE as usize],
    filled: usize,
}

impl Page {
    /// Adds the record at `place`; places come in ascending order.
    pub fn push(&mut self, place: usize, record: &[u8]) {
        let place = place.min(PAGE as usize - 1);
        self.ends[self.filled..place].fill(self.bytes.len() as u32);
        self.bytes.extend_from_slice(record);
        self.ends[place] = self.bytes.len() as u32;
        self.filled = place + 1;
    }

    /// The record at `place`, if there is one: none is empty.
    pub fn record(&self, place: usize) -> Option<&[u8]> {
        let filled = self.ends.get(..self.filled)?;
        let end = *filled.get(place)? as usize;
        let start = place
            .checked_sub(1)
            .map_or(0, |before| filled[before] as usize);
        Some(&self.bytes[start..end]).filter(|record| !record.is_empty())
    }
}

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

/// Recently decoded blocks.
#[derive(Default)]
pub struct Cache {
    pub members: HashMap<i64, Rc<Block>>,
    /// The activities that touched the entities of a block, by the block's key.
    mentions: HashMap<i64, Rc<[Mention]>>,
    mentioned: usize,
    /// Blocks and pages that were read once. On the second read the whole block is decoded.
    asked: FxHashSet<(bool, i64)>,
    /// Records of processes, by the key of the first of a page.
    activities: HashMap<i64, Rc<Page>>,
    texts: HashMap<u64, Rc<[u8]>>,
    /// Bytes in `activities` and `texts`.
    bytes: usize,
    /// By the key of the first version in the block.
    pub versions: BTreeMap<i64, Rc<Vec<Version>>>,
    /// Names by the version that introduced them.
    pub names: HashMap<i64, Bytes>,
    pub dirs: HashMap<u32, Bytes>,
    pub starts: HashMap<u32, Time>,
    pub inodes: HashMap<u32, Rc<Inodes>>,
    pub of_versions: HashMap<u32, Rc<Members>>,
    /// Whether there are any facts, once that was read. Without facts, a question need not look for
    /// one for each version.
    pub any_facts: Option<bool>,
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
    pub fn asked_for_mentions(&mut self, block: i64) -> bool {
        self.asked_again((true, block))
    }

    /// Whether a page was read before now.
    pub fn asked_for_page(&mut self, first: i64) -> bool {
        self.asked_again((false, first))
    }

    fn asked_again(&mut self, which: (bool, i64)) -> bool {
        if self.asked.len() >= 16 * MOST {
            self.asked.clear();
        }
        !self.asked.insert(which)
    }

    /// The activities that touched the entities of a block.
    pub fn mentions(&self, block: i64) -> Option<Rc<[Mention]>> {
        self.mentions.get(&block).cloned()
    }

    /// Stores the activities that touched the entities of a block.
    pub fn keep_mentions(&mut self, block: i64, mentions: Rc<[Mention]>) {
        if self.mentioned > MOST_MENTIONS || self.mentions.len() >= MOST {
            self.mentions.clear();
            self.mentioned = 0;
        }
        self.mentioned += mentions.len();
        self.mentions.insert(block, mentions);
    }

    /// The records of processes.
    pub fn page(&self, first: i64) -> Option<Rc<Page>> {
        self.activities.get(&first).cloned()
    }

    /// Keeps the records of processes.
    pub fn keep_page(&mut self, first: i64, page: Rc<Page>) {
        self.make_room_for(page.bytes.len());
        self.activities.insert(first, page);
    }

    /// A text.
    pub fn text(&self, id: u64) -> Option<Rc<[u8]>> {
        self.texts.get(&id).cloned()
    }

    /// Keeps a text.
    pub fn keep_text(&mut self, id: u64, text: Rc<[u8]>) {
        self.make_room_for(text.len());
        self.texts.insert(id, text);
    }

    fn make_room_for(&mut self, bytes: usize) {
        if self.bytes > MOST_BYTES {
            self.activities.clear();
            self.texts.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
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

    /// Forgets directories' indexes.
    pub fn forget_directories(&mut self) {
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
