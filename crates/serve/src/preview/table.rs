//! A content by its rows and columns.

use backstory_comparison::WireBytes;
use backstory_inspection::question::Portion;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::{formats, not_shown, whole};
use crate::media_type::MediaType;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::version_bytes::VersionBytes;

/// Rows of a table.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct TableView {
    /// The number of the first row, from 0, without the heading.
    pub first: usize,
    /// Rows of the whole table, without the heading.
    pub total: usize,
    /// The columns.
    pub columns: Vec<ColumnHeading>,
    /// The cells of each row. `null` is no value.
    pub rows: Vec<Vec<Option<PathText>>>,
}

/// A column.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ColumnHeading {
    /// Its name.
    pub name: PathText,
    /// `integer`, `number` or `text` for a table of text; the type of a Parquet column.
    pub r#type: String,
}

impl TableView {
    /// Some rows.
    pub fn read(content: VersionBytes, media: MediaType, part: Portion) -> Answer<TableView> {
        let name = content.path.clone();
        let format = match media {
            MediaType::Parquet => "parquet",
            _ => "csv",
        };
        let found = formats().rows(format, &name, &whole(content)?, part);
        let found = found.map_err(not_shown)?;
        let text = |bytes: WireBytes| -> PathText { bytes.0.as_slice().into() };
        let columns = found.columns.into_iter().map(|column| ColumnHeading {
            name: text(column.name),
            r#type: column.kind,
        });
        let rows = found.rows.into_iter();
        let rows = rows.map(|row| row.into_iter().map(|cell| cell.map(text)).collect());
        Ok(TableView {
            first: part.first,
            total: found.total,
            columns: columns.collect(),
            rows: rows.collect(),
        })
    }
}
