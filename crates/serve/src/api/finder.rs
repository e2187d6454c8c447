//! `GET /search`: runs and files with a text in their names.

use backstory_ordering::SmallSort;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use backstory_eventlog::event::Bytes;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::run_row::RunRow;
use super::run_search::mentions;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::readers::Reading;
use crate::reply;
use crate::site::Site;

/// Rows of each kind, usually and at most.
const USUAL: usize = 20;
const MOST: usize = 200;

/// Versions that are looked at. A text that more have is too short.
const VERSIONS: usize = 4000;

/// A search waits for no longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs and files with a text in their names.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SearchResult {
    /// Runs, the newest first.
    pub runs: Vec<RunRow>,
    /// Files, those with the text in their base name first.
    pub files: Vec<FoundFile>,
    /// True if there are more.
    pub cut: bool,
}

/// A file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct FoundFile {
    /// Its path.
    pub path: PathText,
    /// Its recorded versions, as far as they were counted.
    pub versions: usize,
}

/// Runs and files with a text in their names, in any case.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/search",
    params(("text" = String, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, body = SearchResult), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn search(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["text", "limit"])?;
    let text = params.needed("text")?.to_ascii_lowercase();
    let limit = params.number("limit", USUAL, MOST)?;
    let asked = site.clone();
    let found = site.readers.ask_within(PATIENCE, move |reading| {
        let runs = asked.runs.read(reading)?;
        let lower = String::from_utf8_lossy(&text).to_lowercase();
        let runs = runs.iter().filter(|run| mentions(run, &lower));
        let runs: Vec<RunRow> = runs.take(limit).map(RunRow::from).collect();
        let (files, cut) = files(reading, &text, limit)?;
        Ok(SearchResult { runs, files, cut })
    });
    Ok(reply::json(&found.await?))
}

fn files(reading: &Reading<'_>, text: &[u8], limit: usize) -> Answer<(Vec<FoundFile>, bool)> {
    let seen = Cell::new(0);
    let has = |name: &[u8]| {
        let name = name.to_ascii_lowercase();
        name.windows(text.len()).any(|part| part == text)
    };
    let wanted = |name: &[u8]| {
        let found = seen.get() < VERSIONS && has(name);
        seen.set(seen.get() + usize::from(found));
        found
    };
    let _one_state = reading.store.reading()?;
    let keys = reading.store.below(b"/", &wanted)?;
    let mut by_path: BTreeMap<Bytes, usize> = BTreeMap::new();
    for key in keys {
        let entity = reading.store.entity(key)?;
        let name = std::iter::once(&entity.path).chain(&entity.aliases);
        if let Some(name) = name.into_iter().find(|name| has(name)) {
            *by_path.entry(name.clone()).or_default() += 1;
        }
    }
    let base = |path: &[u8]| has(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
    let mut found: Vec<(Bytes, usize)> = by_path.into_iter().collect();
    found.sort_small_by_key(|(path, _)| (!base(path), path.len(), path.clone()));
    let cut = found.len() > limit || seen.get() >= VERSIONS;
    let rows = found
        .into_iter()
        .take(limit)
        .map(|(path, versions)| FoundFile {
            path: PathText(path),
            versions,
        });
    Ok((rows.collect(), cut))
}
