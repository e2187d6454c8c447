//! `GET /runs/{run}/processes` and `/runs/{run}/waits`: the process tree of a run with its times.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use backstory_eventlog::event::Bytes;
use backstory_graph::marks::StatedRecord;
use backstory_ordering::SmallSort;
use backstory_query as query;
use backstory_query::answer::ProcessLine;
use backstory_store::ActivityKey;
use backstory_vocabulary::Word;
use backstory_workflow::shell;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::job_row::JobRow;
use super::row_stream::{self, RowRange};
use super::run_row::seconds;
use super::run_view::run_id;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::site::Site;

/// Rows of a page, usually and at most.
const USUAL: usize = 2000;
const MOST: usize = 20_000;

/// A page of the processes of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ProcessPage {
    /// In the order of their start.
    pub processes: Vec<ProcessRow>,
    /// Rows of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
}

/// A program that a process executed, or the time between a fork and the execution.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ProcessRow {
    /// Its id in the store.
    pub id: String,
    /// The id of what started it: another process, or the program that it executed before.
    pub parent: Option<String>,
    /// The process id.
    pub pid: u32,
    /// 0 between a fork and the first execution, then 1, 2 … for each program.
    pub epoch: u32,
    /// The path of the program.
    pub program: Option<PathText>,
    /// Its arguments.
    pub argv: Vec<PathText>,
    /// The arguments as a shell line.
    pub line: String,
    /// The directory that it began in.
    pub cwd: PathText,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// Its exit status, if it is known.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It ended by executing another program, or by a mark of its program.
    pub execed: bool,
    /// It began by a mark of its program, and is a part of that program's work: a cell, a test, a
    /// block.
    pub marked: bool,
    /// Seconds of processor time of its process, from the process's start to its exit. `null` if
    /// that is not known, or if this is not the last activity of the process.
    pub processor_seconds: Option<f64>,
    /// True if its look-ups are known.
    pub lookups_known: bool,
    /// `library` or `kernel`: what saw it begin.
    pub via: &'static str,
    /// The attributes that its program gave it.
    pub attributes: Vec<NoteRow>,
    /// The extended records that its program added.
    pub records: Vec<RecordRow>,
    /// Variables that its parent did not have, or had with another value.
    pub env_set: Vec<PathText>,
    /// Variables that its parent had and it did not.
    pub env_unset: Vec<PathText>,
    /// The rank that it begins with, in a job of a launcher of parallel work.
    pub job: Option<JobRow>,
}

/// An attribute that a program gave its work.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct NoteRow {
    /// The name.
    pub name: PathText,
    /// The value.
    pub value: PathText,
}

/// An extended record that a program added.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RecordRow {
    /// Its type.
    pub name: PathText,
    /// Its payload.
    pub value: PathText,
    /// The verdict by the schema of its type. `null` if no schema is registered.
    pub schema: Option<VerdictRow>,
}

/// The verdict of a schema about a record.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct VerdictRow {
    /// The schema: a type, `@`, a version.
    pub name: PathText,
    /// `conforms`, `violates` or `unchecked`.
    pub state: &'static str,
    /// The first violation, or why the record was not checked. Empty for one that conforms.
    pub why: PathText,
}

impl From<&StatedRecord> for RecordRow {
    fn from(record: &StatedRecord) -> RecordRow {
        let verdict = record.judgement.as_ref();
        RecordRow {
            name: (&record.kind).into(),
            value: (&record.payload).into(),
            schema: verdict.map(|verdict| VerdictRow {
                name: (&verdict.schema).into(),
                state: verdict.state.word(),
                why: (&verdict.why).into(),
            }),
        }
    }
}

impl NoteRow {
    fn new(name: &Bytes, value: &Bytes) -> NoteRow {
        NoteRow {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// A page of what processes told each other.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct WaitPage {
    /// In order of time.
    pub waits: Vec<WaitRow>,
    /// Rows of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
}

/// A fork, an execution, a wait for an exit status, or a signal.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct WaitRow {
    /// The process that informs: the parent of a fork, or the child that was waited for.
    pub from: String,
    /// The process that is informed.
    pub to: String,
    /// `fork`, `exec`, `wait` or `signal`.
    pub why: &'static str,
    /// When.
    pub time: f64,
}

impl From<&ProcessLine> for ProcessRow {
    fn from(line: &ProcessLine) -> ProcessRow {
        let (activity, key) = (&line.activity, ActivityKey(line.id));
        ProcessRow {
            id: ids::of_process(key),
            parent: line.parent_id.map(|id| ids::of_process(ActivityKey(id))),
            pid: activity.pid,
            epoch: activity.epoch,
            program: activity.exec_path.as_ref().map(Into::into),
            argv: PathText::list(&activity.argv),
            line: shell::line(&activity.argv),
            cwd: (&activity.cwd).into(),
            start: seconds(activity.interval.start),
            end: seconds(activity.interval.end),
            exit: activity.exit,
            signal: activity.signal,
            execed: activity.execed,
            marked: line.marked,
            processor_seconds: line.processor_time.map(seconds),
            lookups_known: activity.lookups_known,
            via: activity.via.word(),
            attributes: (line.notes.attributes.iter())
                .map(|(name, value)| NoteRow::new(name, value))
                .collect(),
            records: line.notes.records.iter().map(RecordRow::from).collect(),
            env_set: PathText::list(&activity.env_set),
            env_unset: PathText::list(&activity.env_unset),
            job: line.job_rank.as_ref().map(JobRow::from),
        }
    }
}

/// The programs that a run executed. With `Accept: application/x-ndjson` all, one a line.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/{run}/processes",
    params(
        ("run" = String, Path), ("limit" = Option<usize>, Query),
        ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = ProcessPage), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn process_page(
    State(site): State<Site>,
    Path(run): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    params.only(&["limit", "cursor"])?;
    let range = RowRange::new(&params, USUAL, MOST)?;
    if row_stream::is_wanted(&headers) {
        let lines = site.readers.ask(move |reading| {
            let run = run_id(reading, &run)?;
            Ok(query::processes(reading.store, &run)?)
        });
        let lines = lines.await?.into_iter();
        return Ok(row_stream::of(lines.map(|line| ProcessRow::from(&line))));
    }
    site.answer(move |_, reading| {
        let run = run_id(reading, &run)?;
        let lines = query::processes(reading.store, &run)?;
        let total = lines.len();
        let (page, next) = range.cut(lines);
        Ok(ProcessPage {
            processes: page.iter().map(ProcessRow::from).collect(),
            total,
            next,
        })
    })
    .await
}

/// Forks, executions, waits and signals between the processes of a run.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/{run}/waits",
    params(
        ("run" = String, Path), ("limit" = Option<usize>, Query),
        ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = WaitPage), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn wait_page(
    State(site): State<Site>,
    Path(run): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&["limit", "cursor"])?;
    let range = RowRange::new(&params, USUAL, MOST)?;
    site.answer(move |_, reading| {
        let run = run_id(reading, &run)?;
        let _one_state = reading.store.reading()?;
        let record = reading.store.run(&run)?;
        let key = record
            .ok_or_else(|| Problem::not_found("the run was removed"))?
            .key;
        let mut informs = Vec::new();
        for activity in reading.store.activities(key)? {
            let stream = reading.store.stream(ActivityKey::new(key, activity.id))?;
            informs.extend(stream.informed_by);
        }
        informs.sort_small_by_key(|inform| (inform.time, inform.to, inform.from));
        let total = informs.len();
        let (page, next) = range.cut(informs);
        let waits = page.iter().map(|inform| WaitRow {
            from: ids::of_process(ActivityKey::new(key, inform.from)),
            to: ids::of_process(ActivityKey::new(key, inform.to)),
            why: inform.why.words().word,
            time: seconds(inform.time),
        });
        Ok(WaitPage {
            waits: waits.collect(),
            total,
            next,
        })
    })
    .await
}
