//! Rows, tables and files lead to each other.

use std::fs;

use crate::place::DatabasePlace;

fn has(nodes: &[String], end: &str) -> bool {
    nodes.iter().any(|node| node.ends_with(end))
}

#[test]
fn an_exported_file_and_a_row_lead_to_the_script_that_filled_the_table() {
    let Some(place) = DatabasePlace::new("the lineage of rows", "") else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int); CREATE TABLE other (id int PRIMARY KEY)",
    );
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    let write = |name: &str, text: &str| fs::write(place.work.join(name), text).unwrap();
    write("fill.sql", "INSERT INTO accounts VALUES (41, 1), (42, 2);");
    write(
        "raise.sql",
        "BEGIN; UPDATE accounts SET sum = sum + 1 WHERE id = 42; COMMIT;",
    );
    write("elsewhere.sql", "INSERT INTO other VALUES (7);");
    place.record("$PSQL -f fill.sql");
    place.record("$PSQL -f elsewhere.sql");
    place.record("$PSQL -f raise.sql");
    place.record("$PSQL -c 'COPY accounts TO STDOUT' >report.csv");
    let said = watch.end().unwrap();
    assert!(!said.contains("incomplete"), "{said}");
    assert_eq!(
        fs::read_to_string(place.work.join("report.csv")).unwrap(),
        "41\t1\n42\t3\n"
    );

    let row = place.lineage(&["--table", "accounts", "--key", "42"]);
    assert!(has(&row, "/bank/public.accounts?id=42"), "{row:?}");
    assert!(has(&row, "fill.sql") && has(&row, "raise.sql"), "{row:?}");
    assert!(!has(&row, "elsewhere.sql"), "{row:?}");
    let untouched = place.lineage(&["--table", "accounts", "--key", "id=41"]);
    assert!(
        has(&untouched, "fill.sql") && !has(&untouched, "raise.sql"),
        "{untouched:?}"
    );
    let file = place.lineage(&["report.csv"]);
    assert!(
        has(&file, "fill.sql") && has(&file, "raise.sql"),
        "{file:?}"
    );
    assert!(!has(&file, "elsewhere.sql"), "{file:?}");

    // The server keeps nothing of the watch.
    let left = "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots)";
    assert_eq!(place.query(left), "0\n");
}
