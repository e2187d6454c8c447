//! `GET /file`: what happened to a path, over all runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use axum::extract::State;
use axum::response::Response;
use backstory_query as query;
use backstory_query::{PathChange, PathEvent};
use backstory_store::same_version;
use backstory_workflow::shell;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::run_row::seconds;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;
use crate::site::Site;

/// Events of an answer, usually and at most.
const USUAL: usize = 500;
const MOST: usize = 5000;

/// The events of a path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct FileView {
    /// The absolute path.
    pub path: PathText,
    /// True if a file is there now.
    pub exists_now: bool,
    /// The size of the present file.
    pub size: Option<i64>,
    /// The last modification of the present file.
    pub modified: Option<f64>,
    /// The events of this page, the newest first.
    pub events: Vec<FileEvent>,
    /// True if older events are left out.
    pub cut: bool,
    /// Events of all pages.
    pub total: usize,
    /// The `cursor` of the next page, which has older events.
    pub next: Option<String>,
}

/// Something that happened to a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct FileEvent {
    /// When. For a change outside of recorded runs, the latest possible time.
    pub time: f64,
    /// `made`, `changed`, `renamed_from`, `renamed_to`, `deleted`, `metadata`, `found`,
    /// `changed_unseen`, `moved_unseen` or `gone_unseen`.
    pub change: &'static str,
    /// No run recorded the change itself.
    pub inferred: bool,
    /// The path at that time.
    pub path: PathText,
    /// The other path of a rename or move.
    pub other: Option<PathText>,
    /// The run that recorded it, or first met its result.
    pub run: Option<String>,
    /// The name of that run.
    pub run_name: Option<String>,
    /// The process that did it.
    pub process: Option<EventProcess>,
    /// The version that the event left.
    pub version: Option<String>,
    /// Its size.
    pub size: Option<i64>,
    /// The digest of its content (BLAKE3), if it is known.
    pub digest: Option<String>,
    /// Its content is stored.
    pub kept: bool,
    /// The present file is this version.
    pub current: bool,
}

/// The process that did something.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct EventProcess {
    /// Its id in the store.
    pub id: String,
    /// Its process id.
    pub pid: u32,
    /// Its program.
    pub program: Option<PathText>,
    /// Its arguments as a shell line.
    pub line: String,
}

/// The events of a path, over all runs, renames and unrecorded moves.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/file",
    params(
        ("path" = String, Query), ("limit" = Option<usize>, Query),
        ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = FileView), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn file_view(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["path", "limit", "cursor"])?;
    let path = absolute(&params)?;
    let limit = params.number("limit", USUAL, MOST)?;
    let oldest = match params.text("cursor")? {
        None => usize::MAX,
        Some(text) => text
            .parse()
            .map_err(|_| Problem::bad_request("the cursor is none of this list"))?,
    };
    site.answer(move |_, reading| view(reading, &path, limit, oldest))
        .await
}

/// The parameter `path`, which must be absolute: the server has no directory that a user is in.
pub fn absolute(params: &Params) -> Answer<Vec<u8>> {
    let path = params.needed("path")?;
    match path.first() {
        Some(b'/') => Ok(path.to_vec()),
        _ => Err(Problem::bad_request("give an absolute path")),
    }
}

/// The page that has at most `limit` events, the newest ones of the `oldest` events. The count
/// begins at the oldest event, so that new events do not shift the pages.
fn view(reading: &Reading<'_>, path: &[u8], limit: usize, oldest: usize) -> Answer<FileView> {
    let _one_state = reading.store.reading()?;
    let file = Path::new(OsStr::from_bytes(path));
    let events = query::history(reading.store, file)?;
    let present = query::present_identity(file, true);
    let is_present = |event: &PathEvent| match (&event.ident, &present) {
        (Some(own), Some(present)) => same_version(own, present),
        _ => false,
    };
    let end = oldest.min(events.len());
    let begin = end.saturating_sub(limit);
    let mut rows = Vec::new();
    for one in events[begin..end].iter().rev() {
        rows.push(event(reading, one, is_present(one))?);
    }
    Ok(FileView {
        path: path.into(),
        exists_now: present.is_some(),
        size: present.map(|ident| ident.size),
        modified: present.map(|ident| seconds(ident.mtime)),
        cut: begin > 0,
        total: events.len(),
        next: (begin > 0).then(|| begin.to_string()),
        events: rows,
    })
}

fn event(reading: &Reading<'_>, event: &PathEvent, current: bool) -> Answer<FileEvent> {
    let store = reading.store;
    let run = match event.run {
        Some(run) => store.run_by_key(run)?,
        None => None,
    };
    let process = match event.activity {
        Some(key) => {
            let activity = store.activity(key)?;
            Some(EventProcess {
                id: ids::of_process(key),
                pid: activity.pid,
                program: activity.exec_path.as_ref().map(Into::into),
                line: shell::line(&activity.argv),
            })
        }
        None => None,
    };
    let known = query::known(store, event.ident.as_ref())?;
    let (change, other) = change(&event.change);
    Ok(FileEvent {
        time: seconds(event.time),
        change,
        inferred: event.change.is_inferred(),
        path: (&event.path).into(),
        other,
        run_name: run.as_ref().and_then(|run| run.name.clone()),
        run: run.map(|run| run.header.id),
        process,
        version: event.version.map(ids::of_version),
        size: event.ident.map(|ident| ident.size),
        digest: known
            .as_ref()
            .and_then(|(digest, _)| digest.map(|digest| digest.to_string())),
        kept: known.is_some_and(|(_, held)| held.is_stored()),
        current,
    })
}

fn change(change: &PathChange) -> (&'static str, Option<PathText>) {
    match change {
        PathChange::Made => ("made", None),
        PathChange::Changed => ("changed", None),
        PathChange::RenamedFrom(path) => ("renamed_from", Some(path.into())),
        PathChange::RenamedTo(path) => ("renamed_to", Some(path.into())),
        PathChange::Deleted => ("deleted", None),
        PathChange::Metadata => ("metadata", None),
        PathChange::Found => ("found", None),
        PathChange::ChangedUnseen => ("changed_unseen", None),
        PathChange::MovedUnseen { from, .. } => ("moved_unseen", Some(from.into())),
        PathChange::GoneUnseen => ("gone_unseen", None),
    }
}
