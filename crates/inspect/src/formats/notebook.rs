//! Jupyter notebooks: cells, their outputs, and the order in which they were executed.
//!
//! Cells belong together by their ids (format 4.5 and later). Without ids they are aligned by their
//! sources. So are those of notebooks that have no id in common: some programs write new ids each
//! time.

use std::collections::HashSet;

use backstory_inspection::file_parts::{PartAnswer, PartName};
use backstory_inspection::format_answer::NotebookCells;
use backstory_inspection::question::Portion;
use serde_json::{Map, Value, json};

use super::notebook_cells;
use crate::changes::{self, FileChanges};
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
        read(content).map(|notebook| facts(&notebook, has_ids(&notebook)))
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let side = |which: &str, content| {
            read(content)
                .map_err(|error| UnreadableContent(format!("the {which} content: {error}")))
        };
        let (old, new) = (side("first", old)?, side("second", new)?);
        let known: HashSet<&str> = ids(&old).collect();
        let has_common = || ids(&new).any(|id| known.contains(id));
        let by_ids = has_ids(&old) && has_ids(&new) && has_common();
        Ok(changes::between(&facts(&old, by_ids), &facts(&new, by_ids)))
    }
}

/// Reads a notebook with a list of cells.
fn read(content: NamedContent<'_>) -> Read<Value> {
    let notebook: Value = serde_json::from_slice(content.bytes).map_err(UnreadableContent::of)?;
    match notebook["cells"].is_array() {
        true => Ok(notebook),
        false => Err(UnreadableContent(
            "it has no list of cells: formats before version 4 are not read".to_owned(),
        )),
    }
}

fn cells(notebook: &Value) -> &[Value] {
    notebook["cells"].as_array().map_or(&[], Vec::as_slice)
}

fn ids(notebook: &Value) -> impl Iterator<Item = &str> {
    cells(notebook)
        .iter()
        .filter_map(|cell| cell["id"].as_str())
}

/// True if each cell has an id of its own.
fn has_ids(notebook: &Value) -> bool {
    let distinct: HashSet<&str> = ids(notebook).collect();
    !distinct.is_empty() && distinct.len() == cells(notebook).len()
}

/// The facts. `by_ids`: the ids name the cells.
fn facts(notebook: &Value, by_ids: bool) -> FileFacts {
    let cells = cells(notebook);
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
    let sources = cells.iter().enumerate().map(|(at, cell)| {
        let value = json!({"type": cell["cell_type"], "source": joined(&cell["source"])});
        (name(cell, at, by_ids), value)
    });
    match by_ids {
        true => facts.parts(("cell", "cells"), sources),
        false => facts.positions(("cell", "cells"), sources),
    }
    let outputs = cells.iter().enumerate().filter_map(|(at, cell)| {
        let outputs = cell["outputs"].as_array().filter(|all| !all.is_empty())?;
        let told: Vec<Value> = outputs.iter().map(output).collect();
        Some((name(cell, at, by_ids), json!({"outputs": told})))
    });
    let words = ("cell's output", "cells' outputs");
    match by_ids {
        true => facts.parts(words, outputs),
        false => facts.positions(words, outputs),
    }
    facts
}

fn name(cell: &Value, at: usize, by_ids: bool) -> String {
    match cell["id"].as_str() {
        Some(id) if by_ids => id.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A notebook with a cell for each id and source.
    fn notebook(cells: &[(&str, &str)]) -> Vec<u8> {
        let cells = cells.iter().map(
            |(id, source)| json!({"cell_type": "code", "id": id, "source": source, "outputs": []}),
        );
        let cells: Vec<Value> = cells.collect();
        json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
            .to_string()
            .into_bytes()
    }

    fn said(old: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<String> {
        let [old, new] = [notebook(old), notebook(new)];
        let content = |bytes| NamedContent {
            name: "a.ipynb",
            bytes,
            key: &[],
        };
        let changes = Notebook.changes(content(&old), content(&new));
        changes.unwrap().sentences()
    }

    #[test]
    fn cells_of_notebooks_without_a_common_id_are_aligned_by_their_sources() {
        let old = [("a", "import x"), ("b", "dt = 0.1"), ("c", "fit(dt)")];
        let new = [("d", "import x"), ("e", "dt = 0.01"), ("f", "fit(dt)")];
        let found = said(&old, &new);
        assert!(
            found[0].starts_with("1 cell changed: `cell 2`"),
            "{found:?}"
        );
        assert!(found.contains(&"`dt` 0.1 → 0.01".to_owned()), "{found:?}");
        // One common id is enough: cells may have been replaced.
        let new = [("a", "import x"), ("e", "dt = 0.01"), ("c", "fit(dt)")];
        let found = said(&old, &new);
        assert!(
            found.contains(&"1 cell removed: `b`".to_owned()),
            "{found:?}"
        );
    }
}
