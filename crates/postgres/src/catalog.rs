//! The tables and views of the database, by the server's catalog.
//!
//! In: the catalog's tables. Out: which table a name in a statement means, the tables behind a
//! view, and the columns of a primary key.

use std::collections::{BTreeSet, HashMap};

use crate::Error;
use crate::connection::Connection;
use crate::routines::Routines;

const TABLES: &str = "SELECT n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, \
    coalesce((SELECT string_agg(a.attname, ',' ORDER BY array_position(i.indkey::int2[], a.attnum)) \
      FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) \
      WHERE i.indrelid = c.oid AND i.indisprimary), ''), \
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg_toast%'";

const VIEWS: &str = "SELECT DISTINCT vn.nspname, v.relname, tn.nspname, t.relname \
    FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class \
    JOIN pg_namespace vn ON vn.oid = v.relnamespace \
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid \
      AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid \
    JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'p', 'v', 'm', 'f') \
    JOIN pg_namespace tn ON tn.oid = t.relnamespace WHERE vn.nspname <> 'information_schema'";

/// Schema and name of a table or view.
pub(crate) type TableName = (String, String);

/// A table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogTable {
    /// The columns of its primary key, in the key's order.
    pub(crate) key: Vec<String>,
    /// Its row changes are in the write-ahead log: neither temporary, nor unlogged, nor foreign.
    pub(crate) logged: bool,
    /// A changed or deleted row can be told by its replica identity.
    pub(crate) identified: bool,
}

/// The tables and views of the database.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    tables: HashMap<TableName, CatalogTable>,
    /// The tables and views that a view reads.
    views: HashMap<TableName, BTreeSet<TableName>>,
    pub(crate) routines: Routines,
}

impl Catalog {
    /// Reads the catalog.
    pub(crate) fn read(connection: &mut Connection) -> Result<Catalog, Error> {
        let mut catalog = Catalog {
            routines: Routines::read(connection)?,
            ..Catalog::default()
        };
        for row in connection.query(TABLES)? {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || texts.next().unwrap_or_default();
            let name = (next(), next());
            let (kind, persistence, identity, key) = (next(), next(), next(), next());
            let has_index = next() == "t";
            let key: Vec<String> = key
                .split(',')
                .filter(|c| !c.is_empty())
                .map(Into::into)
                .collect();
            let identified = match &*identity {
                "d" => !key.is_empty(),
                "f" => true,
                "i" => has_index,
                _ => false,
            };
            let logged = persistence == "p" && matches!(&*kind, "r" | "p");
            let table = CatalogTable {
                key,
                logged,
                identified,
            };
            catalog.tables.insert(name, table);
        }
        for row in connection.query(VIEWS)? {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || texts.next().unwrap_or_default();
            let (view, table) = ((next(), next()), (next(), next()));
            catalog.views.entry(view).or_default().insert(table);
        }
        Ok(catalog)
    }

    /// A catalog with one table.
    #[cfg(test)]
    pub(crate) fn of_table(schema: &str, name: &str) -> Catalog {
        let table = CatalogTable {
            key: Vec::new(),
            logged: true,
            identified: true,
        };
        let tables = [((schema.to_owned(), name.to_owned()), table)];
        Catalog {
            tables: tables.into(),
            ..Catalog::default()
        }
    }

    /// A table or view.
    pub(crate) fn table(&self, name: &TableName) -> Option<&CatalogTable> {
        self.tables.get(name)
    }

    /// The tables whose changed and deleted rows can be streamed without breaking a statement.
    pub(crate) fn identified(&self) -> BTreeSet<TableName> {
        let own = |name: &&TableName| !["pg_catalog", "information_schema"].contains(&&*name.0);
        let found = self
            .tables
            .iter()
            .filter(|(_, table)| table.identified && table.logged);
        found.map(|(name, _)| name).filter(own).cloned().collect()
    }

    /// The table that a statement names. A name without a schema is looked for in the schema of the
    /// user, in `public`, and then in all others.
    pub(crate) fn resolve(&self, name: &[String], user: &str) -> Option<TableName> {
        let (table, schema) = match name {
            [table] => (table, None),
            [.., schema, table] => (table, Some(schema)),
            [] => return None,
        };
        let in_schema = |schema: &str| {
            let name = (schema.to_owned(), table.clone());
            self.tables.contains_key(&name).then_some(name)
        };
        if let Some(schema) = schema {
            return in_schema(schema);
        }
        let usual = ["pg_catalog", user, "public"]
            .into_iter()
            .find_map(in_schema);
        usual.or_else(|| {
            self.tables
                .keys()
                .filter(|name| name.1 == *table)
                .min()
                .cloned()
        })
    }

    /// The tables that a table or view consists of.
    pub(crate) fn behind(&self, name: &TableName) -> BTreeSet<TableName> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![name.clone()];
        while let Some(next) = open.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            match self.views.get(&next) {
                Some(parts) => open.extend(parts.iter().cloned()),
                None => drop(found.insert(next)),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(schema: &str, table: &str) -> TableName {
        (schema.to_owned(), table.to_owned())
    }

    fn catalog() -> Catalog {
        let table = CatalogTable {
            key: Vec::new(),
            logged: true,
            identified: false,
        };
        let names = [
            name("public", "a"),
            name("x", "a"),
            name("x", "b"),
            name("x", "v"),
        ];
        let tables = names.into_iter().map(|name| (name, table.clone()));
        let mut catalog = Catalog {
            tables: tables.collect(),
            ..Catalog::default()
        };
        catalog.views.insert(
            name("x", "v"),
            BTreeSet::from([name("x", "w"), name("x", "b")]),
        );
        catalog.views.insert(
            name("x", "w"),
            BTreeSet::from([name("public", "a"), name("x", "v")]),
        );
        catalog
    }

    #[test]
    fn a_name_without_a_schema_means_the_users_table_then_the_public_one() {
        let resolve = |text: &str, user: &str| {
            let parts: Vec<String> = text.split('.').map(Into::into).collect();
            catalog().resolve(&parts, user)
        };
        assert_eq!(resolve("a", "x"), Some(name("x", "a")));
        assert_eq!(resolve("a", "ann"), Some(name("public", "a")));
        assert_eq!(resolve("b", "ann"), Some(name("x", "b")));
        assert_eq!(resolve("x.b", "ann"), Some(name("x", "b")));
        assert_eq!(resolve("public.b", "ann"), None);
    }

    #[test]
    fn a_view_consists_of_the_tables_of_its_views() {
        let tables = catalog().behind(&name("x", "v"));
        assert_eq!(
            tables,
            BTreeSet::from([name("public", "a"), name("x", "b")])
        );
    }
}
