//! The start of a worker, and how its answer leaves it.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

/// Runs the worker, unless a person started it.
pub fn main(run: impl FnOnce() -> io::Result<()>) -> ExitCode {
    if std::env::args_os().len() > 1 || io::IsTerminal::is_terminal(&io::stdin()) {
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

/// Writes the answer to standard output.
///
/// # Errors
/// The caller has stopped reading.
pub fn write(answer: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(answer)?;
    bytes.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&bytes)?;
    output.flush()
}

/// Makes a panic an answer: the content is damaged in a way that the reader of its format does not
/// expect. The readers of other projects panic on some damaged files.
pub fn answer_panics<T: Serialize>(refusal: impl Fn(&str) -> T + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let said = text.unwrap_or("it stopped");
        let why = format!("it is damaged, and its reader failed: {said}");
        let _ = write(&refusal(&why));
        std::process::exit(0);
    }));
}
