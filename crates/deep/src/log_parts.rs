//! How many bytes of a deep log are heads, paths, input and so on, before compression.
//!
//! In: the chunks of a log, with any damage. Out: a number of bytes for each [`LogPart`].
//! Invariant: the parts sum to [`crate::Volume::records`]. Each chunk is decompressed once.

use crate::call_numbers as nr;
use crate::log::{ChunkPlace, DeepLog};
use crate::record_sizes::{RecordSizes, arena_sizes, compact_sizes};
use crate::writer::COMPACT;
use backstory_abi::deep;
use std::ops::AddAssign;

/// A part of a deep log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPart {
    /// State, flags and call number of each record, heads and number of its sections, padding.
    Heads,
    /// Descriptor, result and two other arguments of each call.
    Arguments,
    /// Time and duration of each call, results of calls for the time, and facts of exact time.
    Time,
    /// Paths of calls and descriptors, and targets of symbolic links.
    Paths,
    /// Identities of descriptors, and results of `stat` and its like.
    Identities,
    /// Entries of directories.
    Listings,
    /// Arguments of programs.
    Words,
    /// Environment variables of programs.
    Variables,
    /// The rest of the records with which programs, processes and threads begin.
    Beginnings,
    /// Bytes that were read.
    Input,
    /// References to files in the place of bytes that were read.
    References,
    /// Bytes that were written.
    Output,
    /// Digests in the place of bytes that were written.
    Digests,
    /// Beginnings and ends of signal handlers, and results of waits for signals.
    Signals,
    /// Results of `poll`, `select`, `epoll_wait` and their like.
    Waits,
    /// Socket addresses, control messages and flags of messages.
    Messages,
    /// Everything else that calls passed or got.
    Others,
    /// Ends of chunks, and bytes that no reader can use.
    Rest,
}

impl LogPart {
    /// All parts, in the order of a table, with their names there.
    pub const ALL: [(LogPart, &'static str); 18] = [
        (LogPart::Heads, "heads of records"),
        (LogPart::Arguments, "arguments and results"),
        (LogPart::Time, "time"),
        (LogPart::Paths, "paths"),
        (LogPart::Identities, "identities and `stat`"),
        (LogPart::Listings, "directory listings"),
        (LogPart::Words, "program start: arguments"),
        (LogPart::Variables, "program start: variables"),
        (LogPart::Beginnings, "program start: the rest"),
        (LogPart::Input, "input: bytes"),
        (LogPart::References, "input: references"),
        (LogPart::Output, "output: bytes"),
        (LogPart::Digests, "output: digests"),
        (LogPart::Signals, "signals"),
        (LogPart::Waits, "results of waits"),
        (LogPart::Messages, "addresses and messages"),
        (LogPart::Others, "other results"),
        (LogPart::Rest, "ends of chunks"),
    ];

    /// The part that the numbers of a fact belong to. `None`: they are split as those of a call.
    fn of_fact(number: u16) -> Option<LogPart> {
        match number {
            deep::BEGIN => Some(LogPart::Beginnings),
            deep::SIGNAL | deep::SIGNAL_END => Some(LogPart::Signals),
            deep::CLOCK
            | deep::PROCESSOR
            | deep::UNTIMED
            | deep::COUNTER
            | deep::CPUID
            | deep::UNCOUNTED => Some(LogPart::Time),
            _ => None,
        }
    }

    /// The part that a section belongs to, by its call, kind and argument.
    fn of_section(number: u16, kind: u16, arg: u16) -> LogPart {
        if let Some(part) = LogPart::of_fact(number) {
            return match (number, kind, arg) {
                (deep::BEGIN, deep::WORDS, 0) => LogPart::Words,
                (deep::BEGIN, deep::WORDS, 1) => LogPart::Variables,
                _ => part,
            };
        }
        match kind {
            deep::PATH => LogPart::Paths,
            deep::IDENT => LogPart::Identities,
            deep::FILE => LogPart::References,
            deep::LEFT_DIGEST => LogPart::Digests,
            deep::LEFT if nr::writes(number) => LogPart::Output,
            deep::ADDRESS | deep::CONTROL | deep::MESSAGE => LogPart::Messages,
            deep::ENTERED => LogPart::of_result(number),
            _ => LogPart::Others,
        }
    }

    /// The part that bytes belong to which the kernel wrote.
    fn of_result(number: u16) -> LogPart {
        let lists: [(&[u16], LogPart); 6] = [
            (nr::STATS, LogPart::Identities),
            (nr::LISTINGS, LogPart::Listings),
            (nr::LINK_READS, LogPart::Paths),
            (nr::TIMES, LogPart::Time),
            (nr::WAITS, LogPart::Waits),
            (&[nr::SIGNAL_WAIT], LogPart::Signals),
        ];
        let known = lists.iter().find(|(calls, _)| calls.contains(&number));
        match known {
            Some((_, part)) => *part,
            None if nr::reads(number) => LogPart::Input,
            None => LogPart::Others,
        }
    }
}

/// Bytes of each part of a deep log before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogParts {
    bytes: [u64; LogPart::ALL.len()],
}

impl AddAssign for LogParts {
    fn add_assign(&mut self, other: LogParts) {
        for (sum, more) in self.bytes.iter_mut().zip(other.bytes) {
            *sum += more;
        }
    }
}

impl LogParts {
    /// The bytes of one part.
    pub fn bytes(&self, part: LogPart) -> u64 {
        self.bytes[part as usize]
    }

    /// The bytes of all parts.
    pub fn all(&self) -> u64 {
        self.bytes.iter().sum()
    }

    fn add(&mut self, part: LogPart, bytes: u64) {
        self.bytes[part as usize] += bytes;
    }

    fn take(&mut self, record: &RecordSizes) {
        if !record.is_whole {
            self.add(LogPart::Rest, record.all);
            return;
        }
        let mut numbers = record.all;
        for &(kind, arg, length) in &record.sections {
            self.add(LogPart::of_section(record.call, kind, arg), length);
            numbers -= length;
        }
        match LogPart::of_fact(record.call) {
            Some(part) => self.add(part, numbers),
            None => {
                self.add(LogPart::Time, record.times);
                self.add(LogPart::Arguments, record.arguments);
                self.add(LogPart::Heads, numbers - record.times - record.arguments);
            }
        }
    }
}

impl DeepLog {
    /// The bytes of the log before compression, by part.
    pub fn parts(&self) -> LogParts {
        let mut parts = LogParts::default();
        for chunk in self.all_chunks() {
            parts += self.chunk_parts(chunk);
        }
        parts
    }

    fn chunk_parts(&self, chunk: &ChunkPlace) -> LogParts {
        let size = self.uncompressed(chunk);
        let mut packed = self.packed_records(chunk).unwrap_or_default();
        // The header of a damaged chunk may claim fewer bytes than the chunk has.
        packed.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        let records = match chunk.head.pad {
            COMPACT => compact_sizes(&packed),
            _ => arena_sizes(&packed),
        };
        let mut parts = LogParts::default();
        for record in &records {
            parts.take(record);
        }
        parts.add(LogPart::Rest, size - parts.all());
        parts
    }
}
