//! The index of a log, which must be complete before its events can be ordered. It has the chunks
//! of each thread, the forks, the `exec` that started each program, and the position of each
//! environment.
//!
//! Its size is bounded by the chunks, processes and environments of a run, not by its events.

use crate::births::Births;
use crate::chunk::SkippedRecords;
use crate::stored_frames::StoredFrames;
use crate::stream::{Cursor, RecordPosition, ThreadStream, next_record};
use backstory_abi::Record;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// The result of a `VFORK` record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnResult {
    /// Result of the call: the child, or `-errno`. `None` if it is unknown.
    pub result: Option<i32>,
}

/// The index, see the module.
#[derive(Debug, Default)]
pub struct LogIndex {
    /// All streams, in the order of their first mention in the log.
    pub streams: Vec<ThreadStream>,
    /// Thread streams that wait for a record: a child for its fork, a program for its exec, a
    /// thread for its process.
    pub gates: FxHashMap<RecordPosition, Vec<u32>>,
    /// The result of each `VFORK`.
    pub spawned: HashMap<RecordPosition, SpawnResult>,
    /// Thread stream and position of the first record of each environment.
    pub environments: HashMap<u64, (u32, RecordPosition)>,
    /// Processes in other pid namespaces, for translating their ids.
    pub births: Births,
    /// Number of children whose ids were not observed.
    pub unnumbered: u32,
    /// The counter of the newest record.
    pub newest: u64,
    /// Records that could not be understood.
    pub skipped: SkippedRecords,
    /// True if a record names a preserved content.
    pub names_preserved: bool,
}

impl LogIndex {
    /// The next record of a stream at or after a position.
    pub fn next<'a>(
        &self,
        log: &'a StoredFrames,
        stream: &ThreadStream,
        cursor: &mut Cursor<'a>,
    ) -> Option<(RecordPosition, Record)> {
        next_record(log, &stream.chunks, cursor, &mut SkippedRecords::default())
    }
}
