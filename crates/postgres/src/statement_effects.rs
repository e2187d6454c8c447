//! The changes that a statement of PostgreSQL can have made.
//!
//! In: a statement, and the catalog. Out: the tables that its functions change in any way, and the
//! effects that its text tells. A statement with any other effect has none of these.

use std::collections::{BTreeSet, HashMap};

use backstory_database::catalog::{Catalog, TableName};
use backstory_database::logged_transaction::ExecutedStatement;
use backstory_database::row_change::{ColumnValue, RowChange, RowOperation, StreamTable};
use backstory_database::sql_dialect::WrittenName;

use crate::pinned_columns::{Pin, PinnedColumn, RowEffect, effects};

/// The changes that a statement can have made.
#[derive(Debug, Clone)]
pub(crate) struct StatementEffects {
    /// The tables that its functions change, in any way.
    free: BTreeSet<TableName>,
    /// The effects that its text tells.
    known: Vec<(TableName, RowEffect)>,
}

impl StatementEffects {
    /// Those of a statement. `None`: it may have made any change.
    pub(crate) fn of(statement: &ExecutedStatement, catalog: &Catalog) -> Option<StatementEffects> {
        let mut found = StatementEffects {
            free: BTreeSet::new(),
            known: Vec::new(),
        };
        if let Ok(tables) = &statement.tables {
            let called = catalog.routines.tables_of_calls(&tables.functions);
            match resolved(called.writes.iter(), statement, catalog) {
                Some(tables) if !called.changes_any => found.free.extend(tables),
                _ => return None,
            }
        }
        for effect in effects(&statement.text, statement.parameters.as_deref())? {
            let table = catalog.resolve(&effect.table, &statement.path)?;
            // Columns of a view have names of their own.
            if catalog.behind(&table) != BTreeSet::from([table.clone()]) {
                return None;
            }
            found.known.push((table, effect));
        }
        Some(found)
    }

    /// True if it can have made a change in any way: its functions did, or a trigger or a foreign
    /// key of the table.
    pub(crate) fn is_free(&self, name: &TableName, catalog: &Catalog) -> bool {
        self.free.contains(name) || catalog.routines.may_change(name)
    }

    /// True if an effect that its text tells fits a change of this table.
    pub(crate) fn fits(&self, name: &TableName, table: &StreamTable, change: &RowChange) -> bool {
        let mut known = self.known.iter();
        known.any(|(at, effect)| at == name && fits(effect, table, change))
    }

    /// The number of statements in its text that change rows.
    pub(crate) fn parts(&self) -> usize {
        self.known.len()
    }
}

/// The tables behind names. `None` if one is not in the catalog.
pub(crate) fn resolved<'n>(
    names: impl Iterator<Item = &'n WrittenName>,
    statement: &ExecutedStatement,
    catalog: &Catalog,
) -> Option<BTreeSet<TableName>> {
    let mut found = BTreeSet::new();
    for name in names {
        let table = catalog.resolve(name, &statement.path)?;
        found.extend(catalog.behind(&table));
    }
    Some(found)
}

/// True if a statement with this effect can have made a change.
fn fits(effect: &RowEffect, table: &StreamTable, change: &RowChange) -> bool {
    let is_operation = effect.operations.contains(&change.operation);
    // An insertion into a table changes no other row, so its pins are of insertions alone.
    let pinned = effect.operations[0] == change.operation;
    is_operation
        && assigns(effect, change)
        && (!pinned || effect.pins.iter().all(|pin| holds(pin, table, change)))
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
    let mut changed = after.iter().filter(|(name, value)| is_changed(name, value));
    let mut is_same = true;
    let assigned = changed.any(|(name, _)| {
        is_same = false;
        effect.assigned.contains(name)
    });
    assigned || is_same
}

/// False if the changed row certainly has another value.
fn holds(pin: &Pin, table: &StreamTable, change: &RowChange) -> bool {
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
        _ if table.texts.contains(column) => wanted.trim_end() == value.trim_end(),
        (Some(value), Some(wanted)) => value == wanted,
        _ => true,
    };
    pin.values.iter().any(fits)
}
