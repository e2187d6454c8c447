//! Statements of changes, for transactions of which one statement only seems to fit, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use backstory_database::built_in_functions::BuiltInFunctions;
use backstory_database::catalog::CatalogTable;
use backstory_database::commit::TransactionNumber;
use backstory_database::routines::{RoutineBody, Routines};
use backstory_database::statement_secrets::without_secrets;
use backstory_database::statement_tables::StatementTables;

use super::*;
use StatementFit::{AnyTimes, No, OncePerRow};

fn of_fits(fits: &[[StatementFit; 2]], former: &[Option<usize>]) -> Option<Vec<Option<usize>>> {
    let fits: Vec<Vec<StatementFit>> = fits.iter().map(|one| one.to_vec()).collect();
    makers(&fits, former)
}

#[test]
fn two_changes_of_a_row_are_of_two_statements_in_their_order() {
    let both = [[OncePerRow, OncePerRow]; 4];
    let former = [None, None, Some(0), Some(1)];
    let wanted = vec![Some(0), Some(0), Some(1), Some(1)];
    assert_eq!(of_fits(&both, &former), Some(wanted));
    // A function may change a row twice.
    let free = [[AnyTimes, AnyTimes]; 2];
    assert_eq!(of_fits(&free, &[None, Some(0)]), Some(vec![None, None]));
}

#[test]
fn a_change_that_one_statement_alone_fits_bounds_the_others() {
    let fits = [
        [OncePerRow, OncePerRow],
        [OncePerRow, No],
        [OncePerRow, OncePerRow],
    ];
    let wanted = vec![Some(0), Some(0), None];
    assert_eq!(of_fits(&fits, &[None; 3]), Some(wanted));
    let crossed = [[No, OncePerRow], [OncePerRow, No]];
    assert_eq!(of_fits(&crossed, &[None; 2]), None);
}

fn statement(text: &str) -> ExecutedStatement {
    let tables = StatementTables::of(text, SqlDialect::Postgres);
    ExecutedStatement::new(without_secrets(text), tables, vec!["public".to_owned()])
}

fn statements(texts: &[&str]) -> Vec<ExecutedStatement> {
    texts.iter().map(|text| statement(text)).collect()
}

#[test]
fn statements_behind_a_savepoint_that_was_gone_back_to_are_undone() {
    let all = |texts: &[&str]| undone(&statements(texts));
    let texts = [
        "BEGIN",
        "SAVEPOINT s;",
        "DELETE FROM a",
        "ROLLBACK TO SAVEPOINT s; -- c",
        "COMMIT",
    ];
    assert_eq!(all(&texts), Some(vec![false, true, true, false, false]));
    // The second savepoint hides the first one of its name, until it is released.
    let texts = [
        "SAVEPOINT s",
        "DELETE FROM a",
        "SAVEPOINT s /* c */",
        "DELETE FROM b",
        "ROLLBACK TO s",
    ];
    let inner = vec![false, false, true, true, false];
    assert_eq!(all(&texts), Some(inner));
    let texts = [
        "SAVEPOINT s",
        "DELETE FROM a",
        "SAVEPOINT s",
        "RELEASE SAVEPOINT s",
        "ROLLBACK TO s",
    ];
    assert_eq!(all(&texts), Some(vec![true, true, true, true, false]));
    assert_eq!(all(&["SAVEPOINT s; DELETE FROM a", "ROLLBACK TO s"]), None);
}

/// The tables of the stream, by their numbers. The partition `leaf` is one of `root`.
const TABLES: [&str; 7] = ["a", "b", "c", "leaf", "root", "ruled", "full"];

fn number(table: &str) -> u64 {
    let at = TABLES.iter().position(|name| *name == table);
    at.unwrap() as u64
}

fn public(name: &str) -> TableName {
    ("public".to_owned(), name.to_owned())
}

/// A catalog in which a function changes `a`.
fn catalog() -> Catalog {
    let built_in = ["upper", "count"].map(str::to_owned);
    let built_in = BuiltInFunctions::new(built_in);
    let mut routines = Routines::new(SqlDialect::Postgres, Arc::new(built_in));
    let body = RoutineBody::Plain("UPDATE a SET n = 1".to_owned());
    routines.add(public("changes_a"), body);
    let mut catalog = Catalog::new(routines, true);
    for name in TABLES {
        let table = CatalogTable {
            key: vec!["id".to_owned()],
            has_relatives: ["leaf", "root"].contains(&name),
            has_rules: name == "ruled",
            ..CatalogTable::default()
        };
        catalog.add(public(name), table);
    }
    catalog
}

fn image(row: &[(&str, &str)]) -> RowImage {
    let columns = row.iter();
    columns
        .map(|(name, value)| ((*name).to_owned(), ColumnValue::Text((*value).to_owned())))
        .collect()
}

/// An update of a row, with its image after it.
fn updated(table: &str, row: &[(&str, &str)]) -> RowChange {
    RowChange {
        table: number(table),
        operation: RowOperation::Update,
        before: None,
        whole_before: false,
        after: Some(image(row)),
        statement: None,
    }
}

fn stream_table(name: &str) -> StreamTable {
    let columns = ["id", "n", "o", "password"].map(str::to_owned);
    let is_full = name == "full";
    let identity = Some("id".to_owned()).filter(|_| !is_full);
    let of_key = |column: String| {
        let is_key = is_full || column == "id";
        (column, is_key)
    };
    StreamTable {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: columns.map(of_key).into(),
        identity: identity.into_iter().collect(),
        incomplete: "",
        texts: BTreeSet::from(["o", "password"].map(str::to_owned)),
    }
}

/// The places of the statements that made the changes of a transaction.
fn found_in(catalog: &Catalog, texts: &[&str], changes: &[RowChange]) -> Vec<Option<usize>> {
    let logged = LoggedTransaction {
        statements: statements(texts),
        ..LoggedTransaction::begin("s".to_owned(), "3/1".to_owned(), 0, SqlDialect::Postgres)
    };
    let tables = TABLES.map(|name| (number(name), stream_table(name)));
    let commit = commit(changes, tables.into());
    change_makers(&logged, false, catalog, &commit)
}

fn commit(changes: &[RowChange], tables: BTreeMap<u64, StreamTable>) -> Commit<'_> {
    Commit {
        number: TransactionNumber::Plain(742),
        time: 1,
        position: String::new(),
        changes,
        left_out: 0,
        tables,
        makers: Vec::new(),
    }
}

fn found(texts: &[&str], changes: &[RowChange]) -> Vec<Option<usize>> {
    let begin = ["BEGIN"].iter().chain(texts).chain(&["COMMIT"]);
    let texts: Vec<&str> = begin.copied().collect();
    found_in(&catalog(), &texts, changes)
}

const NONE: [Option<usize>; 0] = [];

#[test]
fn the_order_and_the_values_of_changes_tell_their_statements() {
    let all = ["UPDATE a SET n = n * 2", "UPDATE a SET o = upper(o)"];
    let row = |id: &str| updated("a", &[("id", id)]);
    let changes = [row("1"), row("2"), row("1"), row("2")];
    assert_eq!(found(&all, &changes), [Some(1), Some(1), Some(2), Some(2)]);
    let other = ["UPDATE a SET n = 0 WHERE id = 7", "UPDATE b SET n = 1"];
    let changes = [updated("a", &[("id", "7")]), updated("b", &[("id", "7")])];
    assert_eq!(found(&other, &changes), [Some(1), Some(2)]);
}

#[test]
fn a_redacted_literal_excludes_no_statement() {
    let texts = [
        "UPDATE a SET password = 'x' WHERE id = 5",
        "UPDATE a SET n = n + 1 WHERE n < 3",
    ];
    let change = updated("a", &[("id", "5"), ("n", "0"), ("password", "x")]);
    assert_eq!(found(&texts, std::slice::from_ref(&change)), [None]);
    // Another value shows that the second one is not that of the change.
    let second = "UPDATE a SET n = n + 1 WHERE id = 6";
    assert_eq!(found(&[texts[0], second], &[change]), [Some(1)]);
}

#[test]
fn a_statement_that_executes_others_can_have_made_each_change() {
    let changes = [updated("a", &[("id", "42"), ("n", "1")])];
    let others = [
        "UPDATE a SET n = n + 1 WHERE o LIKE 'b%'",
        "UPDATE a SET n = 0 WHERE id = 7",
    ];
    assert_eq!(found(&others, &changes), [Some(1)]);
    for text in [
        "EXECUTE up(42)",
        "FETCH NEXT FROM writing",
        "SELECT unlisted()",
        "DO LANGUAGE plpgsql $$ BEGIN UPDATE a SET n = 1; END $$",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "EXPLAIN ANALYZE UPDATE a SET n = 1",
        "TRUNCATE b CASCADE",
    ] {
        assert_eq!(
            found(&[text, others[0], others[1]], &changes),
            NONE,
            "{text}"
        );
    }
    let texts = ["SELECT changes_a()", others[0], others[1]];
    assert_eq!(found(&texts, &changes), [None]);
}

#[test]
fn a_change_of_a_partition_can_be_that_of_a_statement_about_the_partitioned_table() {
    let changes = [updated("leaf", &[("id", "1")])];
    let texts = [
        "UPDATE root SET n = n + 1",
        "UPDATE leaf SET n = n + 2 WHERE o LIKE 'z%'",
    ];
    assert_eq!(found(&texts, &changes), [None]);
    let texts = ["UPDATE root SET n = n + 1", "UPDATE a SET n = 2"];
    assert_eq!(found(&texts, &changes), [Some(1)]);
}

#[test]
fn the_changes_of_triggers_at_the_commit_have_no_statement() {
    let mut catalog = catalog();
    catalog
        .routines
        .add_trigger(public("b"), public("changes_a"));
    let texts = [
        "BEGIN",
        "UPDATE b SET n = 1",
        "UPDATE a SET n = n + 1 WHERE o LIKE 'z%'",
        "UPDATE c SET n = 3",
        "COMMIT",
    ];
    let [of_a, of_b, of_c] = ["a", "b", "c"].map(|table| updated(table, &[("id", "1")]));
    // A trigger that does not wait can have changed the row of `a`, and so can the statement.
    let changes = [of_b.clone(), of_a.clone(), of_c.clone()];
    let of_trigger = found_in(&catalog, &texts, &changes);
    assert_eq!(of_trigger, [Some(1), None, Some(3)]);
    let changes = [of_b, of_c, of_a];
    assert_eq!(found_in(&catalog, &texts, &changes), NONE);
    catalog.routines.add_deferred(&public("changes_a"));
    let at_commit = found_in(&catalog, &texts, &changes);
    assert_eq!(at_commit, [Some(1), Some(3), None]);
}

#[test]
fn rules_and_definitions_leave_the_statements_of_a_transaction_unknown() {
    let changes = [updated("a", &[("id", "1")])];
    for text in [
        "UPDATE ruled SET n = 1",
        "CREATE TABLE d (id int)",
        "ALTER TABLE a DISABLE TRIGGER ALL",
    ] {
        let texts = [text, "UPDATE a SET n = n + 1 WHERE o LIKE 'b%'"];
        assert_eq!(found(&texts, &changes), NONE, "{text}");
    }
}

#[test]
fn a_transaction_whose_end_is_not_read_has_no_known_statements() {
    let changes = [updated("a", &[("id", "1")])];
    let texts = ["BEGIN", "UPDATE b SET n = 1", "UPDATE a SET n = n + 1"];
    assert_eq!(found_in(&catalog(), &texts, &changes), NONE);
    let whole = [
        "BEGIN",
        "UPDATE b SET n = 1",
        "UPDATE a SET n = n + 1",
        "END",
    ];
    assert_eq!(found_in(&catalog(), &whole, &changes), [Some(2)]);
}

#[test]
fn a_transaction_of_which_a_part_is_not_logged_has_no_known_statements() {
    let changes = [updated("a", &[("id", "1")])];
    let all = ["UPDATE b SET n = 1", "UPDATE a SET n = n + 1"];
    let without_begin = [all[0], all[1], "COMMIT"];
    assert_eq!(found_in(&catalog(), &without_begin, &changes), NONE);
    let logged = LoggedTransaction {
        statements: statements(&[all[0], all[1], "/* c */ COMMIT"]),
        ended: Some((9, Instant::now())),
        ..LoggedTransaction::begin("s".to_owned(), "3/1".to_owned(), 0, SqlDialect::Postgres)
    };
    assert!(!is_whole(&logged, true));
    let whole = [" BEGIN", all[0], all[1], "/* c */ COMMIT"];
    assert_eq!(found_in(&catalog(), &whole, &changes), [Some(2)]);
    let setting = ["SET log_statement = 'none'", all[0], all[1]];
    assert_eq!(found(&setting, &changes), NONE);
    assert_eq!(found(&all, &changes), [Some(2)]);
}

#[test]
fn a_statement_about_an_unknown_table_can_have_made_each_change() {
    let changes = [updated("a", &[("id", "1")])];
    let other = "UPDATE a SET n = n + 2 WHERE o LIKE 'z%'";
    for text in ["UPDATE ONLY a SET n = n + 1", "UPDATE newer SET n = 1"] {
        assert_eq!(found(&[text, other], &changes), NONE, "{text}");
    }
}

#[test]
fn a_part_of_a_key_that_is_not_sent_again_is_that_before() {
    let columns = ["id", "n"].map(|column| (column.to_owned(), true));
    let table = StreamTable {
        columns: columns.into(),
        identity: ["id", "n"].map(str::to_owned).into(),
        ..stream_table("a")
    };
    let mut change = updated("a", &[("id", "2")]);
    change.before = Some(image(&[("id", "1"), ("n", "long")]));
    let after = change.after.as_mut().unwrap();
    after.push(("n".to_owned(), ColumnValue::Unchanged));
    let later = updated("a", &[("id", "2"), ("n", "long")]);
    let changes = [change, later];
    let commit = commit(&changes, [(number("a"), table)].into());
    assert_eq!(former_changes(&commit, &catalog()), [None, Some(0)]);
}

#[test]
fn rows_that_take_each_others_place_are_not_one_row() {
    let change = |before: &str, after: &str| RowChange {
        before: Some(image(&[("id", before)])),
        whole_before: true,
        ..updated("full", &[("id", after)])
    };
    // One statement can have moved both.
    let changes = [change("1", "2"), change("2", "3")];
    let texts = [
        "UPDATE \"full\" SET id = id + 1",
        "UPDATE \"full\" SET id = id + 1 WHERE n > 9",
    ];
    assert_eq!(found(&texts, &changes), [None, None]);
}

#[test]
fn a_text_that_differs_can_be_equal_by_its_collation() {
    let texts = [
        "BEGIN",
        "UPDATE a SET n = n + 1 WHERE o = 'BOB'",
        "UPDATE a SET n = n + 2 WHERE o LIKE 'z%'",
        "COMMIT",
    ];
    let changes = [updated("a", &[("id", "1"), ("o", "bob")])];
    let mut catalog = catalog();
    assert_eq!(found_in(&catalog, &texts, &changes), [Some(2)]);
    catalog.has_loose_texts = true;
    assert_eq!(found_in(&catalog, &texts, &changes), [None]);
}
