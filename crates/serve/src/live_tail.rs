//! Follows the log of a run in progress. In: a growing file. Out: how many operations it has, and
//! how fast it grows.
//!
//! The supervisor moves full chunks into the log, so that the newest operations of each thread are
//! not in it yet.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use backstory_eventlog::frame::{self, LogPiece};
use backstory_eventlog::tally::RecordTally;

/// The most bytes that are read at a time.
const MOST: usize = 16 << 20;

/// The counts of one log, as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailCounts {
    /// Bytes of the log.
    pub bytes: u64,
    /// Operations in it.
    pub records: u64,
    /// Bytes that are added in a second.
    pub bytes_per_second: f64,
    /// Operations that are added in a second.
    pub records_per_second: f64,
}

/// The logs that are followed, by their runs.
#[derive(Default)]
pub struct LiveTails {
    tails: HashMap<String, LiveTail>,
}

struct LiveTail {
    /// Where the next frame begins.
    at: u64,
    tally: RecordTally,
    bytes: u64,
    read: Instant,
    rates: (f64, f64),
}

impl LiveTails {
    /// Reads what was added to a log.
    pub fn follow(&mut self, run: &str, part: &Path) -> Option<TailCounts> {
        let tail = self
            .tails
            .entry(run.to_owned())
            .or_insert_with(LiveTail::new);
        tail.read_on(part).ok()?;
        Some(TailCounts {
            bytes: tail.bytes,
            records: tail.tally.records(),
            bytes_per_second: tail.rates.0,
            records_per_second: tail.rates.1,
        })
    }

    /// Forgets the runs that are not in progress any more.
    pub fn keep(&mut self, running: impl Fn(&str) -> bool) {
        self.tails.retain(|run, _| running(run));
    }
}

impl LiveTail {
    fn new() -> LiveTail {
        LiveTail {
            at: 0,
            tally: RecordTally::default(),
            bytes: 0,
            read: Instant::now(),
            rates: (0.0, 0.0),
        }
    }

    fn read_on(&mut self, part: &Path) -> io::Result<()> {
        let file = File::open(part)?;
        let before = (self.bytes, self.tally.records());
        self.bytes = file.metadata()?.len();
        let mut bytes = vec![0; MOST.min(self.bytes.saturating_sub(self.at) as usize)];
        let read = file.read_at(&mut bytes, self.at)?;
        bytes.truncate(read);
        let mut end = 0;
        for piece in frame::walk(&bytes) {
            // Bytes that are no frame yet may be the beginning of one.
            let LogPiece::Frame(frame) = piece else {
                continue;
            };
            end = frame.payload.end;
            if let Some(kind) = frame.kind {
                self.tally.add(kind, &bytes[frame.payload]);
            }
        }
        // Damage of more than a piece is skipped.
        let skipped = if end == 0 && read == MOST { read } else { end };
        self.at += skipped as u64;
        let since = self.read.elapsed().as_secs_f64();
        if since > 0.05 {
            let rate = |now: u64, then: u64| (now.saturating_sub(then)) as f64 / since;
            self.rates = match before {
                (0, 0) => (0.0, 0.0),
                (bytes, records) => (rate(self.bytes, bytes), rate(self.tally.records(), records)),
            };
            self.read = Instant::now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_whose_chunks_came_in_pieces_has_as_many_operations_as_the_whole_one() {
        let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/logs/1");
        let count = |name: &str| {
            let followed = LiveTails::default().follow("run", &logs.join(name));
            followed.unwrap().records
        };
        assert!(count("pipeline.log") > 0);
        assert_eq!(count("continued.log"), count("pipeline.log"));
    }
}
