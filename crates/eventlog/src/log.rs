//! Reads a log, whatever state a crash left it in.
//!
//! Invariant: a log cut at any byte opens, and so does one with garbage anywhere in it. Every
//! undamaged frame is read, and [`Log::damage`] reports the rest. Only a file without any frame, or
//! of a later format, is refused.

use crate::chunk::SkippedRecords;
use crate::error::Error;
use crate::event::Event;
use crate::identities::Identities;
use crate::index::LogIndex;
use crate::map::MappedFile;
use crate::merge::Events;
use crate::noted::NotedRecords;
use crate::prefix::{Patience, Prefix};
use crate::run::{RunEnd, RunHeader};
use crate::stored_frames::{self, StoredFrames};
use crate::walk;
use std::path::Path;
use std::sync::OnceLock;

pub use crate::stored_frames::Damage;

/// An open log, with its content at the time of opening.
#[derive(Debug)]
pub struct Log {
    frames: StoredFrames,
    index: OnceLock<(LogIndex, NotedRecords)>,
    /// The pieces that an earlier state of a log that grows had.
    noted: NotedRecords,
}

impl Log {
    /// Opens a log: finalized, still growing, cut off or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Log, Error> {
        Ok(Log {
            frames: StoredFrames::open(path)?,
            index: OnceLock::new(),
            noted: NotedRecords::none(),
        })
    }

    /// Opens a log that grows, to read it again later with [`Log::later`].
    pub fn growing(path: impl AsRef<Path>) -> Result<Log, Error> {
        let noted = NotedRecords::default();
        Ok(Log {
            noted,
            ..Log::open(path)?
        })
    }

    /// The same log at a later time. Only what was appended since is read and indexed.
    pub fn later(self, path: impl AsRef<Path>) -> Result<Log, Error> {
        let noted = match self.index.into_inner() {
            Some((_, noted)) => noted,
            None => self.noted,
        };
        Ok(Log {
            frames: StoredFrames::later(self.frames, path)?,
            index: OnceLock::new(),
            noted,
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

    /// The events behind those that an earlier state of the same file had. Also the results of
    /// waits among the earlier ones that have come since. `None` if the earlier events are others
    /// now.
    pub fn events_behind(
        &self,
        prefix: &Prefix,
        patience: Patience,
    ) -> Option<(Events<'_>, Vec<Event>)> {
        let mut events = self.events();
        let returned = events.go_behind(prefix, patience)?;
        Some((events, returned))
    }

    /// Every event, for a reader that goes on later with [`Log::events_behind`].
    pub fn tracked_events(&self, patience: Patience) -> Events<'_> {
        let mut events = self.events();
        // Nothing is before the first event.
        events.go_behind(&Prefix::default(), patience);
        events
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

    fn index(&self) -> &LogIndex {
        let (index, _) = (self.index).get_or_init(|| walk::index(&self.frames, &self.noted));
        index
    }
}
