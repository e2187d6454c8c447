//! How two tables differ. Crate `inspect` reads the tables and compares them.

use serde::{Deserialize, Serialize};

use crate::wire_bytes;

/// The difference between two tables.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDifference {
    /// Rows of the first table, without the heading.
    pub a: usize,
    /// Rows of the second table.
    pub b: usize,
    /// Names of the columns that only the first table has.
    #[serde(with = "wire_bytes::list")]
    pub columns_removed: Vec<Vec<u8>>,
    /// Names of the columns that only the second table has.
    #[serde(with = "wire_bytes::list")]
    pub columns_added: Vec<Vec<u8>>,
    /// True if the columns that both have stand in another order.
    pub columns_moved: bool,
    /// Rows that only the first table has.
    pub rows_removed: usize,
    /// Rows that only the second table has.
    pub rows_added: usize,
    /// Rows with a changed cell.
    pub rows_changed: usize,
    /// True if rows that both have stand in another order.
    pub rows_moved: bool,
    /// Changed cells.
    pub cells_changed: usize,
    /// The first of the changed cells.
    pub cells: Vec<CellChange>,
    /// The keys of the first of the rows that only the first table has, if rows have keys.
    #[serde(with = "wire_bytes::list")]
    pub keys_removed: Vec<Vec<u8>>,
    /// The keys of the first of the rows that only the second table has.
    #[serde(with = "wire_bytes::list")]
    pub keys_added: Vec<Vec<u8>>,
    /// Why rows were not matched by the columns that the user chose.
    pub key_not_used_because: Option<String>,
}

/// A cell that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellChange {
    /// The row: its key, or its number from 1. The values of several key columns are joined by `/`.
    #[serde(with = "wire_bytes::one")]
    pub row: Vec<u8>,
    /// The name of the column.
    #[serde(with = "wire_bytes::one")]
    pub column: Vec<u8>,
    /// The value in the first table.
    #[serde(with = "wire_bytes::one")]
    pub a: Vec<u8>,
    /// The value in the second table.
    #[serde(with = "wire_bytes::one")]
    pub b: Vec<u8>,
}
