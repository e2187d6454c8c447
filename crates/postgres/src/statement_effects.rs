//! The changes that a statement of PostgreSQL can have made.
//!
//! In: a statement, and the catalog. Out: the tables that it possibly changes in any way, and the
//! effects that its text tells.
//!
//! Invariant: a change that a statement made fits it. So an effect counts only where the text tells
//! the rows for certain:
//!
//! - A text with a redacted literal tells no rows.
//! - A statement that executes others can have made any change: `EXECUTE`, `FETCH`. So can one that
//!   changes a table which the catalog does not have.
//! - The changes of partitions have the names of partitions, which the text does not have.
//! - Triggers, foreign keys, rules and functions change further tables.

use std::collections::HashMap;

use backstory_database::catalog::{Catalog, TableName};
use backstory_database::hidden_work::HiddenWork;
use backstory_database::logged_transaction::ExecutedStatement;
use backstory_database::possible_changes::PossibleChanges;
use backstory_database::row_change::{ColumnValue, RowChange, RowOperation, StreamTable};
use backstory_database::sql_dialect::WrittenName;
use backstory_database::statement_secrets::is_redacted;

use crate::pinned_columns::{Pin, PinnedColumn, RowEffect, effects};

/// Whether a statement can have made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementFit {
    No,
    /// As its only change of that row.
    OncePerRow,
    /// As one of several changes of that row.
    AnyTimes,
}

/// The changes that a statement can have made.
#[derive(Debug, Clone)]
pub(crate) struct StatementEffects {
    /// The tables that it possibly changes in any way.
    any_way: PossibleChanges,
    /// The effects that its text tells.
    told: Vec<RowEffect>,
}

impl StatementEffects {
    /// Those of a statement. `None`: it may have made any change. With `tells_rows`, its text is
    /// read for the rows that it changes, and else for the tables alone.
    pub(crate) fn of(
        statement: &ExecutedStatement,
        catalog: &Catalog,
        tells_rows: bool,
    ) -> Option<StatementEffects> {
        let tables = statement.tables.as_ref().ok()?;
        if tables.hidden > HiddenWork::Procedure {
            return None;
        }
        // The parser takes a word that it does not know here for a table: `UPDATE ONLY a`.
        let is_known = |name: &WrittenName| catalog.resolve(name, &statement.path).is_some();
        if !tables.row_targets.iter().all(is_known) {
            return None;
        }
        let unnamed = catalog.unnamed_calls(&tables.reads);
        let mut any_way = catalog.changes_of_calls(tables.functions.iter().chain(&unnamed))?;
        any_way.extend(catalog.changes_after(tables.row_targets.iter().cloned())?);
        // Columns of a view have names of their own, and a rule can replace the statement.
        let is_view = |name: &WrittenName| catalog.views_named(name).next().is_some();
        if tables.row_targets.iter().any(is_view) {
            return None;
        }
        let text = Some(&statement.text).filter(|text| tells_rows && !is_redacted(text));
        let told = text.and_then(|text| effects(text, statement.parameters.as_deref()));
        if told.is_none() {
            tables
                .row_targets
                .iter()
                .for_each(|name| any_way.add(name.clone()));
        }
        Some(StatementEffects {
            any_way,
            told: told.unwrap_or_default(),
        })
    }

    /// Whether it can have made a change of a table. `means`: whether a name in it can be that of
    /// the table.
    pub(crate) fn fit(
        &self,
        (name, table): (&TableName, &StreamTable),
        change: &RowChange,
        catalog: &Catalog,
        means: impl Fn(&[String]) -> bool,
    ) -> StatementFit {
        if self.any_way.has(name, catalog) {
            return StatementFit::AnyTimes;
        }
        // A trigger can give other values than the text, and change a row again.
        let has_trigger = catalog.routines.may_change(name);
        let is_loose = catalog.has_loose_texts;
        let fits = |effect: &&RowEffect| has_trigger || fits(effect, table, change, is_loose);
        let told = self.told.iter().filter(|effect| means(&effect.table));
        match told.filter(fits).count() {
            0 => StatementFit::No,
            _ if has_trigger || self.told.len() > 1 => StatementFit::AnyTimes,
            _ => StatementFit::OncePerRow,
        }
    }
}

/// True if a statement with this effect can have made a change. `is_loose`: texts that differ may
/// be equal.
fn fits(effect: &RowEffect, table: &StreamTable, change: &RowChange, is_loose: bool) -> bool {
    let is_operation = effect.operations.contains(&change.operation);
    // An insertion into a table changes no other row, so its pins are of insertions alone.
    let pinned = effect.operations.first() == Some(&change.operation);
    let holds = |pin: &Pin| holds(pin, table, change, is_loose);
    is_operation && assigns(effect, change) && (!pinned || effect.pins.iter().all(holds))
}

/// False if an update changed none of the columns that the statement gives a value.
fn assigns(effect: &RowEffect, change: &RowChange) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return true;
    };
    if effect.assigned.is_empty() || !change.whole_before {
        return true;
    }
    let before: HashMap<&str, &ColumnValue> = before
        .iter()
        .map(|(name, value)| (&**name, value))
        .collect();
    let is_changed = |name: &str, value: &ColumnValue| {
        *value != ColumnValue::Unchanged && before.get(name).is_some_and(|former| *former != value)
    };
    let mut changed = after
        .iter()
        .filter(|(name, value)| is_changed(name, value))
        .peekable();
    changed.peek().is_none() || changed.any(|(name, _)| effect.assigned.contains(name))
}

/// False if the changed row certainly has another value.
fn holds(pin: &Pin, table: &StreamTable, change: &RowChange, is_loose: bool) -> bool {
    let column = match &pin.column {
        PinnedColumn::Named(name) => name,
        PinnedColumn::First => match table.columns.first() {
            Some((name, _)) => name,
            None => return true,
        },
    };
    let images = match (change.operation, pin.after) {
        (RowOperation::Delete, _) | (_, false) => [&change.before, &change.after],
        (_, true) => [&change.after, &None],
    };
    let mut values = images.into_iter().flatten().flatten();
    let value = values.find_map(|(name, value)| match value {
        ColumnValue::Text(text) if name == column => Some(text),
        _ => None,
    });
    let Some(value) = value else { return true };
    let number = |text: &str| text.parse::<i64>().ok();
    let fits = |wanted: &String| match (number(value), number(wanted)) {
        _ if table.texts.contains(column) => {
            // A condition compares by the collation of the column.
            is_loose && !pin.after || wanted.trim_end() == value.trim_end()
        }
        (Some(value), Some(wanted)) => value == wanted,
        _ => true,
    };
    pin.values.iter().any(fits)
}
