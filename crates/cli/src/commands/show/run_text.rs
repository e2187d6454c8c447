//! A run as text: a line for each fact.

use backstory_ordering::SmallSort;
use backstory_vocabulary::{DurabilityMode, RowsMode};
use std::io::{self, Write};

use backstory_eventlog::event::Bytes;
use backstory_pipeline::PipelineReport;
use backstory_query::answer::{JobProcesses, RunDetails, RunSummary};
use backstory_query::{self as query, RecordedDatabase, RemoteEnd};
use backstory_store::Annotation;
use backstory_workflow::paths::relative;

use super::{ShownRun, durability, word};
use crate::checkout;
use crate::commands::deep_programs::DeepPrograms;
use crate::commands::judged_records;
use crate::commands::run_summary::ending;
use crate::commands::stored_contents::StoredContents;
use crate::error::one_line;
use crate::pipeline_file::effect;
use crate::text::shell::{self, Call};
use crate::text::style::{Role, Style};
use crate::text::{self, when, words};

/// How many files of a list are named.
const NAMED: usize = 5;

/// Prints lines of a name and a value.
struct Lines<'o, W> {
    out: &'o mut W,
    style: Style,
}

impl<W: Write> Lines<'_, W> {
    fn line(&mut self, name: &str, value: &str) -> io::Result<()> {
        let name = self.style.paint(Role::Dim, &format!("{name:<12}"));
        writeln!(self.out, "{name} {value}")
    }
}

/// Prints the command, its result, whether the record is complete, the user's own files, time and
/// memory. `verbose` adds the rest.
pub(super) fn text(
    shown: &ShownRun,
    verbose: bool,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut lines = Lines { out, style };
    let run = &shown.details.summary;
    lines.line("command", &style.paint(Role::Command, &command(run)))?;
    let role = if run.exit == Some(0) {
        Role::Good
    } else {
        Role::Bad
    };
    let end = end(run);
    let end = if run.running {
        end
    } else {
        style.paint(role, &end)
    };
    lines.line("result", &end)?;
    verdict(shown.details, &mut lines)?;
    watched_database(shown.details, &mut lines)?;
    if let Some(report) = &shown.filters {
        filtered(report, &mut lines)?;
    }
    if !shown.judged.is_empty() {
        let name = lines.style.paint(Role::Dim, &format!("{:<12}", "records"));
        judged_records::text(&shown.judged, &name, lines.out)?;
    }
    if let Some(name) = &run.name {
        lines.line("name", &one_line(name))?;
    }
    if let Some(note) = &run.note {
        lines.line("note", &one_line(note))?;
    }
    if let Some(repeated) = &run.repeats {
        lines.line("repeats", &one_line(&format!("run {repeated}")))?;
    }
    if let Some(log) = &shown.details.imported {
        let paths: Vec<Bytes> = log
            .files
            .iter()
            .map(|file| file.path.as_slice().into())
            .collect();
        let text = format!("{}: {}", log.format, named(&paths, &run.cwd));
        lines.line("imported", &one_line(&text))?;
    }
    lines.line("inputs", &named(&shown.own.inputs, &run.cwd))?;
    lines.line("outputs", &named(&shown.own.outputs, &run.cwd))?;
    time_and_memory(shown.details, &mut lines)?;
    for (key, value) in annotated(shown.details) {
        lines.line(key, &one_line(&value))?;
    }
    for end in &shown.details.remote {
        lines.line("remote", &one_line(&remote(end)))?;
    }
    if let Some(rank) = &run.job_rank {
        lines.line("job", &one_line(&rank.to_string()))?;
    }
    for job in &shown.details.jobs {
        lines.line("job", &one_line(&job_processes(job)))?;
    }
    if !shown.details.devices.is_empty() {
        let paths = shown
            .details
            .devices
            .iter()
            .map(|path| text::paths::shown(path));
        lines.line("devices", &paths.collect::<Vec<_>>().join(", "))?;
    }
    // A watch of a database recorded what the server did, which is the peer of its clients.
    let peers = shown.details.peers.iter();
    for peer in peers.filter(|_| shown.details.modes.rows.is_none()) {
        lines.line(
            "peer",
            &format!("{peer} (outside this run; what the peer did for the run is unknown)"),
        )?;
    }
    if let Some(stored) = shown.stored.filter(|stored| verbose || stored.is_lacking()) {
        lines.line("contents", &stored.text())?;
        not_stored(stored, &mut lines)?;
    }
    for (name, value) in shown.deep.iter().flat_map(DeepPrograms::lines) {
        lines.line(name, &value)?;
    }
    lines.line("run", &run.id)?;
    if verbose {
        rest(shown.details, &mut lines)?;
    }
    Ok(())
}

/// The command line.
fn command(run: &RunSummary) -> String {
    let program = run.command.first().map(|word| &**word);
    let call = Call {
        // A document of another tool may have a name instead of a program.
        exec_path: program.filter(|_| !run.is_imported),
        argv: &run.command,
        cwd: &run.cwd,
        env_set: &[],
        env_unset: &[],
    };
    match &run.command[..] {
        // A name has no directory.
        [_] if run.is_imported => shell::command_of(run),
        _ => call.whole(b""),
    }
}

/// The lines about a watched database.
fn watched_database(details: &RunDetails, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    if details.modes.rows == Some(RowsMode::Off) {
        let text = "not recorded (watch --rows off): tables and statements alone";
        lines.line("rows", text)?;
    }
    if let Some(database) = &details.database {
        lines.line("transactions", &database.transactions.to_string())?;
        lines.line("changed", &changed_tables(database))?;
    }
    Ok(())
}

/// `Open MPI job 71: 2 of 4 ranks are processes of this run: 0, 1`
fn job_processes(job: &JobProcesses) -> String {
    let shown: Vec<String> = job.ranks.iter().take(NAMED).map(u64::to_string).collect();
    let more = if job.ranks.len() > NAMED { ", …" } else { "" };
    let of = job
        .of
        .size
        .map_or_else(String::new, |size| format!(" of {size}"));
    let ranks = words::counted(job.ranks.len(), "rank", "ranks");
    format!(
        "{}: {ranks}{of} here ({}{more})",
        job.of.job_text(),
        shown.join(", ")
    )
}

/// The run at the other end of a connection of ssh.
fn remote(end: &RemoteEnd) -> String {
    let machine = &end.machine;
    match (&end.run, end.is_started) {
        (Some(run), true) => format!("started run {run} on {machine}"),
        (Some(run), false) => format!("started on {machine} by run {run}"),
        (None, true) => format!("started a run on {machine}, which is not in this store"),
        (None, false) => format!("started on {machine} by a run that is not in this store"),
    }
}

/// Prints how much each filter took or changed.
fn filtered(report: &PipelineReport, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    for filter in &report.filters {
        let text = format!("{} ({}): {}", filter.name, filter.action, effect(filter));
        lines.line("filtered", &one_line(&text))?;
    }
    let (files, processes) = (report.anonymous.files, report.anonymous.processes);
    if files + processes > 0 {
        let files = words::counted(files, "file", "files");
        let processes = words::counted(processes, "process", "processes");
        let text = format!("{files} and {processes} stay without a name, for lineage");
        lines.line("  of these", &text)?;
    }
    Ok(())
}

/// Whether the record is complete, and why not.
fn verdict(details: &RunDetails, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let run = &details.summary;
    let word = match run.complete {
        true => lines.style.paint(Role::Good, "yes"),
        false => lines.style.paint(Role::Bad, "no"),
    };
    lines.line("complete", &word)?;
    for reason in &run.incomplete_because {
        lines.line("  because", &one_line(reason))?;
    }
    if run.lost > 0 {
        lines.line("  lost", &format!("{} operations", run.lost))?;
    }
    for warning in &details.warnings {
        lines.line("warning", &one_line(warning))?;
    }
    Ok(())
}

fn time_and_memory(details: &RunDetails, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let run = &details.summary;
    lines.line("started", &when::moment(run.started))?;
    if let Some(ended) = run.ended {
        let took = when::duration(ended - run.started);
        let processor = details.usage.map_or_else(String::new, |usage| {
            let times = [usage.user, usage.system].map(when::duration);
            format!(" ({} user, {} system)", times[0], times[1])
        });
        lines.line("took", &format!("{took}{processor}"))?;
    }
    if let Some(usage) = details.usage {
        let peak = when::size(usage.peak_memory);
        lines.line("memory", &format!("{peak} in the largest process"))?;
    }
    Ok(())
}

/// The beginning of a list of files, and the number of all.
fn named(files: &[Bytes], cwd: &[u8]) -> String {
    let shown = files.iter().take(NAMED);
    let shown: Vec<String> = shown
        .map(|path| one_line(&shell::quote(relative(path, cwd))))
        .collect();
    match files.len() {
        0 => "none of your own files".to_owned(),
        all if all > NAMED => format!("{all} files: {}, …", shown.join(", ")),
        _ => shown.join(", "),
    }
}

/// The beginning of the list of tables that a watched database changed, and the number of all.
fn changed_tables(database: &RecordedDatabase) -> String {
    let tables = &database.changed_tables;
    let shown: Vec<&str> = tables.iter().take(NAMED).map(String::as_str).collect();
    let shown = one_line(&shown.join(", "));
    match tables.len() {
        0 => "no table".to_owned(),
        all if all > NAMED => format!("{all} tables: {shown}, …"),
        _ => shown,
    }
}

/// The files whose contents are not stored.
fn not_stored(stored: &StoredContents, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    for (path, why) in stored.missing.iter().take(NAMED) {
        let text = format!("{}: {why}", shell::quote(path));
        lines.line("  not stored", &one_line(&text))?;
    }
    let more = stored.missing.len().saturating_sub(NAMED);
    if more > 0 {
        lines.line("  not stored", &format!("{more} more (--json lists them)"))?;
    }
    Ok(())
}

/// The facts that few readers need.
fn rest(details: &RunDetails, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let run = &details.summary;
    lines.line("processes", &run.processes.to_string())?;
    let files = format!("{} read, {} written", run.files_read, run.files_written);
    lines.line("files", &files)?;
    if !details.lookups_unknown.is_empty() {
        lines.line("look-ups", &unknown_lookups(details))?;
    }
    let modes = &details.modes;
    let (guard, lookups, io_uring) = (word(modes.guard), word(modes.lookups), word(modes.io_uring));
    lines.line(
        "recorded",
        &format!(
            "guard {guard}, look-ups {lookups}, io_uring {io_uring}{}{}{}",
            match durability(modes) {
                DurabilityMode::After => String::new(),
                mode => format!(", durability {mode}"),
            },
            match modes.byte_engine {
                true => ", under the byte engine",
                false => "",
            },
            match modes.fixed_addresses {
                true => ", with fixed addresses",
                false => "",
            }
        ),
    )?;
    let machine = &details.machine;
    lines.line(
        "machine",
        &format!(
            "{}, {}, {}, {}",
            machine.host, machine.distribution, machine.kernel, machine.cpu
        ),
    )?;
    lines.line("log", &when::size(details.log_bytes))
}

/// Lines about the git work trees, tags, parameters and metrics.
fn annotated(details: &RunDetails) -> Vec<(&'static str, String)> {
    use backstory_store::AnnotationKind::{Checkout, Metric, Parameter, Tag};
    let mut lines = Vec::new();
    for checkout in details.annotations.iter().filter_map(query::Checkout::of) {
        let text = format!("{}  ({})", checkout::text(&checkout), checkout.root);
        lines.push(("git", text));
    }
    for (kind, key) in [
        (Tag, "tags"),
        (Parameter, "parameters"),
        (Metric, "metrics"),
    ] {
        let of = details.annotations.iter().filter(|one| one.kind == kind);
        let pair =
            |one: &Annotation| format!("{}={}", one.key, one.value.as_deref().unwrap_or_default());
        let pairs: Vec<String> = of.map(pair).collect();
        if !pairs.is_empty() && kind != Checkout {
            lines.push((key, pairs.join("  ")));
        }
    }
    lines
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
    programs.sort_small();
    programs.dedup();
    let more = if programs.len() > 3 { ", …" } else { "" };
    programs.truncate(3);
    let count = details.lookups_unknown.len();
    let processes = words::counted(count, "process", "processes");
    format!(
        "unknown for {processes} ({}{more}); --lookups=all records them",
        programs.join(", ")
    )
}
