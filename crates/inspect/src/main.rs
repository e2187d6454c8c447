//! The worker `backstory-inspect`: answers one question about a file's contents, and ends.
//!
//! In: a question on standard input (crate `inspection`, `question.rs`). Out: an answer on standard
//! output, as one JSON object. The program `backstory` starts it; people use `backstory inspect`.

use std::io::{self, Read};
use std::process::ExitCode;

use backstory_inspect::{answer, plugin, sandbox, worker};
use backstory_inspection::question;

fn main() -> ExitCode {
    worker::main("backstory-inspect", run)
}

fn run() -> io::Result<()> {
    let mut head = [0; HEAD];
    let mut input = io::stdin().lock();
    // A plug-in needs its command before the filter forbids to start one. The first line is the
    // caller's own; no byte of a content is looked at before the sandbox is closed.
    let length = fill(&mut input, &mut head)?;
    let bytes = &head[..length];
    let is_plugin = question::command_of(bytes).is_some_and(|command| !command.is_empty());
    if !is_plugin {
        sandbox::enter()?;
    }
    let mut all = bytes.to_vec();
    input.read_to_end(&mut all)?;
    let question = question::read(&all).map_err(io::Error::other)?;
    if is_plugin {
        return Err(plugin::become_plugin(&question));
    }
    worker::answer_panics(question.head.clone());
    worker::write(&answer(&question))
}

/// The most bytes of the first line.
const HEAD: usize = 16 << 10;

/// Reads until the buffer is full or the input ends.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}
