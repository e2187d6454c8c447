//! Reads a log, whatever state a crash left it in.
//!
//! Invariant: a log cut at any byte opens, and so does one with garbage anywhere in it. Every
//! undamaged frame is read, and [`Log::damage`] reports the rest. Only a file without any frame, or
//! of a later format, is refused.

use crate::births::Births;
use crate::chunk::SkippedRecords;
use crate::error::Error;
use crate::identities::Identities;
use crate::index::LogIndex;
use crate::map::MappedFile;
use crate::merge::Events;
use crate::noted::NotedRecords;
use crate::run::{ClockPoint, RunEnd, RunHeader};
use crate::stored_frames::{self, StoredFrames};
use crate::walk;
use std::path::Path;
use std::sync::OnceLock;

pub use crate::stored_frames::Damage;

/// An open log, with its content at the time of opening.
#[derive(Debug)]
pub struct Log {
    frames: StoredFrames,
    index: OnceLock<LogIndex>,
}

impl Log {
    /// Opens a log: finalized, still growing, cut off or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Log, Error> {
        Ok(Log {
            frames: StoredFrames::open(path)?,
            index: OnceLock::new(),
        })
    }

    /// The header of a log, without the rest of it. Blank if that frame is missing or damaged.
    pub fn header_of(path: impl AsRef<Path>) -> Result<RunHeader, Error> {
        Ok(stored_frames::first_header(
            MappedFile::open(path.as_ref())?.bytes(),
        ))
    }

    /// The facts known before the command started. Blank if that frame is damaged (see
    /// [`Damage::no_header`]).
    pub fn header(&self) -> &RunHeader {
        self.frames.header()
    }

    /// The end of the run. `None` if the log has no end.
    pub fn end(&self) -> Option<&RunEnd> {
        self.frames.end()
    }

    /// The readings of the clocks, in the order in which they were taken.
    pub fn readings(&self) -> &[ClockPoint] {
        self.frames.points()
    }

    /// True if the identities of its paths have been taken after the end.
    pub fn resolved(&self) -> bool {
        self.frames.resolved()
    }

    /// The parts that could not be read. Walks all records at the first call.
    pub fn damage(&self) -> Damage {
        let SkippedRecords { torn, unknown } = self.index().skipped;
        Damage {
            torn_records: torn,
            unknown_records: unknown,
            ..self.frames.damage()
        }
    }

    /// Every event, with all threads merged in order of time. The memory is bounded by the number
    /// of threads and processes, not of events.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.frames, self.index(), self.is_whole())
    }

    /// True if no part is known to be missing.
    fn is_whole(&self) -> bool {
        self.damage().is_none() && self.end().is_none_or(|e| e.lost == 0)
    }

    /// The identities of paths after the end.
    pub fn identities(&self) -> Identities {
        let places = self.frames.idents().iter();
        Identities::read(places.map(|place| self.frames.bytes(place)))
    }

    /// Bytes of the log.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True for a log without any byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn frames(&self) -> &StoredFrames {
        &self.frames
    }

    /// True if a record names a preserved content.
    pub(crate) fn names_preserved(&self) -> bool {
        self.index().names_preserved
    }

    fn index(&self) -> &LogIndex {
        self.index.get_or_init(|| {
            let (index, _) = walk::index(&self.frames, &NotedRecords::none(), Births::default(), 0);
            index
        })
    }
}
