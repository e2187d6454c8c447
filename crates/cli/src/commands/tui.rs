//! `tui`: views of the store at the terminal.

use std::path::Path;

use super::Outcome;
use crate::args::program::TuiArgs;
use crate::error::Failure;

/// Shows the views until the user quits.
#[cfg(feature = "tui")]
pub fn run(args: TuiArgs, store: Option<&Path>) -> Outcome {
    use std::io::{IsTerminal, stdin, stdout};

    use backstory_tui::{Destination, Error, ViewedStore};

    use crate::current_store::CurrentStore;

    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::misuse(
            "`tui` needs a terminal on stdin and stdout; `backstory log` prints the runs",
        ));
    }
    let current = CurrentStore::open(store)?;
    let first = match &args.subject {
        None => Destination::Runs,
        Some(subject) => destination(&current, subject)?,
    };
    let viewed = ViewedStore {
        store: &current.store,
        bytes: current.home.bytes_dir(""),
    };
    backstory_tui::run(viewed, first).map_err(|error| match error {
        Error::Query(error) => error.into(),
        error => Failure::not_found(crate::error::chain(&error)),
    })?;
    Ok(0)
}

/// A run's files if the word names a run, else the file at the path.
#[cfg(feature = "tui")]
fn destination(
    current: &crate::current_store::CurrentStore,
    subject: &std::ffi::OsStr,
) -> Result<backstory_tui::Destination, Failure> {
    use backstory_tui::Destination;

    let run = subject.to_str().filter(|word| !word.contains('/'));
    if let Some(Ok(run)) = run.map(|run| backstory_query::resolve(&current.store, Some(run))) {
        return Ok(Destination::RunFiles(run));
    }
    let path = std::path::absolute(subject)
        .map_err(|error| Failure::misuse(format!("cannot find {}: {error}", subject.display())))?;
    Ok(Destination::File(path))
}

/// Says that the views are missing in this build.
#[cfg(not(feature = "tui"))]
pub fn run(_: TuiArgs, _: Option<&Path>) -> Outcome {
    Err(Failure::not_found(
        "this program was built without `tui`: build it with `--features tui`, or use `backstory log`",
    ))
}
