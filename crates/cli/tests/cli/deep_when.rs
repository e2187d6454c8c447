//! `when` limited to a descriptor, an address or a request.

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::Place;
use super::deep_replay::{KEEPER, KEEPER_CLIENT};

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
    if !needs("a search in a server's bytes", &["python3"]) {
        return None;
    }
    let place = Place::new();
    place.deep_server_with("", KEEPER, KEEPER_CLIENT);
    Some(place)
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
