//! The changes that a committed transaction made to rows.

use std::collections::BTreeSet;

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnValue {
    /// NULL.
    Null,
    /// Stored outside of the row, not changed, and not sent.
    Unchanged,
    /// The value as the server shows it.
    Text(String),
}

/// A table, as the stream of changes describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamTable {
    /// Its schema, or its database where these are one.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Columns, and whether each tells rows apart.
    pub columns: Vec<(String, bool)>,
    /// The key where the catalog has no primary key.
    pub identity: Vec<String>,
    /// Why a row before a change is not whole.
    pub incomplete: &'static str,
    /// The columns of types whose values have one form only.
    pub texts: BTreeSet<String>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOperation {
    /// A new row.
    Insert,
    /// Another version of a row.
    Update,
    /// The end of a row.
    Delete,
    /// The end of all rows of a table.
    Truncate,
}

/// An image of a row: the columns that are known of it.
pub type RowImage = Vec<(String, ColumnValue)>;

/// A change of one row, or of a whole table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The number of its table in the stream.
    pub table: u64,
    /// The kind of the change.
    pub operation: RowOperation,
    /// The row before; of the key columns alone if `whole_before` is false.
    pub before: Option<RowImage>,
    /// All columns of the row before are known.
    pub whole_before: bool,
    /// The row after.
    pub after: Option<RowImage>,
    /// Its statement, by its place in the stream's list of the commit. `None`: the stream has none.
    pub statement: Option<usize>,
}
