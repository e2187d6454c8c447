//! The worker `backstory-inspect`: answers one question about a file's contents, and ends.
//!
//! In: a question on standard input (crate `inspection`, `question.rs`). Out: an answer on standard
//! output, as one JSON object. The program `backstory` starts it; people use `backstory inspect`.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use backstory_inspect::{answer, plugin, refusal, sandbox};
use backstory_inspection::Answer;
use backstory_inspection::question::{self, QuestionHead};

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 || std::io::IsTerminal::is_terminal(&io::stdin()) {
        let text =
            "backstory-inspect reads hostile files for `backstory inspect`, which starts it.\n";
        let _ = io::stderr().write_all(text.as_bytes());
        return ExitCode::from(2);
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::stderr().write_all(format!("{error}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
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
    answer_panics(question.head.clone());
    let answer = answer(&question);
    write(&answer)
}

fn write(answer: &Answer) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(answer)?;
    bytes.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&bytes)?;
    output.flush()
}

/// Makes a panic an answer: the content is damaged in a way that the reader of its format does not
/// expect. The readers of other projects panic on some damaged files.
fn answer_panics(head: QuestionHead) {
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let said = text.unwrap_or("it stopped");
        let why = format!("it is damaged, and its reader failed: {said}");
        let _ = write(&refusal(&head, &why));
        std::process::exit(0);
    }));
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
