//! The worker `backstory-inspect-wasm`: answers one question by a user's component, and ends.
//!
//! In: a question on standard input (crate `inspection`, `question.rs`). Out: an answer on standard
//! output, as one JSON object. The program `backstory` starts it; people use `backstory inspect`.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use backstory_inspect::{refusal, sandbox, worker};
use backstory_inspect_wasm::{answer, filter};
use backstory_inspection::question::{self, ReadRequest};

fn main() -> ExitCode {
    worker::main("backstory-inspect-wasm", run)
}

fn run() -> io::Result<()> {
    // No byte of a component or a content is looked at before the sandbox is closed.
    sandbox::enter()?;
    let mut all = Vec::new();
    io::stdin().lock().read_to_end(&mut all)?;
    match question::read(&all).map_err(io::Error::other)? {
        ReadRequest::Judge(asked) => {
            let lines = String::from_utf8_lossy(asked.lines);
            let verdicts = filter::judge(asked.component, &lines);
            let verdicts = verdicts.map_err(|error| io::Error::other(error.0))?;
            io::stdout().lock().write_all(verdicts.as_bytes())
        }
        ReadRequest::Inspect(question) => {
            let head = question.head.clone();
            worker::answer_panics(move |why| refusal(&head, why));
            worker::write(&answer(&question))
        }
        ReadRequest::Read(_) => Err(io::Error::other(
            "a component answers no question about the form of a content",
        )),
    }
}
