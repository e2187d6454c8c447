//! Go programs that are linked with a C library: the recorder is in them, and does not see their
//! calls.

use crate::deep::bytes::{compiled_with, deep_log};
use crate::harness::Run;
use backstory_abi::deep;
use backstory_testkit::need::needs;

/// Records a program with the note of Go's linker and the C library of this compiler.
fn go_is_shallow_and_what_it_executes_is_deep(compiler: &str) {
    if !needs("a program with the note of Go's linker", &[compiler]) {
        return;
    }
    let dir = compiled_with(compiler, "go", include_str!("../programs/deep_go.c"));
    let run = Run::new(&["--deep", "full"]);
    let ended = run.record(&[dir.path().join("go").to_str().unwrap()]);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "raw\nlibc\ndeep\n");
    run.log();
    let log = deep_log(&run);
    let programs = log.programs();
    let named: Vec<_> = programs
        .iter()
        .map(|one| one.program.as_deref().unwrap_or_default())
        .collect();
    // With libc's calls alone, the record of the first one would look whole.
    assert_eq!(named, [b"/bin/echo"], "{programs:?}");
    assert!(programs[0].is_whole, "{programs:?}");
    let mut calls = log.process_calls(programs[0].process.epoch);
    assert!(calls.any(|call| call.section(deep::LEFT, 1) == Some(&b"deep\n"[..])));
}

#[test]
fn a_go_program_with_libc_is_shallow_and_the_program_that_it_executes_is_deep() {
    go_is_shallow_and_what_it_executes_is_deep("cc");
}

#[test]
fn a_go_program_with_another_libc_is_shallow_and_the_program_that_it_executes_is_deep() {
    go_is_shallow_and_what_it_executes_is_deep("musl-gcc");
}
