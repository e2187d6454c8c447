//! Questions and their answers, in every form they have.

mod lineage;

use super::{Answer, Place};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

#[test]
fn the_graph_can_be_drawn() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cp a b; cp b 'x \"quoted\\ <b>&\n'; cp x* b");
    let dot = place.run(&["of", "b", "--dot"]).out;
    assert!(
        dot.starts_with("digraph backstory {") && dot.ends_with("}\n"),
        "{dot}"
    );
    assert!(dot.contains("cp a b"), "{dot}");
    if backstory_testkit::need::needs("drawing", &["dot"]) {
        for question in [["of", "b"], ["uses", "a"]] {
            let dot = place.run(&[question[0], question[1], "--dot"]).out;
            place.write("graph.dot", &dot);
            let mut draw = place.stage.command("dot");
            let drawn = Answer::of(
                draw.args(["-Tsvg", &place.path("graph.dot")])
                    .output()
                    .unwrap(),
            );
            assert_eq!((drawn.status, drawn.err.as_str()), (0, ""), "{dot}");
            assert!(drawn.out.contains("cp a b"), "{}", drawn.out);
        }
    }
}

#[test]
fn a_pasted_command_does_the_same_again() {
    let place = Place::new();
    place.write("in put", "b\na\n");
    place.record("mkdir sub && cd sub && LC_ALL=C A='x y' sort -o out '../in put'");
    let answer = place.run(&["of", "sub/out", "--tree"]);
    let line = answer
        .out
        .lines()
        .find(|line| line.contains("written by"))
        .unwrap();
    let command = line
        .split_once("written by ")
        .unwrap()
        .1
        .rsplit_once("  [")
        .unwrap()
        .0;
    assert!(
        command.starts_with("cd ") && command.contains("A='x y'"),
        "{command}"
    );
    std::fs::remove_file(place.work().join("sub/out")).unwrap();
    assert!(
        place
            .stage
            .command("sh")
            .arg("-c")
            .arg(command)
            .status()
            .unwrap()
            .success(),
        "{command}"
    );
    assert_eq!(
        std::fs::read_to_string(place.work().join("sub/out")).unwrap(),
        "a\nb\n"
    );
}

#[test]
fn names_that_are_not_utf8_come_back_as_surrogates() {
    let place = Place::new();
    let name = std::ffi::OsString::from_vec(b"na\xffme\n'x".to_vec());
    place.write(&name, "text");
    let mut args: Vec<&std::ffi::OsStr> = ["record", "--", "cp"]
        .iter()
        .map(|arg| std::ffi::OsStr::new(*arg))
        .collect();
    args.extend([name.as_os_str(), std::ffi::OsStr::from_bytes(b"b\xfe")]);
    assert_eq!(place.run(&args).status, 0);
    let files = place.run(&["files", "--json"]).out;
    assert!(files.contains("/na\\udcffme\\n'x\""), "{files}");
    assert!(files.contains("/b\\udcfe\""), "{files}");
    let of = place.run(&[
        std::ffi::OsStr::new("of"),
        std::ffi::OsStr::from_bytes(b"b\xfe"),
    ]);
    assert!(of.out.contains("na\\377me\\n\\'x'"), "{of:?}");
}

#[test]
fn files_and_processes_have_the_promised_fields() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a no-such-file > b 2> err; (exit 3); true");
    let files = place.json(&["files", "--json"]);
    let access = |name: &str| {
        let path = place.path(name);
        let lines = files
            .as_array()
            .unwrap()
            .iter()
            .filter(|file| file["path"] == path.as_str());
        lines
            .flat_map(|file| file["access"].as_array().unwrap().clone())
            .collect::<Vec<_>>()
    };
    assert!(access("a").contains(&"read".into()), "{files}");
    assert!(access("b").contains(&"write".into()), "{files}");
    assert!(
        access("no-such-file").contains(&"missing".into()),
        "{files}"
    );
    for file in files.as_array().unwrap() {
        assert!(
            ["library", "kernel"].contains(&file["via"].as_str().unwrap()),
            "{file}"
        );
        assert!(
            ["seen", "possible"].contains(&file["certainty"].as_str().unwrap()),
            "{file}"
        );
    }
    let processes = place.json(&["processes", "--json"]);
    let processes = processes.as_array().unwrap();
    let cat = processes
        .iter()
        .find(|one| one["argv"][0] == "cat")
        .unwrap();
    assert_eq!(
        (&cat["exit"], &cat["cwd"]),
        (&1.into(), &place.work().to_str().unwrap().into()),
        "{cat}"
    );
    let parent = processes
        .iter()
        .find(|one| one["id"] == cat["parent_id"])
        .unwrap();
    assert_eq!(parent["pid"], cat["parent"]);
    assert!(cat["start"].as_f64().unwrap() <= cat["end"].as_f64().unwrap());
    let ids: std::collections::HashSet<u64> = processes
        .iter()
        .map(|one| one["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), processes.len());
}

#[test]
fn show_prints_first_the_command_its_result_and_whether_the_record_is_complete() {
    let place = Place::new();
    place.record("true");
    let json = place.json(&["show", "--json"]);
    assert_eq!(
        (&json["complete"], &json["lost"], &json["exit"]),
        (&true.into(), &0.into(), &0.into()),
        "{json}"
    );
    assert_eq!(json["incomplete_because"], serde_json::json!([]));
    assert!(
        json["peers"].is_array() && json["command"][0] == "sh",
        "{json}"
    );
    let text = place.run(&["show"]).out;
    let first: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .take(3)
        .collect();
    assert_eq!(first, ["command", "result", "complete"], "{text}");
    assert!(text.contains("\ncomplete     yes\n"), "{text}");
}

#[test]
fn status_prints_what_has_changed() {
    let place = Place::new();
    place.write_aged("a", "text");
    place.record("cp a b");
    let answer = place.run(&["status"]);
    assert_eq!(
        (answer.status, answer.out.contains("current")),
        (0, true),
        "{answer:?}"
    );
    place.write("a", "other text");
    let json = place.run(&["status", "b", "--json"]);
    assert_eq!(json.status, 1, "{json:?}");
    assert!(
        json.out.contains(&format!(
            "{{\"path\": \"{}\", \"state\": \"modified\"}}",
            place.path("a")
        )),
        "{json:?}"
    );
    place.write("b", "mine");
    assert!(place.run(&["status", "b"]).out.starts_with("modified"));
    std::fs::remove_file(place.work().join("b")).unwrap();
    assert!(place.run(&["status", "b"]).out.starts_with("removed"));
}

#[test]
fn a_file_that_never_had_a_name_is_not_said_to_be_removed() {
    let place = Place::new();
    place.record(
        "python3 -c 'import tempfile; f = tempfile.TemporaryFile(dir=\".\"); f.write(b\"x\"); f.flush(); open(\"b\", \"w\")'",
    );
    let answer = place.run(&["status"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.out.starts_with("current    b "), "{answer:?}");
    assert_eq!(answer.out.lines().count(), 1, "{answer:?}");
}

#[test]
fn nothing_is_coloured_for_a_pipe() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cp a b");
    for args in [
        &["of", "b"][..],
        &["log"],
        &["show"],
        &["files"],
        &["processes"],
        &["status"],
    ] {
        assert!(!place.run(args).out.contains('\x1b'), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    place.record("ls -R /usr/share/doc > list; true");
    let binary = place.stage.path().join("bin/backstory");
    let mut command = place.stage.command("sh");
    command
        .env("BACKSTORY_STORE", place.stage.store())
        .arg("-c")
        .arg(format!("{} files --json | head -n 1", binary.display()));
    let answer = super::Answer::of(command.output().unwrap());
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("[\n", ""));
}

#[test]
fn an_unrecorded_path_is_not_found() {
    let place = Place::new();
    place.record("true");
    place
        .run(&["of", "never-seen"])
        .is_error(1, &["never-seen"]);
    place
        .run(&["uses", "/never/seen"])
        .is_error(1, &["/never/seen"]);
}

#[test]
fn the_pipes_of_a_program_that_uses_only_its_standard_streams_are_seen() {
    let place = Place::new();
    let Some(tally) = place.fixture("tally") else {
        return;
    };
    place.write("in", "b\na\n");
    place.record(&format!("sort in | {tally} | {tally} > out"));
    let answer = place.run(&["of", "out", "--tree"]);
    assert!(answer.out.contains("written by"), "{}", answer.out);
    assert!(answer.out.contains("piped from sort in"), "{}", answer.out);
    assert!(!answer.out.contains("possibly"), "{}", answer.out);
    let unknown = &place.json(&["show", "--json"])["lookups_unknown"];
    assert_eq!(
        unknown.as_array().map(Vec::len).unwrap_or_default(),
        0,
        "{unknown}"
    );
}

/// Once a run is indexed, answers about what was recorded come from the store alone. `status`,
/// `rerun` and `replay` are about files as they are now, and `log --raw` is about the log. `of` and
/// `uses` of a path also look at the present file, but not of a version.
#[test]
fn a_question_about_what_was_recorded_reads_neither_logs_nor_recorded_files() {
    let place = Place::new();
    place.write_aged("a", "text\n");
    let first = place.record("sort a >b; test -e missing || cp b c");
    let second = place.record("sh -c 'cat c b >d'");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let (first, second) = (first.as_str(), second.as_str());
    let (source, result) = (format!("a@{first}"), format!("d@{second}"));
    let questions: [&[&str]; 12] = [
        &["log", "--json"],
        &["show", "--json", first],
        &["show", second],
        &["files", "--json", "--all", first],
        &["files", second],
        &["processes", "--json", first],
        &["of", "--json", "--lookups", &result],
        &["of", &result, "--all"],
        &["uses", "--json", &source],
        &["diff", "--json", first, second],
        &["export", "prov-json", "./d"],
        &["contents", "d"],
    ];
    let answers = || -> Vec<String> {
        let answers = questions.iter().map(|question| place.run(question));
        answers.map(|answer| format!("{answer:?}")).collect()
    };
    let before = answers();
    assert!(
        before.iter().all(|answer| answer.contains("err: \"\"")),
        "{before:?}"
    );
    let runs = place.stage.store().join("runs");
    for run in [first, second] {
        std::fs::remove_file(runs.join(format!("{run}.log"))).unwrap();
    }
    for file in ["a", "b", "c", "d"] {
        std::fs::remove_file(place.work().join(file)).unwrap();
    }
    for (question, (before, after)) in questions.iter().zip(before.iter().zip(answers())) {
        assert_eq!(*before, after, "{question:?}");
    }
}
