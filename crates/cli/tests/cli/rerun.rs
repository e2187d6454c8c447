//! `rerun`: changed steps are executed again, and no others.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal};

use super::Place;

/// Three steps in one run: two that feed a third.
const LINES: &str =
    "sort -u left > left.sorted; sort -u right > right.sorted; cat left.sorted right.sorted > both";

fn made() -> Place {
    let place = Place::new();
    place.write_aged("left", "b\na\n");
    place.write_aged("right", "d\nc\n");
    place.keep(LINES, &["--contents=lazy"]);
    place
}

impl Place {
    /// The steps and their results.
    fn rerun(&self, path: &str, more: &[&str]) -> Vec<(String, String)> {
        let answer = self.run(&[&["rerun", "--json", path], more].concat());
        assert!(!answer.err.contains("backstory"), "{answer:?}");
        let steps: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (text(&step["step"]), text(&step["state"])))
            .collect()
    }

    fn states(&self, path: &str, more: &[&str]) -> Vec<String> {
        let mut states: Vec<String> = self
            .rerun(path, more)
            .into_iter()
            .map(|(_, state)| state)
            .collect();
        states.sort();
        states
    }
}

#[test]
fn a_current_step_is_not_executed() {
    let place = made();
    assert_eq!(place.states("both", &[]), ["current", "current", "current"]);
    let text = place.run(&["rerun", "both"]);
    assert!(
        text.status == 0 && text.out.contains("up to date"),
        "{text:?}"
    );
    assert_eq!(place.run(&["rerun", "--dry-run", "both"]).status, 0);
}

#[test]
fn a_changed_input_is_followed_to_the_result_and_no_further() {
    let place = made();
    place.write_aged("left", "z\na\n");
    assert_eq!(
        place.states("both", &["--dry-run"]),
        ["current", "stale", "waits"]
    );
    assert_eq!(
        place.states("both", &["-j", "2"]),
        ["again", "again", "current"]
    );
    assert_eq!(
        fs::read_to_string(place.path("both")).unwrap(),
        "a\nz\nc\nd\n"
    );
    place.run(&["index", "--wait"]);
    assert_eq!(
        place.states("both", &[]),
        ["current", "current", "current"],
        "what was done is in the store"
    );
}

#[test]
fn several_files_are_one_plan_in_which_each_step_is_there_once() {
    let place = made();
    place.keep("cat both right > more", &["--contents=lazy"]);
    place.write_aged("right", "f\ne\n");
    let plan = place.run(&["rerun", "--dry-run", "both", "more"]);
    assert!(
        plan.status == 1 && plan.out.contains("both and more: 2 steps to run"),
        "{plan:?}"
    );
    let state = |path: &str, more: &[&str]| place.states(path, more);
    assert_eq!(
        state("both", &["more", "left.sorted", "--dry-run"]),
        ["current", "stale", "stale", "waits"]
    );
    assert_eq!(
        state("both", &["more"]),
        ["again", "again", "again", "current"]
    );
    let texts = ["both", "more"].map(|name| fs::read_to_string(place.path(name)).unwrap());
    assert_eq!(texts, ["a\nb\ne\nf\n", "a\nb\ne\nf\nf\ne\n"]);
    let text = place.run(&["rerun", "both", "more", "left.sorted"]);
    assert!(
        text.status == 0 && text.out.contains("3 files are up to date: 4 steps"),
        "{text:?}"
    );
    let unknown = place.run(&["rerun", "both", "right"]);
    unknown.is_error(1, &["right"]);
}

/// The script started the steps. Executing them again would do what the old script said.
#[test]
fn a_changed_script_is_run_as_a_whole_and_so_is_a_shell_whose_pattern_matches_more() {
    let place = Place::new();
    let script = |text: &str| place.write_program("tool", text);
    script("#!/bin/sh\nsort $1\n");
    place.write("part.1", "b\na\n");
    place.write_aged("end", "z\n");
    place.keep("./tool part.1 > sorted", &["--contents=lazy"]);
    place.keep("cat sorted end > both", &["--contents=lazy"]);
    place.keep("cat part.* > all", &["--contents=lazy"]);
    assert_eq!(place.states("both", &["--dry-run"]), ["current", "current"]);
    script("#!/bin/sh\nsort -r $1\n");
    let text = place.run(&["rerun", "-n", "both"]);
    assert!(
        text.status == 1
            && text
                .out
                .contains("tool has changed, which decides on the commands"),
        "{text:?}"
    );
    assert_eq!(place.states("both", &["--dry-run"]), ["stale", "waits"]);
    assert_eq!(place.states("both", &[]), ["again", "again"]);
    assert_eq!(fs::read_to_string(place.path("both")).unwrap(), "b\na\nz\n");
    place.run(&["index", "--wait"]);
    assert_eq!(place.states("both", &[]), ["current", "current"]);
    assert_eq!(place.states("all", &[]), ["current"]);
    place.write_aged("part.2", "c\n");
    assert_eq!(place.states("all", &[]), ["again"]);
    assert_eq!(fs::read_to_string(place.path("all")).unwrap(), "b\na\nc\n");
    place.run(&["index", "--wait"]);
    assert_eq!(place.states("all", &[]), ["current"]);
}

/// A `make` that finds nothing to do has compared times only. Its changed makefile may have other
/// commands, so its targets stay stale until `rerun` makes them anew.
#[test]
fn a_make_that_runs_nothing_leaves_its_targets_stale() {
    if !needs("a make that does nothing", &["make"]) {
        return;
    }
    let place = Place::new();
    let rules = "b: a\n\ttr a-z A-Z < a > b\na: in\n\tsort in > a\n";
    place.write("in", "b\na\n");
    place.write_aged("Makefile", rules);
    place.keep("make -s b", &["--contents=lazy"]);
    let status = |path: &str| place.run(&["status", path]).status;
    let check = |expected: &[&str], current: bool| {
        // Executed by `rerun`, make and its commands may be one step.
        let mut states = place.states("b", &["--dry-run"]);
        states.dedup();
        assert_eq!(states[0], expected[0], "{states:?}");
        assert!(current == (states.len() == 1 && states[0] == "current"));
        assert_eq!(
            status("b") == 0,
            current,
            "{:?}",
            place.run(&["status", "b"])
        );
    };
    check(&["current"], true);
    place.write_aged(
        "Makefile",
        &format!("# {rules}").replacen("# ", "# none\n", 1),
    );
    check(&["stale"], false);
    place.rerun("b", &[]);
    place.run(&["index", "--wait"]);
    check(&["current"], true);
    place.write_aged("Makefile", &format!("# more\n{rules}"));
    check(&["stale"], false);
    place.keep("make -q b", &["--contents=lazy"]);
    check(&["stale"], false);
    place.keep("make -s b", &["--contents=lazy"]);
    check(&["stale"], false);
    place.rerun("b", &[]);
    place.run(&["index", "--wait"]);
    check(&["current"], true);
    place.write_aged("in", "d\nc\n");
    check(&["stale"], false);
    place.rerun("b", &[]);
    assert_eq!(fs::read_to_string(place.path("b")).unwrap(), "C\nD\n");
}

/// Executed again as a whole, it reads its original standard input. It does not overwrite the file
/// to which its caller redirected its output.
#[test]
fn a_command_that_runs_again_has_its_input_and_leaves_its_callers_output_alone() {
    let place = Place::new();
    place.write("tool", "cat > copy; sort copy > out; echo said\n");
    place.write("printed", "");
    place.write_aged("in", "b\na\n");
    let mut record = place.command(&["record", "--contents=lazy", "--", "sh", "tool"]);
    record.stdin(fs::File::open(place.path("in")).unwrap());
    record.stdout(
        fs::OpenOptions::new()
            .append(true)
            .open(place.path("printed"))
            .unwrap(),
    );
    assert!(record.status().unwrap().success());
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    place.write_aged("tool", "cat > copy; sort -r copy > out; echo said\n");
    place.rerun("out", &[]);
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "b\na\n");
    assert_eq!(fs::read_to_string(place.path("printed")).unwrap(), "said\n");
}

/// The output of steps is not part of the answer.
#[test]
fn the_answer_in_json_is_alone_on_standard_output() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("tee out < in", &["--contents=lazy"]);
    place.write_aged("in", "other\n");
    let answer = place.run(&["rerun", "--json", "out"]);
    let steps: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(steps[0]["state"], "again", "{answer:?}");
}

#[test]
fn an_unchanged_output_makes_no_further_step_stale() {
    let place = made();
    place.write_aged("left", "a\nb\nb\n");
    assert_eq!(place.states("both", &[]), ["current", "current", "same"]);
}

#[test]
fn a_touched_input_with_the_same_content_is_no_change() {
    let place = made();
    place.write_aged("left", "b\na\n");
    assert_eq!(place.states("both", &[]), ["current", "current", "current"]);
}

#[test]
fn a_formerly_missing_file_that_exists_now_counts() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("cat in more > out 2>/dev/null; true", &["--contents=lazy"]);
    place.write_aged("more", "and more\n");
    let text = place.run(&["rerun", "--dry-run", "out"]);
    assert!(
        text.status == 1 && text.out.contains("more") && text.out.contains("was not there"),
        "{text:?}"
    );
}

/// This includes the look-ups of the shell that started the steps. Once the shell has looked again,
/// the change is known.
#[test]
fn a_file_that_a_script_missed_and_that_exists_now_counts() {
    let place = Place::new();
    place.write("in", "text\n");
    place.write_aged(
        "run.sh",
        "if test -e more; then cat in more > out; else cat in > out; fi\n",
    );
    place.keep("sh run.sh", &["--contents=lazy"]);
    assert_eq!(place.states("out", &["--dry-run"]), ["current"]);
    place.write_aged("more", "and more\n");
    assert_eq!(place.states("out", &["--dry-run"]), ["stale"]);
    assert_eq!(place.states("out", &[]), ["again"]);
    assert_eq!(
        fs::read_to_string(place.path("out")).unwrap(),
        "text\nand more\n"
    );
    place.run(&["index", "--wait"]);
    assert_eq!(place.states("out", &[]), ["current"]);
}

#[test]
fn a_removed_output_is_made_again_and_a_failing_step_is_named() {
    let place = made();
    fs::remove_file(place.path("both")).unwrap();
    assert_eq!(place.states("both", &[]), ["current", "current", "same"]);
    assert!(std::path::Path::new(&place.path("both")).exists());
    fs::remove_file(place.path("right")).unwrap();
    let answer = place.run(&["rerun", "both"]);
    assert!(
        answer.status == 1 && answer.err.contains("right.sorted") && answer.err.contains("failed"),
        "{answer:?}"
    );
    place.run(&["rerun", "nothing"]).is_error(1, &["nothing"]);
}

#[test]
fn a_directory_that_is_gone_is_named() {
    let place = Place::new();
    let sub = place.work().join("sub");
    fs::create_dir(&sub).unwrap();
    place.stage.user().owns(&sub).unwrap();
    place.write_aged("in", "b\na\n");
    let mut record = place.command(&[
        "record",
        "--contents=lazy",
        "--",
        "sh",
        "-c",
        "sort ../in > sorted",
    ]);
    assert!(record.current_dir(&sub).status().unwrap().success());
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    fs::remove_dir_all(&sub).unwrap();
    let answer = place.run(&["rerun", "sub/sorted"]);
    assert!(
        answer.status == 1 && answer.err.contains("/work/sub does not exist"),
        "{answer:?}"
    );
}

/// Three runs, each a step: `in` to `sorted` to `first`, and `sorted` to `last`.
fn three_runs() -> Place {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    for line in [
        "sort in > sorted",
        "head -n 1 sorted > first",
        "tail -n 1 sorted > last",
    ] {
        place.keep(line, &["--contents=lazy"]);
    }
    place
}

#[test]
fn a_partial_rerun_can_be_repeated() {
    let place = three_runs();
    for (text, first) in [("c\nb\n", "b\n"), ("c\nb\nd\n", "b\n"), ("d\nc\n", "c\n")] {
        place.write_aged("in", text);
        assert_eq!(
            place.states("first", &["--dry-run"]),
            ["stale", "waits"],
            "{text}"
        );
        place.rerun("first", &[]);
        assert_eq!(fs::read_to_string(place.path("first")).unwrap(), first);
        assert_eq!(
            place.states("first", &["--dry-run"]),
            ["current", "current"],
            "{text}"
        );
    }
}

#[test]
fn a_file_remade_by_another_run_is_no_longer_the_one_read() {
    let place = three_runs();
    place.write_aged("in", "z\ny\n");
    place.rerun("first", &[]);
    // `sorted` is current, but `last` was made from its former version.
    assert_eq!(place.states("last", &["--dry-run"]), ["current", "stale"]);
    place.rerun("last", &[]);
    assert_eq!(fs::read_to_string(place.path("last")).unwrap(), "z\n");
    assert_eq!(place.states("last", &[]), ["current", "current"]);
}

#[test]
fn a_directory_that_was_listed_has_changed_if_names_came_or_went() {
    let place = Place::new();
    fs::create_dir(place.work().join("parts")).unwrap();
    place
        .stage
        .user()
        .owns(&place.work().join("parts"))
        .unwrap();
    place.write("parts/a", "a\n");
    place.write_aged("parts/b", "b\n");
    place.keep("ls parts > all", &["--contents=lazy"]);
    // As editors do: a new file takes the place of the old one.
    place.write("parts/b.new", "b\n");
    fs::rename(
        place.work().join("parts/b.new"),
        place.work().join("parts/b"),
    )
    .unwrap();
    assert_eq!(place.states("all", &["--dry-run"]), ["current"]);
    place.write_aged("parts/c", "c\n");
    assert_eq!(place.states("all", &["--dry-run"]), ["stale"]);
    place.rerun("all", &[]);
    assert_eq!(fs::read_to_string(place.path("all")).unwrap(), "a\nb\nc\n");
    place.run(&["index", "--wait"]);
    fs::remove_file(place.work().join("parts/c")).unwrap();
    assert_eq!(place.states("all", &["--dry-run"]), ["stale"]);
}

/// The running step is ended, too: it does not go on, and no other step starts.
#[test]
fn a_signal_to_rerun_ends_the_running_steps() {
    for signal in [Signal::TERM, Signal::HUP] {
        let place = Place::new();
        place.write_aged("in", "b\na\n");
        let line = "{ test -e hold && echo $$ > at-work && while :; do sleep 0.1; done; cat in; } > made; sort made > sorted";
        place.keep(line, &["--contents=lazy"]);
        let before = fs::read_to_string(place.path("sorted")).unwrap();
        // A formerly missing file exists now.
        place.write_aged("hold", "");
        let mut child = place
            .command(&["rerun", "sorted"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun =
            || fs::read_to_string(place.path("at-work")).is_ok_and(|text| text.ends_with('\n'));
        assert!(eventually(Duration::from_secs(120), begun));
        let step = fs::read_to_string(place.path("at-work")).unwrap();
        rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
        let gone = || !std::path::Path::new("/proc").join(step.trim()).exists();
        assert!(
            eventually(Duration::from_secs(120), gone),
            "the step goes on"
        );
        assert_eq!(fs::read_to_string(place.path("sorted")).unwrap(), before);
        place.finalized();
        assert_eq!(place.json(&["log", "--json"]).as_array().unwrap().len(), 2);
    }
}

/// Compilers write temporary files whose names are random, and an assembler reads its output. Both
/// must not keep the former compilation beside the repeated one.
#[test]
fn a_repeated_compilation_takes_the_place_of_the_former_one() {
    if !backstory_testkit::need::needs("a repeated compilation", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("one.c", "int one(void) { return 1; }\n");
    place.write_aged("gen", "int main(void) { return 0; }\n");
    place.record(
        "cp gen main.c; gcc -c one.c -o one.o; gcc -c main.c -o main.o; gcc one.o main.o -o prog",
    );
    place.write_aged("gen", "int main(void) { return 3; }\n");
    assert_eq!(place.run(&["rerun", "prog"]).status, 0);
    place.run(&["index", "--wait"]);
    let answer = place.run(&["status", "prog"]);
    assert!(answer.out.starts_with("current"), "{answer:?}");
    let steps = place.states("prog", &[]);
    assert!(steps.iter().all(|state| state == "current"), "{steps:?}");
}
