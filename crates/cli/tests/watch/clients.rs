//! The clients of changes: certain, possible or unknown.

use backstory_testkit::need::needs;
use rustix::process::Signal;
use serde_json::Value;

use crate::place::PostgresPlace;

/// The client program of these tests.
const PROGRAM: &str = include_str!("client.py");

fn place(what: &str) -> Option<PostgresPlace> {
    let place = PostgresPlace::new(what, &[]).filter(|_| needs(what, &["python3"]))?;
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    place.write("client.py", PROGRAM);
    Some(place)
}

/// Executes the client program.
fn client(place: &PostgresPlace, args: &[&str]) {
    let mut command = place.stage.command("python3");
    let command = command.current_dir(&place.work).arg("client.py").args(args);
    crate::place::succeeded(&command.output().unwrap());
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
    let watch = place.watched();
    client(&place, &[&port, "INSERT INTO a VALUES (1)"]);
    client(&place, &[&port, "INSERT INTO a VALUES (2)", "share"]);
    client(
        &place,
        &[socket.to_str().unwrap(), "INSERT INTO a VALUES (3)"],
    );
    client(
        &place,
        &[
            socket.to_str().unwrap(),
            "INSERT INTO a VALUES (4)",
            "share",
        ],
    );
    watch.end().unwrap();
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
    client(&place, &[&port, "INSERT INTO a VALUES (1)"]);
    // The server and another process go on, and have connections of their own.
    let mut session = place.server.session(&place.stage).unwrap();
    session.query("INSERT INTO a VALUES (2);").unwrap();
    watch.signal(Signal::CONT).unwrap();
    // The watch sees the client by then. A program that the client starts is no client.
    session.query("\\! sleep 1").unwrap();
    watch.end().unwrap();
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
