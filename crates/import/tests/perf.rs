//! Lines of `perf trace` become the events of the command's threads.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use backstory_eventlog::Log;

use crate::importing;

/// Imports the lines of a log, whose command is thread 7. Returns the events by process, with names
/// as text, and the reasons why the run is not complete.
fn imported(lines: &str) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let (run, log) = importing::imported(dir.path(), "perf", "perf.log", lines.as_bytes()).unwrap();
    let log = Log::open(&log).unwrap();
    let events = log
        .events()
        .map(|event| format!("{} {:?}", event.pid, event.op));
    (events.collect(), run.incomplete_because.join("; "))
}

/// A name as an event's text has it.
fn bytes(name: &str) -> String {
    format!("{:?}", name.as_bytes())
}

/// True if a process has an event with all these texts.
fn has(events: &[String], pid: u32, texts: &[&str]) -> bool {
    let of = |event: &&String| event.starts_with(&format!("{pid} "));
    let mut own = events.iter().filter(of);
    own.any(|event| texts.iter().all(|text| event.contains(text)))
}

const BEGINNING: &str = "\
     0.010 ( 0.100 ms): sh/7 execve(filename: \"/bin/sh\", argv: 0x7f, envp: 0x7f) = 0
     0.200 ( 0.010 ms): sh/7 openat(dfd: CWD, filename: \"script\") = 3
     0.250 ( 0.010 ms): sh/7 dup(fildes: 1) = 4
     0.300 (         ): sh/7 task:task_newtask(pid: 8 (sh), comm: \"sh\", clone_flags: 16640)
";

#[test]
fn a_pipe_of_a_child_takes_the_numbers_that_the_child_has_free() {
    let lines = "\
     0.400 ( 0.010 ms): sh/8 close(fd: 3) = 0
     0.500 ( 0.010 ms): sh/8 pipe2(fildes: 0x7f) = 0
     0.600 ( 0.010 ms): sh/7 pipe2(fildes: 0x7f) = 0
";
    let (events, reasons) = imported(&[BEGINNING, lines].concat());
    let pipes: Vec<&String> = events.iter().filter(|one| one.contains("Pipe")).collect();
    assert_eq!(pipes.len(), 2, "{events:#?}");
    let is_of = |at: usize, pid: &str, ends: [&str; 2]| {
        let text = pipes[at];
        text.starts_with(pid) && ends.iter().all(|end| text[2..].contains(end))
    };
    assert!(is_of(0, "8 ", ["3", "5"]), "{pipes:?}");
    assert!(is_of(1, "7 ", ["5", "6"]), "{pipes:?}");
    assert!(reasons.contains("the descriptors of 2 pipes"), "{reasons}");
}

#[test]
fn processes_of_the_machine_that_the_command_did_not_make_are_left_out() {
    let before = "\
         ? (         ): other/90  ... [continued]: read()) = 1
     0.001 (         ): other/90 task:task_newtask(pid: 91 (other), comm: \"other\", clone_flags: 0)
     0.002 ( 0.001 ms): other/91 execve(filename: \"/bin/other\", argv: 0x7f, envp: 0x7f) = 0
";
    let after = "\
     0.400 ( 0.010 ms): other/91 openat(dfd: CWD, filename: \"theirs\", flags: WRONLY|CREAT) = 3
     0.500 ( 0.010 ms): sh/8 openat(dfd: CWD, filename: \"ours\", flags: WRONLY|CREAT) = 4
";
    let (events, _) = imported(&[before, BEGINNING, after].concat());
    assert!(has(&events, 8, &["Open", &bytes("ours")]), "{events:#?}");
    let others = events.iter().filter(|one| one.starts_with("9"));
    assert_eq!(others.count(), 0, "{events:#?}");
}

/// BPF gives an empty name if the page of the name is not in memory.
#[test]
fn a_program_that_perf_could_not_read_has_the_name_of_the_event_and_a_file_is_counted() {
    let lines = "\
     0.400 (         ): sh/8 execve(filename: \"\", argv: 0x7f, envp: 0x7f) ...
     0.500 (         ): cat/8 sched:sched_process_exec(filename: \"/bin/cat\", pid: 8 (cat), old_pid: 8 (cat))
     0.400 ( 0.200 ms): cat/8  ... [continued]: execve()) = 0
     0.700 ( 0.010 ms): cat/8 openat(dfd: CWD, filename: \"\") = 4
     0.800 ( 0.010 ms): cat/8 newfstatat(dfd: 4, filename: \"\", statbuf: 0x7f, flag: EMPTY_PATH) = 0
";
    let (events, reasons) = imported(&[BEGINNING, lines].concat());
    assert!(
        has(&events, 8, &["Exec", &bytes("/bin/cat")]),
        "{events:#?}"
    );
    assert!(reasons.contains("did not print 1 path "), "{reasons}");
}

#[test]
fn lost_events_are_added_up_and_a_call_that_never_returned_is_kept() {
    let lines = "\
LOST 2 events!
     0.400 (         ): sh/8 openat(dfd: CWD, filename: \"stuck\", flags: WRONLY|CREAT) ...
LOST 5 events!
     0.900 (         ): sh/8 sched:sched_process_exit(comm: \"sh\", pid: 8 (sh), prio: 120)
";
    let (events, reasons) = imported(&[BEGINNING, lines].concat());
    assert!(has(&events, 8, &["Open", &bytes("stuck")]), "{events:#?}");
    assert!(reasons.contains("perf lost 7 events (-m)"), "{reasons}");
}

/// The birth of a child is printed as a return without a time, perhaps after its first call.
#[test]
fn a_return_without_a_time_does_not_end_another_call_that_has_begun() {
    let lines = "\
     0.350 ( 9.000 ms): sh/7  ... [continued]: vfork()) = 8
         ? (         ): sh/8  ... [continued]: vfork()) = 0
     9.200 (         ): cat/8 execve(filename: \"/bin/cat\", argv: 0x7f, envp: 0x7f) ...
     9.200 ( 0.900 ms): cat/8  ... [continued]: execve()) = 0
";
    let (events, _) = imported(&[BEGINNING, lines].concat());
    assert!(
        has(&events, 8, &["Exec", &bytes("/bin/cat")]),
        "{events:#?}"
    );
}

/// `perf config trace.show_prefix=yes`, and perf 7.3, which does not print the names of errors.
#[test]
fn flags_with_prefixes_and_errors_without_names_are_read() {
    let lines = "\
     0.400 ( 0.010 ms): sh/7 openat(dfd: AT_FDCWD, filename: \"new\", flags: O_CREAT|O_WRONLY, mode: 0644) = 4
     0.500 ( 0.010 ms): sh/7 openat(dfd: CWD, filename: \"none\") = -1 (unknown) (No such file or directory)
";
    let dir = tempfile::tempdir().unwrap();
    let text = [BEGINNING, lines].concat();
    let (_, log) = importing::imported(dir.path(), "perf", "perf.log", text.as_bytes()).unwrap();
    let log = Log::open(&log).unwrap();
    let events: Vec<_> = log.events().collect();
    let found = |name: &str| {
        let of = |op: &String| op.contains("Open") && op.contains(&bytes(name));
        let mut all = events
            .iter()
            .map(|event| (event, format!("{:?}", event.op)));
        all.find(|(_, op)| of(op)).unwrap()
    };
    let (_, new) = found("new");
    let flags = libc::O_CREAT | libc::O_WRONLY;
    assert!(new.contains(&format!("flags: {flags}")), "{new}");
    assert_eq!(found("none").0.outcome.value(), Some(-libc::ENOENT));
}

/// Without the events, each thread of the log is the command's.
#[test]
fn a_log_without_births_has_the_children_that_calls_made() {
    let lines = "\
         ? (         ): sh/7  ... [continued]: execve()) = 0
     0.300 (         ): sh/7 vfork() ...
         ? (         ): sh/8  ... [continued]: vfork()) = 0
     0.400 ( 0.010 ms): sh/8 openat(dfd: CWD, filename: \"of child\", flags: WRONLY|CREAT) = 4
     0.300 ( 0.200 ms): sh/7  ... [continued]: vfork()) = 8
     0.600 (         ): sh/8 exit_group(error_code: 2) = ?
     0.700 (         ): sh/7 exit_group() = ?
";
    let (events, reasons) = imported(lines);
    assert!(
        has(&events, 8, &["Open", &bytes("of child")]),
        "{events:#?}"
    );
    let forks = events.iter().filter(|one| one.contains("Fork"));
    assert_eq!(forks.count(), 1, "{events:#?}");
    assert!(!reasons.contains("the beginning of 1 process"), "{reasons}");
    assert!(!reasons.contains("the log ends before"), "{reasons}");
}
