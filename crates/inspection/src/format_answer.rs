//! The answer to a question about the form of contents ([`crate::question::FormatQuestion`]).
//!
//! It is one JSON object. Its texts are bytes of the file: the caller makes them printable, as it
//! does with other bytes of files.

use backstory_comparison::{FormatDifference, WireBytes};
use serde::{Deserialize, Serialize};

use crate::file_parts::PartAnswer;
use crate::question::FormatQuestion;
use crate::row_changes::RowChanges;

/// The most bytes of an answer.
pub const LONGEST: usize = 48 << 20;

/// The most bytes of a file's that an answer contains.
pub const LARGEST: usize = 16 << 20;

/// The answer of a worker. The variants are those of the questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatAnswer {
    /// `None` if the contents are not what the format's name promises: a table with rows of several
    /// lengths.
    Difference(Option<FormatDifference>),
    /// The text, as UTF-8.
    Text(WireBytes),
    /// Lines of the text.
    Lines(TextLines),
    /// Rows of a table.
    Rows(TableRows),
    /// Cells of a notebook.
    Cells(NotebookCells),
    /// Width and height of an image.
    Size(u32, u32),
    /// Changed rows of a database.
    RowChanges(RowChanges),
    /// The bytes of a part.
    Part(PartAnswer),
    /// The content is damaged, or is not of the format.
    Unreadable(String),
}

/// Lines of a text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextLines {
    /// Lines of the whole text.
    pub total: usize,
    /// The lines without their newlines.
    pub lines: Vec<WireBytes>,
    /// A line is too long, and its rest is left out.
    pub cut: bool,
}

/// Rows of a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRows {
    /// Rows of the whole table, without the heading.
    pub total: usize,
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// The cells of each row. `None` is no value.
    pub rows: Vec<Vec<Option<WireBytes>>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableColumn {
    /// Its name.
    pub name: WireBytes,
    /// `integer`, `number` or `text` for a table of text; the type of a Parquet column.
    pub kind: String,
}

/// Cells of a notebook.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotebookCells {
    /// The language of its code.
    pub language: Option<String>,
    /// Cells of the whole notebook.
    pub total: usize,
    /// The cells.
    pub cells: Vec<NotebookCell>,
}

/// A cell of a notebook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotebookCell {
    /// `code`, `markdown` or `raw`.
    pub kind: String,
    /// Its text.
    pub source: String,
    /// The number of its last execution.
    pub executed: Option<i64>,
    /// Its outputs.
    pub outputs: Vec<CellOutput>,
}

/// An output of a cell: a text, or an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellOutput {
    /// `text/plain`, `image/png`, `image/jpeg`; an error is `application/vnd.jupyter.error`.
    pub media_type: String,
    /// The text.
    pub text: Option<String>,
    /// The bytes of an image in base 64.
    pub base64: Option<String>,
}

impl FormatAnswer {
    /// Reads and checks the bytes that a worker wrote.
    ///
    /// # Errors
    /// A sentence that says which part of the answer is wrong.
    pub fn read(bytes: &[u8], question: FormatQuestion) -> Result<FormatAnswer, String> {
        let answer: FormatAnswer =
            serde_json::from_slice(bytes).map_err(|error| format!("it is malformed: {error}"))?;
        let most = match question {
            FormatQuestion::Lines(part)
            | FormatQuestion::Rows(part)
            | FormatQuestion::Cells(part) => part.limit,
            _ => usize::MAX,
        };
        let parts = match &answer {
            FormatAnswer::Lines(found) => found.lines.len(),
            FormatAnswer::Rows(found) => found.rows.len(),
            FormatAnswer::Cells(found) => found.cells.len(),
            _ => 0,
        };
        match parts <= most {
            true => Ok(answer),
            false => Err(format!(
                "it has {parts} parts, and at most {most} were asked for"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Portion;

    #[test]
    fn an_answer_with_more_than_was_asked_for_is_refused() {
        let rows = FormatQuestion::Rows(Portion { first: 0, limit: 1 });
        let of = |text: &str, question| FormatAnswer::read(text.as_bytes(), question);
        let two = r#"{"rows":{"total":9,"columns":[],"rows":[[],[]]}}"#;
        let one = r#"{"rows":{"total":9,"columns":[],"rows":[["YQ==",null]]}}"#;
        assert!(of(two, rows).unwrap_err().contains("it has 2 parts"));
        assert!(of("{", rows).unwrap_err().contains("malformed"));
        let FormatAnswer::Rows(found) = of(one, rows).unwrap() else {
            panic!("no rows");
        };
        assert_eq!(found.rows[0][0], Some(WireBytes(b"a".to_vec())));
        assert!(of(r#"{"unreadable":"x"}"#, rows).is_ok());
    }
}
