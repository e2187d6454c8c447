//! The cells of a Jupyter notebook for a view: nbformat 4, and what nbformat 3 calls worksheets.
//!
//! HTML in an output stays text.

use backstory_inspection::format_answer::{CellOutput, LARGEST, NotebookCell, NotebookCells};
use backstory_inspection::question::Portion;
use serde_json::Value;

use crate::tables::ViewBudget;
use crate::{Read, UnreadableContent};

/// The most outputs of a cell, and bytes of a text or an output.
const OUTPUTS: usize = 50;
const LONGEST: usize = 8 << 20;

/// Some cells of a notebook.
pub fn read(content: &[u8], part: Portion) -> Read<NotebookCells> {
    let root: Value = serde_json::from_slice(content).map_err(UnreadableContent::of)?;
    let cells = root
        .get("cells")
        .or_else(|| root.pointer("/worksheets/0/cells"));
    let cells = cells
        .and_then(Value::as_array)
        .ok_or_else(|| UnreadableContent("it has no cells".to_owned()))?;
    let language = [
        "/metadata/kernelspec/language",
        "/metadata/language_info/name",
    ]
    .into_iter()
    .find_map(|at| root.pointer(at)?.as_str());
    let mut found = NotebookCells {
        language: language.map(str::to_owned),
        total: cells.len(),
        cells: Vec::new(),
    };
    let mut budget = ViewBudget::default();
    for cell in cells.iter().skip(part.first).take(part.limit) {
        let cell = read_cell(cell);
        if !budget.takes(length(&cell)) {
            break;
        }
        found.cells.push(cell);
    }
    Ok(found)
}

/// A cell with the outputs that fit into an answer.
fn read_cell(cell: &Value) -> NotebookCell {
    let outputs = cell.get("outputs").and_then(Value::as_array);
    let source = cell.get("source").or_else(|| cell.get("input"));
    let mut read = NotebookCell {
        kind: cell
            .get("cell_type")
            .and_then(Value::as_str)
            .unwrap_or("raw")
            .to_owned(),
        source: source.map(joined).unwrap_or_default(),
        executed: cell.get("execution_count").and_then(Value::as_i64),
        outputs: Vec::new(),
    };
    let mut bytes = length(&read);
    for output in outputs.into_iter().flatten().take(OUTPUTS).map(output) {
        bytes += output_length(&output);
        if bytes > LARGEST {
            break;
        }
        read.outputs.push(output);
    }
    read
}

fn length(cell: &NotebookCell) -> usize {
    let outputs = cell.outputs.iter().map(output_length);
    cell.kind.len() + cell.source.len() + outputs.sum::<usize>()
}

fn output_length(output: &CellOutput) -> usize {
    let parts = [&output.text, &output.base64].into_iter().flatten();
    output.media_type.len() + parts.map(String::len).sum::<usize>()
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

/// A text, which a notebook may have as a list of lines. A text that is too long is cut.
fn joined(text: &Value) -> String {
    let mut all = match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    };
    if all.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| all.is_char_boundary(*at));
        all.truncate(end.unwrap_or(0));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_from_the_first_to_the_limit_with_their_outputs() {
        let text = r#"{"metadata": {"language_info": {"name": "python"}}, "cells": [
            {"cell_type": "markdown", "source": ["a", "\n"]},
            {"cell_type": "code", "source": "x", "execution_count": 3, "outputs": [
                {"data": {"image/png": "aGk =", "text/plain": "p"}}, {"traceback": ["e"]}]}]}"#;
        let found = read(text.as_bytes(), Portion { first: 1, limit: 5 }).unwrap();
        assert_eq!((found.total, found.cells.len()), (2, 1));
        let cell = &found.cells[0];
        assert_eq!((cell.executed, cell.outputs.len()), (Some(3), 2));
        assert_eq!(cell.outputs[0].base64.as_deref(), Some("aGk="));
        assert_eq!(cell.outputs[1].text.as_deref(), Some("e"));
    }

    #[test]
    fn outputs_that_do_not_fit_into_an_answer_are_left_out() {
        let long = "x".repeat(LONGEST + 1);
        let output = serde_json::json!({"text": long});
        let cells = vec![serde_json::json!({"outputs": vec![output; 4]}); 2];
        let text = serde_json::json!({ "cells": cells }).to_string();
        let found = read(text.as_bytes(), Portion { first: 0, limit: 5 }).unwrap();
        assert_eq!(found.cells.len(), 1);
        assert_eq!(found.cells[0].outputs.len(), 1);
    }
}
