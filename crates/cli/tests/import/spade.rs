//! Documents in SPADE's DSL: vertices and edges of OPM, with the keys of SPADE's reporters.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal, kill_process};

use super::Desk;
use super::documents::{behind, import, paths};

#[test]
fn vertices_and_edges_of_spade_become_processes_and_files() {
    let desk = Desk::new();
    import(&desk, "spade", "spade.dsl", &["--cwd", "/work"]);
    // The derivation names no process: the one that made the old state read it.
    assert_eq!(paths(&desk, "read"), ["/work/tool.c", "/work/tool.o"]);
    let all = [
        "[\"make\",\"-j2\"] in \"/work\"",
        "[\"cc\",\"-c\",\"tool.c\"]",
        "/work/tool.c",
    ];
    behind(&desk, "/work/tool.o", &all);
    behind(&desk, "/work/copy of tool.o", &all);
    let shown = desk.json(&["show", "--json"]).to_string();
    assert!(
        shown.contains("network socket local address:10.0.0.1"),
        "{shown}"
    );
    let show = desk.json(&["show", "--json"]);
    let reasons = show["incomplete_because"].to_string();
    for reason in [
        "1 edges of vertices without a line",
        "1 time of the document cannot be read",
    ] {
        assert!(reasons.contains(reason), "{reasons}");
    }
}

#[test]
fn lines_that_are_not_of_spade_are_refused_or_counted() {
    let desk = Desk::new();
    let refused = |text: &[u8]| {
        desk.write("document", text);
        let output = desk.backstory(&["import", "spade", "document"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("no line has a \"type\" of SPADE"), "{error}");
    };
    refused(b"");
    refused(b"hello world\n");
    refused(b"type:Unicorn id:1\n\xff\xfe:\\\n");
    // An edge without an end, a vertex without an id, and a path that leads upwards do no harm.
    let text = b"type:Used from:1\ntype:Process pid:7\ntype:Artifact id:x path:/../../etc/passwd\n";
    desk.write("document", text);
    let output = desk.backstory(&["import", "spade", "document"]);
    assert!(output.status.success(), "{output:?}");
    let show = desk.json(&["show", "--json"]);
    assert!(
        show["incomplete_because"].to_string().contains("1 used"),
        "{show}"
    );
}

#[test]
fn line_ends_of_windows_are_no_part_of_a_path() {
    let desk = Desk::new();
    let text = include_str!("documents/spade.dsl").replace('\n', "\r\n");
    desk.write("document", text.as_bytes());
    let output = desk.backstory(&["import", "spade", "document", "--cwd", "/work"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(paths(&desk, "read"), ["/work/tool.c", "/work/tool.o"]);
    behind(&desk, "/work/copy of tool.o", &["/work/tool.c"]);
}

/// A reporter that waits at `pipe` in `work`.
fn reporter(desk: &Desk, format: &str) -> Child {
    reporter_every(desk, format, "0")
}

/// One that also imports what has come so far.
fn reporter_every(desk: &Desk, format: &str, seconds: &str) -> Child {
    reporter_with(desk, format, &["--every", seconds])
}

fn reporter_with(desk: &Desk, format: &str, options: &[&str]) -> Child {
    let arguments = ["import", format, "--pipe", "pipe", "--cwd", "/work"];
    let mut command = desk.stage.backstory(&arguments);
    command.args(options);
    command.current_dir(desk.work()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let errors = BufReader::new(child.stderr.as_mut().unwrap());
    let line = errors.lines().next().unwrap().unwrap();
    assert!(line.contains("until Ctrl-C"), "{line}");
    child
}

#[test]
fn programs_that_write_for_spades_reporter_write_into_a_pipe() {
    let desk = Desk::new();
    let mut child = reporter(&desk, "spade");
    let pipe = desk.work().join("pipe");
    let write = |text: &str| std::fs::write(&pipe, text).unwrap();
    let mut imported = lines_of(&mut child);
    let vertices = |made: &str| {
        format!(
            "type:Process id:1 pid:7 name:make\ntype:Artifact id:2 path:/work/{made}\ntype:WasGeneratedBy from:2 to:1\n"
        )
    };
    write(&vertices("first"));
    assert!(imported().starts_with("imported as run "));
    write(&vertices("second"));
    assert!(imported().starts_with("imported as run "));
    // The writer has the pipe open when the reporter is asked to end.
    let mut open = File::options().write(true).open(&pipe).unwrap();
    open.write_all(vertices("third").as_bytes()).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(imported().starts_with("imported as run "));
    assert!(child.wait().unwrap().success());
    for made in ["first", "second", "third"] {
        behind(&desk, &format!("/work/{made}"), &["make"]);
    }
    assert!(!pipe.exists());
    has_no_copies(&desk);
}

/// The lines of a reporter's standard output.
fn lines_of(child: &mut Child) -> impl FnMut() -> String + use<> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    move || lines.next().unwrap().unwrap()
}

/// Ends a reporter, which reports success.
#[track_caller]
fn ends(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

/// No copy of a log is left.
#[track_caller]
fn has_no_copies(desk: &Desk) {
    let left = std::fs::read_dir(desk.stage.store().join("pipes")).unwrap();
    assert_eq!(left.count(), 0);
}

/// The runs of the store.
fn runs(desk: &Desk) -> Vec<String> {
    let runs = desk.json(&["log", "--json"]);
    let runs = runs.as_array().unwrap().iter();
    runs.map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn lines_that_programs_write_one_by_one_are_one_run_if_it_is_wanted() {
    let desk = Desk::new();
    let mut child = reporter_with(&desk, "spade", &["--every", "1", "--one-run"]);
    let pipe = desk.work().join("pipe");
    let mut said = lines_of(&mut child);
    let write = |line: &str| std::fs::write(&pipe, format!("{line}\n")).unwrap();
    write("type:Process id:1 pid:7 name:make");
    write("type:Artifact id:2 path:/work/first");
    write("type:WasGeneratedBy from:2 to:1");
    while runs(&desk).is_empty() || !desk.backstory(&["of", "/work/first"]).status.success() {
        assert!(said().starts_with(SO_FAR));
    }
    // The process is known from the writer before.
    write("type:Artifact id:3 path:/work/second");
    write("type:WasGeneratedBy from:3 to:1");
    ends(child);
    for made in ["first", "second"] {
        behind(&desk, &format!("/work/{made}"), &["make"]);
    }
    assert_eq!(runs(&desk).len(), 1);
    assert!(
        !desk.reasons().contains("edges of vertices"),
        "{}",
        desk.reasons()
    );
    has_no_copies(&desk);
}

#[test]
fn logs_without_lines_are_not_joined() {
    let desk = Desk::new();
    let refused = desk.backstory(&["import", "strace", "--pipe", "pipe", "--one-run"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("leave out --one-run"), "{why}");
}

const PATIENCE: Duration = Duration::from_secs(120);
const SO_FAR: &str = "imported the log so far as run ";

#[test]
fn elements_are_visible_while_a_program_has_the_pipe_open() {
    let desk = Desk::new();
    let mut child = reporter_every(&desk, "spade", "1");
    let mut said = lines_of(&mut child);
    let mut open = File::options()
        .write(true)
        .open(desk.work().join("pipe"))
        .unwrap();
    let mut write = |text: &str| open.write_all(text.as_bytes()).unwrap();
    // The end of the last line comes later.
    write(
        "type:Process id:1 pid:7 name:make\ntype:Artifact id:2 path:/work/first\n\
         type:WasGeneratedBy from:2 to:1\ntype:Artifact id:3 pa",
    );
    let first = said();
    let first = first.strip_prefix(SO_FAR).unwrap();
    behind(&desk, "/work/first", &["make"]);
    let reasons = desk.reasons();
    assert!(
        reasons.contains("a program still has the pipe"),
        "{reasons}"
    );
    // The process is known from the part before.
    write("th:/work/second\ntype:WasGeneratedBy from:3 to:1\n");
    let second = said();
    let second = second.strip_prefix(SO_FAR).unwrap();
    behind(&desk, "/work/second", &["make"]);
    assert_eq!(runs(&desk), [second]);
    assert_ne!(first, second);
    drop(open);
    let whole = said();
    let whole = whole.strip_prefix("imported as run ").unwrap();
    assert_eq!(runs(&desk), [whole]);
    assert_eq!(desk.reasons(), "[]");
    ends(child);
    has_no_copies(&desk);
}

#[test]
fn a_killed_reader_of_a_pipe_loses_nothing() {
    let desk = Desk::new();
    let mut child = reporter_every(&desk, "spade", "1");
    let mut said = lines_of(&mut child);
    let pipe = desk.work().join("pipe");
    // This reader keeps what is in the pipe, and the writer, while no reporter is there.
    let keeper = File::options().read(true).write(true).open(&pipe).unwrap();
    let mut open = File::options().write(true).open(&pipe).unwrap();
    let mut write = |text: &str| open.write_all(text.as_bytes()).unwrap();
    write("type:Process id:1 pid:7 name:make\ntype:Artifact id:2 path:/work/first\n");
    assert!(said().starts_with(SO_FAR));
    for at in 3..200 {
        write(&format!(
            "type:Artifact id:{at} path:/work/{at}\ntype:WasGeneratedBy from:{at} to:1\n"
        ));
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    write("type:WasGeneratedBy from:2 ");
    // The next reader shows what the first one has, and goes on in the middle of a line.
    let mut child = reporter_every(&desk, "spade", "1");
    let mut said = lines_of(&mut child);
    assert!(said().starts_with(SO_FAR));
    write("to:1\n");
    drop((open, keeper));
    let whole = loop {
        let line = said();
        if let Some(run) = line.strip_prefix("imported as run ") {
            break run.to_owned();
        }
    };
    assert_eq!(runs(&desk), [whole]);
    for made in ["first", "3", "199"] {
        behind(&desk, &format!("/work/{made}"), &["make"]);
    }
    assert_eq!(desk.reasons(), "[]");
    ends(child);
    has_no_copies(&desk);
}

#[test]
fn a_log_whose_writers_ended_while_no_reader_was_there_is_imported_by_the_next() {
    let desk = Desk::new();
    let mut child = reporter(&desk, "spade");
    let pipe = desk.work().join("pipe");
    let mut open = File::options().write(true).open(&pipe).unwrap();
    let text = "type:Process id:1 pid:7 name:make\ntype:Artifact id:2 path:/work/first\n\
                type:WasGeneratedBy from:2 to:1\n";
    open.write_all(text.as_bytes()).unwrap();
    // The reporter has taken the lines from the pipe.
    let pipes = desk.stage.store().join("pipes");
    let has_all = || {
        let copies = std::fs::read_dir(&pipes).unwrap();
        let sizes = copies.filter_map(|copy| Some(copy.ok()?.metadata().ok()?.len()));
        sizes.sum::<u64>() == text.len() as u64
    };
    assert!(
        eventually(PATIENCE, has_all),
        "the lines are not in the store"
    );
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    drop(open);
    let mut child = reporter(&desk, "spade");
    let mut said = lines_of(&mut child);
    assert!(said().starts_with("imported as run "));
    behind(&desk, "/work/first", &["make"]);
    ends(child);
}

#[test]
fn a_log_of_a_pipe_that_is_no_log_is_kept() {
    let desk = Desk::new();
    let mut child = reporter(&desk, "spade");
    std::fs::write(desk.work().join("pipe"), "hello world\n").unwrap();
    let directory = desk.stage.store().join("pipes");
    // The message names the copy, and the reporter waits for the next log.
    let errors = BufReader::new(child.stderr.take().unwrap());
    let lines: Vec<String> = errors.lines().take(2).map(Result::unwrap).collect();
    assert!(
        lines[0].contains("no line has a \"type\" of SPADE"),
        "{lines:?}"
    );
    let copy = lines[1].split("kept in ").nth(1).unwrap();
    assert!(copy.starts_with(directory.to_str().unwrap()), "{copy}");
    assert_eq!(std::fs::read(copy).unwrap(), b"hello world\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
