//! Tables of separated values (CSV, TSV): columns with statistics, rows, and changed cells.

use backstory_comparison::{ContentDifference, FormatDifference, TableDifference, excerpts};
use backstory_inspection::file_parts::{PartAnswer, PartName};
use backstory_inspection::format_answer::TableRows;
use backstory_inspection::question::Portion;
use serde_json::{Value, json};

use super::plain_text::PlainText;
use crate::changes::FileChanges;
use crate::parts::delimited_cell;
use crate::tables::cell_comparison;
use crate::tables::delimited_rows::{self, separator};
use crate::text_encoding::decoded;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct Delimited;

/// The most distinct values of a column that are counted.
const DISTINCT: usize = 10_000;

/// The most changed cells that a sentence shows.
const SHOWN: usize = 3;

/// Counts and limits of the values of a column.
#[derive(Default)]
struct ColumnStatistics<'t> {
    empty: usize,
    numbers: usize,
    texts: usize,
    sum: f64,
    least: Option<f64>,
    most: Option<f64>,
    distinct: std::collections::HashSet<&'t [u8]>,
}

impl<'t> ColumnStatistics<'t> {
    fn add(&mut self, cell: &'t [u8]) {
        if self.distinct.len() <= DISTINCT {
            self.distinct.insert(cell);
        }
        let text = std::str::from_utf8(cell).unwrap_or("?").trim();
        match text.parse::<f64>() {
            _ if text.is_empty() => self.empty += 1,
            Ok(number) if number.is_finite() => {
                self.numbers += 1;
                self.sum += number;
                self.least = Some(self.least.map_or(number, |least| least.min(number)));
                self.most = Some(self.most.map_or(number, |most| most.max(number)));
            }
            _ => self.texts += 1,
        }
    }

    fn json(&self) -> Value {
        let kind = match (self.numbers, self.texts) {
            (0, 0) => "empty",
            (_, 0) => "number",
            (0, _) => "text",
            _ => "mixed",
        };
        let mut object = json!({"type": kind, "empty": self.empty});
        if self.distinct.len() <= DISTINCT {
            object["distinct"] = json!(self.distinct.len());
        }
        if let (Some(least), Some(most)) = (self.least, self.most) {
            object["min"] = json!(least);
            object["max"] = json!(most);
            object["mean"] = json!(self.sum / self.numbers as f64);
        }
        object
    }
}

impl Inspector for Delimited {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        delimited_cell::place(content.bytes, name, |text| separator(content.name, text))
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let text = decoded(content.bytes);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator(content.name, &text))
            .has_headers(false)
            .from_reader(&text[..]);
        let rows: Result<Vec<csv::ByteRecord>, _> = reader.byte_records().collect();
        let rows = rows.map_err(UnreadableContent::of)?;
        let mut facts = FileFacts::default();
        let Some((heading, rows)) = rows.split_first() else {
            facts.value("rows", 0);
            return Ok(facts);
        };
        facts.value("rows", rows.len());
        let columns = heading.iter().enumerate().map(|(at, name)| {
            let mut column = ColumnStatistics::default();
            rows.iter()
                .filter_map(|row| row.get(at))
                .for_each(|cell| column.add(cell));
            (String::from_utf8_lossy(name).into_owned(), column.json())
        });
        facts.parts(("column", "columns"), columns);
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        by_cells(self, [old, new], || PlainText.changes(old, new))
    }

    fn difference(
        &self,
        old: NamedContent<'_>,
        new: NamedContent<'_>,
    ) -> Read<Option<FormatDifference>> {
        cell_comparison::between(old, new, |content| {
            delimited_rows::table(content.name, content.bytes)
        })
    }

    fn rows(&self, content: NamedContent<'_>, part: Portion) -> Read<TableRows> {
        delimited_rows::rows(content.name, content.bytes, part)
    }
}

/// The changes between two tables, whatever they are stored in. `otherwise`: those without cells,
/// if the cells cannot be compared.
pub(super) fn by_cells(
    inspector: &dyn Inspector,
    [old, new]: [NamedContent<'_>; 2],
    otherwise: impl FnOnce() -> Read<FileChanges>,
) -> Read<FileChanges> {
    if let Ok(Some(FormatDifference::Table(table))) = inspector.difference(old, new) {
        return Ok(of_table(&table));
    }
    let mut changes = otherwise()?;
    changes.without_key(new.key);
    Ok(changes)
}

fn of_table(table: &TableDifference) -> FileChanges {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut changes = FileChanges::default();
    let counts = TableDifference {
        key_not_used_because: None,
        ..table.clone()
    };
    changes.say(ContentDifference::Table(counts).summary(&|name| format!("`{}`", text(name))));
    if let Some(why) = &table.key_not_used_because {
        changes.say(format!("the key was not used, because {why}"));
    }
    for cell in table.cells.iter().take(SHOWN) {
        let [row, column, a, b] =
            [&cell.row, &cell.column, &cell.a, &cell.b].map(|part| text(part));
        let (a, b) = excerpts(&a, &b);
        changes.say(format!("`{column}` of {row} {a} → {b}"));
    }
    for (keys, verb) in [
        (&table.keys_removed, "removed"),
        (&table.keys_added, "added"),
    ] {
        let shown: Vec<String> = keys.iter().take(SHOWN).map(|key| text(key)).collect();
        let more = if keys.len() > SHOWN { ", …" } else { "" };
        if !shown.is_empty() {
            changes.say(format!("{verb}: {}{more}", shown.join(", ")));
        }
    }
    let names = |names: &[Vec<u8>]| -> Value { names.iter().map(|name| text(name)).collect() };
    let cells = table.cells.iter().map(|cell| {
        json!({
            "row": text(&cell.row),
            "column": text(&cell.column),
            "from": text(&cell.a),
            "to": text(&cell.b),
        })
    });
    for (name, value) in [
        ("columns_removed", names(&table.columns_removed)),
        ("columns_added", names(&table.columns_added)),
        ("rows_removed", json!(table.rows_removed)),
        ("rows_added", json!(table.rows_added)),
        ("rows_changed", json!(table.rows_changed)),
        ("cells_changed", json!(table.cells_changed)),
        ("cells", cells.collect()),
        ("keys_removed", names(&table.keys_removed)),
        ("keys_added", names(&table.keys_added)),
    ] {
        changes.detail(name, &value);
    }
    if let Some(why) = &table.key_not_used_because {
        changes.detail("key_not_used_because", &json!(why));
    }
    changes
}
