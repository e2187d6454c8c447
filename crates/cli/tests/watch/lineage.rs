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
    // These two clients last until the watch has seen them, however busy the machine is.
    place.record("$PSQL -f fill.sql -c 'SELECT pg_sleep(1)'");
    place.record("$PSQL -f elsewhere.sql");
    place.record("$LOCAL -f raise.sql -c 'SELECT pg_sleep(1)'");
    place.record("$PSQL -c 'COPY accounts TO STDOUT' >report.csv");
    let said = watch.end().unwrap();
    assert!(!said.contains("not complete"), "{said}");
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

    history_has_statements_clients_and_values(&place);
    answers_name_each_command_once(&place);

    // The server keeps nothing of the watch.
    let left = "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots)";
    assert_eq!(place.query(left), "0\n");
}

/// The history of a row, the newest change first.
fn history_has_statements_clients_and_values(place: &DatabasePlace) {
    let row = ["of", "--table", "accounts", "--key", "42"];
    let history = place.json(&row)["history"].clone();
    let operations = [0, 1].map(|at| history[at]["change"]["operation"].clone());
    assert_eq!(operations, ["update", "insert"], "{history}");
    let client = |at: usize| history[at]["client"]["argv"].to_string();
    assert!(client(0).contains("raise.sql"), "{history}");
    assert!(client(1).contains("fill.sql"), "{history}");
    assert_eq!(history[0]["transaction"]["user"], "ann");
    let text = place.text(&row);
    for part in [
        "2 changes, the newest first:",
        "UPDATE accounts SET sum",
        "sum: 2 → 3",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A client is one command, although two runs know it, and no branch leads back to the answer.
fn answers_name_each_command_once(place: &DatabasePlace) {
    let text = place.text(&["of", "report.csv"]);
    assert!(text.lines().count() <= 40, "{text}");
    for part in ["fill.sql", "raise.sql", "transaction"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let received: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("received from "))
        .map(|(_, from)| from.split("  [run").next().unwrap_or(from))
        .collect();
    let distinct: std::collections::BTreeSet<&&str> = received.iter().collect();
    assert_eq!(received.len(), distinct.len(), "{text}");
    let again = text
        .lines()
        .filter(|line| line.contains("received") && line.contains("(shown"));
    assert_eq!(again.count(), 0, "{text}");
}
