use super::*;

fn names(set: &BTreeSet<WrittenName>) -> Vec<String> {
    set.iter().map(|name| name.join(".")).collect()
}

fn tables(text: &str) -> (Vec<String>, Vec<String>) {
    let found = StatementTables::of(text, SqlDialect::Postgres).unwrap();
    (names(&found.reads), names(&found.writes))
}

#[test]
fn each_statement_has_the_tables_that_it_reads_and_changes() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("SELECT * FROM a JOIN s.b ON a.x = b.x", &["a", "s.b"], &[]),
        ("INSERT INTO a (x) VALUES (1)", &[], &["a"]),
        ("INSERT INTO a SELECT x FROM b", &["b"], &["a"]),
        ("INSERT INTO a SELECT x FROM a", &["a"], &["a"]),
        (
            "UPDATE a SET x = b.x FROM b WHERE a.y = b.y",
            &["a", "b"],
            &["a"],
        ),
        ("DELETE FROM a USING b WHERE a.y = b.y", &["a", "b"], &["a"]),
        ("WITH c AS (SELECT 1 FROM b) SELECT * FROM c", &["b"], &[]),
        (
            "SELECT (SELECT max(x) FROM b) FROM \"Big\"",
            &["Big", "b"],
            &[],
        ),
        (
            "WITH c AS (SELECT 1 FROM b) INSERT INTO a SELECT * FROM c",
            &["b"],
            &["a"],
        ),
        (
            "WITH c AS (DELETE FROM b RETURNING x) INSERT INTO a SELECT x FROM c",
            &["b"],
            &["a", "b"],
        ),
        ("TRUNCATE a, s.b", &[], &["a", "s.b"]),
        ("CREATE TABLE a AS SELECT * FROM B", &["b"], &["a"]),
        ("COPY a (x) FROM STDIN", &[], &["a"]),
        ("COPY a TO STDOUT", &["a"], &[]),
        ("COPY (SELECT * FROM b) TO STDOUT", &["b"], &[]),
        ("BEGIN", &[], &[]),
    ];
    for (text, reads, writes) in cases {
        let (found_reads, found_writes) = tables(text);
        assert_eq!(found_reads, *reads, "{text}");
        assert_eq!(found_writes, *writes, "{text}");
    }
}

#[test]
fn a_table_that_is_made_without_rows_or_for_its_session_is_no_target_of_rows() {
    let cases: &[(&str, &[&str])] = &[
        ("CREATE TABLE a (x int)", &[]),
        ("CREATE TABLE IF NOT EXISTS a (x int)", &[]),
        ("CREATE TEMP TABLE a AS SELECT x FROM b", &[]),
        ("CREATE TABLE a AS SELECT x FROM b", &["a"]),
        ("SELECT x INTO a FROM b", &["a"]),
        ("SELECT x INTO s.a FROM b UNION SELECT y FROM c", &["s.a"]),
        ("CREATE TABLE a (x int); INSERT INTO a VALUES (1)", &["a"]),
        ("COPY a FROM STDIN", &["a"]),
        ("UPDATE a SET x = 1", &["a"]),
    ];
    for (text, targets) in cases {
        let found = StatementTables::of(text, SqlDialect::Postgres).unwrap();
        assert_eq!(names(&found.row_targets), *targets, "{text}");
        assert_eq!(found.writes.len(), 1, "{text}");
    }
}

#[test]
fn an_update_uses_only_the_rows_that_it_changes_unless_it_names_the_table_again() {
    let cases: &[(&str, &[&str])] = &[
        ("UPDATE a SET x = x + 1 WHERE id = 2", &[]),
        ("UPDATE a SET x = b.x FROM b WHERE a.y = b.y", &["b"]),
        ("UPDATE a SET x = (SELECT max(x) FROM a)", &["a"]),
        ("DELETE FROM a WHERE id = 2", &[]),
        ("DELETE FROM a WHERE id IN (SELECT id FROM b)", &["b"]),
        ("UPDATE a SET x = 1; SELECT * FROM a", &["a"]),
        ("INSERT INTO a SELECT x FROM a", &["a"]),
    ];
    for (text, scanned) in cases {
        let found = StatementTables::of(text, SqlDialect::Postgres).unwrap();
        assert_eq!(names(&found.scanned), *scanned, "{text}");
    }
}

#[test]
fn functions_are_called_in_expressions_as_tables_and_alone() {
    let text = "SELECT f(x) FROM g(1), LATERAL s.h(2); CALL p(3)";
    let found = StatementTables::of(text, SqlDialect::Postgres).unwrap();
    assert_eq!(names(&found.functions), ["f", "g", "p", "s.h"]);
}

#[test]
fn an_insertion_replaces_rows_only_on_a_conflict() {
    let replaces = |text: &str| {
        !StatementTables::of(text, SqlDialect::Postgres)
            .unwrap()
            .replaced
            .is_empty()
    };
    let insertion = "INSERT INTO a VALUES (1)";
    let conflict = "INSERT INTO a VALUES (1) ON CONFLICT (x) DO UPDATE SET y = 2";
    assert!(!replaces(insertion) && replaces(conflict));
    assert!(replaces("UPDATE a SET x = 1") && replaces("DELETE FROM a"));
    assert!(!replaces("CREATE TABLE a (x int)") && !replaces("SELECT * FROM a"));
}

#[test]
fn a_statement_that_does_not_parse_is_refused_with_the_parsers_words() {
    assert!(StatementTables::of("SELEC * FROM a", SqlDialect::Postgres).is_err());
}

#[test]
fn a_copy_names_the_servers_file() {
    let found = StatementTables::of(
        "COPY a TO '/tmp/x.csv' WITH (FORMAT csv)",
        SqlDialect::Postgres,
    )
    .unwrap();
    let file = found.file.unwrap();
    assert_eq!((&*file.path, file.written), ("/tmp/x.csv", true));
}
