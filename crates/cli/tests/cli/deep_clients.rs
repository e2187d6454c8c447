//! Requests that a recorded program made itself, and their replay.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use backstory_testkit::need::needs;
use serde_json::{Value, json};

use super::Place;
use super::deep_replay::{KEEPER, KEEPER_CLIENT, recorded_server};

/// Returns what it receives on one connection, reversed.
const SERVER: &str = r#"
import os, socket
LISTEN
c, a = s.accept()
while True:
    got = c.recv(100)
    if not got: break
    c.sendall(got[::-1])
"#;

/// Asks three times on one connection, and puts each answer into a file.
const CLIENT: &str = r#"
import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for word in ("one", "two", "three"):
    c.sendall(word.encode())
    with open("got-" + word, "wb") as f: f.write(c.recv(100))
c.close()
"#;

/// The same in an event loop. It sends each question when the answer before it has come.
const LOOP: &str = r#"
import select, socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
poll = select.poll(); poll.register(c, select.POLLIN)
words = ["one", "two", "three"]
c.sendall(words[0].encode())
for n in range(3):
    poll.poll()
    with open("got-" + str(n), "wb") as f: f.write(c.recv(100))
    if n < 2: c.sendall(words[n + 1].encode())
c.close()
"#;

/// The same with a thread that computes without an end, and makes no call.
const SPINNER: &str = r#"
import os, socket, sys, threading
def spin():
    while True: pass
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=spin, daemon=True).start()
for word in ("one", "two", "three"):
    c.sendall(word.encode())
    with open("got-" + word, "wb") as f: f.write(c.recv(100))
c.close()
os._exit(0)
"#;

/// The same with one file for all answers, below a linked directory.
const COLLECTOR: &str = r#"
import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for word in ("one", "two", "three"):
    c.sendall(word.encode())
    with open("linked/all", "ab") as f: f.write(c.recv(100))
c.close()
"#;

/// A recorded client. `None`: it cannot run here.
fn recorded(client: &str) -> Option<Place> {
    if !needs("a client that runs again", &["python3"]) {
        return None;
    }
    let place = Place::new();
    let real = place.work().join("real");
    std::fs::create_dir(&real).unwrap();
    // The client may run as another user.
    std::fs::set_permissions(&real, Permissions::from_mode(0o777)).unwrap();
    std::os::unix::fs::symlink("real", place.work().join("linked")).unwrap();
    place.write_server(SERVER);
    place.write_aged("client.py", client);
    place.deep(
        "python3 server.py & while ! test -e port; do sleep 0.01; done; \
         RECORD python3 client.py $(cat port) && wait",
    );
    Some(place)
}

/// The requests of the run, as `requests --json` lists them.
fn requests(place: &Place, more: &[&str]) -> Vec<Value> {
    let words = [&["requests", "deep", "--json"], more].concat();
    place.json(&words).as_array().unwrap().clone()
}

fn values(list: &[Value], field: &str) -> Vec<Value> {
    list.iter().map(|one| one[field].clone()).collect()
}

#[test]
fn each_write_and_read_of_a_client_on_a_kept_connection_is_a_request_with_its_file() {
    let Some(place) = recorded(CLIENT) else {
        return;
    };
    let made = requests(&place, &[]);
    assert_eq!(values(&made, "role"), ["client"; 3], "{made:#?}");
    assert_eq!(values(&made, "bytes_out"), [3, 3, 5], "{made:#?}");
    assert_eq!(values(&made, "bytes_in"), [3, 3, 5], "{made:#?}");
    let files = ["got-one", "got-two", "got-three"].map(|name| json!([name]));
    assert_eq!(values(&made, "files"), files, "{made:#?}");
}

#[test]
fn a_request_of_a_client_runs_again_with_all_before_it_and_ends_the_record() {
    let Some(place) = recorded(CLIENT) else {
        return;
    };
    let Some(answer) = place.again(&["--request", "2"]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in [
        "equal: ",
        " 6 bytes fed, 6 bytes compared",
        "request 2 of a client and all before it, 1 attempt: ",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let answer = place.report(&["--request", "2"], 0).unwrap();
    assert_eq!(answer["reconstruction"]["request"]["role"], "client");
    let outputs = answer["outputs"].as_array().unwrap();
    assert_eq!(values(outputs, "state"), ["identical"], "{answer:#}");
    let path = outputs[0]["path"].as_str().unwrap();
    assert!(path.ends_with("/got-two"), "{answer:#}");
}

#[test]
fn the_scene_of_a_file_names_the_request_of_a_client_to_run_again() {
    let Some(place) = recorded(CLIENT) else {
        return;
    };
    let scene = place.json(&["scene", "got-two", "--json"]);
    let one = &scene["incidents"][0];
    assert_eq!(one["request"]["number"], 2, "{scene:#}");
    assert_eq!(one["request"]["role"], "client", "{scene:#}");
    let command = one["reconstruct"].as_str().unwrap();
    assert!(command.contains(" --request 2 "), "{command}");
}

#[test]
fn another_client_differs_in_its_own_request_alone() {
    let Some(place) = recorded(CLIENT) else {
        return;
    };
    let other = CLIENT.replace("\"one\", \"two\", \"three\"", "\"oNe\", \"two\", \"thRee\"");
    assert_ne!(other, CLIENT);
    place.write_aged("other.py", &other);
    let change = ["--input", "client.py=other.py"];
    let Some(answer) = place.again(&[&change[..], &["--request", "2"]].concat()) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    let note = "the requests before it on the connection differ from byte 1 on";
    assert!(answer.err.contains(note), "{answer:?}");
    for (request, came) in [("1", "\"Ne\""), ("3", "\"Ree\"")] {
        let answer = place.again(&[&change[..], &["--request", request]].concat());
        let answer = answer.unwrap();
        assert_eq!(answer.status, 1, "{answer:?}");
        assert!(answer.err.contains(came), "{came}: {answer:?}");
    }
}

#[test]
fn a_file_below_a_linked_directory_is_unknown_if_a_client_writes_it_later_too() {
    let Some(place) = recorded(COLLECTOR) else {
        return;
    };
    let Some(answer) = place.again(&["--request", "2", "--json"]) else {
        return;
    };
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    let of = &answer["reconstruction"];
    assert_eq!(of["verdict"], "equal-where-recorded", "{answer:#}");
    assert_eq!(of["files"]["not_compared"], 1, "{answer:#}");
    let outputs = answer["outputs"].as_array().unwrap();
    assert_eq!(values(outputs, "state"), ["unknown"], "{answer:#}");
}

#[test]
fn a_thread_of_a_client_that_computes_without_an_end_does_not_keep_the_replay() {
    let Some(place) = recorded(SPINNER) else {
        return;
    };
    let request = ["--request", "2", "--patience", "1"];
    let Some(answer) = place.again(&request) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    let said = [
        "equal: ",
        "  a program still computed ",
        " so all were ended",
    ];
    for part in said {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let answer = place.report(&request, 0).unwrap();
    let of = &answer["reconstruction"]["request"];
    assert!(of["worked_on_s"].as_u64() >= Some(1), "{answer:#}");
    let outputs = answer["outputs"].as_array().unwrap();
    assert_eq!(values(outputs, "state"), ["identical"], "{answer:#}");
}

#[test]
fn turns_of_a_clients_event_loop_have_its_bytes_files_and_requests() {
    let Some(place) = recorded(LOOP) else {
        return;
    };
    let turns = requests(&place, &["--turns"]);
    assert_eq!(values(&turns, "ready"), [1, 1, 1], "{turns:#?}");
    assert_eq!(values(&turns, "bytes_in"), [3, 3, 5], "{turns:#?}");
    assert_eq!(values(&turns, "bytes_out"), [3, 5, 0], "{turns:#?}");
    let of = [json!([1, 2]), json!([2, 3]), json!([3])];
    assert_eq!(values(&turns, "requests"), of, "{turns:#?}");
    let files = ["got-0", "got-1", "got-2"].map(|name| json!([name]));
    assert_eq!(values(&turns, "files"), files, "{turns:#?}");
    let text = place.run(&["requests", "deep", "--turns"]).out;
    assert_eq!(text.lines().count(), 4, "{text}");
    assert_eq!(text.matches(" 127.0.0.1:").count(), 3, "{text}");
}

#[test]
fn a_turn_runs_again_from_its_wait_to_its_last_call() {
    let Some(place) = recorded(LOOP) else {
        return;
    };
    let turns = requests(&place, &["--turns"]);
    // Another last question is a difference in the turn that sends it, and in no turn before.
    let other = LOOP.replace("\"three\"", "\"thRee\"");
    assert_ne!(other, LOOP);
    place.write_aged("other.py", &other);
    for (turn, status) in turns.iter().zip([0, 1]) {
        let [from, to] = ["from", "to"].map(|end| turn[end].to_string());
        let part = ["--from", &from, "--to", &to];
        let Some(answer) = place.again(&part) else {
            return;
        };
        assert_eq!(answer.status, 0, "{answer:?}");
        // Later turns write further files.
        let equal = "equal where it was recorded: 1 program";
        assert!(answer.err.contains(equal), "{answer:?}");
        let changed = [&part[..], &["--input", "client.py=other.py"]].concat();
        let answer = place.again(&changed).unwrap();
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.err.contains("\"Ree\""), status == 1, "{answer:?}");
    }
}

#[test]
fn a_run_of_a_server_has_no_turns_and_says_so() {
    let Some(place) = recorded_server("a server", KEEPER, KEEPER_CLIENT) else {
        return;
    };
    assert!(requests(&place, &["--turns"]).is_empty());
    let text = place.run(&["requests", "deep", "--turns"]).out;
    assert!(text.contains("No client of the run"), "{text}");
}
