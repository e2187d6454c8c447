//! A cell of a table of separated values: CSV and TSV, also in UTF-16.
//!
//! The range of a cell is without the quotes around it (RFC 4180). A blank line is a row, as
//! spreadsheets count.

use std::ops::Range;

use backstory_comparison::is_text;
use backstory_inspection::file_parts::{PartAnswer, PartName, PartPlace};

use super::{Column, TableCell, absent, unreadable};
use crate::text_encoding::{decoded, encoded_offset};

/// The place of a cell. `separator` tells that of the decoded text.
///
/// # Errors
/// The content is no text, or has no such cell.
pub fn place(content: &[u8], name: &PartName, separator: impl Fn(&[u8]) -> u8) -> PartAnswer {
    let wanted = TableCell::read(name)?;
    let text = decoded(content);
    if !is_text(&text) {
        return Err(unreadable("it is not a text"));
    }
    let separator = separator(&text);
    let column = match &wanted.column {
        Column::Number(number) => *number,
        Column::Name(name) => {
            let mut heading = Cells::of(&text, separator).take_while(|cell| cell.row == 0);
            let is_named = |cell: &Cell| unescaped(&text[cell.range.clone()]) == *name;
            let found = heading.find(is_named);
            let no_column = || absent(format!("its heading has no column `{name}`"));
            found.ok_or_else(no_column)?.column
        }
    };
    let row = wanted.row.map_or(0, |row| row.saturating_add(1));
    let found = Cells::of(&text, separator).find(|cell| (cell.column, cell.row) == (column, row));
    let no_cell = || absent("the table has no such cell");
    let range = found.ok_or_else(no_cell)?.range;
    let encoded = |at| encoded_offset(content, &text, at);
    Ok(PartPlace::exact(encoded(range.start)..encoded(range.end)))
}

fn unescaped(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).replace("\"\"", "\"")
}

/// A cell, with column and row from 0.
struct Cell {
    column: usize,
    row: usize,
    range: Range<usize>,
}

/// The cells of a table in their order.
struct Cells<'t> {
    text: &'t [u8],
    separator: u8,
    at: usize,
    column: usize,
    row: usize,
    /// A separator was the last byte: an empty cell follows.
    is_open: bool,
}

impl<'t> Cells<'t> {
    fn of(text: &'t [u8], separator: u8) -> Cells<'t> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        Cells {
            text,
            separator,
            at: if text.starts_with(MARK) {
                MARK.len()
            } else {
                0
            },
            column: 0,
            row: 0,
            is_open: false,
        }
    }

    /// The end of a cell without quotes, or of the bytes behind the quotes of a cell.
    fn end_of_bytes(&self, from: usize) -> usize {
        let mut rest = self.text[from..].iter();
        let length = rest.position(|&byte| byte == self.separator || byte == b'\n');
        length.map_or(self.text.len(), |length| from + length)
    }
}

impl Iterator for Cells<'_> {
    type Item = Cell;

    fn next(&mut self) -> Option<Cell> {
        if self.at >= self.text.len() && !self.is_open {
            return None;
        }
        let quoted = self.text.get(self.at) == Some(&b'"');
        let start = self.at + usize::from(quoted);
        let (end, behind) = match quoted {
            true => {
                let end = closing_quote(self.text, start);
                (end, self.end_of_bytes((end + 1).min(self.text.len())))
            }
            false => {
                let behind = self.end_of_bytes(start);
                let returns = self.text[start..behind].ends_with(b"\r");
                (behind - usize::from(returns), behind)
            }
        };
        let cell = Cell {
            column: self.column,
            row: self.row,
            range: start..end,
        };
        self.is_open = self.text.get(behind) == Some(&self.separator);
        match self.is_open {
            true => self.column += 1,
            false => (self.column, self.row) = (0, self.row + 1),
        }
        self.at = behind + 1;
        Some(cell)
    }
}

/// The quote that ends a cell. Two quotes stand for one within it.
fn closing_quote(text: &[u8], mut at: usize) -> usize {
    while at < text.len() {
        if text[at] == b'"' {
            if text.get(at + 1) != Some(&b'"') {
                return at;
            }
            at += 1;
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_inspection::file_parts::NoPart;

    const TABLE: &[u8] = b"a,\"b \"\"c\"\", d\",e\r\n1,,3\n";

    fn cell(table: &[u8], name: &str) -> Result<String, NoPart> {
        let name = match name.contains('[') {
            true => PartName::Member(name.to_owned()),
            false => PartName::Cell(name.to_owned()),
        };
        let place = place(table, &name, |_| b',')?;
        let bytes = &table[place.ranges[0].clone()];
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    #[test]
    fn a_cell_is_found_behind_quotes_separators_and_empty_cells() {
        for (name, expected) in [
            ("A1", "a"),
            ("B1", "b \"\"c\"\", d"),
            ("C1", "e"),
            ("A2", "1"),
            ("B2", ""),
            ("C2", "3"),
            ("e[0]", "3"),
            ("[\"b \\\"c\\\", d\"][0]", ""),
        ] {
            assert_eq!(cell(TABLE, name).as_deref(), Ok(expected), "{name}");
        }
        for name in ["D1", "A3", "x[0]", "e[1]"] {
            assert!(
                matches!(cell(TABLE, name), Err(NoPart::Absent(_))),
                "{name}"
            );
        }
        assert!(matches!(cell(TABLE, "S!A1"), Err(NoPart::Misnamed(_))));
        assert!(matches!(cell(b"a\0,b", "B1"), Err(NoPart::Unreadable(_))));
    }

    #[test]
    fn the_last_cell_may_be_empty_and_a_mark_is_no_part_of_the_first() {
        assert_eq!(cell(b"a,", "B1").as_deref(), Ok(""));
        assert!(cell(b"a,\n", "A2").is_err());
        assert_eq!(cell(b"\xef\xbb\xbf\"a,b\",c", "A1").as_deref(), Ok("a,b"));
        assert_eq!(cell(b"\"open,\nb", "A1").as_deref(), Ok("open,\nb"));
    }

    #[test]
    fn a_cell_in_utf16_has_the_bytes_of_the_file() {
        let text: Vec<u8> = "ä,\u{1f600}b,c\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let file = [b"\xff\xfe", &text[..]].concat();
        let place = |name: &str| place(&file, &PartName::Cell(name.to_owned()), |_| b',').unwrap();
        assert_eq!(place("A1").ranges[0], 2..4);
        assert_eq!(place("B1").ranges[0], 6..12);
        assert_eq!(place("C1").ranges[0], 14..16);
    }
}
