//! The rows that a commit changed, and their tables.

use std::collections::BTreeSet;

use super::TransactionRecorder;
use crate::catalog::{Catalog, TableName};
use crate::commit::Commit;
use crate::database_records::ResourceUse;
use crate::row_change::{RowChange, RowOperation, StreamTable};
use crate::transaction_facts::row_fact;

impl TransactionRecorder {
    /// Records the rows that a commit changed, and their tables.
    pub(super) fn change_rows(
        &mut self,
        activity: u32,
        commit: &Commit<'_>,
        sure: bool,
        catalog: &Catalog,
    ) {
        let time = commit.time;
        let mut changed = BTreeSet::new();
        for (at, change) in commit.changes.iter().enumerate() {
            let maker = commit.makers.get(at).copied().flatten();
            let Some(table) = commit.tables.get(&change.table) else {
                continue;
            };
            let name = (table.schema.clone(), table.name.clone());
            let made = (change, maker);
            self.change_row(activity, &name, table, made, (sure, time), catalog);
            let whole = change.operation == RowOperation::Truncate;
            if changed.insert(name.clone()) || whole {
                let how = if whole {
                    ResourceUse::Write
                } else {
                    ResourceUse::Change
                };
                let name = self.names.table(&name);
                self.writer.used(activity, (&name, 0), how, sure, time);
            }
        }
    }

    /// Records one change of a row: the version before it, the version after it, and a fact.
    fn change_row(
        &mut self,
        activity: u32,
        name: &TableName,
        table: &StreamTable,
        (change, maker): (&RowChange, Option<usize>),
        (sure, time): (bool, i64),
        catalog: &Catalog,
    ) {
        let key = key_of(catalog, name, table);
        let former = change
            .before
            .as_ref()
            .and_then(|image| self.names.row(name, &key, image));
        let latter = change
            .after
            .as_ref()
            .and_then(|image| self.names.row(name, &key, image));
        let former = match change.operation {
            RowOperation::Update => former.or_else(|| latter.clone()),
            _ => former,
        };
        if let Some(row) = &former {
            let moved = latter.as_ref() != Some(row);
            if change.operation == RowOperation::Update {
                self.writer
                    .used(activity, (row, 0), ResourceUse::Read, sure, time);
            }
            if moved {
                self.writer
                    .used(activity, (row, 0), ResourceUse::Delete, sure, time);
            }
        }
        if let Some(row) = &latter {
            self.writer
                .used(activity, (row, 0), ResourceUse::Write, sure, time);
        }
        let moved = former.clone().filter(|_| latter != former);
        let moved = moved.filter(|_| latter.is_some());
        let Some(row) = latter.or(former) else { return };
        let fact = row_fact((&*row, moved.as_deref()), table, change, maker);
        self.writer
            .fact(activity, &self.names.row_kind(), &fact, time);
    }
}

/// The key of a table: its primary key, else its replica identity.
fn key_of(catalog: &Catalog, name: &TableName, table: &StreamTable) -> Vec<String> {
    let key = catalog
        .table(name)
        .map(|table| table.key.clone())
        .unwrap_or_default();
    match key.is_empty() {
        false => key,
        true => table.identity.clone(),
    }
}
