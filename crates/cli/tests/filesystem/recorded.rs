//! Files have their origin, and processes their names.

use std::fs;
use std::process::Command;

use backstory_testkit::program;

use crate::filesystem::watched::{Kind, WatchedFilesystem, watched, watched_with};

/// Waits at the gate after its work.
const SORT: &str = "
import os, sys
text = sorted(open(sys.argv[1]).read())
open(sys.argv[2], 'w').write(''.join(text))
open(os.environ['GATE']).read()
";

/// Runs a script of Python that waits at the gate.
fn python(watched: &WatchedFilesystem, script: &str, arguments: &[&str]) {
    let mut program = Command::new("python3");
    program.args(["-c", script]).args(arguments);
    watched.known(&mut program, &["/python3"]);
}

fn a_file_has_its_origin(what: &str, kind: Kind) {
    let filled = |at: &std::path::Path| {
        fs::write(at.join("a"), "3\n1\n2\n").unwrap();
        fs::write(at.join("other"), "not used\n").unwrap();
    };
    let Some(mut watched) = watched(what, kind, filled) else {
        return;
    };
    python(&watched, SORT, &["a", "b"]);
    watched.shell("sort other > elsewhere");
    watched.end();
    assert_eq!(watched.inputs("b"), ["a", "b"]);
    assert_eq!(watched.inputs("elsewhere"), ["elsewhere", "other"]);
    let uses = watched.paths(&["uses", "--json", &watched.path("a")]);
    assert_eq!(uses, ["a", "b"]);
    let who = watched.answer(&["who", &watched.path("a")]);
    assert!(who.contains("python3"), "{who}");
    let show = watched.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
}

#[test]
fn a_file_made_in_a_watched_memory_file_system_has_its_origin() {
    a_file_has_its_origin("the origin of a file in tmpfs", Kind::Tmpfs);
}

#[test]
fn a_file_made_in_a_watched_ext4_file_system_has_its_origin() {
    a_file_has_its_origin("the origin of a file in ext4", Kind::Ext4);
}

#[test]
fn a_server_of_a_watched_file_system_makes_nothing_from_what_it_reads_later() {
    let filled = |at: &std::path::Path| {
        fs::write(at.join("a"), "text\n").unwrap();
        fs::write(at.join("later"), "text\n").unwrap();
    };
    let Some(mut watched) = watched("the order of a daemon's files", Kind::Tmpfs, filled) else {
        return;
    };
    let script = "
import os
text = open('a').read()
with open('b', 'w') as out: out.write(text)
open('later').read()
open(os.environ['GATE']).read()
";
    python(&watched, script, &[]);
    watched.end();
    assert_eq!(watched.inputs("b"), ["a", "b"]);
    let who = watched.answer(&["who", &watched.path("later")]);
    assert!(who.contains("python3"), "{who}");
}

#[test]
fn a_program_has_the_files_that_it_inherits_open() {
    let filled = |at: &std::path::Path| fs::write(at.join("a"), "text\n").unwrap();
    let Some(mut watched) = watched("redirected files", Kind::Tmpfs, filled) else {
        return;
    };
    let script = "import os, sys; sys.stdout.write(sys.stdin.read()); open(os.environ[\"GATE\"])";
    let mut shell = Command::new("sh");
    shell.args(["-ec", &format!("python3 -c '{script}' < a > b")]);
    watched.known(&mut shell, &["/python3"]);
    watched.end();
    assert_eq!(watched.inputs("b"), ["a", "b"]);
    let who = watched.answer(&["who", &watched.path("b")]);
    assert!(who.contains("python3"), "{who}");
}

#[test]
fn a_program_of_the_watched_file_system_is_recorded_with_its_arguments() {
    let filled = |at: &std::path::Path| {
        program::copy("/bin/sleep".as_ref(), &at.join("tool")).unwrap();
        program::write(&at.join("script"), b"#!/bin/sh\ncat a $GATE > b\n").unwrap();
        fs::write(at.join("a"), "text\n").unwrap();
    };
    let what = "programs on the watched file system";
    let Some(mut watched) = watched(what, Kind::Ext4, filled) else {
        return;
    };
    watched.shell("./tool 0");
    let mut script = Command::new("./script");
    watched.known(&mut script, &["./script", "/cat"]);
    watched.end();
    let processes = watched.answer(&["processes"]);
    assert!(processes.contains("./script"), "{processes}");
    assert_eq!(watched.inputs("b"), ["a", "b", "script"]);
}

#[test]
fn hundreds_of_short_programs_leave_no_file_without_its_input() {
    let filled = |at: &std::path::Path| {
        for n in 0..200 {
            fs::write(at.join(format!("in{n}")), format!("{n}\n")).unwrap();
        }
    };
    let Some(mut watched) = watched("many short programs", Kind::Tmpfs, filled) else {
        return;
    };
    watched.shell("n=0; while [ $n -lt 200 ]; do cat in$n > out$n; n=$((n+1)); done");
    watched.end();
    for n in 0..200 {
        let found = watched.inputs(&format!("out{n}"));
        assert_eq!(found, [format!("in{n}"), format!("out{n}")]);
    }
}

#[test]
fn contents_of_used_files_are_stored_when_the_watch_ends_if_that_is_asked_for() {
    let filled = |at: &std::path::Path| {
        fs::write(at.join("a"), "3\n1\n2\n").unwrap();
        fs::write(at.join("gone"), "text\n").unwrap();
        fs::write(at.join("unused"), "text\n").unwrap();
    };
    let what = "contents of a watched file system";
    let Some(mut watched) = watched_with(what, Kind::Tmpfs, &["--contents=lazy"], filled) else {
        return;
    };
    watched.shell("sort a > b; cat gone > c; rm gone");
    watched.wait_for("/gone");
    watched.end();
    let stored = |name: &str| watched.stage.backstory(&["contents", &watched.path(name)]);
    for (name, wanted) in [
        ("a", Some("3\n1\n2\n")),
        ("b", Some("1\n2\n3\n")),
        ("gone", None),
    ] {
        // The background process may still store it; a question waits for that.
        let output = stored(name).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let found = output.status.success().then_some(output.stdout);
        assert_eq!(
            found.as_deref(),
            wanted.map(str::as_bytes),
            "{name}: {said}"
        );
    }
    // The answer comes from the store: the file is another one by now.
    fs::write(watched.at.join("b"), "new\n").unwrap();
    let run = watched.answer(&["log"]);
    let run = run.split_whitespace().next().unwrap();
    let version = format!("{}@{run}", watched.path("b"));
    assert_eq!(watched.answer(&["contents", &version]), "1\n2\n3\n");
    let mut all = watched
        .stage
        .backstory(&["watch", "--contents=all", "--filesystem"]);
    let refused = all.arg(&watched.at).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
