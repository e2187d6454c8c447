//! Records the statements and row changes of a PostgreSQL database.
//!
//! In: a server of this machine with a log in JSON or CSV and, for rows, logical decoding. Out: a
//! run. Its activities are sessions and, inside them, transactions. Its entities are tables and row
//! versions, named `postgres://HOST:PORT/DATABASE/SCHEMA.TABLE` and `…?KEY=VALUE`.
//!
//! ```text
//! server log ──> log_file ──> client_lookout ──> line_counter ──> sessions ──┐
//! slot ──> replication ──> row_decoder ──────────────────────────────────────┤
//!                                                                            v
//!                    log <── arena <── transaction_records <── commit_records, matching
//! ```
//!
//! The server's log has the statements, before they run, and who ran them. The replication slot has
//! the rows that each committed transaction changed. `matching` joins the two. Statements, records
//! and clients are those of every database: `backstory-database`.
//!
//! Without rows there is no slot: each transaction of the log is recorded alone, when it has ended.
//!
//! Invariants:
//!
//! - The server never waits for this crate. The slot is temporary: the server drops it as soon as
//!   the connection ends.
//! - The publications break no statement of an application.
//! - Everything that this crate knows to be missing becomes a reason of the run.
//!
//! Absent: TLS, and servers on other machines, whose log cannot be read.

mod backends;
mod catalog_reader;
mod change_makers;
mod client_lookout;
mod column_reader;
mod commit_records;
mod connection;
mod connection_text;
mod csv_records;
mod database_watch;
mod end_mark;
pub mod fuzz_entry;
mod line_counter;
mod log_file;
mod log_line;
mod matching;
mod pinned_columns;
mod replication;
mod row_decoder;
mod search_path;
mod server_settings;
mod sessions;
mod setting_statement;
mod statement_effects;

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
    frame::watch::<database_watch::PostgresWatch>(target, scope, run, news)
}
