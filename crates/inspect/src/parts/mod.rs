//! Where a part of a file is: the byte range of a cell or a member.
//!
//! An inspector's [`crate::Inspector::part`] leads here. A new format is one more module.
//!
//! | module | what it finds |
//! | --- | --- |
//! | [`cell_reference`], [`member_path`] | nothing: they read the names of parts |
//! | [`json_value`], [`toml_value`], [`notebook_cell`] | values in a text |
//! | [`delimited_cell`] | cells of CSV and TSV |
//! | [`zip_member`], [`workbook_cell`], `document_paragraph` | members of an archive, cells and paragraphs in them |
//! | [`tar_member`] | members of an archive |
//! | [`parquet_cell`], [`arrow_cell`] | values of a column |
//! | `database_value` | tables, rows and values of SQLite |
//! | `dataset_value` | datasets of HDF5, and values in them |
//! | `tensor_value` | tensors of safetensors, and values in them |
//!
//! Invariant: a range that has more than the part comes with a statement of what it is.

pub mod arrow_cell;
pub mod cell_reference;
pub mod database_value;
#[cfg(feature = "hdf5")]
pub mod dataset_value;
pub mod delimited_cell;
pub mod document_paragraph;
pub mod json_value;
pub mod member_path;
pub mod notebook_cell;
pub mod parquet_cell;
pub mod tar_member;
pub mod tensor_value;
pub mod toml_value;
pub mod workbook_cell;
pub mod zip_member;

use std::ops::Range;

use backstory_inspection::file_parts::{NoPart, PartName};

use crate::UnreadableContent;
use cell_reference::CellReference;
use member_path::MemberPath;

impl From<UnreadableContent> for NoPart {
    fn from(error: UnreadableContent) -> NoPart {
        NoPart::Unreadable(error.to_string())
    }
}

/// The file has no such part.
fn absent(why: impl Into<String>) -> NoPart {
    NoPart::Absent(why.into())
}

/// The member of an archive is not a file. `target`: that of a link.
fn no_file(name: &str, kind: &str, target: Option<&str>) -> NoPart {
    let target = target.map(|target| format!(" to `{target}`"));
    let target = target.unwrap_or_default();
    absent(format!("`{name}` is no file ({kind}{target})"))
}

/// The content is damaged.
fn unreadable(why: impl std::fmt::Display) -> NoPart {
    NoPart::Unreadable(why.to_string())
}

/// A text as UTF-8, and the bytes of the mark before it.
fn marked_text(content: &[u8]) -> Result<(usize, &str), NoPart> {
    const MARK: &str = "\u{feff}";
    let text = std::str::from_utf8(content)
        .map_err(|error| unreadable(format!("it is not in UTF-8: {error}")))?;
    match text.strip_prefix(MARK) {
        Some(rest) => Ok((MARK.len(), rest)),
        None => Ok((0, text)),
    }
}

/// The range of a slice within the text that it was taken from.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// A value of a table with a heading.
#[derive(Debug, PartialEq, Eq)]
pub struct TableCell {
    /// The column, by its place from 0 or by its name.
    pub column: Column,
    /// The row of values, from 0. `None`: the heading.
    pub row: Option<usize>,
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
pub enum Column {
    /// From 0.
    Number(usize),
    /// Names of nested columns have a dot between them.
    Name(String),
}

impl TableCell {
    /// Reads `B3`, whose row 1 is the heading, or `price[1]`, whose row 0 is the one below it.
    ///
    /// # Errors
    /// The name is of another form.
    pub fn read(name: &PartName) -> Result<TableCell, NoPart> {
        match name {
            PartName::Cell(text) => {
                let cell = CellReference::without_sheet(text)?;
                Ok(TableCell {
                    column: Column::Number(cell.column),
                    row: cell.row.checked_sub(1),
                })
            }
            PartName::Member(text) => {
                let (column, row) = MemberPath::read(text)?.column_and_row()?;
                Ok(TableCell {
                    column: Column::Name(column),
                    row: Some(row),
                })
            }
        }
    }

    /// The row of values, in a format that keeps the names of columns elsewhere.
    ///
    /// # Errors
    /// The heading is meant.
    pub fn value_row(&self) -> Result<usize, NoPart> {
        self.row.ok_or_else(|| {
            absent("row 1 is the heading, whose names are in the metadata: values begin in row 2")
        })
    }
}

/// Names in a sentence.
fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, all)) if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => names.concat(),
    }
}
