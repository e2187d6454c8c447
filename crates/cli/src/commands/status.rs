//! `status`: checks whether files, and their inputs, are as their last run left them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backstory_graph::model::Certainty;
use backstory_query as query;
use backstory_query::answer::{FileState, FileStatus};

use super::{Outcome, answer};
use crate::args::lineage::StatusArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};
use crate::json::{self, Value};
use crate::text::paths::shown;
use crate::text::style::{Role, Style};

/// Prints the status of files. Exits with 1 if a file is not current.
pub fn run(args: StatusArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let latest = args.paths.is_empty();
    let paths = if latest {
        written_by_the_latest(&current)?
    } else {
        args.paths
    };
    let mut files = query::status(&current.store, &paths)?;
    // The user did not name devices and the like, which have no content to compare.
    files.retain(|file| !latest || file.state != FileState::Unknown);
    answer(|out| match args.json {
        true => json::lines(out, files.iter().map(json)),
        false => files
            .iter()
            .try_for_each(|file| text(file, Style::of_stdout(), out)),
    })?;
    Ok(u8::from(!files.iter().all(is_current)))
}

/// True if the file is as its run left it, and its inputs are unchanged as far as is known. An
/// input that may have changed is printed, but does not count as a change.
fn is_current(file: &FileStatus) -> bool {
    let changed =
        |(_, state): &(_, FileState)| matches!(state, FileState::Modified | FileState::Removed);
    file.state == FileState::Current && !file.changed_inputs.iter().any(changed)
}

/// The files that the latest run wrote and that existed when it ended.
fn written_by_the_latest(current: &CurrentStore) -> Result<Vec<PathBuf>, Failure> {
    use backstory_query::answer::Access::{Delete, Write};
    use std::os::unix::ffi::OsStrExt;
    let run = current.run(None)?;
    let mut paths: Vec<PathBuf> = query::files(&current.store, &run)?
        .into_iter()
        .filter(|file| file.certainty == Certainty::Seen)
        .filter(|file| file.access.contains(&Write) && !file.access.contains(&Delete))
        .map(|file| PathBuf::from(std::ffi::OsStr::from_bytes(&file.path)))
        .filter(|path| !path.is_dir())
        .collect();
    paths.dedup();
    Ok(paths)
}

fn word(state: FileState) -> &'static str {
    match state {
        FileState::Current => "current",
        FileState::Modified => "modified",
        FileState::Removed => "removed",
        FileState::Unknown => "unknown",
        FileState::Uncertain => "uncertain",
    }
}

fn json(file: &FileStatus) -> Value {
    let inputs = file.changed_inputs.iter().map(|(path, state)| {
        Value::Object(vec![("path", path.into()), ("state", word(*state).into())])
    });
    Value::Object(vec![
        ("path", (&file.path).into()),
        ("run", file.run.as_ref().into()),
        ("state", word(file.state).into()),
        ("changed_inputs", Value::Array(inputs.collect())),
    ])
}

fn text(file: &FileStatus, style: Style, out: &mut impl Write) -> io::Result<()> {
    let (role, words) = match (file.state, is_current(file)) {
        (FileState::Current, true) => (Role::Good, "current"),
        (FileState::Current, false) => (Role::Bad, "outdated"),
        (FileState::Unknown, _) => (Role::Dim, "unknown"),
        (state, _) => (Role::Bad, word(state)),
    };
    let run = file
        .run
        .as_ref()
        .map(|run| format!("  [run {run}]"))
        .unwrap_or_else(|| "  no recorded run wrote it".to_owned());
    writeln!(
        out,
        "{}  {}{}",
        style.paint(role, &format!("{words:<9}")),
        shown(&file.path),
        style.paint(Role::Dim, &run)
    )?;
    for (path, state) in &file.changed_inputs {
        writeln!(out, "           input {}: {}", word(*state), shown(path))?;
    }
    Ok(())
}

impl From<backstory_currency::Error> for Failure {
    fn from(error: backstory_currency::Error) -> Failure {
        use backstory_currency::Error;
        let line = chain(&error);
        match error {
            Error::Query(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Workflow(error) => error.into(),
            _ => Failure::not_found(line),
        }
    }
}
