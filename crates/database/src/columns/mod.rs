//! The columns that a statement reads and writes.
//!
//! In: the shape of a statement, the catalog, and the moment at which it ran. Out: columns of
//! tables, and whether each is certain.
//!
//! | question | answer |
//! | --- | --- |
//! | which column a name means | the relations around the name, from the inside to the outside |
//! | which columns `*`, and an insertion without a list, mean | the catalog's |
//! | what a column of a view is | the columns in its expression; those that decide about its rows |
//! | which columns of a query within are read | those that the query around it uses |
//! | which columns an insertion, or an update, writes | those to which it gives a value |
//!
//! Invariant: a name that cannot be resolved is kept as it is written. A column that only the
//! catalog tells is certain if the table had its columns at that moment ([`crate::definitions`]).

mod bound_names;
pub(crate) mod cache;
mod change_reader;
mod change_resolver;
mod name_reader;
mod relation_resolver;
mod relations;
mod resolver;
pub(crate) mod shape;
pub(crate) mod shape_reader;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use backstory_vocabulary::RowsMode;
use serde_json::{Map, Value};

use crate::catalog::{Catalog, TableName};
use crate::definitions::StatementMoment;
use crate::logged_transaction::ExecutedStatement;
use crate::read_tables::{read_tables, resolved};
use crate::sql_dialect::WrittenName;
use crate::written_tables::written_tables;
use resolver::Resolver;

pub use shape::StatementShape;

/// All columns of a table, or any of them.
const ANY: &str = "*";

/// A column that a statement uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedColumn {
    /// A column of a table. `*`: any.
    Of(TableName, String),
    /// A name that cannot be resolved.
    Unresolved(String),
}

/// Columns, and whether each is certainly used.
pub type ColumnUses = BTreeMap<UsedColumn, bool>;

/// The columns that a statement uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementColumns {
    /// The columns that it reads.
    pub read: ColumnUses,
    /// The columns that it writes.
    pub written: ColumnUses,
}

impl StatementColumns {
    /// Adds the columns of another statement, which was executed if `did_read`, and whose changes
    /// were not undone if `wrote`.
    pub(crate) fn add(&mut self, other: &StatementColumns, did_read: bool, wrote: bool) {
        add(&mut self.read, &other.read, did_read);
        if wrote {
            add(&mut self.written, &other.written, true);
        }
    }

    /// The columns as JSON: `read`, `written`, `possibly_read`, `possibly_written` and
    /// `unresolved`. Those that are empty are left out. `did_read`: the statement was executed.
    /// `wrote`: whether its changes were certainly committed. `None`: they were not.
    pub(crate) fn json(&self, did_read: bool, wrote: Option<bool>) -> Value {
        let mut fact: Map<String, Value> = Map::new();
        let reads = self.read.iter();
        let reads = reads.map(|(used, sure)| (used, *sure && did_read, false));
        let writes = self.written.iter().filter(|_| wrote.is_some());
        let writes = writes.map(|(used, sure)| (used, *sure && wrote == Some(true), true));
        for (used, sure, is_write) in reads.chain(writes) {
            let list = match (used, sure, is_write) {
                (UsedColumn::Unresolved(_), ..) => "unresolved",
                (_, true, false) => "read",
                (_, true, true) => "written",
                (_, false, false) => "possibly_read",
                (_, false, true) => "possibly_written",
            };
            let list = fact.entry(list).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                list.push(Value::String(used.name()));
            }
        }
        Value::Object(fact)
    }
}

impl UsedColumn {
    /// `schema.table.column`, or the name as it is written.
    fn name(&self) -> String {
        match self {
            UsedColumn::Of((schema, table), column) => format!("{schema}.{table}.{column}"),
            UsedColumn::Unresolved(name) => name.clone(),
        }
    }
}

/// Adds uses to others. They are certain only if `sure`.
fn add(to: &mut ColumnUses, other: &ColumnUses, sure: bool) {
    for (used, is_certain) in other {
        *to.entry(used.clone()).or_default() |= *is_certain && sure;
    }
}

/// The columns that the names in a statement mean. With them, the moment from which on the catalog
/// decides them for all sessions, in ns since 1970.
fn named_columns(
    statement: &ExecutedStatement,
    catalog: &Catalog,
    moment: StatementMoment<'_>,
) -> (StatementColumns, i64) {
    let mut resolver = Resolver::new(catalog, &statement.path, moment);
    if let Ok(tables) = &statement.tables {
        resolver.statement(&tables.shape);
        let views = tables.reads.iter();
        let views = views.filter_map(|name| catalog.resolve(name, &statement.path));
        let mut calls: BTreeSet<WrittenName> =
            views.flat_map(|view| catalog.calls_behind(&view)).collect();
        calls.extend(tables.functions.iter().cloned());
        for (shape, sure) in catalog.routines.tables_of_calls(&calls).shapes {
            resolver.routine(&shape, sure);
        }
    }
    resolver.end()
}

/// Adds the tables of which a statement possibly uses any column: those of branches in functions,
/// of triggers, and of statements that do not parse.
fn add_possible(columns: &mut StatementColumns, statement: &ExecutedStatement, catalog: &Catalog) {
    let has = |uses: &ColumnUses, table: &TableName| {
        uses.keys()
            .any(|used| matches!(used, UsedColumn::Of(of, _) if of == table))
    };
    let any = |table: TableName| UsedColumn::Of(table, ANY.to_owned());
    let mut reads = read_tables(statement, catalog, RowsMode::Off);
    for (table, sure) in written_tables(statement, catalog) {
        let fired = catalog.routines.reads_of_triggers(&table);
        for (table, sure) in resolved(fired, statement, catalog) {
            reads.entry(table).or_insert(sure);
        }
        if !sure && !has(&columns.written, &table) {
            columns.written.insert(any(table), false);
        }
    }
    for (table, sure) in reads {
        if !sure && !has(&columns.read, &table) {
            columns.read.insert(any(table), false);
        }
    }
}
