//! Reads the shape of a parsed statement.

use sqlparser::ast::{
    self, CopySource, Distinct, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderByKind,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetQuantifier, Statement, TableAlias,
    TableFactor, TableWithJoins, Visit,
};

use super::name_reader::names_in;
use super::shape::{
    Alias, Body, Change, CommonTable, Insertion, Item, Joined, JoinedBy, Names, Query, Relation,
    Select, StatementShape,
};
use crate::sql_dialect::{SqlDialect, WrittenName};

/// Reads the shape of a statement.
pub(crate) fn shape_of(statement: &Statement, dialect: SqlDialect) -> StatementShape {
    let parts = ShapeReader(dialect).statement(statement);
    StatementShape { parts }
}

/// A query that is nothing but this body.
pub(super) fn plain(body: Body) -> Query {
    Query {
        common: Vec::new(),
        body,
        order: Vec::new(),
        rest: Names::default(),
    }
}

#[derive(Clone, Copy)]
pub(super) struct ShapeReader(pub(super) SqlDialect);

impl ShapeReader {
    fn statement(self, statement: &Statement) -> Vec<Query> {
        let change = |change: Change| vec![plain(Body::Change(Box::new(change)))];
        match statement {
            Statement::Query(query) => vec![self.query(query)],
            Statement::Insert(insert) => change(self.insertion(insert)),
            Statement::Update(update) => change(self.update(update)),
            Statement::Delete(delete) => change(self.deletion(delete)),
            Statement::Merge(merge) => change(self.merge(merge)),
            Statement::Explain { statement, .. } | Statement::Prepare { statement, .. } => {
                self.statement(statement)
            }
            Statement::CreateTable(create) => match &create.query {
                Some(query) => change(Change {
                    from: self.target(&create.name, None),
                    insertions: vec![Insertion {
                        columns: create
                            .columns
                            .iter()
                            .map(|one| self.ident(&one.name))
                            .collect(),
                        width: None,
                        source: Some(self.query(query)),
                    }],
                    is_definition: true,
                    ..Change::default()
                }),
                None => Vec::new(),
            },
            Statement::Copy {
                source:
                    CopySource::Table {
                        table_name,
                        columns,
                    },
                to,
                ..
            } => self.copy(table_name, columns, *to),
            Statement::Copy {
                source: CopySource::Query(query),
                ..
            } => vec![self.query(query)],
            Statement::Drop { .. }
            | Statement::AlterTable { .. }
            | Statement::CreateView { .. } => Vec::new(),
            // Their names are those of settings and others, but not those in queries.
            other => vec![plain(Body::Select(Box::new(Select {
                rest: Names {
                    queries: self.names(other).queries,
                    ..Names::default()
                },
                ..Select::default()
            })))],
        }
    }

    pub(super) fn ident(self, ident: &Ident) -> String {
        self.0.ident(ident)
    }

    /// A name, of which parts that are no names are left out.
    pub(super) fn written(self, name: &ObjectName) -> WrittenName {
        self.0.written(name).unwrap_or_default()
    }

    pub(super) fn last(self, name: &ObjectName) -> String {
        self.written(name).pop().unwrap_or_default()
    }

    pub(super) fn names(self, part: &impl Visit) -> Names {
        names_in(part, self.0, &|query| self.query(query))
    }

    /// The names in one expression.
    fn expression(self, expression: &Expr) -> Names {
        Names {
            is_plain: matches!(
                expression,
                Expr::Identifier(_) | Expr::CompoundIdentifier(_)
            ),
            ..self.names(expression)
        }
    }

    fn alias(self, alias: Option<&TableAlias>) -> Option<Alias> {
        let alias = alias?;
        Some(Alias {
            name: self.ident(&alias.name),
            columns: alias
                .columns
                .iter()
                .map(|one| self.ident(&one.name))
                .collect(),
        })
    }

    pub(super) fn query(self, query: &ast::Query) -> Query {
        let with = query.with.iter();
        let common = with.flat_map(|with| with.cte_tables.iter().map(|one| (one, with.recursive)));
        let common = common.filter_map(|(one, is_recursive)| {
            Some(CommonTable {
                alias: self.alias(Some(&one.alias))?,
                query: self.query(&one.query),
                is_recursive,
            })
        });
        let order = query.order_by.iter().filter_map(|order| match &order.kind {
            OrderByKind::Expressions(all) => Some(all.iter().map(|one| self.expression(&one.expr))),
            OrderByKind::All(_) => None,
        });
        Query {
            common: common.collect(),
            body: self.body(&query.body),
            order: order.flatten().collect(),
            rest: self.names(&query.limit_clause),
        }
    }

    fn body(self, body: &SetExpr) -> Body {
        match body {
            SetExpr::Select(select) => Body::Select(Box::new(self.select(select))),
            SetExpr::Query(query) => Body::Query(Box::new(self.query(query))),
            SetExpr::SetOperation {
                left,
                right,
                set_quantifier,
                op,
            } => Body::Both {
                left: Box::new(self.body(left)),
                right: Box::new(self.body(right)),
                keeps_all: *op == ast::SetOperator::Union && *set_quantifier == SetQuantifier::All,
            },
            SetExpr::Values(values) => Body::Values {
                width: values.rows.first().map_or(0, |row| row.content.len()),
                names: self.names(values),
            },
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => {
                let mut parts = self.statement(statement);
                match parts.pop() {
                    Some(part) => Body::Query(Box::new(part)),
                    None => Body::Select(Box::default()),
                }
            }
            SetExpr::Table(table) => {
                let parts = [&table.schema_name, &table.table_name]
                    .into_iter()
                    .flatten();
                let name = parts.map(|part| self.0.folded(part, false)).collect();
                let relation = Relation::Table { name, alias: None };
                Body::Select(Box::new(Select {
                    from: vec![joined(relation)],
                    items: vec![Item::All],
                    ..Select::default()
                }))
            }
        }
    }

    fn select(self, select: &ast::Select) -> Select {
        let mut rest = self.names(&select.selection);
        let parts = [
            self.names(&select.group_by),
            self.names(&select.having),
            self.names(&select.named_window),
        ];
        parts.into_iter().for_each(|names| rest.add(names));
        let mut is_distinct = false;
        match &select.distinct {
            Some(Distinct::On(by)) => rest.add(self.names(by)),
            Some(Distinct::Distinct) => is_distinct = true,
            Some(Distinct::All) | None => (),
        }
        Select {
            from: self.all_joined(&select.from),
            items: self.items(&select.projection),
            rest,
            is_distinct,
        }
    }

    pub(super) fn items(self, items: &[SelectItem]) -> Vec<Item> {
        let item = |item: &SelectItem| match item {
            SelectItem::Wildcard(_) => Item::All,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                Item::AllOf(self.written(name))
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expression), _) => {
                Item::Value {
                    name: None,
                    names: self.names(expression),
                }
            }
            SelectItem::UnnamedExpr(expression) => Item::Value {
                name: self.name_of(expression),
                names: self.expression(expression),
            },
            SelectItem::ExprWithAlias { expr, alias } => Item::Value {
                name: Some(self.ident(alias)),
                names: self.expression(expr),
            },
            SelectItem::ExprWithAliases { expr, .. } => Item::Value {
                name: None,
                names: self.names(expr),
            },
        };
        items.iter().map(item).collect()
    }

    /// The name that a column has from its expression.
    fn name_of(self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Identifier(name) => Some(self.ident(name)),
            Expr::CompoundIdentifier(parts) => parts.last().map(|part| self.ident(part)),
            Expr::Function(function) => Some(self.last(&function.name)),
            Expr::Cast { expr, .. } => self.name_of(expr),
            Expr::Nested(inner) => self.name_of(inner),
            _ => None,
        }
    }

    pub(super) fn all_joined(self, tables: &[TableWithJoins]) -> Vec<Joined> {
        tables.iter().flat_map(|one| self.joined(one)).collect()
    }

    pub(super) fn joined(self, table: &TableWithJoins) -> Vec<Joined> {
        let mut all = vec![joined(self.relation(&table.relation))];
        for join in &table.joins {
            let by = match constraint(&join.join_operator) {
                Some(JoinConstraint::On(condition)) => JoinedBy::On(self.names(condition)),
                Some(JoinConstraint::Using(columns)) => {
                    JoinedBy::Using(columns.iter().map(|one| self.last(one)).collect())
                }
                Some(JoinConstraint::Natural) => JoinedBy::Natural,
                Some(JoinConstraint::None) | None => JoinedBy::Nothing,
            };
            let relation = self.relation(&join.relation);
            all.push(Joined { relation, by });
        }
        all
    }

    pub(super) fn relation(self, factor: &TableFactor) -> Relation {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => Relation::Table {
                name: self.written(name),
                alias: self.alias(alias.as_ref()),
            },
            TableFactor::Table {
                name,
                alias,
                args: Some(arguments),
                ..
            } => Relation::Function {
                name: self.written(name),
                arguments: self.names(arguments),
                alias: self.alias(alias.as_ref()),
            },
            TableFactor::Function {
                name, args, alias, ..
            } => Relation::Function {
                name: self.written(name),
                arguments: self.names(args),
                alias: self.alias(alias.as_ref()),
            },
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => Relation::Query {
                query: Box::new(self.query(subquery)),
                alias: self.alias(alias.as_ref()),
                is_lateral: *lateral,
            },
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => Relation::Nested(self.joined(table_with_joins)),
            TableFactor::UNNEST {
                alias, array_exprs, ..
            } => Relation::Function {
                name: vec!["unnest".to_owned()],
                arguments: self.names(array_exprs),
                alias: self.alias(alias.as_ref()),
            },
            // JSON_TABLE and others make their columns from an expression.
            other => Relation::Function {
                name: Vec::new(),
                arguments: self.names(other),
                alias: self.alias(alias_of(other)),
            },
        }
    }

    pub(super) fn target(self, name: &ObjectName, alias: Option<&Ident>) -> Vec<Joined> {
        let alias = alias.map(|alias| Alias {
            name: self.ident(alias),
            columns: Vec::new(),
        });
        let name = self.written(name);
        vec![joined(Relation::Table { name, alias })]
    }
}

pub(super) fn joined(relation: Relation) -> Joined {
    Joined {
        relation,
        by: JoinedBy::Nothing,
    }
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as Op;
    match operator {
        Op::Join(by)
        | Op::Inner(by)
        | Op::Left(by)
        | Op::LeftOuter(by)
        | Op::Right(by)
        | Op::RightOuter(by)
        | Op::FullOuter(by)
        | Op::CrossJoin(by)
        | Op::StraightJoin(by) => Some(by),
        _ => None,
    }
}

fn alias_of(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::JsonTable { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::XmlTable { alias, .. } => alias.as_ref(),
        _ => None,
    }
}
