//! `docs/syscalls.md` says what the table says. `BACKSTORY_BLESS=1` writes it anew.

use backstory_capture::guard::table::{Guard, ROWS, When};
use std::fmt::Write;
use std::path::PathBuf;

fn number(nr: i16) -> String {
    if nr < 0 { "–".to_owned() } else { nr.to_string() }
}

fn which(when: &When) -> String {
    match when {
        When::Always => String::new(),
        When::Any { arg, mask } => format!(", only with any of {mask:#x} in argument {arg}"),
        When::OneOf { arg, values } => {
            let values: Vec<String> = values.iter().map(|v| format!("{v:#x}")).collect();
            format!(", only with {} in argument {arg}", values.join(", "))
        }
    }
}

fn guard(guard: &Guard) -> String {
    match guard {
        Guard::Flow(when, _) => format!("watched, unless from the gate{}", which(when)),
        Guard::View(when, _) => format!(
            "watched, also from the gate: changes what paths or pids mean{}",
            which(when)
        ),
        Guard::Lookup(_) => "look-up: watched with `--lookups=all`".to_owned(),
        Guard::Magic => "no effect; watched with the recorder's magic argument only".to_owned(),
        Guard::Free(why) => format!("no effect on provenance: {why}"),
        Guard::Never(why) => format!("never watched: {why}"),
    }
}

fn page() -> String {
    let mut out = String::from(
        "# Every system call\n\n\
         What recorder and guard do with each system call of the supported kernels. Made from the table that the seccomp filter\n\
         and the decoder of its notifications are built from (`crates/capture/src/guard/rows.rs`) by\n\
         `BACKSTORY_BLESS=1 cargo test -p backstory-capture --test syscall_page`; a test keeps it so, and another compares the\n\
         table with the kernel's headers. x32 calls are treated as the x86-64 calls of the same name.\n\n\
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
    out
}

#[test]
fn the_page_of_system_calls_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/syscalls.md");
    if std::env::var_os("BACKSTORY_BLESS").is_some() {
        std::fs::write(&path, page()).expect("docs/syscalls.md can be written");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == page(),
        "docs/syscalls.md is out of date: BACKSTORY_BLESS=1 writes it anew"
    );
}
