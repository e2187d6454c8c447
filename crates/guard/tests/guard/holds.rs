//! Descriptors that a process has open without a recorder having seen how it got them.

use crate::stage::{NOWHERE, Outcome, Seen, command, executor, spec, static_busybox, watch_with};
use backstory_abi::op;
use backstory_guard::GuardSettings;
use std::process::Command;
use std::sync::Arc;

/// The last list of a process before record `end`: descriptor, access mode, target.
fn held<T>(seen: &Outcome<T>, pid: u32, end: usize) -> Vec<(i32, u32, String)> {
    let records: Vec<&Seen> = seen.seen[..end]
        .iter()
        .filter(|s| s.record.op == op::HOLD && s.caller.pid == pid)
        .collect();
    let head = records.iter().rposition(|s| s.record.arg == -1).unwrap();
    let list = &records[head + 1..];
    assert_eq!(records[head].record.result as usize, list.len());
    assert!(list.iter().all(|s| s.record.fd as u32 == pid));
    list.iter()
        .map(|s| (s.record.arg, s.record.aux & 3, s.string(0).to_owned()))
        .collect()
}

fn exec_of<T>(seen: &Outcome<T>, applet: &str) -> (u32, usize) {
    let args = seen
        .seen
        .iter()
        .position(|s| s.record.op == op::ARGS && s.string(1) == applet)
        .unwrap();
    let pid = seen.seen[args].caller.pid;
    (pid, args)
}

#[test]
fn both_ends_of_a_static_shells_pipe_are_known_before_its_programs_run() {
    let Some(busybox) = static_busybox() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a"), dir.path().join("c"));
    std::fs::write(&from, "b\na\n").unwrap();
    let line = format!(
        "{busybox} cat < {} | {busybox} sort > {}; true",
        from.display(),
        to.display()
    );
    let seen = command(&[busybox, "sh", "-c", &line]);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "a\nb\n");
    let (cat, at) = exec_of(&seen, "cat");
    let cat = held(&seen, cat, at);
    let (sort, at) = exec_of(&seen, "sort");
    let sort = held(&seen, sort, at);
    assert!(
        cat.contains(&(0, 0, from.to_str().unwrap().to_owned())),
        "{cat:?}"
    );
    assert!(
        sort.contains(&(1, 1, to.to_str().unwrap().to_owned())),
        "{sort:?}"
    );
    let of = |list: &[(i32, u32, String)], fd| list.iter().find(|h| h.0 == fd).cloned().unwrap();
    let (out, into) = (of(&cat, 1), of(&sort, 0));
    assert!(out.2.starts_with("pipe:["), "{out:?}");
    assert_eq!((out.1, into.1, &out.2), (1, 0, &into.2));
}

#[test]
fn a_subshell_that_made_no_call_is_introduced_before_its_child() {
    let Some(busybox) = static_busybox() else {
        return;
    };
    let line = format!("({busybox} sleep 0; true); true");
    let seen = command(&[busybox, "sh", "-c", &line]);
    let shell = exec_of(&seen, "sh").0;
    let (sleep, _) = exec_of(&seen, "sleep");
    let born: Vec<_> = seen
        .seen
        .iter()
        .filter(|s| s.record.op == op::BORN)
        .map(|s| (s.record.fd as u32, s.record.arg as u32))
        .collect();
    let of = |pid| born.iter().position(|b| b.0 == pid).unwrap();
    let subshell = born[of(sleep)].1;
    assert_ne!(subshell, shell);
    assert_eq!(born[of(subshell)].1, shell);
    assert!(of(subshell) < of(sleep), "{born:?}");
    assert!(
        seen.seen
            .iter()
            .any(|s| s.record.op == op::HOLD && s.caller.pid == subshell)
    );
}

#[test]
fn the_descriptors_of_a_process_that_loads_the_recorder_are_not_listed() {
    let watch = GuardSettings {
        gate: Some(NOWHERE),
        // The first file that the loader opens stands for the recorder's library here.
        hidden: vec![b"/etc/ld.so.cache".to_vec()],
        ..GuardSettings::default()
    };
    let seen = watch_with(spec(), watch, Arc::default(), || {
        Command::new("/bin/sh")
            .args(["-c", "(/bin/cat /etc/hostname; true); true"])
            .env_clear()
            .output()
            .unwrap()
            .status
            .success()
    });
    assert!(seen.result);
    let cat = executor(&seen, "/bin/cat");
    let parent = seen
        .seen
        .iter()
        .find(|s| s.record.op == op::BORN && s.caller.pid == cat);
    let parent = parent.unwrap().record.arg as u32;
    let asked = |pid: u32| {
        seen.seen
            .iter()
            .any(|s| s.record.op == op::HOLD && s.caller.pid == pid)
    };
    assert!(!asked(cat) && !asked(parent));
}
