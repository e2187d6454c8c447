//! Jupyter notebooks: cells, their outputs, and the order in which they were executed.
//!
//! Cells belong together by their ids (format 4.5 and later). Without ids they are aligned by their
//! sources.

use backstory_inspection::file_parts::{PartAnswer, PartName};
use backstory_inspection::format_answer::NotebookCells;
use backstory_inspection::question::Portion;
use serde_json::{Map, Value, json};

use super::notebook_cells;
use crate::parts::{json_value, notebook_cell};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct Notebook;

impl Inspector for Notebook {
    fn cells(&self, content: NamedContent<'_>, part: Portion) -> Read<NotebookCells> {
        notebook_cells::read(content.bytes, part)
    }

    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        match name {
            PartName::Cell(cell) => notebook_cell::place(content.bytes, cell),
            PartName::Member(path) => json_value::place(content.bytes, path, false),
        }
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let notebook: Value =
            serde_json::from_slice(content.bytes).map_err(UnreadableContent::of)?;
        let Some(cells) = notebook["cells"].as_array() else {
            let why = "it has no list of cells: formats before version 4 are not read";
            return Err(UnreadableContent(why.to_owned()));
        };
        let mut facts = FileFacts::default();
        let format = (&notebook["nbformat"], &notebook["nbformat_minor"]);
        facts.value("format", format!("{}.{}", format.0, format.1));
        let metadata = &notebook["metadata"];
        facts.value("kernel", metadata["kernelspec"]["name"].clone());
        facts.value("language", metadata["language_info"]["name"].clone());
        facts.value(
            "language_version",
            metadata["language_info"]["version"].clone(),
        );
        let runs: Vec<(i64, usize)> = cells
            .iter()
            .enumerate()
            .filter_map(|(at, cell)| Some((cell["execution_count"].as_i64()?, at + 1)))
            .collect();
        let in_order = runs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !runs.is_empty() {
            let order = if in_order {
                "from top to bottom"
            } else {
                "not from top to bottom"
            };
            facts.value("executed", order);
        }
        if !in_order {
            let mut runs = runs;
            runs.sort_unstable();
            let order: Vec<usize> = runs.into_iter().map(|(_, cell)| cell).collect();
            facts.value("execution_order", json!(order));
        }
        let ids: Vec<&str> = cells
            .iter()
            .filter_map(|cell| cell["id"].as_str())
            .collect();
        let distinct: std::collections::HashSet<&&str> = ids.iter().collect();
        let has_ids = !ids.is_empty() && distinct.len() == cells.len();
        let sources = cells.iter().enumerate().map(|(at, cell)| {
            let value = json!({"type": cell["cell_type"], "source": joined(&cell["source"])});
            (name(cell, at, has_ids), value)
        });
        match has_ids {
            true => facts.parts(("cell", "cells"), sources),
            false => facts.positions(("cell", "cells"), sources),
        }
        let outputs = cells.iter().enumerate().filter_map(|(at, cell)| {
            let outputs = cell["outputs"].as_array().filter(|all| !all.is_empty())?;
            let told: Vec<Value> = outputs.iter().map(output).collect();
            Some((name(cell, at, has_ids), json!({"outputs": told})))
        });
        let words = ("cell's output", "cells' outputs");
        match has_ids {
            true => facts.parts(words, outputs),
            false => facts.positions(words, outputs),
        }
        Ok(facts)
    }
}

fn name(cell: &Value, at: usize, has_ids: bool) -> String {
    match cell["id"].as_str() {
        Some(id) if has_ids => id.to_owned(),
        _ => format!("cell {}", at + 1),
    }
}

/// A text that is a string or a list of strings.
fn joined(text: &Value) -> String {
    match text {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// An output without its execution count, which every execution changes.
fn output(output: &Value) -> Value {
    let mut told = Map::new();
    for (field, value) in output.as_object().into_iter().flatten() {
        match field.as_str() {
            "execution_count" | "metadata" => {}
            "data" => {
                let parts = value.as_object().into_iter().flatten();
                let parts = parts.map(|(kind, data)| (kind.clone(), json!(joined(data))));
                told.insert(field.clone(), Value::Object(parts.collect()));
            }
            "text" => drop(told.insert(field.clone(), json!(joined(value)))),
            _ => drop(told.insert(field.clone(), value.clone())),
        }
    }
    Value::Object(told)
}
