//! Records the statements and row changes of a MariaDB database.
//!
//! In: a server of this machine with the plug-in `server_audit` and, for rows, a binlog of rows.
//! Out: a run. Its activities are sessions and, inside them, transactions. Its entities are tables
//! and row versions, named `mariadb://HOST:PORT/DATABASE/TABLE` and `…?KEY=VALUE`.
//!
//! ```text
//! audit log ──> audit_file ──> audit_sessions ──┐
//!                                               ├──> commit_matching ──> records ──> arena ──> log
//! binlog ──> binlog_stream ──> row_groups ──────┘
//! ```
//!
//! The log of `server_audit` has the statements with their numbers, and the tables that the server
//! opened for them. The binlog has the rows of each committed transaction, and the number of its
//! first statement. So the two are joined without a guess. Records and clients are those of every
//! database: `backstory-database`.
//!
//! Without rows there is no stream: each transaction of the log is recorded alone.
//!
//! Invariants:
//!
//! - The server never waits for this crate. It is no semi-synchronous replica, and a stream that is
//!   not read ends.
//! - Nothing in the server is changed.
//! - Everything that this crate knows to be missing becomes a reason of the run.
//!
//! Absent: TLS, servers on other machines, whose log cannot be read, and pools of threads.

mod audit_file;
mod audit_line;
mod audit_sessions;
mod audit_unit;
mod binlog_event;
mod binlog_stream;
mod byte_reader;
mod catalog_reader;
mod client_finder;
mod commit_matching;
mod commit_records;
mod compression;
mod connection;
mod connection_text;
mod database_watch;
mod event_reader;
pub mod fuzz_entry;
mod packed_row;
mod reconnection;
mod row_groups;
mod row_value;
mod server_settings;
mod statement_kind;
mod statement_text;
mod text_form;

use backstory_database::connection_target::ConnectionTarget;
use backstory_database::database_watch::{self as frame, WatchNews, WatchScope};
use backstory_database::error::Error;
use backstory_session::{Options, RecordingResult};

pub use connection_text::connection_target;

/// Records a database until SIGINT, SIGTERM or SIGHUP, or until the server is gone. The caller must
/// have one thread.
///
/// # Errors
///
/// The database cannot be watched, or the run's log cannot be made or finalized.
pub fn watch(
    target: &ConnectionTarget,
    scope: WatchScope,
    run: Options,
    news: &mut dyn FnMut(WatchNews),
) -> Result<RecordingResult, Error> {
    frame::watch::<database_watch::MariadbWatch>(target, scope, run, news)
}
