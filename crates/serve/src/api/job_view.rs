//! `GET /job`: the runs that are ranks of one job.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use backstory_eventlog::job_rank::JobRank;
use backstory_ordering::SmallSort;
use backstory_query::answer::RunSummary;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::run_row::{RunRow, RunState, seconds};
use crate::params::Params;
use crate::problem::{Answer, Problem};
use crate::site::Site;

/// Ranks of an answer, usually and at most.
const USUAL: usize = 1000;
const MOST: usize = 20_000;
/// Numbers of missing ranks that are named.
const MISSING: usize = 100;

/// A job of a launcher of parallel work whose ranks are runs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct JobView {
    /// The launcher.
    pub launcher: String,
    /// The id of the job.
    pub id: String,
    /// The number of ranks that the launcher tells. `null` if it tells none.
    pub size: Option<u64>,
    /// The begin of the first run.
    pub started: f64,
    /// The end of the last run. `null` if the end of one is not known.
    pub ended: Option<f64>,
    /// The machines, sorted.
    pub hosts: Vec<String>,
    /// How many runs ended how.
    pub states: JobStates,
    /// Runs whose record is not complete.
    pub incomplete: usize,
    /// Ranks without a run in this store: the first 100.
    pub missing: Vec<u64>,
    /// The number of ranks without a run in this store. `null` if the number of ranks is unknown.
    pub missing_count: Option<u64>,
    /// The runs, by rank and then by time: the first `limit`.
    pub ranks: Vec<RunRow>,
    /// The number of all its runs.
    pub total: usize,
}

/// How many runs ended how.
#[derive(Debug, Default, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[allow(missing_docs)]
pub struct JobStates {
    pub ok: usize,
    pub failed: usize,
    pub running: usize,
    pub unknown: usize,
}

/// The job of a launcher of parallel work, with the runs that are its ranks.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/job",
    params(
        ("launcher" = String, Query), ("id" = String, Query), ("limit" = Option<usize>, Query),
    ),
    responses((status = 200, body = JobView), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn job_view(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["launcher", "id", "limit"])?;
    let launcher = needed(&params, "launcher")?;
    let id = needed(&params, "id")?;
    let limit = params.number("limit", USUAL, MOST)?;
    site.answer(move |site, reading| {
        let stored = site.runs.read(reading)?;
        let of = |run: &&RunSummary| {
            let place = run.job_rank.as_ref();
            place.is_some_and(|place| {
                place.launcher == launcher && place.job.as_deref() == Some(&*id)
            })
        };
        let known: BTreeSet<&str> = stored.iter().map(|run| run.id.as_str()).collect();
        let mut running = site.running();
        // A run may have ended between the two lists.
        running.retain(|run| !known.contains(run.id.as_str()));
        let mut runs: Vec<&RunSummary> = running.iter().chain(stored.iter()).filter(of).collect();
        runs.sort_small_by_key(|run| (rank(run), run.started, run.id.clone()));
        view(launcher, id, &runs, limit)
            .ok_or_else(|| Problem::not_found("no run of this store is a rank of this job"))
    })
    .await
}

fn needed(params: &Params, key: &str) -> Answer<String> {
    params.needed(key)?;
    Ok(params.text(key)?.unwrap_or_default().to_owned())
}

fn rank(run: &RunSummary) -> Option<u64> {
    run.job_rank.as_ref()?.rank
}

fn view(launcher: String, id: String, runs: &[&RunSummary], limit: usize) -> Option<JobView> {
    let started = runs.iter().map(|run| run.started).min()?;
    let ended: Option<Vec<_>> = runs.iter().map(|run| run.ended).collect();
    let places = runs.iter().filter_map(|run| run.job_rank.as_ref());
    let size = places.filter_map(|place: &JobRank| place.size).max();
    let mut states = JobStates::default();
    for run in runs {
        *match RunState::of(run) {
            RunState::Ok => &mut states.ok,
            RunState::Failed => &mut states.failed,
            RunState::Running => &mut states.running,
            RunState::Unknown => &mut states.unknown,
        } += 1;
    }
    let present: BTreeSet<u64> = runs.iter().filter_map(|run| rank(run)).collect();
    let within = |size: u64| present.range(..size).count() as u64;
    // A launcher that tells the number of ranks counts them from 0. Slurm's arrays need not.
    let counts = size.filter(|size| present.last().is_none_or(|last| last < size));
    let hosts: BTreeSet<&str> = runs.iter().map(|run| run.host.as_str()).collect();
    Some(JobView {
        launcher,
        id,
        size,
        started: seconds(started),
        ended: ended.and_then(|all| all.into_iter().max()).map(seconds),
        hosts: hosts.into_iter().map(str::to_owned).collect(),
        states,
        incomplete: runs
            .iter()
            .filter(|run| !run.complete && !run.running)
            .count(),
        missing: (0..counts.unwrap_or(0))
            .filter(|rank| !present.contains(rank))
            .take(MISSING)
            .collect(),
        missing_count: counts.map(|size| size - within(size)),
        ranks: runs
            .iter()
            .take(limit)
            .map(|run| RunRow::from(*run))
            .collect(),
        total: runs.len(),
    })
}
