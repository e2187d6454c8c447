//! `GET /runs/activity`: how many runs began when.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::run_row::{RunState, seconds};
use super::run_search::{FILTERS, RunSearch};
use crate::params::Params;
use crate::problem::Answer;
use crate::site::Site;

/// Bars of a histogram, usually and at most.
const USUAL: usize = 60;
const MOST: usize = 1000;

/// A histogram of runs over time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunActivity {
    /// The start of the first bar.
    pub start: f64,
    /// The end of the last bar.
    pub end: f64,
    /// The width of a bar in seconds.
    pub step: f64,
    /// The bars, without gaps, the oldest first.
    pub bars: Vec<ActivityBar>,
}

/// The runs that began in a span of time.
#[derive(Debug, Default, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ActivityBar {
    /// The start of the span.
    pub start: f64,
    /// All runs.
    pub runs: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those whose record is not complete.
    pub incomplete: usize,
}

/// How many runs began when. Takes the conditions of `/runs`.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/activity",
    params(
        ("text" = Option<String>, Query), ("command" = Option<String>, Query),
        ("file" = Option<String>, Query), ("name" = Option<String>, Query),
        ("note" = Option<String>, Query), ("host" = Option<String>, Query),
        ("job" = Option<String>, Query),
        ("status" = Option<String>, Query), ("complete" = Option<bool>, Query),
        ("since" = Option<f64>, Query), ("until" = Option<f64>, Query),
        ("tag" = Option<Vec<String>>, Query), ("buckets" = Option<usize>, Query),
    ),
    responses((status = 200, body = RunActivity), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn run_activity(State(site): State<Site>, params: Params) -> Answer<Response> {
    let known: Vec<&str> = FILTERS.iter().chain(&["buckets"]).copied().collect();
    params.only(&known)?;
    let search = RunSearch::new(&params)?;
    let bars = params.number("buckets", USUAL, MOST)?.max(1);
    site.answer(move |site, reading| {
        let runs = search.find(site, reading)?;
        let times = || runs.iter().map(|run| run.started);
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return Ok(RunActivity {
                start: 0.0,
                end: 0.0,
                step: 0.0,
                bars: Vec::new(),
            });
        };
        // The last run begins within the last bar, not at its end.
        let step = (last.abs_diff(first) / bars as u64 + 1).max(1_000_000_000);
        let start = |at: usize| first.saturating_add((step * at as u64) as i64);
        let count = (last.abs_diff(first) / step) as usize + 1;
        let mut found: Vec<ActivityBar> = (0..count)
            .map(|at| ActivityBar {
                start: seconds(start(at)),
                ..ActivityBar::default()
            })
            .collect();
        for run in &runs {
            let bar = &mut found[(run.started.abs_diff(first) / step) as usize];
            bar.runs += 1;
            bar.failed += usize::from(RunState::of(run) == RunState::Failed);
            bar.incomplete += usize::from(!run.complete && !run.running);
        }
        Ok(RunActivity {
            start: seconds(first),
            end: seconds(start(count)),
            step: step as f64 / 1e9,
            bars: found,
        })
    })
    .await
}
