//! The tables that statements possibly change beside those that they name.
//!
//! In: the names of tables that change, or of functions that are called. Out: the tables that
//! triggers, foreign keys and functions possibly change then, and those that change as a
//! consequence of that.
//!
//! Invariant: no table is missing, whatever the schemas are in which a session looks for names. So
//! a name without a schema means each table of this name.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, TableName};
use crate::routines::can_mean;
use crate::sql_dialect::WrittenName;

/// Tables that possibly change in any way.
#[derive(Debug, Clone, Default)]
pub struct PossibleChanges {
    names: BTreeSet<WrittenName>,
    /// Any partition, and any table that inherits or is inherited from.
    relatives: bool,
}

impl PossibleChanges {
    /// Adds the tables that a name can mean.
    pub fn add(&mut self, name: WrittenName) {
        self.names.insert(name);
    }

    /// Adds others.
    pub fn extend(&mut self, others: PossibleChanges) {
        self.names.extend(others.names);
        self.relatives |= others.relatives;
    }

    /// True if the table possibly changes.
    pub fn has(&self, table: &TableName, catalog: &Catalog) -> bool {
        let is_relative = || catalog.has_relatives(&table.1);
        self.names.iter().any(|name| can_mean(name, table)) || self.relatives && is_relative()
    }
}

impl Catalog {
    /// The tables that possibly change as a consequence of changes of these. `None`: any.
    pub fn changes_after(
        &self,
        changed: impl IntoIterator<Item = WrittenName>,
    ) -> Option<PossibleChanges> {
        let mut found = PossibleChanges::default();
        let mut seen: BTreeSet<WrittenName> = BTreeSet::new();
        let mut open: Vec<WrittenName> = changed.into_iter().collect();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let own = name.last()?;
            // A rule replaces a statement by others.
            if self.has_rules(own) {
                return None;
            }
            let are_relatives = self.has_relatives(own) && !found.relatives;
            found.relatives |= are_relatives;
            let called = self.routines.tables_changed_after(|table| {
                can_mean(&name, table) || are_relatives && self.has_relatives(&table.1)
            });
            if called.changes_any {
                return None;
            }
            let mut further = called.writes;
            further.extend(self.parts_of_views(&name));
            found.names.extend(further.iter().cloned());
            open.extend(further);
        }
        Some(found)
    }

    /// The tables that possibly change when these functions are called. `None`: any.
    pub fn changes_of_calls<'n>(
        &self,
        functions: impl IntoIterator<Item = &'n WrittenName>,
    ) -> Option<PossibleChanges> {
        let called = self.routines.tables_of_calls(functions);
        if called.changes_any {
            return None;
        }
        let mut found = self.changes_after(called.writes.iter().cloned())?;
        found.names.extend(called.writes);
        Some(found)
    }

    /// The tables that triggers possibly change at the commit. `None`: any.
    pub fn changes_at_commit(&self) -> Option<PossibleChanges> {
        self.changes_of_calls(self.routines.deferred())
    }

    /// The functions that a statement calls without their names: those of views that it reads, and
    /// those of definitions.
    pub fn unnamed_calls(&self, reads: &BTreeSet<WrittenName>) -> BTreeSet<WrittenName> {
        let mut found = self.routines.implied().clone();
        for name in reads {
            let views = self.views_named(name);
            found.extend(views.flat_map(|view| self.calls_behind(view)));
        }
        found
    }

    /// The tables and views in the views that a name can mean.
    fn parts_of_views(&self, name: &[String]) -> BTreeSet<WrittenName> {
        let views = self.views_named(name);
        let parts = views.flat_map(|view| self.behind(view));
        parts.map(|(schema, table)| vec![schema, table]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in_functions::BuiltInFunctions;
    use crate::catalog::CatalogTable;
    use crate::routines::{RoutineBody, Routines};
    use crate::sql_dialect::SqlDialect;
    use std::sync::Arc;

    fn public(name: &str) -> TableName {
        ("public".to_owned(), name.to_owned())
    }

    /// `a` has a trigger that changes `b`, whose rows `c` follows. `root` has the partition `leaf`,
    /// whose trigger changes `log`. `ruled` has a rule, and `v` is a view of `d`.
    fn catalog() -> Catalog {
        let built_in = BuiltInFunctions::new(["lower".to_owned()]);
        let mut routines = Routines::new(SqlDialect::Postgres, Arc::new(built_in));
        for (name, body) in [
            ("fired", "UPDATE b SET x = 1"),
            ("logs", "INSERT INTO log VALUES (1)"),
            ("late", "DELETE FROM a"),
        ] {
            routines.add(public(name), RoutineBody::Plain(body.to_owned()));
        }
        routines.add_trigger(public("a"), public("fired"));
        routines.add_trigger(public("leaf"), public("logs"));
        routines.add_cascade(public("c"), public("b"));
        routines.add_deferred(&public("late"));
        routines.add_implied(&public("logs"));
        let mut catalog = Catalog::new(routines, true);
        for name in ["a", "b", "c", "d", "e", "log", "root", "leaf", "ruled", "v"] {
            let table = CatalogTable {
                has_relatives: ["root", "leaf"].contains(&name),
                has_rules: name == "ruled",
                ..CatalogTable::default()
            };
            catalog.add(public(name), table);
        }
        catalog.add_part(public("v"), public("d"));
        catalog
    }

    fn after(name: &str) -> Option<Vec<&'static str>> {
        let catalog = catalog();
        let found = catalog.changes_after([vec![name.to_owned()]])?;
        let all = ["a", "b", "c", "d", "e", "log", "root", "leaf"];
        let has = |name: &&str| found.has(&public(name), &catalog);
        Some(all.into_iter().filter(has).collect())
    }

    #[test]
    fn a_change_has_those_of_triggers_and_foreign_keys_as_consequences() {
        assert_eq!(after("a"), Some(vec!["b", "c"]));
        assert_eq!(after("b"), Some(vec!["c"]));
        assert_eq!(after("e"), Some(Vec::new()));
        assert_eq!(after("v"), Some(vec!["d"]));
        assert_eq!(after("ruled"), None);
    }

    #[test]
    fn a_partition_changes_with_any_of_its_relatives_and_so_does_what_follows() {
        for name in ["root", "leaf"] {
            assert_eq!(after(name), Some(vec!["log", "root", "leaf"]));
        }
    }

    #[test]
    fn the_triggers_of_the_commit_change_tables_with_all_consequences() {
        let catalog = catalog();
        let found = catalog.changes_at_commit().unwrap();
        let has = |name: &str| found.has(&public(name), &catalog);
        assert!(has("a") && has("b") && has("c") && !has("d") && !has("log"));
        let calls = catalog.unnamed_calls(&BTreeSet::new());
        let found = catalog.changes_of_calls(&calls).unwrap();
        assert!(found.has(&public("log"), &catalog));
        let unknown = vec!["unlisted".to_owned()];
        assert!(catalog.changes_of_calls([&unknown]).is_none());
    }
}
