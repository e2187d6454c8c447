//! The worker `backstory-inspect`: answers one question about a file's contents, and ends.
//!
//! In: a question on standard input (crate `inspection`, `question.rs`). Out: an answer on standard
//! output, as one JSON object. The program `backstory` starts it; people use `backstory inspect`.

use std::io::{self, Read};
use std::process::ExitCode;

use backstory_inspect::{answer, expressions, plugin, sandbox, schemas, worker};
use backstory_inspection::question::{self, JudgeHead};

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
    if let Some(asked) = question::judge_head(bytes) {
        return judge(&asked, bytes, input);
    }
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

/// Evaluates a user's filter of graphs, or becomes it.
fn judge(asked: &JudgeHead, bytes: &[u8], mut input: impl Read) -> io::Result<()> {
    if asked.command.is_empty() {
        sandbox::enter()?;
    }
    let mut all = bytes.to_vec();
    input.read_to_end(&mut all)?;
    let question = question::read_judge(&all).map_err(io::Error::other)?;
    match &asked.expression {
        None if asked.schemas => schemas::write_verdicts(question.lines),
        None => Err(plugin::become_judge(&asked.command, question.lines)),
        Some(expression) => expressions::write_verdicts(expression, question.lines),
    }
}

/// The most bytes of the first line.
const HEAD: usize = 32 << 10;

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
