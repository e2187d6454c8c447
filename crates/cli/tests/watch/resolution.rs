//! Names in statements lead to the tables behind them.

use crate::watch::place::PostgresPlace;

/// Made before each statement.
pub const TABLES: &str = "CREATE TABLE base (id int PRIMARY KEY, x int); \
    CREATE TABLE target (id int PRIMARY KEY, x int); CREATE TABLE aside (id int PRIMARY KEY)";

/// The tables in the answer about row 1 of `target`. A statement makes the row, after definitions
/// and a fill of `base`.
fn tables_behind(what: &str, definitions: &str, statement: &str) -> Option<Vec<String>> {
    let place = PostgresPlace::new(what, &[])?;
    place.query(TABLES);
    place.query(definitions);
    let watch = place.watched();
    place.query("INSERT INTO base VALUES (1, 10); INSERT INTO aside VALUES (1)");
    place.query(statement);
    watch.end().unwrap();
    let row = place.lineage(&["--table", "target", "--key", "1", "--possible"]);
    let names = row.iter().filter_map(|node| node.rsplit_once("/bank/"));
    Some(names.map(|(_, name)| name.to_owned()).collect())
}

#[track_caller]
fn leads_to_base(what: &str, definitions: &str, statement: &str) {
    let Some(tables) = tables_behind(what, definitions, statement) else {
        return;
    };
    let has = |name: &str| tables.iter().any(|table| table == name);
    assert!(
        has("public.target?id=1") && has("public.base"),
        "{tables:?}"
    );
    assert!(!has("public.aside"), "{tables:?}");
}

#[test]
#[ignore = "a server of its own"]
fn a_view_of_a_view_leads_to_its_table() {
    leads_to_base(
        "views",
        "CREATE VIEW low AS SELECT * FROM base; CREATE VIEW high AS SELECT id, x FROM low",
        "INSERT INTO target SELECT id, x FROM high",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_common_table_expression_leads_to_its_table_although_another_has_its_name() {
    leads_to_base(
        "common table expressions",
        "SELECT 1",
        "WITH aside AS (SELECT id, x FROM base) INSERT INTO target SELECT id, x FROM aside",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_function_in_sql_leads_to_its_table() {
    leads_to_base(
        "functions in SQL",
        "CREATE FUNCTION top() RETURNS int LANGUAGE sql AS 'SELECT max(x) FROM base'",
        "INSERT INTO target VALUES (1, top())",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_procedure_in_plpgsql_leads_possibly_to_its_table() {
    leads_to_base(
        "procedures",
        "CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN \
           SELECT max(x) INTO n FROM base; INSERT INTO target VALUES (1, n); END $$",
        "CALL fill()",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_row_that_a_trigger_writes_leads_to_the_statement_that_fired_it() {
    leads_to_base(
        "triggers",
        "CREATE FUNCTION copy_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           INSERT INTO target SELECT id, x FROM base WHERE id = NEW.id; RETURN NEW; END $$; \
         CREATE TABLE event (id int PRIMARY KEY); \
         CREATE TRIGGER copies AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION copy_row()",
        "INSERT INTO event VALUES (1)",
    );
}
