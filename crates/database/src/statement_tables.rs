//! The tables that a statement names, and its shape, by which its columns are found.
//!
//! In: the text of a statement. Out: the names of the tables that it reads and changes, before the
//! catalog says which tables they are. Names of common table expressions are no tables.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    CopySource, CopyTarget, Expr, FromTable, ObjectName, Query, SelectInto, SetExpr, Statement,
    TableFactor, TableObject, TableWithJoins, Visit, Visitor,
};

use crate::columns::shape::StatementShape;
use crate::columns::shape_reader::shape_of;
use crate::hidden_work::HiddenWork;
use crate::sql_dialect::{SqlDialect, WrittenName};

/// A file of the server that a statement copies from or into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedFile {
    /// Its path, as the statement names it.
    pub path: String,
    /// The statement writes the file.
    pub written: bool,
}

/// The names in a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementTables {
    /// The tables and views that it reads.
    pub reads: BTreeSet<WrittenName>,
    /// Those of `reads` of which it uses any row. Of the target of an update or deletion, it uses
    /// the rows that it changes.
    pub scanned: BTreeSet<WrittenName>,
    /// The tables and views that it changes.
    pub writes: BTreeSet<WrittenName>,
    /// Those of `writes` whose rows it may change for all sessions. A table that it makes without
    /// rows, or as a temporary one, is not among them.
    pub row_targets: BTreeSet<WrittenName>,
    /// The parts that decide which columns it uses.
    pub shape: StatementShape,
    /// A file of the server.
    pub file: Option<CopiedFile>,
    /// The functions and procedures that it calls.
    pub functions: BTreeSet<WrittenName>,
    /// It changes definitions.
    pub defines: bool,
    /// It changes definitions that were there before.
    pub alters: bool,
    /// The tables and views that it defines.
    pub defined: BTreeSet<WrittenName>,
    /// Those of `writes` that it makes: nothing of a former table of that name is in them.
    pub created: BTreeSet<WrittenName>,
    /// Those of `writes` of which it may change or remove rows that were there before.
    pub replaced: BTreeSet<WrittenName>,
    /// The work that its text does not show.
    pub hidden: HiddenWork,
}

impl StatementTables {
    /// Parses a statement, or several.
    ///
    /// # Errors
    ///
    /// The parser's message.
    pub fn of(text: &str, dialect: SqlDialect) -> Result<StatementTables, String> {
        let statements = dialect.parse(text).map_err(|error| error.to_string())?;
        let mut all = StatementTables::default();
        for statement in &statements {
            let mut found = NameCollector {
                dialect,
                ..NameCollector::default()
            };
            let _: ControlFlow<()> = statement.visit(&mut found);
            let NameCollector {
                relations: mut reads,
                local,
                mut targets,
                ..
            } = found;
            for name in found.unread {
                if let Some(at) = reads.iter().position(|read| *read == name) {
                    reads.remove(at);
                }
            }
            if targets.hides_reads {
                reads.clear();
            }
            reads.retain(|name| name.len() > 1 || !local.contains(name));
            let scans = |name: &WrittenName| {
                let count = reads.iter().filter(|read| *read == name).count();
                count > usize::from(targets.changed.contains(name))
            };
            targets
                .tables
                .scanned
                .extend(reads.iter().filter(|name| scans(name)).cloned());
            targets.tables.reads.extend(reads);
            targets.tables.shape = shape_of(statement, dialect);
            all.add(targets.tables);
        }
        Ok(all)
    }

    /// Adds the names of another statement.
    fn add(&mut self, other: StatementTables) {
        self.reads.extend(other.reads);
        self.scanned.extend(other.scanned);
        self.writes.extend(other.writes);
        self.row_targets.extend(other.row_targets);
        self.shape.add(other.shape);
        self.file = self.file.take().or(other.file);
        self.functions.extend(other.functions);
        self.defines |= other.defines;
        self.alters |= other.alters;
        self.defined.extend(other.defined);
        self.created.extend(other.created);
        self.replaced.extend(other.replaced);
        self.hidden = self.hidden.max(other.hidden);
    }
}

/// The tables that a statement, and the statements in its common table expressions, change.
#[derive(Default)]
struct Targets {
    tables: StatementTables,
    /// The tables of which it reads the rows that it changes.
    changed: BTreeSet<WrittenName>,
    /// It reads none of the tables that it names.
    hides_reads: bool,
}

impl NameCollector {
    fn first(&self, table: &TableWithJoins) -> Option<WrittenName> {
        self.of_factor(&table.relation)
    }

    fn of_factor(&self, factor: &TableFactor) -> Option<WrittenName> {
        match factor {
            TableFactor::Table { name, .. } => self.written(name),
            _ => None,
        }
    }

    fn written(&self, name: &ObjectName) -> Option<WrittenName> {
        self.dialect.written(name)
    }

    /// Notes a table that a statement changes. If it is not read, one of its mentions is no read.
    fn target(&mut self, name: Option<WrittenName>, is_read: bool, replaces: bool) {
        let Some(name) = name else { return };
        match is_read {
            true => drop(self.targets.changed.insert(name.clone())),
            false => self.unread.push(name.clone()),
        }
        let tables = &mut self.targets.tables;
        tables.replaced.extend(replaces.then(|| name.clone()));
        tables.row_targets.insert(name.clone());
        tables.writes.insert(name);
    }

    /// Notes a table that a statement makes. `is_new`: a former one makes it fail.
    fn create(&mut self, name: Option<WrittenName>, is_new: bool, has_rows: bool) {
        let tables = &mut self.targets.tables;
        tables.defines = true;
        let Some(name) = name else { return };
        self.unread.push(name.clone());
        tables.defined.insert(name.clone());
        tables.created.extend(is_new.then(|| name.clone()));
        tables.row_targets.extend(has_rows.then(|| name.clone()));
        tables.writes.insert(name);
    }

    /// The table that `SELECT … INTO` makes.
    fn made_by(&self, into: &SelectInto) -> Option<WrittenName> {
        let parts = match &into.targets[..] {
            [Expr::Identifier(name)] => std::slice::from_ref(name),
            [Expr::CompoundIdentifier(parts)] => &parts[..],
            _ => return None,
        };
        Some(parts.iter().map(|part| self.dialect.ident(part)).collect())
    }

    /// Notes tables and views whose definitions change.
    fn alter(&mut self, names: Vec<WrittenName>) {
        let tables = &mut self.targets.tables;
        tables.defines = true;
        tables.alters = true;
        tables.defined.extend(names);
        self.targets.hides_reads = true;
    }

    /// Notes the tables that a statement changes.
    fn add_targets(&mut self, statement: &Statement) {
        match statement {
            Statement::Insert(insert) => {
                if let TableObject::TableName(name) = &insert.table {
                    self.target(self.written(name), false, insert.on.is_some());
                }
            }
            Statement::Update(update) => self.target(self.first(&update.table), true, true),
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                from.iter()
                    .for_each(|table| self.target(self.first(table), true, true));
            }
            Statement::Merge(merge) => self.target(self.of_factor(&merge.table), true, true),
            Statement::Truncate(truncate) => {
                for table in &truncate.table_names {
                    self.target(self.written(&table.name), false, true);
                }
            }
            Statement::CreateTable(create) => {
                let name = self.written(&create.name);
                let has_rows = create.query.is_some() && !create.temporary;
                self.create(name, !create.if_not_exists, has_rows);
            }
            Statement::Query(query) if self.dialect == SqlDialect::Postgres => {
                if let Some(into) = into_of(&query.body) {
                    self.create(self.made_by(into), true, !into.temporary);
                }
            }
            Statement::Copy {
                source,
                to,
                target: file,
                ..
            } => {
                if let CopySource::Table { table_name, .. } = source {
                    match to {
                        true => self.relations.extend(self.dialect.written(table_name)),
                        false => self.target(self.written(table_name), false, false),
                    }
                }
                if let CopyTarget::File { filename } = file {
                    self.targets.tables.file = Some(CopiedFile {
                        path: filename.clone(),
                        written: *to,
                    });
                }
            }
            Statement::Call(function) => {
                let name = self.written(&function.name);
                self.targets.tables.functions.extend(name);
            }
            Statement::Drop { names, .. } => {
                self.alter(names.iter().filter_map(|name| self.written(name)).collect());
            }
            Statement::AlterTable(alter) => {
                self.alter(self.written(&alter.name).into_iter().collect())
            }
            Statement::CreateView(create) => {
                self.alter(self.written(&create.name).into_iter().collect())
            }
            _ => (),
        }
    }
}

/// The clause `INTO` of a query.
fn into_of(query: &SetExpr) -> Option<&SelectInto> {
    match query {
        SetExpr::Select(select) => select.into.as_ref(),
        SetExpr::Query(query) => into_of(&query.body),
        SetExpr::SetOperation { left, .. } => into_of(left),
        _ => None,
    }
}

/// Collects names on the way through a statement.
#[derive(Default)]
struct NameCollector {
    dialect: SqlDialect,
    relations: Vec<WrittenName>,
    /// Mentions of tables that are no reads.
    unread: Vec<WrittenName>,
    /// Common table expressions.
    local: BTreeSet<WrittenName>,
    targets: Targets,
}

impl Visitor for NameCollector {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let dialect = self.dialect;
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.local
            .extend(with.map(|table| vec![dialect.ident(&table.alias.name)]));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = self.written(relation);
        self.relations.extend(name);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table {
                name,
                args: Some(_),
                ..
            }
            | TableFactor::Function { name, .. } => {
                let name = self.written(name);
                self.targets.tables.functions.extend(name);
            }
            _ => (),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.add_targets(statement);
        let hidden = &mut self.targets.tables.hidden;
        *hidden = HiddenWork::of(statement).max(*hidden);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression {
            let name = self.written(&function.name);
            self.targets.tables.functions.extend(name);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
