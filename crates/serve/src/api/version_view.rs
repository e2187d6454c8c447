//! `GET /versions/{version}` and `/versions/{version}/users`: a version of a file.

use axum::extract::{Path, State};
use axum::response::Response;
use backstory_query as query;
use backstory_query::Touches;
use backstory_store::EntityKey;
use backstory_store::facts::Availability;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::row_stream::RowRange;
use super::run_row::seconds;
use super::touch_row::TouchRow;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::readers::Reading;
use crate::site::Site;

/// Rows of a page, usually and at most.
const USUAL: usize = 200;
const MOST: usize = 5000;

/// A version of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct VersionView {
    /// Its id.
    pub id: String,
    /// The run that knows it.
    pub run: String,
    /// The name of that run.
    pub run_name: Option<String>,
    /// The path, as the run first named it.
    pub path: PathText,
    /// Further names that programs used.
    pub aliases: Vec<PathText>,
    /// `file`, `directory`, `symlink`, `pipe`, `socket`, `missing`, `device`, `memory` or
    /// `resource`.
    pub kind: &'static str,
    /// 0 for the state before the run; 1, 2 … for each version that the run made.
    pub version: u32,
    /// Its size, if its identity is known.
    pub size: Option<i64>,
    /// Its last modification.
    pub modified: Option<f64>,
    /// The digest of its content (BLAKE3), if it is known.
    pub digest: Option<String>,
    /// Its content is stored.
    pub kept: bool,
    /// Why its content is not stored. `null` if it is, or if no indexer looked yet.
    pub why_not_kept: Option<String>,
    /// The package that the file belongs to.
    pub package: Option<PackageRow>,
    /// The version of the file before this one in the same run.
    pub previous: Option<String>,
    /// The file system held this version at the end of the run.
    pub last: bool,
    /// The file is the user's own, and not of a package, of the system or of a cache.
    pub own: bool,
    /// The processes that made it, in every run that knows it.
    pub made_by: Vec<TouchRow>,
}

/// A package.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct PackageRow {
    /// `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo` …
    pub provider: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How many of its files are meant.
    pub files: usize,
}

/// A page of the processes that touched a version.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct TouchPage {
    /// The newest run first, and in a run the latest first.
    pub users: Vec<TouchRow>,
    /// Rows of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
    /// Further processes that only looked the file up.
    pub looked_up: usize,
}

/// A version of a file.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/versions/{version}",
    params(("version" = String, Path)),
    responses((status = 200, body = VersionView), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn version_view(
    State(site): State<Site>,
    Path(version): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&[])?;
    site.answer(move |_, reading| {
        let key = ids::version(reading, &version)?;
        view(reading, key)
    })
    .await
}

fn view(reading: &Reading<'_>, key: EntityKey) -> Answer<VersionView> {
    let store = reading.store;
    let _one_state = store.reading()?;
    let entity = store.entity(key)?;
    let record = store.run_by_key(key.run())?;
    let (run, run_name, cwd) = match record {
        Some(record) => (record.header.id, record.name, record.header.cwd),
        None => Default::default(),
    };
    let known = query::known(store, entity.ident.as_ref())?;
    let (digest, held) = known.map_or((None, None), |(digest, held)| (digest, Some(held)));
    let touches = query::version_touches(store, key, &Touches::default())?.0;
    let makers = touches.iter().filter(|touch| TouchRow::makes(touch));
    let package = held.as_ref().and_then(Availability::package);
    Ok(VersionView {
        id: ids::of_version(key),
        run,
        run_name,
        own: reading.with_owners([cwd].into(), |ownership| ownership.is_own(&entity.path)),
        path: (&entity.path).into(),
        aliases: PathText::list(&entity.aliases),
        kind: entity.kind.word(),
        version: entity.version,
        size: entity.ident.map(|ident| ident.size),
        modified: entity.ident.map(|ident| seconds(ident.mtime)),
        digest: digest.map(|digest| digest.to_string()),
        kept: held.as_ref().is_some_and(Availability::is_stored),
        why_not_kept: match &held {
            Some(Availability::Missing(why)) => Some(why.clone()),
            Some(Availability::Package(package)) => Some(format!(
                "the file is that of the package {} {}",
                package.name, package.version
            )),
            _ => None,
        },
        package: package.map(|package| PackageRow {
            provider: package.manager.clone(),
            name: package.name.clone(),
            version: package.version.clone(),
            files: 1,
        }),
        previous: entity
            .previous
            .map(|previous| ids::of_version(EntityKey::new(key.run(), previous))),
        last: entity.last,
        made_by: makers.map(TouchRow::from).collect(),
    })
}

/// The processes that touched a version, in every run that knows it. Those that only looked it up
/// are counted.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/versions/{version}/users",
    params(
        ("version" = String, Path), ("limit" = Option<usize>, Query),
        ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, body = TouchPage), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn touch_page(
    State(site): State<Site>,
    Path(version): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&["limit", "cursor"])?;
    let range = RowRange::new(&params, USUAL, MOST)?;
    site.answer(move |_, reading| {
        let key = ids::version(reading, &version)?;
        let (touches, looked_up) = query::version_touches(reading.store, key, &Touches::default())?;
        let total = touches.len();
        let (page, next) = range.cut(touches);
        Ok(TouchPage {
            users: page.iter().map(TouchRow::from).collect(),
            total,
            next,
            looked_up,
        })
    })
    .await
}
