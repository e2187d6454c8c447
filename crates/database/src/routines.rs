//! The functions, procedures and triggers of the database, and the tables that they use.
//!
//! In: the catalog's texts of routines, and the names of the server's own functions. Out: the names
//! of tables that a call reads and changes. The statements of a plain routine are all executed, so
//! its reads are sure. Another one, as in PL/pgSQL, has branches, and its text is a language of its
//! own. Each name after `FROM` and `JOIN` is possibly read. Each name after `INSERT INTO`, `UPDATE`
//! and `DELETE FROM` possibly changes.
//!
//! Invariant: a function of the server itself uses no table. Other functions are in
//! `unknown`: those in other languages, those that build statements as text, and those that are
//! newer than the catalog.

mod scanned_text;
mod unnamed_calls;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use crate::built_in_functions::BuiltInFunctions;
use crate::columns::shape::StatementShape;
use crate::sql_dialect::{SqlDialect, WrittenName};
use crate::statement_tables::StatementTables;

use scanned_text::{names_in_text, quoted_blocks};
pub use unnamed_calls::can_mean;

/// Schema and name of a routine or table.
type QualifiedName = (String, String);

/// The text of a routine, as the catalog shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutineBody {
    /// Statements that are all executed.
    Plain(String),
    /// Statements with branches.
    Branching(String),
    /// Another language, or a text that is too long.
    Opaque {
        /// It may change tables.
        changes: bool,
    },
}

/// A function or procedure. Several may share a name.
#[derive(Debug)]
struct Routine {
    body: RoutineBody,
    /// The names in the body, once they are needed.
    names: OnceLock<RoutineNames>,
}

/// All functions, procedures and triggers.
#[derive(Debug, Default)]
pub struct Routines {
    dialect: SqlDialect,
    /// The functions of the server itself.
    built_in: Arc<BuiltInFunctions>,
    /// By schema and name.
    by_name: HashMap<QualifiedName, Vec<Routine>>,
    /// The schemas of routines with a name.
    schemas: HashMap<String, BTreeSet<String>>,
    /// The functions that changes of a table call.
    triggers: HashMap<QualifiedName, BTreeSet<QualifiedName>>,
    /// The tables whose foreign keys change their rows when rows of a table change.
    cascades: HashMap<QualifiedName, BTreeSet<QualifiedName>>,
    /// The functions that triggers call at the commit.
    deferred: BTreeSet<WrittenName>,
    /// The functions that statements call without their names.
    implied: BTreeSet<WrittenName>,
}

/// Names of tables, and whether they are certainly read.
pub type RoutineReads = BTreeMap<WrittenName, bool>;

/// The tables that calls use, and the functions whose tables are unknown.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CalledTables {
    /// The tables that are read.
    pub reads: RoutineReads,
    /// The tables that possibly change.
    pub writes: BTreeSet<WrittenName>,
    /// The functions that may read any table.
    pub unknown: BTreeSet<WrittenName>,
    /// One of them may change any table.
    pub changes_any: bool,
    /// The statements of those that are all executed, and whether they certainly are.
    pub(crate) shapes: Vec<(Arc<StatementShape>, bool)>,
}

impl CalledTables {
    /// True if a table may change.
    pub fn may_write(&self) -> bool {
        !self.writes.is_empty() || self.changes_any
    }
}

/// The names in a routine.
#[derive(Debug, Clone, Default)]
struct RoutineNames {
    reads: BTreeSet<WrittenName>,
    writes: BTreeSet<WrittenName>,
    calls: BTreeSet<WrittenName>,
    /// Those of `calls` that are words of the grammar, too, as `IF (`.
    keywords: BTreeSet<WrittenName>,
    /// The statements, if they are all executed.
    shape: Option<Arc<StatementShape>>,
    /// It builds statements as text.
    builds_statements: bool,
}

impl Routines {
    /// No routines.
    pub fn new(dialect: SqlDialect, built_in: Arc<BuiltInFunctions>) -> Routines {
        Routines {
            dialect,
            built_in,
            ..Routines::default()
        }
    }

    /// The SQL of the routines.
    pub(crate) fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    /// Adds a routine.
    pub fn add(&mut self, name: QualifiedName, body: RoutineBody) {
        let (schema, own) = name.clone();
        self.schemas.entry(own).or_default().insert(schema);
        let same_name = self.by_name.entry(name).or_default();
        same_name.push(Routine {
            body,
            names: OnceLock::new(),
        });
    }

    /// Adds a function that changes of a table call.
    pub fn add_trigger(&mut self, table: QualifiedName, function: QualifiedName) {
        self.triggers.entry(table).or_default().insert(function);
    }

    /// Adds a table whose foreign keys change its rows when rows of `other` change.
    pub fn add_cascade(&mut self, table: QualifiedName, other: QualifiedName) {
        self.cascades.entry(other).or_default().insert(table);
    }

    /// True if there are no routines.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// True if a statement may use tables that it does not name: those of routines, triggers and
    /// foreign keys.
    pub(crate) fn has_effects(&self) -> bool {
        !self.is_empty() || !self.cascades.is_empty()
    }

    /// True if a name is that of a routine.
    pub fn has(&self, name: &WrittenName) -> bool {
        !self.named(name).is_empty()
    }

    /// True if a name is neither that of a routine nor that of a function of the server.
    pub fn lacks(&self, name: &WrittenName) -> bool {
        !self.has(name) && !self.built_in.has(name)
    }

    /// The tables that calls of these functions use.
    pub fn tables_of_calls<'n>(
        &self,
        names: impl IntoIterator<Item = &'n WrittenName>,
    ) -> CalledTables {
        let mut called = CalledTables::default();
        self.follow(names.into_iter().map(|name| (name, true)), &mut called);
        called
    }

    /// The tables that a statement possibly uses which the parser does not know. A `DO` block of
    /// PostgreSQL has its statements in a quoted text.
    pub fn tables_of_text(&self, text: &str) -> CalledTables {
        let mut names = names_in_text(text, self.dialect);
        for block in quoted_blocks(text, self.dialect) {
            names.add(names_in_text(&block, self.dialect));
        }
        let mut called = CalledTables {
            reads: names.reads.into_iter().map(|name| (name, false)).collect(),
            writes: names.writes,
            changes_any: names.builds_statements,
            ..CalledTables::default()
        };
        let calls = names.calls.iter();
        let calls = calls.filter(|name| !names.keywords.contains(*name) || self.has(name));
        self.follow(calls.map(|name| (name, false)), &mut called);
        called
    }

    /// The tables that the triggers of a table read when its rows change. A trigger is for some
    /// kinds of changes, and may have a condition.
    pub fn reads_of_triggers(&self, table: &QualifiedName) -> RoutineReads {
        self.triggered(table).reads
    }

    /// The tables that the triggers and foreign keys of others possibly change when rows of a table
    /// change.
    pub fn writes_of_triggers(&self, table: &QualifiedName) -> BTreeSet<WrittenName> {
        let mut writes = self.triggered(table).writes;
        let cascades = self.cascades.get(table).into_iter().flatten();
        writes.extend(cascades.map(|(schema, name)| vec![schema.clone(), name.clone()]));
        writes
    }

    fn triggered(&self, table: &QualifiedName) -> CalledTables {
        let mut called = CalledTables::default();
        let functions = self.triggers.get(table).into_iter().flatten();
        let names: Vec<WrittenName> = functions
            .map(|(schema, name)| vec![schema.clone(), name.clone()])
            .collect();
        self.follow(names.iter().map(|name| (name, false)), &mut called);
        called
    }

    /// True if rows of a table can change otherwise than a statement says: by a trigger or a key.
    pub fn may_change(&self, table: &QualifiedName) -> bool {
        let mut cascades = self.cascades.values();
        self.triggers.contains_key(table) || cascades.any(|tables| tables.contains(table))
    }

    /// The routines that a name can mean. Without a schema, those of any schema.
    fn named(&self, name: &WrittenName) -> Vec<QualifiedName> {
        let (schemas, name) = match &name[..] {
            [name] => (self.schemas.get(name), name),
            [.., schema, name] => {
                let name = (schema.clone(), name.clone());
                let known = self.by_name.contains_key(&name);
                return known.then_some(name).into_iter().collect();
            }
            [] => return Vec::new(),
        };
        let schemas = schemas.into_iter().flatten();
        schemas
            .map(|schema| (schema.clone(), name.clone()))
            .collect()
    }

    /// Follows calls from routine to routine. A routine that is possibly called reads possibly. A
    /// name that can mean several routines calls each possibly.
    fn follow<'n>(
        &self,
        names: impl Iterator<Item = (&'n WrittenName, bool)>,
        called: &mut CalledTables,
    ) {
        let mut seen = BTreeSet::new();
        let mut open: Vec<(WrittenName, bool)> =
            names.map(|(name, sure)| (name.clone(), sure)).collect();
        while let Some((name, sure)) = open.pop() {
            if !seen.insert((name.clone(), sure)) {
                continue;
            }
            if self.lacks(&name) {
                called.changes_any = true;
                called.unknown.insert(name);
                continue;
            }
            let meant = self.named(&name);
            let routines: Vec<&Routine> = meant
                .iter()
                .filter_map(|name| self.by_name.get(name))
                .flatten()
                .collect();
            let is_one = routines.len() == 1 && !self.built_in.has(&name);
            for routine in routines {
                let names = match routine.names(self.dialect) {
                    Ok(names) => names,
                    Err(changes) => {
                        called.changes_any |= changes;
                        called.unknown.insert(name.clone());
                        continue;
                    }
                };
                let sure = sure && is_one && names.shape.is_some();
                called
                    .shapes
                    .extend(names.shape.iter().map(|shape| (shape.clone(), sure)));
                for table in &names.reads {
                    *called.reads.entry(table.clone()).or_default() |= sure;
                }
                called.writes.extend(names.writes.iter().cloned());
                if names.builds_statements {
                    called.changes_any = true;
                    called.unknown.insert(name.clone());
                }
                let calls = names.calls.iter();
                let calls = calls.filter(|name| !names.keywords.contains(*name) || self.has(name));
                open.extend(calls.map(|name| (name.clone(), sure)));
            }
        }
    }
}

impl Routine {
    /// The names of tables that it uses, and of the routines that it calls. If its text cannot be
    /// read, whether it may change tables.
    fn names(&self, dialect: SqlDialect) -> Result<&RoutineNames, bool> {
        let (body, is_plain) = match &self.body {
            RoutineBody::Plain(body) => (body, true),
            RoutineBody::Branching(body) => (body, false),
            RoutineBody::Opaque { changes } => return Err(*changes),
        };
        Ok(self.names.get_or_init(|| {
            // The catalog shows a body of the standard's form as BEGIN ATOMIC ... END.
            let body = body.trim();
            let atomic = body.strip_prefix("BEGIN ATOMIC");
            let body = atomic.map_or(body, |body| body.trim_end().trim_end_matches("END"));
            match StatementTables::of(body, dialect) {
                Ok(tables) if is_plain => RoutineNames {
                    reads: tables.scanned,
                    writes: tables.writes,
                    calls: tables.functions,
                    shape: Some(Arc::new(tables.shape)),
                    ..RoutineNames::default()
                },
                _ => names_in_text(body, dialect),
            }
        }))
    }
}

impl RoutineNames {
    /// Adds the names of another text.
    fn add(&mut self, other: RoutineNames) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.calls.extend(other.calls);
        self.keywords.extend(other.keywords);
        self.builds_statements |= other.builds_statements;
    }
}

#[cfg(test)]
mod tests;
