//! The calls that no statement names: those of triggers, and of definitions such as operators.

use std::collections::BTreeSet;

use super::{CalledTables, QualifiedName, Routine, RoutineBody, Routines};
use crate::sql_dialect::WrittenName;

/// True if a name in a statement can mean this table, whatever the schemas are in which a name
/// without one is looked for.
pub fn can_mean(name: &[String], (schema, table): &QualifiedName) -> bool {
    match name {
        [own] => own == table,
        [.., within, own] => own == table && within == schema,
        [] => false,
    }
}

fn written((schema, name): &QualifiedName) -> WrittenName {
    vec![schema.clone(), name.clone()]
}

impl Routines {
    /// Adds a function that a trigger calls at the commit.
    pub fn add_deferred(&mut self, function: &QualifiedName) {
        self.deferred.insert(written(function));
    }

    /// Adds a function that statements call without its name: for an operator, a default value, a
    /// check or a policy.
    pub fn add_implied(&mut self, function: &QualifiedName) {
        self.implied.insert(written(function));
    }

    /// True if changes of a table that the name can mean call a function.
    pub fn has_trigger(&self, name: &[String]) -> bool {
        self.triggers.keys().any(|table| can_mean(name, table))
    }

    /// True if a routine or trigger can have a statement with this text.
    pub fn has_text(&self, text: &str) -> bool {
        let text = text.trim().trim_end_matches(';');
        let has = |routine: &Routine| match &routine.body {
            RoutineBody::Plain(body) | RoutineBody::Branching(body) => body.contains(text),
            RoutineBody::Opaque { .. } => true,
        };
        self.by_name.values().flatten().any(has)
    }

    /// The functions that triggers call at the commit.
    pub(crate) fn deferred(&self) -> &BTreeSet<WrittenName> {
        &self.deferred
    }

    /// The functions that statements call without their names.
    pub(crate) fn implied(&self) -> &BTreeSet<WrittenName> {
        &self.implied
    }

    /// The tables that triggers and foreign keys possibly change when rows of these tables change.
    pub(crate) fn tables_changed_after(
        &self,
        is_changed: impl Fn(&QualifiedName) -> bool,
    ) -> CalledTables {
        let mut called = CalledTables::default();
        let triggers = self.triggers.iter().filter(|(table, _)| is_changed(table));
        // Thousands of partitions can have one function.
        let functions: BTreeSet<&QualifiedName> = triggers.flat_map(|(_, all)| all).collect();
        let names: Vec<WrittenName> = functions.into_iter().map(written).collect();
        self.follow(names.iter().map(|name| (name, false)), &mut called);
        let cascades = self.cascades.iter();
        let cascades = cascades.filter(|(other, _)| is_changed(other));
        let tables = cascades.flat_map(|(_, tables)| tables.iter().map(written));
        called.writes.extend(tables);
        called
    }
}
