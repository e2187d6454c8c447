//! A sanitizer gives the same report in a recorded program as natively: the same stacks, the same
//! suppressions, the same status.
//!
//! gcc links the sanitizers' runtimes as libraries, behind the recorder in the loader's order.
//! clang links them into the program, before the recorder. Both orders are tested.

use crate::harness::{command, folder, program_with, record, refill};
use backstory_testkit::need::needs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Builds `sanitized_calls.c`. `None`, with a note on stderr, if the compiler cannot. The runtimes
/// of clang have no symbolizer of their own: without one, no suppression matches a function.
fn sanitized(compiler: &str, sanitizer: &str) -> Option<PathBuf> {
    if compiler == "clang" && !needs("the sanitizers of clang", &["llvm-symbolizer"]) {
        return None;
    }
    let sanitizer = format!("-fsanitize={sanitizer}");
    program_with(
        "sanitized_calls",
        compiler,
        &["-g", "-O0", "-fno-omit-frame-pointer", &sanitizer],
    )
}

/// Returns a report without numbers, since addresses and process ids differ between two executions.
/// It contains only the program's own stack frames: inside libc's functions the recorder has
/// frames, too.
fn masked(report: &[u8]) -> String {
    let text = String::from_utf8_lossy(report);
    let of_the_program = |line: &&str| {
        let is_frame = line.trim_start().starts_with('#');
        !is_frame || line.contains("sanitized_calls.c")
    };
    let without_numbers = |line: &str| {
        let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
        let word = |word: &str| match word.chars().next() {
            Some('0'..='9') => String::new(),
            _ => word.to_owned(),
        };
        words.map(word).collect::<String>() + "\n"
    };
    text.lines()
        .filter(of_the_program)
        .map(without_numbers)
        .collect()
}

fn run(binary: &Path, case: &str, options: (&str, &str), suppressions: &str) -> (Output, Output) {
    let dir = folder();
    let make = || {
        let mut command = command(dir.path(), &[binary.to_str().unwrap(), case]);
        command.env(options.0, options.1);
        std::fs::write(dir.path().join("suppressions"), suppressions).unwrap();
        command
    };
    let native = make().output().unwrap();
    refill(dir.path());
    let mut recorded: Command = make();
    (native, record(&mut recorded).output)
}

/// Runs a case natively and recorded, by both compilers, and compares report, output and status.
/// `expected` is the native status, which shows that the suppression matched.
fn same(sanitizer: &str, case: &str, options: (&str, &str), suppressions: &str, expected: i32) {
    for compiler in ["gcc", "clang"] {
        let Some(binary) = sanitized(compiler, sanitizer) else {
            continue;
        };
        let (native, recorded) = run(&binary, case, options, suppressions);
        let label = format!("{compiler} -fsanitize={sanitizer}, {case}");
        assert_eq!(native.status.code(), Some(expected), "{label}: {native:?}");
        assert_eq!(
            masked(&recorded.stderr),
            masked(&native.stderr),
            "the report of {label}"
        );
        assert_eq!(recorded.stdout, native.stdout, "the output of {label}");
        assert_eq!(recorded.status, native.status, "the status of {label}");
    }
}

#[test]
fn thread_sanitizer_names_the_function_that_created_a_thread() {
    let options = ("TSAN_OPTIONS", "suppressions=suppressions");
    same("thread", "spawn", options, "thread:^spawn$\n", 0);
    same("thread", "spawn", options, "thread:^another$\n", 66);
}

#[test]
fn thread_sanitizer_sees_a_pipe_order_two_threads() {
    same("thread", "pipe", ("TSAN_OPTIONS", "verbosity=0"), "", 0);
}

#[test]
fn address_sanitizer_names_the_function_that_read_too_much() {
    let options = ("ASAN_OPTIONS", "suppressions=suppressions:detect_leaks=0");
    same(
        "address",
        "overrun",
        options,
        "interceptor_via_fun:^overrun$\n",
        0,
    );
    same(
        "address",
        "overrun",
        options,
        "interceptor_via_fun:^another$\n",
        1,
    );
}

#[test]
fn leak_sanitizer_names_the_function_that_opened_a_directory() {
    for (suppression, expected) in [("leak:^leak$\n", 0), ("leak:^another$\n", 23)] {
        let options = "suppressions=suppressions:fast_unwind_on_malloc=0";
        same(
            "leak",
            "leak",
            ("LSAN_OPTIONS", options),
            suppression,
            expected,
        );
    }
}

#[test]
fn memory_sanitizer_takes_what_was_read_for_initialized() {
    // gcc has no MemorySanitizer; `same` skips it.
    same("memory", "filled", ("MSAN_OPTIONS", "verbosity=0"), "", 0);
}

#[test]
fn undefined_behavior_sanitizer_suppresses_by_function() {
    let options = ("UBSAN_OPTIONS", "suppressions=suppressions");
    let suppression = "signed-integer-overflow:overflow\n";
    same("undefined", "overflow", options, suppression, 0);
}
