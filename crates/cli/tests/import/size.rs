//! A large log is imported in bounded memory.

use super::Desk;
use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::Stdio;
use std::time::Duration;

/// The text of a read that `strace` prints without `-s`.
const SHORT: &str = "\\177ELF\\2\\1\\1\\0\\0\\0\\0";

/// Writes a log of this many bytes: one shell that runs many compilers.
fn write_log(path: &std::path::Path, size: usize) -> u64 {
    write_log_with(SHORT, 1, std::fs::File::create(path).unwrap(), size)
}

/// The same. Each file is read `reads` times, and each read prints `text_read`.
fn write_log_with(text_read: &str, reads: usize, out: std::fs::File, size: usize) -> u64 {
    let read = |pid: u64, second: u64, header: i32| {
        format!("{pid} {second}.2 read(3</w/h/{header}.h>, \"{text_read}\"..., 832) = 832\n")
    };
    let mut out = BufWriter::new(out);
    writeln!(
        out,
        "100 1700000000.0 execve(\"/bin/sh\", [\"sh\"], 0x7f /* 3 vars */) = 0"
    )
    .unwrap();
    writeln!(out, "100 1700000000.1 brk(NULL) = 0x1000").unwrap();
    let (mut written, mut children) = (0, 0);
    while written < size {
        let (pid, second) = (101 + children % 30_000, 1_700_000_001 + children);
        let mut text = format!(
            "100 {second}.0 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = {pid}\n\
             {pid} {second}.1 execve(\"/usr/bin/cc\", [\"cc\", \"-c\", \"f{pid}.c\"], 0x7f) = 0\n"
        );
        for header in 0..40 {
            text += &format!(
                "{pid} {second}.2 openat(AT_FDCWD</w>, \"h/{header}.h\", O_RDONLY|O_CLOEXEC) = 3</w/h/{header}.h>\n\
                 {}{pid} {second}.2 close(3</w/h/{header}.h>) = 0\n",
                read(pid, second, header).repeat(reads)
            );
        }
        text += &format!("{pid} {second}.3 +++ exited with 0 +++\n");
        written += text.len();
        children += 1;
        out.write_all(text.as_bytes()).unwrap();
    }
    writeln!(out, "100 1800000000.0 +++ exited with 0 +++").unwrap();
    out.flush().unwrap();
    children
}

/// Imports a log, whose format and name are `words`. Returns what `show` tells about the run.
#[track_caller]
fn imported_within(megabytes: u32, desk: &Desk, words: &str) -> serde_json::Value {
    let mut shell = desk.stage.command("sh");
    // The mapped pages of the run's log do not count.
    let limit = megabytes * 1024;
    let line = format!("ulimit -d {limit} && exec \"$0\" import {words}");
    shell
        .args(["-c", &line])
        .arg(desk.stage.path().join("bin/backstory"));
    shell
        .env("BACKSTORY_STORE", desk.stage.store())
        .current_dir(desk.work());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    desk.json(&["show", "--json"])
}

/// Checks that the run of a log of [`write_log_with`] is in the store.
#[track_caller]
fn is_whole(desk: &Desk, children: u64) {
    let show = desk.json(&["show", "--json"]);
    assert_eq!(show["processes"], children + 1, "{show}");
    assert_eq!(show["files_read"], 42, "{show}");
    assert_eq!(desk.reasons(), "[]");
}

/// The text of a read that `strace -s 4096` prints.
fn long() -> String {
    "some text\\n".repeat(4096 / 11)
}

#[test]
fn a_log_is_imported_within_less_memory_than_it_has_bytes() {
    let desk = Desk::new();
    let log = desk.work().join("trace.log");
    let file = std::fs::File::create(&log).unwrap();
    let children = write_log_with(&long(), 1, file, 48 << 20);
    desk.stage.user().owns(&log).unwrap();
    imported_within(20, &desk, "strace trace.log");
    is_whole(&desk, children);
}

#[test]
#[ignore = "a minute"]
fn a_log_of_100_megabytes_is_imported_within_80_megabytes_of_memory() {
    let desk = Desk::new();
    let log = desk.work().join("trace.log");
    let children = write_log(&log, 100 << 20);
    desk.stage.user().owns(&log).unwrap();
    imported_within(80, &desk, "strace trace.log");
    is_whole(&desk, children);
}

/// More bytes than a number of 32 bits can count, through a pipe. The importer has one limit for
/// its own memory, and another for what it ever had resident, with mapped files.
#[test]
#[ignore = "several minutes, and 5 GB of disk"]
fn a_log_of_several_gigabytes_that_comes_through_a_pipe_is_imported_in_bounded_memory() {
    let desk = Desk::new();
    let made = desk.shell("mkfifo pipe");
    assert!(made.status.success(), "{made:?}");
    let mut shell = desk.stage.command("sh");
    let line = "ulimit -d 81920 && exec \"$0\" import strace --pipe pipe";
    shell
        .args(["-c", line])
        .arg(desk.stage.path().join("bin/backstory"))
        .env("BACKSTORY_STORE", desk.stage.store())
        .current_dir(desk.work())
        .stdout(Stdio::piped());
    let mut import = shell.spawn().unwrap();
    let pipe = std::fs::File::create(desk.work().join("pipe")).unwrap();
    let children = write_log_with(&long(), 16, pipe, (4 << 30) + (200 << 20));
    let mut said = BufReader::new(import.stdout.take().unwrap()).lines();
    let said = said.next().unwrap().unwrap();
    assert!(said.starts_with("imported as run "), "{said}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", import.id())).unwrap();
    kill_process(Pid::from_child(&import), Signal::TERM).unwrap();
    assert!(import.wait().unwrap().success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    let peak: u64 = peak.parse().unwrap();
    assert!(peak < 256 << 10, "{peak} kB were resident");
    is_whole(&desk, children);
}

/// Writes a log of auditd of this many bytes: one shell that runs many compilers, none of which
/// ends in the log.
fn write_audit_log(path: &std::path::Path, size: usize) -> u64 {
    let mut out = BufWriter::new(std::fs::File::create(path).unwrap());
    let (mut written, mut serial, mut children) = (0, 0, 0);
    let mut event = |pid: u64, number: u32, exit: u64, records: &str| {
        serial += 1;
        let head = format!("msg=audit({}.001:{serial}):", 1_700_000_000 + serial / 100);
        let (comm, ppid) = if pid == 100 { ("sh", 1) } else { ("cc", 100) };
        let mut text = format!(
            "type=SYSCALL {head} arch=c000003e syscall={number} success=yes exit={exit} \
             a0=ffffff9c a1=5 a2=0 a3=0 items=0 ppid={ppid} pid={pid} comm=\"{comm}\" \
             exe=\"/usr/bin/{comm}\" key=(null)\n"
        );
        for record in records.lines() {
            let (kind, fields) = record.split_once(' ').unwrap();
            text += &format!("type={kind} {head} {fields}\n");
        }
        text += &format!("type=PROCTITLE {head} proctitle=\"{comm}\"\n");
        written += text.len();
        out.write_all(text.as_bytes()).unwrap();
        written
    };
    event(
        100,
        59,
        0,
        "EXECVE argc=1 a0=\"sh\"\nPATH item=0 name=\"/bin/sh\" nametype=NORMAL",
    );
    loop {
        let pid = 101 + children % 30_000;
        event(100, 56, pid, "");
        let path = "PATH item=0 name=\"/usr/bin/cc\" nametype=NORMAL";
        event(
            pid,
            59,
            0,
            &format!("EXECVE argc=1 a0=\"cc\"\nCWD cwd=\"/w\"\n{path}"),
        );
        for header in 0..40 {
            let path = format!("PATH item=0 name=\"h/{header}.h\" nametype=NORMAL");
            event(pid, 257, 3, &format!("CWD cwd=\"/w\"\n{path}"));
        }
        children += 1;
        if event(pid, 3, 0, "") > size {
            return children;
        }
    }
}

#[test]
#[ignore = "half a minute"]
fn a_log_of_auditd_of_60_megabytes_is_imported_within_80_megabytes_of_memory() {
    let desk = Desk::new();
    let log = desk.work().join("audit.log");
    let children = write_audit_log(&log, 60 << 20);
    desk.stage.user().owns(&log).unwrap();
    let show = imported_within(80, &desk, "auditd audit.log");
    assert_eq!(show["processes"], children + 1, "{show}");
}

/// Writes a document of PROV-JSON: many compilers that read the same headers. The relations come
/// before the activities that they name.
fn write_document(path: &std::path::Path, activities: usize) {
    let mut out = BufWriter::new(std::fs::File::create(path).unwrap());
    let list =
        |out: &mut BufWriter<std::fs::File>, section: &str, one: &dyn Fn(usize) -> String| {
            write!(out, "\"{section}\":{{").unwrap();
            for at in 0..activities {
                let comma = if at > 0 { "," } else { "" };
                write!(out, "{comma}{}", one(at)).unwrap();
            }
            write!(out, "}}").unwrap();
        };
    write!(out, "{{\"prefix\":{{\"f\":\"file:///w/\"}},").unwrap();
    list(&mut out, "used", &|at| {
        let used = (0..40).map(|header| {
            format!(
                "\"_:{at}.{header}\":{{\"prov:activity\":\"cc{at}\",\"prov:entity\":\"f:{header}.h\",\
                 \"prov:time\":\"2026-11-23T03:00:00Z\",\"prov:role\":\"header\"}}"
            )
        });
        used.collect::<Vec<_>>().join(",")
    });
    write!(out, ",").unwrap();
    list(&mut out, "wasGeneratedBy", &|at| {
        format!("\"_:{at}\":{{\"prov:activity\":\"cc{at}\",\"prov:entity\":\"f:{at}.o\"}}")
    });
    write!(out, ",").unwrap();
    list(&mut out, "activity", &|at| {
        format!("\"cc{at}\":{{\"prov:label\":\"cc {at}.c\"}}")
    });
    write!(out, "}}").unwrap();
    out.flush().unwrap();
}

#[test]
#[ignore = "half a minute"]
fn a_document_of_30_megabytes_is_imported_within_48_megabytes_of_memory() {
    let desk = Desk::new();
    let document = desk.work().join("document");
    write_document(&document, 7_000);
    assert!(document.metadata().unwrap().len() > 28 << 20);
    desk.stage.user().owns(&document).unwrap();
    let show = imported_within(48, &desk, "prov-json document");
    assert_eq!(show["processes"], 7_000, "{show}");
    assert_eq!(show["files_read"], 40, "{show}");
}

#[test]
fn a_signal_during_an_import_leaves_nothing_in_the_store() {
    let desk = Desk::new();
    let log = desk.work().join("trace.log");
    // Long enough that no import of it ends before the signal.
    write_log(&log, 12 << 20);
    desk.stage.user().owns(&log).unwrap();
    for signal in ["INT", "TERM", "HUP"] {
        let mut import = desk.stage.backstory(&["import", "strace", "trace.log"]);
        let mut import = import.current_dir(desk.work()).spawn().unwrap();
        let is_writing = || desk.runs().iter().any(|name| name.ends_with(".import"));
        assert!(eventually(Duration::from_secs(120), is_writing), "{signal}");
        let id = import.id().to_string();
        let kill = desk.shell(&format!("kill -{signal} {id}"));
        assert!(kill.status.success(), "{kill:?}");
        assert!(!import.wait().unwrap().success(), "{signal}");
        assert_eq!(desk.runs(), Vec::<String>::new(), "{signal}");
    }
}

#[test]
fn two_imports_of_one_log_at_once_make_one_run_and_one_says_so() {
    let desk = Desk::new();
    let log = desk.work().join("trace.log");
    write_log(&log, 4 << 20);
    desk.stage.user().owns(&log).unwrap();
    let import = || {
        let mut import = desk.stage.backstory(&["import", "strace", "trace.log"]);
        let import = import.current_dir(desk.work());
        import.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let both = [import(), import()].map(|import| import.wait_with_output().unwrap());
    let mut said = both.map(|output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    said.sort();
    assert!(said[0].starts_with("imported as run "), "{said:?}");
    assert!(
        said[1].starts_with("in the store already: run "),
        "{said:?}"
    );
    assert_eq!(desk.json(&["log", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn an_import_that_was_killed_can_be_done_again() {
    let desk = Desk::new();
    let log = desk.work().join("trace.log");
    let children = write_log(&log, 12 << 20);
    desk.stage.user().owns(&log).unwrap();
    let mut import = desk.stage.backstory(&["import", "strace", "trace.log"]);
    let mut import = import.current_dir(desk.work()).spawn().unwrap();
    let is_writing = || desk.runs().iter().any(|name| name.ends_with(".import"));
    assert!(eventually(Duration::from_secs(120), is_writing));
    import.kill().unwrap();
    import.wait().unwrap();
    // No question takes the part of a log for a run.
    assert_eq!(desk.json(&["log", "--json"]), serde_json::json!([]));
    desk.import(&[log], &[]);
    assert_eq!(desk.json(&["show", "--json"])["processes"], children + 1);
    assert_eq!(desk.runs().len(), 1, "{:?}", desk.runs());
}
