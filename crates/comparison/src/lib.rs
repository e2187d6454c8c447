//! Compares two contents of a file by lines or bytes, and has the words for other differences.
//!
//! In: two contents in memory. Out: a [`ContentDifference`]: lines of a text, else bytes.
//!
//! No format is read here, so that each program may compare with this crate. Cells of tables and
//! pixels of images are compared by the worker of crate `inspect`, in its sandbox. Its answer is a
//! [`FormatDifference`].
//!
//! Invariant: a comparison takes a limited time and memory, whatever the contents are. Absent:
//! reading files, and printing.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alignment;
mod binary;
mod excerpt;
mod image;
mod origins;
mod summary;
mod table;
mod text;
mod text_form;
mod wire_bytes;

use serde::{Deserialize, Serialize};

pub use alignment::operations;
pub use binary::BinaryDifference;
pub use excerpt::excerpts;
pub use image::{ImageDifference, PixelBox};
pub use origins::line_origins;
pub use table::{CellChange, TableDifference};
pub use text::{Hunk, LineMark, TextDifference, lines};
pub use text_form::{is_text, is_utf16};
pub use wire_bytes::WireBytes;

/// The most bytes of a content that are compared by lines, cells or pixels. Larger contents are
/// compared as bytes.
pub const LARGEST: usize = 8 << 20;

/// The most lines of a text that are compared. A longer text is compared as bytes.
const MOST_LINES: usize = 1 << 20;

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

/// The difference between two contents of a format that a worker reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FormatDifference {
    /// Columns, rows and cells of a table.
    Table(TableDifference),
    /// Pixels of an image.
    Image(ImageDifference),
}

impl From<FormatDifference> for ContentDifference {
    fn from(found: FormatDifference) -> ContentDifference {
        match found {
            FormatDifference::Table(table) => ContentDifference::Table(table),
            FormatDifference::Image(image) => ContentDifference::Image(image),
        }
    }
}

/// Compares two contents by their lines if both are texts, else by their bytes.
pub fn compare(a: &[u8], b: &[u8]) -> ContentDifference {
    let is_short = |content: &[u8]| {
        let newlines = content
            .iter()
            .filter(|byte| **byte == b'\n')
            .take(MOST_LINES);
        content.len() <= LARGEST && newlines.count() < MOST_LINES
    };
    match () {
        () if a == b => ContentDifference::Same,
        () if is_text(a) && is_text(b) && is_short(a) && is_short(b) => {
            ContentDifference::Text(text::compare(a, b))
        }
        () => ContentDifference::Binary(binary::compare(a, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_lines_and_everything_else_by_bytes() {
        let kind = |a: &[u8], b: &[u8]| match compare(a, b) {
            ContentDifference::Same => "same",
            ContentDifference::Text(_) => "text",
            ContentDifference::Binary(_) => "binary",
            _ => "a format",
        };
        assert_eq!(kind(b"a", b"a"), "same");
        assert_eq!(kind(b"a\n", b"b\n"), "text");
        assert_eq!(kind(b"\x7fELF\0", b"\x7fELF\0\0"), "binary");
        assert_eq!(kind(b"a,b\n1,2\n", b"a,b\n1,3\n"), "text");
        let long = vec![b'\n'; MOST_LINES];
        assert_eq!(kind(&long, b"a\n"), "binary");
        assert_eq!(kind(&long[1..], b"a\n"), "text");
    }
}
