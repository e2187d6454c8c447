//! The rows of the views `facts` and `changes`.
//!
//! In: the key of a version. Out: rows of an inspector's answer. An answer costs time. So each
//! version is a part of its own, and the bound of time is checked before it.

use std::collections::VecDeque;

use backstory_store::EntityKey;
use serde_json::Value;

use super::{Row, Rows};
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::inspections::{Inspection, Inspections};

impl Rows {
    pub(super) fn fact_rows(&mut self, key: EntityKey) -> Result<VecDeque<Row>> {
        let found = self.asked(|inspections| inspections.facts(key))?;
        self.inspection_rows(key, found, |row, (name, value), _| {
            row.extend([Cell::text(name), value.as_ref().map_or(Cell::Null, cell)]);
        })
    }

    pub(super) fn change_rows(&mut self, key: EntityKey) -> Result<VecDeque<Row>> {
        let found = self.asked(|inspections| inspections.changes(key))?;
        self.inspection_rows(key, found, |row, (sentence, _), former| {
            row.extend([Cell::text(sentence), Cell::of(former, Cell::text)]);
        })
    }

    fn asked(
        &self,
        ask: impl FnOnce(&dyn Inspections) -> std::result::Result<Option<Inspection>, String>,
    ) -> Result<Option<Inspection>> {
        let found = self.inspections.map(ask).transpose();
        Ok(found.map_err(Error::Failed)?.flatten())
    }

    /// One row for each part of an answer, and one for an error. `add` appends the two cells of a
    /// part.
    fn inspection_rows(
        &mut self,
        key: EntityKey,
        found: Option<Inspection>,
        add: impl Fn(&mut Row, &(String, Option<Value>), Option<&str>),
    ) -> Result<VecDeque<Row>> {
        let Some(found) = found else {
            return Ok(VecDeque::new());
        };
        let path = self.store.entity(key)?.path;
        let head = vec![
            Cell::Integer(key.0 as i64),
            self.run(key.run())?,
            Cell::Bytes(path),
            Cell::text(&found.inspector),
        ];
        let former = found.former_run.as_deref();
        let mut rows: VecDeque<Row> = found
            .said
            .iter()
            .map(|part| {
                let mut row = head.clone();
                add(&mut row, part, former);
                row.push(Cell::Null);
                row
            })
            .collect();
        if let Some(error) = &found.error {
            let mut row = head;
            row.extend([Cell::Null, Cell::Null, Cell::text(error)]);
            rows.push_back(row);
        }
        Ok(rows)
    }
}

/// A text or a number as SQL has it; anything else as JSON.
fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(truth) => Cell::Integer((*truth).into()),
        Value::String(text) => Cell::text(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cell::Integer(whole),
            (None, Some(real)) => Cell::Real(real),
            (None, None) => Cell::text(&number.to_string()),
        },
        other => Cell::text(&other.to_string()),
    }
}
