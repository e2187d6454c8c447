//! Records the statements and row changes of a PostgreSQL database.
//!
//! In: a server of this machine with logical decoding and a log in JSON. Out: a run. Its activities
//! are sessions and, inside them, transactions. Its entities are tables and row versions, named
//! `postgres://HOST:PORT/DATABASE/SCHEMA.TABLE` and `…?KEY=VALUE`.
//!
//! ```text
//! server log ──> log_file ──> sessions ──┐
//!                                        ├──> matching ──> transaction_records ──> arena ──> log
//! slot ──> replication ──> row_decoder ──┘
//! ```
//!
//! The server's log has the statements, before they run, and who ran them. The replication slot has
//! the rows that each committed transaction changed. `matching` joins the two. Statements, records
//! and clients are those of every database: `backstory-database`.
//!
//! Invariants:
//!
//! - The server never waits for this crate. The slot is temporary: the server drops it as soon as
//!   the connection ends.
//! - The publications break no statement of an application.
//! - Everything that this crate knows to be missing becomes a reason of the run.
//!
//! Absent: TLS, and servers on other machines, whose log cannot be read.

mod catalog_reader;
mod connection;
mod connection_target;
mod database_watch;
mod error;
mod log_file;
mod log_line;
mod matching;
mod pinned_columns;
mod replication;
mod row_decoder;
mod server_settings;
mod sessions;

pub use connection_target::ConnectionTarget;
pub use database_watch::{WatchNews, watch};
pub use error::Error;
