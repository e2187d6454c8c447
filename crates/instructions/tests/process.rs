//! Redirects the instructions of a process that waits.
#![allow(clippy::unwrap_used)]

use backstory_instructions::{Answering, Redirection, Redirector};
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Tells that it waits, and reads the counter when it may go on. With an argument, the last page of
/// its code is no code any more.
const WAITS: &str = r#"
#include <sys/mman.h>
#include <unistd.h>
extern char etext;
int main(int count, char **arguments)
{
    char go;
    (void)arguments;
    if (count > 1)
        mprotect((void *)((unsigned long)(&etext - 1) & -4096ul), 4096, PROT_READ);
    if (write(1, "w", 1) != 1 || read(0, &go, 1) != 1)
        _exit(1);
    __asm__ volatile("rdtsc; nop; nop; nop" ::: "eax", "edx");
    _exit(0);
}
__asm__(".section .text.z, \"ax\"; .skip 16384; .text");
"#;

/// A call that no kernel has: the program gets its own registers.
const NO_CALL: u32 = 0x6274;

/// The answer of the redirector for such a process, and whether the program then came to its end.
fn redirected(arguments: &[&str], still_waits: bool) -> (Option<bool>, bool) {
    let dir = tempfile::tempdir().unwrap();
    let (source, made) = (dir.path().join("waits.c"), dir.path().join("waits"));
    fs::write(&source, WAITS).unwrap();
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-o"]).arg(&made).arg(&source);
    assert!(compiler.status().unwrap().success());
    let mut program = Command::new(&made);
    let program = program.args(arguments).stdin(Stdio::piped());
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = [0];
    child.stdout.take().unwrap().read_exact(&mut told).unwrap();
    let request = Redirection {
        pid: child.id(),
        answers: &Answering::by_call(NO_CALL),
        except: None,
        may_write: true,
        still_waits: &|| still_waits,
    };
    let done = Redirector::default().redirect(&request).ok();
    child.stdin.take().unwrap().write_all(b"g").unwrap();
    (done, child.wait().unwrap().success())
}

#[test]
fn the_program_goes_on_behind_a_redirected_instruction() {
    assert_eq!(redirected(&[], true), (Some(true), true));
}

#[test]
fn no_jump_is_written_where_its_stub_has_no_room() {
    assert_eq!(redirected(&["short"], true), (Some(false), true));
}

#[test]
fn a_process_that_does_not_wait_stays_as_it_is() {
    assert_eq!(redirected(&[], false), (None, true));
}
