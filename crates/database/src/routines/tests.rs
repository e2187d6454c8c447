//! Tests of the tables that routines use.

use super::*;

fn routines(all: &[(&str, bool, &str)]) -> Routines {
    let built_in = BuiltInFunctions::new([]);
    let mut routines = Routines::new(SqlDialect::Postgres, Arc::new(built_in));
    for (name, is_plain, body) in all {
        let name = ("public".to_owned(), (*name).to_owned());
        let body = (*body).to_owned();
        routines.add(
            name,
            match is_plain {
                true => RoutineBody::Plain(body),
                false => RoutineBody::Branching(body),
            },
        );
    }
    routines
}

fn reads(routines: &Routines, name: &str) -> Vec<(String, bool)> {
    let found = routines.tables_of_calls([&vec![name.to_owned()]]).reads;
    found
        .into_iter()
        .map(|(name, sure)| (name.join("."), sure))
        .collect()
}

#[test]
fn a_function_in_sql_reads_its_tables_and_those_of_the_functions_that_it_calls() {
    let all = routines(&[
        ("outer", true, "SELECT inner() FROM a; UPDATE c SET x = 1"),
        ("inner", true, "BEGIN ATOMIC\n SELECT max(x) FROM s.b;\nEND"),
    ]);
    let wanted = [("a".to_owned(), true), ("s.b".to_owned(), true)];
    assert_eq!(reads(&all, "outer"), wanted);
    assert_eq!(reads(&all, "unknown"), []);
}

#[test]
fn the_tables_of_plpgsql_are_possibly_read() {
    let body = "DECLARE n int; BEGIN IF x > 0 THEN SELECT count(*) INTO n FROM a, b JOIN \"C\" \
        ON true; ELSE PERFORM f(n); END IF; RETURN n; END";
    let all = routines(&[("p", false, body), ("f", true, "SELECT 1 FROM d")]);
    let names: Vec<(String, bool)> = ["C", "a", "b", "d"]
        .map(|name| (name.to_owned(), false))
        .into();
    assert_eq!(reads(&all, "p"), names);
}

#[test]
fn a_function_possibly_changes_the_tables_of_its_statements_and_of_the_functions_it_calls() {
    let body = "BEGIN IF x THEN INSERT INTO a (x) VALUES (1) ON CONFLICT DO UPDATE SET x = 2; \
        ELSE DELETE FROM s.b; PERFORM f(1) FROM r FOR UPDATE; END IF; UPDATE \"C\" SET x = 1; END";
    let all = routines(&[("p", false, body), ("f", true, "UPDATE d SET x = 1")]);
    let found = all
        .tables_of_calls([&vec!["p".to_owned()]])
        .writes
        .into_iter();
    let found: Vec<String> = found.map(|name| name.join(".")).collect();
    assert_eq!(found, ["C", "a", "d", "s.b"]);
}

#[test]
fn a_change_possibly_changes_the_tables_of_triggers_and_of_foreign_keys() {
    let mut all = routines(&[("fired", false, "BEGIN INSERT INTO journal VALUES (1); END")]);
    let name = |name: &str| ("public".to_owned(), name.to_owned());
    all.add_trigger(name("a"), name("fired"));
    all.add_cascade(name("child"), name("a"));
    let found = all.writes_of_triggers(&name("a")).into_iter();
    let found: Vec<String> = found.map(|name| name.join(".")).collect();
    assert_eq!(found, ["journal", "public.child"]);
    assert!(all.may_change(&name("child")) && !all.may_change(&name("journal")));
}

#[test]
fn routines_that_call_each_other_end() {
    let all = routines(&[
        ("one", true, "SELECT two() FROM a"),
        ("two", true, "SELECT one() FROM b"),
    ]);
    assert_eq!(reads(&all, "one").len(), 2);
}

fn unknown(routines: &Routines, name: &str) -> Vec<String> {
    let name = name.split('.').map(str::to_owned).collect();
    let found = routines.tables_of_calls([&name]).unknown.into_iter();
    found.map(|name| name.join(".")).collect()
}

#[test]
fn a_function_of_the_server_uses_no_table_and_one_that_nobody_lists_may_use_any() {
    let all = routines(&[]);
    for (name, wanted) in [
        ("count", &[][..]),
        ("pg_catalog.max", &[]),
        ("novel", &["novel"]),
        ("public.count", &["public.count"]),
    ] {
        assert_eq!(unknown(&all, name), wanted);
        assert_eq!(reads(&all, name), []);
    }
}

#[test]
fn a_function_that_builds_statements_or_has_another_language_may_use_any_table() {
    let dynamic = "BEGIN EXECUTE format('DELETE FROM %I', x); RETURN (SELECT 1 FROM a); END";
    let mut all = routines(&[
        ("dynamic", false, dynamic),
        ("outer", true, "SELECT dynamic(1)"),
        (
            "plain",
            false,
            "BEGIN PERFORM max(1) FROM a AS t (x); RAISE NOTICE 'EXECUTE'; END",
        ),
    ]);
    all.add(
        ("public".to_owned(), "snake".to_owned()),
        RoutineBody::Opaque { changes: false },
    );
    let of = ["dynamic", "outer", "plain", "snake"].map(|name| unknown(&all, name).join(","));
    assert_eq!(of, ["dynamic", "dynamic", "", "snake"]);
    let may_write = |name: &str| all.tables_of_calls([&vec![name.to_owned()]]).may_write();
    assert_eq!(
        ["outer", "plain", "snake"].map(may_write),
        [true, false, false]
    );
    assert_eq!(reads(&all, "dynamic"), [("a".to_owned(), false)]);
}

#[test]
fn a_name_of_several_functions_calls_each_possibly() {
    let all = routines(&[
        ("f", true, "SELECT x FROM a"),
        ("f", true, "SELECT x FROM b"),
        ("max", true, "SELECT x FROM c"),
    ]);
    let both = [("a".to_owned(), false), ("b".to_owned(), false)];
    assert_eq!(reads(&all, "f"), both);
    assert_eq!(reads(&all, "max"), [("c".to_owned(), false)]);
}
