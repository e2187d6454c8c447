//! Every command of the corpus prints, returns and leaves behind the same when it is recorded.

#[path = "oracle/common.rs"]
mod common;
#[path = "oracle/corpus.rs"]
mod corpus;
#[path = "oracle/each.rs"]
mod each;

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
    for (stream, before, after) in [
        ("stdout", &plain.stdout, &recorded.stdout),
        (
            "stderr",
            &plain.stderr,
            &own_words(&recorded.stderr, case.marked, options),
        ),
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

/// The command's own stderr. After the command has ended, `record` adds one line if the record is
/// not complete, and no other. Two reasons are expected: without the guard a static program is not
/// seen, and the case is marked with an interface that cannot be decoded.
fn own_words(stderr: &[u8], marked: &[&str], options: &[&str]) -> Vec<u8> {
    let lines: Vec<&[u8]> = stderr.split_inclusive(|&b| b == b'\n').collect();
    match lines.split_last() {
        Some((last, before)) if is_expected_verdict(last, marked, options) => before.concat(),
        _ => stderr.to_vec(),
    }
}

fn is_expected_verdict(line: &[u8], marked: &[&str], options: &[&str]) -> bool {
    let line = String::from_utf8_lossy(line);
    let reason = line
        .strip_prefix("backstory: the record of run ")
        .and_then(|rest| rest.split_once(" is not complete: "))
        .map_or("", |(_, reason)| reason);
    let unseen = reason.starts_with("without the guard, nothing that ");
    options.contains(&"--guard=off") && unseen || marked.iter().any(|mark| reason.starts_with(mark))
}

fn names(outcome: &Outcome) -> Vec<&Vec<u8>> {
    outcome.files.keys().collect()
}

#[test]
fn a_recorded_command_does_exactly_what_it_does_alone() {
    let bench = common::bench(User::ordinary());
    // Without options, storing contents; and the recorder alone.
    let ways: [&[&str]; 2] = [&[], &["--guard=off", "--contents=off"]];
    let mut wrong = Vec::new();
    for (case, result) in each::each(corpus::all(), |case| differences(&bench, case, &ways)) {
        let lines = result.unwrap_or_else(|error| vec![error.to_string()]);
        wrong.extend(lines.iter().map(|l| format!("{}: {l}", case.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
