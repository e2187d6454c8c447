//! The tables and views of the database, by the server's catalog.
//!
//! In: the catalog's tables, as the crate of a database reads them. Out: which table a name in a
//! statement means, the tables behind a view, and columns.

mod dropped_tables;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::dropped_tables::DroppedTables;
use crate::columns::shape::StatementShape;
use crate::definitions::Definitions;
use crate::routines::{Routines, can_mean};
use crate::sql_dialect::{SqlDialect, WrittenName};
use crate::view_query::ViewQuery;

/// Schema and name of a table or view.
pub type TableName = (String, String);

/// A table or view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogTable {
    /// The columns of its primary key, in the key's order.
    pub key: Vec<String>,
    /// Its columns, in their order. None: they are unknown.
    pub columns: Vec<String>,
    /// Its row changes are in the write-ahead log: neither temporary, nor unlogged, nor foreign.
    pub logged: bool,
    /// A changed or deleted row can be told by its replica identity.
    pub identified: bool,
    /// The server checks at each change that no other row has the same key.
    pub checks_key: bool,
    /// It is a partition, has partitions, inherits, or is inherited from.
    pub has_relatives: bool,
    /// Rules replace statements that change it.
    pub has_rules: bool,
}

/// The tables and views of the database.
#[derive(Debug, Default)]
pub struct Catalog {
    tables: HashMap<TableName, CatalogTable>,
    /// The tables and views that a view reads.
    views: HashMap<TableName, BTreeSet<TableName>>,
    /// The functions that a view calls.
    view_calls: HashMap<TableName, BTreeSet<WrittenName>>,
    /// The queries of views.
    queries: HashMap<TableName, Arc<ViewQuery>>,
    /// The server's words for the state of its views.
    views_state: String,
    /// Since when tables have these columns.
    pub definitions: Definitions,
    /// Another catalog has another number.
    version: u64,
    /// The routines and triggers.
    pub routines: Routines,
    /// A name without a schema may mean a table of a schema that is not looked in at first.
    is_searched: bool,
    /// The names, without schemas, of tables with relatives, and of those with rules.
    relatives: HashSet<String>,
    ruled: HashSet<String>,
    /// Tables that are gone.
    dropped: DroppedTables,
    /// Texts that differ may be equal, by the collation of their column.
    pub has_loose_texts: bool,
    /// Before and after it was read, in ns since 1970.
    pub read: (i64, i64),
}

impl Catalog {
    /// A catalog without tables. If it `is_searched`, a name without a schema may mean a table of a
    /// schema that is not looked in at first.
    pub fn new(routines: Routines, is_searched: bool) -> Catalog {
        static VERSIONS: AtomicU64 = AtomicU64::new(1);
        Catalog {
            routines,
            is_searched,
            version: VERSIONS.fetch_add(1, Ordering::Relaxed),
            ..Catalog::default()
        }
    }

    /// The number of this catalog.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The SQL of the database.
    pub(crate) fn dialect(&self) -> SqlDialect {
        self.routines.dialect()
    }

    /// Compares this catalog with the one that was read before it. It was read between two times,
    /// in ns since 1970.
    pub fn follow(&mut self, former: &mut Catalog, read: (i64, i64)) {
        let is_same = |name: &TableName, table: &CatalogTable| {
            let columns = former.tables.get(name).map(|table| &table.columns);
            columns.map(|columns| {
                *columns == table.columns && former.queries.get(name) == self.queries.get(name)
            })
        };
        let tables = self.tables.iter();
        let changed = tables.filter_map(|(name, table)| match is_same(name, table) {
            Some(true) => None,
            Some(false) => Some((name.clone(), false)),
            None => Some((name.clone(), true)),
        });
        let changed: Vec<(TableName, bool)> = changed.collect();
        self.definitions = std::mem::take(&mut former.definitions);
        self.definitions.read_again(changed, read);
        self.definitions.keep(|name| self.tables.contains_key(name));
    }

    /// Adds the query of a view.
    pub fn add_query(&mut self, view: TableName, query: Arc<ViewQuery>) {
        self.queries.insert(view, query);
    }

    /// Sets the server's words for the state of its views.
    pub fn set_views(&mut self, state: String) {
        self.views_state = state;
    }

    /// True if the views have this state.
    pub fn has_views(&self, state: &str) -> bool {
        self.views_state == state
    }

    /// Adds the columns of tables and views.
    pub fn add_columns(&mut self, mut columns: HashMap<TableName, Vec<String>>) {
        for (name, table) in &mut self.tables {
            table.columns = columns.remove(name).unwrap_or_default();
        }
    }

    /// True if another catalog has a table that this one does not have.
    pub fn lacks_tables_of(&self, other: &Catalog) -> bool {
        let lacks = |name: &TableName| !self.tables.contains_key(name);
        other.tables.keys().any(lacks)
    }

    /// Takes columns, the queries of views, and what is known of their changes, from the catalog
    /// that was read before.
    pub fn take_columns(&mut self, former: &mut Catalog) {
        for (name, table) in &mut self.tables {
            if let Some(former) = former.tables.get_mut(name) {
                table.columns = std::mem::take(&mut former.columns);
            }
        }
        self.queries = std::mem::take(&mut former.queries);
        self.views_state = std::mem::take(&mut former.views_state);
        self.definitions = std::mem::take(&mut former.definitions);
    }

    /// True if the tables are those of another catalog, with the same columns.
    pub fn has_columns_of(&self, other: &Catalog) -> bool {
        let same = |name: &TableName, table: &CatalogTable| {
            let own = self.tables.get(name);
            own.is_some_and(|own| own.columns == table.columns)
        };
        self.tables.len() == other.tables.len()
            && other.tables.iter().all(|(name, table)| same(name, table))
    }

    /// Takes the queries of views from another catalog that has the same views.
    pub fn take_queries(&mut self, other: &Catalog) {
        self.queries.clone_from(&other.queries);
        self.views_state.clone_from(&other.views_state);
    }

    /// The shape of the query of a view, if it can be parsed.
    pub(crate) fn shape(&self, view: &TableName) -> Option<&StatementShape> {
        self.queries.get(view)?.shape(self.dialect())
    }

    /// True for a view.
    pub(crate) fn is_view(&self, name: &TableName) -> bool {
        self.queries.contains_key(name) || self.views.contains_key(name)
    }

    /// Adds a table or view.
    pub fn add(&mut self, name: TableName, table: CatalogTable) {
        self.relatives
            .extend(table.has_relatives.then(|| name.1.clone()));
        self.ruled.extend(table.has_rules.then(|| name.1.clone()));
        self.tables.insert(name, table);
    }

    /// Adds a table or view that a view reads.
    pub fn add_part(&mut self, view: TableName, table: TableName) {
        self.views.entry(view).or_default().insert(table);
    }

    /// Adds a function that a view calls.
    pub fn add_call(&mut self, view: TableName, function: TableName) {
        let (schema, name) = function;
        let calls = self.view_calls.entry(view).or_default();
        calls.insert(vec![schema, name]);
    }

    /// A table or view.
    pub fn table(&self, name: &TableName) -> Option<&CatalogTable> {
        self.tables.get(name)
    }

    /// All tables and views.
    pub fn tables(&self) -> impl Iterator<Item = (&TableName, &CatalogTable)> {
        self.tables.iter()
    }

    /// The table that a statement names. A name without a schema is looked for in the schemas of
    /// the path, in their order.
    pub fn resolve(&self, name: &[String], path: &[String]) -> Option<TableName> {
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
        let usual = path.iter().find_map(|schema| in_schema(schema));
        usual.or_else(|| {
            let all = self.tables.keys().filter(|_| self.is_searched);
            all.filter(|name| name.1 == *table).min().cloned()
        })
    }

    /// True if it has the functions and triggers of a transaction that began and committed at these
    /// times, in ns since 1970.
    pub fn is_steady(&self, times: (i64, i64)) -> bool {
        self.definitions.is_steady(times, self.read)
    }

    /// True if a table of this name, in whichever schema, is a partition or the like.
    pub fn has_relatives(&self, name: &str) -> bool {
        self.relatives.contains(name)
    }

    /// True if a table of this name, in whichever schema, has rules.
    pub fn has_rules(&self, name: &str) -> bool {
        self.ruled.contains(name)
    }

    /// The views that a name can mean.
    pub fn views_named<'c>(&'c self, name: &'c [String]) -> impl Iterator<Item = &'c TableName> {
        self.views.keys().filter(move |view| can_mean(name, view))
    }

    /// The tables that a table or view consists of.
    pub fn behind(&self, name: &TableName) -> BTreeSet<TableName> {
        let mut found = self.with_parts(name);
        found.retain(|part| !self.views.contains_key(part));
        found
    }

    /// The functions that a view and its views call.
    pub fn calls_behind(&self, name: &TableName) -> BTreeSet<WrittenName> {
        if self.view_calls.is_empty() {
            return BTreeSet::new();
        }
        let parts = self.with_parts(name).into_iter();
        let calls = parts.filter_map(|part| self.view_calls.get(&part));
        calls.flatten().cloned().collect()
    }

    /// A table or view, and the tables and views in it.
    fn with_parts(&self, name: &TableName) -> BTreeSet<TableName> {
        let mut seen = BTreeSet::new();
        let mut open = vec![name.clone()];
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(self.views.get(&next).into_iter().flatten().cloned());
            }
        }
        seen
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
            columns: Vec::new(),
            logged: true,
            ..CatalogTable::default()
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
            is_searched: true,
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
            let path = ["pg_catalog", user, "public"].map(Into::into);
            catalog().resolve(&parts, &path)
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
