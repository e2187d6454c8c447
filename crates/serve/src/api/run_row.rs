//! A run in a list.

use std::collections::BTreeMap;

use backstory_eventlog::event::Time;
use backstory_query::answer::RunSummary;
use backstory_workflow::shell;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::job_row::JobRow;
use crate::path_text::PathText;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Its command exited with 0.
    Ok,
    /// Its command exited with another status, or by a signal.
    Failed,
    /// It is being recorded.
    Running,
    /// The end of its command is not known.
    Unknown,
}

impl RunState {
    /// The state of a run.
    pub fn of(run: &RunSummary) -> RunState {
        match (run.exit, run.signal) {
            _ if run.running => RunState::Running,
            (_, Some(_)) => RunState::Failed,
            (Some(0), None) => RunState::Ok,
            (Some(_), None) => RunState::Failed,
            (None, None) => RunState::Unknown,
        }
    }
}

/// A run in a list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunRow {
    /// Its id.
    pub run: String,
    /// Its name.
    pub name: Option<String>,
    /// The user's note.
    pub note: Option<String>,
    /// The id of the run that it repeats, if `rerun` made it.
    pub repeats: Option<String>,
    /// The words of its command.
    pub command: Vec<PathText>,
    /// The command as a shell line.
    pub line: String,
    /// The directory that it was started in.
    pub cwd: PathText,
    /// When it began.
    pub started: f64,
    /// When its command ended.
    pub ended: Option<f64>,
    /// The seconds between.
    pub seconds: Option<f64>,
    /// The exit status of its command.
    pub exit: Option<i32>,
    /// The signal that ended its command.
    pub signal: Option<i32>,
    /// How it ended.
    pub state: RunState,
    /// True if nothing is known to be missing in its record. False while it runs.
    pub complete: bool,
    /// Operations that could not be recorded.
    pub lost: u64,
    /// Why its record is not complete: sentences.
    pub incomplete_because: Vec<String>,
    /// Programs that were executed, and forks.
    pub processes: u64,
    /// Files that it read or executed.
    pub files_read: u64,
    /// Files that it wrote, created, renamed or removed.
    pub files_written: u64,
    /// The machine.
    pub host: String,
    /// Its place in a job of a launcher of parallel work.
    pub job: Option<JobRow>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl From<&RunSummary> for RunRow {
    fn from(run: &RunSummary) -> RunRow {
        RunRow {
            run: run.id.clone(),
            name: run.name.clone(),
            note: run.note.clone(),
            repeats: run.repeats.clone(),
            command: PathText::list(&run.command),
            line: shell::line(&run.command),
            cwd: (&run.cwd).into(),
            started: seconds(run.started),
            ended: run.ended.map(seconds),
            seconds: run.ended.map(|ended| seconds(ended - run.started)),
            exit: run.exit,
            signal: run.signal,
            state: RunState::of(run),
            complete: run.complete,
            lost: run.lost,
            incomplete_because: run.incomplete_because.clone(),
            processes: run.processes,
            files_read: run.files_read,
            files_written: run.files_written,
            host: run.host.clone(),
            job: run.job_rank.as_ref().map(JobRow::from),
            tags: run.tags.iter().cloned().collect(),
        }
    }
}

/// A moment, or a span, in seconds.
pub fn seconds(time: Time) -> f64 {
    time as f64 / 1e9
}
