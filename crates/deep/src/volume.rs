//! How many bytes a deep log has before compression, and how many bytes of I/O it describes.
//!
//! In: the chunks of a log. Out: plain numbers. Every chunk is decompressed once.

use crate::call::{Call, Content};
use crate::call_numbers as nr;
use crate::log::DeepLog;
use std::ops::AddAssign;

/// Bytes of a deep log, and of the I/O that it describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Bytes of all records before compression.
    pub records: u64,
    /// Bytes in them that a call read or wrote.
    pub stored: u64,
    /// Bytes that the calls read or wrote. The records may have only a digest of them, or a
    /// reference to a file. Bytes that the kernel moved between descriptors count, too.
    pub moved: u64,
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Volume) {
        self.records += other.records;
        self.stored += other.stored;
        self.moved += other.moved;
    }
}

impl DeepLog {
    /// The bytes of the log before compression, and of the I/O that it describes.
    pub fn volume(&self) -> Volume {
        let records = self.all_chunks().map(|chunk| self.uncompressed(chunk));
        let mut volume = Volume {
            records: records.sum(),
            ..Volume::default()
        };
        for process in self.processes() {
            for tid in &process.tids {
                for call in self.thread_calls(process.epoch, *tid) {
                    volume.add(&call);
                }
            }
        }
        volume
    }
}

impl Volume {
    fn add(&mut self, call: &Call) {
        let content = match call.number {
            number if nr::reads(number) => call.content_in(),
            number if nr::writes(number) => call.content_out(),
            number if nr::MOVES.contains(&number) => {
                let moved = u64::try_from(call.result).unwrap_or(0);
                self.moved = self.moved.saturating_add(moved);
                None
            }
            _ => None,
        };
        let Some(content) = content else { return };
        self.moved = self.moved.saturating_add(content.length());
        if let Content::Bytes(bytes) = content {
            self.stored += bytes.len() as u64;
        }
    }
}
