//! Commits and transactions of the log become records of the run.
//!
//! In: a commit of the stream, or a transaction of the log that has ended. Out: their records, and
//! the gaps that they show.

use std::time::Duration;

use backstory_database::commit::{Commit, CommitCertainty, TransactionNumber};
use backstory_database::database_watch::COMMIT;
use backstory_database::logged_transaction::LoggedTransaction;

use crate::change_makers::change_makers;
use crate::database_watch::{ArrivedCommit, PostgresWatch};
use crate::matching::{TransactionMatch, matching};

/// A commit waits so long for lines that the server writes late. A transaction of the log waits
/// longer for its commit, which can be behind this one.
const LATE_LINES: Duration = Duration::from_millis(COMMIT.as_millis() as u64 / 2);

impl PostgresWatch {
    /// True if no transaction of the log can be that of a commit, and its line may still come.
    pub(crate) fn lacks_line(&self, arrived: &ArrivedCommit) -> bool {
        let commit = commit_of(arrived);
        let is_missing = || {
            let found = matching(&self.table, &self.catalog, &commit);
            found == TransactionMatch::Unknown
        };
        self.line_may_come(arrived) && !commit.changed().is_empty() && is_missing()
    }

    /// True if the line of a commit's transaction may be late. A busy machine delays the process
    /// that writes the server's log.
    fn line_may_come(&self, arrived: &ArrivedCommit) -> bool {
        let is_read = self.has_read_until(arrived.transaction.time);
        arrived.arrived.elapsed() < LATE_LINES && !is_read
    }

    /// Records a commit with the transaction of the log that it belongs to. False if it waits: for
    /// the lines of that transaction, or until its columns are better known. `all`: it does not
    /// wait.
    pub(crate) fn record_commit(&mut self, arrived: &ArrivedCommit, all: bool) -> bool {
        let mut commit = commit_of(arrived);
        let changed = commit.changed();
        if changed.is_empty() {
            return true;
        }
        if changed
            .iter()
            .any(|name| self.catalog.table(name).is_none())
        {
            self.look_at_catalog();
            // A table that is still missing was dropped since.
            let names = changed.iter().cloned();
            names.for_each(|name| self.catalog.add_dropped(name));
        }
        let found = matching(&self.table, &self.catalog, &commit);
        let (key, certainty) = match found {
            TransactionMatch::Number(key) => (key, CommitCertainty::Number),
            TransactionMatch::Time(key) => (key, CommitCertainty::Time),
            TransactionMatch::Several(keys) => {
                self.record_doubtful(&commit, &keys);
                return true;
            }
            TransactionMatch::Unknown => {
                if !all && self.line_may_come(arrived) {
                    return false;
                }
                self.record_doubtful(&commit, &[]);
                return true;
            }
        };
        self.know_tables(key);
        // Its statements began before it. The catalog may have been read in between.
        if !all && self.will_be_settled(key) {
            return false;
        }
        // The line of its end, and of statements before that, may be late.
        let logged = self.table.transactions.get(&key);
        let is_open = logged.is_some_and(LoggedTransaction::is_left_open);
        if !all && is_open && self.line_may_come(arrived) {
            return false;
        }
        // A line that is missing may be that of any statement.
        if let Some(logged) = self.table.transactions.get(&key)
            && self.lines.missing == 0
            && self.catalog.is_steady((logged.began, commit.time))
        {
            let is_read = self.has_read_until(commit.time);
            commit.makers = change_makers(logged, is_read, &self.catalog, &commit);
        }
        self.record_logged(key, &[commit], certainty);
        true
    }

    /// Records a transaction of the log, with its commits.
    pub(crate) fn record_logged(
        &mut self,
        key: u64,
        commits: &[Commit<'_>],
        certainty: CommitCertainty,
    ) {
        let Some(logged) = self.table.remove(key) else {
            return;
        };
        self.look_for_lost_updates(&logged);
        if let Some(session) = self.table.sessions.get_mut(&logged.session) {
            self.recorder
                .record(&logged, session, commits, certainty, &self.catalog);
        }
    }

    /// Looks at the catalog if a statement has changed definitions.
    pub(crate) fn know_changed_definitions(&mut self) {
        if self.catalog.definitions.is_outdated() {
            self.look_at_catalog();
        }
    }

    /// Looks at the catalog if the transaction names a table or function that is not in it yet.
    pub(crate) fn know_tables(&mut self, key: u64) {
        self.know_changed_definitions();
        let Some(logged) = self.table.transactions.get(&key) else {
            return;
        };
        let is_older = logged.ended.is_none_or(|(_, known)| self.looked < known);
        let lacks = logged.statements.iter().any(|one| {
            let tables = one.tables.iter();
            let mut names = tables.flat_map(|tables| tables.reads.iter().chain(&tables.writes));
            let mut functions = one.tables.iter().flat_map(|tables| &tables.functions);
            names.any(|name| self.catalog.resolve(name, &one.path).is_none())
                || functions.any(|name| self.catalog.routines.lacks(name))
        });
        if is_older && lacks {
            self.look_at_catalog();
        }
    }

    /// A table that was made a moment ago is not in the stream of updates yet.
    fn look_for_lost_updates(&mut self, logged: &LoggedTransaction) {
        let Some(stream) = self.stream.as_ref().filter(|_| !logged.is_rolled_back()) else {
            return;
        };
        let mut lost = Vec::new();
        for statement in &logged.statements {
            let replaced = statement.tables.iter().flat_map(|tables| &tables.replaced);
            let replaced = replaced.filter_map(|name| self.catalog.resolve(name, &statement.path));
            lost.extend(replaced.filter(|table| stream.lacks_updates(table, statement.time)));
        }
        // Questions about other tables leave this sentence out: `backstory_query::watch_gaps`.
        let gap = |(schema, name)| {
            format!("updates of rows of {schema}.{name} soon after it was created are unknown")
        };
        for table in lost {
            self.gaps.note(gap(table));
        }
    }

    /// Records a commit that may belong to any of these.
    fn record_doubtful(&mut self, commit: &Commit<'_>, keys: &[u64]) {
        let table = &mut self.table;
        let (transactions, sessions) = (&table.transactions, &mut table.sessions);
        let mut candidates = Vec::new();
        for key in keys {
            if let Some(logged) = transactions.get(key)
                && let Some(session) = sessions.get_mut(&logged.session)
            {
                candidates.push((logged, session.clone()));
            }
        }
        self.recorder
            .record_alone(commit, &mut candidates, &self.catalog);
        for (logged, session) in candidates {
            sessions.insert(logged.session.clone(), session);
        }
    }
}

/// A commit of the stream.
fn commit_of(arrived: &ArrivedCommit) -> Commit<'_> {
    let transaction = &arrived.transaction;
    let position = transaction.position;
    Commit {
        number: TransactionNumber::Plain(u64::from(transaction.id)),
        time: transaction.time,
        position: format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff),
        changes: &transaction.changes,
        left_out: transaction.left_out,
        tables: arrived.transaction.tables.clone(),
        makers: Vec::new(),
    }
}
