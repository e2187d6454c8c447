//! `rerun` destroys no work of a person, repeats no edit by itself, and looks whether a step has
//! made its outputs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use super::{Answer, Place};

const LAZY: &[&str] = &["--contents=lazy"];

impl Place {
    fn of(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }
}

#[test]
fn a_step_that_no_longer_makes_its_output_is_an_error() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("step.sh", "cat in > out\n");
    place.keep("sh step.sh", LAZY);
    place.write_aged("step.sh", "cat in > other\n");
    let answer = place.run(&["rerun", "out"]);
    assert!(
        answer.status == 1
            && answer.err.contains("did not make out")
            && answer.out.contains("not up to date"),
        "{answer:?}"
    );
    assert_eq!(place.of("out"), "one\n");
}

#[test]
fn a_file_that_runs_have_only_read_is_called_a_source() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("cat in > out", LAZY);
    place
        .run(&["rerun", "in"])
        .is_error(1, &["in is a source", "backstory uses"]);
    place.write_aged("in", "two\n");
    place.run(&["rerun", "in"]).is_error(1, &["in is a source"]);
}

/// `config` comes from `template`, and `result` from it and `data`.
fn configured() -> Place {
    let place = Place::new();
    place.write_aged("template", "alpha 1\n");
    place.write_aged("data", "data\n");
    place.keep("cp template config", LAZY);
    place.keep("cat config data > result", LAZY);
    place
}

#[test]
fn an_intermediate_file_that_a_person_edited_is_the_new_truth() {
    let place = configured();
    place.write_aged("config", "alpha 2 # mine\n");
    // Its maker would run, too.
    place.write_aged("template", "alpha 3\n");
    let plan = place.run(&["rerun", "--dry-run", "result"]);
    assert!(
        plan.status == 1 && plan.out.contains("config is taken as it is"),
        "{plan:?}"
    );
    let answer = place.run(&["rerun", "result"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.of("config"), "alpha 2 # mine\n");
    assert_eq!(place.of("result"), "alpha 2 # mine\ndata\n");
    let again = place.run(&["rerun", "--dry-run", "result"]);
    assert_eq!(again.status, 0, "{again:?}");
}

#[test]
fn a_result_that_a_person_edited_is_overwritten_only_with_the_option_and_comes_back() {
    let place = configured();
    place.write_aged("result", "my own words\n");
    for args in [&["rerun", "result"][..], &["rerun", "--yes", "result"]] {
        let refused = place.run(args);
        refused.is_error(1, &["nothing was run", "result", "--overwrite"]);
        assert_eq!(place.of("result"), "my own words\n");
    }
    let answer = place.run(&["rerun", "--overwrite", "result"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.of("result"), "alpha 1\ndata\n");
    let undone = place.run(&["undo", "result"]);
    assert_eq!(undone.status, 0, "{undone:?}");
    assert_eq!(place.of("result"), "my own words\n");
    let redone = place.run(&["redo", "result"]);
    assert_eq!(redone.status, 0, "{redone:?}");
    assert_eq!(place.of("result"), "alpha 1\ndata\n");
}

#[test]
fn without_stored_contents_too_what_was_overwritten_comes_back_with_its_hard_link_and_mode() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("cat in > out", &["--contents=off"]);
    place.write_aged("out", "mine\n");
    let path = |name: &str| place.work().join(name);
    fs::hard_link(path("out"), path("second")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    fs::set_permissions(path("out"), mode).unwrap();
    let answer = place.run(&["rerun", "--overwrite", "out"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.of("out"), "one\n");
    let undone = place.run(&["undo", "out"]);
    assert_eq!(undone.status, 0, "{undone:?}");
    let found = fs::metadata(path("out")).unwrap();
    assert_eq!(
        (place.of("out").as_str(), found.mode() & 0o777),
        ("mine\n", 0o640)
    );
    assert_eq!(found.ino(), fs::metadata(path("second")).unwrap().ino());
}

#[test]
fn a_side_output_that_a_person_edited_is_not_overwritten() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("sh -c 'cat in > out; wc -l < in > count'", LAZY);
    place.write_aged("count", "mine\n");
    place.write_aged("in", "two\n");
    let answer = place.run(&["rerun", "out"]);
    if place.of("count") == "mine\n" && answer.status == 0 {
        // The step that makes `out` alone was run.
        return;
    }
    answer.is_error(1, &["count", "--overwrite"]);
    assert_eq!(place.of("count"), "mine\n");
}

#[test]
fn what_undo_brought_back_is_an_input_like_any_other() {
    let place = Place::new();
    place.write_aged("good", "good\n");
    place.write_aged("wrong", "wrong\n");
    place.write_aged("sensor", "good\n");
    let all = &["--contents=all"];
    place.keep("tr a-z A-Z < sensor > result", all);
    place.keep("cp wrong sensor", all);
    place.keep("tr a-z A-Z < sensor > result", all);
    assert_eq!(place.run(&["undo", "sensor"]).status, 0);
    let answer = place.run(&["rerun", "result"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(
        (place.of("sensor"), place.of("result")),
        ("good\n".into(), "GOOD\n".into())
    );
}

/// Two rows of a log, and a result from it.
fn logged() -> Place {
    let place = Place::new();
    place.write_aged("data", "1\n");
    place.write_aged("row.sh", "echo $1 $(cat data) >> log\n");
    for name in ["a", "b"] {
        place.keep(&format!("sh row.sh {name}"), LAZY);
    }
    place.keep("sort -r log > best", LAZY);
    place.write_aged("data", "2\n");
    place
}

#[test]
fn an_append_is_not_repeated_for_a_result_behind_it() {
    let place = logged();
    let answer = place.run(&["rerun", "best"]);
    assert_eq!(place.of("log"), "a 1\nb 1\n", "{answer:?}");
    if answer.status == 1 {
        assert!(
            answer.out.contains("log is outdated and taken as it is"),
            "{answer:?}"
        );
    }
}

/// The shell that records opens `>` before the command begins.
#[test]
fn a_file_that_the_caller_emptied_for_the_output_is_no_edit() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write("out", "");
    let mut record = place.command(&["record", "--wait", "--", "cat", "in"]);
    record.stdout(fs::File::create(place.path("out")).unwrap());
    assert!(record.status().unwrap().success());
    place.write_aged("in", "two\n");
    let answer = place.run(&["rerun", "out"]);
    assert_eq!(
        (answer.status, place.of("out").as_str()),
        (0, "two\n"),
        "{answer:?}"
    );
}

#[test]
fn a_file_with_appended_rows_that_is_named_is_made_anew_row_by_row() {
    let place = logged();
    let answer = place.run(&["rerun", "log"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.of("log"), "a 2\nb 2\n");
}

#[test]
fn an_edit_within_a_command_begins_with_the_earlier_content() {
    let place = Place::new();
    place.write_aged("params", "alpha=1\n");
    place.write_aged("data", "one\n");
    place.write_aged(
        "run.sh",
        "sed -i 's/$/0/' params; cat params data > result\n",
    );
    place.keep("sh run.sh", LAZY);
    place.write_aged("data", "two\n");
    // The whole command is stale.
    place.write_aged(
        "run.sh",
        "sed -i 's/$/0/' params; cat params data > result # more\n",
    );
    let answer = place.run(&["rerun", "result"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.of("params"), "alpha=10\n");
    assert_eq!(place.of("result"), "alpha=10\ntwo\n");
}

#[test]
fn an_edit_whose_earlier_version_is_lost_is_refused() {
    let place = Place::new();
    place.write_aged("params", "alpha=1\n");
    place.write_aged("by", "s/$/0/\n");
    place.keep("sed -i -f by params", &["--contents=off"]);
    place.write_aged("by", "s/$/5/\n");
    let answer = place.run(&["rerun", "params"]);
    answer.is_error(1, &["params is outdated, and cannot be made again"]);
    assert_eq!(place.of("params"), "alpha=10\n");
}

/// Records a command with a standard input.
fn recorded_with_input(place: &Place, input: Stdio, command: &[&str]) {
    let args = [&["record", "--contents=lazy", "--wait", "--"], command].concat();
    let mut recorded = place.command(&args);
    let answer = Answer::of(recorded.stdin(input).output().unwrap());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{command:?}");
}

#[test]
fn a_file_as_standard_input_is_opened_again() {
    let place = Place::new();
    place.write_aged("src", "b\na\n");
    let file = fs::File::open(place.path("src")).unwrap();
    recorded_with_input(&place, file.into(), &["sort", "-o", "out"]);
    assert_eq!(place.of("out"), "a\nb\n");
    place.write_aged("src", "d\nc\n");
    let answer = place.run(&["rerun", "out"]);
    assert_eq!(
        (answer.status, place.of("out").as_str()),
        (0, "c\nd\n"),
        "{answer:?}"
    );
}

#[test]
fn a_pipe_as_standard_input_is_gone_and_can_be_given_again() {
    let place = Place::new();
    place.write_aged("more", "x\n");
    let (read, mut write) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut write, b"b\na\n").unwrap();
    drop(write);
    recorded_with_input(&place, read.into(), &["sort", "-o", "out", "-", "more"]);
    assert_eq!(place.of("out"), "a\nb\nx\n");
    place.write_aged("more", "y\n");
    let answer = place.run(&["rerun", "out"]);
    answer.is_error(1, &["standard input", "a pipe", "< FILE"]);
    assert_eq!(place.of("out"), "a\nb\nx\n");
    place.write_aged("given", "c\n");
    let mut command = place.command(&["rerun", "out"]);
    command.stdin(fs::File::open(place.path("given")).unwrap());
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(
        (answer.status, place.of("out").as_str()),
        (0, "c\ny\n"),
        "{answer:?}"
    );
}

#[test]
fn a_failed_step_gets_hard_links_and_holes_back() {
    let place = Place::new();
    place.write_aged("in", "ok\n");
    place.write_aged(
        "step.sh",
        "grep ok in > new; truncate -s 4M new; mv new out\n",
    );
    place.keep("sh step.sh", LAZY);
    let path = |name: &str| place.work().join(name);
    fs::hard_link(path("out"), path("second")).unwrap();
    let inode = fs::metadata(path("out")).unwrap().ino();
    place.write_aged("step.sh", "echo half > new; mv new out; exit 3\n");
    assert_eq!(place.run(&["rerun", "out"]).status, 1);
    let found = fs::metadata(path("out")).unwrap();
    assert_eq!(
        (found.ino(), found.len(), found.nlink()),
        (inode, 4 << 20, 2)
    );
    assert!(found.blocks() * 512 < 1 << 20, "{found:?}");
    // It is no work of a person.
    place.write_aged("step.sh", "grep ok in > out\n");
    let answer = place.run(&["rerun", "out"]);
    assert_eq!(
        (answer.status, place.of("out").as_str()),
        (0, "ok\n"),
        "{answer:?}"
    );
}
