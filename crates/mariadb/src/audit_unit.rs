//! The units of the log of `server_audit`, see `audit_sessions`.

use std::collections::BTreeSet;

use backstory_database::logged_transaction::LoggedTransaction;

use crate::row_groups::CommittedGroup;

/// A transaction, or a statement that commits alone.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) logged: LoggedTransaction,
    pub(crate) connection: u64,
    /// The numbers of its statements.
    pub(crate) queries: BTreeSet<u64>,
    /// It used the watched database.
    pub(crate) is_ours: bool,
    /// The commits that are its own, with the times at which they arrived.
    pub(crate) commits: Vec<(CommittedGroup, i64)>,
    /// A commit was found by its statements alone.
    pub(crate) by_statement: bool,
    /// Texts of statements, as the log has them, that no commit has used yet.
    pub(crate) texts: Vec<String>,
}

impl Unit {
    /// Takes over a unit of a statement that this one's statement called.
    pub(crate) fn take_over(&mut self, other: Unit) {
        self.logged.began = self.logged.began.min(other.logged.began);
        self.logged.statements.extend(other.logged.statements);
        self.queries.extend(other.queries);
        self.is_ours |= other.is_ours;
        self.commits.extend(other.commits);
        self.by_statement |= other.by_statement;
        self.texts.extend(other.texts);
    }
}
