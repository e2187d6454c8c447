//! The records of a log: from the script's text to lines of strace, in the order of time.
//!
//! A record begins with the byte 0x1e and ends with a newline. A string stands between two bytes
//! 0x1f, and has any other byte but NUL. bpftrace writes the records of each processor separately.
//! So records are a little out of order.
//!
//! Invariant: at most [`WAITING`] records wait.

use crate::calls::quoted;
use crate::lines::{LineFile, LogLine};
use crate::strace::CallLines;
use crate::{Error, LogFiles};
use backstory_eventlog::Reason;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The byte before each record.
const RECORD: u8 = 0x1e;
/// The byte around each string.
const STRING: u8 = 0x1f;
/// The records that wait for earlier ones.
const WAITING: usize = 8_192;
/// A string of this length is cut: bpftrace prints at most 199 bytes, or 63 without its option.
const CUT: [usize; 2] = [63, 199];
/// The record before all others.
const HEADER: &[u8] = b"backstory 1";
/// The text before the name of a call.
const PROBE: &[u8] = b"tracepoint:syscalls:sys_exit_";

/// A record that waits: its time, its position, its line.
type WaitingRecord = Reverse<(u64, u64, Vec<u8>)>;

/// Reads the records of a log.
pub(super) struct RecordSource {
    file: LineFile,
    waiting: BinaryHeap<WaitingRecord>,
    /// Events that bpftrace could not write.
    lost: u64,
    is_at_end: bool,
    is_cut_off: bool,
    /// Bytes that were read, and not counted yet.
    read: u64,
}

impl RecordSource {
    pub(super) fn open(files: &LogFiles) -> Result<RecordSource, Error> {
        Ok(RecordSource {
            file: LineFile::open(files, 0)?.ended_by(RECORD),
            waiting: BinaryHeap::new(),
            lost: 0,
            is_at_end: false,
            is_cut_off: false,
            read: 0,
        })
    }

    /// Passes over the first record. True if it is that of the script.
    pub(super) fn has_header(&mut self) -> Result<bool, Error> {
        let mut line = LogLine::default();
        // bpftrace prints lines of its own before the first record.
        self.read += self.file.next(&mut line)?;
        self.read += self.file.next(&mut line)?;
        Ok(line
            .bytes
            .strip_prefix(HEADER)
            .is_some_and(<[u8]>::is_ascii))
    }

    fn fill(&mut self) -> Result<(), Error> {
        let mut record = LogLine::default();
        while !self.is_at_end && self.waiting.len() < WAITING {
            let read = self.file.next(&mut record)?;
            self.read += read;
            if read == 0 {
                self.is_at_end = true;
                break;
            }
            let mut bytes = std::mem::take(&mut record.bytes);
            self.lost += without_messages(&mut bytes);
            // The last record ends with its newline, too, unless the log was cut.
            self.is_cut_off |= record.is_last && bytes.last() != Some(&b'\n');
            let line = line(&bytes);
            self.waiting
                .push(Reverse((time(&line), record.number, line)));
        }
        Ok(())
    }
}

impl CallLines for RecordSource {
    fn next(&mut self, line: &mut LogLine) -> Result<u64, Error> {
        self.fill()?;
        let Some(Reverse((_, number, bytes))) = self.waiting.pop() else {
            return Ok(0);
        };
        let is_last = self.is_cut_off && self.is_at_end && self.waiting.is_empty();
        *line = LogLine {
            bytes,
            number,
            is_last,
            ..LogLine::default()
        };
        Ok(std::mem::take(&mut self.read).max(1))
    }

    fn gaps(&self) -> Vec<Reason> {
        let lost = |lost: u64| Reason::ImportGap {
            what: format!("bpftrace lost {lost} events (BPFTRACE_PERF_RB_PAGES)"),
        };
        (self.lost > 0)
            .then(|| lost(self.lost))
            .into_iter()
            .collect()
    }
}

/// Cuts bpftrace's own messages off, which stand after a record. Returns the events that they say
/// are lost.
fn without_messages(bytes: &mut Vec<u8>) -> u64 {
    let mut outside = true;
    let end = bytes.iter().position(|byte| {
        outside ^= *byte == STRING;
        outside && *byte == b'\n'
    });
    let Some(end) = end else {
        return 0;
    };
    let text = String::from_utf8_lossy(&bytes[end..]).into_owned();
    bytes.truncate(end + 1);
    let lost = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("Lost ")?.strip_suffix(" events")?;
        rest.parse::<u64>().ok()
    });
    lost.fold(0, u64::saturating_add)
}

/// The line of strace that says the same.
fn line(record: &[u8]) -> Vec<u8> {
    let record = record.trim_ascii_end();
    let mut line = Vec::with_capacity(record.len() + 16);
    for (at, part) in record.split(|byte| *byte == STRING).enumerate() {
        if at % 2 == 0 {
            without_probe(&mut line, part);
            continue;
        }
        line.extend(quoted(part));
        if CUT.contains(&part.len()) {
            line.extend(b"...");
        }
    }
    line
}

/// Appends a text without the name of its probe before the name of the call.
fn without_probe(line: &mut Vec<u8>, part: &[u8]) {
    match memchr::memmem::find(part, PROBE) {
        Some(at) => {
            line.extend_from_slice(&part[..at]);
            line.extend_from_slice(&part[at + PROBE.len()..]);
        }
        None => line.extend_from_slice(part),
    }
}

/// The time of a line in microseconds, which orders it.
fn time(line: &[u8]) -> u64 {
    let word = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).take(18);
    digits.fold(0, |all, digit| all * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_line_of_strace_with_any_bytes_in_its_strings() {
        let record =
            b"7 1.5 tracepoint:syscalls:sys_exit_openat(-100, \x1fa\"\n\xff b\x1f, 0, 0) = 3\n";
        let wanted = b"7 1.5 openat(-100, \"a\\042\\012\\377 b\", 0, 0) = 3";
        assert_eq!(line(record), wanted);
        let long = [&b"7 1.5 chdir(\x1f"[..], &[b'a'; 199], b"\x1f) = 0"].concat();
        assert!(line(&long).ends_with(b"a\"...) = 0"));
    }

    #[test]
    fn lost_events_are_counted_and_a_string_may_say_the_same() {
        let mut record = b"7 1.5 chdir(\x1fx\nLost 9 events\n\x1f) = 0\nLost 4 events\n".to_vec();
        assert_eq!(without_messages(&mut record), 4);
        assert!(record.ends_with(b") = 0\n"));
    }
}
