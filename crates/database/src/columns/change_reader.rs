//! Reads the shapes of changes.

use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, FromTable, Ident, Insert, Merge,
    MergeAction, MergeInsertKind, MergeUpdateKind, ObjectName, OnConflictAction, OnInsert, SetExpr,
    TableObject, Update, UpdateTableFromKind,
};

use super::shape::{Body, Change, Insertion, Item, Names, Query, Select};
use super::shape_reader::{ShapeReader, joined, plain};
use crate::sql_dialect::SqlDialect;

impl ShapeReader {
    pub(super) fn insertion(self, insert: &Insert) -> Change {
        let TableObject::TableName(name) = &insert.table else {
            return Change::default();
        };
        let alias = insert.table_alias.as_ref().map(|alias| &alias.alias);
        let mut change = Change {
            from: self.target(name, alias),
            has_excluded: self.0 == SqlDialect::Postgres,
            returning: self.items(insert.returning.as_deref().unwrap_or_default()),
            ..Change::default()
        };
        if let Some(source) = &insert.source {
            let width = match &*source.body {
                SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
                _ => None,
            };
            let columns = insert.columns.iter().map(|column| self.last(column));
            // MariaDB: INSERT INTO t () VALUES () gives no column a value.
            if width != Some(0) {
                change.insertions.push(Insertion {
                    columns: columns.collect(),
                    width,
                    source: Some(self.query(source)),
                });
            }
        }
        self.assign(&insert.assignments, &mut change);
        match &insert.on {
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => {
                self.assign(assignments, &mut change);
            }
            Some(OnInsert::OnConflict(conflict)) => {
                if let Some(ConflictTarget::Columns(columns)) = &conflict.conflict_target {
                    let columns = columns.iter().map(|column| vec![self.ident(column)]);
                    change.names.columns.extend(columns);
                }
                if let OnConflictAction::DoUpdate(update) = &conflict.action {
                    self.assign(&update.assignments, &mut change);
                    change.names.add(self.names(&update.selection));
                }
            }
            _ => (),
        }
        change
    }

    pub(super) fn update(self, update: &Update) -> Change {
        let mut from = self.joined(&update.table);
        if let Some(
            UpdateTableFromKind::BeforeSet(others) | UpdateTableFromKind::AfterSet(others),
        ) = &update.from
        {
            from.extend(self.all_joined(others));
        }
        let mut change = Change {
            from,
            names: self.names(&update.selection),
            returning: self.items(update.returning.as_deref().unwrap_or_default()),
            ..Change::default()
        };
        change.names.add(self.names(&update.order_by));
        change.names.add(self.names(&update.limit));
        self.assign(&update.assignments, &mut change);
        change
    }

    fn assign(self, assignments: &[Assignment], change: &mut Change) {
        for assignment in assignments {
            match &assignment.target {
                AssignmentTarget::ColumnName(name) => change.assigned.push(self.written(name)),
                AssignmentTarget::Tuple(names) => {
                    let names = names.iter().map(|name| self.written(name));
                    change.assigned.extend(names);
                }
            }
            change.names.add(self.names(&assignment.value));
        }
    }

    pub(super) fn deletion(self, delete: &Delete) -> Change {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let mut from = self.all_joined(from);
        // MariaDB: DELETE FROM a USING a JOIN b names the target twice.
        let using = self.all_joined(delete.using.as_deref().unwrap_or_default());
        from.retain(|one| !using.contains(one));
        from.extend(using);
        let mut change = Change {
            from,
            names: self.names(&delete.selection),
            returning: self.items(delete.returning.as_deref().unwrap_or_default()),
            ..Change::default()
        };
        change.names.add(self.names(&delete.order_by));
        change.names.add(self.names(&delete.limit));
        change
    }

    pub(super) fn merge(self, merge: &Merge) -> Change {
        let mut change = Change {
            from: [&merge.table, &merge.source]
                .map(|factor| joined(self.relation(factor)))
                .into(),
            names: self.names(&*merge.on),
            ..Change::default()
        };
        for clause in &merge.clauses {
            change.names.add(self.names(&clause.predicate));
            match &clause.action {
                MergeAction::Insert(insert) => {
                    let width = match &insert.kind {
                        MergeInsertKind::Values(values) => {
                            change.names.add(self.names(values));
                            values.rows.first().map(|row| row.content.len())
                        }
                        MergeInsertKind::Row | MergeInsertKind::Wildcard => None,
                    };
                    change.insertions.push(Insertion {
                        columns: insert.columns.iter().map(|one| self.last(one)).collect(),
                        width,
                        source: None,
                    });
                }
                MergeAction::Update(update) => {
                    if let MergeUpdateKind::Set(assignments) = &update.kind {
                        self.assign(assignments, &mut change);
                    }
                }
                MergeAction::Delete { .. } | MergeAction::DoNothing { .. } => (),
            }
        }
        change
    }

    pub(super) fn copy(self, table: &ObjectName, columns: &[Ident], to: bool) -> Vec<Query> {
        let from = self.target(table, None);
        let columns = columns.iter().map(|column| self.ident(column));
        if !to {
            return vec![plain(Body::Change(Box::new(Change {
                from,
                insertions: vec![Insertion {
                    columns: columns.collect(),
                    width: None,
                    source: None,
                }],
                ..Change::default()
            })))];
        }
        let mut items: Vec<Item> = columns
            .map(|column| Item::Value {
                names: Names {
                    columns: vec![vec![column.clone()]],
                    is_plain: true,
                    ..Names::default()
                },
                name: Some(column),
            })
            .collect();
        if items.is_empty() {
            items.push(Item::All);
        }
        vec![plain(Body::Select(Box::new(Select {
            from,
            items,
            ..Select::default()
        })))]
    }
}
