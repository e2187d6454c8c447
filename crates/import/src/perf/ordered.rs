//! The lines of a log, whole and in the order of time.
//!
//! perf prints a call of another processor a little too late, so lines are ordered by their
//! moments. A line goes on in the next ones if a name has newlines.
//!
//! Invariant: at most [`WAITING`] lines wait.

use super::line::{parse, start};
use crate::lines::{LineFile, LogLine};
use crate::{Error, LogFiles};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The lines that wait for earlier ones.
const WAITING: usize = 8_192;
/// The most bytes of a line that goes on: names are shorter.
const LONGEST: usize = 1 << 16;

/// A line that waits: its moment, its number, its text.
type WaitingLine = Reverse<(i64, u64, Vec<u8>)>;

/// Reads the lines of a log.
pub(super) struct OrderedLines {
    file: LineFile,
    /// A line that was read, and belongs to no earlier one.
    next: Option<LogLine>,
    waiting: BinaryHeap<WaitingLine>,
    /// The moment of the last line that was read.
    moment: i64,
    is_at_end: bool,
    /// The last line has no end.
    pub(super) is_cut_off: bool,
    /// Bytes that were read, and not counted yet.
    read: u64,
}

impl OrderedLines {
    pub(super) fn open(files: &LogFiles) -> Result<OrderedLines, Error> {
        Ok(OrderedLines {
            file: LineFile::open(files, 0)?,
            next: None,
            waiting: BinaryHeap::new(),
            moment: 0,
            is_at_end: false,
            is_cut_off: false,
            read: 0,
        })
    }

    /// The next line: its moment, in microseconds since the log began, its number, its text.
    pub(super) fn next(&mut self) -> Result<Option<(i64, u64, Vec<u8>)>, Error> {
        self.fill()?;
        Ok(self.waiting.pop().map(|Reverse(line)| line))
    }

    /// True if [`next`](Self::next) has no line any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_at_end && self.waiting.is_empty()
    }

    /// The bytes that were read since the last call.
    pub(super) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }

    fn raw_line(&mut self) -> Result<Option<LogLine>, Error> {
        if let Some(line) = self.next.take() {
            return Ok(Some(line));
        }
        let mut line = LogLine::default();
        let read = self.file.next(&mut line)?;
        self.read += read;
        Ok((read > 0).then_some(line))
    }

    /// The next line with those that it goes on in.
    fn whole_line(&mut self) -> Result<Option<LogLine>, Error> {
        let Some(mut line) = self.raw_line()? else {
            return Ok(None);
        };
        if start(&line.bytes).is_none() {
            return Ok(Some(line));
        }
        while parse(&line.bytes).is_none() && line.bytes.len() < LONGEST {
            let Some(after) = self.raw_line()? else {
                break;
            };
            if start(&after.bytes).is_some() {
                self.next = Some(after);
                break;
            }
            line.bytes.push(b'\n');
            line.bytes.extend_from_slice(&after.bytes);
            line.is_last |= after.is_last;
        }
        Ok(Some(line))
    }

    fn fill(&mut self) -> Result<(), Error> {
        while !self.is_at_end && self.waiting.len() < WAITING {
            let Some(line) = self.whole_line()? else {
                self.is_at_end = true;
                break;
            };
            self.is_cut_off |= line.is_last;
            if let Some((Some(moment), _)) = start(&line.bytes) {
                self.moment = moment;
            }
            self.waiting
                .push(Reverse((self.moment, line.number, line.bytes)));
        }
        Ok(())
    }
}
