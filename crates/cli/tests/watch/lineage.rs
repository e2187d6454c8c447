//! Rows, tables and files lead to each other.

use std::fs;

use backstory_testkit::database_server::DatabaseServer;
use rustix::process::Signal;

use crate::watch::place::{DatabasePlace, PostgresPlace, has};

#[test]
fn an_exported_file_and_a_row_lead_to_the_script_that_filled_the_table() {
    let Some(place) = PostgresPlace::new("the lineage of rows", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int); \
         CREATE TABLE copies (id int PRIMARY KEY, sum int); CREATE TABLE other (id int PRIMARY KEY)",
    );
    let watch = place.watched();
    write_scripts(&place);
    place.record("$SQL -f fill.sql");
    place.record("$SQL -f elsewhere.sql");
    // A client without a port lasts until the watch has seen it, however busy the machine is.
    let raise = "$LOCAL -f raise.sql -c '\\! eval \"$GATE\"'";
    place.record_gated(raise, "UPDATE accounts", || ());
    place.record("$SQL -c 'COPY accounts TO STDOUT' >report.csv");
    // The server itself writes and reads these files.
    let export = place.server.data().join("export.csv");
    let export = export.to_str().unwrap();
    place.query(&format!("COPY accounts TO '{export}'"));
    place.query(&format!("COPY copies FROM '{export}'"));
    place.ends_complete(watch);
    rows_and_files_lead_to_their_scripts(&place, &["report.csv", export]);
    let copied = place.lineage(&["--table", "copies", "--key", "42"]);
    assert!(has(&copied, "raise.sql"), "{copied:?}");
    let clients = ["raise.sql", "fill.sql"];
    history_has_statements_clients_and_values(&place, "ann", clients);
    let history = place.json(&["of", "--table", "accounts", "--key", "42"])["history"].clone();
    assert_eq!(history[0]["transaction"]["application"], "psql");
    answers_name_each_command_once(&place);

    // The server keeps nothing of the watch.
    let left = "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots)";
    assert_eq!(place.query(left), "0\n");
}

#[test]
fn each_client_of_one_run_has_its_own_transactions() {
    let Some(place) = PostgresPlace::new("clients of one run", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int); CREATE TABLE other (id int PRIMARY KEY)",
    );
    let watch = place.watched();
    write_scripts(&place);
    let lines = ["-f fill.sql", "-f elsewhere.sql", "-f raise.sql"];
    let lines = lines.map(|line| format!("$SQL {line}\n"));
    let export = "$SQL -c 'COPY accounts TO STDOUT' >report.csv";
    place.record(&(lines.concat() + export));
    watch.end().unwrap();
    let row = ["--table", "accounts", "--key", "42"];
    for question in [&row[..], &["report.csv"]] {
        let nodes = place.lineage(question);
        let scripts = ["fill.sql", "raise.sql", "elsewhere.sql"].map(|name| has(&nodes, name));
        assert_eq!(scripts, [true, true, false], "{nodes:?}");
        let other = nodes.iter().filter(|node| node.contains("INTO other"));
        assert_eq!(other.count(), 0, "{nodes:?}");
        let text = place.text(&[&["of"][..], question].concat());
        assert!(
            text.contains("raise.sql") && !text.contains("tcp:"),
            "{text}"
        );
    }
}

#[test]
fn a_file_leads_through_a_table_that_its_own_script_made_and_filled() {
    for (what, end) in [
        ("a table that is filled at once", "SELECT 1;"),
        ("a table that is dropped at once", "DROP TABLE accounts;"),
    ] {
        let Some(place) = PostgresPlace::new(what, &[]) else {
            return;
        };
        let watch = place.watched();
        place.write("sums.csv", "id,sum\n42,1\n");
        let script = format!(
            "CREATE TABLE accounts (id int PRIMARY KEY, sum int);\n\
             \\copy accounts FROM 'sums.csv' WITH (FORMAT csv, HEADER)\n\
             SELECT sum(sum) FROM accounts;\n\
             \\copy (SELECT id, sum FROM accounts) TO 'report.csv' WITH (FORMAT csv)\n{end}\n"
        );
        place.write("report.sql", &script);
        place.record("$SQL -f report.sql");
        place.ends_complete(watch);
        let nodes = place.lineage(&["--no-possible", "report.csv"]);
        let is_filled = nodes
            .iter()
            .any(|node| node.contains("accounts FROM STDIN"));
        assert!(is_filled && has(&nodes, "/sums.csv"), "{what}: {nodes:?}");
        let row = place.json(&["of", "--table", "accounts", "--key", "42"]);
        let client = row["history"][0]["client"]["argv"].to_string();
        assert!(client.contains("report.sql"), "{what}: {row}");
    }
}

#[test]
fn a_connection_that_is_used_later_is_no_source_of_its_client() {
    let Some(place) = PostgresPlace::new("a client that ends unseen", &[]) else {
        return;
    };
    place.query("CREATE TABLE accounts (id int PRIMARY KEY, sum int)");
    let watch = place.watched();
    place.write(
        "fill.sql",
        "\\! sleep 0.01\nINSERT INTO accounts VALUES (42, 2);",
    );
    // The watch is not sure which process sent the last statement. So this one has another
    // connection in its run.
    let line = "$SQL -f fill.sql -c '\\! eval \"$GATE\"' -c 'SELECT 1'";
    place.record_gated(line, "INSERT INTO accounts", || {
        watch.signal(Signal::STOP).unwrap();
    });
    place.wait_for_line("SELECT 1");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    let text = place.text(&["of", "--table", "accounts", "--key", "42"]);
    assert!(
        text.contains("fill.sql") && !text.contains("tcp:"),
        "{text}"
    );
}

#[test]
fn a_row_that_may_have_changed_between_two_watches_possibly_leads_to_the_older_one() {
    let Some(place) = PostgresPlace::new("two watches with a pause", &[]) else {
        return;
    };
    place.query("CREATE TABLE accounts (id int PRIMARY KEY, sum int)");
    let first = place.watched();
    place.query("INSERT INTO accounts VALUES (42, 1)");
    first.end().unwrap();
    place.query("UPDATE accounts SET sum = 7");
    let second = place.watched();
    place.query("UPDATE accounts SET sum = sum + 1");
    second.end().unwrap();
    let row = ["--table", "accounts", "--key", "42"];
    let nodes = place.lineage(&[&row[..], &["--no-possible"]].concat());
    let is_there = |nodes: &[String]| nodes.iter().any(|node| node.contains("INSERT"));
    assert!(!is_there(&nodes), "{nodes:?}");
    let nodes = place.lineage(&row);
    assert!(is_there(&nodes), "{nodes:?}");
    let text = place.text(&[&["of"][..], &row].concat());
    assert!(text.contains("  not watched "), "{text}");
    assert!(!text.contains("1 → 8"), "{text}");
    let history = place.json(&[&["of"][..], &row].concat())["history"].clone();
    let unwatched = [0, 1].map(|at| history[at]["unwatched"].as_array().unwrap().len());
    assert_eq!(unwatched, [1, 0], "{history}");
}

/// Files with statements that change rows 41 and 42 of `accounts`, and another table.
pub fn write_scripts<S: DatabaseServer>(place: &DatabasePlace<S>) {
    place.write("fill.sql", "INSERT INTO accounts VALUES (41, 1), (42, 2);");
    place.write(
        "raise.sql",
        "BEGIN; UPDATE accounts SET sum = sum + 1 WHERE id = 42; COMMIT;",
    );
    place.write("elsewhere.sql", "INSERT INTO other VALUES (7);");
}

/// Rows and exported files lead to the scripts that made them, and to no other.
pub fn rows_and_files_lead_to_their_scripts<S: DatabaseServer>(
    place: &DatabasePlace<S>,
    files: &[&str],
) {
    assert_eq!(
        fs::read_to_string(place.work.join("report.csv")).unwrap(),
        "41\t1\n42\t3\n"
    );
    let row = place.lineage(&["--table", "accounts", "--key", "42"]);
    assert!(has(&row, "accounts?id=42"), "{row:?}");
    let untouched = place.lineage(&["--table", "accounts", "--key", "id=41"]);
    assert!(
        has(&untouched, "fill.sql") && !has(&untouched, "raise.sql"),
        "{untouched:?}"
    );
    let lineages = files.iter().map(|file| place.lineage(&[file]));
    for nodes in lineages.chain([row]) {
        assert!(
            has(&nodes, "fill.sql") && has(&nodes, "raise.sql"),
            "{nodes:?}"
        );
        assert!(!has(&nodes, "elsewhere.sql"), "{nodes:?}");
    }
}

/// The history of a row, the newest change first. `clients`: words of their commands.
pub fn history_has_statements_clients_and_values<S: DatabaseServer>(
    place: &DatabasePlace<S>,
    user: &str,
    clients: [&str; 2],
) {
    let row = ["of", "--table", "accounts", "--key", "42"];
    let history = place.json(&row)["history"].clone();
    let operations = [0, 1].map(|at| history[at]["change"]["operation"].clone());
    assert_eq!(operations, ["update", "insert"], "{history}");
    assert_eq!(history[0]["transaction"]["user"], user);
    for (at, client) in clients.iter().enumerate() {
        let command = history[at]["client"]["argv"].to_string();
        assert!(command.contains(client), "{history}");
    }
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
fn answers_name_each_command_once(place: &PostgresPlace) {
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
