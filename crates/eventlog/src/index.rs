//! What must be known of a whole log before its events can be put in order: which chunks belong to one thread, who forked
//! whom, which program was started by which `exec`, and where each environment was logged.
//!
//! Its size is bounded by the chunks, processes and environments of a run, not by its events.

use crate::births::Births;
use crate::chunk::SkippedRecords;
use crate::stored_frames::StoredFrames;
use crate::stream::{Cursor, RecordPosition, ThreadStream, next_record};
use backstory_abi::Record;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// What a `VFORK` record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnResult {
    /// Result of the call: the child, or `-errno`; none if nobody knows.
    pub result: Option<i32>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct LogIndex {
    /// All streams, in the order in which the log mentions them first.
    pub streams: Vec<ThreadStream>,
    /// ThreadStreams that wait for a record: a child for its fork, a program for its exec, a thread for its process.
    pub gates: FxHashMap<RecordPosition, Vec<u32>>,
    /// What each `VFORK` came to.
    pub spawned: HashMap<RecordPosition, SpawnResult>,
    /// ThreadStream and position of the first record of each environment.
    pub environments: HashMap<u64, (u32, RecordPosition)>,
    /// Processes in other pid namespaces, to translate their numbers.
    pub births: Births,
    /// Children whose numbers nobody saw.
    pub unnumbered: u32,
    /// What could not be understood.
    pub skipped: SkippedRecords,
}

impl LogIndex {
    /// The next record of a stream at or after a place in it.
    pub fn next<'a>(
        &self,
        log: &'a StoredFrames,
        stream: &ThreadStream,
        cursor: &mut Cursor<'a>,
    ) -> Option<(RecordPosition, Record)> {
        next_record(log, &stream.chunks, cursor, &mut SkippedRecords::default())
    }
}
