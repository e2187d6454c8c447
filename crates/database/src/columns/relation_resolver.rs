//! Resolves the relations of a statement: tables, views, and queries after `FROM`.

use super::bound_names::meaning;
use super::relations::{BoundRelation, Column, Rows, Scope};
use super::resolver::{CommonTables, Resolver};
use super::shape::{Alias, Joined, JoinedBy, Relation};
use super::{ColumnUses, UsedColumn, add};
use crate::catalog::TableName;
use crate::read_tables::is_system;
use crate::sql_dialect::WrittenName;

/// Views within views.
const DEEPEST: usize = 32;

impl Resolver<'_> {
    /// The relations after `FROM`. `uses` gets the columns that decide which rows there are.
    pub(super) fn relations(
        &mut self,
        from: &[Joined],
        common: &CommonTables,
        outer: Option<&Scope<'_>>,
        uses: &mut ColumnUses,
    ) -> Vec<BoundRelation> {
        let mut bound: Vec<BoundRelation> = Vec::new();
        for one in from {
            let lateral = Scope {
                relations: &bound,
                outer,
            };
            let mut new = self.relation(&one.relation, common, (outer, &lateral), uses);
            match &one.by {
                JoinedBy::Nothing => (),
                JoinedBy::On(names) => {
                    let mut all = bound.clone();
                    all.extend(new.iter().cloned());
                    let scope = Scope {
                        relations: &all,
                        outer,
                    };
                    let found = self.names(names, &scope, &[], common);
                    add(uses, &found, true);
                }
                JoinedBy::Using(columns) => self.share(columns, &bound, &mut new, uses),
                JoinedBy::Natural => {
                    let both = |name: &String| {
                        let has =
                            |one: &BoundRelation| one.rows.column(name, self.dialect).is_some();
                        bound.iter().any(has)
                    };
                    let names = new.iter().flat_map(|one| &one.rows.columns);
                    let names = names.map(|column| column.name.clone());
                    let columns: Vec<String> = names.filter(|name| both(name)).collect();
                    let sides = [&bound[..], &new[..]];
                    let sides = sides.into_iter().flatten();
                    let unknown: Vec<UsedColumn> =
                        sides.filter_map(BoundRelation::unknown).collect();
                    uses.extend(unknown.into_iter().map(|used| (used, false)));
                    self.share(&columns, &bound, &mut new, uses);
                }
            }
            bound.extend(new);
        }
        bound
    }

    /// Joins relations by columns that both sides have.
    fn share(
        &mut self,
        columns: &[String],
        bound: &[BoundRelation],
        new: &mut [BoundRelation],
        uses: &mut ColumnUses,
    ) {
        for name in columns {
            let column = vec![name.clone()];
            for side in [bound, new] {
                let scope = Scope {
                    relations: side,
                    outer: None,
                };
                let found = meaning(&column, &scope, &[], self.dialect);
                add(uses, &found.uses, true);
            }
            for relation in new.iter_mut() {
                if relation.rows.column(name, self.dialect).is_some() {
                    relation.shared.push(name.clone());
                }
            }
        }
    }

    fn relation(
        &mut self,
        relation: &Relation,
        common: &CommonTables,
        (outer, lateral): (Option<&Scope<'_>>, &Scope<'_>),
        uses: &mut ColumnUses,
    ) -> Vec<BoundRelation> {
        let (name, rows, alias) = match relation {
            Relation::Table { name, alias } => (name, self.table(name, common), alias),
            Relation::Query {
                query,
                alias,
                is_lateral,
            } => {
                let around = if *is_lateral { Some(lateral) } else { outer };
                (&Vec::new(), self.query(query, common, around), alias)
            }
            Relation::Function {
                name,
                arguments,
                alias,
            } => {
                let found = self.names(arguments, lateral, &[], common);
                add(uses, &found, true);
                let rows = Rows {
                    is_foreign: true,
                    ..Rows::default()
                };
                (name, rows, alias)
            }
            Relation::Nested(joined) => return self.relations(joined, common, outer, uses),
        };
        let relation = aliased(name, rows, alias.as_ref());
        add(uses, &relation.rows.common, true);
        vec![relation]
    }

    /// The rows of a name after `FROM`: of a common table expression, a table or a view.
    fn table(&mut self, name: &WrittenName, common: &CommonTables) -> Rows {
        if let [name] = &name[..]
            && let Some((_, rows)) = common.0.iter().rev().find(|(own, _)| own == name)
        {
            return rows.clone();
        }
        self.named(name)
    }

    /// The rows of a table or a view.
    fn named(&mut self, name: &WrittenName) -> Rows {
        let Some(table) = self.catalog.resolve(name, &self.path) else {
            let is_foreign = matches!(&name[..], [schema, _] if is_system_schema(schema));
            return Rows {
                lacks_columns: !is_foreign,
                is_foreign,
                ..Rows::default()
            };
        };
        if is_system(&table) {
            return Rows {
                is_foreign: true,
                ..Rows::default()
            };
        }
        match self.catalog.is_view(&table) {
            true => self.view(&table),
            false => self.base(table),
        }
    }

    fn base(&mut self, table: TableName) -> Rows {
        let known = self.catalog.table(&table);
        let columns = known.map(|known| &known.columns[..]).unwrap_or_default();
        let column = |name: &String| Column {
            name: name.clone(),
            uses: [(UsedColumn::Of(table.clone(), name.clone()), true)].into(),
            is_plain: true,
        };
        self.since = self.since.max(self.catalog.definitions.since(&table));
        Rows {
            columns: columns.iter().map(column).collect(),
            lacks_columns: columns.is_empty(),
            is_unsettled: !self.is_settled(&table),
            table: Some(table),
            ..Rows::default()
        }
    }

    fn is_settled(&self, table: &TableName) -> bool {
        self.catalog.definitions.is_settled(table, self.moment)
    }

    fn view(&mut self, view: &TableName) -> Rows {
        if let Some(rows) = self.views.get(view) {
            return rows.clone();
        }
        let unknown = Rows {
            lacks_columns: true,
            ..Rows::default()
        };
        let Some(shape) = self.catalog.shape(view) else {
            return unknown;
        };
        let is_open = self.open.contains(view) || self.open.len() >= DEEPEST;
        let ([query], false) = (&shape.parts[..], is_open) else {
            return unknown;
        };
        self.open.push(view.clone());
        // Names in its query are those of its own schema.
        let path = std::mem::replace(&mut self.path, vec![view.0.clone()]);
        let mut rows = self.query(query, &CommonTables::default(), None);
        self.path = path;
        self.open.pop();
        let columns = self.catalog.table(view).map(|known| known.columns.clone());
        rows.rename(&columns.unwrap_or_default());
        self.since = self.since.max(self.catalog.definitions.since(view));
        let parts = self.catalog.behind(view);
        if !self.is_settled(view) || !parts.iter().all(|part| self.is_settled(part)) {
            rows.is_unsettled = true;
            let uses = std::mem::take(&mut rows.common);
            add(&mut rows.common, &uses, false);
        }
        self.views.insert(view.clone(), rows.clone());
        rows
    }
}

/// A relation with the name and the columns of its alias.
fn aliased(name: &WrittenName, mut rows: Rows, alias: Option<&Alias>) -> BoundRelation {
    let mut name = name.clone();
    if let Some(alias) = alias {
        name = vec![alias.name.clone()];
        rows.rename(&alias.columns);
    }
    BoundRelation {
        name,
        rows,
        shared: Vec::new(),
    }
}

fn is_system_schema(schema: &str) -> bool {
    is_system(&(schema.to_owned(), String::new()))
}
