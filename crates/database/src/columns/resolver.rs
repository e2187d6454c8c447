//! Resolves the shape of a statement against the catalog.

use std::collections::HashMap;

use super::bound_names::{Meaning, meaning};
use super::relations::{BoundRelation, Column, Rows, Scope, is_same};
use super::shape::{Body, CommonTable, Item, Names, Query, Relation, Select, StatementShape};
use super::{ANY, ColumnUses, StatementColumns, UsedColumn, add};
use crate::catalog::{Catalog, TableName};
use crate::definitions::StatementMoment;
use crate::sql_dialect::SqlDialect;

/// The common table expressions that are in sight.
#[derive(Clone, Default)]
pub(super) struct CommonTables(pub(super) Vec<(String, Rows)>);

/// Finds the columns of one statement.
pub(super) struct Resolver<'c> {
    pub(super) catalog: &'c Catalog,
    pub(super) dialect: SqlDialect,
    pub(super) path: Vec<String>,
    pub(super) moment: StatementMoment<'c>,
    found: StatementColumns,
    /// From when on the catalog decides these columns for all sessions.
    pub(super) since: i64,
    /// The columns that are found are certainly used.
    is_sure: bool,
    /// Names that cannot be resolved are parameters.
    has_parameters: bool,
    pub(super) views: HashMap<TableName, Rows>,
    /// The views that are being resolved.
    pub(super) open: Vec<TableName>,
}

impl<'c> Resolver<'c> {
    pub(super) fn new(
        catalog: &'c Catalog,
        path: &[String],
        moment: StatementMoment<'c>,
    ) -> Resolver<'c> {
        Resolver {
            catalog,
            dialect: catalog.dialect(),
            path: path.to_vec(),
            moment,
            found: StatementColumns::default(),
            since: i64::MIN,
            is_sure: true,
            has_parameters: false,
            views: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The columns that were found, and from when on the catalog decides them for all sessions.
    pub(super) fn end(self) -> (StatementColumns, i64) {
        (self.found, self.since)
    }

    /// Adds the columns of a statement.
    pub(super) fn statement(&mut self, shape: &StatementShape) {
        for part in &shape.parts {
            let rows = self.query(part, &CommonTables::default(), None);
            self.read(&rows.common);
            self.read(&rows.all());
        }
    }

    /// Adds the columns of a function that is called, certainly if `sure`.
    pub(super) fn routine(&mut self, shape: &StatementShape, sure: bool) {
        self.has_parameters = true;
        self.is_sure = sure;
        self.statement(shape);
        self.is_sure = true;
        self.has_parameters = false;
    }

    fn is_kept(&self, used: &UsedColumn) -> bool {
        !self.has_parameters || matches!(used, UsedColumn::Of(..))
    }

    pub(super) fn read(&mut self, uses: &ColumnUses) {
        for (used, sure) in uses {
            if self.is_kept(used) {
                let known = self.found.read.entry(used.clone()).or_default();
                *known |= *sure && self.is_sure;
            }
        }
    }

    pub(super) fn write(&mut self, used: UsedColumn, sure: bool) {
        if self.is_kept(&used) {
            *self.found.written.entry(used).or_default() |= sure && self.is_sure;
        }
    }

    pub(super) fn query(
        &mut self,
        query: &Query,
        common: &CommonTables,
        outer: Option<&Scope<'_>>,
    ) -> Rows {
        let mut common = common.clone();
        for table in &query.common {
            let rows = self.common_table(table, &common, outer);
            common.0.push((table.alias.name.clone(), rows));
        }
        let mut rows = self.body(&query.body, &common, outer, &query.order);
        let limit = Scope {
            relations: &[],
            outer,
        };
        let uses = self.names(&query.rest, &limit, &[], &common);
        add(&mut rows.common, &uses, true);
        rows
    }

    fn common_table(
        &mut self,
        table: &CommonTable,
        common: &CommonTables,
        outer: Option<&Scope<'_>>,
    ) -> Rows {
        let mut rows = if table.is_recursive {
            // Its own name means the rows that it has made so far.
            let mut with_own = common.clone();
            let mut own = match &table.query.body {
                Body::Both { left, .. } => self.body(left, common, outer, &[]),
                _ => Rows::default(),
            };
            own.rename(&table.alias.columns);
            with_own.0.push((table.alias.name.clone(), own));
            let mut rows = self.query(&table.query, &with_own, outer);
            // A column may come from another one, a round before.
            if names_itself(table) {
                let all = rows.all();
                add(&mut rows.common, &all, true);
            }
            rows
        } else {
            self.query(&table.query, common, outer)
        };
        rows.rename(&table.alias.columns);
        rows
    }

    fn body(
        &mut self,
        body: &Body,
        common: &CommonTables,
        outer: Option<&Scope<'_>>,
        order: &[Names],
    ) -> Rows {
        match body {
            Body::Select(select) => self.select(select, common, outer, order),
            Body::Query(query) => {
                let mut rows = self.query(query, common, outer);
                self.order_items(order, &mut rows);
                rows
            }
            Body::Both {
                left,
                right,
                keeps_all,
            } => {
                let mut rows = self.body(left, common, outer, &[]);
                let other = self.body(right, common, outer, &[]);
                add(&mut rows.common, &other.common, true);
                rows.lacks_columns |= other.lacks_columns;
                for (column, other) in rows.columns.iter_mut().zip(&other.columns) {
                    add(&mut column.uses, &other.uses, true);
                    column.is_plain = false;
                }
                if !keeps_all {
                    let all = rows.all();
                    add(&mut rows.common, &all, true);
                    add(&mut rows.common, &other.all(), true);
                }
                self.order_items(order, &mut rows);
                rows
            }
            Body::Values { width, names } => {
                let scope = Scope {
                    relations: &[],
                    outer,
                };
                let uses = self.names(names, &scope, &[], common);
                let column = |at: usize| Column {
                    name: format!("column{}", at + 1),
                    ..Column::default()
                };
                Rows {
                    columns: (0..*width).map(column).collect(),
                    common: uses,
                    ..Rows::default()
                }
            }
            Body::Change(change) => self.change(change, common, outer),
        }
    }

    /// An order by items of a result decides about rows, as a limit may follow.
    fn order_items(&mut self, order: &[Names], rows: &mut Rows) {
        let named = order.iter().flat_map(|names| &names.columns);
        let columns = named.filter_map(|name| rows.column(name.last()?, self.dialect));
        let mut uses = ColumnUses::new();
        columns.for_each(|column| add(&mut uses, &column.uses, true));
        add(&mut rows.common, &uses, true);
    }

    fn select(
        &mut self,
        select: &Select,
        common: &CommonTables,
        outer: Option<&Scope<'_>>,
        order: &[Names],
    ) -> Rows {
        let mut rows = Rows::default();
        let relations = self.relations(&select.from, common, outer, &mut rows.common);
        let scope = Scope {
            relations: &relations,
            outer,
        };
        self.items(&select.items, &scope, common, &mut rows);
        let mut uses = self.names(&select.rest, &scope, &rows.columns, common);
        for names in order {
            let item = match &names.columns[..] {
                [name] if names.is_plain && name.len() == 1 => rows.column(&name[0], self.dialect),
                _ => None,
            };
            match item {
                Some(item) => add(&mut uses, &item.uses, true),
                None => add(
                    &mut uses,
                    &self.names(names, &scope, &rows.columns, common),
                    true,
                ),
            }
        }
        if select.is_distinct {
            add(&mut uses, &rows.all(), true);
        }
        add(&mut rows.common, &uses, true);
        rows
    }

    /// Adds the columns that a query or change returns.
    pub(super) fn items(
        &mut self,
        items: &[Item],
        scope: &Scope<'_>,
        common: &CommonTables,
        rows: &mut Rows,
    ) {
        for item in items {
            match item {
                Item::Value { name, names } => {
                    let is_plain = names.is_plain && self.is_one_column(names, scope);
                    rows.columns.push(Column {
                        name: name.clone().unwrap_or_default(),
                        uses: self.names(names, scope, &[], common),
                        is_plain,
                    });
                }
                Item::All => {
                    for relation in scope.relations {
                        add_all(relation, rows, self.dialect);
                    }
                }
                Item::AllOf(name) => {
                    let mut all = scope.levels().flat_map(|level| level.relations);
                    match all.find(|one| one.is_called(name, self.dialect)) {
                        Some(relation) => {
                            let whole = BoundRelation {
                                shared: Vec::new(),
                                ..relation.clone()
                            };
                            add_all(&whole, rows, self.dialect);
                        }
                        None => {
                            let used = UsedColumn::Unresolved(format!("{}.{ANY}", name.join(".")));
                            rows.common.insert(used, false);
                        }
                    }
                }
            }
        }
    }

    fn is_one_column(&self, names: &Names, scope: &Scope<'_>) -> bool {
        let mut columns = names.columns.iter();
        columns.all(|name| meaning(name, scope, &[], self.dialect).is_plain)
    }

    /// The columns that expressions use.
    pub(super) fn names(
        &mut self,
        names: &Names,
        scope: &Scope<'_>,
        items: &[Column],
        common: &CommonTables,
    ) -> ColumnUses {
        let mut uses = ColumnUses::new();
        for name in &names.columns {
            let Meaning { uses: found, .. } = meaning(name, scope, items, self.dialect);
            add(&mut uses, &found, true);
        }
        for name in &names.rows {
            let mut all = scope.levels().flat_map(|level| level.relations);
            if let Some(relation) = all.find(|one| one.is_called(name, self.dialect)) {
                add(&mut uses, &relation.rows.all(), true);
            }
        }
        for nested in &names.queries {
            let rows = self.query(&nested.query, common, Some(scope));
            add(&mut uses, &rows.common, true);
            if !nested.is_test {
                add(&mut uses, &rows.all(), true);
            }
        }
        uses
    }
}

/// Adds all columns of a relation.
fn add_all(relation: &BoundRelation, rows: &mut Rows, dialect: SqlDialect) {
    let own = &relation.rows;
    let visible = own.columns.iter();
    let visible = visible.filter(|column| !relation.shares(&column.name, dialect));
    for column in visible {
        let mut uses = ColumnUses::new();
        add(&mut uses, &column.uses, !own.is_unsettled);
        rows.columns.push(Column {
            uses,
            ..column.clone()
        });
    }
    rows.lacks_columns |= own.lacks_columns;
    rows.is_foreign |= own.is_foreign;
    rows.is_unsettled |= own.is_unsettled;
    let unknown = relation.unknown();
    rows.common.extend(unknown.map(|used| (used, false)));
}

/// True if a common table expression names itself.
fn names_itself(table: &CommonTable) -> bool {
    let Body::Both { right, .. } = &table.query.body else {
        return false;
    };
    mentions(right, &table.alias.name)
}

fn mentions(body: &Body, wanted: &str) -> bool {
    let is = |relation: &Relation| match relation {
        Relation::Table { name, .. } => {
            matches!(&name[..], [only] if is_same(only, wanted, SqlDialect::Postgres))
        }
        // A rare place of its name.
        Relation::Query { .. } | Relation::Nested(_) => true,
        Relation::Function { .. } => false,
    };
    match body {
        Body::Select(select) => select.from.iter().any(|one| is(&one.relation)),
        Body::Both { left, right, .. } => mentions(left, wanted) || mentions(right, wanted),
        Body::Query(_) => true,
        Body::Values { .. } | Body::Change(_) => false,
    }
}
