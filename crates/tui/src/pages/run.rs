//! The title and the facts of a run, above its files and its processes.

use backstory_query::answer::{RunDetails, RunSummary};
use backstory_query::details;
use backstory_store::Store;
use backstory_vocabulary::Tone;
use backstory_workflow::shell::line;
use backstory_workflow::shell::quote;

use crate::Result;
use crate::moments::{duration, moment};
use crate::page::Cell;

const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];

/// How a run ended, in the page's words.
pub fn ending(run: &RunSummary) -> Cell {
    match (run.signal, run.exit) {
        _ if run.running => Cell::new(Tone::Accent, "running"),
        (Some(signal), _) => {
            let known = SIGNALS.iter().find(|(number, _)| *number == signal);
            let name = known.map_or_else(
                || format!("signal {signal}"),
                |(_, name)| (*name).to_owned(),
            );
            Cell::new(Tone::Bad, name)
        }
        (None, Some(0)) if run.complete => Cell::new(Tone::Good, "ok"),
        (None, Some(0)) => Cell::new(Tone::Warn, "incomplete"),
        (None, Some(status)) => Cell::new(Tone::Bad, format!("exit {status}")),
        (None, None) => Cell::new(Tone::Quiet, "unknown"),
    }
}

/// A run, by its id.
pub fn title_and_facts(store: &dyn Store, run: &str) -> Result<(RunDetails, String, Vec<Cell>)> {
    let details = details(store, run)?;
    let summary = &details.summary;
    let name = match &summary.name {
        Some(name) => format!(" ({})", quote(name.as_bytes())),
        None => String::new(),
    };
    let title = format!("run {run}{name}");
    let mut facts = vec![
        Cell::new(Tone::Step, line(&summary.command)),
        Cell::new(
            Tone::Quiet,
            format!(
                "in {} on {}",
                quote(&summary.cwd),
                quote(summary.host.as_bytes())
            ),
        ),
    ];
    let mut end = ending(summary);
    let lasted = summary.ended.map(|ended| duration(ended - summary.started));
    end.text = format!(
        "{}, started {}{}",
        end.text,
        moment(summary.started),
        lasted.map_or_else(String::new, |lasted| format!(", took {lasted}"))
    );
    facts.push(end);
    for reason in &summary.incomplete_because {
        facts.push(Cell::new(Tone::Warn, format!("not complete: {reason}")));
    }
    if let Some(note) = &summary.note {
        facts.push(Cell::new(Tone::Ink, quote(note.as_bytes())));
    }
    Ok((details, title, facts))
}
