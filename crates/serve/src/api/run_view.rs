//! `GET /runs/{run}`: everything about a run but its files and processes.

use backstory_ordering::SmallSort;
use std::cmp::Reverse;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Response;
use backstory_eventlog::reason::ROWS;
use backstory_query::answer::RunDetails;
use backstory_query::{self as query, ReplayVerdict};
use backstory_store::AnnotationKind;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::job_row::RunJobRow;
use super::run_row::{RunRow, seconds};
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::readers::Reading;
use crate::site::Site;

/// Everything about a run but its files and processes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunView {
    /// As in the list of runs.
    pub summary: RunRow,
    /// Why its record is not complete, with what that means.
    pub reasons: Vec<ReasonRow>,
    /// Effects of recording on the programs, one sentence each.
    pub warnings: Vec<String>,
    /// The machine that it ran on.
    pub machine: MachineRow,
    /// How it was recorded.
    pub modes: ModeRow,
    /// The environment that its command began with.
    pub environment: Vec<VariableRow>,
    /// Its tags, parameters, metrics and git work trees.
    pub annotations: Vec<AnnotationRow>,
    /// Sockets of daemons that may have worked for it.
    pub peers: Vec<String>,
    /// Jobs of launchers of parallel work whose ranks are processes of it.
    pub jobs: Vec<RunJobRow>,
    /// Processes whose look-ups are not known.
    pub lookups_unknown: usize,
    /// Processor time and memory. `null` if unknown.
    pub usage: Option<UsageRow>,
    /// Bytes of its log.
    pub log_bytes: u64,
    /// The runs that repeat it, the newest first.
    pub repeated_by: Vec<RunRow>,
    /// The verdicts of its replays, the newest first.
    pub replays: Vec<ReplayRow>,
}

/// A reason why a record is not complete.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ReasonRow {
    /// The event.
    pub sentence: String,
    /// The part that is unknown then, and what the user can do. `null` for a sentence of another
    /// version.
    pub meaning: Option<&'static str>,
}

/// A machine.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[allow(missing_docs)]
pub struct MachineRow {
    pub host: String,
    pub kernel: String,
    pub distribution: String,
    pub cpu: String,
}

/// How a run was recorded: the words of the options of `record`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[allow(missing_docs)]
pub struct ModeRow {
    pub guard: Option<String>,
    pub lookups: Option<String>,
    pub io_uring: Option<String>,
    pub suppress: Option<String>,
    pub contents: Option<String>,
    pub durability: Option<String>,
}

/// A variable of an environment.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[allow(missing_docs)]
pub struct VariableRow {
    pub name: PathText,
    pub value: PathText,
}

/// A fact that was attached to a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct AnnotationRow {
    /// `tag`, `parameter`, `metric` or `checkout`.
    pub kind: &'static str,
    /// Its name. For a checkout, the directory of the work tree.
    pub key: String,
    /// Its value. For a checkout, JSON.
    pub value: Option<String>,
}

/// The verdict of a replay.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ReplayRow {
    /// When it ended.
    pub ended: f64,
    /// No output is known to differ, and the exit status is the recorded one.
    pub identical: bool,
    /// The user changed neither the command nor its inputs for this replay.
    pub faithful: bool,
    /// The exit status of the replayed command.
    pub exit: i32,
    /// The recorded outputs.
    pub outputs: usize,
    /// Outputs whose recorded content is not known.
    pub unknown: usize,
    /// Outputs with another content: the first 100 paths, as text.
    pub different: Vec<String>,
    /// Outputs that the replay did not leave: the first 100 paths, as text.
    pub missing: Vec<String>,
    /// Files that the replay left and the recorded run did not.
    pub new: usize,
    /// Seconds that the command ran.
    pub seconds: f64,
}

impl From<ReplayVerdict> for ReplayRow {
    fn from(verdict: ReplayVerdict) -> ReplayRow {
        ReplayRow {
            ended: seconds(verdict.ended),
            identical: verdict.identical,
            faithful: verdict.faithful,
            exit: verdict.exit,
            outputs: verdict.outputs,
            unknown: verdict.unknown,
            different: verdict.different,
            missing: verdict.missing,
            new: verdict.new,
            seconds: Duration::from_nanos(verdict.took).as_secs_f64(),
        }
    }
}

/// The resources that a run used.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct UsageRow {
    /// Seconds of processor time in programs.
    pub user: f64,
    /// Seconds of processor time in the kernel.
    pub system: f64,
    /// The most memory that one process had, in bytes.
    pub peak_memory: u64,
}

/// Everything about a run but its files and processes. `run` is an id, the beginning of one, a
/// name, or `latest`.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/{run}",
    params(("run" = String, Path)),
    responses((status = 200, body = RunView), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn run_view(
    State(site): State<Site>,
    Path(run): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&[])?;
    site.answer(move |site, reading| {
        let run = run_id(reading, &run)?;
        let details = query::details(reading.store, &run)?;
        let all = site.runs.read(reading)?;
        let repeats = all
            .iter()
            .filter(|other| other.repeats.as_deref() == Some(&run));
        Ok(view(details, repeats.map(RunRow::from).collect()))
    })
    .await
}

/// The id of a run that a request names.
pub fn run_id(reading: &Reading<'_>, wanted: &str) -> Answer<String> {
    let wanted = (wanted != "latest").then_some(wanted);
    Ok(query::resolve(reading.store, wanted)?)
}

fn view(details: RunDetails, repeated_by: Vec<RunRow>) -> RunView {
    let summary = RunRow::from(&details.summary);
    let reasons = details.summary.incomplete_because.iter();
    let reasons = reasons.map(|sentence| ReasonRow {
        sentence: sentence.clone(),
        meaning: meaning(sentence),
    });
    let variable = |pair: &backstory_eventlog::event::Bytes| {
        let at = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = pair.split_at(at.unwrap_or(pair.len()));
        VariableRow {
            name: name.into(),
            value: value.get(1..).unwrap_or_default().into(),
        }
    };
    let replays = details.annotations.iter();
    let mut replays: Vec<ReplayVerdict> = replays.filter_map(ReplayVerdict::of).collect();
    replays.sort_small_by_key(|verdict| Reverse(verdict.ended));
    let annotations = details.annotations.into_iter();
    let annotations = annotations
        .filter(|one| !matches!(one.kind, AnnotationKind::Replay | AnnotationKind::Remote));
    let modes = details.modes;
    RunView {
        reasons: reasons.collect(),
        warnings: details.warnings,
        machine: MachineRow {
            host: details.machine.host,
            kernel: details.machine.kernel,
            distribution: details.machine.distribution,
            cpu: details.machine.cpu,
        },
        modes: ModeRow {
            guard: modes.guard.map(|mode| mode.to_string()),
            lookups: modes.lookups.map(|mode| mode.to_string()),
            io_uring: modes.io_uring.map(|mode| mode.to_string()),
            suppress: modes.suppress.map(|mode| mode.to_string()),
            contents: modes.contents.map(|mode| mode.to_string()),
            durability: modes.durability.map(|mode| mode.to_string()),
        },
        environment: details.environment.iter().map(variable).collect(),
        annotations: annotations
            .map(|one| AnnotationRow {
                kind: one.kind.word(),
                key: one.key,
                value: one.value,
            })
            .collect(),
        peers: details.peers,
        jobs: details.jobs.iter().map(RunJobRow::from).collect(),
        lookups_unknown: details.lookups_unknown.len(),
        usage: details.usage.map(|usage| UsageRow {
            user: seconds(usage.user),
            system: seconds(usage.system),
            peak_memory: usage.peak_memory,
        }),
        log_bytes: details.log_bytes,
        repeated_by,
        replays: replays.into_iter().map(ReplayRow::from).collect(),
        summary,
    }
}

/// The meaning of a sentence, by the fixed parts of the sentences of all reasons.
fn meaning(sentence: &str) -> Option<&'static str> {
    let row = ROWS.iter().find(|row| fits(sentence, row.sentence))?;
    Some(row.meaning)
}

/// True if the sentence has all fixed parts of the pattern, in their order. The other parts are in
/// braces.
fn fits(sentence: &str, pattern: &str) -> bool {
    let mut rest = sentence;
    let mut pieces = pattern.split('{').map(|piece| match piece.split_once('}') {
        Some((_, fixed)) => fixed,
        None => piece,
    });
    let first = pieces.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    let mut open = false;
    for piece in pieces {
        open = true;
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty() || (open && pattern.ends_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_recognised_by_its_fixed_parts() {
        assert!(fits("EPERM; only calls", "{why}; only calls"));
        assert!(fits("3 records of 7 lost", "{a} records of {b} lost"));
        assert!(fits("it ended: killed", "it ended: {why}"));
        assert!(!fits("3 records", "{a} records of {b} lost"));
        assert!(!fits("it is whole and more", "it is whole"));
    }
}
