//! Rows of a database of SQLite that changed between two states of its files: the question and the
//! answer ([`crate::question::FormatQuestion::RowChanges`]).
//!
//! A state is the database with its write-ahead log and its rollback journal, each of which may be
//! empty. The parts of the question are a [`RowsWanted`] as JSON, then the three files of the older
//! state, then those of the newer one.
//!
//! A value in an image has the form that the extension of SQLite gives it. A number or a text is a
//! string, and a blob an object with its number of bytes. A long text is an object with its
//! beginning.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The files of a database at one moment. A file that does not exist is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseFiles<'f> {
    /// The database.
    pub database: &'f [u8],
    /// Its write-ahead log: the file with `-wal`.
    pub log: &'f [u8],
    /// Its rollback journal: the file with `-journal`.
    pub journal: &'f [u8],
}

impl<'f> DatabaseFiles<'f> {
    /// The database, its log and its journal.
    pub fn of([database, log, journal]: &'f [Vec<u8>; 3]) -> DatabaseFiles<'f> {
        DatabaseFiles {
            database,
            log,
            journal,
        }
    }

    /// The files, in the order of the question's parts.
    pub fn parts(&self) -> [&'f [u8]; 3] {
        [self.database, self.log, self.journal]
    }

    /// Bytes of all files.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// True if no file has a byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The rows that a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsWanted {
    /// The older state is known. If not, its files are empty, and only the newer state's own log
    /// tells changes.
    pub has_older: bool,
    /// The name of the one table. `None`: all tables.
    pub table: Option<String>,
    /// The key of the one row of that table: the value, or `COLUMN=VALUE,…`. `None`: all rows.
    pub key: Option<String>,
    /// All changes are one step, whichever transactions made them.
    #[serde(default)]
    pub as_one: bool,
}

/// The steps from the older state to the newer one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowChanges {
    /// The steps that changed rows, the oldest first.
    pub steps: Vec<RowStep>,
    /// For changes that are one step: what else changed, such as columns and indexes, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<String>,
    /// A sentence for each part that could not be compared.
    pub notes: Vec<String>,
}

impl RowChanges {
    /// The changes and the notes in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let tables = self.steps.iter().flat_map(|step| &step.tables);
        let mut all: Vec<String> = tables.flat_map(|table| table.sentences.clone()).collect();
        if self.steps.is_empty() {
            all.push("no row changed".to_owned());
        }
        all.extend(self.schema.iter().cloned());
        all.extend(self.notes.iter().cloned());
        all
    }
}

/// A step: one transaction, or several that cannot be told apart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowStep {
    /// The numbers in the newer state's write-ahead log of the first and the last transaction.
    /// `None` if the step is no transaction of the log.
    pub transactions: Option<(usize, usize)>,
    /// For all rows: each table that changed.
    pub tables: Vec<TableStep>,
    /// For one row: its change.
    pub change: Option<RowChange>,
}

/// The changed rows of a table in one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableStep {
    /// The table's name.
    pub table: String,
    /// How many rows were added, removed and changed, and the first changed cells, as sentences.
    pub sentences: Vec<String>,
}

/// The change of a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowChange {
    /// The table's name.
    pub table: String,
    /// The columns of the key with their values.
    pub key: Vec<(String, String)>,
    /// `insert`, `update` or `delete`.
    pub operation: String,
    /// The columns before the step. Empty for an insert.
    pub before: Map<String, Value>,
    /// The columns after it. Empty for a delete.
    pub after: Map<String, Value>,
}
