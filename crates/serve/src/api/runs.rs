//! `GET /runs`: the list of runs.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::row_stream;
use super::run_row::RunRow;
use super::run_search::{self, FILTERS, ORDERS, RunSearch};
use crate::params::Params;
use crate::problem::Answer;
use crate::site::Site;

/// Runs on a page that does not say how many it wants, and at most.
const USUAL: usize = 100;
const MOST: usize = 5000;

/// A page of the list of runs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunPage {
    /// The runs of this page.
    pub runs: Vec<RunRow>,
    /// Runs of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
}

/// The runs that meet all conditions. With `Accept: application/x-ndjson` all of them, one a line.
///
/// `command`, `name`, `note`, `host` and `job` are globs if they have `*`, `?` or `[`, else any
/// part of the text. `text` is any part of command, name, note, host, directory or tag. `file` is a
/// path, a base name or a glob.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs",
    params(
        ("text" = Option<String>, Query), ("command" = Option<String>, Query),
        ("file" = Option<String>, Query), ("name" = Option<String>, Query),
        ("note" = Option<String>, Query), ("host" = Option<String>, Query),
        ("job" = Option<String>, Query, description = "the id of a job of mpirun, srun, parallel or xargs"),
        ("status" = Option<String>, Query, description = "ok, failed, running or unknown"),
        ("complete" = Option<bool>, Query), ("since" = Option<f64>, Query),
        ("until" = Option<f64>, Query),
        ("tag" = Option<Vec<String>>, Query, description = "KEY or KEY=GLOB"),
        ("sort" = Option<String>, Query, description = "started, seconds, name, command, processes, files_read or files_written"),
        ("order" = Option<String>, Query, description = "asc or desc"),
        ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = RunPage), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn run_page(
    State(site): State<Site>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    let known: Vec<&str> = FILTERS
        .iter()
        .chain(&["sort", "order", "limit", "cursor"])
        .copied()
        .collect();
    params.only(&known)?;
    let streamed = row_stream::is_wanted(&headers);
    let search = RunSearch::new(&params)?;
    let sort = params.word("sort", &ORDERS)?.unwrap_or("started");
    let ascending = params.word("order", &["asc", "desc"])? == Some("asc");
    let limit = params.number("limit", USUAL, MOST)?;
    let cursor = params.text("cursor")?.map(str::to_owned);
    let find = move |site: &Site, reading: &crate::readers::Reading<'_>| {
        let mut found = search.find(site, reading)?;
        run_search::sort(&mut found, sort, ascending);
        Answer::Ok(found)
    };
    if streamed {
        let asked = site.clone();
        let found = site
            .readers
            .ask(move |reading| find(&asked, reading))
            .await?;
        return Ok(row_stream::of(
            found.into_iter().map(|run| RunRow::from(&run)),
        ));
    }
    site.answer(move |site, reading| {
        let found = find(site, reading)?;
        // A run that was added meanwhile does not shift the pages.
        let after = |cursor: &str| found.iter().position(|run| run.id == cursor);
        let first = cursor.as_deref().and_then(after).map_or(0, |at| at + 1);
        let page: Vec<RunRow> = found[first..]
            .iter()
            .take(limit)
            .map(RunRow::from)
            .collect();
        let more = first + page.len() < found.len();
        Ok(RunPage {
            next: page.last().filter(|_| more).map(|run| run.run.clone()),
            total: found.len(),
            runs: page,
        })
    })
    .await
}
