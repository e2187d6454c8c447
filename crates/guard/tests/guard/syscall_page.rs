//! `docs/syscalls.md` matches the table (`BACKSTORY_BLESS=1` writes it), and the table is right
//! about what the recorder wraps.

use backstory_guard::table::{FLUSHES, GuardAction, ROWS, When};
use std::fmt::Write;

fn number(nr: i16) -> String {
    match nr >= 0 {
        true => nr.to_string(),
        false => "–".to_owned(),
    }
}

fn which(when: &When) -> String {
    match when {
        When::Always => String::new(),
        When::Any { arg, mask } => format!(", only with any of {mask:#x} in argument {arg}"),
        When::Without { arg, mask } => format!(", only with none of {mask:#x} in argument {arg}"),
        When::OneOf { arg, values } => {
            let values: Vec<String> = values.iter().map(|v| format!("{v:#x}")).collect();
            format!(", only with {} in argument {arg}", values.join(", "))
        }
    }
}

fn guard(guard: &GuardAction) -> String {
    match guard {
        GuardAction::Flow(when, _) => format!("watched, unless from the gate{}", which(when)),
        GuardAction::View(when, _) => format!(
            "watched, also from the gate: changes what paths or pids mean{}",
            which(when)
        ),
        GuardAction::Lookup(_) => "look-up: watched with `--lookups=all`".to_owned(),
        GuardAction::Magic => {
            "no effect; watched with the recorder's magic argument only".to_owned()
        }
        GuardAction::Restrict(when) => format!(
            "no effect on provenance: changes rights of the process; watched if a broker exists{}",
            which(when)
        ),
        GuardAction::Free(why) => format!("no effect on provenance: {why}"),
        GuardAction::Never(why) => format!("never watched: {why}"),
    }
}

fn page() -> String {
    let mut out = String::from(
        "# Every system call\n\n\
         This page is for developers, and for readers who ask whether a call is recorded. It says what\n\
         recorder and guard do with each system call of the supported kernels.\n\n\
         `BACKSTORY_BLESS=1 cargo test -p backstory-guard --test guard syscall_page` writes the page from the\n\
         table in `crates/guard/src/table/rows.rs`. The seccomp filter and the decoder of notifications\n\
         are built from the same table. Tests compare the page with the table, and the table with the\n\
         kernel's headers and with the running kernel.\n\n\
         - *wraps it*: the recorder wraps libc's function of this name, or the functions that make the\n  \
           call, in programs that load libc dynamically.\n\
         - x32 calls are treated as the x86-64 calls of the same name.\n\
         - `io_uring_setup` fails with `ENOSYS` under `--io-uring=refuse`.\n\n\
         | call | x86-64 | i386 | recorder | guard |\n| --- | --- | --- | --- | --- |\n",
    );
    for row in ROWS {
        let recorder = if row.recorder { "wraps it" } else { "" };
        let (x64, i386) = (number(row.x64), number(row.i386));
        writeln!(
            out,
            "| `{}` | {x64} | {i386} | {recorder} | {} |",
            row.name,
            guard(&row.guard)
        )
        .expect("to a string");
    }
    out.push_str(
        "\n## Calls that wait for the log\n\n\
         With `record --durability=ordered` or `sync`, these calls wait until everything logged so far is\n\
         durable. They are watched wherever they come from. [The order of writes](howto/durability.md)\n\
         says what that is for.\n\n\
         | call | from | why |\n| --- | --- | --- |\n",
    );
    for flush in FLUSHES {
        let (name, from, why) = (flush.name, flush.from, flush.why);
        let only = which(&flush.when);
        writeln!(out, "| `{name}` | `{from}` | {why}{only} |").expect("to a string");
    }
    out
}

#[test]
fn the_page_of_system_calls_is_up_to_date() {
    backstory_testkit::page::is_up_to_date("syscalls.md", &page());
}

/// The names of the dynamic symbols that are defined in an ELF file.
fn exported(library: &[u8]) -> Vec<String> {
    let number = |at: usize, size: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&library[at..at + size]);
        u64::from_le_bytes(bytes) as usize
    };
    let (sections, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let section = |i: usize| sections + i * size;
    let dynamic = (0..count)
        .map(section)
        .find(|at| number(at + 4, 4) == 11)
        .expect(".dynsym");
    let names = number(section(number(dynamic + 0x28, 4)) + 0x18, 8);
    let (start, length) = (number(dynamic + 0x18, 8), number(dynamic + 0x20, 8));
    (start..start + length)
        .step_by(24)
        .filter(|at| number(at + 6, 2) != 0)
        .map(|at| {
            let name = &library[names + number(at, 4)..];
            let end = name.iter().position(|b| *b == 0).expect("an end");
            String::from_utf8_lossy(&name[..end]).into_owned()
        })
        .collect()
}

/// Calls whose function in libc has another name.
const FUNCTIONS: &[(&str, &str)] = &[
    ("clone3", "pthread_create"),
    ("eventfd2", "eventfd"),
    ("exit_group", "_exit"),
    ("faccessat2", "faccessat"),
    ("newfstatat", "fstatat"),
    ("signalfd4", "signalfd"),
    ("rt_sigqueueinfo", "sigqueue"),
];

/// Calls whose function is wrapped for another reason than to record the call.
const PREPARED: &[&str] = &["prctl", "seccomp"];

#[test]
fn the_recorder_wraps_what_the_table_says() {
    let exported = exported(backstory_recorder::LIBRARY);
    // `syscall` is wrapped too. It handles these calls by number.
    let numbers = include_str!("../../../recorder/c/number.c");
    let wrapped = |name: &str| {
        let other = FUNCTIONS.iter().find(|other| other.0 == name);
        let function = other.map_or(name, |other| other.1);
        exported.iter().any(|symbol| symbol == function)
            || numbers.contains(&format!("case __NR_{name}:"))
            || numbers.contains(&format!("nr == __NR_{name} "))
    };
    let wrong: Vec<&str> = ROWS
        .iter()
        // 32-bit programs have no recorder.
        .filter(|row| row.recorder != (row.x64 >= 0 && wrapped(row.name)))
        .filter(|row| !PREPARED.contains(&row.name))
        .map(|row| row.name)
        .collect();
    assert!(
        wrong.is_empty(),
        "the table is wrong about the recorder: {wrong:?}"
    );
}
