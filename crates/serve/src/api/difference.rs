//! `GET /diff`: what differs between the contents of two versions.

use axum::extract::State;
use axum::response::Response;
use backstory_comparison::{ContentDifference, LineMark};
use backstory_inspection::{ComparedContents, FormatReader, one_line};
use backstory_store::EntityKey;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use crate::database_rows;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::readers::{PATIENCE, Reading};
use crate::setup::InsideChange;
use crate::site::Site;
use crate::version_bytes::VersionBytes;

/// The most bytes of a content that is compared.
const LARGEST: u64 = 64 << 20;

/// The most changed lines of an answer.
const LINES: usize = 5000;

/// The difference between the contents of two versions.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct DifferenceView {
    /// The first version.
    pub a: VersionName,
    /// The second version.
    pub b: VersionName,
    /// The difference in one line.
    pub summary: String,
    /// The inspector that states the changes. `null` if none does.
    pub inspector: Option<String>,
    /// The changes in the terms of the file's format, in plain sentences.
    pub sentences: Vec<String>,
    /// The difference.
    pub body: DifferenceBody,
    /// Why the format of the file was not read, so that the difference is by lines or bytes.
    pub note: Option<String>,
}

/// A version.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct VersionName {
    /// Its id.
    pub id: String,
    /// The run that knows it.
    pub run: Option<String>,
    /// Its path.
    pub path: PathText,
    /// Its size.
    pub size: Option<i64>,
}

/// A difference in the terms of its kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum DifferenceBody {
    /// Both have the same bytes.
    Same,
    /// Lines.
    Text(TextChanges),
    /// Columns, rows and cells.
    Table(TableChanges),
    /// Pixels.
    Image(ImageChanges),
    /// Bytes.
    Binary(ByteChanges),
}

/// Changed lines.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct TextChanges {
    /// Lines of the first text.
    pub a_lines: usize,
    /// Lines of the second text.
    pub b_lines: usize,
    /// Lines that only the first text has.
    pub removed: usize,
    /// Lines that only the second text has.
    pub added: usize,
    /// The changes with the lines around them.
    pub hunks: Vec<HunkRow>,
    /// Some hunks are left out.
    pub cut: bool,
}

/// Changes that lie close together.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct HunkRow {
    /// The number of its first line in the first text, from 1.
    pub a_start: usize,
    /// The same in the second text.
    pub b_start: usize,
    /// Its lines.
    pub lines: Vec<LineRow>,
}

/// A line of a hunk.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct LineRow {
    /// `both`, `removed` or `added`.
    pub mark: &'static str,
    /// The line.
    pub text: PathText,
}

/// Changed cells.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct TableChanges {
    /// Rows of the first table.
    pub a_rows: usize,
    /// Rows of the second table.
    pub b_rows: usize,
    /// Columns that only the first table has.
    pub columns_removed: Vec<PathText>,
    /// Columns that only the second table has.
    pub columns_added: Vec<PathText>,
    /// Columns stand in another order.
    pub columns_moved: bool,
    /// Rows that only the first table has.
    pub rows_removed: usize,
    /// Rows that only the second table has.
    pub rows_added: usize,
    /// Rows with changed cells.
    pub rows_changed: usize,
    /// Rows stand in another order.
    pub rows_moved: bool,
    /// Changed cells.
    pub cells_changed: usize,
    /// The first of them.
    pub cells: Vec<CellRow>,
}

/// A cell that differs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[allow(missing_docs)]
pub struct CellRow {
    /// The row's key, or its number from 1.
    pub row: PathText,
    pub column: PathText,
    pub a: PathText,
    pub b: PathText,
}

/// Changed pixels.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ImageChanges {
    /// Width and height of the first image.
    pub a: [u32; 2],
    /// Width and height of the second image.
    pub b: [u32; 2],
    /// Pixels that differ. `null` if the sizes differ.
    pub differing: Option<u64>,
    /// The smallest box around them.
    pub within: Option<PixelFrame>,
}

/// A box of pixels.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[allow(missing_docs)]
pub struct PixelFrame {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// Changed bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ByteChanges {
    /// Bytes of the first content.
    pub a: u64,
    /// Bytes of the second content.
    pub b: u64,
    /// The offset of the first difference.
    pub first: u64,
    /// Bytes that differ. `null` if the sizes differ.
    pub differing: Option<u64>,
}

/// The difference between the contents of two versions.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/diff",
    params(("a" = String, Query), ("b" = String, Query)),
    responses((status = 200, body = DifferenceView), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn difference_view(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["a", "b"])?;
    let name = |key| Answer::Ok(String::from_utf8_lossy(params.needed(key)?).into_owned());
    let (a, b) = (name("a")?, name("b")?);
    site.answer(move |site, reading| {
        let a = ids::version(reading, &a)?;
        let b = ids::version(reading, &b)?;
        let (before, after) = (bytes(reading, a)?, bytes(reading, b)?);
        let entity = reading.store.entity(b)?;
        let formats = FormatReader::new()
            .by_keys(site.setup.keys.clone())
            .within(PATIENCE);
        let compared = formats.compare(&entity.path, &before, &after);
        let printable = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let rows = match formats.is_of_database(&entity.path, &after) {
            true => database_rows::between(reading, &formats, &entity.path, (a, b))?,
            false => None,
        };
        let stated = match rows {
            Some(rows) => Some(Ok(InsideChange {
                inspector: rows.inspector,
                sentences: rows.sentences,
            })),
            None => (site.setup.hooks.stated)(&entity.path, (&before, &after), &compared),
        };
        let (stated, refusal) = match stated {
            Some(Ok(stated)) if !stated.sentences.is_empty() => (Some(stated), None),
            Some(Err(refusal)) => (None, Some(refusal)),
            _ => (None, None),
        };
        let ComparedContents {
            difference: found,
            trouble,
        } = compared;
        let summary = match &stated {
            Some(stated) => one_line(&stated.sentences),
            None => found.summary(&printable),
        };
        let (inspector, sentences) = match stated {
            Some(stated) => (Some(stated.inspector), stated.sentences),
            None => (None, Vec::new()),
        };
        Ok(DifferenceView {
            a: named(reading, a)?,
            b: named(reading, b)?,
            summary,
            inspector,
            sentences,
            body: body(&found),
            note: refusal.or_else(|| trouble.map(|trouble| trouble.to_string())),
        })
    })
    .await
}

fn bytes(reading: &Reading<'_>, key: EntityKey) -> Answer<Vec<u8>> {
    let content = VersionBytes::open(reading, key)?;
    let name = String::from_utf8_lossy(&content.path).into_owned();
    let found = content.read_all(LARGEST)?;
    found.ok_or_else(|| {
        Problem::bad_request(format!(
            "{name} is too large to compare here; `backstory diff` compares it"
        ))
    })
}

fn named(reading: &Reading<'_>, key: EntityKey) -> Answer<VersionName> {
    let entity = reading.store.entity(key)?;
    Ok(VersionName {
        id: ids::of_version(key),
        run: reading.store.run_id(key.run())?,
        path: (&entity.path).into(),
        size: entity.ident.map(|ident| ident.size),
    })
}

fn body(found: &ContentDifference) -> DifferenceBody {
    let names = |names: &[Vec<u8>]| names.iter().map(|name| name.as_slice().into()).collect();
    match found {
        ContentDifference::Same => DifferenceBody::Same,
        ContentDifference::Text(text) => {
            let mut lines = 0;
            let hunks = text.hunks.iter().take_while(|hunk| {
                lines += hunk.lines.len();
                lines <= LINES
            });
            let hunks: Vec<HunkRow> = hunks.map(hunk_row).collect();
            DifferenceBody::Text(TextChanges {
                a_lines: text.a,
                b_lines: text.b,
                removed: text.removed,
                added: text.added,
                cut: hunks.len() < text.hunks.len(),
                hunks,
            })
        }
        ContentDifference::Table(table) => DifferenceBody::Table(TableChanges {
            a_rows: table.a,
            b_rows: table.b,
            columns_removed: names(&table.columns_removed),
            columns_added: names(&table.columns_added),
            columns_moved: table.columns_moved,
            rows_removed: table.rows_removed,
            rows_added: table.rows_added,
            rows_changed: table.rows_changed,
            rows_moved: table.rows_moved,
            cells_changed: table.cells_changed,
            cells: table
                .cells
                .iter()
                .map(|cell| CellRow {
                    row: cell.row.as_slice().into(),
                    column: cell.column.as_slice().into(),
                    a: cell.a.as_slice().into(),
                    b: cell.b.as_slice().into(),
                })
                .collect(),
        }),
        ContentDifference::Image(image) => DifferenceBody::Image(ImageChanges {
            a: [image.a.0, image.a.1],
            b: [image.b.0, image.b.1],
            differing: image.differing,
            within: image.within.map(|within| PixelFrame {
                left: within.left,
                top: within.top,
                width: within.width,
                height: within.height,
            }),
        }),
        ContentDifference::Binary(binary) => DifferenceBody::Binary(ByteChanges {
            a: binary.a,
            b: binary.b,
            first: binary.first,
            differing: binary.differing,
        }),
    }
}

fn hunk_row(hunk: &backstory_comparison::Hunk) -> HunkRow {
    let lines = hunk.lines.iter().map(|(mark, line)| LineRow {
        mark: match mark {
            LineMark::Both => "both",
            LineMark::Removed => "removed",
            LineMark::Added => "added",
        },
        text: line.as_slice().into(),
    });
    HunkRow {
        a_start: hunk.a.0,
        b_start: hunk.b.0,
        lines: lines.collect(),
    }
}
