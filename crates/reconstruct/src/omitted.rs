//! Parts of a process's record that were left out while the log was read.
//!
//! In: nothing; `recorded` fills it. Out: how many bytes moved on each stream, and when. Invariant:
//! the choice of what is fed for a request is the same, whether a stream is here or was left out.
//!
//! Memory: a few numbers for each stream. Absent: the bytes.

use crate::resource::ResourceId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A stream without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OmittedStream {
    /// Bytes that entered.
    pub received: u64,
    /// Bytes that left.
    pub sent: u64,
    /// Time-stamp counter when the last read returned, or 0.
    pub last_read: u64,
    /// The same for the last write.
    pub last_write: u64,
}

/// The time and length of each read and write of a stream that another process uses, too. They
/// count for the positions of that process's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OmittedMoves {
    /// Reads, in order.
    pub reads: Vec<(u64, u64)>,
    /// Writes, in order.
    pub writes: Vec<(u64, u64)>,
}

/// The parts of the record of a process that were left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OmittedParts {
    /// By resource.
    pub streams: HashMap<ResourceId, OmittedStream>,
    /// Those that other processes use, too.
    pub moves: HashMap<ResourceId, OmittedMoves>,
    /// By thread: when it worked for connections that were left out. Each span has the times of the
    /// first and of the last move. The thread moved no byte on another connection between them.
    pub work: HashMap<u32, Vec<(u64, u64)>>,
}

impl OmittedStream {
    /// A read returned at this time, with so many bytes.
    pub fn read(&mut self, time: u64, length: u64) {
        self.received = self.received.saturating_add(length);
        self.last_read = self.last_read.max(time);
    }

    /// A write returned at this time. It had so many bytes.
    pub fn wrote(&mut self, time: u64, length: u64) {
        self.sent = self.sent.saturating_add(length);
        self.last_write = self.last_write.max(time);
    }

    /// These are further calls on the same stream.
    pub fn join(&mut self, other: OmittedStream) {
        self.read(other.last_read, other.received);
        self.wrote(other.last_write, other.sent);
    }
}
