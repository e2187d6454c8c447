//! A content by its rows and columns.

use std::path::Path;

use serde::Serialize;
use utoipa::ToSchema;

use super::{MOST, parquet_rows};
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;
use crate::rehearsal::{Rehearsal, rehearse};
use crate::version_bytes::VersionBytes;

/// Rows that decide the type of a column.
const TYPED: usize = 200;

/// The most bytes of a cell.
const LONGEST: usize = 2000;

/// Rows of a table.
#[derive(Debug, Serialize, ToSchema)]
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
#[derive(Debug, Serialize, ToSchema)]
pub struct ColumnHeading {
    /// Its name.
    pub name: PathText,
    /// `integer`, `number` or `text` for a table of text; the type of a Parquet column.
    pub r#type: String,
}

impl TableView {
    /// `limit` rows from row `first` on, of a text with a separator.
    pub fn of_text(
        content: VersionBytes,
        separator: u8,
        first: usize,
        limit: usize,
    ) -> Answer<TableView> {
        let not = |why: &str| Problem::bad_request(format!("the content is no table: {why}"));
        let bytes = content.read_all(MOST)?;
        let bytes = bytes.ok_or_else(|| not("it is larger than 64 MiB; look at its lines"))?;
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .flexible(true)
            .from_reader(bytes.as_slice());
        let heading = reader
            .byte_headers()
            .map_err(|error| not(&error.to_string()))?;
        let names: Vec<PathText> = heading.iter().map(cell).collect();
        let mut kinds = vec![CellKind::Empty; names.len()];
        let mut view = TableView {
            first,
            total: 0,
            columns: Vec::new(),
            rows: Vec::new(),
        };
        let mut row = csv::ByteRecord::new();
        while reader
            .read_byte_record(&mut row)
            .map_err(|error| not(&error.to_string()))?
        {
            if view.total < TYPED {
                for (kind, cell) in kinds.iter_mut().zip(&row) {
                    *kind = (*kind).max(CellKind::of(cell));
                }
            }
            if view.total >= first && view.rows.len() < limit {
                view.rows
                    .push(row.iter().map(|one| Some(cell(one))).collect());
            }
            view.total += 1;
        }
        view.columns = names
            .into_iter()
            .zip(kinds)
            .map(|(name, kind)| ColumnHeading {
                name,
                r#type: kind.word().to_owned(),
            })
            .collect();
        Ok(view)
    }

    /// The same of a Parquet file.
    pub fn of_parquet(
        reading: &Reading<'_>,
        content: VersionBytes,
        program: &Path,
        (first, limit): (usize, usize),
    ) -> Answer<TableView> {
        let not = |why: String| Problem::bad_request(format!("the content is no table: {why}"));
        let bytes = content.read_all(4 * MOST)?;
        let bytes = bytes.ok_or_else(|| not("it is larger than 256 MiB".to_owned()))?;
        rehearse(program, Rehearsal::Rows(&bytes, first, limit))?;
        let (columns, total, rows) =
            parquet_rows::read(bytes, first, limit, &|| reading.check().is_ok()).map_err(not)?;
        let columns = columns.into_iter().map(|(name, kind)| ColumnHeading {
            name: name.into(),
            r#type: kind,
        });
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter();
            cells
                .map(|one| one.map(|text| cell(text.as_bytes())))
                .collect()
        });
        Ok(TableView {
            first,
            total,
            columns: columns.collect(),
            rows: rows.collect(),
        })
    }
}

/// The text of a cell, cut if it is very long.
fn cell(text: &[u8]) -> PathText {
    text[..text.len().min(LONGEST)].into()
}

/// The kind of the cells of a column. A column is the most general of its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CellKind {
    Empty,
    Integer,
    Number,
    Text,
}

impl CellKind {
    fn of(cell: &[u8]) -> CellKind {
        let text = std::str::from_utf8(cell).map(str::trim);
        match text {
            Ok("") => CellKind::Empty,
            Ok(text) if text.parse::<i64>().is_ok() => CellKind::Integer,
            Ok(text) if text.parse::<f64>().is_ok() => CellKind::Number,
            _ => CellKind::Text,
        }
    }

    fn word(self) -> &'static str {
        match self {
            CellKind::Integer => "integer",
            CellKind::Number => "number",
            CellKind::Empty | CellKind::Text => "text",
        }
    }
}
