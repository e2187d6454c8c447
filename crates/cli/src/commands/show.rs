//! `show`: prints one run. The answers that its owner needs come first: the command, its result,
//! whether the record is complete, the user's own files. `--verbose` adds the rest.

mod run_text;

use backstory_vocabulary::{DurabilityMode, SuppressMode, Word};
use std::path::Path;

use backstory_eventlog::run::{ImportedFile, ImportedLog, Modes};
use backstory_pipeline::PipelineReport;
use backstory_query::answer::{JobProcesses, RunDetails};
use backstory_query::{self as query, RecordedDatabase, RemoteEnd};
use backstory_store::GraphStore;

use super::deep_programs::{self, DeepPrograms};
use super::file_choice::OwnFilter;
use super::judged_records::{self, JudgedRecord, judged_records};
use super::own_calls::OwnCalls;
use super::own_files::OwnFiles;
use super::run_summary::{annotation_fields, fields as summary_fields, usage};
use super::stored_contents::{self, StoredContents};
use super::{Outcome, answer};
use crate::args::runs::ShowArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::{self, Value};
use crate::pipeline_file::report_fields;
use crate::text::style::Style;

/// All that is known of a run.
struct ShownRun<'a> {
    details: &'a RunDetails,
    /// `None` if the run was recorded without contents.
    stored: Option<&'a StoredContents>,
    own: OwnFiles,
    /// The report of the filters, if there were any.
    filters: Option<PipelineReport>,
    /// The records that programs added, and that have a schema.
    judged: Vec<JudgedRecord>,
    /// `None` if the run has no deep log.
    deep: Option<DeepPrograms>,
}

/// Prints a run.
pub fn run(args: ShowArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.run.as_deref())?;
    let details = query::details(&current.store, &run)?;
    let contents = query::contents(&current.store, &run)?;
    let own_filter = OwnFilter::of(&current, &run)?;
    let own = OwnFiles::of(&contents.files, &details.summary.cwd, &own_filter);
    let mut stored = match details.modes.stores_contents() {
        true => Some(stored_contents::of_contents(&current, contents)?),
        false => None,
    };
    if let Some(stored) = stored.as_mut().filter(|_| !args.run.json) {
        // The caller redirected these files, and goes on to write there.
        let printed = printed_to(&current, &run)?;
        stored.missing.retain(|(path, _)| {
            !printed.iter().any(|own| **own == **path) && !own_filter.was_temporary(path)
        });
    }
    let deep = deep_programs::deep_log(&current.home, &run)?;
    let deep = deep.map(|log| {
        let executed = query::processes(&current.store, &run)?;
        let own_calls = OwnCalls::of(&current.store, &run, &executed)?;
        Ok::<_, Failure>(DeepPrograms::of(&log, &executed, &own_calls))
    });
    let shown = ShownRun {
        details: &details,
        stored: stored.as_ref(),
        own,
        filters: filters(&current, &run)?,
        judged: judged_records(&current, &run)?,
        deep: deep.transpose()?,
    };
    answer(|out| match args.run.json {
        true => json::object(out, fields(&shown)),
        false => run_text::text(&shown, args.verbose, Style::of_stdout(), out),
    })
}

/// The report of the filters that the run passed.
fn filters(current: &CurrentStore, run: &str) -> Result<Option<PipelineReport>, Failure> {
    let Some(record) = current.store.run(run)? else {
        return Ok(None);
    };
    let records = current.store.extended(record.key)?;
    let mut reports = records
        .iter()
        .filter_map(|(_, _, kind, payload)| PipelineReport::decode(kind, payload));
    Ok(reports.next())
}

/// The files that the run's command began with as standard output and errors.
fn printed_to(current: &CurrentStore, run: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let record = current.store.run(run)?;
    Ok(record.map_or_else(Vec::new, |record| query::printed_files(&record.header)))
}

/// The word of a mode; empty where the log's header was lost.
fn word<W: Word>(mode: Option<W>) -> &'static str {
    mode.map_or("", W::word)
}

fn fields(shown: &ShownRun) -> Vec<(&'static str, Value)> {
    let details = shown.details;
    let mut fields = summary_fields(&details.summary);
    let (machine, modes) = (&details.machine, &details.modes);
    let unknown = details.lookups_unknown.iter().map(|(id, path)| {
        Value::Object(vec![
            ("id", (*id).into()),
            ("exec_path", path.as_ref().into()),
        ])
    });
    fields.extend(annotation_fields(&details.annotations));
    fields.extend([
        ("warnings", Value::array(&details.warnings)),
        ("peers", Value::array(&details.peers)),
        ("devices", Value::array(&details.devices)),
        (
            "remote",
            Value::Array(details.remote.iter().map(remote_fields).collect()),
        ),
        (
            "jobs",
            Value::Array(details.jobs.iter().map(job_fields).collect()),
        ),
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
                ("durability", durability(modes).word().into()),
                (
                    "rows",
                    modes.rows.map_or(Value::Null, |mode| mode.word().into()),
                ),
                ("byte_engine", modes.byte_engine.into()),
                ("fixed_addresses", modes.fixed_addresses.into()),
            ]),
        ),
        ("database", database(details.database.as_ref())),
        ("log_bytes", details.log_bytes.into()),
        (
            "deep",
            shown.deep.as_ref().map_or(Value::Null, DeepPrograms::json),
        ),
        ("imported", imported(details.imported.as_ref())),
        ("usage", usage(details.usage.as_ref())),
        ("own_inputs", Value::array(&shown.own.inputs)),
        ("own_outputs", Value::array(&shown.own.outputs)),
        ("records", judged_records::json(&shown.judged)),
        (
            "filtered",
            shown.filters.as_ref().map_or(Value::Null, report_fields),
        ),
        (
            "contents",
            shown.stored.map_or(Value::Null, StoredContents::json),
        ),
    ]);
    fields
}

/// The database that a run watched; null for other runs.
fn database(recorded: Option<&RecordedDatabase>) -> Value {
    recorded.map_or(Value::Null, |recorded| {
        Value::Object(vec![
            ("transactions", recorded.transactions.into()),
            ("changed_tables", Value::array(&recorded.changed_tables)),
        ])
    })
}

/// The log of another tool that a run was made from; null for other runs.
fn imported(log: Option<&ImportedLog>) -> Value {
    log.map_or(Value::Null, |log| {
        let file = |file: &ImportedFile| {
            Value::Object(vec![
                ("path", file.path.as_slice().into()),
                ("digest", (&file.digest).into()),
                ("bytes", file.bytes.into()),
            ])
        };
        Value::Object(vec![
            ("format", (&log.format).into()),
            ("files", Value::Array(log.files.iter().map(file).collect())),
        ])
    })
}

fn remote_fields(end: &RemoteEnd) -> Value {
    Value::Object(vec![
        ("machine", (&end.machine).into()),
        ("run", end.run.as_ref().into()),
        ("started_by_this_run", end.is_started.into()),
    ])
}

fn job_fields(job: &JobProcesses) -> Value {
    Value::Object(vec![
        ("launcher", (&job.of.launcher).into()),
        ("id", job.of.job.as_ref().into()),
        ("size", job.of.size.into()),
        (
            "ranks",
            Value::Array(job.ranks.iter().map(|rank| (*rank).into()).collect()),
        ),
    ])
}

/// The run's durability. Logs have it if it is not the usual one.
fn durability(modes: &Modes) -> DurabilityMode {
    modes.durability.unwrap_or_default()
}
