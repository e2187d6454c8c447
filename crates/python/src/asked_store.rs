//! The store that questions are about.

use std::path::{Path, PathBuf};

use backstory_answers::question::PathWord;
use backstory_answers::{AnswerFacts, StoreQuestion};
use pyo3::prelude::*;

use crate::asking;
use crate::failure::{exception, unexpected};
use crate::reply::Reply;

/// A store, which the program of this package opens for each question.
#[derive(Clone)]
pub struct AskedStore {
    /// Its directory.
    pub directory: PathBuf,
}

impl AskedStore {
    /// The store in a directory; by default where the command line finds it.
    pub fn find(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<AskedStore> {
        let answered = ask(py, directory.as_deref(), &StoreQuestion::Directory)?;
        match answered.facts {
            AnswerFacts::Directory(PathWord(directory)) => Ok(AskedStore { directory }),
            _ => Err(unexpected()),
        }
    }

    /// Asks about the store.
    pub fn ask(&self, py: Python<'_>, question: &StoreQuestion) -> PyResult<Reply> {
        ask(py, Some(&self.directory), question)
    }
}

/// Asks the program that belongs to the package, without Python's lock.
fn ask(py: Python<'_>, directory: Option<&Path>, question: &StoreQuestion) -> PyResult<Reply> {
    let program = py.import("backstory._program")?.call_method0("program")?;
    let program: PathBuf = program.extract()?;
    let answered = py.detach(|| asking::ask(&program, directory, question));
    // An interrupt has ended the program, too. It is the interrupt that Python reports.
    py.check_signals()?;
    answered.map_err(|failure| exception(py, failure))
}
