//! The other side of an exchange is hostile. Nothing is written outside of the store, no run is
//! changed, and every exchange ends with a message.

use super::{Answer, Place};
use backstory_contents::transfer::{Kind, Writer};
use backstory_testkit::snapshot;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// The first bytes of a side.
fn greeting(version: u32) -> Vec<u8> {
    let mut bytes = b"bsstores".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend([0; 4]);
    bytes
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(payload);
    bytes
}

fn message(value: Value) -> Vec<u8> {
    frame(1, value.to_string().as_bytes())
}

/// The frames of an archive with these sections.
fn archive(sections: &[(Kind, &str, &[u8])]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (kind, name, body) in sections {
        let size = body.len() as u64;
        writer.section(*kind, name, size, &mut &body[..]).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let pieces = bytes.chunks(1 << 16).flat_map(|piece| frame(2, piece));
    pieces.chain(frame(3, b"")).collect()
}

impl Place {
    /// Pulls from a side that sends these bytes, whatever it is asked for.
    fn pull_from(&self, bytes: &[u8]) -> Answer {
        fs::write(self.path("sent"), bytes).unwrap();
        let ssh = self.ssh(&format!("cat {}; exec > /dev/null; cat", self.path("sent")));
        self.run(&["store", "pull", "host:store", "--ssh", &ssh])
    }

    /// Sends these bytes to the store, and returns the replies.
    fn serve(&self, bytes: &[u8]) -> String {
        let mut command = self.command(&["store", "serve-peer"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = bytes.to_vec();
        let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.code().is_some(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn hello() -> Vec<u8> {
    [
        greeting(1),
        message(json!({"reply": "hello", "program": "1"})),
    ]
    .concat()
}

fn entry(run: &str, digest: &str) -> Value {
    json!({"run": run, "digest": digest, "bytes": 5, "annotations": "", "signatures": ""})
}

fn runs(entries: &[Value]) -> Vec<u8> {
    message(json!({"reply": "runs", "runs": entries}))
}

/// A list of one run, without contents, whose archive follows.
fn one_run(run: &str, digest: &str) -> Vec<u8> {
    [
        hello(),
        runs(&[entry(run, digest)]),
        message(json!({"reply": "contents", "contents": []})),
        message(json!({"reply": "archive"})),
    ]
    .concat()
}

const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Replies of a hostile store instead of lists: what it is, its bytes, and a word of the refusal.
fn hostile_lists() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let ascending = runs(&[entry("bbbb0000", ZEROS), entry("aaaa0000", ZEROS)]);
    vec![
        ("a banner", b"Welcome to host!\n".to_vec(), "startup files"),
        ("nothing", Vec::new(), "no exchange"),
        ("another version", greeting(7), "version 7"),
        (
            "a path as an id",
            [hello(), runs(&[entry("../../aa", ZEROS)])].concat(),
            "id of a run",
        ),
        (
            "an absolute path",
            [hello(), runs(&[entry("/etc/pwd", ZEROS)])].concat(),
            "id of a run",
        ),
        (
            "a digest that is none",
            [hello(), runs(&[entry("aaaa0000", "../x")])].concat(),
            "digest",
        ),
        (
            "a list that does not ascend",
            [hello(), ascending].concat(),
            "ascend",
        ),
        (
            "a list without an end",
            [hello(), runs(&vec![entry("aaaa0000", ZEROS); 1001])].concat(),
            "ascend",
        ),
        (
            "an oversized frame",
            [hello(), vec![255, 255, 255, 255, 1]].concat(),
            "longer than",
        ),
        (
            "a frame of no kind",
            [hello(), frame(77, b"")].concat(),
            "kind 77",
        ),
        (
            "no JSON",
            [hello(), frame(1, b"{{{{")].concat(),
            "cannot be read",
        ),
        (
            "another reply",
            [
                hello(),
                message(json!({"reply": "finished", "problems": []})),
            ]
            .concat(),
            "does not fit",
        ),
    ]
}

/// Replies of a hostile store, archives included. `log` is the log of the run `theirs`.
fn hostile_replies(
    theirs: &str,
    log: &[u8],
    digest: &str,
) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let run = |section: &[(Kind, &str, &[u8])], id: &str, digest: &str| {
        // Two empty pages end the lists.
        let begin = one_run(id, digest);
        let list = hello().len() + runs(&[entry(id, digest)]).len();
        let (before, after) = begin.split_at(list);
        [before, &runs(&[]), after, &archive(section)].concat()
    };
    let archives = vec![
        (
            "no archive",
            [run(&[], "aaaa0000", ZEROS), frame(2, b"noise")].concat(),
            "another log than",
        ),
        (
            "a log under another id",
            run(&[(Kind::Log, "aaaa0000", log)], "aaaa0000", digest),
            "is of run",
        ),
        (
            "a log at a path",
            run(&[(Kind::Log, "../../../x", log)], theirs, digest),
            "id of a run",
        ),
        (
            "another log than listed",
            run(&[(Kind::Log, theirs, log)], theirs, ZEROS),
            "another log than",
        ),
        (
            "a log that is none",
            run(&[(Kind::Log, "aaaa0000", b"noise")], "aaaa0000", ZEROS),
            "not a log",
        ),
        (
            "two logs",
            run(
                &[(Kind::Log, theirs, log), (Kind::Log, theirs, log)],
                theirs,
                digest,
            ),
            "another log than",
        ),
        (
            "a content at a path",
            run(&[(Kind::Content, "../../x", b"x")], "aaaa0000", ZEROS),
            "digest of a content",
        ),
        (
            "a content under another digest",
            run(&[(Kind::Content, ZEROS, b"x")], "aaaa0000", ZEROS),
            "instead of",
        ),
        (
            "annotations at a path",
            run(&[(Kind::Annotations, "../x", b"{}")], "aaaa0000", ZEROS),
            "id of a run",
        ),
        (
            "a long signature",
            run(
                &[(Kind::Signatures, "aaaa0000", &[7; 70_000])],
                "aaaa0000",
                ZEROS,
            ),
            "at most",
        ),
    ];
    [hostile_lists(), archives].concat()
}

#[test]
fn what_a_hostile_store_sends_is_refused_and_changes_nothing() {
    let (place, other) = (Place::new(), Place::new());
    place.write_aged("in", "text\n");
    let own = place.keep("cat in > out", &["--contents=lazy"]);
    let theirs = other.keep("true", &["--contents=lazy"]);
    place.run(&["store", "push", &place.path("rehearsal")]);
    let log = fs::read(other.stage.store().join(format!("runs/{theirs}.log"))).unwrap();
    let digest = blake3::hash(&log).to_hex().to_string();
    place.quiet();
    let before = snapshot::take(place.stage.path()).unwrap();
    let listed = place.listed();
    for (what, bytes, reason) in hostile_replies(&theirs, &log, &digest) {
        let answer = place.pull_from(&bytes);
        assert_eq!(answer.status, 1, "{what}: {answer:?}");
        assert!(answer.err.contains(reason), "{what}: {answer:?}");
        assert_eq!(place.listed(), listed, "{what}");
        assert_eq!(place.run(&["store", "verify"]).status, 0, "{what}");
    }
    for (name, thing) in snapshot::take(place.stage.path()).unwrap() {
        let name_text = String::from_utf8_lossy(&name).into_owned();
        let own_file = ["store/", "work/ssh", "work/sent"];
        let outside = !own_file.iter().any(|part| name_text.starts_with(part));
        assert!(
            !outside || before.get(&name) == Some(&thing),
            "{name_text} is new or changed"
        );
    }
    assert!(
        place.run(&["of", "out"]).out.contains(&own),
        "the run is as it was"
    );
}

#[test]
fn an_archive_without_an_end_is_given_up() {
    let place = Place::new();
    place.record("true");
    let mut bytes = one_run("aaaa0000", ZEROS);
    let list = hello().len() + runs(&[entry("aaaa0000", ZEROS)]).len();
    bytes.splice(list..list, runs(&[]));
    fs::write(place.path("sent"), &bytes).unwrap();
    fs::write(place.path("piece"), frame(2, &[7; 1 << 16])).unwrap();
    let script = format!(
        "cat {}; while cat {} 2>/dev/null; do :; done",
        place.path("sent"),
        place.path("piece")
    );
    let ssh = place.ssh(&script);
    let answer = place.run(&["store", "pull", "host:store", "--ssh", &ssh]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(answer.err.contains("does not end"), "{answer:?}");
}

#[test]
fn what_a_hostile_user_sends_to_a_served_store_is_refused_and_changes_nothing() {
    let (place, other) = (Place::new(), Place::new());
    place.write_aged("in", "text\n");
    let own = place.keep("cat in > out", &["--contents=lazy"]);
    other.keep("true", &["--contents=lazy"]);
    let theirs = other.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let log = fs::read(other.stage.store().join(format!("runs/{theirs}.log"))).unwrap();
    let accept = |sections: &[(Kind, &str, &[u8])]| {
        [message(json!({"request": "accept"})), archive(sections)].concat()
    };
    let ask = |value: Value| message(value);
    let far_ahead = format!(
        "{{\"run\":\"{own}\",\"kind\":\"name\",\"key\":\"\",\"value\":\"x\",\"at\":{},\"by\":\"e\"}}\n",
        i64::MAX
    );
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "a run at a path",
            ask(json!({"request": "read_run", "run": "../../../etc/passwd"})),
            "id of a run",
        ),
        (
            "contents of a path",
            ask(json!({"request": "contents_of", "run": "../aaaaa"})),
            "id of a run",
        ),
        (
            "annotations of a path",
            ask(json!({"request": "read_annotations", "runs": ["../aaaaa"]})),
            "id of a run",
        ),
        (
            "a content that is no digest",
            ask(json!({"request": "read_contents", "digests": ["../../x"]})),
            "hexadecimal",
        ),
        (
            "a content that is not there",
            ask(json!({"request": "read_contents", "digests": [ZEROS]})),
            "archive",
        ),
        (
            "another log under an id",
            accept(&[(Kind::Log, &own, &log)]),
            "is of run",
        ),
        (
            "a log at a path",
            accept(&[(Kind::Log, "../../x", &log)]),
            "id of a run",
        ),
        (
            "an odd annotation",
            accept(&[(Kind::Annotations, &own, far_ahead.as_bytes())]),
            "accepted",
        ),
        (
            "a forged content",
            accept(&[(Kind::Content, ZEROS, b"x")]),
            "instead of",
        ),
        (
            "selected by a wrong option",
            ask(json!({"request": "hello", "program": "1", "select": ["--store=/x"]})),
            "failed",
        ),
    ];
    place.quiet();
    let listed = place.listed();
    let before = fs::read(place.stage.store().join(format!("runs/{own}.log"))).unwrap();
    for (what, request, reply) in cases {
        let last = message(json!({"request": "lacking", "digests": [ZEROS]}));
        let replies = place.serve(&[greeting(1), request, last].concat());
        if reply == "id of a run" || reply == "hexadecimal" {
            // The protocol is broken: the service ends.
            assert!(
                !replies.contains("lacking") || replies.contains(reply),
                "{what}: {replies}"
            );
        } else {
            assert!(replies.contains(reply), "{what}: {replies}");
            assert!(
                replies.contains("lacking"),
                "{what}: the next request is answered: {replies}"
            );
        }
        assert_eq!(place.listed(), listed, "{what}");
        assert_eq!(place.run(&["store", "verify"]).status, 0, "{what}");
    }
    let after = fs::read(place.stage.store().join(format!("runs/{own}.log"))).unwrap();
    assert!(before == after, "the log of run {own} changed");
    // A store that is served for reading takes nothing.
    let bytes = [greeting(1), accept(&[(Kind::Log, &theirs, &log)])].concat();
    let mut command = place.command(&["store", "serve-peer", "--read-only"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("for reading only"));
    assert_eq!(place.listed(), listed);
}
