//! The parts that the recordings of databases share.
//!
//! In: statements, row changes and clients, as a crate of one database reads them from its server.
//! Out: the records of a run. Its activities are sessions and, inside them, transactions. Its
//! entities are tables and row versions.
//!
//! | topic | modules |
//! | --- | --- |
//! | a watch, from its beginning to its end | `database_watch`, `database_gaps`, `error` |
//! | the server | `connection_target`, `connection_uri`, `channel` |
//! | the names in a statement | `statement_tables`, `statement_depth`, `statement_secrets`, `sql_dialect`, `columns::shape` |
//! | its kind, by its first words | `first_words` |
//! | what the names mean | `catalog`, `view_query`, `definitions`, `routines`, `built_in_functions`, `read_tables`, `written_tables`, `columns` |
//! | the changes of rows that a stream sends | `row_change`, `change_budget` |
//! | the client | `client_process`, `socket_holders`, `socket_diag` |
//! | a log that the server writes | `log_lines`, `log_news`, `log_reader` |
//! | the records | `transaction_records`, `recorded_clients`, `transaction_facts`, `database_records`, `database_names`, `counter_times` |
//!
//! Invariant: nothing here knows a protocol, or asks a server: each server's crate implements
//! [`database_watch::WatchedDatabase`].
//!
//! Absent: how a committed transaction finds its statements, which differs from server to server.

pub mod built_in_functions;
pub mod catalog;
pub mod change_budget;
pub mod channel;
pub mod client_process;
pub mod columns;
pub mod commit;
pub mod connection_target;
pub mod connection_uri;
mod counter_times;
pub mod database_gaps;
pub mod database_names;
pub mod database_records;
pub mod database_watch;
pub mod definitions;
pub mod error;
pub mod first_words;
pub mod hidden_work;
pub mod log_lines;
pub mod log_news;
pub mod log_reader;
pub mod logged_transaction;
pub mod percent;
pub mod possible_changes;
mod read_tables;
mod recorded_clients;
pub mod routines;
pub mod row_change;
pub mod socket_diag;
mod socket_holders;
pub mod sql_dialect;
pub mod statement_cache;
mod statement_depth;
pub mod statement_secrets;
pub mod statement_tables;
pub mod transaction_facts;
pub mod transaction_records;
pub mod view_query;
mod written_tables;
