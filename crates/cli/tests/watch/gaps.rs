//! Gaps are reported, and the database goes on.

use std::time::Duration;

use backstory_testkit::procs::eventually;

use crate::place::DatabasePlace;

const PATIENCE: Duration = Duration::from_secs(30);

fn reasons(place: &DatabasePlace) -> String {
    let show = place.json(&["show"]);
    show["incomplete_because"].to_string()
}

#[test]
#[ignore = "a server of its own"]
fn a_server_that_stops_ends_the_watch_with_a_reason() {
    let Some(place) = DatabasePlace::new("the end of a server", "") else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let mut watch = place.server.watched(&place.stage, &[]).unwrap();
    place.query("INSERT INTO a VALUES (1)");
    place
        .server
        .control(&place.stage, &["-m", "fast", "-w", "stop"])
        .unwrap();
    let said = watch.ended().unwrap();
    assert!(said.contains("the server is gone"), "{said}");
    assert!(
        reasons(&place).contains("row changes from"),
        "{}",
        reasons(&place)
    );
    let row = place.lineage(&["--table", "a", "--key", "1"]);
    assert!(
        row.iter().any(|node| node.contains("INSERT INTO a")),
        "{row:?}"
    );
}

#[test]
#[ignore = "a server of its own"]
fn an_update_of_a_table_that_is_not_followed_yet_is_a_gap() {
    let Some(place) = DatabasePlace::new("an update of a new table", "") else {
        return;
    };
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    place.query(
        "CREATE TABLE a (id int PRIMARY KEY, x int); INSERT INTO a VALUES (1, 1); \
         UPDATE a SET x = 2",
    );
    watch.end().unwrap();
    assert!(
        reasons(&place).contains("updates of rows of public.a"),
        "{}",
        reasons(&place)
    );
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    place
        .query("UPDATE a SET x = 3; CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1)");
    watch.end().unwrap();
    assert_eq!(reasons(&place), "[]");
}

#[test]
#[ignore = "a server of its own"]
fn a_stream_that_the_server_ends_is_a_gap_and_another_one_begins() {
    let Some(place) = DatabasePlace::new("a broken stream", "") else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    place.query("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    let streams =
        || place.query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
    assert!(eventually(PATIENCE, || streams() == "1\n"));
    place.query("INSERT INTO a VALUES (2)");
    watch.end().unwrap();
    assert!(
        reasons(&place).contains("row changes from"),
        "{}",
        reasons(&place)
    );
    let row = place.lineage(&["--table", "a", "--key", "2"]);
    assert!(
        row.iter().any(|node| node.contains("INSERT INTO a")),
        "{row:?}"
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_statement_that_does_not_parse_is_recorded_with_its_rows() {
    let Some(place) = DatabasePlace::new("a statement that does not parse", "") else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    // PL/pgSQL in a DO block is a language of its own.
    place.query("DO LANGUAGE plpgsql $$ BEGIN INSERT INTO a VALUES (3); END $$");
    watch.end().unwrap();
    assert!(
        reasons(&place).contains("cannot be parsed"),
        "{}",
        reasons(&place)
    );
    let row = place.lineage(&["--table", "a", "--key", "3"]);
    assert!(
        row.iter().any(|node| node.contains("DO LANGUAGE")),
        "{row:?}"
    );
}

#[test]
#[ignore = "a server of its own"]
fn updates_of_a_table_without_a_key_succeed_while_it_is_watched() {
    let Some(place) = DatabasePlace::new("tables without keys", "") else {
        return;
    };
    place.query("CREATE TABLE a (x int)");
    let watch = place.server.watched(&place.stage, &[]).unwrap();
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
fn a_killed_watch_leaves_no_slot_and_the_next_one_removes_its_publications() {
    let Some(place) = DatabasePlace::new("a killed watch", "") else {
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
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    watch.end().unwrap();
    assert_eq!(place.query("SELECT count(*) FROM pg_publication"), "0\n");
}

#[test]
#[ignore = "a server of its own"]
fn a_setting_that_is_missing_is_named_with_its_remedy() {
    let settings = "wal_level = replica";
    let Some(place) = DatabasePlace::new("a setting", settings) else {
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
