//! Tests of processes: how they are made, executed, ended and waited for.

use crate::harness::{
    Arena, RecordedProgram, command, folder, library, program, program_with, record, record_with,
};
use backstory_abi as abi;
use std::os::unix::fs::symlink;
use std::path::Path;

fn run(how: &str) -> RecordedProgram {
    let dir = folder();
    let binary = program("children");
    let run = record(&mut command(dir.path(), &[binary.to_str().unwrap(), how]));
    assert_eq!(run.output.status.code(), Some(3), "{:?}", run.output);
    assert_eq!(run.lost, 0);
    run
}

/// The names of the first process's records, in order.
fn story(run: &RecordedProgram) -> Vec<&'static str> {
    run.threads[0].records.iter().map(|s| s.name).collect()
}

#[test]
fn a_fork_child_starts_anew_and_is_known_to_its_parent() {
    let run = run("fork");
    assert_eq!(run.threads.len(), 2);
    let (parent, child) = (&run.threads[0], &run.threads[1]);
    let fork = run.first("FORK")[0].head;
    assert_eq!(fork.result as u32, child.pid);
    let start = &child.records[0];
    assert_eq!(
        (
            start.name,
            start.head.fd as u32,
            start.head.arg as u32,
            start.head.aux
        ),
        ("START", child.pid, parent.pid, 1)
    );
    assert!(fork.time < start.head.time);
    assert_eq!(
        child.records.last().map(|s| (s.name, s.head.arg)),
        Some(("EXIT", 7))
    );
    let wait = run.first("WAIT")[0].head;
    assert_eq!((wait.result as u32, wait.arg), (child.pid, 7 << 8));
    assert_eq!(
        parent.records.last().map(|s| (s.name, s.head.arg)),
        Some(("EXIT", 3))
    );
}

#[test]
fn a_vfork_childs_deeds_stand_between_two_marks_in_its_parents_chunk() {
    let run = run("vfork");
    let without_env: Vec<_> = story(&run)
        .into_iter()
        .filter(|n| !["ENV", "ARGS", "LOAD"].contains(n))
        .collect();
    assert_eq!(
        without_env,
        [
            "START", "VFORK", "EXIT", "VFORKED", "WAIT", "VFORK", "EXEC", "EXEC", "VFORKED",
            "WAIT", "VFORK", "EXEC", "VFORKED", "WAIT", "EXIT"
        ]
    );
    let execs = run.first("EXEC");
    assert_eq!((execs[0].head.state, execs[0].head.result), (2, -2));
    assert_eq!(execs[1].head.state, 1, "one that succeeded never returns");
    assert_eq!(
        run.first("ARGS").last().unwrap().strings,
        ["true", "vforked"]
    );
    let children: Vec<_> = run.first("VFORKED").iter().map(|s| s.head.result).collect();
    let waited: Vec<_> = run.first("WAIT").iter().map(|s| s.head.result).collect();
    assert_eq!(children, waited);
    assert!(
        run.first("EXIT")[0].head.flags & 64 != 0,
        "the child's, not the owner's"
    );
    assert_eq!(run.threads.len(), 3, "both executed programs are recorded");
}

#[test]
fn a_spawned_child_and_its_file_actions_are_recorded() {
    let run = run("spawn");
    let marks: Vec<_> = story(&run)
        .into_iter()
        .filter(|n| ["VFORK", "OPEN", "DUP", "EXEC", "VFORKED"].contains(n))
        .collect();
    assert_eq!(
        marks[..7],
        ["VFORK", "OPEN", "DUP", "EXEC", "VFORKED", "VFORK", "EXEC"]
    );
    let open = run.first("OPEN")[0];
    assert_eq!(
        (open.strings[0].as_str(), open.head.result),
        ("spawned", 1),
        "under the number it was to have"
    );
    assert_eq!(run.first("VFORKED")[1].head.result, -2);
    assert!(
        run.threads
            .iter()
            .any(|t| t.pid == run.first("VFORKED")[0].head.result as u32),
        "it has the recorder"
    );
    assert!(
        run.threads
            .iter()
            .any(|t| t.pid == run.first("VFORKED")[2].head.result as u32)
    );
}

#[test]
fn system_and_popen_tell_whom_they_started() {
    let run = run("system");
    let children: Vec<_> = run.first("VFORKED").iter().map(|s| s.head.result).collect();
    assert_eq!(children.len(), 3);
    assert!(
        children
            .iter()
            .all(|c| run.threads.iter().any(|t| t.pid as i32 == *c)),
        "{children:?}"
    );
    let kinds: Vec<_> = run.first("VFORK").iter().map(|s| s.head.arg).collect();
    assert_eq!(kinds, [3, 4, 4]);
    let pipes = run.first("PIPE");
    assert!(
        pipes[0].head.fd >= 3 && pipes[1].head.arg >= 3,
        "our ends: {pipes:?}"
    );
    let wait = run.first("WAIT")[0].head;
    assert_eq!((wait.result, wait.arg), (children[0], 7 << 8));
}

#[test]
fn children_by_clone_are_recorded() {
    let run = run("clone");
    let spawned = run.first("VFORKED")[0].head.result;
    let forked = run.first("FORK")[0].head.result;
    for child in [spawned, forked] {
        assert!(run.threads.iter().any(|t| t.pid as i32 == child), "{child}");
    }
}

#[test]
fn a_child_by_clone3_on_its_parents_memory_is_recorded() {
    // Compiled with a frame pointer: the parent needs it unchanged after the call.
    let binary = program_with("clone3_vfork", "cc", &["-O0"]).unwrap();
    for stack in ["parents", "own"] {
        let argv = [binary.to_str().unwrap(), stack];
        let dir = folder();
        let native = command(dir.path(), &argv).status().unwrap();
        assert_eq!(native.code(), Some(0), "natively, on its {stack} stack");
        let run = record(&mut command(dir.path(), &argv)).fine();
        let of_child: Vec<_> = run
            .first("OPEN")
            .into_iter()
            .filter(|r| r.head.flags & abi::F_CHILD != 0)
            .map(|r| r.strings[0].as_str())
            .collect();
        assert_eq!(of_child, ["input", "output"], "on its {stack} stack");
        assert_eq!(run.of("EXEC").len(), 1, "on its {stack} stack");
        let wait = run.first("WAIT")[0].head;
        assert_eq!(run.first("VFORKED")[0].head.result, wait.result);
    }
}

#[test]
fn every_form_of_exec_is_recorded_with_arguments_and_environment() {
    let run = run("exec");
    let succeeded: Vec<_> = run
        .of("EXEC")
        .into_iter()
        .filter(|s| s.head.state == 1)
        .collect();
    assert_eq!(succeeded.len(), 8);
    assert!(
        succeeded.iter().all(|s| s.head.arg == 2),
        "argc: {succeeded:?}"
    );
    assert_eq!(
        run.of("ARGS")
            .iter()
            .filter(|s| s.strings == ["true", "executed"])
            .count(),
        8
    );
    let environments: Vec<_> = run.of("ENV").iter().map(|s| s.strings.clone()).collect();
    assert!(
        environments.contains(&vec!["PATH=/nowhere".to_owned(), "GIVEN=yes".to_owned()]),
        "{environments:?}"
    );
    assert!(
        environments
            .iter()
            .flatten()
            .all(|v| !v.starts_with("LD_PRELOAD") && !v.starts_with("BACKSTORY"))
    );
    let in_full = environments.iter().filter(|e| !e.is_empty()).count();
    assert_eq!(in_full, 2, "each environment once");
    let programs = run
        .threads
        .iter()
        .filter(|t| t.records[0].head.aux == 0)
        .count();
    assert_eq!(
        programs, 9,
        "all are recorded, whatever environment they were given"
    );
}

#[test]
fn shells_and_what_they_start_are_recorded() {
    let dir = folder();
    let line = "cat input | tr a-z A-Z > upper; ( cd / && ls > /dev/null ); env -i /bin/cat input";
    let run = record(&mut command(dir.path(), &["sh", "-c", line])).fine();
    let executed: Vec<_> = run
        .of("ARGS")
        .iter()
        .map(|s| s.strings[0].clone())
        .collect();
    for name in ["cat", "tr", "ls", "env", "/bin/cat"] {
        assert!(executed.iter().any(|e| e == name), "{name} in {executed:?}");
    }
    let recorded = run
        .threads
        .iter()
        .filter(|t| t.records[0].name == "START" && t.records[0].head.aux == 0)
        .count();
    assert_eq!(recorded, 6);
}

#[test]
fn after_a_jump_out_of_system_records_belong_to_the_process() {
    let dir = folder();
    let binary = program("jumps");
    let run = record(&mut command(dir.path(), &[binary.to_str().unwrap()])).fine();
    let records = &run.threads[0].records;
    let at = |name: &str| records.iter().position(|s| s.name == name);
    assert_eq!(records.iter().filter(|s| s.name == "VFORKED").count(), 1);
    assert!(
        at("VFORKED") < at("STAT") && at("STAT").is_some(),
        "{:?}",
        story(&run)
    );
}

/// An entry for any program, of which only the path for 64-bit programs exists. The loader of a
/// program that gets the other path prints an error.
fn entry_that_is_wide_only(dir: &Path) -> std::path::PathBuf {
    let place = dir.join("64");
    std::fs::create_dir(&place).unwrap();
    symlink(library(), place.join(backstory_abi::PRELOAD_NAME)).unwrap();
    place.join(backstory_abi::PRELOAD_NAME)
}

#[test]
fn a_known_loader_gets_the_full_path_of_the_recorder() {
    let dir = folder();
    let entry = entry_that_is_wide_only(dir.path());
    let script = dir.path().join("script");
    let text = b"#! /bin/sh -e\ncat input; /bin/cat input; env -i cat input\n";
    backstory_testkit::program::write(&script, text).unwrap();
    let line = ["sh", "-c", "exec ./script"];
    let run = record_with(&mut command(dir.path(), &line), &Arena::default(), &entry);
    assert!(run.output.stderr.is_empty(), "{:?}", run.output);
    assert_eq!(run.output.stdout, b"some bytes to read\n".repeat(3));
    let programs = run
        .threads
        .iter()
        .filter(|t| t.records[0].head.aux == 0)
        .count();
    assert_eq!(programs, 6, "sh, the script's, three times cat, env");
    let opened = run
        .of("OPEN")
        .into_iter()
        .filter(|s| s.strings[0].contains("script"));
    assert_eq!(
        opened.count(),
        1,
        "by the shell that reads it, not by us who looked"
    );
}

#[test]
fn a_program_without_that_loader_is_given_the_entry_for_any() {
    let Some(shows) = program_with("shows_environment", "cc", &["-static"]) else {
        backstory_testkit::need::skipped("a static child", "needs a static libc");
        return;
    };
    let dir = folder();
    let entry = entry_that_is_wide_only(dir.path());
    let mut shell = command(
        dir.path(),
        &["sh", "-c", "\"$0\"; true", shows.to_str().unwrap()],
    );
    let run = record_with(&mut shell, &Arena::default(), &entry);
    let text = String::from_utf8(run.output.stdout).unwrap();
    let given = format!(
        "LD_PRELOAD={}/$LIB/linux-backstory.so",
        dir.path().display()
    );
    assert!(text.lines().any(|line| line == given), "{text}");
    assert!(run.output.stderr.is_empty());
}
