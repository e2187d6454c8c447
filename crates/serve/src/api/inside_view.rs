//! `GET /versions/{version}/inside`: what changed inside of a file since the version before.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path as FilePath;

use axum::extract::{Path, State};
use axum::response::Response;
use backstory_inspection::{FormatReader, LARGEST_INSPECTED};
use backstory_query as query;
use backstory_store::EntityKey;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use crate::database_rows;
use crate::params::Params;
use crate::problem::Answer;
use crate::readers::{PATIENCE, Reading};
use crate::setup::InsideChange;
use crate::site::Site;
use crate::version_bytes::VersionBytes;

/// The change inside of a file, in the terms of the file's format.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct InsideView {
    /// The version that had the former content. `null` if the store has no former content, or not
    /// that of this version.
    pub former: Option<String>,
    /// The inspector that answers. `null` if none has something to tell.
    pub inspector: Option<String>,
    /// The changes in plain sentences.
    pub sentences: Vec<String>,
}

/// The change inside of a file since the version before.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/versions/{version}/inside",
    params(("version" = String, Path)),
    responses((status = 200, body = InsideView), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn inside_view(
    State(site): State<Site>,
    Path(version): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&[])?;
    site.answer(move |site, reading| view(site, reading, &version))
        .await
}

fn view(site: &Site, reading: &Reading<'_>, version: &str) -> Answer<InsideView> {
    let key = ids::version(reading, version)?;
    let path = reading.store.entity(key)?.path;
    let file = FilePath::new(OsStr::from_bytes(&path));
    let Some(former) = query::former_content(reading.store, file, key)? else {
        return Ok(InsideView::default());
    };
    let named = Some(ids::of_version(former.version));
    let old = VersionBytes::open(reading, former.version)?.read_all(LARGEST_INSPECTED)?;
    let new = VersionBytes::open(reading, key)?.read_all(LARGEST_INSPECTED)?;
    let change = match (old, new) {
        (Some(old), Some(new)) => {
            let rows = database_change(reading, &path, (former.version, key), &new)?;
            rows.or_else(|| (site.setup.hooks.inside)(&path, &old, &new))
        }
        _ => None,
    };
    Ok(match change {
        Some(InsideChange {
            inspector,
            sentences,
        }) => InsideView {
            former: named,
            inspector: Some(inspector),
            sentences,
        },
        None => InsideView {
            former: named,
            ..InsideView::default()
        },
    })
}

/// The rows that changed, if the file is a database of SQLite with a write-ahead log, or the log.
fn database_change(
    reading: &Reading<'_>,
    path: &[u8],
    versions: (EntityKey, EntityKey),
    content: &[u8],
) -> Answer<Option<InsideChange>> {
    let formats = FormatReader::new().within(PATIENCE);
    if !formats.is_of_database(path, content) {
        return Ok(None);
    }
    let rows = database_rows::between(reading, &formats, path, versions)?;
    Ok(rows.map(|rows| InsideChange {
        inspector: rows.inspector,
        sentences: rows.sentences,
    }))
}
