//! `status`: checks whether files are as their steps would make them now.

use std::io::{self, Write};
use std::path::Path;

use backstory_currency::{self as currency, FileState, FileStatus, KeptResults, kept_results};

use super::contents::store_contents;
use super::{Outcome, answer, near};
use crate::args::lineage::StatusArgs;
use crate::current_store::CurrentStore;
use crate::json::{self, Value};
use crate::scope::ProjectScope;
use crate::text::paths::shown;
use crate::text::style::{Role, Style};
use crate::text::words::counted;

/// Reasons that are printed for a file.
const SHOWN: usize = 5;

/// Current files that are printed one by one if the user named no file.
const LISTED: usize = 20;

/// Prints the status of files. Exits with 1 if a file is not current, and with 3 if that cannot be
/// told.
pub fn run(args: StatusArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let named = !args.paths.is_empty();
    let scope = ProjectScope::new(&args.scope)?;
    let mut kept = KeptResults {
        inside: args.paths,
        ..KeptResults::default()
    };
    if !named {
        kept = kept_results(&current.store, scope.directory())?;
    }
    let mut files = currency::status(&current.store, &kept.inside)?;
    // The user did not name files that are the result of no step.
    files.retain(|file| named || file.is_result);
    let status = exit_status(&files);
    if args.quiet {
        return Ok(status);
    }
    answer(|out| match (args.json, args.porcelain) {
        (true, _) => json::lines(out, files.iter().map(json)),
        (_, true) => files.iter().try_for_each(|file| {
            let state = file.state.word();
            writeln!(out, "{state}\t{}", shown(&file.path))
        }),
        _ if named => files
            .iter()
            .try_for_each(|file| text(file, Style::of_stdout(), out)),
        _ => summary(&files, &kept, Style::of_stdout(), out),
    })?;
    Ok(status)
}

/// 0 if all files are current, 3 if that cannot be told of some, and 1 if others are not.
fn exit_status(files: &[FileStatus]) -> u8 {
    let others = || files.iter().filter(|file| !file.is_current());
    if others().next().is_none() {
        return 0;
    }
    match others().all(|file| file.state == FileState::Uncertain) {
        true => 3,
        false => 1,
    }
}

fn json(file: &FileStatus) -> Value {
    let inputs = file.changed_inputs.iter().map(|(path, state)| {
        Value::Object(vec![("path", path.into()), ("state", state.word().into())])
    });
    let reasons = file.reasons.iter().map(|reason| {
        Value::Object(vec![
            ("about", reason.subject().into()),
            ("why", reason.words().into()),
        ])
    });
    Value::Object(vec![
        ("path", (&file.path).into()),
        ("run", file.run.as_ref().into()),
        ("state", file.state.word().into()),
        ("changed_inputs", Value::Array(inputs.collect())),
        ("reasons", Value::Array(reasons.collect())),
    ])
}

/// All results of a project: those that are not current first, and the number of the others.
fn summary(
    files: &[FileStatus],
    kept: &KeptResults,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let (current, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.is_current());
    for file in &others {
        text(file, style, out)?;
    }
    match current.len() {
        several if several > LISTED => {
            let word = style.paint(Role::Good, "current  ");
            writeln!(out, "{word}  {}", counted(several, "file", "files"))?;
        }
        _ => {
            for file in &current {
                text(file, style, out)?;
            }
        }
    }
    let mut beside = Vec::new();
    if kept.outside > 0 {
        beside.push(format!(
            "{} in other directories (--outside)",
            counted(kept.outside, "file", "files")
        ));
    }
    if kept.logs > 0 {
        let logs = counted(kept.logs, "log of a whole run", "logs of whole runs");
        beside.push(logs);
    }
    if kept.removed > 0 {
        beside.push(format!(
            "{} removed since",
            counted(kept.removed, "file", "files")
        ));
    }
    if !beside.is_empty() {
        let line = format!("Not shown: {}.", beside.join(", "));
        writeln!(out, "{}", style.paint(Role::Dim, &line))?;
    }
    Ok(())
}

fn text(file: &FileStatus, style: Style, out: &mut impl Write) -> io::Result<()> {
    let role = match file.state {
        FileState::Current => Role::Good,
        FileState::Unknown => Role::Dim,
        _ => Role::Bad,
    };
    let run = file
        .run
        .as_ref()
        .map(|run| format!("  [run {run}]"))
        .unwrap_or_else(|| "  no recorded run wrote it".to_owned());
    writeln!(
        out,
        "{}  {}{}",
        style.paint(role, &format!("{:<9}", file.state.word())),
        near(&file.path),
        style.paint(Role::Dim, &run)
    )?;
    let behind = file.changed_inputs.iter();
    let behind: Vec<_> = behind.filter(|(path, _)| *path != file.path).collect();
    for (path, state) in behind.iter().take(SHOWN) {
        writeln!(out, "           input {}: {}", state.word(), near(path))?;
    }
    if behind.len() > SHOWN {
        writeln!(out, "           and {} more inputs", behind.len() - SHOWN)?;
    }
    Ok(())
}
