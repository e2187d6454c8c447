//! Rows, tables and files of a MariaDB database lead to each other.

use rustix::process::Signal;

use crate::watch::lineage::{
    history_has_statements_clients_and_values, rows_and_files_lead_to_their_scripts, write_scripts,
};
use crate::watch::place::{MariadbPlace, has};

#[test]
fn rows_and_exports_of_mariadb_lead_to_the_scripts_that_filled_the_table() {
    let Some(place) = MariadbPlace::new("the lineage of rows of MariaDB", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int) ENGINE=InnoDB; \
         CREATE TABLE other (id int PRIMARY KEY) ENGINE=InnoDB; \
         CREATE TABLE notes (id int PRIMARY KEY, text varchar(20)) ENGINE=Aria",
    );
    let watch = place.watched();
    write_scripts(&place);
    place.write("notes.csv", "1,first\n2,second\n");
    // These clients last until the watch has seen them, however busy the machine is.
    let load = "LOAD DATA LOCAL INFILE 'notes.csv' INTO TABLE notes FIELDS TERMINATED BY ','";
    place.write("load.sql", &format!("{load};"));
    place.write("export.sql", "SELECT * FROM accounts;");
    let record = |file: &str, client: &str, statement: &str| {
        let line = format!("{{ cat {file}; echo; eval \"$GATE\"; }} | {client}");
        place.record_gated(&line, statement, || ());
    };
    record("fill.sql", "$SQL", "INSERT INTO accounts");
    place.record("$SQL <elsewhere.sql");
    record("raise.sql", "$LOCAL", "UPDATE accounts");
    record("load.sql", "$SQL", load);
    record("export.sql", "$SQL >report.csv", "SELECT * FROM accounts");
    let export = place.server.data().join("export.csv");
    place.query(&format!(
        "SELECT * INTO OUTFILE '{}' FROM accounts",
        export.display()
    ));
    place.ends_complete(watch);
    let files = ["report.csv", export.to_str().unwrap()];
    rows_and_files_lead_to_their_scripts(&place, &files);
    // An engine without transactions, and a file that the client sent.
    let note = place.lineage(&["--table", "notes", "--key", "2"]);
    assert!(has(&note, "/notes.csv"), "{note:?}");
    history_has_statements_clients_and_values(&place, "root", ["mariadb"; 2]);
    let row = ["of", "--table", "accounts", "--key", "42"];
    let history = place.json(&row)["history"].clone();
    assert_eq!(history[0]["change"]["before"]["sum"], "2");
    assert_eq!(history[0]["transaction"]["matched_by"], "number");
}

/// A client whose last statement comes while the watch is stopped. It is gone when the watch goes
/// on, and the port that the watch knows since the connection proves which recorded process it was.
#[test]
fn a_recorded_client_of_mariadb_is_certain_by_its_port_and_another_one_possible() {
    let Some((place, watch)) = MariadbPlace::watched_table("clients of MariaDB that have ended")
    else {
        return;
    };
    // Each client lasts until the watch has seen it, however busy the machine is.
    let seen = |key: u32| format!("SELECT {key} FROM a");
    let insert_unseen = |key: u32| {
        let insert = format!("INSERT INTO a VALUES ({key})");
        let seen = seen(key);
        format!("{{ echo '{seen};'; eval \"$GATE\"; echo '{insert};'; }} | $SQL")
    };
    let stop = || watch.signal(Signal::STOP).unwrap();
    place.record_gated(&insert_unseen(1), &seen(1), stop);
    watch.signal(Signal::CONT).unwrap();
    place.execute_gated(&insert_unseen(2), &seen(2), stop);
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    let change = |key: &str| {
        let row = ["of", "--table", "a", "--key", key];
        place.json(&row)["history"][0].clone()
    };
    let recorded = change("1");
    let words = recorded["client"]["argv"].to_string();
    assert!(words.contains("mariadb"), "{recorded}");
    assert_eq!(recorded["possible_clients"], serde_json::json!([]));
    let other = change("2");
    assert_eq!(other["client"], serde_json::Value::Null, "{other}");
    let possible = other["possible_clients"].as_array().unwrap();
    assert_eq!(possible.len(), 1, "{other}");
}

/// Clients whose last answers came while the watch was stopped. The lines of their statements are
/// read later than their files were written.
#[test]
fn a_file_leads_to_its_table_although_the_log_of_mariadb_was_read_late() {
    let Some((place, watch)) = MariadbPlace::watched_table("a log of MariaDB that is read late")
    else {
        return;
    };
    place.write("fill.sql", "INSERT INTO a VALUES (7);");
    let gated = |first: &str, then: &str, client: &str| {
        format!("{{ echo '{first};'; eval \"$GATE\"; echo '{then};'; }} | {client}")
    };
    let fill = "{ cat fill.sql; echo; eval \"$GATE\"; } | $SQL";
    place.record_gated(fill, "INSERT INTO a", || ());
    let stop = || watch.signal(Signal::STOP).unwrap();
    for (number, client, file) in [(1, "$SQL", "certain.txt"), (2, "$LOCAL", "local.txt")] {
        let seen = format!("SELECT {number} FROM a");
        let line = gated(&seen, "SELECT id FROM a", &format!("{client} >{file}"));
        place.record_gated(&line, &seen, stop);
        watch.signal(Signal::CONT).unwrap();
    }
    // No look of the watch found these clients. The log has one name for both of their hosts, so
    // their connections are only possibly those of the watch.
    stop();
    place.record("$LOCAL -e 'SELECT id FROM a' >unseen.txt");
    place.record("$SQL -e 'SELECT id FROM a' >unseen_tcp.txt");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    let files = ["certain.txt", "local.txt", "unseen.txt", "unseen_tcp.txt"];
    for file in files {
        let nodes = place.lineage(&[file]);
        assert!(has(&nodes, "/a") && has(&nodes, "fill.sql"), "{nodes:?}");
        let text = place.text(&["of", "--possible", file]);
        assert!(!text.contains("'transaction"), "{text}");
        assert!(text.contains("transaction"), "{text}");
    }
    let certain = place.lineage(&["--no-possible", "certain.txt"]);
    assert!(has(&certain, "fill.sql"), "{certain:?}");
    let uses = place.json(&["uses", "--level", "all", "--table", "a"]);
    for file in files {
        assert!(uses.to_string().contains(&format!("/{file}\"")), "{uses}");
    }
}
