//! Statements that do work which their text does not show.

use sqlparser::ast::{SetExpr, Statement};

/// The work of a statement that its text does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HiddenWork {
    /// Its names show all: tables, and functions with their definitions.
    #[default]
    Nothing,
    /// It calls a procedure, whose statements are executed one by one.
    Procedure,
    /// It uses a cursor, whose query calls functions when rows are fetched.
    Cursor,
    /// It executes a statement that was prepared before.
    Prepared,
    /// It is of a kind that is not examined.
    Unknown,
}

impl HiddenWork {
    /// That of a statement.
    pub(crate) fn of(statement: &Statement) -> HiddenWork {
        match statement {
            Statement::Call(_) => HiddenWork::Procedure,
            Statement::Declare { .. } | Statement::Fetch { .. } => HiddenWork::Cursor,
            Statement::Execute { .. } => HiddenWork::Prepared,
            // It makes a table, SELECT … INTO.
            Statement::Query(query) if selects_into(&query.body) => HiddenWork::Unknown,
            // The other tables are those of foreign keys.
            Statement::Truncate(truncate) if truncate.cascade.is_some() => HiddenWork::Unknown,
            // A block, as BEGIN NOT ATOMIC.
            Statement::StartTransaction { statements, .. } if !statements.is_empty() => {
                HiddenWork::Unknown
            }
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Truncate(_)
            | Statement::Copy { .. }
            | Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::AlterTable(_)
            | Statement::Drop { .. }
            | Statement::Set(_)
            | Statement::Reset(_)
            | Statement::Use(_)
            | Statement::ShowVariable { .. }
            | Statement::ShowVariables { .. }
            | Statement::ShowStatus { .. }
            | Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::Discard { .. }
            | Statement::Deallocate { .. }
            | Statement::Close { .. }
            | Statement::LISTEN { .. }
            | Statement::UNLISTEN { .. }
            | Statement::NOTIFY { .. }
            | Statement::Lock(_)
            | Statement::Analyze(_) => HiddenWork::Nothing,
            _ => HiddenWork::Unknown,
        }
    }
}

fn selects_into(query: &SetExpr) -> bool {
    match query {
        SetExpr::Select(select) => select.into.is_some(),
        SetExpr::Query(query) => selects_into(&query.body),
        SetExpr::SetOperation { left, .. } => selects_into(left),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql_dialect::SqlDialect;
    use crate::statement_tables::StatementTables;

    #[test]
    fn a_statement_that_executes_others_has_work_that_its_text_does_not_show() {
        let of = |text: &str| {
            let tables = StatementTables::of(text, SqlDialect::Postgres);
            tables.expect(text).hidden
        };
        for (text, hidden) in [
            ("BEGIN", HiddenWork::Nothing),
            ("SET search_path = x", HiddenWork::Nothing),
            ("SELECT f(x) FROM a", HiddenWork::Nothing),
            (
                "WITH c AS (DELETE FROM b RETURNING x) SELECT x FROM c",
                HiddenWork::Nothing,
            ),
            ("CALL p(1)", HiddenWork::Procedure),
            ("FETCH NEXT FROM c", HiddenWork::Cursor),
            ("EXECUTE up(42)", HiddenWork::Prepared),
            ("SELECT 1; EXECUTE up(42)", HiddenWork::Prepared),
            ("PREPARE up AS UPDATE a SET x = 1", HiddenWork::Unknown),
            ("TRUNCATE a CASCADE", HiddenWork::Unknown),
            ("SELECT x INTO b FROM a", HiddenWork::Unknown),
            ("CREATE INDEX i ON a (x)", HiddenWork::Unknown),
            ("EXPLAIN ANALYZE UPDATE a SET x = 1", HiddenWork::Unknown),
        ] {
            assert_eq!(of(text), hidden, "{text}");
        }
    }
}
