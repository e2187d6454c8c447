//! The state of the log.

use std::fs;
use std::time::Duration;

use super::super::bad_input::damage::Cut;
use super::Place;
use backstory_testkit::need;
use backstory_testkit::procs::eventually;

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
pub(super) fn a_full_disk_is_reported() {
    let place = Place::new();
    let line = "mkdir full; mount -t tmpfs -o size=160k none $PWD/full || exit 9; i=0; \
                $B record --store full/s -- sh -c 'while [ $((i+=1)) -lt 400 ]; do cat /etc/hostname >out; done'; \
                mount -o remount,size=40M none $PWD/full; $B record --store full/s -- true; \
                $B log --store full/s --json";
    let Some(answer) = place.shell_in_namespaces("a full disk", line) else {
        return;
    };
    let runs: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let because = |run: usize| runs[run]["incomplete_because"].to_string();
    assert!(
        because(1).contains("cannot append to log") && because(1).contains("No space left"),
        "{answer:?}"
    );
    assert_eq!(
        (&runs[0]["complete"], because(0).as_str()),
        (&true.into(), "[]"),
        "{runs}"
    );
}

#[test]
pub(super) fn a_full_disk_makes_a_deep_run_shallow_and_is_reported() {
    let place = Place::new();
    let line = "mkdir full; mount -t tmpfs -o size=2M none $PWD/full || exit 9; \
                $B record --store full/s --json-summary one --deep -- sh -c 'head -c 20000000 /dev/urandom | cat - >/dev/null'; \
                mount -o remount,size=40M none $PWD/full; $B record --store full/s --json-summary two --deep -- true; \
                cat one two";
    let Some(answer) = place.shell_in_namespaces("a full disk", line) else {
        return;
    };
    let runs = serde_json::Deserializer::from_str(&answer.out).into_iter::<serde_json::Value>();
    let runs: Vec<_> = runs.map(Result::unwrap).collect();
    let warned = |run: usize| runs[run]["warnings"].to_string();
    let sentence = "the processes are shallow from some moment on: cannot append to deep log";
    assert!(warned(0).contains(sentence), "{answer:?}");
    assert_eq!(
        (&runs[0]["exit"], &runs[0]["complete"]),
        (&0.into(), &true.into())
    );
    assert_eq!(warned(1), "[]", "{answer:?}");
}

#[test]
pub(super) fn a_log_that_is_not_durable_before_the_results_is_reported() {
    let place = Place::new();
    let line = "mkdir full; mount -t tmpfs -o size=4M none $PWD/full || exit 9; \
                $B record --store full/s --durability=ordered -- sh -c 'cat /dev/zero >full/filler; echo >out; \
                sync out; rm full/filler'; $B record --store full/s --durability=ordered -- sh -c 'echo >out; sync out'; \
                $B log --store full/s --json";
    let Some(answer) = place.shell_in_namespaces("a full disk", line) else {
        return;
    };
    let runs: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let because = |run: usize| runs[run]["incomplete_because"].to_string();
    let sentence = "the log was not durable before the results: cannot append to log";
    assert!(because(1).contains(sentence), "{answer:?}");
    assert_eq!(
        (&runs[0]["complete"], because(0).as_str()),
        (&true.into(), "[]"),
        "{runs}"
    );
}

#[test]
pub(super) fn a_log_that_could_not_be_finalized_is_reported_and_found() {
    let place = Place::new();
    place.record("true");
    let runs = place.stage.store().join("runs");
    let runs = runs.to_str().unwrap();
    let answer = place.run(&[
        "record",
        "--json-summary",
        place.summary().to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &format!("echo >out; chmod a-w {runs}"),
    ]);
    let line = "; the next command that may write the store does it";
    answer.is_error(0, &["backstory: cannot finalize the log ", line]);
    let summary = fs::read(place.summary()).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["complete"], serde_json::Value::Null, "{summary}");
    // The log was whole. A process that may write finds and finalizes it, and the reason is gone.
    place.shell(&format!("chmod u+w {runs}"));
    let found = || place.run(&["show", "--json"]).err.is_empty();
    assert!(eventually(PATIENCE, found));
    place.is_complete_without_reasons();
    assert!(place.wrote("out"));
}

#[test]
pub(super) fn a_log_in_whose_place_another_file_was_put_is_reported() {
    let place = Place::new();
    place.record("true");
    let runs = place.stage.store().join("runs");
    let line = format!(
        "cd {} && for log in *.log.part; do rm $log; : >$log; done",
        runs.display()
    );
    let summary = place.summary();
    let summary = summary.to_str().unwrap();
    let answer = place.run(&["record", "--json-summary", summary, "--", "sh", "-c", &line]);
    let replaced = "is not complete: another process removed or replaced the log ";
    answer.is_error(0, &[replaced, ": what was recorded is lost"]);
    let summary = fs::read(place.summary()).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["complete"], false, "{summary}");
    // The same command without the cause.
    let log_stays = line.replace("rm $log; : >$log", ": >>$log");
    let answer = place.run(&["record", "--", "sh", "-c", &log_stays]);
    assert_eq!((answer.status, &*answer.err), (0, ""), "{answer:?}");
}

#[test]
pub(super) fn a_killed_recording_is_reported() {
    let cut = Cut::new();
    cut.place
        .is_reported("the recording was killed; operations after that are unknown");
    cut.place.record("true");
    cut.place.is_complete_without_reasons();
}

#[test]
pub(super) fn a_killed_recording_with_damaged_memory_is_reported() {
    let cut = Cut::new();
    if !cut.arena.exists() {
        return need::skipped("arenas", "needs /dev/shm");
    }
    let length = fs::metadata(&cut.arena).unwrap().len() as usize;
    fs::write(&cut.arena, vec![0x5a; length]).unwrap();
    cut.place
        .is_reported("the recording's shared memory was damaged, so the last operations are lost");
}

#[test]
pub(super) fn a_log_that_was_cut_is_reported() {
    let place = Place::new();
    let run = place.record("cat /etc/hostname >out");
    place.quiet();
    let store = place.stage.store();
    let path = store.join(format!("runs/{run}.log"));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    for name in ["graph.db", "graph.db-wal", "graph.db-shm"] {
        let _ = fs::remove_file(store.join(name));
    }
    place.is_reported("the log has no end: recording was cut off");
    place.is_reported("the log is damaged: ");
    fs::write(&path, &whole).unwrap();
    for name in ["graph.db", "graph.db-wal", "graph.db-shm"] {
        let _ = fs::remove_file(store.join(name));
    }
    place.is_complete_without_reasons();
}

#[test]
pub(super) fn gaps_of_an_imported_log_are_reported() {
    let place = Place::new();
    let lines = "1 execve(\"/bin/x\", [\"x\"], 0x7f /* 1 var */) = 0\n\
        1 brk(NULL) = 0x1000\n1 +++ exited with 0 +++\n";
    place.write("whole.log", lines);
    assert_eq!(place.run(&["import", "strace", "whole.log"]).status, 0);
    place.has_warning("the log has no times (-ttt)");
    place.write(
        "cut.log",
        lines.strip_suffix("1 +++ exited with 0 +++\n").unwrap(),
    );
    assert_eq!(place.run(&["import", "strace", "cut.log"]).status, 0);
    place.is_reported("the imported log has a gap: the log ends before 1 process of the run");
}
