//! The functions of a server itself, which use no table.
//!
//! In: their names, as the server lists them. Out: whether a name in a statement is one of them.
//! A few execute statements that they get as text, or read tables that they get by name. These do
//! not count.

use std::collections::HashSet;

use crate::sql_dialect::WrittenName;

/// The schemas of the server's own functions.
const SCHEMAS: [&str; 2] = ["pg_catalog", "information_schema"];

/// Functions that are part of the grammar, so that no server lists them all.
const GRAMMAR: [&str; 90] = [
    "array",
    "array_agg",
    "ascii",
    "avg",
    "cast",
    "char",
    "charset",
    "coalesce",
    "collation",
    "convert",
    "count",
    "cume_dist",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "date",
    "day",
    "default",
    "dense_rank",
    "exists",
    "extract",
    "first_value",
    "get_format",
    "greatest",
    "group_concat",
    "grouping",
    "hour",
    "if",
    "insert",
    "interval",
    "json_array",
    "json_arrayagg",
    "json_object",
    "json_objectagg",
    "lag",
    "last_value",
    "lastval",
    "lead",
    "least",
    "left",
    "localtime",
    "localtimestamp",
    "match",
    "max",
    "min",
    "minute",
    "month",
    "nextval",
    "normalize",
    "nth_value",
    "ntile",
    "nullif",
    "overlay",
    "percent_rank",
    "position",
    "rank",
    "repeat",
    "replace",
    "right",
    "row",
    "row_number",
    "second",
    "session_user",
    "setval",
    "substring",
    "sum",
    "sysdate",
    "system_user",
    "time",
    "timestamp",
    "timestampadd",
    "timestampdiff",
    "treat",
    "trim",
    "truncate",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "value",
    "values",
    "weight_string",
    "xmlconcat",
    "xmlelement",
    "xmlforest",
    "year",
];

/// Functions that use tables by their names, or execute a text.
const USE_TABLES: [&str; 15] = [
    "cursor_to_xml",
    "cursor_to_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "ts_rewrite",
    "ts_stat",
];

/// The names of a server's own functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BuiltInFunctions {
    /// In lower case.
    names: HashSet<String>,
}

impl BuiltInFunctions {
    /// The functions with these names, and those of the grammar.
    pub fn new(names: impl IntoIterator<Item = String>) -> BuiltInFunctions {
        let listed = names.into_iter().map(|name| name.to_lowercase());
        let mut names: HashSet<String> = listed.collect();
        names.extend(GRAMMAR.map(str::to_owned));
        for name in USE_TABLES {
            names.remove(name);
        }
        BuiltInFunctions { names }
    }

    /// True if a name in a statement is that of one.
    pub fn has(&self, name: &WrittenName) -> bool {
        let name = match &name[..] {
            [name] => name,
            [.., schema, name] if SCHEMAS.contains(&&**schema) => name,
            _ => return false,
        };
        self.names.contains(name) || self.names.contains(&name.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_name_is_built_in_in_any_case_unless_another_schema_has_it() {
        let known = BuiltInFunctions::new(["lower", "NOW", "query_to_xml"].map(str::to_owned));
        let has = |name: &str| known.has(&name.split('.').map(str::to_owned).collect());
        assert!(["lower", "LOWER", "now", "pg_catalog.now", "count"].map(has) == [true; 5]);
        assert!(["other", "public.lower", "query_to_xml"].map(has) == [false; 3]);
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(GRAMMAR.is_sorted() && USE_TABLES.is_sorted());
    }
}
