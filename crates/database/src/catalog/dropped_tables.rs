//! Tables that are gone, but may have been there when a statement ran.
//!
//! A statement is recorded some time after it ran. A script may drop a table as soon as it has used
//! it. Then a look at the catalog finds the table too early, too late, or never.
//!
//! In: the catalog that was read before, and the tables of commits. Out: which table a name meant
//! at a time.
//!
//! Invariant: a table that the catalog has is meant before one that is gone.

use std::collections::HashMap;

use super::{Catalog, TableName};

/// Statements wait no longer than this to be recorded, in ns.
const WAIT: i64 = 60_000_000_000;
/// Most tables that are remembered.
const MOST: usize = 10_000;

/// Tables that are gone, and until when they may have been there, in ns since 1970.
#[derive(Debug, Default)]
pub(super) struct DroppedTables(HashMap<TableName, i64>);

impl DroppedTables {
    /// The table that a statement of a time can have named, in ns since 1970.
    fn named(&self, name: &[String], path: &[String], time: i64) -> Option<TableName> {
        let was_there = |table: &TableName| {
            let until = self.0.get(table);
            until.is_some_and(|until| time < *until)
        };
        match name {
            [table] => {
                let mut usual = path.iter().map(|schema| (schema.clone(), table.clone()));
                usual.find(was_there)
            }
            [.., schema, table] => Some((schema.clone(), table.clone())).filter(was_there),
            [] => None,
        }
    }
}

impl Catalog {
    /// The table that a statement of a time named, in ns since 1970. It may be gone since.
    pub fn resolve_at(&self, name: &[String], path: &[String], time: i64) -> Option<TableName> {
        let present = self.resolve(name, path);
        present.or_else(|| self.dropped.named(name, path, time))
    }

    /// Remembers the tables of the catalog that was read before which are gone.
    pub fn remember_dropped(&mut self, former: &mut Catalog) {
        let oldest = self.read.0.saturating_sub(WAIT);
        self.dropped = std::mem::take(&mut former.dropped);
        self.dropped.0.retain(|_, until| *until > oldest);
        let is_gone = |name: &&TableName| !self.tables.contains_key(*name) && !former.is_view(name);
        let gone: Vec<TableName> = former.tables.keys().filter(is_gone).cloned().collect();
        gone.into_iter().for_each(|name| self.add_dropped(name));
        // A change of a dropped table may be one of a partition.
        let names = self.dropped.0.keys().map(|(_, table)| table);
        let relatives = names.filter(|table| former.relatives.contains(*table));
        self.relatives.extend(relatives.cloned());
    }

    /// Remembers a table that was there before the catalog was read, unless the catalog has it. A
    /// temporary table is one of its session alone.
    pub fn add_dropped(&mut self, name: TableName) {
        let is_gone = !self.tables.contains_key(&name) && !name.0.starts_with("pg_temp_");
        if is_gone && self.dropped.0.len() < MOST {
            self.dropped.0.insert(name, self.read.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogTable;

    fn name(schema: &str, table: &str) -> TableName {
        (schema.to_owned(), table.to_owned())
    }

    /// A catalog with two tables and a view, that was read at a time.
    fn catalog(read: (i64, i64)) -> Catalog {
        let mut catalog = Catalog {
            read,
            ..Catalog::default()
        };
        for table in [name("x", "a"), name("public", "a"), name("x", "v")] {
            catalog.add(table, CatalogTable::default());
        }
        catalog.add_part(name("x", "v"), name("x", "a"));
        catalog
    }

    fn named(catalog: &Catalog, text: &str, time: i64) -> Option<TableName> {
        let path = ["x".to_owned(), "public".to_owned()];
        let parts: Vec<String> = text.split('.').map(Into::into).collect();
        catalog.resolve_at(&parts, &path, time)
    }

    #[test]
    fn a_statement_before_the_drop_of_a_table_names_it() {
        let mut present = Catalog {
            read: (40, 50),
            ..Catalog::default()
        };
        present.remember_dropped(&mut catalog((20, 30)));
        assert_eq!(named(&present, "a", 49), Some(name("x", "a")));
        assert_eq!(named(&present, "public.a", 49), Some(name("public", "a")));
        for (text, time) in [("a", 50), ("v", 49), ("public.b", 49)] {
            assert_eq!(named(&present, text, time), None, "{text}");
        }
        present.add_dropped(name("public", "b"));
        assert_eq!(named(&present, "b", 49), Some(name("public", "b")));
    }

    #[test]
    fn a_dropped_table_keeps_its_relatives() {
        let parent = CatalogTable {
            has_relatives: true,
            ..CatalogTable::default()
        };
        let mut former = catalog((20, 30));
        former.add(name("x", "parent"), parent);
        for read in [(40, 50), (60, 70)] {
            let mut present = Catalog {
                read,
                ..Catalog::default()
            };
            present.remember_dropped(&mut former);
            assert!(present.has_relatives("parent") && !present.has_relatives("a"));
            former = present;
        }
    }

    #[test]
    fn a_dropped_table_is_forgotten_and_a_present_one_is_meant_before_it() {
        let mut present = catalog((40, 50));
        present.add_dropped(name("x", "a"));
        present.add_dropped(name("x", "b"));
        assert_eq!(named(&present, "a", 60), Some(name("x", "a")));
        assert_eq!(named(&present, "b", 49), Some(name("x", "b")));
        let mut later = catalog((WAIT + 50, WAIT + 60));
        later.remember_dropped(&mut present);
        assert_eq!(named(&later, "b", 49), None);
    }
}
