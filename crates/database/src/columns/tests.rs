//! Tests of the columns that statements use.

mod changes;

use super::*;
use crate::catalog::CatalogTable;
use crate::definitions::{ChangedDefinitions, SeenDefinition};
use crate::routines::{RoutineBody, Routines};
use crate::sql_dialect::SqlDialect;
use crate::statement_tables::StatementTables;
use crate::view_query::ViewQuery;
use std::sync::Arc;

fn name(table: &str) -> TableName {
    ("public".to_owned(), table.to_owned())
}

fn list(columns: &str) -> Vec<String> {
    columns.split_whitespace().map(str::to_owned).collect()
}

/// Accounts, rates and notes, and views of them.
fn catalog_of(dialect: SqlDialect) -> Catalog {
    let built_in = crate::built_in_functions::BuiltInFunctions::new(
        [
            "max",
            "count",
            "sum",
            "lower",
            "generate_series",
            "row_to_json",
        ]
        .map(str::to_owned),
    );
    let mut routines = Routines::new(dialect, Arc::new(built_in));
    let plain = |body: &str| RoutineBody::Plain(body.to_owned());
    routines.add(
        name("highest"),
        plain("SELECT max(sum) FROM accounts WHERE id > lowest"),
    );
    routines.add(
        name("pay"),
        plain("UPDATE accounts SET sum = sum + 1 WHERE id = $1"),
    );
    let branching =
        "BEGIN IF x THEN INSERT INTO notes VALUES (1); END IF; RETURN (SELECT 1 FROM rates); END";
    routines.add(name("branch"), RoutineBody::Branching(branching.to_owned()));
    routines.add_trigger(name("fired"), name("branch"));
    let mut catalog = Catalog::new(routines, true);
    for (table, columns) in [
        ("accounts", "id sum note"),
        ("rates", "id factor"),
        ("notes", "account text"),
        ("fired", "id x"),
        ("v", "s n"),
        ("vv", "s2"),
        ("both", "id sum factor"),
    ] {
        catalog.add(
            name(table),
            CatalogTable {
                columns: list(columns),
                ..CatalogTable::default()
            },
        );
    }
    for (view, table, query) in [
        (
            "v",
            "accounts",
            "SELECT accounts.sum AS s, accounts.note AS n FROM public.accounts WHERE accounts.id > 0",
        ),
        ("vv", "v", "SELECT v.s FROM public.v"),
        (
            "both",
            "accounts",
            "SELECT a.id, a.sum + 1 AS sum, r.factor FROM public.accounts a JOIN public.rates r ON r.id = a.id",
        ),
    ] {
        catalog.add_part(name(view), name(table));
        catalog.add_query(name(view), ViewQuery::new(query.to_owned()));
    }
    catalog.add_part(name("both"), name("rates"));
    catalog
}

/// Columns of tables without their schema. `?` is behind one that is possible.
fn shown(uses: &ColumnUses) -> Vec<String> {
    let one = |(used, sure): (&UsedColumn, &bool)| {
        let name = match used {
            UsedColumn::Of((_, table), column) => format!("{table}.{column}"),
            UsedColumn::Unresolved(name) => format!("unresolved {name}"),
        };
        format!("{name}{}", if *sure { "" } else { "?" })
    };
    let mut all: Vec<String> = uses.iter().map(one).collect();
    all.sort();
    all
}

fn columns_in(text: &str, catalog: &Catalog, time: i64) -> (Vec<String>, Vec<String>) {
    let statement = ExecutedStatement::new(
        text.to_owned(),
        StatementTables::of(text, catalog.dialect()),
        vec!["public".to_owned()],
    );
    let moment = StatementMoment {
        time,
        session: "s",
        place: time.unsigned_abs(),
        is_between: false,
    };
    let columns = cache::ColumnCache::default().columns_of(&statement, catalog, moment);
    (shown(&columns.read), shown(&columns.written))
}

#[track_caller]
fn check_in(dialect: SqlDialect, text: &str, read: &str, written: &str) {
    let parsed = StatementTables::of(text, dialect);
    assert!(parsed.is_ok(), "{text}: {parsed:?}");
    let found = columns_in(text, &catalog_of(dialect), 0);
    let list = |names: &str| {
        let mut names: Vec<String> = names.split(", ").map(str::to_owned).collect();
        names.retain(|name| !name.is_empty());
        names.sort();
        names
    };
    assert_eq!(found, (list(read), list(written)), "{text}");
}

#[track_caller]
fn check(text: &str, read: &str, written: &str) {
    check_in(SqlDialect::Postgres, text, read, written);
}

const MARIADB: SqlDialect = SqlDialect::MariaDb { lower_case: false };

#[test]
fn a_selection_reads_the_columns_that_it_names() {
    check(
        "SELECT sum FROM accounts WHERE id = 1",
        "accounts.sum, accounts.id",
        "",
    );
    check(
        "SELECT a.sum FROM accounts a ORDER BY note LIMIT 1",
        "accounts.sum, accounts.note",
        "",
    );
    check(
        "SELECT public.accounts.sum FROM public.accounts",
        "accounts.sum",
        "",
    );
    check(
        "SELECT count(*) FROM accounts GROUP BY note HAVING max(id) > 1",
        "accounts.note, accounts.id",
        "",
    );
    check(
        "SELECT sum AS s FROM accounts ORDER BY s",
        "accounts.sum",
        "",
    );
    check(
        "SELECT sum AS x FROM accounts GROUP BY x",
        "accounts.sum",
        "",
    );
    check("SELECT ctid, DEFAULT FROM accounts", "", "");
    check(
        "SELECT sum(id) OVER (PARTITION BY note) FROM accounts",
        "accounts.id, accounts.note",
        "",
    );
    check("SELECT 1", "", "");
}

#[test]
fn a_star_means_all_columns_of_its_relations() {
    check("SELECT * FROM rates", "rates.id, rates.factor", "");
    check(
        "SELECT r.*, a.note FROM rates r, accounts a",
        "rates.id, rates.factor, accounts.note",
        "",
    );
    check(
        "SELECT row_to_json(r) FROM rates r",
        "rates.id, rates.factor",
        "",
    );
    check(
        "SELECT EXISTS (SELECT * FROM rates WHERE id = 1)",
        "rates.id",
        "",
    );
    check("SELECT * FROM nothing", "unresolved nothing.*?", "");
}

#[test]
fn a_column_without_its_table_is_that_of_the_only_relation_that_has_it() {
    check(
        "SELECT factor, sum FROM accounts JOIN rates ON accounts.id = rates.id",
        "rates.factor, accounts.sum, accounts.id, rates.id",
        "",
    );
    check(
        "SELECT sum FROM accounts WHERE EXISTS (SELECT 1 FROM notes WHERE account = id)",
        "accounts.sum, notes.account, accounts.id",
        "",
    );
    check(
        "SELECT id FROM accounts WHERE id IN (SELECT id FROM rates)",
        "accounts.id, rates.id",
        "",
    );
    check(
        "SELECT relname, sum FROM pg_catalog.pg_class, accounts",
        "accounts.sum",
        "",
    );
}

#[test]
fn using_and_natural_joins_read_the_common_columns_of_both_sides() {
    check(
        "SELECT factor FROM accounts JOIN rates USING (id)",
        "rates.factor, accounts.id, rates.id",
        "",
    );
    check(
        "SELECT sum FROM accounts NATURAL JOIN rates WHERE id = 1",
        "accounts.sum, accounts.id, rates.id",
        "",
    );
    check(
        "SELECT * FROM rates JOIN notes ON true",
        "rates.id, rates.factor, notes.account, notes.text",
        "",
    );
}

#[test]
fn a_query_within_reads_what_the_query_around_it_uses() {
    check(
        "SELECT s FROM (SELECT sum AS s, note FROM accounts WHERE id = 1) q",
        "accounts.sum, accounts.id",
        "",
    );
    check(
        "SELECT q.b FROM (SELECT id, sum FROM accounts) AS q(a, b)",
        "accounts.sum",
        "",
    );
    check(
        "WITH c AS (SELECT * FROM accounts) SELECT id FROM c",
        "accounts.id",
        "",
    );
    check(
        "WITH c AS (SELECT note FROM accounts), d AS (SELECT id FROM rates) SELECT note FROM c",
        "accounts.note",
        "",
    );
    check(
        "WITH accounts AS (SELECT factor FROM rates) SELECT * FROM accounts",
        "rates.factor",
        "",
    );
    check(
        "SELECT x FROM (SELECT id AS x, note FROM accounts ORDER BY note LIMIT 1) q",
        "accounts.id, accounts.note",
        "",
    );
    check(
        "SELECT x FROM (SELECT DISTINCT id AS x, note FROM accounts) q",
        "accounts.id, accounts.note",
        "",
    );
    check(
        "SELECT a FROM (SELECT id AS a, sum AS b FROM accounts UNION ALL SELECT id, factor FROM rates) q",
        "accounts.id, rates.id",
        "",
    );
    check(
        "SELECT a FROM (SELECT id AS a, sum AS b FROM accounts UNION SELECT id, factor FROM rates) q",
        "accounts.id, accounts.sum, rates.id, rates.factor",
        "",
    );
    check(
        "WITH RECURSIVE t(a, b) AS (SELECT id, sum FROM accounts UNION ALL SELECT b, a FROM t) SELECT a FROM t",
        "accounts.id, accounts.sum",
        "",
    );
    check(
        "SELECT l.t FROM accounts a, LATERAL (SELECT text AS t FROM notes WHERE account = a.id) l",
        "notes.text, notes.account, accounts.id",
        "",
    );
    check("SELECT g FROM generate_series(1, 2) AS g, rates", "", "");
}

#[test]
fn columns_of_views_are_those_of_their_tables() {
    check("SELECT s FROM v", "accounts.sum, accounts.id", "");
    check(
        "SELECT s2 FROM vv WHERE s2 > 1",
        "accounts.sum, accounts.id",
        "",
    );
    check(
        "SELECT factor FROM both",
        "rates.factor, rates.id, accounts.id",
        "",
    );
    check(
        "UPDATE v SET s = 1 WHERE n = 'x'",
        "accounts.note, accounts.id",
        "accounts.sum",
    );
    check(
        "INSERT INTO v (s, n) VALUES (1, 'x')",
        "",
        "accounts.sum, accounts.note",
    );
    check("INSERT INTO vv VALUES (1)", "", "accounts.sum");
    // The server has a rule for such a column, or refuses the change.
    check(
        "UPDATE both SET sum = 1",
        "accounts.id, rates.id",
        "unresolved both.sum?, accounts.*?, rates.*?",
    );
}

#[test]
fn functions_in_sql_use_their_columns_and_others_possibly_use_any() {
    check("SELECT highest(1)", "accounts.sum, accounts.id", "");
    check("SELECT pay(1)", "accounts.sum, accounts.id", "accounts.sum");
    check("SELECT branch(1)", "rates.*?", "notes.*?");
    check(
        "INSERT INTO fired VALUES (1, 2)",
        "rates.*?",
        "fired.id, fired.x, notes.*?",
    );
    let found = columns_in(
        "DO $$ BEGIN DELETE FROM notes; END $$",
        &catalog_of(SqlDialect::Postgres),
        0,
    );
    assert!(found.1.contains(&"notes.*?".to_owned()), "{found:?}");
}

#[test]
fn what_is_not_found_is_kept_as_it_is_written() {
    check("SELECT q.x FROM accounts", "unresolved q.x?", "");
    check("SELECT novel FROM accounts, rates", "unresolved novel?", "");
    check("SELECT a.novel FROM accounts a", "accounts.novel?", "");
    check("SELECT x FROM nothing, accounts", "unresolved x?", "");
}

#[test]
fn statements_of_mariadb_have_their_columns() {
    let check = |text: &str, read: &str, written: &str| check_in(MARIADB, text, read, written);
    check(
        "SELECT `Sum` FROM accounts WHERE ID = @x",
        "accounts.sum, accounts.id",
        "",
    );
    check(
        "INSERT INTO accounts (id, sum) VALUES (1, 2) ON DUPLICATE KEY UPDATE sum = sum + VALUES(sum)",
        "accounts.sum",
        "accounts.id, accounts.sum",
    );
    check(
        "INSERT INTO accounts SET id = 1, note = 'x'",
        "",
        "accounts.id, accounts.note",
    );
    check(
        "REPLACE INTO rates VALUES (1, 2)",
        "",
        "rates.id, rates.factor",
    );
    check(
        "UPDATE accounts a JOIN rates r ON a.id = r.id SET a.sum = r.factor, note = 'x' WHERE r.factor > 1",
        "accounts.id, rates.id, rates.factor",
        "accounts.sum, accounts.note",
    );
    check(
        "DELETE a FROM accounts a JOIN rates r ON a.id = r.id WHERE r.factor = 0",
        "accounts.id, rates.id, rates.factor",
        "",
    );
    check("INSERT INTO accounts () VALUES ()", "", "");
}

#[test]
fn after_a_change_of_the_table_a_star_is_possible_and_a_name_is_certain() {
    let mut catalog = catalog_of(SqlDialect::Postgres);
    catalog.definitions.begin(10);
    catalog.definitions.add(SeenDefinition {
        began: 15,
        ended: Some(15),
        session: "other".to_owned(),
        transaction: 1,
        place: 15,
        changed: ChangedDefinitions {
            only_creates: false,
            names: Some(["rates".to_owned()].into()),
        },
    });
    catalog
        .definitions
        .read_again(vec![(name("rates"), false)], (20, 20));
    catalog.definitions.know_log_until(30);
    let read = |text: &str, time: i64| columns_in(text, &catalog, time).0;
    assert_eq!(
        read("SELECT * FROM rates", 12),
        ["rates.factor?", "rates.id?"]
    );
    assert_eq!(
        read("SELECT * FROM rates", 17),
        ["rates.factor?", "rates.id?"]
    );
    assert_eq!(
        read("SELECT * FROM rates", 20),
        ["rates.factor", "rates.id"]
    );
    assert_eq!(read("SELECT factor FROM rates", 12), ["rates.factor"]);
    assert_eq!(read("SELECT former FROM rates", 12), ["rates.former?"]);
    assert_eq!(
        read("SELECT factor FROM rates, accounts", 12),
        ["rates.factor?"]
    );
    assert_eq!(
        read("SELECT r.factor FROM rates r, accounts", 12),
        ["rates.factor"]
    );
    let written = columns_in("INSERT INTO rates VALUES (1, 2)", &catalog, 12).1;
    assert_eq!(written, ["rates.factor?", "rates.id?"]);
}
