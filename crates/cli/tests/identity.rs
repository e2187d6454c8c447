//! Every command of the corpus prints, returns and leaves behind the same when it is recorded.

use crate::oracle::{common, corpus, each};
use std::io;

use backstory_testkit::oracle::{Bench, Case, Outcome, program};
use backstory_testkit::snapshot;
use backstory_testkit::user::User;

/// The differences between one run without recording and a run in each of the `ways`.
fn differences(bench: &Bench, case: &Case, ways: &[&[&str]]) -> io::Result<Vec<String>> {
    let plain = bench.plain(case)?;
    let mut lines = Vec::new();
    for options in ways {
        let (recorded, _) = bench.recorded(case, options)?;
        let found = compare(case, &plain, &recorded, options);
        lines.extend(found.iter().map(|line| format!("{options:?}: {line}")));
    }
    Ok(lines)
}

fn compare(case: &Case, plain: &Outcome, recorded: &Outcome, options: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    if plain.status.is_none() || plain.code() != recorded.code() {
        lines.push(format!(
            "status {} became {}",
            plain.code(),
            recorded.code()
        ));
    }
    if case.restless {
        let (before, after) = (names(plain), names(recorded));
        if before.len() != after.len() {
            lines.push(format!("{} names became {}", before.len(), after.len()));
        }
        return lines;
    }
    // Two reasons are expected: without the guard a static program is not seen, and the case is
    // marked with an interface that cannot be decoded.
    let unseen = "without the guard, nothing that ";
    let guard_is_off = options.contains(&"--guard=off");
    let mut expected = case.marked.to_vec();
    expected.extend(guard_is_off.then_some(unseen));
    let own_stderr = recorded.stderr_without_verdict(&expected);
    for (stream, before, after) in [
        ("stdout", &plain.stdout, &recorded.stdout),
        ("stderr", &plain.stderr, &own_stderr),
    ] {
        if before != after {
            let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(&bytes[same..])
                    .chars()
                    .take(200)
                    .collect::<String>()
            };
            lines.push(format!(
                "{stream}, after {same} bytes: {:?} became {:?}",
                text(before),
                text(after)
            ));
        }
    }
    lines.extend(snapshot::differences(&plain.files, &recorded.files));
    lines
}

fn names(outcome: &Outcome) -> Vec<&Vec<u8>> {
    outcome.files.keys().collect()
}

/// Runs the cases alone, and recorded with these options.
fn assert_identical(cases: impl Iterator<Item = &'static Case>, options: &[&str]) {
    let bench = common::bench(User::ordinary());
    let mut wrong = Vec::new();
    for (case, result) in each::each(cases, |case| differences(&bench, case, &[options])) {
        let lines = result.unwrap_or_else(|error| vec![error.to_string()]);
        wrong.extend(lines.iter().map(|l| format!("{}: {l}", case.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without options, storing contents.
#[test]
fn a_recorded_command_does_exactly_what_it_does_alone() {
    assert_identical(corpus::all(), &[]);
}

const RECORDER_ALONE: [&str; 2] = ["--guard=off", "--contents=off"];

#[test]
fn many_commands_do_the_same_with_the_recorder_alone() {
    assert_identical(corpus::one_of(3), &RECORDER_ALONE);
}

#[test]
#[ignore = "half a minute, as the same test of fewer commands"]
fn every_command_does_the_same_with_the_recorder_alone() {
    assert_identical(corpus::all(), &RECORDER_ALONE);
}

const FILTER_WHERE_NEEDED: [&str; 1] = ["--guard=auto"];

#[test]
fn many_commands_do_the_same_without_a_filter_where_none_is_needed() {
    assert_identical(corpus::one_of(16), &FILTER_WHERE_NEEDED);
}

#[test]
#[ignore = "half a minute, as the same test of fewer commands"]
fn every_command_does_the_same_without_a_filter_where_none_is_needed() {
    assert_identical(corpus::all(), &FILTER_WHERE_NEEDED);
}

/// A process with a filter cannot enter strict mode: the kernel refuses. So only the recorder can
/// watch.
#[test]
fn a_program_in_strict_seccomp_mode_works_with_the_recorder_alone() {
    let bench = common::bench(User::ordinary());
    let case = program("strict-mode", &["$FIX/sandbox_strict"]);
    assert_eq!(
        differences(&bench, &case, &[&["--guard=off"]]).expect("two runs"),
        Vec::<String>::new()
    );
}
