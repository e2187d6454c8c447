//! `GET /runs/{run}/marks`: when which process used which file, for a time line.

use backstory_ordering::SmallSort;
use std::collections::HashMap;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Entity, EntityId, EntityKind};
use backstory_store::{ActivityKey, EntityKey};
use backstory_vocabulary::Word;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::row_stream::{self, RowRange};
use super::run_row::seconds;
use super::run_view::run_id;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;
use crate::site::Site;

/// Rows of a page, usually and at most.
const USUAL: usize = 5000;
const MOST: usize = 50_000;

/// A page of marks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct MarkPage {
    /// In the order of their start.
    pub marks: Vec<MarkRow>,
    /// Rows of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
}

/// The use that a process made of a version of a file, or of a thing that a program named.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct MarkRow {
    /// The process.
    pub process: String,
    /// The version.
    pub version: String,
    /// The path of the file, or the name of the thing.
    pub path: PathText,
    /// `read`, `exec`, `write`, `delete`, `rename` …
    pub relation: &'static str,
    /// The first such act.
    pub start: f64,
    /// The end of the last one.
    pub end: f64,
    /// `seen` or `possible`.
    pub certainty: &'static str,
}

/// When which process read or changed which file. Without look-ups. `own=false` includes the files
/// of packages, of the system and of caches.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/{run}/marks",
    params(
        ("run" = String, Path), ("own" = Option<bool>, Query), ("process" = Option<String>, Query),
        ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = MarkPage), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn mark_page(
    State(site): State<Site>,
    Path(run): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    params.only(&["own", "process", "limit", "cursor"])?;
    let range = RowRange::new(&params, USUAL, MOST)?;
    let own = params.flag("own")?.unwrap_or(true);
    let process = params.text("process")?.map(str::to_owned);
    let find = move |reading: &Reading<'_>| marks(reading, &run, own, process.as_deref());
    let page = |marks, total, next| MarkPage { marks, total, next };
    row_stream::lines_or_page(&site, &headers, range, find, page).await
}

fn marks(
    reading: &Reading<'_>,
    run: &str,
    only_own: bool,
    process: Option<&str>,
) -> Answer<Vec<MarkRow>> {
    let store = reading.store;
    let _one_state = store.reading()?;
    let run = run_id(reading, run)?;
    let record = store.run(&run)?;
    let record = record.ok_or_else(|| Problem::not_found("the run was removed"))?;
    let process = process
        .map(|name| ids::process(reading, name))
        .transpose()?;
    let entities = store.entities(record.key)?;
    let projects = [record.header.cwd.clone()].into();
    let paths: HashMap<EntityId, Bytes> = reading.with_owners(projects, |ownership| {
        let mut wanted = |entity: &Entity| {
            let is_file = matches!(entity.kind, EntityKind::File | EntityKind::Symlink);
            // A program named a thing for a reader.
            let is_thing = entity.kind == EntityKind::Resource;
            !only_own || is_thing || (is_file && ownership.is_own(&entity.path))
        };
        let found = entities.into_iter().filter(|entity| wanted(entity));
        found.map(|entity| (entity.id, entity.path)).collect()
    });
    reading.check()?;
    let mut found = Vec::new();
    for activity in store.activities(record.key)? {
        let key = ActivityKey::new(record.key, activity.id);
        if process.is_some_and(|wanted| wanted != key) {
            continue;
        }
        for edge in store.stream(key)?.edges {
            use backstory_graph::model::Relation::{Link, List, Missing, Stat};
            let is_lookup = matches!(edge.relation, Stat | List | Missing | Link);
            let path = paths.get(&edge.entity);
            if let Some(path) = path.filter(|_| !is_lookup) {
                let mark = MarkRow {
                    process: ids::of_process(key),
                    version: ids::of_version(EntityKey::new(record.key, edge.entity)),
                    path: path.into(),
                    relation: edge.relation.words().word,
                    start: seconds(edge.interval.start),
                    end: seconds(edge.interval.end),
                    certainty: edge.certainty.word(),
                };
                found.push((edge.interval.start, mark));
            }
        }
    }
    found.sort_small_by_key(|(start, _)| *start);
    Ok(found.into_iter().map(|(_, mark)| mark).collect())
}
