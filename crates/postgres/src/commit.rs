//! A commit, and how certain it is whose it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::TableName;
use crate::row_decoder::{CommittedTransaction, StreamTable};

/// A commit with the tables that its changes name.
pub(crate) struct Commit<'a> {
    pub(crate) transaction: &'a CommittedTransaction,
    pub(crate) tables: BTreeMap<u32, StreamTable>,
}

impl Commit<'_> {
    /// The tables with changes.
    pub(crate) fn changed(&self) -> BTreeSet<TableName> {
        let tables = self.tables.values();
        tables
            .map(|table| (table.schema.clone(), table.name.clone()))
            .collect()
    }
}

/// How certain it is that a commit belongs to a logged transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitCertainty {
    Number,
    Time,
    /// It is one of several.
    Possible,
    /// There is no commit, or no logged transaction.
    Alone,
}

impl CommitCertainty {
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            CommitCertainty::Number => Some("number"),
            CommitCertainty::Time => Some("time"),
            CommitCertainty::Possible => Some("possible"),
            CommitCertainty::Alone => None,
        }
    }
}
