//! Gaps are reported, and the database goes on.

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::procs::eventually;

use crate::watch::place::{PATIENCE, PostgresPlace};

#[test]
#[ignore = "a server of its own"]
fn a_server_that_stops_ends_the_watch_with_a_reason() {
    let Some((place, mut watch)) = PostgresPlace::watched_table("the end of a server") else {
        return;
    };
    place.query("INSERT INTO a VALUES (1)");
    place
        .server
        .control(&place.stage, &["-m", "fast", "-w", "stop"])
        .unwrap();
    let (said, status) = watch.ended_with().unwrap();
    assert!(said.contains("the server is gone"), "{said}");
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(place.json(&["show"])["exit"], 1);
    place.has_reason("row changes from");
    place.row_has("a", "1", "INSERT INTO a");
}

#[test]
#[ignore = "a server of its own"]
fn an_update_of_a_table_that_is_not_followed_yet_is_a_gap() {
    let Some(place) = PostgresPlace::new("an update of a new table", &[]) else {
        return;
    };
    let watch = place.watched();
    place.query(
        "CREATE TABLE a (id int PRIMARY KEY, x int); INSERT INTO a VALUES (1, 1); \
         UPDATE a SET x = 2",
    );
    watch.end().unwrap();
    place.has_reason("updates of rows of public.a");
    let watch = place.watched();
    place
        .query("UPDATE a SET x = 3; CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1)");
    watch.end().unwrap();
    assert_eq!(place.reasons(), "[]");
}

#[test]
#[ignore = "a server of its own"]
fn a_stream_that_the_server_ends_is_a_gap_and_another_one_begins() {
    let Some((place, watch)) = PostgresPlace::watched_table("a broken stream") else {
        return;
    };
    place.query("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    let streams =
        || place.query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
    assert!(eventually(PATIENCE, || streams() == "1\n"));
    place.query("INSERT INTO a VALUES (2)");
    watch.end().unwrap();
    place.has_reason("row changes from");
    place.row_has("a", "2", "INSERT INTO a");
}

#[test]
#[ignore = "a server of its own"]
fn a_statement_that_does_not_parse_is_recorded_with_its_rows_and_possible_tables() {
    let Some(place) = PostgresPlace::new("a statement that does not parse", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)");
    let watch = place.watched();
    place.query("INSERT INTO b VALUES (3)");
    // PL/pgSQL in a DO block is a language of its own.
    place.query("DO LANGUAGE plpgsql $$ BEGIN INSERT INTO a SELECT id FROM b; END $$");
    watch.end().unwrap();
    place.has_reason("cannot be parsed");
    place.row_has("a", "3", "DO LANGUAGE");
    // The table that it names is possibly read.
    let row = ["of", "--table", "a", "--key", "3"];
    let certain = place.text(&row);
    assert!(!certain.contains("INSERT INTO b"), "{certain}");
    let possible = place.text(&[&row[..], &["--possible"]].concat());
    assert!(possible.contains("INSERT INTO b"), "{possible}");
}

#[test]
#[ignore = "a server of its own"]
fn changes_beyond_the_limit_of_a_transaction_are_a_gap() {
    let what = "a transaction with too many changes";
    let Some((place, watch)) = PostgresPlace::watched_table(what) else {
        return;
    };
    place.query("INSERT INTO a SELECT generate_series(1, 100002)");
    place.wait_for_record("\"rows_left_out\":2");
    watch.end().unwrap();
    let words = "2 row changes are unknown";
    place.has_reason(words);
    place.row_has("a", "1", "generate_series");
    // The question about a row that is missing says why.
    let said = place.said(&["of", "--table", "a", "--key", "100002"]);
    assert!(said.contains(words), "{said}");
}

#[test]
#[ignore = "a server of its own"]
fn updates_of_a_table_without_a_key_succeed_while_it_is_watched() {
    let Some(place) = PostgresPlace::new("tables without keys", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (x int)");
    let watch = place.watched();
    place.query("INSERT INTO a VALUES (1); UPDATE a SET x = 2; CREATE TABLE b (x int)");
    place.query("INSERT INTO b VALUES (1); UPDATE b SET x = 2; DELETE FROM b");
    watch.end().unwrap();
    let table = place.lineage(&["--table", "a"]);
    assert!(
        table.iter().any(|node| node.contains("INSERT INTO a")),
        "{table:?}"
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_log_that_is_removed_unread_is_a_gap_between_two_times() {
    let Some((place, watch)) = PostgresPlace::watched_table("a removed log") else {
        return;
    };
    // The watch has read the session's first lines when it has read as much as the log has.
    let size = || -> u64 {
        let files = std::fs::read_dir(place.server.log_directory()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let before = (size(), watch.bytes_read());
    let mut session = place.server.session(&place.stage).unwrap();
    session.query("INSERT INTO a VALUES (1);").unwrap();
    assert!(eventually(PATIENCE, || watch.bytes_read() - before.1
        > size() - before.0));
    watch.signal(rustix::process::Signal::STOP).unwrap();
    // The names of the log's files have seconds.
    let names = || -> std::collections::BTreeSet<std::path::PathBuf> {
        let files = std::fs::read_dir(place.server.log_directory()).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    };
    let rotated = || {
        let old = names();
        let is_new = || {
            place.query("SELECT pg_rotate_logfile()");
            names() != old
        };
        assert!(eventually(PATIENCE, is_new));
        names().difference(&old).cloned().collect::<Vec<_>>()
    };
    let unread = rotated();
    session.query("INSERT INTO a VALUES (2);").unwrap();
    rotated();
    for file in unread {
        std::fs::remove_file(file).unwrap();
    }
    session.query("INSERT INTO a VALUES (3);").unwrap();
    watch.signal(rustix::process::Signal::CONT).unwrap();
    drop(session);
    watch.end().unwrap();
    assert_eq!(place.query("SELECT count(*) FROM a"), "3\n");
    place.has_reason("lines of the server's log, written between 20");
}

#[test]
#[ignore = "a server of its own"]
fn a_watch_that_does_not_answer_loses_its_slot_and_the_database_goes_on() {
    let Some(place) = PostgresPlace::new("a slow watch", &["wal_sender_timeout = 2s"]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let watch = place.watched();
    watch.signal(rustix::process::Signal::STOP).unwrap();
    // The server ends the stream, and drops the temporary slot with all that it kept.
    let slots = || place.query("SELECT count(*) FROM pg_replication_slots");
    place.query("INSERT INTO a SELECT generate_series(1, 100000)");
    assert!(eventually(PATIENCE, || slots() == "0\n"));
    place.query("INSERT INTO a VALUES (0)");
    watch.signal(rustix::process::Signal::CONT).unwrap();
    assert!(eventually(PATIENCE, || slots() == "1\n"));
    place.query("INSERT INTO a VALUES (200000)");
    watch.end().unwrap();
    place.has_reason("row changes from 20");
    place.row_has("a", "200000", "VALUES (200000)");
}

#[test]
#[ignore = "a server of its own"]
fn a_killed_watch_leaves_no_slot_and_the_next_one_removes_its_publications() {
    let Some(place) = PostgresPlace::new("a killed watch", &[]) else {
        return;
    };
    place
        .server
        .watched(&place.stage, &[])
        .unwrap()
        .kill()
        .unwrap();
    let slots = || place.query("SELECT count(*) FROM pg_replication_slots");
    assert!(eventually(PATIENCE, || slots() == "0\n"));
    assert_eq!(place.query("SELECT count(*) FROM pg_publication"), "2\n");
    let watch = place.watched();
    watch.end().unwrap();
    assert_eq!(place.query("SELECT count(*) FROM pg_publication"), "0\n");
}

#[test]
#[ignore = "a server of its own"]
fn a_setting_that_is_missing_is_named_with_its_remedy() {
    let Some(place) = PostgresPlace::new("a setting", &["wal_level = replica"]) else {
        return;
    };
    let error = place
        .server
        .watched(&place.stage, &[])
        .err()
        .unwrap()
        .to_string();
    let words = "wal_level is replica, but recording needs logical: change it with ALTER SYSTEM";
    assert!(error.contains(words), "{error}");
}

/// The server invalidates a slot that holds too much of its log. The watch does not read meanwhile.
#[test]
#[ignore = "a server of its own"]
fn a_slot_that_fills_the_disk_is_dropped_with_a_gap_and_the_database_goes_on() {
    let limits = [
        "max_slot_wal_keep_size = 1MB",
        "max_wal_size = 32MB",
        "wal_sender_timeout = 0",
    ];
    let Some(place) = PostgresPlace::new("a slot that fills the disk", &limits) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY, text text)");
    let watch = place.watched();
    watch.signal(rustix::process::Signal::STOP).unwrap();
    let slots = || place.query("SELECT count(*) FROM pg_replication_slots");
    assert_eq!(slots(), "1\n");
    // Each round fills more than a segment of the log. The checkpoint removes the segments that the
    // slot may no longer hold.
    let mut rounds = 0;
    assert!(eventually(PATIENCE, || {
        rounds += 1;
        place.query(&format!(
            "INSERT INTO a SELECT {rounds} * 100000 + n, repeat('x', 500) FROM generate_series(1, 40000) n"
        ));
        place.query("CHECKPOINT");
        slots() == "0\n"
    }));
    place.query("INSERT INTO a VALUES (0, 'after')");
    watch.signal(rustix::process::Signal::CONT).unwrap();
    let streams =
        || place.query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
    assert!(eventually(PATIENCE, || streams() == "1\n"));
    place.query("INSERT INTO a VALUES (-1, 'later')");
    watch.end().unwrap();
    place.has_reason("row changes from");
    let row = place.lineage(&["--table", "a", "--key", "-1"]);
    assert!(row.iter().any(|node| node.contains("'later'")), "{row:?}");
}

/// A transaction that stays open holds the slot back, however fast the watch reads.
#[test]
fn a_slot_that_an_open_transaction_holds_back_ends_at_its_limit_and_statements_go_on() {
    let Some(place) = PostgresPlace::new("a slot that is held back", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE a (id int PRIMARY KEY, text text); CREATE TABLE b (id int PRIMARY KEY); \
         CREATE FUNCTION fill(int) RETURNS void LANGUAGE sql AS 'INSERT INTO b VALUES ($1)'",
    );
    let limit = ["--wal-limit", "1M"];
    let watch = place.server.watched(&place.stage, &limit).unwrap();
    let mut session = place.server.session(&place.stage).unwrap();
    session
        .query("BEGIN; INSERT INTO a VALUES (0, 'open');")
        .unwrap();
    place.query("INSERT INTO a SELECT n, repeat('x', 500) FROM generate_series(1, 10000) n");
    let slots = || place.query("SELECT count(*) FROM pg_replication_slots");
    assert!(eventually(PATIENCE, || slots() == "0\n"));
    place.query("DELETE FROM a WHERE id = 7");
    place.query("SELECT fill(1)");
    drop(session);
    watch.end().unwrap();
    let reasons = place.reasons();
    for part in ["row changes from", "on are unknown", "--wal-limit"] {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
    assert_eq!(place.query("SELECT count(*) FROM pg_publication"), "0\n");
    let text = place.text(&["of", "--tree", "--table", "a"]);
    assert!(text.contains("DELETE FROM a"), "{text}");
    let text = place.text(&["of", "--tree", "--possible", "--table", "b"]);
    assert!(text.contains("SELECT fill(1)"), "{text}");
    // The deletion of the row is missing, and the answers say so.
    for question in [
        &["of", "--table", "a", "--key", "7"][..],
        &["of", "--table", "a", "--column", "text"],
        &["of", "--table", "a"],
        &["uses", "--table", "a", "--column", "id"],
    ] {
        let said = place.said(question);
        for part in [
            "run ",
            " is not complete",
            "row changes from",
            "--wal-limit",
        ] {
            assert!(said.contains(part), "{question:?} {part}: {said}");
        }
    }
}
