//! Reads the server's catalog: tables, their columns, views, routines and triggers.

use std::collections::HashMap;

use backstory_database::catalog::{Catalog, CatalogTable, TableName};
use backstory_database::routines::{RoutineBody, Routines};
use backstory_database::view_query::ViewQuery;
use backstory_sys::clock;

use crate::connection::{Connection, TextRow};
use crate::row_value::ColumnType;
use crate::server_settings::ServerSettings;
use crate::statement_text::names_of;
use crate::text_form::TextForm;
use backstory_database::error::Error;

const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES";

const COLUMNS: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, \
    ifnull(CHARACTER_SET_NAME, '') FROM information_schema.COLUMNS \
    WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') \
    ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION";

const KEYS: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
    WHERE INDEX_NAME = 'PRIMARY' ORDER BY TABLE_SCHEMA, TABLE_NAME, SEQ_IN_INDEX";

const VIEWS: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS \
    WHERE TABLE_SCHEMA <> 'sys'";

const ROUTINES: &str = "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, \
    ifnull(ROUTINE_DEFINITION, '') FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA <> 'sys'";

const TRIGGERS: &str = "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, \
    ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA <> 'sys'";

/// The catalog of the server.
#[derive(Debug, Default)]
pub(crate) struct ServerCatalog {
    pub(crate) catalog: Catalog,
    /// The columns of tables, in their order.
    pub(crate) columns: HashMap<TableName, Vec<ColumnType>>,
    /// There are procedures, whose statements the log has before the call.
    pub(crate) has_procedures: bool,
}

impl ServerCatalog {
    /// Reads the catalog. `former`: the one that was read before.
    pub(crate) fn read(
        connection: &mut Connection,
        settings: &ServerSettings,
        former: Option<&mut ServerCatalog>,
    ) -> Result<ServerCatalog, Error> {
        let began = clock::machine();
        let dialect = settings.dialect;
        let mut routines = Routines::new(dialect, settings.built_in.clone());
        let mut has_procedures = false;
        for row in connection.query(ROUTINES)? {
            let [schema, name, kind, body] = texts(row);
            has_procedures |= kind == "PROCEDURE";
            // A function of one expression has no branches.
            let expression = body
                .trim()
                .get(..7)
                .filter(|word| word.eq_ignore_ascii_case("return "));
            let body = match expression {
                Some(_) => RoutineBody::Plain(format!("SELECT {}", &body.trim()[7..])),
                None => RoutineBody::Branching(body),
            };
            routines.add((schema, name), body);
        }
        for row in connection.query(TRIGGERS)? {
            let [schema, table, name, body] = texts(row);
            // No function has such a name.
            let routine = (schema.clone(), format!("trigger {name}"));
            routines.add(routine.clone(), RoutineBody::Branching(body));
            routines.add_trigger((schema, table), routine);
        }
        let mut keys: HashMap<TableName, Vec<String>> = HashMap::new();
        for row in connection.query(KEYS)? {
            let [schema, table, column] = texts(row);
            keys.entry((schema, table)).or_default().push(column);
        }
        let mut columns: HashMap<TableName, Vec<ColumnType>> = HashMap::new();
        for row in connection.query(COLUMNS)? {
            let [schema, table, name, kind, charset] = texts(row);
            let column = column_type(name, &kind, &charset);
            columns.entry((schema, table)).or_default().push(column);
        }
        let mut catalog = Catalog::new(routines, false);
        for row in connection.query(TABLES)? {
            let [schema, name, kind] = texts(row);
            let name = (schema, name);
            let own = columns.get(&name).into_iter().flatten();
            let table = CatalogTable {
                key: keys.remove(&name).unwrap_or_default(),
                columns: own.map(|column| column.name.clone()).collect(),
                logged: kind == "BASE TABLE",
                identified: true,
                ..CatalogTable::default()
            };
            catalog.add(name, table);
        }
        for row in connection.query(VIEWS)? {
            let [schema, view, text] = texts(row);
            let parts = names_of(&text, dialect).map(|names| names.reads);
            for part in parts.into_iter().flatten() {
                if let Some(part) = catalog.resolve(&part, std::slice::from_ref(&schema)) {
                    catalog.add_part((schema.clone(), view.clone()), part);
                }
            }
            catalog.add_query((schema, view), ViewQuery::new(text));
        }
        match former {
            Some(former) => catalog.follow(&mut former.catalog, (began, clock::machine())),
            None => catalog.definitions.begin(began),
        }
        Ok(ServerCatalog {
            catalog,
            columns,
            has_procedures,
        })
    }
}

/// The columns of a row, NULL as an empty text.
fn texts<const N: usize>(row: TextRow) -> [String; N] {
    let mut texts = row.into_iter().map(Option::unwrap_or_default);
    std::array::from_fn(|_| texts.next().unwrap_or_default())
}

/// A column by its definition: `int(10) unsigned`, `enum('a','b')`.
pub(crate) fn column_type(name: String, definition: &str, charset: &str) -> ColumnType {
    let kind = definition.split(['(', ' ']).next().unwrap_or_default();
    let length = || {
        let number = definition.split(['(', ')']).nth(1)?;
        number.parse().ok()
    };
    let form = match (kind, charset) {
        ("uuid", _) => TextForm::Uuid,
        ("inet6", _) => TextForm::Inet6,
        ("inet4", _) => TextForm::Inet4,
        ("binary", _) => length().map_or(TextForm::Utf8, TextForm::Fixed),
        (_, "latin1") => TextForm::Latin1,
        _ => TextForm::Utf8,
    };
    ColumnType {
        name,
        unsigned: definition.contains("unsigned") || definition.contains("zerofill"),
        labels: match kind {
            "enum" | "set" => labels(definition),
            _ => Vec::new(),
        },
        form,
    }
}

/// The values of an enumeration. Two quotes in a value stand for one.
fn labels(definition: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = definition;
    while let Some((_, quoted)) = rest.split_once('\'') {
        let mut end = 0;
        while let Some(at) = quoted[end..].find('\'') {
            end += at;
            if !quoted[end..].starts_with("''") {
                break;
            }
            end += 2;
        }
        found.push(quoted[..end].replace("''", "'"));
        rest = quoted.get(end + 1..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_known_by_its_definition() {
        let column = |kind: &str, charset: &str| column_type("x".to_owned(), kind, charset);
        assert!(column("int(10) unsigned", "").unsigned && !column("int(11)", "").unsigned);
        let labels = column("enum('a','it''s',')')", "utf8mb4").labels;
        assert_eq!(labels, ["a", "it's", ")"]);
        assert_eq!(column("binary(16)", "").form, TextForm::Fixed(16));
        assert_eq!(column("varchar(20)", "latin1").form, TextForm::Latin1);
        assert!(column("varchar(20)", "latin1").labels.is_empty());
    }
}
