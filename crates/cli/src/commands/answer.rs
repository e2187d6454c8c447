//! `answer`: the questions of the Python package.
//!
//! In: a question on standard input (`backstory_answers::StoreQuestion`). Out: an answer on
//! standard output, as a file of tables. A failure is an answer, too.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use backstory_answers::{Failure as NoAnswer, reply};
use backstory_store::Home;

use super::Outcome;
use crate::error::Failure;

/// Answers the question on standard input.
pub fn run(store: Option<&Path>) -> Outcome {
    let mut question = Vec::new();
    std::io::stdin()
        .read_to_end(&mut question)
        .map_err(|error| Failure::misuse(format!("cannot read the question: {error}")))?;
    let question = serde_json::from_slice(&question)
        .map_err(|error| Failure::misuse(format!("this is no question: {error}")))?;
    let answered = Home::directory(store)
        .map_err(NoAnswer::from)
        .and_then(|directory| backstory_answers::answer(&directory, &question));
    // Not through the standard library's buffer of lines: an answer is no text.
    let out = std::io::stdout().as_fd().try_clone_to_owned()?;
    reply::write(&mut File::from(out), answered)?;
    Ok(0)
}
