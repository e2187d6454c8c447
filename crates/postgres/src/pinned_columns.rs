//! The rows that a statement can change, by the values that it gives for columns.
//!
//! In: the text of a statement, and the values of its parameters. Out: pins. `UPDATE a ... WHERE id
//! = 5` changes no row whose `id` is not 5, and `INSERT INTO a VALUES (5, ...)` makes no such row.
//! A commit with another row is not that of the statement.
//!
//! Invariant: values are compared only where each has one form. These are whole numbers, and texts
//! of columns of the types `text` and `varchar`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Expr, FromTable, Ident, Insert, ObjectName,
    SelectItem, SetExpr, Statement, TableFactor, TableObject, TableWithJoins, UnaryOperator, Value,
    Visit, Visitor,
};

use backstory_database::row_change::RowOperation;
use backstory_database::sql_dialect::{SqlDialect, WrittenName};

/// A column, by its name or position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PinnedColumn {
    Named(String),
    /// The first: those before another one may be generated, and are not in the stream then.
    First,
}

/// The values that a column has in the rows that a statement changes in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) column: PinnedColumn,
    pub(crate) values: BTreeSet<String>,
    /// The values are those after the change.
    pub(crate) after: bool,
}

/// The changes that a statement can make to the rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowEffect {
    pub(crate) table: WrittenName,
    pub(crate) operations: Vec<RowOperation>,
    pub(crate) pins: Vec<Pin>,
    /// The columns that an update gives values. Empty if they are not known.
    pub(crate) assigned: Vec<String>,
}

/// The effects of a statement, or several. `None` if it may have others, too.
pub(crate) fn effects(text: &str, parameters: Option<&str>) -> Option<Vec<RowEffect>> {
    let statements = SqlDialect::Postgres.parse(text).ok()?;
    let mut collector = EffectCollector {
        parameters: parameters.map(literals).unwrap_or_default(),
        effects: Some(Vec::new()),
    };
    for statement in &statements {
        let _: ControlFlow<()> = statement.visit(&mut collector);
    }
    collector.effects
}

fn written(name: &ObjectName) -> Option<WrittenName> {
    SqlDialect::Postgres.written(name)
}

/// The columns that an assignment changes. `a.b` is a part of the column `a`. `None` if one is not
/// known.
fn assigned(target: &AssignmentTarget) -> Option<Vec<String>> {
    let changed = |name: &ObjectName| written(name)?.into_iter().next();
    match target {
        AssignmentTarget::ColumnName(name) => Some(vec![changed(name)?]),
        AssignmentTarget::Tuple(names) => names.iter().map(changed).collect(),
    }
}

/// A column as a whole. `a.b` is a part of the column `a`.
fn column(name: &ObjectName) -> Option<String> {
    let [column] = <[String; 1]>::try_from(written(name)?).ok()?;
    Some(column)
}

fn folded(part: &Ident) -> String {
    SqlDialect::Postgres.ident(part)
}

struct EffectCollector {
    /// The values of the parameters.
    parameters: Vec<Option<String>>,
    effects: Option<Vec<RowEffect>>,
}

impl Visitor for EffectCollector {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        let effect = match statement {
            Statement::Insert(insert) => self.insertion(insert),
            Statement::Update(update) => {
                let targets = update.assignments.iter().map(|one| assigned(&one.target));
                let assigned: Option<Vec<Vec<String>>> = targets.collect();
                // The condition is about the row before, and the stream may have that after alone.
                let tells_rows = update.from.is_none() && assigned.is_some();
                let where_ = update.selection.as_ref().filter(|_| tells_rows);
                let assigned = assigned.unwrap_or_default().concat();
                let effect = self.selection(&update.table, RowOperation::Update, where_, &assigned);
                effect.map(|mut effect| {
                    effect.assigned = assigned;
                    let given = update.assignments.iter().filter_map(|one| self.given(one));
                    effect.pins.extend(given);
                    effect
                })
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let where_ = delete.selection.as_ref().filter(|_| delete.using.is_none());
                match &from[..] {
                    [table] => self.selection(table, RowOperation::Delete, where_, &[]),
                    _ => None,
                }
            }
            Statement::Query(_)
            | Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. } => return ControlFlow::Continue(()),
            _ => None,
        };
        match (&mut self.effects, effect) {
            (Some(effects), Some(effect)) => effects.push(effect),
            (effects, _) => *effects = None,
        }
        ControlFlow::Continue(())
    }
}

impl EffectCollector {
    fn insertion(&self, insert: &Insert) -> Option<RowEffect> {
        let TableObject::TableName(name) = &insert.table else {
            return None;
        };
        let rows: Vec<Vec<Option<String>>> =
            match insert.source.as_deref().map(|query| &*query.body) {
                Some(SetExpr::Values(values)) => values
                    .rows
                    .iter()
                    .map(|row| row.iter().map(|value| self.literal(value)).collect())
                    .collect(),
                Some(SetExpr::Select(select)) => {
                    let of_item = |item: &SelectItem| match item {
                        SelectItem::UnnamedExpr(value)
                        | SelectItem::ExprWithAlias { expr: value, .. } => {
                            Some(self.literal(value))
                        }
                        _ => None,
                    };
                    // A wildcard has an unknown number of columns: those before it are known.
                    let items = select.projection.iter().map_while(of_item);
                    vec![items.collect()]
                }
                _ => Vec::new(),
            };
        let width = rows.iter().map(Vec::len).min().unwrap_or(0);
        let known = if insert.columns.is_empty() {
            1
        } else {
            insert.columns.len()
        };
        let pins = (0..width.min(known)).filter_map(|at| {
            let values: Option<BTreeSet<String>> = rows.iter().map(|row| row[at].clone()).collect();
            let column = match insert.columns.get(at) {
                Some(name) => PinnedColumn::Named(column(name)?),
                None => PinnedColumn::First,
            };
            Some(Pin {
                column,
                values: values?,
                after: true,
            })
        });
        // The row that an insertion conflicts with may have any values.
        let conflicts = insert.on.is_some();
        let mut operations = vec![RowOperation::Insert];
        operations.extend(conflicts.then_some(RowOperation::Update));
        Some(RowEffect {
            table: written(name)?,
            operations,
            pins: if conflicts {
                Vec::new()
            } else {
                pins.collect()
            },
            assigned: Vec::new(),
        })
    }

    fn selection(
        &self,
        table: &TableWithJoins,
        operation: RowOperation,
        where_: Option<&Expr>,
        assigned: &[String],
    ) -> Option<RowEffect> {
        let TableFactor::Table { name, .. } = &table.relation else {
            return None;
        };
        let mut pins = Vec::new();
        let mut open: Vec<&Expr> = where_.into_iter().collect();
        while let Some(next) = open.pop() {
            match next {
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::And,
                    right,
                } => open.extend([&**left, &**right]),
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::Eq,
                    right,
                } => pins.extend(self.pin(left, right).or_else(|| self.pin(right, left))),
                Expr::Nested(inner) => open.push(inner),
                _ => (),
            }
        }
        pins.retain(
            |pin| !matches!(&pin.column, PinnedColumn::Named(name) if assigned.contains(name)),
        );
        Some(RowEffect {
            table: written(name)?,
            operations: vec![operation],
            pins,
            assigned: Vec::new(),
        })
    }

    /// The value that an assignment gives a column.
    fn given(&self, one: &Assignment) -> Option<Pin> {
        let AssignmentTarget::ColumnName(name) = &one.target else {
            return None;
        };
        Some(Pin {
            column: PinnedColumn::Named(column(name)?),
            values: BTreeSet::from([self.literal(&one.value)?]),
            after: true,
        })
    }

    fn pin(&self, column: &Expr, value: &Expr) -> Option<Pin> {
        let column = match column {
            Expr::Identifier(name) => folded(name),
            Expr::CompoundIdentifier(parts) => folded(parts.last()?),
            _ => return None,
        };
        Some(Pin {
            column: PinnedColumn::Named(column),
            values: BTreeSet::from([self.literal(value)?]),
            after: false,
        })
    }

    /// The value that an expression certainly has.
    fn literal(&self, value: &Expr) -> Option<String> {
        match value {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) => text.parse::<i64>().ok().map(|value| value.to_string()),
                // A setting of the server decides what a backslash means.
                Value::SingleQuotedString(text) if !text.contains('\\') => Some(text.clone()),
                Value::Placeholder(name) => {
                    let at: usize = name.strip_prefix('$')?.parse().ok()?;
                    self.parameters.get(at.checked_sub(1)?)?.clone()
                }
                _ => None,
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => {
                let value: i64 = self.literal(expr)?.parse().ok()?;
                Some(value.checked_neg()?.to_string())
            }
            _ => None,
        }
    }
}

/// The values of parameters, as the log has them: `$1 = '42', $2 = NULL`. Two quotes in a value
/// stand for one. A value that ends with dots may be cut (`log_parameter_max_length`).
fn literals(text: &str) -> Vec<Option<String>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, value)) = rest.split_once(" = ") {
        let Some(quoted) = value.strip_prefix('\'') else {
            found.push(None);
            rest = value;
            continue;
        };
        let mut end = 0;
        while let Some(at) = quoted[end..].find('\'') {
            end += at;
            if !quoted[end..].starts_with("\'\'") {
                break;
            }
            end += 2;
        }
        let value = &quoted[..end];
        found.push((!value.ends_with("...")).then(|| value.replace("''", "'")));
        rest = &quoted[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `table operations column=values`
    fn shown(text: &str, parameters: Option<&str>) -> Option<Vec<String>> {
        let shown = |effect: RowEffect| {
            let pins = effect.pins.iter().map(|pin| {
                let column = match &pin.column {
                    PinnedColumn::Named(name) => name.clone(),
                    PinnedColumn::First => "#0".to_owned(),
                };
                let values: Vec<&str> = pin.values.iter().map(String::as_str).collect();
                format!(" {column}={{{}}}", values.join(", "))
            });
            let pins: String = pins.collect();
            format!("{} {:?}{pins}", effect.table.join("."), effect.operations)
        };
        effects(text, parameters).map(|all| all.into_iter().map(shown).collect())
    }

    #[test]
    fn values_in_a_statement_say_which_rows_it_changes() {
        let cases = [
            (
                "INSERT INTO a VALUES (1, 'x'), (2, 'y')",
                "a [Insert] #0={1, 2}",
            ),
            (
                "INSERT INTO a (x, id) VALUES (f(), -3)",
                "a [Insert] id={-3}",
            ),
            ("INSERT INTO a SELECT 4, x FROM b", "a [Insert] #0={4}"),
            (
                "UPDATE s.a SET x = 2 WHERE id = 5 AND (x = 1)",
                "s.a [Update] id={5} x={2}",
            ),
            ("UPDATE a SET x = 2 FROM b WHERE id = 5", "a [Update] x={2}"),
            ("UPDATE a SET x.part = 2 WHERE id = 5", "a [Update] id={5}"),
            ("INSERT INTO a (x.part) VALUES (5)", "a [Insert]"),
            ("DELETE FROM a WHERE id = 5 OR id = 6", "a [Delete]"),
            (
                "INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING",
                "a [Insert, Update]",
            ),
            ("BEGIN", ""),
        ];
        for (text, wanted) in cases {
            let found = shown(text, None).unwrap().join("; ");
            assert_eq!(found, wanted, "{text}");
        }
        assert_eq!(shown("TRUNCATE a", None), None);
    }

    #[test]
    fn an_update_of_a_part_of_a_column_gives_the_column_a_value() {
        let text = "UPDATE a SET x.part = 2, (y, z) = (SELECT 1, 2)";
        let found = effects(text, None).unwrap();
        assert_eq!(found[0].assigned, ["x", "y", "z"]);
    }

    #[test]
    fn a_parameter_that_may_be_cut_is_unknown() {
        let text = "UPDATE a SET x = $1 WHERE id = $2";
        let found = shown(text, Some("$1 = 'abc...', $2 = '7'"));
        assert_eq!(found.unwrap(), ["a [Update] id={7}"]);
    }

    #[test]
    fn a_parameter_has_its_value() {
        let text = "UPDATE a SET x = $1 WHERE id = $2 AND y = $3";
        let found = shown(text, Some("$1 = 'it''s $2 = ''9''', $2 = '7', $3 = NULL"));
        assert_eq!(found.unwrap(), ["a [Update] id={7} x={it's $2 = '9'}"]);
    }
}
