//! `show`: prints one run. The first line says whether its record is complete, because all other
//! lines depend on it.

use backstory_vocabulary::{SuppressMode, Word};
use std::io::{self, Write};
use std::path::Path;

use backstory_query as query;
use backstory_query::answer::{RunDetails, RunSummary};

use super::run_summary::{ending, fields as summary_fields};
use super::stored_contents::{self, StoredContents};
use super::{Outcome, answer};
use crate::args::runs::RunArgs;
use crate::current_store::CurrentStore;
use crate::error::one_line;
use crate::json::{self, Value};
use crate::text::shell::{self, Call};
use crate::text::style::{Role, Style};
use crate::text::{when, words};

/// How many files without a stored content are named.
const NAMED: usize = 5;

/// Prints a run.
pub fn run(args: RunArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.as_deref())?;
    let details = query::details(&current.store, &run)?;
    let kept = match details.modes.stores_contents() {
        true => Some(stored_contents::of_run(&current.store, &run)?),
        false => None,
    };
    answer(|out| match args.json {
        true => json::object(out, fields(&details, kept.as_ref())),
        false => text(&details, kept.as_ref(), Style::of_stdout(), out),
    })
}

/// The word of a mode; empty where the log's header was lost.
fn word<W: Word>(mode: Option<W>) -> &'static str {
    mode.map_or("", W::word)
}

fn fields(details: &RunDetails, kept: Option<&StoredContents>) -> Vec<(&'static str, Value)> {
    let mut fields = summary_fields(&details.summary);
    let (machine, modes) = (&details.machine, &details.modes);
    let unknown = details.lookups_unknown.iter().map(|(id, path)| {
        Value::Object(vec![
            ("id", (*id).into()),
            ("exec_path", path.as_ref().into()),
        ])
    });
    fields.extend([
        ("warnings", Value::array(&details.warnings)),
        ("peers", Value::array(&details.peers)),
        ("lookups_unknown", Value::Array(unknown.collect())),
        ("environment", Value::array(&details.environment)),
        (
            "machine",
            Value::Object(vec![
                ("kernel", (&machine.kernel).into()),
                ("distribution", (&machine.distribution).into()),
                ("host", (&machine.host).into()),
                ("cpu", (&machine.cpu).into()),
            ]),
        ),
        (
            "modes",
            Value::Object(vec![
                ("guard", word(modes.guard).into()),
                ("lookups", word(modes.lookups).into()),
                ("io_uring", word(modes.io_uring).into()),
                (
                    "suppress",
                    (modes.suppress == Some(SuppressMode::On)).into(),
                ),
                ("contents", word(modes.contents).into()),
            ]),
        ),
        ("log_bytes", details.log_bytes.into()),
        ("contents", kept.map_or(Value::Null, StoredContents::json)),
    ]);
    fields
}

fn text(
    details: &RunDetails,
    kept: Option<&StoredContents>,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let run = &details.summary;
    let mut line = |key: &str, value: &str| {
        writeln!(
            out,
            "{} {value}",
            style.paint(Role::Dim, &format!("{key:<12}"))
        )
    };
    match run.complete {
        true => line("complete", &style.paint(Role::Good, "yes"))?,
        false => line("complete", &style.paint(Role::Bad, "no"))?,
    }
    for reason in &run.incomplete_because {
        line("  because", &one_line(reason))?;
    }
    if run.lost > 0 {
        line("  lost", &format!("{} operations", run.lost))?;
    }
    for warning in &details.warnings {
        line("warning", &one_line(warning))?;
    }
    line("run", &run.id)?;
    if let Some(name) = &run.name {
        line("name", &one_line(name))?;
    }
    if let Some(note) = &run.note {
        line("note", &one_line(note))?;
    }
    let call = Call {
        exec_path: None,
        argv: &run.command,
        cwd: &run.cwd,
        env_set: &[],
        env_unset: &[],
    };
    line("command", &style.paint(Role::Command, &call.whole(b"")))?;
    line("started", &when::moment(run.started))?;
    if let Some(ended) = run.ended {
        line("took", &when::duration(ended - run.started))?;
    }
    line("status", &end(run))?;
    line("processes", &run.processes.to_string())?;
    line(
        "files",
        &format!("{} read, {} written", run.files_read, run.files_written),
    )?;
    for peer in &details.peers {
        line(
            "peer",
            &format!("{peer} (outside this run; what the peer did for the run is unknown)"),
        )?;
    }
    if !details.lookups_unknown.is_empty() {
        line("look-ups", &unknown_lookups(details))?;
    }
    if let Some(kept) = kept {
        line("contents", &kept.text())?;
        for (path, why) in kept.missing.iter().take(NAMED) {
            line(
                "  not stored",
                &one_line(&format!("{}: {why}", shell::quote(path))),
            )?;
        }
        if let Some(more) = kept
            .missing
            .len()
            .checked_sub(NAMED)
            .filter(|more| *more > 0)
        {
            line("  not stored", &format!("{more} more (--json lists them)"))?;
        }
    }
    let modes = &details.modes;
    line(
        "recorded",
        &format!(
            "guard {}, look-ups {}, io_uring {}",
            word(modes.guard),
            word(modes.lookups),
            word(modes.io_uring)
        ),
    )?;
    let machine = &details.machine;
    line(
        "machine",
        &format!(
            "{}, {}, {}, {}",
            machine.host, machine.distribution, machine.kernel, machine.cpu
        ),
    )?;
    line("log", &when::size(details.log_bytes))
}

/// How the run ended, with the name of the signal.
fn end(run: &RunSummary) -> String {
    match (run.exit, run.signal) {
        (None, Some(signal)) => match words::signal(signal) {
            Some(name) => format!("killed by {name} (signal {signal})"),
            None => format!("killed by signal {signal}"),
        },
        _ => ending(run),
    }
}

/// `unknown for 3 processes (/bin/busybox, …)`
fn unknown_lookups(details: &RunDetails) -> String {
    let mut programs: Vec<String> = details
        .lookups_unknown
        .iter()
        .flat_map(|(_, path)| path)
        .map(|path| shell::quote(path))
        .collect();
    programs.sort();
    programs.dedup();
    let more = if programs.len() > 3 { ", …" } else { "" };
    programs.truncate(3);
    let count = details.lookups_unknown.len();
    let processes = if count == 1 {
        "1 process".to_owned()
    } else {
        format!("{count} processes")
    };
    format!(
        "unknown for {processes} ({}{more}); --lookups=all records them",
        programs.join(", ")
    )
}
