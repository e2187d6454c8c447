//! The log has both ends of each connection that a process accepts, for few calls of the recorder.

#![allow(clippy::unwrap_used)]

use super::harness;

use backstory_eventlog::event::Op;
use backstory_testkit::need::needs;
use harness::{Run, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PLAIN: &[&str] = &["--contents", "off"];
const DEEP: &[&str] = &["--deep", "digest", "--contents", "off"];
const DEEP_WITH_CONTENTS: &[&str] = &["--deep", "digest", "--contents", "lazy"];

/// Compiles the program, and returns its path.
fn program(run: &Run) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/accepts.c");
    let program = run.path("accepts");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]);
    let built = compiler.arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    program.to_str().unwrap().to_owned()
}

fn hexadecimal(address: &[u8]) -> String {
    address.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn both_ends_of_an_accepted_connection_are_those_that_the_kernel_knows() {
    if !needs("a server", &["cc"]) {
        return;
    }
    for options in [PLAIN, DEEP] {
        let run = Run::new(options);
        let output = run.record(&[&program(&run), "tell"]);
        assert!(output.status.success(), "{output:?}");
        let mut networks = BTreeSet::new();
        let mut logged = Vec::new();
        for event in run.events() {
            if let Op::Ends {
                accepted,
                network,
                own,
                other,
                ..
            } = &event.op
            {
                networks.insert(*network);
                let line = format!("{} {}", hexadecimal(own), hexadecimal(other));
                logged.extend(accepted.then_some(line));
            }
        }
        logged.sort_unstable();
        let output = text(&output.stdout);
        let mut told: Vec<&str> = output.lines().collect();
        told.sort_unstable();
        assert!(told.len() > 100, "{output}");
        assert_eq!(logged, told, "{options:?}");
        // The clients ask about each of their sockets.
        assert_eq!(networks.len(), 1, "{options:?}: {networks:?}");
    }
}

#[test]
fn a_connection_that_took_the_number_of_a_listening_socket_is_logged_with_its_bytes() {
    if !needs("a server", &["cc"]) {
        return;
    }
    let run = Run::new(PLAIN);
    let file = run.path("file");
    fs::write(&file, "the answer").unwrap();
    let output = run.record(&[&*program(&run), "reuse", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let is_of_answer = |op: &Op| matches!(op, Op::Traffic { sent: 10, .. });
    let events = run.events();
    let logged = events.iter().filter(|event| is_of_answer(&event.op));
    assert_eq!(logged.count(), 1);
}

const REQUESTS: usize = 300;

/// The system calls of a server that answers requests, as strace counts them. The command is made
/// from the words that run the server.
fn calls(run: &Run, command: impl Fn(&[&str]) -> Command) -> usize {
    let (program, file, trace) = (program(run), run.path("file"), run.path("trace"));
    fs::write(&file, "the answer").unwrap();
    let count = REQUESTS.to_string();
    let words = [&*program, "serve", &*count, file.to_str().unwrap()];
    let command = command(&words);
    let Output { status, stdout, .. } = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&trace)
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(run.dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(status.success());
    let server = format!("{} ", text(&stdout).trim());
    let trace = text(&fs::read(trace).unwrap());
    let of_server = trace.lines().filter_map(|line| line.strip_prefix(&server));
    // A call that another process interrupts has a second line, which begins with "<".
    let begun = of_server.filter(|call| call.trim_start().starts_with(|c: char| c.is_alphabetic()));
    begun.count()
}

fn natively(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

#[test]
fn a_server_makes_one_call_more_for_each_connection_and_one_for_each_file_if_it_is_deep() {
    if !needs("counts of system calls", &["cc", "strace"]) {
        return;
    }
    let native = calls(&Run::new(&[]), natively);
    // Each request is a connection, a question, a file and an answer.
    assert!(native > 7 * REQUESTS, "{native}");
    // TCP_INFO at the end of a connection, and the identity of a file.
    for (options, more) in [(PLAIN, 1), (DEEP, 2), (DEEP_WITH_CONTENTS, 2)] {
        let run = Run::new(options);
        let recorded = calls(&run, |words| run.command(words));
        run.log();
        // The rest is the beginning of the recorder, and chunks.
        let most = native + more * REQUESTS + REQUESTS / 2;
        assert!(recorded <= most, "{options:?}: {recorded}, not {most}");
    }
}
