//! The columns of statements that a client repeats.
//!
//! Invariant: an answer is repeated only for the same catalog, while it covers all definitions. The
//! statement must have run after the tables had their columns. The memory is bounded: a full cache
//! is emptied.

use std::collections::HashMap;
use std::sync::Arc;

use super::{StatementColumns, add_possible, named_columns};
use crate::catalog::Catalog;
use crate::definitions::StatementMoment;
use crate::logged_transaction::ExecutedStatement;
use crate::statement_tables::StatementTables;

/// Most statements that are kept.
const MOST: usize = 1024;

/// The columns of statements, by the place of their names in memory.
#[derive(Debug, Default)]
pub(crate) struct ColumnCache {
    /// The number of the catalog.
    version: u64,
    known: HashMap<usize, KnownColumns>,
}

#[derive(Debug)]
struct KnownColumns {
    /// While this is held, no other statement has its place in memory.
    _names: Arc<StatementTables>,
    /// The schemas in which names without a schema were looked for.
    path: Vec<String>,
    columns: Arc<StatementColumns>,
    /// From when on the catalog decides them, in ns since 1970.
    since: i64,
}

impl ColumnCache {
    /// The columns that a statement uses.
    pub(crate) fn columns_of(
        &mut self,
        statement: &ExecutedStatement,
        catalog: &Catalog,
        moment: StatementMoment<'_>,
    ) -> Arc<StatementColumns> {
        let Ok(names) = &statement.tables else {
            let mut columns = StatementColumns::default();
            add_possible(&mut columns, statement, catalog);
            return Arc::new(columns);
        };
        let named = self.named(statement, names, catalog, moment);
        if !catalog.routines.has_effects() {
            return named;
        }
        let mut columns = StatementColumns::clone(&named);
        add_possible(&mut columns, statement, catalog);
        Arc::new(columns)
    }

    /// The columns that the names in a statement mean.
    fn named(
        &mut self,
        statement: &ExecutedStatement,
        names: &Arc<StatementTables>,
        catalog: &Catalog,
        moment: StatementMoment<'_>,
    ) -> Arc<StatementColumns> {
        if self.version != catalog.version() || self.known.len() >= MOST {
            self.known.clear();
            self.version = catalog.version();
        }
        let key = Arc::as_ptr(names) as usize;
        let is_covered = catalog.definitions.is_covered();
        let is_now = |since: i64| is_covered && !moment.is_between && moment.time >= since;
        if let Some(known) = self.known.get(&key)
            && known.path == statement.path
            && is_now(known.since)
        {
            return known.columns.clone();
        }
        let (columns, since) = named_columns(statement, catalog, moment);
        let columns = Arc::new(columns);
        if is_now(since) {
            let known = KnownColumns {
                _names: names.clone(),
                path: statement.path.clone(),
                columns: columns.clone(),
                since,
            };
            self.known.insert(key, known);
        }
        columns
    }
}
