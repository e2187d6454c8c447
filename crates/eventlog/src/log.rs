//! Reading a log, whatever state a crash left it in.
//!
//! Invariant: a log cut at any byte opens, and so does one with garbage anywhere in it; every undamaged frame is read, and
//! [`Log::damage`] says what was not. Only a file with content and no frame at all, or of a later format, is refused.

use crate::chunk::SkippedRecords;
use crate::error::Error;
use crate::identities::Identities;
use crate::index::LogIndex;
use crate::merge::Events;
use crate::run::{RunEnd, RunHeader};
use crate::stored_frames::StoredFrames;
use crate::walk;
use std::path::Path;
use std::sync::OnceLock;

pub use crate::stored_frames::Damage;

/// An open log: what it held when it was opened.
#[derive(Debug)]
pub struct Log {
    frames: StoredFrames,
    index: OnceLock<LogIndex>,
}

impl Log {
    /// Opens a log: finalized, still growing, cut off or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Log, Error> {
        let (frames, index) = (StoredFrames::open(path)?, OnceLock::new());
        Ok(Log { frames, index })
    }

    /// What was known before the command started; blank if that frame is damaged (see [`Damage::no_header`]).
    pub fn header(&self) -> &RunHeader {
        self.frames.header()
    }

    /// How the run ended, if the log got that far.
    pub fn end(&self) -> Option<&RunEnd> {
        self.frames.end()
    }

    /// True if identities of the paths in it have been taken after the end.
    pub fn resolved(&self) -> bool {
        self.frames.resolved()
    }

    /// What could not be read. Walks all records at first use.
    pub fn damage(&self) -> Damage {
        let SkippedRecords { torn, unknown } = self.index().skipped;
        Damage {
            torn_records: torn,
            unknown_records: unknown,
            ..self.frames.damage()
        }
    }

    /// Every event, all threads merged in order of time. Memory is bounded by the number of threads and processes, not of events.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.frames, self.index(), self.is_whole())
    }

    /// True if nothing is known to be missing.
    fn is_whole(&self) -> bool {
        self.damage().is_none() && self.end().is_none_or(|e| e.lost == 0)
    }

    /// What the file system said of paths after the end.
    pub fn identities(&self) -> Identities {
        let places = self.frames.idents().iter();
        Identities::read(places.map(|place| self.frames.bytes(place)))
    }

    /// Bytes of the log.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True if it has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn frames(&self) -> &StoredFrames {
        &self.frames
    }

    fn index(&self) -> &LogIndex {
        self.index.get_or_init(|| walk::index(&self.frames))
    }
}
