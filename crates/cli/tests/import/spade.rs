//! Documents in SPADE's DSL: vertices and edges of OPM, with the keys of SPADE's reporters.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

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
    let arguments = ["import", format, "--pipe", "pipe", "--cwd", "/work"];
    let mut command = desk.stage.backstory(&arguments);
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
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut imported = || output.next().unwrap().unwrap();
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
    let left = std::fs::read_dir(desk.stage.store().join("pipes")).unwrap();
    assert_eq!(left.count(), 0);
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
