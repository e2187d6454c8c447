//! Lines that the server writes late, as on a busy machine.

use std::fs;
use std::thread::{scope, sleep};
use std::time::Duration;

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::database_watcher::DatabaseWatcher;
use backstory_testkit::procs::{children, eventually};
use rustix::process::{Pid, Signal, kill_process};

use crate::watch::place::{PATIENCE, PostgresPlace};

/// The process that writes the server's log.
fn log_writer(place: &PostgresPlace) -> Pid {
    let file = place
        .server
        .log_directory()
        .with_file_name("postmaster.pid");
    let text = fs::read_to_string(file).unwrap();
    let server = text.lines().next().unwrap().parse().unwrap();
    let is_writer = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        name.contains("logger")
    };
    let found = children(server).into_iter().find(is_writer).unwrap();
    Pid::from_raw(found as i32).unwrap()
}

/// Ends a watch while the log's writer is stopped, and lets the writer go on later.
fn ends_before_lines(watch: DatabaseWatcher, writer: Pid) {
    scope(|both| {
        let end = both.spawn(|| watch.end().unwrap());
        // A watch that does not wait ends earlier.
        sleep(Duration::from_secs(2));
        kill_process(writer, Signal::CONT).unwrap();
        end.join().unwrap();
    });
}

#[test]
fn the_end_of_a_watch_waits_for_the_lines_of_the_commits_that_have_arrived() {
    let Some((place, watch)) = PostgresPlace::watched_table("lines that are written late") else {
        return;
    };
    let writer = log_writer(&place);
    kill_process(writer, Signal::STOP).unwrap();
    place.query("INSERT INTO a VALUES (1)");
    let sent = "SELECT count(*) FROM pg_stat_replication WHERE sent_lsn >= pg_current_wal_lsn()";
    let is_sent = eventually(PATIENCE, || place.query(sent) == "1\n");
    ends_before_lines(watch, writer);
    assert!(is_sent);
    place.row_has("a", "1", "VALUES (1)");
}

#[test]
fn a_watch_without_rows_waits_at_its_end_for_the_lines_of_the_last_statements() {
    let Some(place) = PostgresPlace::new("late lines without rows", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let rows = ["--rows", "off"];
    let watch = place.server.watched(&place.stage, &rows).unwrap();
    let writer = log_writer(&place);
    kill_process(writer, Signal::STOP).unwrap();
    place.query("INSERT INTO a VALUES (1)");
    ends_before_lines(watch, writer);
    let text = place.text(&["of", "--table", "a"]);
    assert!(text.contains("VALUES (1)"), "{text}");
}
