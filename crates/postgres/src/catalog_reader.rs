//! Reads the server's catalog: tables, views, functions, procedures and triggers. `column_reader`
//! reads the columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use backstory_database::built_in_functions::BuiltInFunctions;
use backstory_database::catalog::{Catalog, CatalogTable, TableName};
use backstory_database::error::Error;
use backstory_database::routines::{RoutineBody, Routines};
use backstory_database::sql_dialect::SqlDialect;
use backstory_sys::clock;

use crate::column_reader::ColumnReader;
use crate::connection::Connection;

const TABLES: &str = "SELECT n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, \
    coalesce((SELECT string_agg(a.attname, ',' ORDER BY array_position(i.indkey::int2[], a.attnum)) \
      FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) \
      WHERE i.indrelid = c.oid AND i.indisprimary), ''), \
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident), \
    c.oid IN (SELECT i.indrelid FROM pg_index i WHERE i.indisprimary AND i.indimmediate), \
    c.relhassubclass OR c.relispartition OR c.oid IN (SELECT h.inhrelid FROM pg_inherits h), \
    c.relhasrules AND EXISTS (SELECT FROM pg_rewrite r \
      WHERE r.ev_class = c.oid AND r.ev_type <> '1'), \
    EXISTS (SELECT FROM pg_collation WHERE NOT collisdeterministic) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg_toast%'";

const VIEWS: &str = "SELECT DISTINCT vn.nspname, v.relname, tn.nspname, t.relname \
    FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class \
    JOIN pg_namespace vn ON vn.oid = v.relnamespace \
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid \
      AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid \
    JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'p', 'v', 'm', 'f') \
    JOIN pg_namespace tn ON tn.oid = t.relnamespace WHERE vn.nspname <> 'information_schema'";

const VIEW_CALLS: &str = "SELECT DISTINCT vn.nspname, v.relname, fn.nspname, p.proname \
    FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class \
    JOIN pg_namespace vn ON vn.oid = v.relnamespace \
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid \
      AND d.refclassid = 'pg_proc'::regclass \
    JOIN pg_proc p ON p.oid = d.refobjid JOIN pg_namespace fn ON fn.oid = p.pronamespace \
    WHERE fn.nspname NOT IN ('pg_catalog', 'information_schema')";

const BUILT_IN: &str = "SELECT DISTINCT p.proname FROM pg_proc p \
    JOIN pg_namespace n ON n.oid = p.pronamespace \
    WHERE n.nspname IN ('pg_catalog', 'information_schema')";

const ROUTINES: &str = "SELECT n.nspname, p.proname, p.prokind, p.provolatile, \
    CASE WHEN length(p.prosrc) < 65536 THEN l.lanname ELSE '' END, \
    CASE WHEN l.lanname IN ('sql', 'plpgsql') AND length(p.prosrc) < 65536 THEN \
      coalesce(nullif(p.prosrc, ''), pg_get_function_sqlbody(p.oid), '') ELSE '' END, \
    l.lanname NOT IN ('c', 'internal') \
      AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) \
      AND EXISTS (SELECT FROM pg_depend d \
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid \
          AND d.classid NOT IN ('pg_proc'::regclass, 'pg_rewrite'::regclass)) \
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
    JOIN pg_language l ON l.oid = p.prolang \
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')";

const TRIGGERS: &str = "SELECT tn.nspname, t.relname, pn.nspname, p.proname, g.tgdeferrable \
    FROM pg_trigger g \
    JOIN pg_class t ON t.oid = g.tgrelid JOIN pg_namespace tn ON tn.oid = t.relnamespace \
    JOIN pg_proc p ON p.oid = g.tgfoid JOIN pg_namespace pn ON pn.oid = p.pronamespace \
    WHERE NOT g.tgisinternal AND g.tgenabled <> 'D'";

const CASCADES: &str = "SELECT n.nspname, t.relname, m.nspname, o.relname FROM pg_constraint c \
    JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace \
    JOIN pg_class o ON o.oid = c.confrelid JOIN pg_namespace m ON m.oid = o.relnamespace \
    WHERE c.contype = 'f' AND (c.confdeltype IN ('c', 'n', 'd') OR c.confupdtype IN ('c', 'n', 'd'))";

/// Reads the names of the server's own functions.
pub(crate) fn built_in_functions(connection: &mut Connection) -> Result<BuiltInFunctions, Error> {
    let rows = connection.query(BUILT_IN)?.into_iter();
    let names = rows.filter_map(|row| row.into_iter().next().flatten());
    Ok(BuiltInFunctions::new(names))
}

/// Reads the catalog. `former`: the one that was read before.
pub(crate) fn read_catalog(
    connection: &mut Connection,
    built_in: &Arc<BuiltInFunctions>,
    columns: &mut ColumnReader,
    former: Option<&mut Catalog>,
) -> Result<Catalog, Error> {
    let began = clock::machine();
    let mut catalog = Catalog::new(read_routines(connection, built_in)?, true);
    for row in connection.query(TABLES)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let name = (next(), next());
        let (kind, persistence, identity, key) = (next(), next(), next(), next());
        let [
            has_index,
            checks_key,
            has_relatives,
            has_rules,
            has_loose_texts,
        ] = std::array::from_fn(|_| next() == "t");
        catalog.has_loose_texts |= has_loose_texts;
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
            columns: Vec::new(),
            logged,
            identified,
            checks_key,
            has_relatives,
            has_rules,
        };
        catalog.add(name, table);
    }
    for row in connection.query(VIEWS)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let (view, table) = ((next(), next()), (next(), next()));
        catalog.add_part(view, table);
    }
    for row in connection.query(VIEW_CALLS)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let (view, function) = ((next(), next()), (next(), next()));
        catalog.add_call(view, function);
    }
    columns.read(connection, &mut catalog, former, began)?;
    catalog.read = (began, clock::machine());
    Ok(catalog)
}

/// The text of a function, if it can be read. By its declaration, an immutable one uses no table,
/// and a stable one changes none.
fn routine_body(kind: &str, volatility: &str, language: &str, body: String) -> RoutineBody {
    match (kind, language, volatility) {
        // An aggregate has no text: it calls others.
        ("a", ..) => RoutineBody::Plain(String::new()),
        (_, "sql", _) => RoutineBody::Plain(body),
        (_, "plpgsql", _) => RoutineBody::Branching(body),
        (_, "c" | "internal", "i") => RoutineBody::Plain(String::new()),
        _ => RoutineBody::Opaque {
            changes: volatility == "v",
        },
    }
}

fn read_routines(
    connection: &mut Connection,
    built_in: &Arc<BuiltInFunctions>,
) -> Result<Routines, Error> {
    let mut routines = Routines::new(SqlDialect::Postgres, built_in.clone());
    for row in connection.query(ROUTINES)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let name = (next(), next());
        let (kind, volatility, language, body) = (next(), next(), next(), next());
        if next() == "t" {
            routines.add_implied(&name);
        }
        routines.add(name, routine_body(&kind, &volatility, &language, body));
    }
    for row in connection.query(TRIGGERS)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let (table, function) = ((next(), next()), (next(), next()));
        if next() == "t" {
            routines.add_deferred(&function);
        }
        routines.add_trigger(table, function);
    }
    for row in connection.query(CASCADES)? {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let (table, other) = ((next(), next()), (next(), next()));
        routines.add_cascade(table, other);
    }
    Ok(routines)
}

/// The tables whose changed and deleted rows can be streamed without breaking a statement.
pub(crate) fn identified(catalog: &Catalog) -> BTreeSet<TableName> {
    let own = |name: &&TableName| !["pg_catalog", "information_schema"].contains(&&*name.0);
    let found = catalog
        .tables()
        .filter(|(_, table)| table.identified && table.logged);
    found.map(|(name, _)| name).filter(own).cloned().collect()
}
