//! The worker `backstory-inspect-wasm`: answers one question by a user's component, and ends.
//!
//! In: a question on standard input (crate `inspection`, `question.rs`). Out: an answer on standard
//! output, as one JSON object. The program `backstory` starts it; people use `backstory inspect`.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use backstory_inspect::{sandbox, worker};
use backstory_inspect_wasm::{answer, filter};
use backstory_inspection::question;

fn main() -> ExitCode {
    worker::main("backstory-inspect-wasm", run)
}

fn run() -> io::Result<()> {
    // No byte of a component or a content is looked at before the sandbox is closed.
    sandbox::enter()?;
    let mut all = Vec::new();
    io::stdin().lock().read_to_end(&mut all)?;
    if question::judge_head(&all).is_some() {
        let asked = question::read_judge(&all).map_err(io::Error::other)?;
        let lines = String::from_utf8_lossy(asked.lines);
        let verdicts =
            filter::judge(asked.component, &lines).map_err(|error| io::Error::other(error.0))?;
        return io::stdout().lock().write_all(verdicts.as_bytes());
    }
    let question = question::read(&all).map_err(io::Error::other)?;
    worker::answer_panics(question.head.clone());
    worker::write(&answer(&question))
}
