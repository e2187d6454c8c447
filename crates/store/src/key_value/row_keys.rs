//! The keys of the rows: one byte for the table, then numbers in network order, or bytes.

use crate::{Error, Result};

/// The tables. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RowTable {
    /// One row: the format.
    Format = 0,
    /// Number of a run.
    Runs = 1,
    /// Id of a run: its number.
    RunIds = 2,
    /// Blocks of texts.
    Texts = 3,
    /// Blocks of paths of directories.
    Directories = 4,
    /// Path of a directory: its number.
    Paths = 5,
    /// Blocks of versions.
    Versions = 6,
    /// Bucket of inodes: its directories.
    Inodes = 7,
    /// Blocks of entities.
    Members = 8,
    /// Pairs: directory, block of entities.
    Touched = 9,
    /// Version: the entities that runs made with it. In a shared database, pairs of both.
    Made = 10,
    /// Blocks of activities.
    Activities = 11,
    /// Lists of activities.
    Segments = 12,
    /// Blocks of extended records.
    Extended = 13,
    /// Number of a fact.
    Facts = 14,
    /// Pairs: inode, fact.
    FactInodes = 15,
    /// Pairs: beginning of a digest, fact.
    FactContents = 16,
    /// Id of a run.
    Snapshots = 17,
    /// One row: how far the journal of facts was read.
    Learned = 18,
    /// Run, kind and key of an annotation.
    Annotations = 19,
    /// Kind, key and run of an annotation.
    AnnotationKeys = 20,
    /// One row: how far the journal of annotations was read.
    Annotated = 21,
    /// Number of a [`Counter`].
    Counters = 22,
    /// Key of texts: their ids.
    TextKeys = 23,
    /// Rows of lists of edges.
    EdgeLists = 24,
}

/// Numbers that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Counter {
    /// The number of the run that was appended last.
    Runs = 0,
    /// The number of the newest fact.
    Facts = 2,
    /// The number of the last commit.
    Commits = 3,
}

impl RowTable {
    /// The key of a row with a number.
    pub fn number(self, number: u64) -> [u8; 9] {
        let mut key = [self as u8; 9];
        key[1..].copy_from_slice(&number.to_be_bytes());
        key
    }

    /// The key of a pair.
    pub fn pair(self, first: u64, second: u64) -> [u8; 17] {
        let mut key = [self as u8; 17];
        key[1..9].copy_from_slice(&first.to_be_bytes());
        key[9..].copy_from_slice(&second.to_be_bytes());
        key
    }

    /// The key of a row that is found by bytes.
    pub fn bytes(self, bytes: &[u8]) -> Vec<u8> {
        [&[self as u8], bytes].concat()
    }

    /// The key after the last of the table.
    pub fn end(self) -> [u8; 1] {
        [self as u8 + 1]
    }
}

/// The number at the end of the key of a number or pair.
pub fn last_number(key: &[u8]) -> u64 {
    let number = key.last_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(number)
}

/// The number of a directory or run, as a row has it.
pub fn short_number(row: &[u8]) -> Result<u32> {
    let number = row.try_into().map(u32::from_be_bytes);
    number.map_err(|_| Error::Damaged("index of names"))
}

/// The first key after `key`.
pub fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The first key after all those that begin with `prefix`, which begins with a table's number.
pub fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}
