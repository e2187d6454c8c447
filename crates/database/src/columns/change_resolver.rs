//! Resolves the changes of a statement: what it writes, and what it reads for that.

use std::collections::BTreeSet;

use super::relations::{BoundRelation, Rows, Scope};
use super::resolver::{CommonTables, Resolver};
use super::shape::{Change, Insertion};
use super::{ColumnUses, UsedColumn, add};
use crate::sql_dialect::{SqlDialect, WrittenName};

impl Resolver<'_> {
    /// Adds what a change reads and writes. The result is what it returns.
    pub(super) fn change(
        &mut self,
        change: &Change,
        common: &CommonTables,
        outer: Option<&Scope<'_>>,
    ) -> Rows {
        let mut uses = ColumnUses::new();
        let mut relations = self.relations(&change.from, common, outer, &mut uses);
        if !change.insertions.is_empty() && change.from.len() == 1 {
            // A view's own condition is nothing that an insertion reads.
            uses.clear();
        }
        for insertion in &change.insertions {
            self.insertion(insertion, &relations, change.is_definition, common);
        }
        for name in &change.assigned {
            self.assignment(name, &relations);
        }
        if change.has_excluded
            && let Some(target) = relations.first()
        {
            let mut inserted = BoundRelation {
                name: vec!["excluded".to_owned()],
                // A name without its relation means the target.
                shared: Vec::new(),
                ..target.clone()
            };
            for column in &mut inserted.rows.columns {
                inserted.shared.push(column.name.clone());
                column.uses.clear();
            }
            relations.push(inserted);
        }
        let scope = Scope {
            relations: &relations,
            outer,
        };
        let found = self.names(&change.names, &scope, &[], common);
        add(&mut uses, &found, true);
        self.read(&uses);
        let mut rows = Rows::default();
        self.items(&change.returning, &scope, common, &mut rows);
        if !change.returning.is_empty() {
            let all = rows.all();
            self.read(&all);
        }
        rows
    }

    /// Writes the columns to which an insertion gives values.
    fn insertion(
        &mut self,
        insertion: &Insertion,
        relations: &[BoundRelation],
        is_definition: bool,
        common: &CommonTables,
    ) {
        let source = insertion.source.as_ref();
        let source = source.map(|source| self.query(source, common, None));
        if let Some(rows) = &source {
            self.read(&rows.common);
            self.read(&rows.all());
        }
        let Some(target) = relations.first() else {
            return;
        };
        let mut names = insertion.columns.clone();
        if is_definition && names.is_empty() {
            let made = source.iter().flat_map(|rows| &rows.columns);
            names = made.map(|column| column.name.clone()).collect();
        }
        if !names.is_empty() {
            for name in &names {
                self.write_column(name, target, true);
            }
            return;
        }
        let of_source = source
            .as_ref()
            .filter(|rows| !rows.lacks_columns && !rows.is_foreign && !rows.is_unsettled)
            .map(|rows| rows.columns.len());
        let width = insertion.width.or(of_source);
        let all = &target.rows.columns;
        let sure = !target.rows.is_unsettled;
        let count = width.unwrap_or(all.len()).min(all.len());
        for column in &all[..count] {
            self.write_column(&column.name, target, sure);
        }
        let unknown = target.unknown();
        unknown.into_iter().for_each(|used| self.write(used, false));
    }

    /// Writes the column of an assignment.
    fn assignment(&mut self, name: &WrittenName, relations: &[BoundRelation]) {
        let (Some(first), Some(last), Some(target)) =
            (name.first(), name.last(), relations.first())
        else {
            return;
        };
        if self.dialect == SqlDialect::Postgres {
            // The names behind the first one are those of fields in it.
            return self.write_column(first, target, true);
        }
        let qualifier = &name[..name.len() - 1];
        let has = |one: &&BoundRelation| match qualifier {
            [] => one.rows.column(last, self.dialect).is_some(),
            _ => one.is_called(qualifier, self.dialect),
        };
        let mut meant = relations.iter().filter(has);
        match (meant.next(), meant.next()) {
            (Some(only), None) => {
                let is_one = !qualifier.is_empty() || relations.len() == 1;
                self.write_column(last, only, is_one || !only.rows.is_unsettled);
            }
            (None, _) if relations.len() == 1 => self.write_column(last, target, true),
            _ => self.write(UsedColumn::Unresolved(name.join(".")), false),
        }
    }

    /// Writes a column of a relation. That of a view is the column of its table, unless a trigger
    /// takes the place of the change.
    fn write_column(&mut self, name: &str, target: &BoundRelation, sure: bool) {
        let rows = &target.rows;
        let column = rows.column(name, self.dialect);
        if let Some(table) = &rows.table {
            let name = column.map_or(name, |column| &column.name);
            let used = UsedColumn::Of(table.clone(), name.to_owned());
            // The server has found the column in this very table.
            let is_there = column.is_some() || rows.columns.is_empty();
            return self.write(used, sure && is_there);
        }
        let parts: BTreeSet<UsedColumn> = match column {
            Some(column) if column.is_plain => column.uses.keys().cloned().collect(),
            _ => BTreeSet::new(),
        };
        let view = self.catalog.resolve(&target.name, &self.path);
        let fires = view.is_some_and(|view| self.catalog.routines.may_change(&view));
        if parts.is_empty() {
            let name = format!("{}.{name}", target.name.join("."));
            return self.write(UsedColumn::Unresolved(name), false);
        }
        let sure = sure && !fires && parts.len() == 1 && !rows.is_unsettled;
        parts.into_iter().for_each(|part| self.write(part, sure));
    }
}
