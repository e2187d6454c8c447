//! An independent witness: what `strace` says a command did.
//!
//! Purpose: the oracle compares backstory's answers with those of a tracer that shares no code with it, neither for observing
//! (ptrace against preload and seccomp) nor for understanding (this module knows nothing of records, events or the graph).
//!
//! `line` reads one line of strace's text, `calls` joins interrupted lines to calls in order, `world` keeps what is needed to
//! understand them (process tree, current directories), `facts` says what each call means for files.

mod calls;
mod facts;
mod line;
pub(crate) mod lookup;
mod world;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

pub use facts::{Fact, Word};
pub use world::{End, Image, Process};

/// What one traced command did.
#[derive(Debug, Default)]
pub struct Trace {
    /// Every process, the command's own first; parents stand before their children.
    pub processes: Vec<Process>,
    /// What they did to files, each fact once.
    pub facts: Vec<Fact>,
}

/// Options under which `strace` prints every string in hexadecimal and every descriptor with the kernel's own idea of its path,
/// so that no file name can confuse the parser.
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

/// Reads the text that [`command`] left behind. `cwd` is where the command was started; the file system should still be as the
/// command left it, because that tells directories and interpreters apart.
pub fn read(text: &[u8], cwd: &[u8]) -> Trace {
    let calls = calls::join(text);
    let (mut processes, contexts) = world::replay(&calls, cwd);
    let facts = facts::collect(&calls, &contexts, |process| processes[process].acted = true);
    Trace { processes, facts }
}
