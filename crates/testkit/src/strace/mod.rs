//! An independent witness: the operations of a command according to `strace`.
//!
//! The oracle compares backstory's answers with those of a tracer that shares no code with it. The
//! tracer observes by ptrace, backstory by preload and seccomp. This module knows nothing of
//! records, events or the graph.
//!
//! - `line` parses one line of strace's text.
//! - `calls` joins interrupted lines and orders the calls.
//! - `world` keeps the process tree and current directories.
//! - `view` keeps the root directory of a process and the mounts below it.
//! - `meaning` says what each call means for files: a table of calls that yields `facts` from a
//!   `traced_call`, the call with its arguments.
//! - `collect` brings the facts of all calls together.

mod calls;
mod collect;
mod facts;
mod line;
pub(crate) mod lookup;
mod meaning;
mod traced_call;
mod view;
mod world;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

pub use facts::{Fact, Word};
pub use world::{End, Image, Process};

/// The operations of one traced command.
#[derive(Debug, Default)]
pub struct Trace {
    /// Every process, the command's own first; parents stand before their children.
    pub processes: Vec<Process>,
    /// Their operations on files, each fact once.
    pub facts: Vec<Fact>,
}

/// With these options `strace` prints every string in hexadecimal, and every descriptor with the
/// kernel's path. So no file name can confuse the parser.
const OPTIONS: [&str; 10] = [
    "-f",
    "-y",
    "-q",
    "-xx",
    "-s",
    "512",
    "--seccomp-bpf",
    "--pidns-translation",
    "-e",
    "trace=%file,%desc,%process,?memfd_create,?ftruncate,?connect",
];

/// The `strace` command line that runs `argv` and writes its text to `output`.
pub fn command(output: &Path, argv: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new("strace");
    command
        .args(OPTIONS)
        .arg("-o")
        .arg(output)
        .arg("--")
        .args(argv);
    command
}

/// Reads the output of [`command`]. `cwd` is the directory in which the command was started. The
/// file system should still be as the command left it, because that distinguishes directories and
/// interpreters.
pub fn read(text: &[u8], cwd: &[u8]) -> Trace {
    let calls = calls::join(text);
    let (mut processes, contexts) = world::replay(&calls, cwd);
    let facts = collect::collect(&calls, &contexts, |process| processes[process].acted = true);
    Trace { processes, facts }
}
