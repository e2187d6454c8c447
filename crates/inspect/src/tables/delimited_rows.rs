//! Reads tables of separated values: CSV and TSV. A table in UTF-16 is decoded first.

use backstory_comparison::{WireBytes, is_text};
use backstory_inspection::format_answer::{TableColumn, TableRows};
use backstory_inspection::question::Portion;

use super::{Table, ViewBudget, shown};
use crate::text_encoding::decoded;
use crate::{Read, UnreadableContent};

/// Rows that decide the type of a column.
const TYPED: usize = 200;

/// The separator of the fields of a table with this name. A file `.csv` may have semicolons, as
/// spreadsheets write it where the comma is in numbers.
pub fn separator(name: &str, content: &[u8]) -> u8 {
    match name.to_ascii_lowercase().ends_with(".csv") {
        true => guessed_separator(content),
        false => b'\t',
    }
}

/// The separator of the fields of a table whose name does not tell it.
pub fn guessed_separator(content: &[u8]) -> u8 {
    let heading = content
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or(content);
    let has = |separator: u8| heading.contains(&separator);
    match () {
        // Spreadsheets write tabs into files in UTF-16.
        () if has(b'\t') && !has(b',') && !has(b';') => b'\t',
        () if has(b';') && !has(b',') => b';',
        () => b',',
    }
}

/// The table. `None` if the text is no table: a single column, or rows of different lengths.
///
/// # Errors
/// The table is too large.
pub fn table(name: &str, content: &[u8]) -> Read<Option<Table>> {
    let content = decoded(content);
    if !is_text(&content) {
        return Ok(None);
    }
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator(name, &content))
        .has_headers(false)
        .from_reader(&content[..]);
    let mut record = csv::ByteRecord::new();
    match reader.read_byte_record(&mut record) {
        Ok(true) if record.len() >= 2 => {}
        _ => return Ok(None),
    }
    let heading = record.iter().map(<[u8]>::to_vec).collect();
    let Some(mut table) = Table::new(heading) else {
        return Ok(None);
    };
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => record.iter().try_for_each(|cell| table.push(cell))?,
            Ok(false) => return Ok(Some(table)),
            Err(_) => return Ok(None),
        }
    }
}

/// Some rows, for a view.
///
/// # Errors
/// The content is no table.
pub fn rows(name: &str, content: &[u8], part: Portion) -> Read<TableRows> {
    let content = decoded(content);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator(name, &content))
        .flexible(true)
        .from_reader(&content[..]);
    let heading = reader.byte_headers().map_err(UnreadableContent::of)?;
    let names: Vec<WireBytes> = heading.iter().map(|cell| shown(cell).into()).collect();
    let mut kinds = vec![CellKind::Empty; names.len()];
    let mut found = TableRows::default();
    let mut budget = ViewBudget::default();
    let mut is_full = false;
    let mut row = csv::ByteRecord::new();
    while reader
        .read_byte_record(&mut row)
        .map_err(UnreadableContent::of)?
    {
        if found.total < TYPED {
            for (kind, cell) in kinds.iter_mut().zip(&row) {
                *kind = (*kind).max(CellKind::of(cell));
            }
        }
        if found.total >= part.first && found.rows.len() < part.limit && !is_full {
            let bytes = row.iter().map(|cell| shown(cell).len() + CELL).sum();
            is_full = !budget.takes(bytes);
            if !is_full {
                let cells = row.iter().map(|cell| Some(shown(cell).into()));
                found.rows.push(cells.collect());
            }
        }
        found.total += 1;
    }
    let columns = names.into_iter().zip(kinds);
    found.columns = columns
        .map(|(name, kind)| TableColumn {
            name,
            kind: kind.word().to_owned(),
        })
        .collect();
    Ok(found)
}

/// The bytes that a cell takes beside its text.
pub(super) const CELL: usize = 8;

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
