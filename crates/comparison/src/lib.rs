//! Compares two contents of a file, and says what differs in the terms of its kind.
//!
//! In: a file's name and two contents in memory. Out: a [`ContentDifference`]: lines of a text,
//! cells of a table, pixels of an image, else bytes.
//!
//! A table is a CSV file, by its name, or a Parquet file, by its bytes. The kind is found from the
//! name's ending and from the bytes. A content that is not what its name
//! says is compared as a text or as bytes. Absent: reading files, and printing.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod binary;
mod excerpt;
mod image;
mod origins;
mod parquet_table;
mod summary;
mod table;
mod text;

pub use binary::BinaryDifference;
pub use excerpt::excerpts;
pub use image::{ImageDifference, PixelBox};
pub use origins::line_origins;
use table::Table;
pub use table::{CellChange, TableDifference};
pub use text::{Hunk, LineMark, TextDifference, lines};

/// The most bytes of a content that are compared by lines, cells or pixels. Larger contents are
/// compared as bytes.
pub const LARGEST: usize = 8 << 20;

/// The difference between two contents.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentDifference {
    /// Both have the same bytes.
    Same,
    /// Lines of a text.
    Text(TextDifference),
    /// Columns, rows and cells of a table.
    Table(TableDifference),
    /// Pixels of an image.
    Image(ImageDifference),
    /// Bytes of anything else.
    Binary(BinaryDifference),
}

/// Compares two contents of the file `name`.
pub fn compare(name: &[u8], a: &[u8], b: &[u8]) -> ContentDifference {
    if a == b {
        return ContentDifference::Same;
    }
    if a.len().max(b.len()) <= LARGEST {
        if let Some(found) = image::compare(a, b) {
            return ContentDifference::Image(found);
        }
        if let (Some(a), Some(b)) = (parquet_table::read(a), parquet_table::read(b)) {
            return ContentDifference::Table(table::compare(&a, &b));
        }
        if is_text(a) && is_text(b) {
            let tables =
                separator(name, b).and_then(|by| Some((Table::read(a, by)?, Table::read(b, by)?)));
            return match tables {
                Some((a, b)) => ContentDifference::Table(table::compare(&a, &b)),
                None => ContentDifference::Text(text::compare(a, b)),
            };
        }
    }
    ContentDifference::Binary(binary::compare(a, b))
}

/// The separator of the fields of a table with this name. `None` if the name is not a table's. A
/// file `.csv` may have semicolons, as spreadsheets write it where the comma is in numbers.
pub fn separator(name: &[u8], content: &[u8]) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    let heading = content
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or(content);
    let has = |separator: u8| heading.contains(&separator);
    match () {
        () if name.ends_with(b".csv") && has(b';') && !has(b',') => Some(b';'),
        () if name.ends_with(b".csv") => Some(b','),
        () if name.ends_with(b".tsv") || name.ends_with(b".tab") => Some(b'\t'),
        () => None,
    }
}

/// True for a content without NUL bytes in its first 8000 bytes, as git decides it.
pub fn is_text(content: &[u8]) -> bool {
    !content[..content.len().min(8000)].contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_comparison_follows_from_name_and_content() {
        let kind = |name: &str, a: &[u8], b: &[u8]| match compare(name.as_bytes(), a, b) {
            ContentDifference::Same => "same",
            ContentDifference::Text(_) => "text",
            ContentDifference::Table(_) => "table",
            ContentDifference::Image(_) => "image",
            ContentDifference::Binary(_) => "binary",
        };
        assert_eq!(kind("x", b"a", b"a"), "same");
        assert_eq!(kind("x.c", b"a\n", b"b\n"), "text");
        assert_eq!(kind("x.csv", b"a,b\n1,2\n", b"a,b\n1,3\n"), "table");
        assert_eq!(kind("x.csv", b"a;b\n1;0,2\n", b"a;b\n1;0,3\n"), "table");
        assert_eq!(kind("X.TSV", b"a\tb\n1\t2\n", b"a\tb\n1\t3\n"), "table");
        assert_eq!(kind("x.o", b"\x7fELF\0", b"\x7fELF\0\0"), "binary");
        assert_eq!(kind("x.png", b"no image", b"none"), "text");
    }
}
