//! The columns that are the key of a table's rows, as the user chose them.
//!
//! In: `[[table]]` of the user's file `inspectors.toml`, and the option `--key`, which has
//! priority. Out: the columns for a file. Without any, the comparison finds the key itself.
//!
//! ```toml
//! [[table]]
//! globs = ["*/results/*.csv"]
//! key = ["place", "year"]
//! ```

use serde::Deserialize;

use crate::name_pattern;

/// Inspectors of formats with columns. Rows of other formats have no key that a user can choose.
const TABLES: [&str; 3] = ["arrow", "csv", "parquet"];

/// The keys of the user's tables.
#[derive(Debug, Clone, Default)]
pub struct TableKeys {
    tables: Vec<ListedTable>,
}

/// Tables with the same key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedTable {
    /// Patterns of their names.
    globs: Vec<String>,
    /// The names of the key's columns.
    key: Vec<String>,
}

impl TableKeys {
    /// The keys of a file.
    ///
    /// # Errors
    /// Which list is empty, in one sentence.
    pub(crate) fn listed(tables: Vec<ListedTable>) -> Result<TableKeys, String> {
        for table in &tables {
            let empty = match (table.globs.is_empty(), table.key.is_empty()) {
                (true, _) => "globs",
                (_, true) => "key",
                _ => continue,
            };
            return Err(format!("a [[table]] has no {empty}"));
        }
        Ok(TableKeys { tables })
    }

    /// The same keys, before which these columns are tried for every table. Without columns,
    /// nothing changes.
    pub fn with(mut self, key: &[String]) -> TableKeys {
        if !key.is_empty() {
            let every = ListedTable {
                globs: vec!["*".to_owned()],
                key: key.to_vec(),
            };
            self.tables.insert(0, every);
        }
        self
    }

    /// The key of the file `name`, which this inspector reads. Empty if none is listed, or if the
    /// format has no columns.
    pub fn of(&self, inspector: &str, name: &[u8]) -> &[String] {
        if self.tables.is_empty() || !has_columns(inspector) {
            return &[];
        }
        let path = name_pattern::absolute(name);
        let mut tables = self.tables.iter();
        let listed = tables.find(|table| name_pattern::matches_any(&table.globs, &path));
        listed.map_or(&[], |table| &table.key)
    }
}

/// True for an inspector of tables with columns.
pub fn has_columns(inspector: &str) -> bool {
    TABLES.contains(&inspector)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Catalogue;

    #[test]
    fn the_first_listed_table_that_fits_has_the_key_and_an_option_comes_before_it() {
        let text = "[[table]]\nglobs = [\"*/a.csv\"]\nkey = [\"x\", \"y\"]\n\
                    [[table]]\nglobs = [\"*.csv\"]\nkey = [\"z\"]\n";
        let listed = Catalogue::extended(text, Path::new("inspectors.toml")).unwrap();
        let keys = listed.keys();
        assert_eq!(keys.of("csv", b"/data/a.csv"), ["x", "y"]);
        assert_eq!(keys.of("csv", b"/data/b.csv"), ["z"]);
        assert_eq!(keys.of("csv", b"a.csv"), ["x", "y"]);
        assert_eq!(keys.of("csv", b"/data/b.tsv"), [""; 0]);
        assert_eq!(keys.of("text", b"/data/a.csv"), [""; 0]);
        let chosen = keys.clone().with(&["id".to_owned()]);
        assert_eq!(chosen.of("csv", b"/data/a.csv"), ["id"]);
        assert_eq!(chosen.of("parquet", b"/data/b.parquet"), ["id"]);
        assert_eq!(keys.clone().with(&[]).of("csv", b"/data/b.csv"), ["z"]);
    }

    #[test]
    fn a_table_without_names_or_columns_is_refused() {
        for text in [
            "[[table]]\nglobs = []\nkey = [\"a\"]",
            "[[table]]\nglobs = [\"*\"]\nkey = []",
            "[[table]]\nglobs = [\"*\"]",
        ] {
            let wrong = Catalogue::extended(text, Path::new("/c/inspectors.toml")).unwrap_err();
            assert!(
                wrong.starts_with("/c/inspectors.toml is ignored: "),
                "{wrong}"
            );
        }
    }
}
