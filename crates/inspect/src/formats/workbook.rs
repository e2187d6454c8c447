//! Workbooks (.xlsx, .ods): authors and other properties, sheets, cells, and formulas.

use std::collections::HashMap;
use std::io::Cursor;

use backstory_inspection::file_parts::{PartAnswer, PartName};
use calamine::{Data, Reader, open_workbook_auto_from_rs};
use serde_json::{Value, json};

use super::markup::DocumentParts;
use super::{opendocument, word};
use crate::changes::{self, FileChanges};
use crate::facts::FilePart;
use crate::parts::{cell_reference, workbook_cell, zip_member};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct Workbook;

/// The most cells of a workbook that are read.
const CELLS: usize = 200_000;

/// The most sheets that are looked at for another name.
const RENAMED: usize = 50;

const SHEETS: (&str, &str) = ("sheet", "sheets");
const CELLS_OF_SHEETS: (&str, &str) = ("cell", "cells");
const FORMULAS: (&str, &str) = ("formula", "formulas");

impl Inspector for Workbook {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        match name {
            PartName::Cell(cell) => workbook_cell::place(content.bytes, cell),
            PartName::Member(member) => zip_member::place(content.bytes, member),
        }
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut facts = FileFacts::default();
        let mut document = DocumentParts::open(content.bytes)?;
        word::properties(&mut document, &mut facts)?;
        opendocument::properties(&mut document, &mut facts)?;
        let mut workbook = open_workbook_auto_from_rs(Cursor::new(content.bytes))
            .map_err(UnreadableContent::of)?;
        let mut sheets = Vec::new();
        let mut cells = Vec::new();
        let mut formulas = Vec::new();
        for name in workbook.sheet_names() {
            let range = workbook
                .worksheet_range(&name)
                .map_err(UnreadableContent::of)?;
            let (rows, columns) = range.get_size();
            sheets.push((name.clone(), json!({"rows": rows, "columns": columns})));
            let (top, left) = range.start().unwrap_or_default();
            for (row, column, cell) in range.used_cells() {
                if cells.len() == CELLS {
                    let why = format!("it has more than {CELLS} cells");
                    return Err(UnreadableContent(why));
                }
                let place = cell_reference::name(top as usize + row, left as usize + column);
                cells.push((format!("{name}!{place}"), value(cell)));
            }
            // A program that writes a formula without a value leaves its cell empty.
            let range = match workbook.worksheet_formula(&name) {
                Ok(range) => range,
                Err(error) => {
                    facts.value("formulas not read", error.to_string());
                    continue;
                }
            };
            let (top, left) = range.start().unwrap_or_default();
            for (row, column, formula) in range.used_cells() {
                if formulas.len() == CELLS {
                    let why = format!("it has more than {CELLS} formulas");
                    return Err(UnreadableContent(why));
                }
                let place = cell_reference::name(top as usize + row, left as usize + column);
                formulas.push((format!("{name}!{place}"), json!(formula)));
            }
        }
        facts.parts(SHEETS, sheets);
        facts.parts(CELLS_OF_SHEETS, cells);
        if !formulas.is_empty() {
            facts.parts(FORMULAS, formulas);
        }
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let side = |which: &str, content| {
            let facts = self.facts(content);
            facts.map_err(|error| UnreadableContent(format!("the {which} content: {error}")))
        };
        let (mut before, after) = (side("first", old)?, side("second", new)?);
        let mut changes = FileChanges::default();
        for (from, to) in renamed_sheets(&before, &after) {
            changes.say(format!("sheet `{from}` renamed to `{to}`"));
            rename_sheet(&mut before, &from, &to);
        }
        changes.append(changes::between(&before, &after));
        Ok(changes)
    }
}

/// The parts with these words.
fn parts<'f>(
    facts: &'f FileFacts,
    words: (&'static str, &'static str),
) -> impl Iterator<Item = &'f FilePart> {
    let lists = facts.lists.iter().filter(move |list| list.words == words);
    lists.flat_map(|list| &list.parts)
}

/// The cells of a sheet by their places.
fn cells<'f>(facts: &'f FileFacts, sheet: &str) -> HashMap<&'f str, &'f Value> {
    let all = parts(facts, CELLS_OF_SHEETS);
    let own = all.filter_map(|cell| {
        let place = cell.name.strip_prefix(sheet)?.strip_prefix('!')?;
        Some((place, &cell.value))
    });
    own.collect()
}

/// Sheets that have another name, and at least half of their cells.
fn renamed_sheets(old: &FileFacts, new: &FileFacts) -> Vec<(String, String)> {
    let only = |one: &FileFacts, other: &FileFacts| -> Vec<String> {
        let is_there = |name: &str| parts(other, SHEETS).any(|sheet| sheet.name == name);
        let names = parts(one, SHEETS).map(|sheet| sheet.name.clone());
        names.filter(|name| !is_there(name)).take(RENAMED).collect()
    };
    let come = only(new, old).into_iter();
    let mut come: Vec<_> = come.map(|to| (cells(new, &to), to)).collect();
    let mut renamed = Vec::new();
    for from in only(old, new) {
        let before = cells(old, &from);
        let alike = |after: &HashMap<_, _>| {
            let same = before
                .iter()
                .filter(|(place, value)| after.get(*place) == Some(*value));
            let same = same.count();
            (same > 0 && same * 2 >= before.len().max(after.len())).then_some(same)
        };
        let found = come.iter().enumerate();
        let found = found.filter_map(|(number, (after, _))| Some((alike(after)?, number)));
        if let Some((_, number)) = found.max_by_key(|(same, _)| *same) {
            renamed.push((from, come.remove(number).1));
        }
    }
    renamed
}

fn rename_sheet(facts: &mut FileFacts, from: &str, to: &str) {
    for list in &mut facts.lists {
        for part in &mut list.parts {
            if list.words == SHEETS && part.name == from {
                part.name = to.to_owned();
            } else if [CELLS_OF_SHEETS, FORMULAS].contains(&list.words)
                && let Some(place) = part
                    .name
                    .strip_prefix(from)
                    .and_then(|rest| rest.strip_prefix('!'))
            {
                part.name = format!("{to}!{place}");
            }
        }
    }
}

/// A cell's value. Dates are numbers of days, as the file has them.
fn value(cell: &Data) -> Value {
    match cell {
        Data::Int(number) => json!(number),
        Data::Float(number) => json!(number),
        Data::Bool(value) => json!(value),
        Data::Empty => Value::Null,
        other => json!(other.to_string()),
    }
}
