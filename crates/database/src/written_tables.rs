//! The tables that a statement changes, where no commit tells which rows changed.
//!
//! In: the names in the statement, the catalog, and the tables that the server opened for it, if
//! its log tells. Out: tables, and whether each is certainly a target of the statement. An update
//! that finds no row has its target, too.
//!
//! Invariant: what a view of several tables, a function, a trigger or a foreign key changes is
//! possible.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, TableName};
use crate::logged_transaction::ExecutedStatement;
use crate::sql_dialect::WrittenName;

/// The tables that a statement changes, and whether each is certainly its target. A table that it
/// makes is not among them.
pub(crate) fn written_tables(
    statement: &ExecutedStatement,
    catalog: &Catalog,
) -> BTreeMap<TableName, bool> {
    let mut found = BTreeMap::new();
    let mut possible: BTreeSet<WrittenName> = statement.opened_to_write.iter().cloned().collect();
    if let Ok(tables) = &statement.tables {
        for name in tables.writes.difference(&tables.created) {
            for (table, sure) in behind(name, statement, catalog) {
                *found.entry(table).or_default() |= sure;
            }
            let view = catalog.resolve(name, &statement.path);
            possible.extend(
                view.iter()
                    .flat_map(|view| catalog.routines.writes_of_triggers(view)),
            );
        }
        let called = catalog.routines.tables_of_calls(&tables.functions);
        possible.extend(called.writes);
    } else {
        possible.extend(catalog.routines.tables_of_text(&statement.text).writes);
    }
    let mut open: Vec<TableName> = found.keys().cloned().collect();
    open.extend(new_tables(possible, statement, catalog, &mut found));
    while let Some(table) = open.pop() {
        let fired = catalog.routines.writes_of_triggers(&table);
        open.extend(new_tables(fired, statement, catalog, &mut found));
    }
    found
}

/// Adds the tables behind names, as possibly changed. Returns those that are new.
fn new_tables(
    names: BTreeSet<WrittenName>,
    statement: &ExecutedStatement,
    catalog: &Catalog,
    found: &mut BTreeMap<TableName, bool>,
) -> Vec<TableName> {
    let tables = names
        .iter()
        .flat_map(|name| behind(name, statement, catalog));
    let mut new = Vec::new();
    for (table, _) in tables {
        found.entry(table.clone()).or_insert_with(|| {
            new.push(table);
            false
        });
    }
    new
}

/// The tables behind a name, and whether a change of it certainly changes the table. A trigger may
/// take the place of a change of a view.
fn behind(
    name: &WrittenName,
    statement: &ExecutedStatement,
    catalog: &Catalog,
) -> Vec<(TableName, bool)> {
    let Some(named) = catalog.resolve_at(name, &statement.path, statement.time) else {
        return Vec::new();
    };
    let tables = catalog.behind(&named);
    let is_plain = tables.contains(&named) || !catalog.routines.may_change(&named);
    let sure = tables.len() == 1 && is_plain;
    tables.into_iter().map(|table| (table, sure)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogTable;
    use crate::routines::{RoutineBody, Routines};
    use crate::sql_dialect::SqlDialect;
    use crate::statement_tables::StatementTables;

    fn name(table: &str) -> TableName {
        ("public".to_owned(), table.to_owned())
    }

    /// The tables `a`, `b`, `c` and `journal`, a view `v` of two of them and `w` of one, and a
    /// function `f`. A change of `c` fires a trigger.
    fn catalog() -> Catalog {
        let mut routines = Routines::default();
        let body = "UPDATE b SET x = 1".to_owned();
        routines.add(name("f"), RoutineBody::Plain(body));
        let body = "BEGIN INSERT INTO journal VALUES (1); END";
        routines.add(name("fired"), RoutineBody::Branching(body.to_owned()));
        routines.add_trigger(name("c"), name("fired"));
        let mut catalog = Catalog::new(routines, true);
        for table in ["a", "b", "c", "journal", "v", "w"] {
            catalog.add(name(table), CatalogTable::default());
        }
        catalog.add_part(name("v"), name("a"));
        catalog.add_part(name("v"), name("b"));
        catalog.add_part(name("w"), name("a"));
        catalog
    }

    fn written(text: &str, opened: &[&str]) -> Vec<(String, bool)> {
        let statement = ExecutedStatement {
            opened_to_write: opened.iter().map(|one| vec![(*one).to_owned()]).collect(),
            ..ExecutedStatement::new(
                text.to_owned(),
                StatementTables::of(text, SqlDialect::Postgres),
                vec!["public".to_owned()],
            )
        };
        let found = written_tables(&statement, &catalog()).into_iter();
        found.map(|((_, table), sure)| (table, sure)).collect()
    }

    fn of(table: &str, sure: bool) -> (String, bool) {
        (table.to_owned(), sure)
    }

    #[test]
    fn a_statement_changes_its_targets_and_a_new_table_is_none() {
        for text in [
            "INSERT INTO a VALUES (1)",
            "UPDATE a SET x = 1 WHERE id = 7",
            "INSERT INTO a SELECT x FROM b",
            "DELETE FROM w",
        ] {
            assert_eq!(written(text, &[]), [of("a", true)], "{text}");
        }
        assert_eq!(written("SELECT x FROM a", &[]), []);
        assert_eq!(written("CREATE TABLE a (x int)", &[]), []);
    }

    #[test]
    fn views_functions_and_triggers_lead_to_tables_that_possibly_change() {
        let both = [of("a", false), of("b", false)];
        assert_eq!(written("INSERT INTO v VALUES (1)", &[]), both);
        assert_eq!(written("SELECT f()", &[]), [of("b", false)]);
        let fired = [of("c", true), of("journal", false)];
        assert_eq!(written("INSERT INTO c VALUES (1)", &[]), fired);
    }

    #[test]
    fn a_table_that_the_server_opened_to_be_changed_possibly_changes() {
        assert_eq!(written("SELEC 1", &["a"]), [of("a", false)]);
    }

    #[test]
    fn a_statement_that_does_not_parse_possibly_changes_the_tables_that_it_names() {
        let block = "DO $$ BEGIN INSERT INTO a SELECT x FROM b; PERFORM f(); END $$";
        assert_eq!(written(block, &[]), [of("a", false), of("b", false)]);
    }
}
