//! Tests that a program sees no difference in itself when it is recorded.

use crate::harness::{
    Arena, command, copy_of_library, folder, program, program_with, record, record_with, refill,
};
use std::io::Write;
use std::process::Command;

/// Runs the command with and without the recorder. Output and status must be the same.
fn same(make: impl Fn(&std::path::Path) -> Command) {
    let dir = folder();
    let plain = make(dir.path()).output().unwrap();
    refill(dir.path());
    let recorded = record(&mut make(dir.path())).output;
    assert_eq!(
        String::from_utf8_lossy(&plain.stdout),
        String::from_utf8_lossy(&recorded.stdout)
    );
    assert_eq!(
        String::from_utf8_lossy(&plain.stderr),
        String::from_utf8_lossy(&recorded.stderr)
    );
    assert_eq!(plain.status, recorded.status);
}

#[test]
fn a_program_sees_its_own_environment_only() {
    let binary = program("surroundings");
    same(|dir| command(dir, &[binary.to_str().unwrap()]));
    same(|dir| command(dir, &["env"]));
    same(|dir| {
        command(
            dir,
            &[
                "sh",
                "-c",
                "cat /proc/self/environ; env -i A=1 cat /proc/self/environ",
            ],
        )
    });
    same(|dir| {
        command(
            dir,
            &[
                "sh",
                "-c",
                "tr '\\0' '\\n' < /proc/self/environ; env -i env",
            ],
        )
    });
}

#[test]
fn the_users_own_preloads_stay_as_they_are() {
    let binary = program("surroundings");
    let libm = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"]
        .into_iter()
        .find(|p| std::path::Path::new(p).exists());
    let Some(libm) = libm else { return };
    same(|dir| {
        let mut command = command(dir, &[binary.to_str().unwrap()]);
        command.env("LD_PRELOAD", libm).env("ZZZ", "after ours");
        command
    });
    same(|dir| {
        let mut command = command(dir, &["sh", "-c", "env; sh -c env"]);
        command.env("LD_PRELOAD", libm);
        command
    });
}

#[test]
fn a_list_of_a_programs_libraries_lacks_the_recorder() {
    for line in [
        "ldd /bin/cat | sed 's/ (0x.*//'",
        "LD_TRACE_LOADED_OBJECTS=1 /bin/cat | sed 's/ (0x.*//'",
        "env LD_TRACE_LOADED_OBJECTS= /bin/cat | sed 's/ (0x.*//'",
    ] {
        same(|dir| command(dir, &["sh", "-c", line]));
    }
}

#[test]
fn output_and_status_are_the_same() {
    for line in [
        "exit 7",
        "kill -TERM $$",
        "cat absent",
        "ls -la /proc/self/fd | wc -l",
        "echo $((1+1)) | cat | cat; cat < input",
        "for i in 1 2 3; do echo $i; done | sort -r",
        "exec 5> five; echo x >&5; cat five",
        "nowhere-to-be-found; echo $?",
        "printf '#!/bin/sh\\necho script' > script; chmod +x script; ./script; env ./script",
        "ulimit -n 6; cat input",
        "ulimit -v 100000; cat input",
        "cd /; pwd; cd - > /dev/null",
        "unset LD_PRELOAD BACKSTORY_ARENA; cat input; env | sort",
        "exec 3< input; (exec 3<&-; cat input); cat <&3",
    ] {
        same(|dir| command(dir, &["sh", "-c", line]));
    }
}

#[test]
fn errno_is_what_the_call_left() {
    same(|dir| {
        command(
            dir,
            &[
                "sh",
                "-c",
                "cat absent; cat /; cat input/x; rmdir /; mkdir input; ln input input",
            ],
        )
    });
}

#[test]
fn a_pointer_to_nowhere_is_the_kernels_to_refuse() {
    let binary = program("nowhere");
    same(|dir| command(dir, &[binary.to_str().unwrap()]));
}

#[test]
fn forbidden_executable_mappings_leave_libc_unchanged() {
    let binary = program("no_new_code");
    let binary = binary.to_str().unwrap();
    same(|dir| command(dir, &[binary]));
    same(|dir| command(dir, &[binary, "sh", "-c", "cat input; sort input"]));
    // The recorder cannot make the gate's page either.
    let Some(occupier) = program_with(
        "occupier",
        "cc",
        &["-shared", "-fPIC", "-Wl,-Ttext-segment=0x550000012000"],
    ) else {
        return;
    };
    same(|dir| {
        let mut command = command(dir, &[binary, "cat", "input"]);
        command.env("LD_PRELOAD", &occupier);
        command
    });
}

#[test]
fn a_call_by_number_is_no_cancellation_point_and_the_loaders_last_error_stays() {
    let binary = program("uncancelled");
    same(|dir| command(dir, &[binary.to_str().unwrap()]));
}

#[test]
fn a_call_by_number_is_made_by_that_number() {
    let binary = program("traced");
    same(|dir| command(dir, &[binary.to_str().unwrap()]));
}

#[test]
fn a_library_of_the_users_stands_before_ours_and_both_work() {
    let Some(users) = program_with("users", "cc", &["-shared", "-fPIC"]) else {
        return;
    };
    let with_users = |dir: &std::path::Path| {
        let mut command = command(dir, &["sh", "-c", "cat input; cat absent"]);
        command.env("LD_PRELOAD", &users);
        command
    };
    same(with_users);
    let dir = folder();
    let run = record(&mut with_users(dir.path()));
    let inputs = run
        .of("OPEN")
        .iter()
        .filter(|s| s.strings[0] == "input")
        .count();
    assert_eq!(
        inputs, 4,
        "each of three programs before its main, and one cat"
    );
    assert_eq!(run.lost, 0);
}

#[test]
fn a_library_that_another_user_cannot_load_is_not_passed_on() {
    let dir = folder();
    // Only root can become another user.
    let user = Command::new("setpriv")
        .args(["--reuid", "65534", "true"])
        .status();
    if !user.is_ok_and(|s| s.success()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: can't become another user");
        return;
    }
    let private = tempfile::tempdir().unwrap();
    let run = record_with(
        &mut command(
            dir.path(),
            &["setpriv", "--reuid", "65534", "sh", "-c", "echo quiet"],
        ),
        &Arena::default(),
        &copy_of_library(private.path()),
    );
    assert_eq!(run.output.stdout, b"quiet\n");
    assert!(run.output.stderr.is_empty(), "{:?}", run.output);
}

#[test]
fn a_program_allocates_before_main_what_it_allocates_natively() {
    let binary = program("counted_blocks");
    same(|dir| command(dir, &[binary.to_str().unwrap()]));
    let run = format!("{}; true", binary.display());
    same(|dir| command(dir, &["sh", "-c", &run]));
    for (compiler, sanitizer) in [
        ("gcc", "-fsanitize=address"),
        ("clang", "-fsanitize=address"),
        ("gcc", "-fsanitize=thread"),
    ] {
        let Some(binary) = program_with("first_blocks", compiler, &[sanitizer]) else {
            continue;
        };
        same(|dir| {
            let mut command = command(dir, &[binary.to_str().unwrap()]);
            command.env("ASAN_OPTIONS", "detect_leaks=0");
            command
        });
    }
}
