//! Gaps of a watched MariaDB database are reported, and the database goes on.

use backstory_testkit::database_server::DatabaseServer;
use std::fs;

use backstory_testkit::procs::eventually;
use rustix::process::Signal;

use crate::watch::place::{MariadbPlace, PATIENCE};

#[test]
#[ignore = "a server of its own"]
fn a_mariadb_server_that_stops_ends_the_watch_with_a_reason() {
    let Some((mut place, mut watch)) = MariadbPlace::watched_table("the end of MariaDB") else {
        return;
    };
    place.query("INSERT INTO a VALUES (1)");
    place.server.stop().unwrap();
    let (said, status) = watch.ended_with().unwrap();
    assert!(said.contains("the server is gone"), "{said}");
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(place.json(&["show"])["exit"], 1);
    place.has_reason("row changes from 20");
    place.row_has("a", "1", "VALUES (1)");
}

#[test]
#[ignore = "a server of its own"]
fn after_a_restart_of_mariadb_the_rows_go_on_and_the_reason_has_its_time() {
    let Some((mut place, watch)) = MariadbPlace::watched_table("a restart of MariaDB") else {
        return;
    };
    place.query("INSERT INTO a VALUES (1)");
    place.server.stop().unwrap();
    place.server.run(&place.stage).unwrap();
    let streams = || place.query("SHOW PROCESSLIST").contains("Binlog Dump");
    assert!(eventually(PATIENCE, streams));
    place.query("INSERT INTO a VALUES (2)");
    watch.end().unwrap();
    place.has_reason("from 20");
    for key in ["1", "2"] {
        place.row_has("a", key, &format!("VALUES ({key})"));
    }
}

#[test]
#[ignore = "a server of its own"]
fn rows_of_a_binlog_that_was_removed_unread_are_a_gap() {
    let Some(place) = MariadbPlace::new("a removed binlog", &["--net-write-timeout=1"]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY, t longtext)");
    let watch = place.watched();
    watch.signal(Signal::STOP).unwrap();
    // The server ends the stream, and does not wait.
    place.query("INSERT INTO a SELECT seq, repeat('x', 100000) FROM seq_1_to_300");
    let streams = || place.query("SHOW PROCESSLIST").contains("Binlog Dump");
    assert!(eventually(PATIENCE, || !streams()));
    place.query("FLUSH BINARY LOGS; FLUSH BINARY LOGS");
    // A file stays until its transactions are durable in the engine, and no error says so.
    let removed = || {
        place.query("PURGE BINARY LOGS TO 'binlog.000003'");
        !place.query("SHOW BINARY LOGS").contains("binlog.000001")
    };
    assert!(eventually(PATIENCE, removed));
    watch.signal(Signal::CONT).unwrap();
    assert!(eventually(PATIENCE, streams));
    place.query("INSERT INTO a VALUES (1000, '')");
    watch.end().unwrap();
    place.has_reason("row changes from 20");
    place.row_has("a", "1000", "VALUES (1000");
}

#[test]
#[ignore = "a server of its own"]
fn changes_beyond_the_limit_of_a_transaction_of_mariadb_are_a_gap() {
    let what = "a transaction of MariaDB with too many changes";
    let Some((place, watch)) = MariadbPlace::watched_table(what) else {
        return;
    };
    place.query("INSERT INTO a SELECT seq FROM seq_1_to_100002");
    place.wait_for_record("\"rows_left_out\":2");
    watch.end().unwrap();
    place.has_reason("2 row changes are unknown");
    place.row_has("a", "1", "seq_1_to_100002");
}

#[test]
#[ignore = "a server of its own"]
fn a_log_of_statements_that_was_removed_unread_is_a_gap_between_two_times() {
    let Some((place, watch)) = MariadbPlace::watched_table("a removed log of MariaDB") else {
        return;
    };
    place.query("INSERT INTO a VALUES (1)");
    watch.signal(Signal::STOP).unwrap();
    place.query("INSERT INTO a VALUES (2); SET GLOBAL server_audit_file_rotate_now=ON");
    place.query("INSERT INTO a VALUES (3); SET GLOBAL server_audit_file_rotate_now=ON");
    for number in ["1", "2"] {
        let log = place
            .server
            .data()
            .join(format!("server_audit.log.{number}"));
        fs::remove_file(log).unwrap();
    }
    place.query("INSERT INTO a VALUES (4)");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    place.has_reason("lines of the server's log, written between");
    place.has_reason("transactions have no statement");
}

#[test]
#[ignore = "a server of its own"]
fn a_setting_of_mariadb_that_is_missing_is_named_with_its_remedy() {
    let settings = ["--binlog-format=MIXED"];
    let Some(place) = MariadbPlace::new("a setting of MariaDB", &settings) else {
        return;
    };
    let error = place.server.watched(&place.stage, &[]).err();
    let error = error.unwrap().to_string();
    let words = "binlog_format is MIXED, but recording needs ROW: change it with SET GLOBAL";
    assert!(error.contains(words), "{error}");
}

#[test]
#[ignore = "a server of its own"]
fn a_watch_through_the_socket_follows_the_log_into_new_files() {
    let settings = ["--server_audit_file_rotate_size=2000"];
    let Some(place) = MariadbPlace::new("a small log of MariaDB", &settings) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let watch = place.server.watched_at_socket(&place.stage).unwrap();
    for key in 0..30 {
        place.query(&format!("INSERT INTO a VALUES ({key})"));
    }
    place.ends_complete(watch);
    for key in [0, 15, 29] {
        place.row_has("a", &key.to_string(), &format!("VALUES ({key})"));
    }
}

/// The log of statements has the tables that each one opened.
#[test]
#[ignore = "a server of its own"]
fn a_statement_of_mariadb_that_does_not_parse_leads_to_the_tables_that_it_opened() {
    let Some(place) = MariadbPlace::new("a statement of MariaDB that does not parse", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)");
    let watch = place.watched();
    place.query("INSERT INTO b VALUES (3)");
    place.query("SET STATEMENT max_statement_time = 100 FOR INSERT INTO a SELECT id FROM b");
    place.ends_complete(watch);
    let row = ["--possible", "--table", "a", "--key", "3"];
    let history = place.json(&[&["of"][..], &row].concat())["history"].clone();
    let statement = &history[0]["transaction"]["statements"][0];
    let text = statement["text"].as_str().unwrap();
    assert!(text.starts_with("SET STATEMENT"), "{history}");
    assert!(statement["unparsed"].is_string(), "{statement}");
    let nodes = place.lineage(&row);
    assert!(
        nodes.iter().any(|node| node.contains("INSERT INTO b")),
        "{nodes:?}"
    );
}
