//! The columns that a name means.

use super::relations::{BoundRelation, Column, Scope, is_no_column, is_same};
use super::{ColumnUses, UsedColumn, add};
use crate::sql_dialect::{SqlDialect, WrittenName};

/// The meaning of a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Meaning {
    pub(super) uses: ColumnUses,
    /// It is one column of a table.
    pub(super) is_plain: bool,
}

/// The columns that a name means. `items`: those that the query returns. A name may mean one of
/// these, too.
pub(super) fn meaning(
    name: &WrittenName,
    scope: &Scope<'_>,
    items: &[Column],
    dialect: SqlDialect,
) -> Meaning {
    match &name[..] {
        [] => Meaning::default(),
        [column] => alone(column, scope, items, dialect),
        [.., _] => qualified(name, scope, dialect),
    }
}

/// The meaning of a column without its relation.
fn alone(name: &str, scope: &Scope<'_>, items: &[Column], dialect: SqlDialect) -> Meaning {
    let is_only = scope.outer.is_none() && scope.relations.len() == 1;
    for (depth, level) in scope.levels().enumerate() {
        let relations = level.relations.iter();
        let visible = relations.filter(|one| !one.shares(name, dialect));
        let found: Vec<(&BoundRelation, &Column)> = visible
            .filter_map(|one| Some((one, one.rows.column(name, dialect)?)))
            .collect();
        let mut unsettled = level.relations.iter().filter(|one| one.rows.is_unsettled);
        match &found[..] {
            [(_, column)] => {
                let sure = is_only || unsettled.next().is_none();
                return of(column, sure);
            }
            [] => {
                let unknown = level.relations.iter().any(|one| one.rows.lacks_columns);
                let changed: Vec<&BoundRelation> = unsettled.collect();
                let item = items.iter().find(|one| is_same(&one.name, name, dialect));
                if let Some(item) = item.filter(|_| depth == 0) {
                    return of(item, !unknown && changed.is_empty());
                }
                if is_no_column(name, dialect) {
                    return Meaning::default();
                }
                if let Some(table) = only_table(&changed) {
                    let used = UsedColumn::Of(table, name.to_owned());
                    return possibly(used);
                }
                if unknown {
                    return possibly(UsedColumn::Unresolved(name.to_owned()));
                }
                if level.relations.iter().any(|one| one.rows.is_foreign) {
                    return Meaning::default();
                }
            }
            // The server refuses such a name, so the catalog is another one.
            several => {
                let mut all = Meaning::default();
                for (_, column) in several {
                    add(&mut all.uses, &column.uses, false);
                }
                return all;
            }
        }
    }
    whole_row(name, scope, dialect)
        .unwrap_or_else(|| possibly(UsedColumn::Unresolved(name.to_owned())))
}

/// The table of the only relation, if it is one.
fn only_table(relations: &[&BoundRelation]) -> Option<crate::catalog::TableName> {
    match relations {
        [only] => only.rows.table.clone(),
        _ => None,
    }
}

/// The meaning of the name of a relation in the place of a column.
fn whole_row(name: &str, scope: &Scope<'_>, dialect: SqlDialect) -> Option<Meaning> {
    let name = [name.to_owned()];
    let mut relations = scope.levels().flat_map(|level| level.relations);
    let relation = relations.find(|one| one.is_called(&name, dialect))?;
    let mut uses = relation.rows.all();
    uses.extend(relation.unknown().map(|used| (used, false)));
    Some(Meaning {
        uses,
        is_plain: false,
    })
}

/// The meaning of a column with its relation.
fn qualified(name: &WrittenName, scope: &Scope<'_>, dialect: SqlDialect) -> Meaning {
    let unresolved = || possibly(UsedColumn::Unresolved(name.join(".")));
    let Some((column, relation)) = name.split_last() else {
        return Meaning::default();
    };
    let mut relations = scope.levels().flat_map(|level| level.relations);
    let Some(relation) = relations.find(|one| one.is_called(relation, dialect)) else {
        return unresolved();
    };
    let rows = &relation.rows;
    match (rows.column(column, dialect), &rows.table) {
        (Some(column), _) => of(column, true),
        (None, _) if is_no_column(column, dialect) || rows.is_foreign => Meaning::default(),
        (None, Some(table)) => possibly(UsedColumn::Of(table.clone(), column.clone())),
        (None, None) => unresolved(),
    }
}

fn of(column: &Column, sure: bool) -> Meaning {
    let mut uses = ColumnUses::new();
    add(&mut uses, &column.uses, sure);
    Meaning {
        uses,
        is_plain: column.is_plain,
    }
}

fn possibly(used: UsedColumn) -> Meaning {
    Meaning {
        uses: [(used, false)].into(),
        is_plain: true,
    }
}
