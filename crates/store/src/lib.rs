//! Where all runs live.
//!
//! In: the graph of one run at a time, through [`backstory_graph::model::Sink`]. Out: runs, activities, entities and the edges
//! between them, by identity, by path and by neighbourhood. Knows nothing of Linux beyond the directory it lives in, and
//! nothing of questions: those are `backstory-query`'s.
//!
//! - [`Home`] is the directory: the logs of runs, their ids, the format number. Opening it is cheap and touches no database.
//! - [`Store`] is what every backend can do. [`SqliteStore`] is the default one, [`MemoryStore`] the strict one for tests.
//!
//! Invariant: a run is in a store wholly or not at all, whatever happens while it is appended.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod codec;
mod error;
pub mod facts;
mod home;
mod memory;
mod order;
mod sqlite;

pub use api::{
    ActivityKey, Appender, Body, Counts, EntityKey, Reading, Role, RunKey, RunRecord, Stats, Store,
    Stream, catch_up, same_version,
};
pub use error::{Error, Result};
pub use home::{FORMAT, Home};
pub use memory::MemoryStore;
pub use order::newest_first;
pub use sqlite::SqliteStore;
