//! `when` limited to a descriptor, an address or a request.

use std::fs;

use backstory_deep::call_numbers::FILE_WRITES;
use backstory_deep::{Call, DeepLog};
use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::Place;
use super::deep_replay::{KEEPER, KEEPER_CLIENT, recorded_server, recorded_server_with};

/// The words before the address of a connection's other end.
const SOCKET: &str = "the socket to ";

/// Writes to both of its outputs.
const WRITES: &str = r#"
import os
os.write(1, b"one\n")
os.write(2, b"two\n")
os.write(1, b"three\n")
"#;

/// The places that `when` finds in the deep run. `None`: this machine has no namespaces.
fn found(place: &Place, more: &[&str]) -> Option<Vec<Value>> {
    let answer = place.run(&[&["when", "--run", "deep", "--json"], more].concat());
    if answer.err.contains("namespace") {
        skipped("a search in a deep run", &answer.err);
        return None;
    }
    // Bytes that are not UTF-8 are lone surrogates, which serde_json refuses.
    let text = answer.out.replace("\\udc", "?");
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = all.as_array().unwrap();
    // The status says whether anything was found.
    assert_eq!(answer.status, i32::from(all.is_empty()), "{answer:?}");
    Some(all.clone())
}

/// The same on sockets alone: Python's own files may have the text, too.
fn on_sockets(place: &Place, more: &[&str]) -> Option<Vec<Value>> {
    let mut all = found(place, more)?;
    all.retain(|one| one["object"].as_str().unwrap().starts_with(SOCKET));
    Some(all)
}

/// The acts of these calls: the direction, the number of the request, the position.
fn acts(all: &[Value]) -> Vec<String> {
    let act = |one: &Value| format!("{} {} {}", one["action"], one["request"], one["position"]);
    all.iter().map(act).collect()
}

/// The bytes that each of these calls moved.
fn bytes(all: &[Value]) -> Vec<&str> {
    all.iter()
        .map(|one| one["bytes"].as_str().unwrap())
        .collect()
}

/// A deep run of a server that keeps values. The record has digests of its answers. `None`: Python
/// is missing.
fn keeper() -> Option<Place> {
    recorded_server_with("", "a search in a server's bytes", KEEPER, KEEPER_CLIENT)
}

#[test]
fn writes_to_a_descriptor_are_found_by_its_number_and_those_to_another_one_are_not() {
    if !needs("a search in a program's outputs", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("writes.py", WRITES);
    place.deep("RECORD python3 writes.py > out 2> errors");
    for (number, written) in [("1", &["one\n", "three\n"][..]), ("2", &["two\n"])] {
        let Some(all) = found(&place, &["--to", number]) else {
            return;
        };
        assert_eq!(bytes(&all), written, "{all:?}");
        for one in &all {
            assert_eq!(one["descriptor"].to_string(), number, "{all:?}");
            assert_eq!(one["action"], "wrote", "{all:?}");
        }
    }
    // A text that left through the other one.
    let text = |number| found(&place, &["--to", number, "three"]).unwrap();
    assert_eq!(bytes(&text("1")), ["three\n"]);
    assert_eq!(text("2"), [Value::Null; 0]);
    assert_eq!(found(&place, &["--to", "9"]).unwrap(), [Value::Null; 0]);
}

#[test]
fn writes_to_an_address_are_found_and_those_to_other_clients_are_not() {
    let Some(place) = keeper() else {
        return;
    };
    let client = |text| -> Option<String> {
        let all = on_sockets(&place, &[text])?;
        let object = all[0]["object"].as_str().unwrap();
        Some(object.strip_prefix(SOCKET).unwrap().to_owned())
    };
    let Some(first) = client("done\n") else {
        return;
    };
    let last = client("nothing\n").unwrap();
    assert!(first.starts_with("127.0.0.1:") && first != last, "{first}");
    let to = |address: &str| found(&place, &["--to", address]).unwrap();
    assert_eq!(acts(&to(&first)), [r#""wrote" 1 0"#, r#""wrote" 2 5"#]);
    assert_eq!(acts(&to(&last)), [r#""wrote" 4 0"#]);
    assert_eq!(bytes(&to(&last)), ["nothing\n"]);
    assert_eq!(to("127.0.0.1:1"), [Value::Null; 0]);
}

#[test]
fn a_search_in_one_request_finds_its_bytes_and_those_of_the_requests_that_it_needs() {
    let Some(place) = keeper() else {
        return;
    };
    // Request 3 asks for the value that request 1 sets. Request 4 needs no other one.
    for (request, text, expected) in [
        ("1", "done\n", &[r#""wrote" 1 0"#][..]),
        ("3", "1\n", &[r#""wrote" 3 0"#]),
        ("3", "set a 1", &[r#""received" 1 0"#]),
        ("4", "nothing\n", &[r#""wrote" 4 0"#]),
        ("4", "set a 1", &[]),
    ] {
        let Some(all) = on_sockets(&place, &["--request", request, text]) else {
            return;
        };
        assert_eq!(acts(&all), expected, "{request} {text:?}: {all:?}");
    }
    place
        .run(&["when", "--run", "deep", "--request", "9", "done"])
        .is_error(1, &["no request 9"]);
}

/// A server that writes two files for each request: one that all append to, and one of its own.
const FILER: &str = r#"
import os, socket
LISTEN
for n in range(2):
    c, a = s.accept()
    name = c.recv(9).decode()
    with open("log", "a") as f: f.write(name + "\n")
    with open(name, "w") as f: f.write("kept " + name)
    os.stat(name)
    c.sendall(b"done"); c.close()
"#;

const FILER_CLIENT: &str = r#"
CONNECT
for n in range(2):
    c = connect()
    c.sendall(b"file %d" % n); assert c.recv(100); c.close()
"#;

/// A recorded call of the only run, by its number.
fn recorded_call(place: &Place, number: &Value) -> Call {
    let runs = fs::read_dir(place.stage.store().join("runs")).unwrap();
    let mut files = runs.map(|entry| entry.unwrap().path());
    let log = files.find(|path| path.extension().is_some_and(|name| name == "deep"));
    let log = DeepLog::open(log.unwrap()).unwrap();
    let end = log.end_of_call(number.as_u64().unwrap() as usize).unwrap();
    let processes = log.processes().iter();
    let mut calls = processes.flat_map(|process| log.process_calls(process.epoch));
    let found = calls.find(|call| !call.is_fact() && call.time + call.took == end);
    found.unwrap()
}

#[test]
fn a_write_to_a_file_has_its_own_call_and_request_in_a_whole_run_and_in_the_request() {
    let Some(place) = recorded_server("a search in a server's files", FILER, FILER_CLIENT) else {
        return;
    };
    for file in ["file 1", "log"] {
        let Some(whole) = found(&place, &["--to", file]) else {
            return;
        };
        let last = whole.last().unwrap();
        assert_eq!(last["request"], 2, "{file}: {whole:?}");
        let call = recorded_call(&place, &last["call"]);
        assert!(FILE_WRITES.contains(&call.number), "{file}: {call:?}");
        let part = found(&place, &["--to", file, "--request", "2"]).unwrap();
        let numbers = (&part[0]["call"], &part[0]["request"]);
        assert_eq!(
            numbers,
            (&last["call"], &last["request"]),
            "{file}: {part:?}"
        );
    }
}

#[test]
fn a_debugger_is_proposed_in_the_request_of_the_call_and_else_up_to_the_call() {
    let Some(place) = keeper() else {
        return;
    };
    let proposed = |place: &Place, more: &[&str]| {
        let answer = place.run(&[&["when", "--run", "deep"], more].concat());
        let last = answer.out.lines().last().unwrap_or_default().to_owned();
        (last, answer)
    };
    let (said, answer) = proposed(&place, &["done\n"]);
    if answer.err.contains("namespace") {
        return skipped("a search in a deep run", &answer.err);
    }
    assert!(said.starts_with("A debugger in the request: "), "{said}");
    assert!(said.ends_with(" --request 1 --with gdb"), "{said}");
    // The bytes are those of a request that the chosen one needs.
    let (said, _) = proposed(&place, &["--request", "3", "set a 1"]);
    assert!(said.ends_with(" --request 3 --with gdb"), "{said}");
    let place = Place::new();
    place.deep("RECORD echo one > out");
    let (said, _) = proposed(&place, &["one"]);
    assert!(said.starts_with("A debugger up to the first: "), "{said}");
    assert!(
        said.contains(" --to ") && said.ends_with(" --with gdb"),
        "{said}"
    );
}
