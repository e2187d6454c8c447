//! `GET /runs/{run}/files`: the files that a run used, and how.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use backstory_query as query;
use backstory_query::FileFilter;
use backstory_query::answer::{Access, FileUse};
use backstory_vocabulary::Word;
use backstory_workflow::ownership::Ownership;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::row_stream::{self, RowRange};
use super::run_row::seconds;
use super::run_view::run_id;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;
use crate::site::Site;

/// Rows of a page, usually and at most.
const USUAL: usize = 1000;
const MOST: usize = 20_000;

/// A page of the files of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunFilePage {
    /// By path; for each path, `seen` comes before `possible`.
    pub files: Vec<RunFileRow>,
    /// Rows of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
}

/// The use that a run made of a file, at one certainty.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunFileRow {
    /// The path.
    pub path: PathText,
    /// `read`, `write`, `delete`, `rename`, `exec`, `stat`, `dir`, `missing`, `link`, `meta`.
    pub access: Vec<&'static str>,
    /// `library` or `kernel`: what saw it.
    pub via: &'static str,
    /// `seen` or `possible`.
    pub certainty: &'static str,
    /// The end of the last act.
    pub last: f64,
    /// The size of the newest version, if it is known.
    pub size: Option<i64>,
    /// The file is the user's own, and not of a package, of the system or of a cache.
    pub own: bool,
}

/// The files that a run used. `access` has words with commas between, `under` is a directory,
/// `text` a part of the path in any case. `own=true` leaves out files of packages, of the system
/// and of caches.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/{run}/files",
    params(
        ("run" = String, Path), ("access" = Option<String>, Query), ("text" = Option<String>, Query),
        ("under" = Option<String>, Query), ("own" = Option<bool>, Query),
        ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = RunFilePage), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn run_file_page(
    State(site): State<Site>,
    Path(run): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    params.only(&["access", "text", "under", "own", "limit", "cursor"])?;
    let range = RowRange::new(&params, USUAL, MOST)?;
    let filter = FileFilter {
        access: accesses(&params)?,
        under: params
            .bytes("under")
            .map(|dir| dir.to_vec())
            .into_iter()
            .collect(),
        ..FileFilter::default()
    };
    let own = params.flag("own")?;
    let text = params.bytes("text").map(|text| text.to_ascii_lowercase());
    let find = move |reading: &Reading<'_>| {
        let run = run_id(reading, &run)?;
        let record = reading.store.run(&run)?;
        let cwd = record.map(|record| record.header.cwd).unwrap_or_default();
        let mut found = query::files_where(reading.store, &run, &filter)?;
        if let Some(text) = &text {
            found.retain(|file| {
                let path = file.path.to_ascii_lowercase();
                path.windows(text.len()).any(|part| part == text)
            });
        }
        reading.check()?;
        Answer::Ok(reading.with_owners([cwd].into(), |ownership| {
            let rows = found.iter().map(|file| row(file, ownership));
            rows.filter(|row| own.is_none_or(|own| row.own == own))
                .collect::<Vec<_>>()
        }))
    };
    let page = |files, total, next| RunFilePage { files, total, next };
    row_stream::lines_or_page(&site, &headers, range, find, page).await
}

fn accesses(params: &Params) -> Answer<Vec<Access>> {
    let words = params.text("access")?.unwrap_or_default().split(',');
    let words = words.filter(|word| !word.is_empty());
    let access = |word: &str| {
        Access::from_word(word).map_err(|_| {
            let known: Vec<&str> = Access::ALL.iter().map(|access| access.word()).collect();
            Problem::bad_request(format!("'{word}' is no access; give {}", known.join(", ")))
        })
    };
    words.map(access).collect()
}

fn row(file: &FileUse, ownership: &mut Ownership) -> RunFileRow {
    RunFileRow {
        path: (&file.path).into(),
        access: file.access.iter().map(|access| access.word()).collect(),
        via: file.via.word(),
        certainty: file.certainty.word(),
        last: seconds(file.last),
        size: file.ident.map(|ident| ident.size),
        own: ownership.is_own(&file.path),
    }
}
