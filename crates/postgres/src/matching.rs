//! Which logged transaction a committed one is.
//!
//! The replication stream has the number of a transaction, and no session. The log has the session,
//! and the number only on lines that the server writes after the transaction's first change. A
//! transaction of several statements has such a line, a single statement has none, unless
//! `auto_explain` writes one. Then the time, the changed tables and the changed rows decide. If
//! several transactions fit, the answer has them all.

use std::collections::BTreeSet;

use backstory_database::catalog::{Catalog, TableName};
use backstory_database::commit::Commit;
use backstory_database::hidden_work::HiddenWork;
use backstory_database::logged_transaction::{ExecutedStatement, LoggedTransaction};
use backstory_database::sql_dialect::WrittenName;

use crate::sessions::SessionTable;
use crate::statement_effects::{StatementEffects, StatementFit};

/// The log's times have a resolution of a millisecond, and are taken before the commit's.
const SLACK: i64 = 2_000_000;

/// The logged transactions that a committed one can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransactionMatch {
    /// It is this one, because a line of the log has its number.
    Number(u64),
    /// It is this one: no other fits.
    Time(u64),
    /// It is one of these.
    Several(Vec<u64>),
    /// The log has none that fits.
    Unknown,
}

/// Finds the logged transactions that a committed one can be.
pub(crate) fn matching(
    table: &SessionTable,
    catalog: &Catalog,
    commit: &Commit<'_>,
) -> TransactionMatch {
    let changed = &commit.changed();
    let numbered = table
        .transactions
        .iter()
        .find(|(_, one)| one.id.as_ref() == Some(&commit.number));
    if let Some((key, _)) = numbered {
        return TransactionMatch::Number(*key);
    }
    let mut fitting: Vec<u64> = table
        .transactions
        .iter()
        .filter(|(_, one)| one.id.is_none() && overlaps(one, commit.time))
        .filter(|(_, one)| may_change(one, catalog, changed))
        .map(|(key, _)| *key)
        .collect();
    if fitting.len() > 1 {
        fitting.retain(|key| {
            let one = table.transactions.get(key);
            one.is_some_and(|one| can_make(one, catalog, commit))
        });
    }
    fitting.sort_unstable();
    match fitting[..] {
        [] => TransactionMatch::Unknown,
        [only] => TransactionMatch::Time(only),
        _ => TransactionMatch::Several(fitting),
    }
}

fn overlaps(one: &LoggedTransaction, time: i64) -> bool {
    one.began <= time + SLACK && one.ended.is_none_or(|(end, _)| end + SLACK >= time)
}

/// True if the statements of a transaction can have changed rows of one of these tables.
fn may_change(one: &LoggedTransaction, catalog: &Catalog, changed: &BTreeSet<TableName>) -> bool {
    let mut named = BTreeSet::new();
    for statement in &one.statements {
        let Ok(tables) = &statement.tables else {
            return true;
        };
        if tables.hidden == HiddenWork::Prepared {
            return true;
        }
        let called = catalog.routines.tables_of_calls(&tables.functions);
        // A table that is newer than the catalog, or any.
        let all = tables.row_targets.iter().chain(&called.writes);
        match resolved(all, statement, catalog) {
            Some(tables) if !called.changes_any => named.extend(tables),
            _ => return true,
        }
    }
    // A change of a partitioned table is one of a partition. A dropped table may have been one.
    let has_relatives = |table: &TableName| catalog.has_relatives(&table.1);
    let may_be_part = |table: &TableName| has_relatives(table) || catalog.table(table).is_none();
    let are_relatives = || named.iter().any(has_relatives) && changed.iter().any(may_be_part);
    // A trigger or a foreign key changes other tables, too.
    named.iter().any(|table| changed.contains(table)) || are_relatives()
}

/// The tables behind names. `None` if one is not in the catalog.
fn resolved<'n>(
    names: impl Iterator<Item = &'n WrittenName>,
    statement: &ExecutedStatement,
    catalog: &Catalog,
) -> Option<BTreeSet<TableName>> {
    let mut found = BTreeSet::new();
    for name in names {
        let table = catalog.resolve_at(name, &statement.path, statement.time)?;
        found.extend(catalog.behind(&table));
    }
    Some(found)
}

/// True if the statements of a transaction can have made each change of a commit.
fn can_make(one: &LoggedTransaction, catalog: &Catalog, commit: &Commit<'_>) -> bool {
    let statements = one.statements.iter();
    let all = statements.map(|statement| {
        let effects = StatementEffects::of(statement, catalog, true)?;
        Some((effects, &statement.path))
    });
    let Some(all) = all.collect::<Option<Vec<_>>>() else {
        return true;
    };
    commit.changes.iter().all(|change| {
        let Some(table) = commit.tables.get(&change.table) else {
            return true;
        };
        let name = (table.schema.clone(), table.name.clone());
        // A table that is newer than the catalog can have any name.
        let means = |written: &[String], path: &[String]| {
            let found = catalog.resolve(written, path);
            found.is_none_or(|found| found == name)
        };
        all.iter().any(|(effects, path)| {
            let means = |written: &[String]| means(written, path);
            effects.fit((&name, table), change, catalog, means) != StatementFit::No
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_database::built_in_functions::BuiltInFunctions;
    use backstory_database::catalog::CatalogTable;
    use backstory_database::commit::TransactionNumber;
    use backstory_database::routines::{RoutineBody, Routines};
    use backstory_database::row_change::{ColumnValue, RowChange, RowOperation, StreamTable};
    use backstory_database::sql_dialect::SqlDialect;
    use backstory_database::statement_tables::StatementTables;
    use std::sync::Arc;
    use std::time::Instant;

    fn transaction(text: &str, began: i64, ended: i64, id: Option<u32>) -> LoggedTransaction {
        let tables = StatementTables::of(text, SqlDialect::Postgres);
        let path = vec!["public".to_owned()];
        LoggedTransaction {
            id: id.map(|id| TransactionNumber::Plain(u64::from(id))),
            ended: Some((ended, Instant::now())),
            statements: vec![ExecutedStatement::new(text.to_owned(), tables, path)],
            ..LoggedTransaction::begin(
                "s".to_owned(),
                "3/1".to_owned(),
                began,
                SqlDialect::Postgres,
            )
        }
    }

    fn found(transactions: Vec<LoggedTransaction>) -> TransactionMatch {
        found_in(&Catalog::default(), transactions)
    }

    /// The match of an update of the row 7 of `public.a`.
    fn found_in(catalog: &Catalog, transactions: Vec<LoggedTransaction>) -> TransactionMatch {
        let table = SessionTable {
            transactions: (1..).zip(transactions).collect(),
            ..SessionTable::default()
        };
        let after = vec![("id".to_owned(), ColumnValue::Text("7".to_owned()))];
        let change = RowChange {
            table: 1,
            operation: RowOperation::Update,
            before: None,
            whole_before: false,
            after: Some(after),
            statement: None,
        };
        let stream = StreamTable {
            schema: "public".to_owned(),
            name: "a".to_owned(),
            columns: vec![("id".to_owned(), true)],
            identity: vec!["id".to_owned()],
            incomplete: "",
            texts: BTreeSet::new(),
        };
        let commit = Commit {
            number: TransactionNumber::Plain(742),
            time: 50_000_000,
            position: String::new(),
            changes: &[change],
            left_out: 0,
            tables: [(1, stream)].into(),
            makers: Vec::new(),
        };
        matching(&table, catalog, &commit)
    }

    #[test]
    fn of_two_writers_of_that_time_the_one_that_names_another_row_is_excluded() {
        let one = |text: &str| transaction(text, 49_000_000, 51_000_000, None);
        let mut catalog = Catalog::default();
        let name = ("public".to_owned(), "a".to_owned());
        catalog.add(name, CatalogTable::default());
        let this = one("UPDATE a SET x = 1 WHERE id = 7");
        let other = one("UPDATE a SET x = 1 WHERE id = 8");
        let deletion = one("DELETE FROM a WHERE id = 8");
        assert_eq!(
            found_in(&catalog, vec![other, deletion, this]),
            TransactionMatch::Time(3)
        );
        let any = || one("UPDATE a SET x = 1 WHERE y = 'z'");
        let other = one("INSERT INTO a VALUES (7)");
        assert_eq!(
            found_in(&catalog, vec![other, any(), any()]),
            TransactionMatch::Several(vec![2, 3])
        );
    }

    /// A catalog with the table `a`, a function of the server, and one that changes `b`.
    fn catalog() -> Catalog {
        let built_in = BuiltInFunctions::new(["lower".to_owned()]);
        let mut routines = Routines::new(SqlDialect::Postgres, Arc::new(built_in));
        let name = |name: &str| ("public".to_owned(), name.to_owned());
        routines.add(
            name("pay"),
            RoutineBody::Plain("UPDATE b SET x = 1".to_owned()),
        );
        let mut catalog = Catalog::new(routines, true);
        for table in ["a", "b"] {
            catalog.add(name(table), CatalogTable::default());
        }
        catalog
    }

    #[test]
    fn a_reader_that_calls_known_functions_is_no_possible_writer() {
        let one = |text: &str| transaction(text, 49_000_000, 51_000_000, None);
        let writer = || one("UPDATE a SET x = 1 WHERE id = 7");
        for text in ["SELECT count(*), lower(x) FROM a", "SELECT pay()"] {
            let found = found_in(&catalog(), vec![one(text), writer()]);
            assert_eq!(found, TransactionMatch::Time(2), "{text}");
        }
        let found = found_in(&catalog(), vec![one("SELECT unlisted()"), writer()]);
        assert_eq!(found, TransactionMatch::Several(vec![1, 2]));
    }

    #[test]
    fn the_statement_that_made_a_table_without_rows_is_no_possible_writer_of_them() {
        let one = |text: &str| transaction(text, 49_000_000, 51_000_000, None);
        let fill = || one("COPY a FROM STDIN WITH CSV HEADER");
        for catalog in [Catalog::default(), catalog()] {
            let made = one("CREATE TABLE a (id int PRIMARY KEY, x int)");
            let found = found_in(&catalog, vec![made, fill()]);
            assert_eq!(found, TransactionMatch::Time(2));
            for text in [
                "CREATE TABLE a AS SELECT id, x FROM b",
                "CREATE TABLE a (id int, x int); INSERT INTO a SELECT id, x FROM b",
            ] {
                let found = found_in(&catalog, vec![one(text), fill()]);
                assert_eq!(found, TransactionMatch::Several(vec![1, 2]), "{text}");
            }
        }
    }

    const WRITE: &str = "UPDATE a SET x = 1";

    #[test]
    fn a_number_decides_whatever_the_times_are() {
        let numbered = transaction(WRITE, 0, 1, Some(742));
        let other = transaction(WRITE, 49_000_000, 51_000_000, None);
        assert_eq!(found(vec![other, numbered]), TransactionMatch::Number(2));
    }

    #[test]
    fn without_a_number_the_only_writer_of_that_time_is_taken() {
        let early = transaction(WRITE, 0, 1_000_000, None);
        let reader = transaction("SELECT x FROM a", 49_000_000, 51_000_000, None);
        let writer = transaction(WRITE, 49_000_000, 51_000_000, None);
        assert_eq!(
            found(vec![early, reader, writer]),
            TransactionMatch::Time(3)
        );
    }

    #[test]
    fn two_writers_of_that_time_are_both_possible() {
        let one = || transaction(WRITE, 49_000_000, 51_000_000, None);
        assert_eq!(
            found(vec![one(), one()]),
            TransactionMatch::Several(vec![1, 2])
        );
        assert_eq!(found(Vec::new()), TransactionMatch::Unknown);
    }
}
