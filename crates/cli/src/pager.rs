//! Shows answers through a pager, as git does: only at a terminal, and only answers of commands
//! that ask nothing of the user meanwhile.
//!
//! The pager is `$BACKSTORY_PAGER`, else `$PAGER`, else `less -FRX`. `less` is not started if the
//! answer fits the screen. An empty value and `cat` mean no pager.
//!
//! Invariant: without a pager that can be started, the answer goes to the terminal.

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this command's answer may go through a pager.
static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Says whether the answers of this process may go through a pager.
pub fn allow(allowed: bool) {
    ALLOWED.store(allowed, Ordering::Relaxed);
}

/// Where an answer goes.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// The beginning of an answer that may fit the screen. It needs no pager then.
    Held(HeldAnswer),
    /// A pager, which writes to the terminal.
    Pager(BufWriter<ChildStdin>, Child),
}

/// The beginning of an answer, and the room on the screen that is left for it.
pub struct HeldAnswer {
    bytes: Vec<u8>,
    rows: usize,
    columns: usize,
}

impl HeldAnswer {
    /// True if the answer needs fewer rows than the screen has. Control characters count as if
    /// they took room, so that it is false rather than true.
    fn fits(&self) -> bool {
        let lines = self.bytes.split(|&byte| byte == b'\n');
        let rows: usize = lines.map(|line| 1 + line.len() / self.columns).sum();
        rows < self.rows
    }
}

const BUFFER: usize = 1 << 16;

impl Output {
    /// Starts the user's pager, if there is one and stdout is a terminal.
    pub fn start() -> Output {
        let stdout = io::stdout();
        if !ALLOWED.load(Ordering::Relaxed) || !stdout.is_terminal() {
            return Output::direct();
        }
        match Pager::chosen() {
            Pager::None => Output::direct(),
            Pager::Users(line) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(line);
                Output::through(shell)
            }
            Pager::Less => {
                // A terminal that does not know its size has the least that is usual.
                let size = rustix::termios::tcgetwinsize(&stdout).ok();
                let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
                let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
                Output::Held(HeldAnswer {
                    bytes: Vec::new(),
                    rows: rows.into(),
                    columns: columns.into(),
                })
            }
        }
    }

    fn direct() -> Output {
        Output::Stdout(BufWriter::with_capacity(BUFFER, io::stdout().lock()))
    }

    /// A pager that runs. The terminal itself if it cannot be started.
    fn through(mut pager: Command) -> Output {
        if std::env::var_os("LESS").is_none() {
            pager.env("LESS", "FRX");
        }
        let Ok(mut child) = pager.stdin(Stdio::piped()).spawn() else {
            return Output::direct();
        };
        let Some(input) = child.stdin.take() else {
            return Output::direct();
        };
        // The interrupt key is the pager's from now on. If it ended this process, the shell and
        // the pager would read the same terminal.
        backstory_sys::ignore_keys();
        Output::Pager(BufWriter::with_capacity(BUFFER, input), child)
    }

    /// Flushes, and waits until the user leaves the pager. `written` is the result of writing: a
    /// pager that was left before the end of the answer is no failure.
    pub fn end(mut self, written: io::Result<()>) -> io::Result<()> {
        let written = written.and_then(|()| self.flush());
        match self {
            Output::Stdout(_) => written,
            Output::Held(answer) => {
                written.and_then(|()| io::stdout().lock().write_all(&answer.bytes))
            }
            Output::Pager(input, mut child) => {
                // The pager sees the end of the answer. Bytes that it does not want any more are
                // dropped.
                drop(input.into_parts());
                let _ = child.wait();
                match written {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    other => other,
                }
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(bytes),
            Output::Pager(out, _) => out.write(bytes),
            Output::Held(answer) => {
                answer.bytes.extend_from_slice(bytes);
                if !answer.fits() {
                    let begun = std::mem::take(&mut answer.bytes);
                    *self = Output::through(less());
                    self.write_all(&begun)?;
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::Pager(out, _) => out.flush(),
            Output::Held(_) => Ok(()),
        }
    }
}

/// The pager that the user wants.
enum Pager {
    None,
    /// A shell line.
    Users(OsString),
    Less,
}

impl Pager {
    fn chosen() -> Pager {
        let variables = ["BACKSTORY_PAGER", "PAGER"].map(std::env::var_os);
        match variables.into_iter().flatten().next() {
            Some(line) if line.is_empty() || line == "cat" => Pager::None,
            Some(line) => Pager::Users(line),
            // On such a terminal `less` warns, and waits for a key.
            None if std::env::var_os("TERM").is_none_or(|term| term == "dumb") => Pager::None,
            None => Pager::Less,
        }
    }
}

fn less() -> Command {
    let mut less = Command::new("less");
    less.arg("-FRX");
    less
}
