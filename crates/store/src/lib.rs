//! The store of all runs.
//!
//! In: the graph of one run at a time, through a [`Sink`](backstory_graph::model::Sink), and facts
//! about contents. Out: runs, activities, entities and the edges between them, by id, by path, by
//! identity and by neighbour.
//!
//! ```text
//!              Home                              Store
//!   the directory: logs, ids, locks     GraphStore    runs and their graphs
//!   (opens no database)                 ContentFacts  which version has which content
//!                                       Maintenance   size, removal of unused records
//!                                       RunAnnotations tags, parameters, metrics, checkouts
//!                                       EngineControl the engine's log, time limits
//!                                           │
//!                              ┌────────────┼────────────┐
//!                         SqliteStore  KeyValueStore  MemoryStore
//!                         the default  features lsm,  for tests
//!                              │       redb, postgresql
//!                              └─────┬──────┘
//!                               block_tables
//! ```
//!
//! - [`Home`] is the directory: the logs of runs, their ids, the format number. Opening it is cheap
//!   and opens no database.
//! - [`StoreEngine`] is the engine that a directory names, and [`open_store`] opens it.
//! - [`Store`] is what every engine can do. Its five traits have defaults, so that a new engine
//!   implements the least.
//!
//! Invariant: a run is in a store wholly or not at all, whatever happens while it is appended.
//!
//! Absent on purpose: questions (`backstory-query`), and all knowledge of Linux but that of
//! directories and files.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod annotation_history;
pub mod annotations;
mod appender;
mod block_tables;
mod boxed_store;
mod codec;
mod collected_run;
mod connection_file;
mod content_digest;
mod content_facts;
mod database_files;
mod engine_control;
mod engine_options;
mod engine_panics;
mod error;
pub mod facts;
mod graph_copy;
mod graph_rules;
mod graph_store;
mod home;
#[cfg(feature = "key-value")]
mod key_value;
mod keys;
mod maintenance;
mod memory;
mod opening;
mod order;
mod pending_runs;
mod run_record;
mod shared_file_system;
mod sqlite;
mod store_engine;

pub use annotations::{Annotation, AnnotationKind, RunAnnotations, catch_up_annotations};
pub use appender::{Appender, Body};
pub use collected_run::CollectedRun;
pub use connection_file::ConnectionFile;
pub use content_digest::{combined, digest_of_facts, digest_of_run};
pub use content_facts::{ContentFacts, catch_up};
pub use database_files::DatabaseFiles;
pub use engine_control::{EngineControl, StopQuestion};
pub use engine_options::EngineOptions;
pub use engine_panics::damaged_by_panic;
pub use error::{Error, Result};
pub use graph_copy::copy_run;
pub use graph_rules::broken_rule;
pub use graph_store::{
    GraphStore, Label, ReadGuard, Stream, VersionMatch, may_be_directory, records_newest_first,
    same_version,
};
pub use home::{FORMAT, Home, is_run_id, is_run_name, random_run_id, run_id_of};
#[cfg(feature = "berkeleydb")]
pub use key_value::BerkeleyDbStore;
#[cfg(feature = "key-value")]
pub use key_value::KeyValueStore;
#[cfg(feature = "lsm")]
pub use key_value::LsmStore;
#[cfg(feature = "postgresql")]
pub use key_value::PostgresqlStore;
#[cfg(feature = "redb")]
pub use key_value::RedbStore;
#[cfg(feature = "rocksdb")]
pub use key_value::RocksDbStore;
pub use keys::{ActivityKey, EntityKey, RunKey};
pub use maintenance::Maintenance;
pub use memory::MemoryStore;
pub use opening::{examine, open_engine, open_examined, open_store};
pub use order::newest_first;
pub use run_record::{Counts, RunRecord, StoreStats};
pub use shared_file_system::on_shared_file_system;
pub use sqlite::SqliteStore;
pub use store_engine::StoreEngine;

/// Everything that a store can do. Each type that has the five traits is a store.
pub trait Store: GraphStore + ContentFacts + Maintenance + RunAnnotations + EngineControl {}

impl<S: GraphStore + ContentFacts + Maintenance + RunAnnotations + EngineControl> Store for S {}
