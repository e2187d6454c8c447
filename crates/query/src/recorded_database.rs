//! The transactions and tables that a watch of a database recorded, in short.

use std::collections::BTreeSet;

use backstory_eventlog::event::UNNUMBERED;
use backstory_eventlog::run::RunHeader;
use backstory_graph::model::{Activity, Entity, EntityKind};

use crate::resources::{is_of_server, qualified_table};

/// The record of a watched database, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDatabase {
    /// The number of transactions, those included that changed nothing.
    pub transactions: usize,
    /// The tables that transactions changed, or possibly changed: `SCHEMA.TABLE`.
    pub changed_tables: BTreeSet<String>,
}

/// The record of a run's database. `None` if the run did not watch one.
pub(crate) fn recorded_database(
    header: &RunHeader,
    activities: &[Activity],
    entities: &[Entity],
) -> Option<RecordedDatabase> {
    // Only the watch of a database has this option.
    header.modes.rows?;
    let is_transaction = |one: &&Activity| {
        let what = one.argv.first();
        one.pid >= UNNUMBERED && what.is_some_and(|what| what.starts_with(b"transaction "))
    };
    // Version 0 is the table before its first change in the run. A row has `?` behind its table.
    let is_changed = |one: &&Entity| {
        one.kind == EntityKind::Resource
            && one.version > 0
            && is_of_server(&one.path)
            && !one.path.contains(&b'?')
    };
    let changed = entities.iter().filter(is_changed);
    Some(RecordedDatabase {
        transactions: activities.iter().filter(is_transaction).count(),
        changed_tables: changed
            .filter_map(|one| qualified_table(&one.path))
            .collect(),
    })
}
