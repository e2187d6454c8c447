//! The bytes of a part of a file: a line, or a cell of a table.
//!
//! In: a content and a [`Selection`]. Out: a range of bytes. Also the opposite: the line and column
//! of a byte.

use std::ops::Range;

use crate::args::bytes::Selection;
use crate::error::Failure;

/// The range that is meant. Its end is not after the content's.
pub fn range(content: &[u8], wanted: &Selection, tabs: bool) -> Result<Range<u64>, Failure> {
    if matches!(wanted, Selection::Cell(..)) && content.contains(&0) {
        return Err(Failure::misuse(
            "--cell reads tables in CSV and TSV, and this file is not text: ask with --bytes",
        ));
    }
    let found = match wanted {
        Selection::Bytes(first, last) => {
            let end = (last.saturating_add(1)).min(content.len() as u64);
            (*first < end).then_some(*first..end)
        }
        Selection::Line(number) => line(content, *number),
        Selection::Cell(column, row) => cell(content, *column, *row, tabs),
    };
    found.ok_or_else(|| {
        Failure::not_found(match wanted {
            Selection::Bytes(first, _) => {
                format!("the file has {} bytes, and no byte {first}", content.len())
            }
            Selection::Line(number) => format!("the file has no line {number}"),
            Selection::Cell(..) => "the table has no such cell".to_owned(),
        })
    })
}

fn line(content: &[u8], number: u64) -> Option<Range<u64>> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    let mut start = 0;
    for (at, line) in content.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if at == index {
            let end = start + line.len() - usize::from(line.ends_with(b"\n"));
            return Some(start as u64..end as u64);
        }
        start += line.len();
    }
    None
}

/// A cell of a table as RFC 4180 has it, without the quotes around it.
fn cell(content: &[u8], column: usize, row: usize, tabs: bool) -> Option<Range<u64>> {
    let separator = if tabs { b'\t' } else { b',' };
    let (mut at, mut x, mut y) = (0, 0, 0);
    while at < content.len() {
        let quoted = content[at] == b'"';
        let start = at + usize::from(quoted);
        let end = match quoted {
            true => closing_quote(content, start),
            false => {
                let rest = content[start..].iter();
                let length = rest
                    .take_while(|&&byte| byte != separator && byte != b'\n')
                    .count();
                start + length
            }
        };
        if (x, y) == (column, row) {
            let carriage = !quoted && end > start && content[end - 1] == b'\r';
            return Some(start as u64..(end - usize::from(carriage)) as u64);
        }
        at = end + usize::from(quoted && end < content.len());
        while at < content.len() && content[at] != separator && content[at] != b'\n' {
            at += 1;
        }
        match content.get(at) {
            Some(b'\n') => (x, y) = (0, y + 1),
            _ => x += 1,
        }
        at += 1;
    }
    None
}

/// The quote that ends a cell. Two quotes stand for one within it.
fn closing_quote(content: &[u8], mut at: usize) -> usize {
    while at < content.len() {
        if content[at] == b'"' {
            if content.get(at + 1) != Some(&b'"') {
                return at;
            }
            at += 1;
        }
        at += 1;
    }
    content.len()
}

/// The line and column of a byte, both from 1.
pub fn position(content: &[u8], byte: u64) -> (usize, usize) {
    let before = &content[..(byte as usize).min(content.len())];
    let lines = before.iter().filter(|&&byte| byte == b'\n').count();
    let start = before.iter().rposition(|&byte| byte == b'\n');
    (lines + 1, before.len() - start.map_or(0, |at| at + 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"a,\"b \"\"c\"\", d\",e\r\n1,,3\n";

    fn text(wanted: Selection) -> Option<String> {
        let range = range(TABLE, &wanted, false).ok()?;
        let bytes = &TABLE[range.start as usize..range.end as usize];
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    #[test]
    fn a_cell_is_found_behind_quotes_separators_and_empty_cells() {
        let cells = [((0, 0), "a"), ((1, 0), "b \"\"c\"\", d"), ((2, 0), "e")];
        for ((column, row), expected) in cells.into_iter().chain([((0, 1), "1"), ((2, 1), "3")]) {
            assert_eq!(
                text(Selection::Cell(column, row)).as_deref(),
                Some(expected)
            );
        }
        assert_eq!(text(Selection::Cell(1, 1)).as_deref(), Some(""));
        assert_eq!(text(Selection::Cell(3, 0)), None);
    }

    #[test]
    fn a_cell_of_a_file_that_is_not_text_is_refused() {
        let refused = range(b"PK\x03\x04\0,b", &Selection::Cell(0, 0), false);
        assert!(refused.unwrap_err().line.contains("CSV and TSV"));
    }

    #[test]
    fn a_line_is_found_without_its_end() {
        assert_eq!(text(Selection::Line(2)).as_deref(), Some("1,,3"));
        assert_eq!(text(Selection::Line(3)), None);
        assert_eq!(position(TABLE, 19), (2, 2));
    }
}
