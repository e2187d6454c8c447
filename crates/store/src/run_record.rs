//! A run as a store lists it.

use std::ops::AddAssign;

use backstory_eventlog::run::{RunEnd, RunHeader};

use crate::RunKey;

/// How much a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub struct Counts {
    pub activities: u64,
    pub entities: u64,
    pub edges: u64,
    /// Distinct paths of files that were read or executed.
    pub files_read: u64,
    /// Distinct paths of files that were written, created, removed, or the target of a rename.
    pub files_written: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.activities += other.activities;
        self.entities += other.entities;
        self.edges += other.edges;
        self.files_read += other.files_read;
        self.files_written += other.files_written;
    }
}

/// A run as the store contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Its number in the store.
    pub key: RunKey,
    /// The header of its log. The run's name may have changed since: see `name`.
    pub header: RunHeader,
    /// The end of its log.
    pub end: RunEnd,
    /// The name it has now.
    pub name: Option<String>,
    /// A note of the user's.
    pub note: Option<String>,
    /// Bytes of the finalized log.
    pub log_bytes: u64,
    /// Gaps of the graph, beside `end.incomplete_because`: one sentence each.
    pub unknown: Vec<String>,
    /// How much it has.
    pub counts: Counts,
}

/// The size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct StoreStats {
    pub runs: u64,
    pub counts: Counts,
    /// Bytes of the database.
    pub bytes: u64,
}
