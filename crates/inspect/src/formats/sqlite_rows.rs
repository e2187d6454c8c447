//! The rows of a table of SQLite, in the order of their keys, and the rows that differ between two
//! databases.
//!
//! In: two tables with the same name. Out: how many rows were added, removed and changed, and the
//! cells that changed. Invariant: one row of each table is in memory at a time, however long the
//! tables are.

use std::cmp::Ordering;

use backstory_vocabulary::counted;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Value as Json, json};

/// The most changed cells that are kept.
const KEPT: usize = 500;

/// The most bytes of a blob that are shown.
const BLOB: usize = 16;

/// A value. A text need not be UTF-8.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Cell {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
        }
    }
}

/// How rows of a table are read.
pub struct TableReader {
    pub name: String,
    pub(super) columns: Vec<Column>,
    /// SQL expressions whose values belong to one row.
    pub(super) key: Vec<String>,
    without_rowid: bool,
}

pub(super) struct Column {
    pub(super) name: String,
    kind: String,
    /// The position in the primary key, from 1. 0 outside of it.
    pub(super) key: i64,
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name of the rowid that no column has.
fn free_rowid_name(columns: &[Column]) -> Option<&'static str> {
    ["rowid", "oid", "_rowid_"].into_iter().find(|name| {
        let mut names = columns.iter();
        !names.any(|column| column.name.eq_ignore_ascii_case(name))
    })
}

impl TableReader {
    /// The reader of a table. A table has rowids unless it was declared without.
    pub fn new(
        database: &Connection,
        name: String,
        without_rowid: bool,
    ) -> rusqlite::Result<TableReader> {
        let mut query = database
            .prepare("SELECT name, type, pk FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
        let columns = query.query_map([&name], |row| {
            Ok(Column {
                name: row.get(0)?,
                kind: row.get(1)?,
                key: row.get(2)?,
            })
        })?;
        let columns = columns.collect::<rusqlite::Result<Vec<Column>>>()?;
        let mut declared: Vec<&Column> = columns.iter().filter(|one| one.key > 0).collect();
        declared.sort_by_key(|one| one.key);
        let mut key: Vec<String> = declared.iter().map(|one| quoted(&one.name)).collect();
        if key.is_empty() && !without_rowid {
            key.extend(free_rowid_name(&columns).map(str::to_owned));
        }
        Ok(TableReader {
            name,
            columns,
            key,
            without_rowid,
        })
    }

    /// The name by which a query gets the rowid. `None`: the table has no rowids, or its columns
    /// have all the names.
    pub fn rowid_name(&self) -> Option<&'static str> {
        let name = free_rowid_name(&self.columns);
        name.filter(|_| !self.without_rowid)
    }

    /// The columns with their types, in one line.
    pub fn columns(&self) -> String {
        let shown = self.columns.iter().map(|column| {
            let kind = match column.kind.as_str() {
                "" => String::new(),
                kind => format!(" {kind}"),
            };
            let key = if column.key > 0 { " (key)" } else { "" };
            format!("{}{kind}{key}", column.name)
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// The number of rows.
    pub fn count(&self, database: &Connection) -> rusqlite::Result<usize> {
        let query = format!("SELECT count(*) FROM {}", quoted(&self.name));
        database.query_row(&query, (), |row| row.get(0))
    }

    /// The names of the columns of the key.
    pub(super) fn key_names(&self) -> Vec<&str> {
        let mut declared: Vec<&Column> = self.columns.iter().filter(|one| one.key > 0).collect();
        declared.sort_by_key(|one| one.key);
        match declared.is_empty() {
            true => self.key.iter().map(String::as_str).collect(),
            false => declared.iter().map(|one| one.name.as_str()).collect(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Selects the key, then columns, in the order of the key.
    fn query(&self, columns: &[&str]) -> String {
        let columns = columns.iter().map(|name| quoted(name));
        let selected = self.key.iter().cloned().chain(columns);
        // The order must be that of `order`, whatever the column's own collation is.
        let order = self.key.iter().map(|one| format!("{one} COLLATE BINARY"));
        let order = order.collect::<Vec<_>>();
        format!(
            "SELECT {} FROM {} ORDER BY {}",
            selected.collect::<Vec<_>>().join(", "),
            quoted(&self.name),
            order.join(", ")
        )
    }
}

/// A cell that has another value.
pub struct ChangedCell {
    /// The row's key.
    pub row: String,
    pub column: String,
    pub from: String,
    pub to: String,
}

/// How two tables differ.
pub struct RowDifference {
    /// The word for the key of a row.
    pub key: String,
    removed: usize,
    added: usize,
    changed: usize,
    cells_changed: usize,
    /// The first changed cells.
    pub cells: Vec<ChangedCell>,
}

impl RowDifference {
    /// The differences in one line. `None` if all rows are the same.
    pub fn summary(&self) -> Option<String> {
        let rows = |number: usize| counted(number, "row", "rows");
        let parts = [
            (self.removed, format!("{} removed", rows(self.removed))),
            (self.added, format!("{} added", rows(self.added))),
            (self.changed, format!("{} changed", rows(self.changed))),
        ];
        let said = parts.into_iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> = said.map(|(_, part)| part).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The differences in detail.
    pub fn json(&self) -> Json {
        let cells = self.cells.iter().map(
            |cell| json!({"row": cell.row, "column": cell.column, "from": cell.from, "to": cell.to}),
        );
        json!({
            "rows_removed": self.removed,
            "rows_added": self.added,
            "rows_changed": self.changed,
            "cells_changed": self.cells_changed,
            "cells": cells.collect::<Json>(),
        })
    }
}

/// Rows in the order of their keys.
struct SortedRows<'r> {
    rows: rusqlite::Rows<'r>,
    key: usize,
    width: usize,
    /// The next row. `None` after the last one.
    next: Option<Vec<Cell>>,
}

impl SortedRows<'_> {
    fn advance(&mut self) -> rusqlite::Result<()> {
        let Some(row) = self.rows.next()? else {
            self.next = None;
            return Ok(());
        };
        let cells = (0..self.width).map(|at| row.get_ref(at).map(Cell::from));
        self.next = Some(cells.collect::<rusqlite::Result<Vec<_>>>()?);
        Ok(())
    }

    fn key(&self) -> Option<&[Cell]> {
        self.next.as_deref().map(|row| &row[..self.key])
    }
}

/// The rows that differ between two tables. Columns that only one of them has are left out.
pub fn compare(
    (old, before): (&Connection, &TableReader),
    (new, after): (&Connection, &TableReader),
) -> rusqlite::Result<RowDifference> {
    let mut found = RowDifference {
        key: match after.key.as_slice() {
            [rowid] if !after.columns.iter().any(|one| one.key > 0) => rowid.clone(),
            _ => "row".to_owned(),
        },
        removed: 0,
        added: 0,
        changed: 0,
        cells_changed: 0,
        cells: Vec::new(),
    };
    if before.key != after.key || after.key.is_empty() {
        // Rows that cannot be matched: the schema says how the key changed.
        found.removed = before.count(old)?;
        found.added = after.count(new)?;
        return Ok(found);
    }
    let both = after.columns.iter().map(|column| column.name.as_str());
    let both: Vec<&str> = both.filter(|name| before.has(name)).collect();
    let (mut left, mut right) = (
        old.prepare(&before.query(&both))?,
        new.prepare(&after.query(&both))?,
    );
    let sorted = |rows| SortedRows {
        rows,
        key: after.key.len(),
        width: after.key.len() + both.len(),
        next: None,
    };
    let mut left = sorted(left.query(())?);
    let mut right = sorted(right.query(())?);
    left.advance()?;
    right.advance()?;
    loop {
        let order = match (left.key(), right.key()) {
            (None, None) => return Ok(found),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => keys(left, right),
        };
        match order {
            Ordering::Less => found.removed += 1,
            Ordering::Greater => found.added += 1,
            Ordering::Equal => {
                if let (Some(left), Some(right)) = (&left.next, &right.next) {
                    found.rows(left, right, (after.key.len(), &both));
                }
            }
        }
        if order.is_le() {
            left.advance()?;
        }
        if order.is_ge() {
            right.advance()?;
        }
    }
}

impl RowDifference {
    /// Adds the cells that differ between two rows with the same key.
    fn rows(&mut self, old: &[Cell], new: &[Cell], (key, columns): (usize, &[&str])) {
        let cells = old[key..].iter().zip(&new[key..]);
        let differing = cells.zip(columns).filter(|((old, new), _)| !same(old, new));
        let mut any = false;
        for ((from, to), column) in differing {
            any = true;
            self.cells_changed += 1;
            if self.cells.len() < KEPT {
                self.cells.push(ChangedCell {
                    row: new[..key].iter().map(shown).collect::<Vec<_>>().join(", "),
                    column: (*column).to_owned(),
                    from: shown(from),
                    to: shown(to),
                });
            }
        }
        self.changed += usize::from(any);
    }
}

/// A value of another type is another value. `NaN` equals itself.
fn same(old: &Cell, new: &Cell) -> bool {
    match (old, new) {
        (Cell::Real(old), Cell::Real(new)) => old.to_bits() == new.to_bits(),
        (old, new) => old == new,
    }
}

fn keys(left: &[Cell], right: &[Cell]) -> Ordering {
    let pairs = left.iter().zip(right);
    let mut orders = pairs.map(|(left, right)| order(left, right));
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The order of SQLite: missing values, numbers, texts, blobs.
///
/// Source: <https://www.sqlite.org/datatype3.html>, section 4.1.
fn order(left: &Cell, right: &Cell) -> Ordering {
    let class = |cell: &Cell| match cell {
        Cell::Null => 0,
        Cell::Integer(_) | Cell::Real(_) => 1,
        Cell::Text(_) => 2,
        Cell::Blob(_) => 3,
    };
    match (left, right) {
        (Cell::Integer(left), Cell::Integer(right)) => left.cmp(right),
        (Cell::Real(left), Cell::Real(right)) => left.total_cmp(right),
        (Cell::Integer(left), Cell::Real(right)) => (*left as f64).total_cmp(right),
        (Cell::Real(left), Cell::Integer(right)) => left.total_cmp(&(*right as f64)),
        (Cell::Text(left), Cell::Text(right)) => left.cmp(right),
        (Cell::Blob(left), Cell::Blob(right)) => left.cmp(right),
        _ => class(left).cmp(&class(right)),
    }
}

pub(super) fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Cell::Blob(bytes) => {
            let start = bytes.iter().take(BLOB);
            let digits: String = start.map(|byte| format!("{byte:02x}")).collect();
            let more = if bytes.len() > BLOB { "…" } else { "" };
            format!("x'{digits}{more}'")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_ordered_as_sqlite_orders_them() {
        let database = Connection::open_in_memory().unwrap();
        let mut values: Vec<Cell> = database
            .prepare(
                "WITH t(v) AS (VALUES (NULL), (2), (-1), (1.5), (9e18), (9223372036854775807), \
                 ('b'), ('B'), ('a'), (''), (x'00'), (x''), (x'ff'), ('\u{e9}')) \
                 SELECT v FROM t ORDER BY v",
            )
            .unwrap()
            .query_map((), |row| row.get_ref(0).map(Cell::from))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let sorted = values.clone();
        values.reverse();
        values.sort_by(order);
        assert_eq!(values, sorted);
    }
}
