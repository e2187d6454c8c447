//! Reads graphs from the tables of an engine. The methods are in the modules of the rows that they
//! read: `activity_rows`, `entity_rows`, `version_rows` and `version_matches`.

use std::cell::RefCell;

use super::BlockTables;
use super::cache::Cache;

/// Reads the graphs of one store.
pub struct GraphReader<'s, T> {
    pub(super) tables: &'s T,
}

impl<'s, T: BlockTables> GraphReader<'s, T> {
    /// Reads from these tables.
    pub fn new(tables: &'s T) -> Self {
        GraphReader { tables }
    }

    pub(super) fn cache(&self) -> &'s RefCell<Cache> {
        self.tables.cache()
    }
}
