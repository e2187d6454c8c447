//! The clients of changes: certain, possible or unknown.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use backstory_testkit::need::needs;
use rustix::process::Signal;
use serde_json::Value;

use crate::watch::place::PostgresPlace;

/// The client program of these tests.
const PROGRAM: &str = include_str!("client.py");

fn place(what: &str) -> Option<PostgresPlace> {
    let place = PostgresPlace::new(what, &[]).filter(|_| needs(what, &["python3"]))?;
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    place.write("client.py", PROGRAM);
    Some(place)
}

/// A client that has executed its statement and keeps its connection. Dropped, it ends.
struct LiveClient(Child, BufReader<ChildStdout>);

impl LiveClient {
    fn begin(place: &PostgresPlace, args: &[&str]) -> LiveClient {
        let mut command = place.stage.command("python3");
        let command = command.current_dir(&place.work).arg("client.py").args(args);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = LiveClient(child, output);
        client.wait_for_statement();
        client
    }

    fn wait_for_statement(&mut self) {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    }

    /// Lets the client end, and its child execute the other statement.
    fn leave(mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.wait_for_statement();
    }
}

impl Drop for LiveClient {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The change of the row with this key, and the screen that shows it.
fn change(place: &PostgresPlace, key: &str) -> (Value, String) {
    let row = ["of", "--table", "a", "--key", key];
    (place.json(&row)["history"][0].clone(), place.text(&row))
}

#[test]
fn a_connection_that_two_processes_have_makes_both_possible_clients_and_none_certain() {
    let Some(place) = place("a shared connection") else {
        return;
    };
    let socket = place.stage.path().join("sockets");
    let socket = socket.join(format!(".s.PGSQL.{}", place.server.port));
    let port = place.server.port.to_string();
    let socket = socket.to_str().unwrap();
    let watch = place.watched();
    let clients = [
        vec![&*port, "INSERT INTO a VALUES (1)"],
        vec![&*port, "INSERT INTO a VALUES (2)", "share"],
        vec![socket, "INSERT INTO a VALUES (3)"],
        vec![socket, "INSERT INTO a VALUES (4)", "share"],
    ];
    let clients = clients.map(|args| LiveClient::begin(&place, &args));
    place.wait_for_line("VALUES (4)");
    // The watch reads the log to its end, and finds all processes.
    watch.end().unwrap();
    drop(clients);
    for key in ["1", "3"] {
        let (change, screen) = change(&place, key);
        assert!(
            change["client"]["argv"].to_string().contains("client.py"),
            "{change}"
        );
        assert_eq!(change["possible_clients"], serde_json::json!([]));
        assert!(screen.contains("    by python3 client.py"), "{screen}");
    }
    for key in ["2", "4"] {
        let (change, screen) = change(&place, key);
        assert_eq!(change["client"], Value::Null, "{change}");
        let possible = change["possible_clients"].as_array().unwrap();
        assert_eq!(possible.len(), 2, "{change}");
        assert!(
            screen.contains("    possibly by python3 client.py"),
            "{screen}"
        );
    }
}

#[test]
fn a_client_that_ended_before_it_was_looked_for_is_unknown() {
    let Some(place) = place("a client that has ended") else {
        return;
    };
    let port = place.server.port.to_string();
    let watch = place.watched();
    watch.signal(Signal::STOP).unwrap();
    drop(LiveClient::begin(
        &place,
        &[&port, "INSERT INTO a VALUES (1)"],
    ));
    // The server and another process go on, and have connections of their own.
    let mut session = place.server.session(&place.stage).unwrap();
    session.query("INSERT INTO a VALUES (2);").unwrap();
    place.wait_for_line("VALUES (2)");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    drop(session);
    let (gone, screen) = change(&place, "1");
    assert_eq!(gone["client"], Value::Null, "{gone}");
    assert_eq!(gone["possible_clients"], serde_json::json!([]));
    assert!(screen.contains("    by an unknown process"), "{screen}");
    let (alive, _) = change(&place, "2");
    assert!(
        alive["client"]["argv"].to_string().contains("psql"),
        "{alive}"
    );
}

#[test]
fn a_client_that_has_ended_since_its_last_statement_but_one_is_possible() {
    let Some(place) = place("a client that leaves its connection to its child") else {
        return;
    };
    let port = place.server.port.to_string();
    let watch = place.watched();
    let left = "INSERT INTO a VALUES (2)";
    let args = [&*port, "INSERT INTO a VALUES (1)", "leave", left];
    let client = LiveClient::begin(&place, &args);
    // The watch has found the client: its record has the arguments.
    place.wait_for_record(left);
    watch.signal(Signal::STOP).unwrap();
    client.leave();
    place.wait_for_line("VALUES (2)");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    let (change, screen) = change(&place, "2");
    assert_eq!(change["client"], Value::Null, "{change}");
    assert!(!screen.contains("    by python3"), "{screen}");
}

#[test]
fn a_recorded_client_is_certain_by_its_port_although_the_watch_never_saw_its_process() {
    let Some(place) = place("short recorded clients") else {
        return;
    };
    let watch = place.watched();
    watch.signal(Signal::STOP).unwrap();
    let insert = "$SQL -c \"INSERT INTO a VALUES ($i)\"";
    place.record(&format!("for i in $(seq 1 20); do {insert} & done; wait"));
    // A client of another run, and one that is not recorded.
    place.record("i=21; $SQL -c \"INSERT INTO a VALUES ($i)\"");
    place.query("INSERT INTO a VALUES (22)");
    place.wait_for_line("VALUES (22)");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    for key in 1..=21 {
        let (change, screen) = change(&place, &key.to_string());
        let words = change["client"]["argv"].as_array().unwrap();
        let statement = format!("INSERT INTO a VALUES ({key})");
        assert!(words.contains(&statement.into()), "{key}: {change}");
        assert_eq!(change["possible_clients"], serde_json::json!([]));
        let line = screen.lines().find(|line| line.starts_with("    by "));
        assert!(line.is_some_and(|line| line.contains("psql")), "{screen}");
    }
    let (change, _) = change(&place, "22");
    assert_eq!(change["client"], Value::Null, "{change}");
    let nodes = place.lineage(&["--table", "a", "--key", "7"]);
    let of = |key: u32| format!("-c INSERT INTO a VALUES ({key})");
    assert!(crate::watch::place::has(&nodes, &of(7)), "{nodes:?}");
    for key in (1..=22).filter(|key| *key != 7) {
        assert!(
            !crate::watch::place::has(&nodes, &of(key)),
            "{key}: {nodes:?}"
        );
    }
}

#[test]
fn both_ends_of_a_session_are_in_the_table_of_connections() {
    let Some(place) = place("the ends of sessions") else {
        return;
    };
    let watch = place.watched();
    for key in 1..=2 {
        place.record(&format!("$SQL -c 'INSERT INTO a VALUES ({key})'"));
    }
    place.record("$LOCAL -c 'INSERT INTO a VALUES (3)'");
    place.wait_for_line("VALUES (3)");
    watch.end().unwrap();
    let both = "FROM connections c JOIN connections s ON s.own = c.other AND s.other = c.own
        JOIN runs r ON r.run = s.run JOIN files f ON f.file = s.file
        JOIN files g ON g.file = s.reply
        WHERE c.role = 'client' AND s.role = 'server' AND r.source IS NOT NULL
        AND g.path = f.path || ' (reply)'";
    let asked = format!("SELECT DISTINCT c.run {both}");
    let found = place.json(&["query", &asked]);
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
}

#[test]
fn a_recorded_client_whose_child_had_its_connection_is_possible() {
    let Some(place) = place("a recorded client and its child") else {
        return;
    };
    let port = place.server.port;
    let watch = place.watched();
    watch.signal(Signal::STOP).unwrap();
    let client = |key: u32, how: &str| {
        let line = format!("python3 client.py {port} 'INSERT INTO a VALUES ({key})' {how}");
        place.record(&format!("{line} </dev/null"));
    };
    client(1, "");
    client(2, "share");
    place.wait_for_line("VALUES (2)");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    let (alone, _) = change(&place, "1");
    let command = alone["client"]["argv"].to_string();
    assert!(command.contains("client.py"), "{alone}");
    let (shared, screen) = change(&place, "2");
    assert_eq!(shared["client"], Value::Null, "{shared}");
    assert_eq!(
        shared["possible_clients"].as_array().unwrap().len(),
        2,
        "{shared}"
    );
    assert!(
        screen.contains("    possibly by python3 client.py"),
        "{screen}"
    );
}

#[test]
fn a_recorded_client_is_certain_although_it_executed_a_program_that_closed_its_connection() {
    let Some(place) = place("a recorded client and its programs") else {
        return;
    };
    let port = place.server.port;
    let watch = place.watched();
    watch.signal(Signal::STOP).unwrap();
    let ways = ["closed", "set", "open"];
    for (key, how) in (1..).zip(ways) {
        let insert = format!("INSERT INTO a VALUES ({key})");
        let line = format!("python3 client.py {port} '{insert}' spawn {how} </dev/null");
        place.record(&line);
    }
    // psql executes a shell, which executes another program.
    place.record("$SQL -c '\\! /bin/true' -c 'INSERT INTO a VALUES (4)'");
    place.wait_for_line("VALUES (4)");
    watch.signal(Signal::CONT).unwrap();
    watch.end().unwrap();
    for (key, program) in [("1", "client.py"), ("2", "client.py"), ("4", "psql")] {
        let (change, screen) = change(&place, key);
        let command = change["client"]["argv"].to_string();
        assert!(command.contains(program), "{key}: {change}");
        assert!(screen.contains("    by "), "{screen}");
    }
    let (open, screen) = change(&place, "3");
    assert_eq!(open["client"], Value::Null, "{open}");
    assert!(screen.contains("    possibly by python3"), "{screen}");
}
