//! The tables that a statement reads, by all that is known.
//!
//! In: the names in the statement, the catalog, and the tables that the server opened for it, if
//! its log tells. Out: tables, and whether each is certainly read.
//!
//! A table that a statement names which does not parse is possibly read.
//!
//! Invariant: where the server tells what it opened, no other table is read. It opens the tables of
//! all branches of a function, so a table that only a routine names is possibly read.

use std::collections::{BTreeMap, BTreeSet};

use backstory_vocabulary::RowsMode;

use crate::catalog::{Catalog, TableName};
use crate::logged_transaction::ExecutedStatement;
use crate::routines::RoutineReads;
use crate::sql_dialect::WrittenName;

/// Schemas of the servers themselves.
const SYSTEM: [&str; 5] = [
    "pg_catalog",
    "information_schema",
    "mysql",
    "performance_schema",
    "sys",
];

/// The tables that a statement reads, and whether it certainly does. The rows that an update reads
/// are recorded with the row. Without rows, it reads the table.
pub(crate) fn read_tables(
    statement: &ExecutedStatement,
    catalog: &Catalog,
    rows: RowsMode,
) -> BTreeMap<TableName, bool> {
    let tables = statement.tables.as_ref().ok();
    let mut reads = RoutineReads::new();
    if let Some(tables) = tables {
        reads = catalog.routines.tables_of_calls(&tables.functions).reads;
        let named = match rows {
            RowsMode::On => &tables.scanned,
            RowsMode::Off => &tables.reads,
        };
        reads.extend(named.iter().map(|name| (name.clone(), true)));
    } else if statement.opened.is_none() {
        reads = catalog.routines.tables_of_text(&statement.text).reads;
    }
    let mut found = resolved(reads, statement, catalog);
    let Some(opened) = &statement.opened else {
        return found;
    };
    let own = |name: &[String]| catalog.resolve(name, &statement.path);
    let read: BTreeSet<TableName> = opened.iter().filter_map(|name| own(name)).collect();
    let writes = tables.into_iter().flat_map(|tables| &tables.writes);
    let written: BTreeSet<TableName> = writes.filter_map(|name| own(name)).collect();
    found.retain(|name, _| read.contains(name) || written.contains(name));
    // Without the names in the statement, a function may be among them.
    let is_direct = match tables {
        Some(tables) => !tables
            .functions
            .iter()
            .any(|name| catalog.routines.has(name)),
        None => catalog.routines.is_empty(),
    };
    let fires = written.iter().any(|name| catalog.routines.may_change(name));
    for name in read.into_iter().filter(|name| !is_system(name)) {
        found.entry(name).or_insert(is_direct && !fires);
    }
    found
}

/// The tables behind the names of a statement: those of views, and those that the functions in
/// views read.
pub(crate) fn resolved(
    reads: RoutineReads,
    statement: &ExecutedStatement,
    catalog: &Catalog,
) -> BTreeMap<TableName, bool> {
    let path = &statement.path;
    // A statement that failed may have come after the drop of its table.
    let time = match &statement.error {
        Some(_) => i64::MAX,
        None => statement.time,
    };
    let mut found = BTreeMap::new();
    for (name, sure) in reads {
        let Some(table) = catalog.resolve_at(&name, path, time) else {
            continue;
        };
        let calls = catalog.calls_behind(&table);
        let called = catalog.routines.tables_of_calls(&calls).reads.into_iter();
        let called = called
            .filter_map(|(name, is_read)| Some((catalog.resolve(&name, path)?, sure && is_read)));
        for (table, sure) in std::iter::once((table, sure)).chain(called) {
            let behind = catalog.behind(&table).into_iter();
            for table in behind.filter(|table| !is_system(table)) {
                *found.entry(table).or_default() |= sure;
            }
        }
    }
    found
}

/// The functions of a statement, also of views in it, that may read any table. A server that tells
/// which tables it opened tells of these, too.
pub(crate) fn unknown_functions(
    statement: &ExecutedStatement,
    catalog: &Catalog,
) -> BTreeSet<WrittenName> {
    let Ok(tables) = &statement.tables else {
        return BTreeSet::new();
    };
    if statement.opened.is_some() {
        return BTreeSet::new();
    }
    let named = tables.reads.iter();
    let views = named.filter_map(|name| catalog.resolve(name, &statement.path));
    let mut calls: BTreeSet<WrittenName> =
        views.flat_map(|view| catalog.calls_behind(&view)).collect();
    calls.extend(tables.functions.iter().cloned());
    catalog.routines.tables_of_calls(&calls).unknown
}

pub(crate) fn is_system((schema, _): &TableName) -> bool {
    SYSTEM.contains(&&**schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogTable;
    use crate::routines::{RoutineBody, Routines};
    use crate::sql_dialect::SqlDialect;
    use crate::statement_tables::StatementTables;
    use std::sync::Arc;

    const DIALECT: SqlDialect = SqlDialect::MariaDb { lower_case: false };

    fn catalog() -> Catalog {
        let mut routines = Routines::new(DIALECT, Arc::default());
        let body = "BEGIN IF x THEN RETURN (SELECT 1 FROM a); END IF; RETURN 2; END";
        routines.add(name("f"), RoutineBody::Branching(body.to_owned()));
        let mut catalog = Catalog::new(routines, false);
        for table in ["a", "b", "c", "v"] {
            catalog.add(name(table), CatalogTable::default());
        }
        catalog
    }

    fn name(table: &str) -> TableName {
        ("bank".to_owned(), table.to_owned())
    }

    fn reads(text: &str, opened: Option<&[&str]>) -> Vec<(String, bool)> {
        reads_with(RowsMode::On, text, opened)
    }

    fn reads_with(rows: RowsMode, text: &str, opened: Option<&[&str]>) -> Vec<(String, bool)> {
        let written = |table: &&str| vec!["bank".to_owned(), (*table).to_owned()];
        let statement = ExecutedStatement {
            opened: opened.map(|opened| opened.iter().map(written).collect()),
            ..ExecutedStatement::new(
                text.to_owned(),
                StatementTables::of(text, DIALECT),
                vec!["bank".to_owned()],
            )
        };
        let found = read_tables(&statement, &catalog(), rows).into_iter();
        found.map(|((_, table), sure)| (table, sure)).collect()
    }

    fn of(table: &str, sure: bool) -> (String, bool) {
        (table.to_owned(), sure)
    }

    #[test]
    fn a_table_that_the_server_did_not_open_is_not_read() {
        assert_eq!(
            reads("SELECT f() FROM b", None),
            [of("a", false), of("b", true)]
        );
        assert_eq!(reads("SELECT f() FROM b", Some(&["b"])), [of("b", true)]);
    }

    #[test]
    fn a_view_that_calls_a_function_reads_the_tables_of_the_function() {
        let mut catalog = catalog();
        catalog.add_part(name("v"), name("b"));
        catalog.add_call(name("v"), name("f"));
        let statement = ExecutedStatement::new(
            "SELECT * FROM v".to_owned(),
            StatementTables::of("SELECT * FROM v", DIALECT),
            vec!["bank".to_owned()],
        );
        let found = read_tables(&statement, &catalog, RowsMode::On);
        assert_eq!(
            found,
            BTreeMap::from([(name("a"), false), (name("b"), true)])
        );
    }

    #[test]
    fn without_rows_an_update_reads_its_table() {
        let update = "UPDATE a SET x = 1 WHERE id = 7";
        assert_eq!(reads_with(RowsMode::Off, update, None), [of("a", true)]);
        assert_eq!(reads_with(RowsMode::On, update, None), []);
    }

    #[test]
    fn an_opened_table_that_no_name_explains_is_certainly_read_unless_a_routine_may_read_it() {
        // The catalog does not know what the view reads.
        assert_eq!(reads("SELECT * FROM v", Some(&["c"])), [of("c", true)]);
        let called = reads("SELECT f() FROM v", Some(&["a", "c"]));
        assert_eq!(called, [of("a", false), of("c", false)]);
        assert_eq!(reads("SELEC 1", Some(&["c"])), [of("c", false)]);
    }

    #[test]
    fn a_statement_that_does_not_parse_possibly_reads_the_tables_that_it_names() {
        let text = "SELEC f() FROM b JOIN nothing";
        assert_eq!(reads(text, None), [of("a", false), of("b", false)]);
        assert_eq!(reads(text, Some(&["b"])), [of("b", false)]);
    }
}
