//! The words of a watch: what it records, its priority, and its reports.

use backstory_vocabulary::RowsMode;

/// The parts of a database that a watch records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchScope {
    /// Whether the rows that transactions changed are recorded, too.
    pub rows: RowsMode,
    /// The most bytes that the server may keep for the stream of row changes. Then the stream ends.
    pub most_kept: u64,
}

/// The priority with which a watch works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchRank {
    /// The log is read by a thread of its own. All else is done while no other process wants to
    /// run, as long as it does not wait too long.
    Background,
    /// Times depend on when the log and the stream are read, so nothing can wait.
    Ordinary,
}

/// Reports of a watch to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchNews {
    /// The database is recorded from now on.
    Watching,
    /// The server ended the connection, and the watch with it.
    ServerGone(String),
}
