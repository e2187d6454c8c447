//! Reads the columns of tables and views, and the queries of views.
//!
//! A watch looks at the catalog each second. In a large database, its columns are not read at each
//! look, unless a statement may have changed some. The texts of views are read again only if
//! columns or views changed, because the server composes them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use backstory_database::catalog::{Catalog, TableName};
use backstory_database::error::Error;
use backstory_database::view_query::ViewQuery;
use backstory_sys::clock;

use crate::connection::Connection;

const COLUMNS: &str = "SELECT n.nspname, c.relname, a.attname \
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%' \
    ORDER BY a.attrelid, a.attnum";

/// The views, and the transactions that made their queries.
const QUERIES: &str = "SELECT n.nspname, v.relname, r.xmin, v.oid \
    FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class \
    JOIN pg_namespace n ON n.oid = v.relnamespace \
    WHERE r.rulename = '_RETURN' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";

/// Names in the texts of views have their schemas.
const WHOLE_NAMES: &str = "SET search_path = pg_catalog";

/// The texts of the queries of views.
const TEXTS: &str = "SELECT n.nspname, v.relname, \
    CASE WHEN length(t.text) < 65536 THEN t.text ELSE '' END \
    FROM pg_class v JOIN pg_namespace n ON n.oid = v.relnamespace, \
    LATERAL (SELECT pg_get_viewdef(v.oid) AS text) t \
    WHERE v.relkind IN ('v', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')";

/// Reading takes at most this part of the time, unless definitions change.
const SHARE: u32 = 50;

/// Reads columns, and remembers how long it took.
#[derive(Debug, Default)]
pub(crate) struct ColumnReader {
    last: Option<Instant>,
    cost: Duration,
}

impl ColumnReader {
    /// Adds columns and the queries of views to a catalog, which began to be read at a time, in ns
    /// since 1970. `former`: the one that was read before.
    pub(crate) fn read(
        &mut self,
        connection: &mut Connection,
        catalog: &mut Catalog,
        former: Option<&mut Catalog>,
        began: i64,
    ) -> Result<(), Error> {
        let Some(former) = former else {
            self.read_all(connection, catalog, None)?;
            catalog.definitions.begin(began);
            return Ok(());
        };
        let is_over = self
            .last
            .is_none_or(|last| last.elapsed() >= self.cost * SHARE);
        let is_due = is_over || !former.definitions.is_covered() || former.lacks_tables_of(catalog);
        if !is_due {
            catalog.take_columns(former);
            return Ok(());
        }
        self.read_all(connection, catalog, Some(former))?;
        catalog.follow(former, (began, clock::machine()));
        Ok(())
    }

    fn read_all(
        &mut self,
        connection: &mut Connection,
        catalog: &mut Catalog,
        former: Option<&Catalog>,
    ) -> Result<(), Error> {
        let began = Instant::now();
        let mut columns: HashMap<TableName, Vec<String>> = HashMap::new();
        for row in connection.query(COLUMNS)? {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || texts.next().unwrap_or_default();
            let (table, column) = ((next(), next()), next());
            columns.entry(table).or_default().push(column);
        }
        catalog.add_columns(columns);
        read_queries(connection, catalog, former)?;
        self.cost = began.elapsed();
        self.last = Some(Instant::now());
        Ok(())
    }
}

/// Reads the queries of views, unless they are those of the former catalog.
fn read_queries(
    connection: &mut Connection,
    catalog: &mut Catalog,
    former: Option<&Catalog>,
) -> Result<(), Error> {
    let mut state = String::new();
    for row in connection.query(QUERIES)? {
        let texts: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
        state.push_str(&format!("{texts:?}"));
    }
    if state.is_empty() {
        return Ok(());
    }
    if let Some(former) = former
        && former.has_views(&state)
        && former.has_columns_of(catalog)
    {
        catalog.take_queries(former);
        return Ok(());
    }
    connection.query(WHOLE_NAMES)?;
    for row in connection.query(TEXTS)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let (view, text) = ((next(), next()), next());
        catalog.add_query(view, ViewQuery::new(text));
    }
    catalog.set_views(state);
    Ok(())
}
