//! `GET /versions/{version}/preview`: a part of a content, as its kind is shown.
//!
//! Lines of UTF-8 and bytes are read here. A worker reads everything else in its sandbox.

use std::io::Read;

use axum::extract::{Path, State};
use axum::response::Response;
use backstory_inspection::question::Portion;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use crate::media_type::{HEAD, MediaType};
use crate::params::Params;
use crate::preview::{HexView, ImageView, NotebookView, TableView, TextView};
use crate::problem::{Answer, Problem};
use crate::site::Site;
use crate::version_bytes::VersionBytes;

/// Rows of a part, usually and at most.
const USUAL: usize = 200;
const MOST: usize = 5000;

/// A part of a content.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ContentView {
    /// The guessed media type.
    pub media_type: &'static str,
    /// Bytes of the whole content.
    pub size: u64,
    /// The views that this content has, the best first.
    pub views: Vec<&'static str>,
    /// The part.
    pub body: ContentBody,
    /// Why the content is not shown by its kind.
    pub note: Option<String>,
}

/// A part of a content, by the kind of its view.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(tag = "view", rename_all = "lowercase")]
pub enum ContentBody {
    /// Lines.
    Text(TextView),
    /// Rows and columns.
    Table(TableView),
    /// An image: its bytes are at `/versions/{version}/content`.
    Image(ImageView),
    /// Cells of a notebook.
    Notebook(NotebookView),
    /// Bytes.
    Hex(HexView),
}

/// A part of a content: from line, row, cell or block of 16 bytes number `first`, `limit` of them.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/versions/{version}/preview",
    params(
        ("version" = String, Path),
        ("view" = Option<String>, Query, description = "auto, text, table, image, notebook or hex"),
        ("first" = Option<usize>, Query), ("limit" = Option<usize>, Query),
    ),
    responses((status = 200, body = ContentView), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn content_view(
    State(site): State<Site>,
    Path(version): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&["view", "first", "limit"])?;
    let words = ["auto", "text", "table", "image", "notebook", "hex"];
    let wanted = params.word("view", &words)?.unwrap_or("auto");
    let first = params.number("first", 0, usize::MAX)?;
    let limit = params.number("limit", USUAL, MOST)?;
    site.answer(move |_, reading| {
        let key = ids::version(reading, &version)?;
        let open = || VersionBytes::open(reading, key);
        view(&open, wanted, Portion { first, limit })
    })
    .await
}

fn view(
    open: &dyn Fn() -> Answer<VersionBytes>,
    wanted: &str,
    part: Portion,
) -> Answer<ContentView> {
    let mut content = open()?;
    let size = content.size;
    let mut head = Vec::new();
    let read = content.by_ref().take(HEAD as u64).read_to_end(&mut head);
    read.map_err(|error| Problem::failed(error.to_string()))?;
    let media = MediaType::of(&content.path, &head);
    let views = media.views();
    let view = match wanted {
        "auto" => views[0],
        wanted if views.contains(&wanted) => wanted,
        wanted => {
            return Err(Problem::bad_request(format!(
                "this content has no view '{wanted}', only {}",
                views.join(", ")
            )));
        }
    };
    let shown = match view {
        "image" => Ok(ContentBody::Image(ImageView::of(&content.path, &head))),
        "notebook" => NotebookView::read(open()?, part).map(ContentBody::Notebook),
        "table" => TableView::read(open()?, media, part).map(ContentBody::Table),
        "text" => TextView::read(open()?, media, part).map(ContentBody::Text),
        _ => HexView::read(open()?, part).map(ContentBody::Hex),
    };
    // A content that is not what its name says is shown by its lines or bytes.
    let (body, note) = match shown {
        Err(problem) if wanted == "auto" && problem.code == "bad_request" => {
            let body = match media {
                MediaType::Table(_) | MediaType::Notebook => {
                    ContentBody::Text(TextView::read(open()?, MediaType::Text, part)?)
                }
                _ => ContentBody::Hex(HexView::read(open()?, part)?),
            };
            (body, Some(problem.message))
        }
        shown => (shown?, None),
    };
    Ok(ContentView {
        media_type: media.name(),
        size,
        views: views.to_vec(),
        body,
        note,
    })
}
