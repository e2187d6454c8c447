//! The content of a view: facts, columns and rows.

use backstory_vocabulary::Tone;

use crate::destination::Destination;

/// A text in its tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The text, without control characters.
    pub text: String,
    /// Its colour.
    pub tone: Tone,
}

impl Cell {
    /// A cell.
    pub fn new(tone: Tone, text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            tone,
        }
    }
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// The view that Enter opens.
    pub opens: Option<Destination>,
}

/// A view with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The subject.
    pub title: String,
    /// Lines about the subject, above the table.
    pub facts: Vec<Cell>,
    /// The titles of the columns. The last column takes the width that is left.
    pub columns: Vec<&'static str>,
    /// The lines of the table.
    pub rows: Vec<Row>,
}

impl Row {
    /// True if a cell contains the text, whatever its case.
    pub fn contains(&self, lower_case: &str) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|cell| cell.text.to_lowercase().contains(lower_case))
    }
}
