//! A run with its deep log, and the acts in it that a question means.
//!
//! In: nothing; `asking` fills it. Out: plain data for the other modules.

use std::collections::BTreeSet;

use backstory_deep::{DeepLog, Request};
use backstory_eventlog::event::Time;
use backstory_query::answer::ProcessLine;
use backstory_store::Store;

use crate::model::{FileAct, Precision, SceneRun};

/// The clocks of a log and of its deep log may differ by so many ns.
pub const CLOCKS_DIFFER: Time = 100_000;

/// A run with its deep log, and what the store knows of it.
pub struct DeepRun<'s> {
    /// The store.
    pub store: &'s dyn Store,
    /// The run.
    pub run: SceneRun,
    /// Its working directory.
    pub directory: Vec<u8>,
    /// Its deep log.
    pub log: DeepLog,
    /// Its requests, in the order of their beginning.
    pub requests: Vec<Request>,
    /// The programs that it executed.
    pub processes: Vec<ProcessLine>,
}

/// An act or request that is meant.
#[derive(Debug, Clone)]
pub struct Meant {
    /// The id of the request, if there is one.
    pub request: Option<usize>,
    /// The epoch of the process that acted.
    pub epoch: u64,
    /// Its process id.
    pub pid: u32,
    /// The moment.
    pub time: Time,
    /// The file of the question, as the process named it.
    pub file: Option<Vec<u8>>,
    /// The acts on that file.
    pub acts: Vec<FileAct>,
    /// How it was found.
    pub precision: Precision,
    /// The ids of other requests for which the thread may have acted.
    pub others: BTreeSet<usize>,
}

impl DeepRun<'_> {
    /// True if a request was in progress at a moment.
    pub fn is_served_at(&self, request: &Request, time: Time) -> bool {
        self.log.time_of(request.began) <= time && time <= self.log.time_of(request.ended)
    }

    /// True if another request of the process was served at the same time.
    pub fn has_others_beside(&self, one: &Request) -> bool {
        let overlaps = |other: &Request| {
            let same = other.id == one.id;
            !same && other.pid == one.pid && other.began < one.ended && one.began < other.ended
        };
        self.requests.iter().any(overlaps)
    }
}
