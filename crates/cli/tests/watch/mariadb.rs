//! Rows, tables and files of a MariaDB database lead to each other.

use std::fs;

use backstory_testkit::mariadb::MariadbServer;

use crate::place::DatabasePlace;

fn has(nodes: &[String], end: &str) -> bool {
    nodes.iter().any(|node| node.ends_with(end))
}

#[test]
fn rows_and_exports_of_mariadb_lead_to_the_scripts_that_filled_the_table() {
    let Some(place) = DatabasePlace::of_mariadb("the lineage of rows of MariaDB", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int) ENGINE=InnoDB; \
         CREATE TABLE other (id int PRIMARY KEY) ENGINE=InnoDB; \
         CREATE TABLE notes (id int PRIMARY KEY, text varchar(20)) ENGINE=Aria",
    );
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    let write = |name: &str, text: &str| fs::write(place.work.join(name), text).unwrap();
    write(
        "fill.sql",
        "INSERT INTO accounts VALUES (41, 1), (42, 2); DO sleep(1);",
    );
    write(
        "raise.sql",
        "BEGIN; UPDATE accounts SET sum = sum + 1 WHERE id = 42; COMMIT; DO sleep(1);",
    );
    write("elsewhere.sql", "INSERT INTO other VALUES (7);");
    write("notes.csv", "1,first\n2,second\n");
    // These two clients last until the watch has seen them, however busy the machine is.
    place.record("$SQL <fill.sql");
    place.record("$SQL <elsewhere.sql");
    place.record("$LOCAL <raise.sql");
    place.record("$SQL -e \"LOAD DATA LOCAL INFILE 'notes.csv' INTO TABLE notes FIELDS TERMINATED BY ','; DO sleep(1)\"");
    place.record("$SQL -e 'SELECT * FROM accounts; DO sleep(1)' >report.csv");
    let export = place.server.data().join("export.csv");
    place.query(&format!(
        "SELECT * INTO OUTFILE '{}' FROM accounts",
        export.display()
    ));
    let said = watch.end().unwrap();
    assert!(!said.contains("not complete"), "{said} {}", place.reasons());
    assert_eq!(
        fs::read_to_string(place.work.join("report.csv")).unwrap(),
        "41\t1\n42\t3\n"
    );

    let row = place.lineage(&["--table", "accounts", "--key", "42"]);
    assert!(has(&row, "/bank/accounts?id=42"), "{row:?}");
    assert!(has(&row, "fill.sql") && has(&row, "raise.sql"), "{row:?}");
    assert!(!has(&row, "elsewhere.sql"), "{row:?}");
    let untouched = place.lineage(&["--table", "bank.accounts", "--key", "id=41"]);
    assert!(
        has(&untouched, "fill.sql") && !has(&untouched, "raise.sql"),
        "{untouched:?}"
    );
    for file in ["report.csv", export.to_str().unwrap()] {
        let nodes = place.lineage(&[file]);
        assert!(
            has(&nodes, "fill.sql") && has(&nodes, "raise.sql"),
            "{file}: {nodes:?}"
        );
        assert!(!has(&nodes, "elsewhere.sql"), "{file}: {nodes:?}");
    }
    // An engine without transactions, and a file that the client sent.
    let note = place.lineage(&["--table", "notes", "--key", "2"]);
    assert!(has(&note, "/notes.csv"), "{note:?}");
    history_has_statements_clients_and_values(&place);
}

/// The history of a row, the newest change first.
fn history_has_statements_clients_and_values(place: &DatabasePlace<MariadbServer>) {
    let row = ["of", "--table", "accounts", "--key", "42"];
    let history = place.json(&row)["history"].clone();
    let operations = [0, 1].map(|at| history[at]["change"]["operation"].clone());
    assert_eq!(operations, ["update", "insert"], "{history}");
    assert_eq!(history[0]["change"]["before"]["sum"], "2");
    assert_eq!(history[0]["transaction"]["user"], "root");
    assert_eq!(history[0]["transaction"]["matched_by"], "number");
    let clients = [0, 1].map(|at| history[at]["client"]["argv"].to_string());
    assert!(
        clients.iter().all(|argv| argv.contains("mariadb")),
        "{history}"
    );
    let text = place.text(&row);
    for part in [
        "2 changes, the newest first:",
        "UPDATE accounts SET sum",
        "sum: 2 → 3",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
