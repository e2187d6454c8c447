//! The cells of a Jupyter notebook.

use backstory_inspection::format_answer;
use backstory_inspection::question::Portion;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::{formats, not_shown, whole};
use crate::problem::Answer;
use crate::version_bytes::VersionBytes;

/// Cells of a notebook.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct NotebookView {
    /// The language of its code.
    pub language: Option<String>,
    /// The number of the first cell, from 0.
    pub first: usize,
    /// Cells of the whole notebook.
    pub total: usize,
    /// The cells.
    pub cells: Vec<NotebookCell>,
}

/// A cell.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct CellOutput {
    /// `text/plain`, `image/png`, `image/jpeg`; an error is `application/vnd.jupyter.error`.
    pub media_type: String,
    /// The text.
    pub text: Option<String>,
    /// The bytes of an image in base 64.
    pub base64: Option<String>,
}

impl NotebookView {
    /// Some cells.
    pub fn read(content: VersionBytes, part: Portion) -> Answer<NotebookView> {
        let name = content.path.clone();
        let found = formats().cells(&name, &whole(content)?, part);
        let found = found.map_err(not_shown)?;
        let output = |output: format_answer::CellOutput| CellOutput {
            media_type: output.media_type,
            text: output.text,
            base64: output.base64,
        };
        let cells = found.cells.into_iter().map(|cell| NotebookCell {
            kind: cell.kind,
            source: cell.source,
            executed: cell.executed,
            outputs: cell.outputs.into_iter().map(output).collect(),
        });
        Ok(NotebookView {
            language: found.language,
            first: part.first,
            total: found.total,
            cells: cells.collect(),
        })
    }
}
