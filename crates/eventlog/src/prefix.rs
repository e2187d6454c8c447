//! The part of a growing log that was read, and how long its reader waits for late records.
//!
//! [`crate::resumed`] reads on behind it.

use std::collections::BTreeSet;
use std::time::Duration;

/// How long the reader of a growing log waits until it takes an event as final. If an event changes
/// later, everything is read again.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Records that are younger than this may be followed by others that are older.
    pub late: Duration,
    /// A call that has not returned for so long is taken for one that does not return.
    pub lasting: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            late: Duration::from_millis(200),
            lasting: Duration::from_secs(2),
        }
    }
}

/// The records of a log that were read. By default none.
#[derive(Debug, Clone, Default)]
pub struct Prefix {
    pub(crate) mark: Mark,
    /// The numbers of the records of waits that had not returned.
    pub(crate) waits: BTreeSet<u64>,
}

/// A place in the order of the events of one log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub(crate) records: u64,
    pub(crate) digest: u64,
}

/// The state of a reader that may read on later.
#[derive(Debug)]
pub(crate) struct Tracking {
    pub(crate) mark: Mark,
    /// The waits in the records so far that had not returned when they were first read.
    pub(crate) waits: BTreeSet<u64>,
    /// The counter of the log's newest record.
    pub(crate) newest: u64,
    /// Both of the reader's patience, as counts.
    pub(crate) late: u64,
    pub(crate) lasting: u64,
    pub(crate) is_settled: bool,
}
