//! Measures how many commands of the corpus give identical outputs when they are replayed from the
//! store alone. Every case is recorded with contents, its directory is removed, and the run is
//! replayed in an empty root.
//!
//! It takes a minute or more, as a part of `make test-all`, or by `cargo test -p backstory --test
//! programs -- --ignored fidelity`. `docs/replay.md` has the latest result, and the reasons for
//! differences.

#![allow(clippy::unwrap_used)]

use crate::oracle::{common, corpus, each};
use std::fs;
use std::io;
use std::process::Command;

use backstory_testkit::need::say;
use backstory_testkit::oracle::{Bench, Case};
use backstory_testkit::user::User;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Cases with different outputs, beside those that differ natively, too. `docs/replay.md` says why.
const DIFFERENT: [&str; 2] = ["handles", "python-sqlite"];

/// Identical outputs, compared outputs, and the message.
type Share = (usize, usize, String);

fn share(bench: &Bench, case: &Case) -> Share {
    let Ok((_, store)) = bench.recorded(case, &["--contents=lazy"]) else {
        return (0, 0, "not recorded".to_owned());
    };
    if let Err(error) = bench.ask(&store, &["index", "--wait"]) {
        return (0, 0, error.to_string());
    }
    fs::remove_dir_all(bench.stage().path().join("work").join(case.name)).unwrap();
    let again = bench.stage().path().join("home").join(case.name);
    let mut command = bench
        .stage()
        .backstory(&["replay", "--json", "--output-dir"]);
    command.arg(&again).env("BACKSTORY_STORE", &store);
    let output = command.output().unwrap();
    // Names that are not UTF-8 have lone surrogates, which this reader refuses.
    let text = String::from_utf8_lossy(&output.stdout).replace("\\udc", "?");
    let Ok(report) = serde_json::from_str::<Value>(&text) else {
        return (
            0,
            1,
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        );
    };
    let states: Vec<&str> = report["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["state"].as_str())
        .collect();
    let same = states.iter().filter(|state| **state == "identical").count();
    let known = states.iter().filter(|state| **state != "unknown").count();
    let mut said = String::new();
    if report["exit"] != report["recorded_exit"] {
        said = format!(
            "status {}, recorded {}",
            report["exit"], report["recorded_exit"]
        );
    }
    for one in report["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["state"] != "identical")
    {
        said.push_str(&format!(" {} {}", one["state"], one["path"]));
    }
    (same, known, said)
}

/// A command that was recorded deeply with exact time, and ran again: the row that
/// `backstory-bench scenes --results` reads.
fn reconstructed(bench: &Bench, case: &Case) -> String {
    // `numbers`: recorded calls, compared bytes, compared files, and other results when fed again.
    let row = |numbers: [&str; 4], verdict: &str, why: &str| {
        let [calls, bytes, files, unsteady] = numbers;
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let why: String = why.replace('"', "'").chars().take(300).collect();
        format!(
            "corpus,whole,{calls},1,{},{verdict},{bytes},{files},{unsteady},\"{why}\"\n",
            case.name
        )
    };
    let failed = |why: &str| row([""; 4], "failed", why);
    let options = "--contents=lazy --deep --outputs=full --time=exact --fixed-addresses";
    let options: Vec<&str> = options.split(' ').collect();
    let Ok((_, store)) = bench.recorded(case, &options) else {
        return failed("it was not recorded");
    };
    if let Err(error) = bench.ask(&store, &["index", "--wait"]) {
        return failed(&error.to_string());
    }
    let again = bench.stage().path().join("home").join(case.name);
    let words = ["replay", "--deep", "--json", "--output-dir"];
    let mut command = bench.stage().backstory(&words);
    command.arg(&again).env("BACKSTORY_STORE", &store);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace("\\udc", "?");
    let Ok(report) = serde_json::from_str::<Value>(&text) else {
        return failed(&String::from_utf8_lossy(&output.stderr));
    };
    let found = &report["reconstruction"];
    let (verdict, why) = judged(&report);
    let number = |value: &Value| value.to_string();
    let files = ["equal", "different"].map(|kind| found["files"][kind].as_u64());
    let numbers = [
        number(&found["recorded_calls"]),
        number(&found["bytes_compared"]),
        files.into_iter().flatten().sum::<u64>().to_string(),
        number(&found["unsteady"]),
    ];
    row(numbers.each_ref().map(String::as_str), &verdict, &why)
}

/// The verdict of an answer of `replay --deep --json`, and the first difference in words. A file
/// that differs counts, too, though the programs may have been equal.
fn judged(report: &Value) -> (String, String) {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = &report["reconstruction"];
    let verdict = word(&found["verdict"]);
    let outputs = report["outputs"].as_array().into_iter().flatten();
    let mut wrong = outputs.filter(|one| one["state"] == "different" || one["state"] == "missing");
    let file = wrong.next().map_or_else(String::new, |one| {
        format!("{} file {}", word(&one["state"]), word(&one["path"]))
    });
    if verdict.starts_with("equal") && report["identical"] == false {
        return ("different".to_owned(), file);
    }
    let processes = found["processes"].as_array().into_iter().flatten();
    let mut differences = processes.map(|process| &process["difference"]);
    let difference = differences.find(|difference| !difference.is_null());
    let why = match (difference, &found["stopped"]) {
        _ if verdict == "equal" => String::new(),
        (_, Value::String(stopped)) => stopped.clone(),
        (Some(of), _) => format!(
            "{} of {}, byte {}: recorded {} came {}",
            word(&of["kind"]),
            word(&of["object"]),
            of["position"],
            of["recorded"],
            of["came"]
        ),
        _ if found["not_started"][0].is_string() => word(&found["not_started"][0]),
        _ => file,
    };
    (verdict, why)
}

/// The table of these rows. A note before it says which build was measured, in the words of
/// `backstory-bench`.
fn table<'r>(rows: impl Iterator<Item = &'r str>) -> String {
    let head = "case,kind,recorded_calls,requests,request,verdict";
    let note = build();
    let mut table = format!("# {note}\n{head},bytes_compared,files_compared,unsteady,why\n");
    table.extend(rows);
    table
}

/// The version, the commit and the digest of the measured program.
fn build() -> String {
    let program = env!("CARGO_BIN_EXE_backstory");
    let first_line = |command: &mut Command| {
        let output = command.output().ok();
        let output = output.filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    };
    let version = first_line(Command::new(program).arg("--version"));
    let head = ["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"];
    // A source archive has no commit.
    let commit = first_line(Command::new("git").args(head));
    let mut digest = Sha256::new();
    io::copy(&mut fs::File::open(program).unwrap(), &mut digest).unwrap();
    let digest = digest.finalize();
    let digest: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let parts = [
        version,
        commit.map(|commit| format!("commit {commit}")),
        Some(format!("sha256 {digest}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[test]
fn a_table_of_the_corpus_names_the_measured_build_before_its_columns() {
    let table = table(["corpus,whole\n"].into_iter());
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("# backstory "), "{table}");
    let digest = lines[0].split("sha256 ").nth(1).unwrap();
    let is_digest = digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_digest, "{table}");
    assert!(lines[1].starts_with("case,kind,"), "{table}");
    assert_eq!(lines[2], "corpus,whole");
}

#[test]
fn a_file_that_differs_is_a_difference_though_the_programs_are_equal() {
    let answer = |verdict: &str, state: &str| {
        serde_json::json!({
            "identical": state == "identical",
            "outputs": [{"path": "/w/a", "state": "unknown"}, {"path": "/w/b", "state": state}],
            "reconstruction": {"verdict": verdict, "stopped": null, "not_started": [],
                               "processes": [{"difference": null}]},
        })
    };
    let of = |verdict: &str, state: &str| judged(&answer(verdict, state));
    let both = |verdict: &str, why: &str| (verdict.to_owned(), why.to_owned());
    for verdict in ["equal", "equal-but-volatile", "equal-where-recorded"] {
        assert_eq!(of(verdict, "identical"), both(verdict, ""));
        let expected = both("different", "missing file /w/b");
        assert_eq!(of(verdict, "missing"), expected, "{verdict}");
    }
    let expected = both("different", "different file /w/b");
    assert_eq!(of("different", "different"), expected);
}

#[test]
#[ignore = "takes some minutes; its rows are for docs/benchmark/reconstruction.md"]
fn commands_of_the_corpus_run_again_from_a_deep_record_with_exact_time() {
    let bench = common::bench(User::ordinary());
    let rows = each::each(corpus::all(), |case| reconstructed(&bench, case));
    let table = table(rows.iter().map(|(_, row)| row.as_str()));
    let equal = rows
        .iter()
        .filter(|(_, row)| row.contains(",equal,"))
        .count();
    say(&format!(
        "{equal} of {} commands ran again equal",
        rows.len()
    ));
    if let Some(path) = std::env::var_os("BACKSTORY_ROWS") {
        fs::write(path, table).unwrap();
    }
    assert!(equal > 0, "something came back");
}

#[test]
#[ignore = "takes a minute or more; its figures are for docs/replay.md"]
fn every_command_of_the_corpus_not_listed_as_different_comes_back() {
    let bench = common::bench(User::ordinary());
    let (mut total, mut unexpected) = ((0, 0, 0, 0), Vec::new());
    for (case, (same, known, said)) in each::each(corpus::all(), |case| share(&bench, case)) {
        let whole = same == known && said.is_empty();
        total = (
            total.0 + same,
            total.1 + known,
            total.2 + usize::from(whole),
            total.3 + 1,
        );
        if !whole {
            let restless = if case.restless {
                " (differs natively, too)"
            } else {
                ""
            };
            say(&format!(
                "{}{restless}: {same} of {known} {said}",
                case.name
            ));
            if !case.restless && !DIFFERENT.contains(&case.name) {
                unexpected.push(case.name);
            }
        }
    }
    say(&format!(
        "{} of {} outputs are identical; {} of {} commands came out as recorded",
        total.0, total.1, total.2, total.3
    ));
    assert!(total.0 > 0, "something came back");
    assert_eq!(unexpected, [""; 0], "came back in other days");
}
