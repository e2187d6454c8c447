//! `log`: lists all runs, the newest first, or prints the log of one.

use std::io::{self, Write};
use std::path::Path;

use backstory_eventlog::{self as eventlog, Log};
use backstory_query as query;
use backstory_query::answer::RunSummary;
use backstory_store::Home;

use super::run_summary::{ending, fields as summary_fields};
use super::{Outcome, answer};
use crate::args::runs::LogArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain, one_line};
use crate::index;
use crate::json::{self, Value};
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;

/// Prints all runs, or one run's log.
pub fn run(args: LogArgs, store: Option<&Path>) -> Outcome {
    if let Some(run) = &args.raw {
        return raw(run, store);
    }
    let current = CurrentStore::open(store)?;
    let runs = query::runs(&current.store)?;
    answer(|out| match args.json {
        true => json::lines(
            out,
            runs.iter().map(|run| Value::Object(summary_fields(run))),
        ),
        false => runs
            .iter()
            .try_for_each(|run| line(run, Style::of_stdout(), out)),
    })?;
    mention_the_rest(&current.home);
    Ok(0)
}

fn line(run: &RunSummary, style: Style, out: &mut impl Write) -> io::Result<()> {
    let ended = format!("{:<9}", ending(run));
    let ended = style.paint(
        if run.exit == Some(0) {
            Role::Good
        } else {
            Role::Bad
        },
        &ended,
    );
    let name = run
        .name
        .as_ref()
        .map(|name| format!("{}  ", style.paint(Role::Subject, &one_line(name))))
        .unwrap_or_default();
    let incomplete = if run.complete {
        String::new()
    } else {
        style.paint(Role::Bad, "  (incomplete: see show)")
    };
    let note = run
        .note
        .as_ref()
        .map(|note| style.paint(Role::Dim, &format!("  # {}", one_line(note))))
        .unwrap_or_default();
    let command = shell::words(run.command.iter().map(|word| &word[..]));
    let when = style.paint(Role::Dim, &when::moment(run.started));
    writeln!(
        out,
        "{}  {when}  {ended}  {name}{command}{incomplete}{note}",
        run.id
    )
}

/// Prints on stderr which runs are not in the list: those that are still recorded, and those that
/// could not be indexed.
fn mention_the_rest(home: &Home) {
    let unfinished = home.unfinished().unwrap_or_default();
    if !unfinished.is_empty() {
        complain(&format!(
            "runs that are still being recorded, or were cut off: {}",
            unfinished.join(" ")
        ));
    }
    for bad in home
        .finalized()
        .unwrap_or_default()
        .iter()
        .filter_map(|run| index::bad(home, run))
    {
        complain(&format!(
            "run {} could not be indexed: {}",
            bad.run, bad.reason
        ));
    }
}

/// Prints the operations of one run. The run may still be recorded, or may be one that could not be
/// indexed.
fn raw(wanted: &str, store: Option<&Path>) -> Outcome {
    let home = Home::open_to_read(&Home::directory(store)?)?;
    let mut path = home.log_path(wanted);
    if !path.exists() {
        path = home.part_path(wanted);
    }
    if !path.exists() {
        path = home.log_path(&CurrentStore::open(store)?.run(Some(wanted))?);
    }
    let log = Log::open(&path).map_err(|error| Failure::not_found(chain(&error)))?;
    answer(|out| eventlog::dump(&log, out))
}
