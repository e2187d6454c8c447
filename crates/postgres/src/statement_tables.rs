//! The tables and columns that a statement names.
//!
//! In: the text of a statement. Out: the names of the tables that it reads and changes, before the
//! catalog says which tables they are. Names of common table expressions are no tables.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    CopySource, CopyTarget, Expr, FromTable, ObjectName, Query, Statement, TableFactor,
    TableObject, TableWithJoins, Visit, Visitor,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// A name as it is written: `accounts`, or `public`, `accounts`.
pub(crate) type WrittenName = Vec<String>;

/// A file of the server that a statement copies from or into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopiedFile {
    pub(crate) path: String,
    /// The statement writes the file.
    pub(crate) written: bool,
}

/// The tables and columns that a statement names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatementTables {
    pub(crate) reads: BTreeSet<WrittenName>,
    pub(crate) writes: BTreeSet<WrittenName>,
    /// The columns, without their tables where the statement names none.
    pub(crate) columns: BTreeSet<WrittenName>,
    pub(crate) file: Option<CopiedFile>,
    /// It calls a function, which may use other tables.
    pub(crate) calls: bool,
    /// It changes definitions.
    pub(crate) defines: bool,
    /// Those of `writes` of which it may change or remove rows that were there before.
    pub(crate) replaced: BTreeSet<WrittenName>,
}

impl StatementTables {
    /// Parses a statement, or several.
    ///
    /// # Errors
    ///
    /// The parser's message.
    pub(crate) fn of(text: &str) -> Result<StatementTables, String> {
        let statements = Parser::parse_sql(&PostgreSqlDialect {}, text);
        let statements = statements.map_err(|error| error.to_string())?;
        let mut all = StatementTables::default();
        for statement in &statements {
            let mut found = NameCollector::default();
            let _: ControlFlow<()> = statement.visit(&mut found);
            let mut reads = found.relations;
            all.add_targets(statement, &mut reads);
            let tables = reads.into_iter();
            all.reads
                .extend(tables.filter(|name| name.len() > 1 || !found.local.contains(name)));
            all.columns.extend(found.columns);
            all.calls |= found.calls;
        }
        Ok(all)
    }

    /// Adds the tables that a statement changes. A table that it does not read is taken out of
    /// `reads`.
    fn add_targets(&mut self, statement: &Statement, reads: &mut Vec<WrittenName>) {
        let replaces = match statement {
            Statement::Insert(insert) => insert.on.is_some(),
            Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Truncate(_) => true,
            _ => false,
        };
        let mut target = |name: Option<WrittenName>, is_read: bool| {
            let Some(name) = name else { return };
            if let Some(at) = reads.iter().position(|read| !is_read && *read == name) {
                reads.remove(at);
            }
            self.replaced.extend(replaces.then(|| name.clone()));
            self.writes.insert(name);
        };
        match statement {
            Statement::Insert(insert) => {
                if let TableObject::TableName(name) = &insert.table {
                    target(written(name), false);
                }
            }
            Statement::Update(update) => target(first(&update.table), true),
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                from.iter().for_each(|table| target(first(table), true));
            }
            Statement::Merge(merge) => target(of_factor(&merge.table), true),
            Statement::Truncate(truncate) => {
                for table in &truncate.table_names {
                    target(written(&table.name), false);
                }
            }
            Statement::CreateTable(create) => {
                self.defines = true;
                target(written(&create.name), false);
            }
            Statement::Copy {
                source,
                to,
                target: file,
                ..
            } => {
                if let CopySource::Table { table_name, .. } = source {
                    match to {
                        true => reads.extend(written(table_name)),
                        false => target(written(table_name), false),
                    }
                }
                if let CopyTarget::File { filename } = file {
                    self.file = Some(CopiedFile {
                        path: filename.clone(),
                        written: *to,
                    });
                }
            }
            Statement::Drop { .. }
            | Statement::AlterTable { .. }
            | Statement::CreateView { .. } => {
                self.defines = true;
                reads.clear();
            }
            _ => (),
        }
    }
}

/// An unquoted name is in lower case in the catalog.
fn written(name: &ObjectName) -> Option<WrittenName> {
    let parts = name.0.iter().map(|part| part.as_ident());
    let parts = parts.map(|part| Some(folded(part?)));
    parts.collect()
}

fn folded(part: &sqlparser::ast::Ident) -> String {
    match part.quote_style {
        Some(_) => part.value.clone(),
        None => part.value.to_lowercase(),
    }
}

fn first(table: &TableWithJoins) -> Option<WrittenName> {
    of_factor(&table.relation)
}

fn of_factor(factor: &TableFactor) -> Option<WrittenName> {
    match factor {
        TableFactor::Table { name, .. } => written(name),
        _ => None,
    }
}

/// Collects names on the way through a statement.
#[derive(Default)]
struct NameCollector {
    relations: Vec<WrittenName>,
    /// Common table expressions.
    local: BTreeSet<WrittenName>,
    columns: BTreeSet<WrittenName>,
    calls: bool,
}

impl Visitor for NameCollector {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.local
            .extend(with.map(|table| vec![folded(&table.alias.name)]));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.relations.extend(written(relation));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => drop(self.columns.insert(vec![folded(name)])),
            Expr::CompoundIdentifier(parts) => {
                self.columns.insert(parts.iter().map(folded).collect());
            }
            Expr::Function(_) => self.calls = true,
            _ => (),
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: &BTreeSet<WrittenName>) -> Vec<String> {
        set.iter().map(|name| name.join(".")).collect()
    }

    fn tables(text: &str) -> (Vec<String>, Vec<String>) {
        let found = StatementTables::of(text).unwrap();
        (names(&found.reads), names(&found.writes))
    }

    #[test]
    fn each_statement_has_the_tables_that_it_reads_and_changes() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("SELECT * FROM a JOIN s.b ON a.x = b.x", &["a", "s.b"], &[]),
            ("INSERT INTO a (x) VALUES (1)", &[], &["a"]),
            ("INSERT INTO a SELECT x FROM b", &["b"], &["a"]),
            ("INSERT INTO a SELECT x FROM a", &["a"], &["a"]),
            (
                "UPDATE a SET x = b.x FROM b WHERE a.y = b.y",
                &["a", "b"],
                &["a"],
            ),
            ("DELETE FROM a USING b WHERE a.y = b.y", &["a", "b"], &["a"]),
            ("WITH c AS (SELECT 1 FROM b) SELECT * FROM c", &["b"], &[]),
            (
                "SELECT (SELECT max(x) FROM b) FROM \"Big\"",
                &["Big", "b"],
                &[],
            ),
            ("TRUNCATE a, s.b", &[], &["a", "s.b"]),
            ("CREATE TABLE a AS SELECT * FROM B", &["b"], &["a"]),
            ("COPY a (x) FROM STDIN", &[], &["a"]),
            ("COPY a TO STDOUT", &["a"], &[]),
            ("COPY (SELECT * FROM b) TO STDOUT", &["b"], &[]),
            ("BEGIN", &[], &[]),
        ];
        for (text, reads, writes) in cases {
            let (found_reads, found_writes) = tables(text);
            assert_eq!(found_reads, *reads, "{text}");
            assert_eq!(found_writes, *writes, "{text}");
        }
    }

    #[test]
    fn an_insertion_replaces_rows_only_on_a_conflict() {
        let replaces = |text: &str| !StatementTables::of(text).unwrap().replaced.is_empty();
        let insertion = "INSERT INTO a VALUES (1)";
        let conflict = "INSERT INTO a VALUES (1) ON CONFLICT (x) DO UPDATE SET y = 2";
        assert!(!replaces(insertion) && replaces(conflict));
        assert!(replaces("UPDATE a SET x = 1") && replaces("DELETE FROM a"));
        assert!(!replaces("CREATE TABLE a (x int)") && !replaces("SELECT * FROM a"));
    }

    #[test]
    fn a_statement_that_does_not_parse_is_refused_with_the_parsers_words() {
        assert!(StatementTables::of("SELEC * FROM a").is_err());
    }

    #[test]
    fn a_copy_names_the_servers_file() {
        let found = StatementTables::of("COPY a TO '/tmp/x.csv' WITH (FORMAT csv)").unwrap();
        let file = found.file.unwrap();
        assert_eq!((&*file.path, file.written), ("/tmp/x.csv", true));
    }

    #[test]
    fn columns_are_listed_as_they_are_written() {
        let found = StatementTables::of("SELECT a.x, Y FROM a WHERE z = 1").unwrap();
        assert_eq!(names(&found.columns), ["a.x", "y", "z"]);
    }
}
