//! The log has both ends of each connection that a process accepts.

#![allow(clippy::unwrap_used)]

mod harness;

use backstory_eventlog::event::Op;
use backstory_testkit::need::needs;
use harness::{Run, text};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const PLAIN: &[&str] = &["--contents", "off"];
const DEEP: &[&str] = &["--deep", "digest", "--contents", "off"];

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
