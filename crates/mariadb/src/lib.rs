//! Records the statements and row changes of a MariaDB database.
//!
//! In: a server of this machine with a binlog of rows and the plug-in `server_audit`. Out: a run.
//! Its activities are sessions and, inside them, transactions. Its entities are tables and row
//! versions, named `mariadb://HOST:PORT/DATABASE/TABLE` and `…?KEY=VALUE`.
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
mod binlog_event;
mod binlog_stream;
mod byte_reader;
mod calendar;
mod catalog_reader;
mod client_finder;
mod commit_matching;
mod compression;
mod connection;
mod connection_target;
mod database_watch;
mod error;
mod packed_row;
mod reconnection;
mod row_groups;
mod row_value;
mod server_settings;
mod statement_text;

pub use connection_target::ConnectionTarget;
pub use database_watch::{WatchNews, watch};
pub use error::Error;
