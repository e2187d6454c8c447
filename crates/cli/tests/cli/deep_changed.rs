//! `replay --deep --request` under a tool, or with another program. The search for earlier requests
//! runs with the recorded program.

use backstory_reconstruct::engine::STALLED;
use backstory_testkit::need::needs;

use super::Place;
use super::deep_replay::{KEEPER, KEEPER_CLIENT};

/// The request that needs the value which another connection set.
const NEEDY: [&str; 2] = ["--request", "3"];

/// A recorded server. `None`: it cannot run here.
fn recorded() -> Option<Place> {
    if !needs("a request that needs another one", &["python3", "env"]) {
        return None;
    }
    let place = Place::new();
    place.deep_server(KEEPER, KEEPER_CLIENT);
    Some(place)
}

#[test]
fn under_a_tool_a_request_has_the_earlier_ones_that_it_needs() {
    let Some(place) = recorded() else { return };
    let with = |more: &[&str]| place.again(&[&NEEDY, &["--with", "env"], more].concat());
    let Some(answer) = with(&[]) else { return };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in ["equal: ", "alone and 1 earlier request, 4 attempts"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    // One attempt is that under the tool.
    let answer = with(&["--tries", "1"]).unwrap();
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(answer.err.contains("came     \"nothing"), "{answer:?}");
}

#[test]
fn another_program_has_the_earlier_requests_that_the_recorded_one_needed() {
    let Some(place) = recorded() else { return };
    let other = KEEPER.replace("sendall(values", "sendall(b\"!\" + values");
    assert_ne!(other, KEEPER);
    place.write_server_as("other.py", &other);
    let Some(answer) = place.again(&[&NEEDY[..], &["--input", "server.py=other.py"]].concat())
    else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in ["recorded \"1\\n\"", "came     \"!1\\n\"", "4 attempts"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

#[test]
fn a_request_may_bring_other_bytes_and_has_the_earlier_requests_that_the_recorded_one_needed() {
    let Some(place) = recorded() else { return };
    let file = place.path("other");
    let (of_request, unknown) = (format!("request={file}"), format!("77={file}"));
    let (of_request, unknown) = (of_request.as_str(), unknown.as_str());
    // The server splits the request into words: the first one asks the same.
    let asked = [("get  a", 0, "equal: "), ("get q", 1, "came     \"nothing")];
    for (bytes, status, said) in asked {
        place.write("other", bytes);
        let Some(answer) = place.again(&[&NEEDY[..], &["--feed", of_request]].concat()) else {
            return;
        };
        assert_eq!(answer.status, status, "{bytes}: {answer:?}");
        for part in [said, "alone and 1 earlier request, 4 attempts"] {
            assert!(answer.err.contains(part), "{bytes}, {part}: {answer:?}");
        }
    }
    for (part, feed, status, said) in [
        (&[][..], of_request, 2, "--request 7"),
        (&["--request", "1-2"][..], of_request, 2, "--request 7"),
        (&[][..], unknown, 1, "descriptor 77"),
    ] {
        let words = [part, &["--feed", feed]].concat();
        place.again(&words).unwrap().is_error(status, &[said]);
    }
}

/// A tool that stops the program for longer than a request may stand still, as a debugger does, and
/// says something at the end.
fn debugger() -> String {
    let longer = STALLED.as_secs() + 1;
    format!(
        "sh -c '\"$0\" \"$@\" & kill -STOP $!; sleep {longer}; kill -CONT $!; sleep 1; \
         kill -STOP $!; sleep {longer}; kill -CONT $!; wait $!; echo reported >&2'"
    )
}

#[test]
fn a_tool_may_stop_the_program_and_reports_at_the_end() {
    let Some(place) = recorded() else { return };
    let tool = debugger();
    let Some(answer) = place.again(&["--request", "1", "--tries", "1", "--with", &tool]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in ["reported\n", "equal: "] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

/// Reads its greeting from a file, and answers with it.
const GREETER: &str = r#"
import os, socket, sys
greeting = open("settings").read().strip()
if greeting.startswith("bad"): sys.exit("cannot understand the setting " + greeting)
LISTEN
c, _ = s.accept()
c.sendall(greeting.encode() + b" " + c.recv(100))
"#;

const GREETED: &str = r#"
CONNECT
with connect() as c:
    c.sendall(b"you"); assert c.recv(100)
"#;

#[test]
fn another_configuration_shows_other_answers_or_what_the_program_says_about_it() {
    if !needs("another configuration", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("settings", "hello");
    place.deep_server(GREETER, GREETED);
    for (settings, said) in [
        ("welcome", "came     \"welcome you\""),
        ("bad", "stderr   \"cannot understand the setting bad\\n\""),
    ] {
        place.write("other", settings);
        for part in [&[][..], &["--request", "1"]] {
            let Some(answer) = place.again(&[part, &["--input", "settings=other"]].concat()) else {
                return;
            };
            let is_said = answer.err.contains(said);
            assert!(answer.status == 1 && is_said, "{settings} {answer:?}");
        }
    }
}

/// Complains about its settings, or prints them.
const TELLER: &str = r#"
import sys
settings = open("settings").read()
if settings.startswith("bad"): sys.exit("cannot understand the setting " + settings)
print(settings)
"#;

#[test]
fn a_program_that_a_shell_started_may_be_the_one_that_complained() {
    if !needs("another configuration", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("settings", "hello");
    place.write_aged("teller.py", TELLER);
    place.deep("RECORD sh -c 'python3 teller.py; echo $?' | cat > out");
    place.write("other", "bad");
    let Some(answer) = place.again(&["--input", "settings=other"]) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    let said = "stderr   \"cannot understand the setting bad\\n\", of process";
    assert!(answer.err.contains(said), "{answer:?}");
}

#[test]
fn a_deep_record_has_the_secrets_of_the_command() {
    let place = Place::new();
    place.deep("TOKEN=sesame RECORD sh -c 'echo $TOKEN $1' sh --token=open > out");
    let Some(answer) = place.again(&[]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.err.starts_with("equal: "), "{answer:?}");
}
