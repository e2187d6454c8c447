//! A commit, and how certain it is whose it is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::catalog::TableName;
use crate::row_change::{RowChange, StreamTable};

/// The number of a transaction in its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TransactionNumber {
    /// A number.
    Plain(u64),
    /// A number of several parts.
    Composed(String),
}

impl std::fmt::Display for TransactionNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TransactionNumber::Plain(number) => number.fmt(f),
            TransactionNumber::Composed(text) => text.fmt(f),
        }
    }
}

/// A commit with the tables that its changes name.
pub struct Commit<'a> {
    /// The transaction's number.
    pub number: TransactionNumber,
    /// ns since 1970, by the server's clock.
    pub time: i64,
    /// The position of the commit in the server's log of changes.
    pub position: String,
    /// The changed rows, in order.
    pub changes: &'a [RowChange],
    /// Changes that were too many to be kept.
    pub left_out: u64,
    /// The tables, by their numbers in the stream.
    pub tables: BTreeMap<u64, StreamTable>,
    /// The statement that made each change, by its place in the transaction. Empty if none is
    /// known.
    pub makers: Vec<Option<usize>>,
}

impl Commit<'_> {
    /// The tables with changes.
    pub fn changed(&self) -> BTreeSet<TableName> {
        let tables = self.tables.values();
        tables
            .map(|table| (table.schema.clone(), table.name.clone()))
            .collect()
    }
}

/// How certain it is that a commit belongs to a logged transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitCertainty {
    /// The log has its number.
    Number,
    /// The connection is known, and the statements are the same.
    Statement,
    /// No other fits the time.
    Time,
    /// It is one of several.
    Possible,
    /// There is no commit, or no logged transaction.
    Alone,
}

impl CommitCertainty {
    /// The word in the facts.
    pub fn word(self) -> Option<&'static str> {
        match self {
            CommitCertainty::Number => Some("number"),
            CommitCertainty::Statement => Some("statement"),
            CommitCertainty::Time => Some("time"),
            CommitCertainty::Possible => Some("possible"),
            CommitCertainty::Alone => None,
        }
    }
}
