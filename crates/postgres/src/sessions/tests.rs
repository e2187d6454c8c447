//! Tests of the table of sessions.

use super::*;
use crate::log_line::LogFormat;
use backstory_database::catalog::Catalog;
use backstory_database::client_process::{ClientProcess, SessionClient};

fn line(message: &str, virtual_id: &str, id: u32) -> LogLine {
    let text = serde_json::json!({
        "timestamp": "2026-11-22 12:00:00.000 UTC", "user": "ann", "dbname": "bank",
        "pid": 7, "session_id": "s", "vxid": virtual_id, "txid": id, "message": message,
        "backend_type": "client backend", "error_severity": "LOG",
    });
    LogLine::parse(text.to_string().as_bytes(), LogFormat::Json).unwrap()
}

fn take(table: &mut SessionTable, line: &LogLine, time: i64) {
    table.take(line, time, Instant::now());
}

fn table() -> SessionTable {
    SessionTable {
        database: "bank".to_owned(),
        ..SessionTable::default()
    }
}

#[test]
fn statements_of_one_virtual_id_are_one_transaction() {
    let mut table = table();
    take(&mut table, &line("statement: BEGIN", "3/1", 0), 10);
    take(
        &mut table,
        &line("statement: UPDATE a SET x = 1", "3/1", 0),
        20,
    );
    take(&mut table, &line("statement: COMMIT", "3/1", 742), 30);
    take(&mut table, &line("statement: SELECT 1", "3/2", 0), 40);
    assert_eq!(table.transactions.len(), 2);
    let first = &table.transactions[&1];
    assert_eq!(
        (&first.id, first.began, first.statements.len()),
        (&Some(TransactionNumber::Plain(742)), 10, 3)
    );
    assert_eq!(first.ended.map(|(time, _)| time), Some(40));
    let may_write = [1, 2].map(|key| table.transactions[&key].may_write(&Catalog::default()));
    assert_eq!(may_write, [true, false]);
}

#[test]
fn a_transaction_that_is_rolled_back_changes_nothing_unless_it_goes_back_to_a_savepoint() {
    let ends_with = |last: &[&str]| {
        let mut table = table();
        for text in ["statement: BEGIN", "statement: DELETE FROM a"]
            .iter()
            .chain(last)
        {
            take(&mut table, &line(text, "3/1", 0), 10);
        }
        table.transactions[&1].may_write(&Catalog::default())
    };
    assert!(ends_with(&["statement: COMMIT"]));
    assert!(!ends_with(&["statement: ROLLBACK;"]));
    assert!(!ends_with(&["statement: /* by ann */ ROLLBACK"]));
    assert!(ends_with(&[
        "statement: ROLLBACK TO s",
        "statement: COMMIT"
    ]));
}

#[test]
fn a_transaction_that_its_session_leaves_open_is_undone() {
    let after = |texts: &[&str]| {
        let mut table = table();
        for text in texts {
            take(
                &mut table,
                &line(&format!("statement: {text}"), "3/1", 0),
                10,
            );
        }
        let left = "disconnection: session time: 0:00:01 user=ann database=bank host=[local]";
        take(&mut table, &line(left, "", 0), 20);
        let one = &table.transactions[&1];
        (one.undone, one.has_committed())
    };
    let write = "INSERT INTO a VALUES (1)";
    assert_eq!(after(&["BEGIN", write]), (true, false));
    assert_eq!(after(&["/* by ann */ BEGIN", write]), (true, false));
    let with_comment = ["BEGIN", write, "/* by ann */ END"];
    for committed in [&["BEGIN", write, "END"][..], &with_comment, &[write]] {
        assert_eq!(after(committed), (false, true), "{committed:?}");
    }
    let whole = format!("BEGIN; {write}; COMMIT");
    assert_eq!(after(&[&whole]), (false, true));
    let prepared = ["BEGIN", write, "PREPARE TRANSACTION 'x'"];
    assert_eq!(after(&prepared), (false, false));
}

#[test]
fn a_session_whose_process_is_gone_ends_although_the_log_does_not_tell() {
    let mut server = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let backends = Backends::with_session(server.id());
    let mut table = table();
    let mut take_text = |text: &str| {
        let mut line = line(text, "3/1", 0);
        line.session_id = format!("6925a1b0.{:x}", server.id());
        take(&mut table, &line, 10);
    };
    take_text("statement: BEGIN");
    take_text("statement: INSERT INTO a VALUES (1)");
    table.end_gone(backends, 20);
    table.end_gone(backends, 20);
    assert!(table.transactions[&1].ended.is_none());
    server.kill().unwrap();
    server.wait().unwrap();
    // Lines of the process may come after the first look.
    table.end_gone(backends, 30);
    assert!(table.transactions[&1].ended.is_none());
    table.end_gone(backends, 40);
    let open = &table.transactions[&1];
    let ended = open.ended.map(|(time, _)| time);
    assert_eq!((ended, open.undone), (Some(40), true));
    table.remove(1);
    assert_eq!(table.ended().len(), 1);
}

#[test]
fn statements_have_places_in_the_order_of_the_log() {
    let mut table = table();
    for text in [
        "BEGIN",
        "INSERT INTO a VALUES (1)",
        "ALTER TABLE a ADD x int",
    ] {
        take(
            &mut table,
            &line(&format!("statement: {text}"), "3/1", 0),
            10,
        );
    }
    let places = table.transactions[&1].statements.iter();
    let places: Vec<u64> = places.map(|one| one.place).collect();
    assert_eq!((places, table.defined[0].place), (vec![1, 2, 3], 3));
}

#[test]
fn a_statement_alone_ends_with_its_duration() {
    let mut table = table();
    take(&mut table, &line("statement: SELECT 1", "3/2", 0), 40);
    take(&mut table, &line("duration: 0.1 ms", "3/0", 0), 50);
    assert_eq!(table.transactions[&1].ended.map(|(time, _)| time), Some(50));
}

#[test]
fn another_database_and_the_watch_itself_are_left_out() {
    let mut table = table();
    let mut other = line("statement: SELECT 1", "3/2", 0);
    other.dbname = "other".to_owned();
    take(&mut table, &other, 1);
    table.own = vec![7];
    take(&mut table, &line("statement: SELECT 1", "3/2", 0), 1);
    assert!(table.transactions.is_empty());
}

#[test]
fn the_end_is_a_message_of_the_watch_itself() {
    let mut table = table();
    take(&mut table, &line(END, "3/2", 0), 1);
    assert!(!table.has_end);
    table.own = vec![7];
    take(&mut table, &line("statement: SELECT 1", "3/2", 0), 2);
    assert!(!table.has_end);
    take(&mut table, &line(END, "3/2", 0), 3);
    assert!(table.has_end);
}

#[test]
fn a_statement_that_does_not_parse_is_kept_and_counted() {
    let mut table = table();
    take(&mut table, &line("statement: SELEC 1", "3/2", 0), 1);
    assert_eq!(table.unparsed, 1);
    assert!(table.transactions[&1].statements[0].tables.is_err());
}

#[test]
fn a_client_that_is_found_before_its_session_has_a_line_is_the_sessions_client() {
    let pid = |table: &SessionTable| table.sessions["s"].client.processes[0].pid;
    let (mut table, now) = (table(), Instant::now());
    table.know_clients(vec![found(1, now)]);
    take(&mut table, &line("statement: SELECT 1", "3/2", 0), 1);
    assert_eq!((pid(&table), table.clients.len()), (1, 0));
    let later = now + Duration::from_millis(1);
    table.know_clients(vec![found(2, later)]);
    assert_eq!(pid(&table), 2);
    // The session's client was looked for since.
    table.know_clients(vec![found(1, now)]);
    assert_eq!(pid(&table), 2);
}

#[test]
fn a_client_that_shares_its_connection_stays_one_that_does() {
    let (mut table, now) = (table(), Instant::now());
    take(&mut table, &line("statement: SELECT 1", "3/2", 0), 1);
    let mut shared = found(1, now);
    shared.client.is_certain = false;
    table.know_clients(vec![shared]);
    let later = now + Duration::from_millis(1);
    table.know_clients(vec![found(1, later)]);
    assert!(!table.sessions["s"].client.is_certain);
}

fn found(pid: u32, looked: Instant) -> FoundClient {
    let mut client = SessionClient::default();
    client.processes.push(process(pid));
    client.is_certain = true;
    FoundClient {
        session: "s".to_owned(),
        client,
        looked,
    }
}

fn process(pid: u32) -> ClientProcess {
    ClientProcess {
        pid,
        born: 0,
        program: None,
        arguments: Vec::new(),
        directory: None,
    }
}
