//! The worker `backstory-inspect`: answers one question about a file's contents, and ends.
//!
//! In: a question on standard input (crate `inspection`, `question.rs`). Out: an answer on standard
//! output, as one JSON object. The program `backstory` starts it; people use `backstory inspect`.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use backstory_inspect::{
    answer, answer_format, components, expressions, plugin, refusal, sandbox, schemas, unreadable,
    worker,
};
use backstory_inspection::question::{self, ReadJudge, ReadRequest, Request};

fn main() -> ExitCode {
    worker::main(run)
}

fn run() -> io::Result<()> {
    let mut head = [0; HEAD];
    let mut input = io::stdin().lock();
    // A plug-in needs its command before the filter forbids to start one. The first line is the
    // caller's own; no byte of a content is looked at before the sandbox is closed.
    let length = fill(&mut input, &mut head)?;
    let bytes = &head[..length];
    let is_plugin = Request::of(bytes).is_some_and(|request| !request.command().is_empty());
    if !is_plugin {
        sandbox::enter()?;
    }
    // Exactly the memory that the contents need: the sandbox has little.
    let mut all = Vec::with_capacity(question::length(bytes).unwrap_or(0).max(length));
    all.extend_from_slice(bytes);
    input.read_to_end(&mut all)?;
    match question::read(&all).map_err(io::Error::other)? {
        ReadRequest::Inspect(question) if is_plugin => Err(plugin::become_plugin(&question)),
        ReadRequest::Inspect(question) => {
            let head = question.head.clone();
            worker::answer_panics(move |why| refusal(&head, why));
            worker::write(&match question.component {
                Some(_) => components::answer(&question),
                None => answer(&question),
            })
        }
        ReadRequest::Read(question) => {
            worker::answer_panics(unreadable);
            worker::write(&answer_format(&question))
        }
        ReadRequest::Judge(asked) => judge(&asked),
    }
}

/// Evaluates a user's filter of graphs, or becomes it.
fn judge(asked: &ReadJudge<'_>) -> io::Result<()> {
    let head = &asked.head;
    if head.component {
        let lines = String::from_utf8_lossy(asked.lines);
        let verdicts = components::filter::judge(asked.component, &lines);
        let verdicts = verdicts.map_err(|error| io::Error::other(error.0))?;
        return io::stdout().lock().write_all(verdicts.as_bytes());
    }
    match &head.expression {
        None if head.schemas => schemas::write_verdicts(asked.lines),
        None => Err(plugin::become_judge(&head.command, asked.lines)),
        Some(expression) => expressions::write_verdicts(expression, asked.lines),
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
