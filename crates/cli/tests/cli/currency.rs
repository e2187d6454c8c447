//! `status` and `rerun` share one judgement: what is current, and what is not.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::{Answer, Place};

impl Place {
    /// Runs a shell line in `work`, in which `record` records a command. Its output goes where the
    /// line says.
    pub(crate) fn sh(&self, line: &str) {
        let mut shell = self.stage.command("sh");
        shell
            .env("BACKSTORY_STORE", self.stage.store())
            .env("PROGRAM", self.stage.path().join("bin/backstory"))
            .current_dir(self.work())
            .stdin(Stdio::null());
        shell.args(["-e", "-c"]).arg(format!(
            "record() {{ \"$PROGRAM\" record --contents=lazy -- \"$@\"; }}; {line}"
        ));
        let answer = Answer::of(shell.output().unwrap());
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{line}");
        assert_eq!(self.run(&["index", "--wait"]).status, 0);
    }

    /// The states of files, by one question for all of them.
    pub(crate) fn file_states(&self, paths: &[&str]) -> Vec<String> {
        let answer = self.run(&[&["status", "--json"], paths].concat());
        assert_eq!(answer.err, "", "{answer:?}");
        let files: Value = serde_json::from_str(&answer.out).unwrap();
        let state = |file: &Value| file["state"].as_str().unwrap().to_owned();
        let states: Vec<String> = files.as_array().unwrap().iter().map(state).collect();
        let current = states.iter().all(|state| state == "current");
        assert_eq!(answer.status == 0, current, "{answer:?}");
        states
    }

    /// The state of one file, which `rerun --dry-run` must share.
    #[track_caller]
    pub(crate) fn file_state(&self, path: &str) -> String {
        let state = self.file_states(&[path]).remove(0);
        let plan = self.run(&["rerun", "--dry-run", path]);
        assert_eq!(plan.err, "", "{plan:?}");
        assert_eq!(plan.status == 0, state == "current", "{state}: {plan:?}");
        state
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }
}

#[test]
fn a_changed_input_makes_the_results_of_later_runs_outdated() {
    let place = Place::new();
    place.write_aged("in", "b\na\nc\n");
    place.sh("record sort -r in > mid; record head -n 1 mid > out");
    assert_eq!(place.file_state("mid"), "current");
    assert_eq!(place.file_state("out"), "current");
    place.write_aged("in", "d\nb\na\nc\n");
    assert_eq!(place.file_state("mid"), "outdated");
    assert_eq!(place.file_state("out"), "outdated");
    let text = place.run(&["status", "out"]);
    assert!(text.out.starts_with("outdated"), "{text:?}");
    assert!(text.out.contains("input modified"), "{text:?}");
    assert_eq!(place.run(&["rerun", "out"]).status, 0);
    assert_eq!(place.read("out"), "d\n");
    assert_eq!(place.file_state("out"), "current");
    assert_eq!(place.file_state("mid"), "current");
}

#[test]
fn the_same_content_under_another_time_is_no_change() {
    let place = Place::new();
    place.write_aged("in", "b\na\nc\n");
    place.sh("record sh -c 'sort in > mid; head -n 1 mid > out'");
    place.sh("touch in mid out");
    assert_eq!(place.file_states(&["mid", "out"]), ["current", "current"]);
    for name in ["in", "mid", "out"] {
        let text = place.read(name);
        fs::remove_file(place.path(name)).unwrap();
        place.write_aged(name, &text);
        assert_eq!(place.file_state("out"), "current", "{name}");
    }
    place.write_aged("out", "x\n");
    assert_eq!(place.file_state("out"), "modified");
    assert_eq!(place.file_state("mid"), "current");
}

#[test]
fn a_copy_by_the_kernel_stays_current_if_its_original_comes_out_the_same() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.write_aged("do.sh", "sort in > mid\ncat mid > out\n");
    place.sh("record sh do.sh");
    place.write_aged("in", "a\nb\n");
    let again = place.run(&["rerun", "--yes", "mid"]);
    assert_eq!(again.status, 0, "{again:?}");
    assert_eq!(place.file_states(&["mid", "out"]), ["current"; 2]);
    place.write_aged("in", "c\n");
    assert_eq!(place.file_states(&["mid", "out"]), ["outdated"; 2]);
}

/// The directory gets a name after a program listed it, while the run goes on. A fresh execution
/// would find the name.
#[test]
fn a_directory_that_changed_after_it_was_listed_makes_the_result_uncertain() {
    let place = Place::with_files(&[("d/a", "1\n"), ("e/a", "1\n")]);
    place.write_aged(
        "do.sh",
        "cat d/* > out\n: > listed\nwhile [ ! -e d/b ]; do sleep 0.01; done\n",
    );
    let editor = "while [ ! -e listed ]; do sleep 0.01; done; sleep 0.05; echo 2 > d/b";
    let mut editor = std::process::Command::new("sh")
        .args(["-c", editor])
        .current_dir(place.path("."))
        .spawn()
        .unwrap();
    place.sh("record sh do.sh");
    assert!(editor.wait().unwrap().success());
    place.sh("record sh -c 'cat e/* > other'");
    let states = place.file_states(&["out", "other"]);
    assert_eq!(states, ["uncertain", "current"]);
}

/// The script removes a temporary file, makes a file anew that it has read, and keeps the records
/// of a builder.
const BUILD: &str = "sort in > tmp1\n\
    cat .deps/a.Po gen 2>/dev/null || true\n\
    head -n 2 tmp1 > res\n\
    rm tmp1\n\
    wc -l < in > gen\n\
    cat gen > res2\n\
    mkdir -p .deps\n\
    date +%N > .deps/a.Po\n";

#[test]
fn a_step_that_ran_again_with_the_same_result_leaves_the_steps_after_it_current() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.write_aged("do.sh", "grep -v '^#' in > mid; sort mid > out\n");
    place.sh("record sh do.sh");
    assert_eq!(place.file_state("out"), "current");

    place.write("in", "# a comment\nb\na\n");
    assert_eq!(place.file_state("out"), "outdated");
    let first = place.run(&["rerun", "out"]);
    assert_eq!(first.status, 0, "{first:?}");
    assert!(!first.err.contains("stale again"), "{first:?}");
    assert_eq!(place.file_states(&["mid", "out"]), ["current", "current"]);
    let second = place.run(&["rerun", "--dry-run", "out"]);
    assert!(second.out.contains("is up to date"), "{second:?}");

    place.write("in", "# a comment\nc\na\n");
    assert_eq!(place.file_state("out"), "outdated");
    assert_eq!(place.run(&["rerun", "out"]).status, 0);
    assert_eq!(place.read("out"), "a\nc\n");
    assert_eq!(place.file_states(&["mid", "out"]), ["current", "current"]);
}

#[test]
fn a_result_is_current_right_after_its_build_and_after_the_next() {
    let place = Place::new();
    place.write_aged("in", "b\na\nc\n");
    place.write_aged("build.sh", BUILD);
    for _ in 0..2 {
        place.sh("record sh build.sh > log");
        for result in ["res", "res2", "gen"] {
            assert_eq!(place.file_state(result), "current", "{result}");
        }
    }
    place.write_aged("in", "b\na\nc\nA\n");
    assert_eq!(place.file_state("res"), "outdated");
    assert_eq!(place.run(&["rerun", "res"]).status, 0);
    assert_eq!(place.read("res"), "A\na\n");
    assert_eq!(place.file_state("res"), "current");
}

#[test]
fn a_command_that_printed_into_a_file_runs_again_as_a_whole() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.write_aged("both.sh", "sort in\nsort -r in\n");
    place.sh("record sh both.sh > listed; record tr a-z A-Z < listed > OUT");
    assert_eq!(place.file_state("OUT"), "current");
    place.write_aged("in", "b\na\nc\n");
    assert_eq!(place.file_state("OUT"), "outdated");
    assert_eq!(place.run(&["rerun", "OUT"]).status, 0);
    assert_eq!(place.read("OUT"), "A\nB\nC\nC\nB\nA\n");
    assert_eq!(place.file_state("OUT"), "current");
}

#[test]
fn an_output_that_another_result_does_not_need_does_not_make_it_outdated() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.sh("record sh -c 'sort in | tee one > two'; record sh -c 'cat one > end'");
    place.write_aged("two", "mine\n");
    assert_eq!(place.file_state("two"), "modified");
    assert_eq!(place.file_state("one"), "current");
    assert_eq!(place.file_state("end"), "current");
}

#[test]
fn the_log_of_a_whole_run_is_no_result_that_status_lists() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let line = "record sh -c 'sort in > out; echo done; echo well >&2'";
    place.sh(&format!("{line} > a.log 2>&1; {line} > b.log 2> c.log"));
    place.sh("record sort in > sorted; record sh -c 'sort in; echo x >&2' > both 2>&1");
    let listed = |state: &str| -> String {
        let names = ["both", "out", "sorted"].map(|name| place.path(name));
        names.map(|path| format!("{state}\t{path}\n")).concat()
    };
    assert_eq!(place.run(&["status", "--porcelain"]).out, listed("current"));
    let text = place.run(&["status"]).out;
    assert!(text.contains("Not shown: 3 logs of whole runs."), "{text}");
    place.write_aged("in", "b\na\nc\n");
    let outdated = place.run(&["status", "--porcelain"]).out;
    assert_eq!(outdated, listed("outdated"));
    // A question about the log itself is answered.
    assert_eq!(place.file_states(&["a.log"]).len(), 1);
    assert_eq!(place.run(&["rerun", "both"]).status, 0);
    assert_eq!(place.read("both"), "a\nb\nc\nx\n");
    assert_eq!(place.file_state("both"), "current");
}

#[test]
fn a_file_that_the_shell_emptied_for_the_output_is_no_source_of_itself() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.sh("record sort in > sorted");
    let told = place.run(&["of", "sorted"]).out;
    assert!(told.contains("sources: in\n"), "{told}");
    place.sh("record sort -r in >> sorted");
    let told = place.run(&["of", "sorted"]).out;
    assert!(told.matches("sort").count() > 2, "{told}");
}

#[test]
fn without_paths_the_kept_results_of_the_project_are_judged() {
    let place = Place::new();
    for directory in ["p", "p/sub", "q"] {
        fs::create_dir(place.work().join(directory)).unwrap();
        place
            .stage
            .user()
            .owns(&place.work().join(directory))
            .unwrap();
    }
    fs::create_dir(place.work().join("p/.git")).unwrap();
    place.write_aged("p/in", "b\na\n");
    place.sh("cd p; record sh -c 'sort in > sub/a; sort in > gone; sort in > ../q/c; rm gone'");
    place.sh("cd p; record sh -c 'sort in > removed'; rm removed");
    let status = |more: &[&str]| {
        let mut command = place.command(&[&["status"], more].concat());
        Answer::of(
            command
                .current_dir(place.work().join("p/sub"))
                .output()
                .unwrap(),
        )
    };
    let text = status(&[]);
    assert_eq!(text.status, 0, "{text:?}");
    let run = text.out.find("  [run").unwrap();
    assert_eq!(&text.out[..run], "current    a", "{text:?}");
    assert!(!text.out.contains("/q/c"), "{text:?}");
    assert!(text.out.contains("1 file in other directories"), "{text:?}");
    assert!(status(&["--outside"]).out.contains("/q/c"));
    let root = place.path("q");
    let other = status(&["--root", &root, "--porcelain"]);
    assert_eq!(other.out, format!("current\t{}\n", place.path("q/c")));
    assert_eq!(status(&["-q"]).status, 0);
    let named = status(&["a", "../in"]).out;
    assert!(named.starts_with("current    a  [run"), "{named}");
    assert!(
        named.contains(&place.path("p/in")),
        "a file above is absolute: {named}"
    );
    let paths = place.path("p/sub/a");
    assert_eq!(
        status(&["--porcelain", "a"]).out,
        format!("current\t{paths}\n")
    );
    assert!(
        status(&["--json", "a"])
            .out
            .contains(&format!("\"{paths}\""))
    );
    place.write_aged("p/in", "b\na\nc\n");
    let text = status(&[]);
    assert_eq!(text.status, 1, "{text:?}");
    assert!(text.out.starts_with("outdated"), "{text:?}");
    let quiet = status(&["-q"]);
    assert_eq!((quiet.status, quiet.out.as_str()), (1, ""));
}
