//! The messages of `replay --deep` and `requests` about options that cannot be followed, and about
//! executions in which little or nothing was compared.

use std::fs;

use backstory_testkit::need::needs;
use serde_json::Value;

use super::{Answer, Place};

/// A run that copies a line to its output, and leaves a file with other content.
fn recorded() -> Place {
    let place = Place::new();
    place.deep("echo one | RECORD sh -c 'read a; echo same > file; echo $a' | cat > out");
    place
}

/// The line of the answer that begins so.
#[track_caller]
fn line<'a>(answer: &'a Answer, begins: &str) -> &'a str {
    let found = answer.err.lines().find(|line| line.starts_with(begins));
    found.unwrap_or_else(|| panic!("no line {begins:?} in {answer:?}"))
}

#[test]
fn a_file_of_feed_that_cannot_be_read_is_named() {
    let place = recorded();
    let missing = place.path("missing");
    for (target, more) in [("0", &[][..]), ("request", &["--request", "1"])] {
        let feed = format!("{target}={missing}");
        let Some(answer) = place.again(&[&["--feed", &feed], more].concat()) else {
            return;
        };
        answer.is_error(1, &["--feed cannot read", "missing: No such file"]);
    }
}

#[test]
fn a_binary_that_the_kernel_cannot_execute_is_refused_with_the_reason() {
    let place = recorded();
    place.write("page.html", "<html></html>\n");
    let page = place.path("page.html");
    for (mode, why) in [("a-x", "no permission"), ("a+x", "neither an ELF file nor")] {
        assert_eq!(place.shell(&format!("chmod {mode} page.html")).status, 0);
        let Some(answer) = place.again(&["--binary", &page]) else {
            return;
        };
        answer.is_error(2, &["page.html cannot run in the place of", why]);
    }
}

#[test]
fn at_least_one_attempt_is_made() {
    let place = recorded();
    let answer = place.replay("deep", &["--deep", "--tries", "0"]);
    assert_eq!(answer.status, 2, "{answer:?}");
    assert!(answer.err.contains("--tries"), "{answer:?}");
}

#[test]
fn requests_takes_the_run_as_when_does() {
    let place = recorded();
    place.record("true");
    let named = place.run(&["requests", "--run", "deep"]);
    assert_eq!(named.status, 0, "{named:?}");
    assert_eq!(named.out, place.run(&["requests", "deep"]).out);
    let both = place.run(&["requests", "deep", "--run", "deep"]);
    assert_eq!(both.status, 2, "{both:?}");
}

#[test]
fn a_part_that_ends_before_it_begins_is_refused() {
    let place = recorded();
    let Some(answer) = place.again(&["--from", "10", "--to", "5"]) else {
        return;
    };
    answer.is_error(2, &["--from 10 is later than --to 5"]);
    let one = place.again(&["--from", "5", "--to", "5"]).unwrap();
    assert_eq!(one.status, 0, "{one:?}");
}

#[test]
fn files_that_are_identical_are_not_called_different_if_the_output_differs() {
    let place = recorded();
    place.write("other", "two\n");
    let other = format!("0={}", place.path("other"));
    let Some(answer) = place.again(&["--feed", &other]) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    let programs = line(&answer, "different: ");
    assert!(programs.contains(" ran again, "), "{answer:?}");
    assert_eq!(line(&answer, "identical: "), "identical: 1 output");
}

#[test]
fn a_command_that_ends_with_another_status_alone_is_different_for_its_status() {
    let place = Place::new();
    place.write_aged("status", "0\n");
    let run = place.keep("echo same > file; exit $(cat status)", &["--contents=lazy"]);
    fs::write(place.path("other"), "3\n").unwrap();
    let answer = place.replay(&run, &["--input", "status=other"]);
    if answer.err.contains("namespace") {
        return backstory_testkit::need::skipped("a replay", &answer.err);
    }
    assert_eq!(answer.status, 1, "{answer:?}");
    let said = line(&answer, "different: ");
    assert_eq!(said, "different: another status, 1 output identical");
    assert!(
        answer
            .err
            .contains("with status 3; the recorded status is 0")
    );
}

#[test]
fn a_verdict_says_that_nothing_could_be_compared() {
    if !needs("a directory that is renamed", &["mkdir", "mv"]) {
        return;
    }
    let place = Place::new();
    place.deep("RECORD sh -c 'mkdir a; mv a b'");
    let Some(answer) = place.again(&[]) else {
        return;
    };
    let said = line(&answer, "equal: ");
    let nothing = " 0 bytes compared; nothing could be compared but the ends of the programs";
    assert!(said.ends_with(nothing), "{answer:?}");
    let of = |place: &Place| place.report(&[], 0).unwrap()["reconstruction"].clone();
    assert_eq!(of(&place)["compared_nothing"], true);
    // A file or a line of output is something.
    for line in ["echo one > c", "echo one"] {
        let place = Place::new();
        place.deep(&format!("RECORD sh -c '{line}' | cat > out"));
        let of = of(&place);
        assert_eq!(of["compared_nothing"], Value::Bool(false), "{line}: {of:#}");
        let answer = place.again(&[]).unwrap();
        assert!(!answer.err.contains("nothing could be"), "{answer:?}");
    }
}
