//! The cells of a Jupyter notebook (nbformat 4, and what nbformat 3 calls worksheets).

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::MOST;
use crate::problem::{Answer, Problem};
use crate::version_bytes::VersionBytes;

/// The most outputs of a cell, and bytes of an output.
const OUTPUTS: usize = 50;
const LONGEST: usize = 8 << 20;

/// Cells of a notebook.
#[derive(Debug, Serialize, ToSchema)]
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
#[derive(Debug, Serialize, ToSchema)]
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
#[derive(Debug, Serialize, ToSchema)]
pub struct CellOutput {
    /// `text/plain`, `image/png`, `image/jpeg`; an error is `application/vnd.jupyter.error`.
    pub media_type: String,
    /// The text.
    pub text: Option<String>,
    /// The bytes of an image in base 64.
    pub base64: Option<String>,
}

impl NotebookView {
    /// `limit` cells from cell `first` on.
    pub fn read(content: VersionBytes, first: usize, limit: usize) -> Answer<NotebookView> {
        let not = |why: &str| Problem::bad_request(format!("the content is no notebook: {why}"));
        let bytes = content.read_all(MOST)?;
        let bytes = bytes.ok_or_else(|| not("it is larger than 64 MiB"))?;
        let root: Value =
            serde_json::from_slice(&bytes).map_err(|error| not(&error.to_string()))?;
        let cells = root
            .get("cells")
            .or_else(|| root.pointer("/worksheets/0/cells"));
        let cells = cells.and_then(Value::as_array);
        let cells = cells.ok_or_else(|| not("it has no cells"))?;
        let language = [
            "/metadata/kernelspec/language",
            "/metadata/language_info/name",
        ]
        .into_iter()
        .find_map(|at| root.pointer(at)?.as_str());
        Ok(NotebookView {
            language: language.map(str::to_owned),
            first,
            total: cells.len(),
            cells: cells.iter().skip(first).take(limit).map(cell).collect(),
        })
    }
}

fn cell(cell: &Value) -> NotebookCell {
    let outputs = cell.get("outputs").and_then(Value::as_array);
    let source = cell.get("source").or_else(|| cell.get("input"));
    NotebookCell {
        kind: cell
            .get("cell_type")
            .and_then(Value::as_str)
            .unwrap_or("raw")
            .to_owned(),
        source: source.map(joined).unwrap_or_default(),
        executed: cell.get("execution_count").and_then(Value::as_i64),
        outputs: outputs
            .into_iter()
            .flatten()
            .take(OUTPUTS)
            .map(output)
            .collect(),
    }
}

/// An output. Of several forms of it, an image is preferred, then plain text.
fn output(output: &Value) -> CellOutput {
    let of_text = |media_type: &str, text: String| CellOutput {
        media_type: media_type.to_owned(),
        text: Some(text),
        base64: None,
    };
    if let Some(data) = output.get("data").and_then(Value::as_object) {
        for image in ["image/png", "image/jpeg"] {
            let bytes = data.get(image).map(joined);
            if let Some(bytes) = bytes.filter(|bytes| bytes.len() <= LONGEST) {
                return CellOutput {
                    media_type: image.to_owned(),
                    text: None,
                    base64: Some(bytes.split_whitespace().collect()),
                };
            }
        }
        let plain = data.get_key_value("text/plain");
        let form = plain.or_else(|| data.iter().next());
        if let Some((media_type, text)) = form {
            return of_text(media_type, joined(text));
        }
    }
    match (output.get("text"), output.get("traceback")) {
        (Some(text), _) => of_text("text/plain", joined(text)),
        (_, Some(lines)) => of_text("application/vnd.jupyter.error", joined(lines)),
        _ => of_text("text/plain", String::new()),
    }
}

/// A text, which a notebook may have as a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}
