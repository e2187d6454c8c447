//! Workbooks (.xlsx, .ods): authors and other properties, sheets, and cells.

use std::io::Cursor;

use calamine::{Data, Reader, open_workbook_auto_from_rs};
use serde_json::{Value, json};

use super::markup::DocumentParts;
use super::{opendocument, word};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct Workbook;

/// The most cells of a workbook that are read.
const CELLS: usize = 200_000;

impl Inspector for Workbook {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut facts = FileFacts::default();
        let mut document = DocumentParts::open(content.bytes)?;
        word::properties(&mut document, &mut facts)?;
        opendocument::properties(&mut document, &mut facts)?;
        let mut workbook = open_workbook_auto_from_rs(Cursor::new(content.bytes))
            .map_err(UnreadableContent::of)?;
        let mut sheets = Vec::new();
        let mut cells = Vec::new();
        for name in workbook.sheet_names() {
            let range = workbook
                .worksheet_range(&name)
                .map_err(UnreadableContent::of)?;
            let (rows, columns) = range.get_size();
            sheets.push((name.clone(), json!({"rows": rows, "columns": columns})));
            let (top, left) = range.start().unwrap_or_default();
            for (row, column, cell) in range.used_cells() {
                if cells.len() == CELLS {
                    let why = format!("it has more than {CELLS} cells");
                    return Err(UnreadableContent(why));
                }
                let place = reference(top as usize + row, left as usize + column);
                cells.push((format!("{name}!{place}"), value(cell)));
            }
        }
        facts.parts(("sheet", "sheets"), sheets);
        facts.parts(("cell", "cells"), cells);
        Ok(facts)
    }
}

/// A cell's value. Dates are numbers of days, as the file has them.
fn value(cell: &Data) -> Value {
    match cell {
        Data::Int(number) => json!(number),
        Data::Float(number) => json!(number),
        Data::Bool(value) => json!(value),
        Data::Empty => Value::Null,
        other => json!(other.to_string()),
    }
}

/// The name of a cell: `B3`. Row and column count from 0.
fn reference(row: usize, column: usize) -> String {
    let mut letters = Vec::new();
    let mut left = column + 1;
    while left > 0 {
        letters.push(b'A' + ((left - 1) % 26) as u8);
        left = (left - 1) / 26;
    }
    letters.reverse();
    format!("{}{}", String::from_utf8_lossy(&letters), row + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cell_is_named_as_spreadsheets_name_it() {
        for (row, column, name) in [
            (0, 0, "A1"),
            (2, 25, "Z3"),
            (0, 26, "AA1"),
            (9, 701, "ZZ10"),
            (0, 702, "AAA1"),
        ] {
            assert_eq!(super::reference(row, column), name);
        }
    }
}
