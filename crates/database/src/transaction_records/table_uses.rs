//! The tables and files that a transaction used, or possibly used, by its statements and triggers.
//! The rows, and the tables by their rows, come from the commits: they are not here.

use std::collections::{BTreeMap, BTreeSet};

use backstory_vocabulary::RowsMode;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::TransactionRecorder;
use crate::catalog::{Catalog, TableName};
use crate::commit::Commit;
use crate::database_records::ResourceUse;
use crate::logged_transaction::{ExecutedStatement, LoggedTransaction};
use crate::read_tables::{read_tables, resolved};
use crate::written_tables::written_tables;

impl TransactionRecorder {
    /// Records the tables and files that the statements name.
    pub(super) fn use_tables(
        &mut self,
        activity: u32,
        logged: &LoggedTransaction,
        commits: &[Commit<'_>],
        catalog: &Catalog,
        (began, end): (i64, i64),
    ) {
        let changed: BTreeSet<TableName> = commits.iter().flat_map(Commit::changed).collect();
        let undone = commits.is_empty() && logged.is_rolled_back();
        let rows = self.rows_of(commits);
        for statement in &logged.statements {
            // The client may have the rows before the end of a rounded time.
            let first = statement.time.clamp(began, end);
            let last = statement.until.clamp(began, end);
            for (table, sure) in read_tables(statement, catalog, rows) {
                let name = self.names.table(&table);
                // Between the two, another transaction may have committed, seen or unseen.
                for (time, sure) in [(first, sure), (last, sure && statement.is_rounded)] {
                    self.writer
                        .used(activity, (&name, 0), ResourceUse::Read, sure, time);
                }
            }
            if statement.error.is_none() {
                let times = (first, end);
                let known = (rows, &changed, undone);
                self.use_targets(activity, statement, known, catalog, times);
            }
        }
    }

    /// Records the tables and files that a statement writes, or may have written.
    fn use_targets(
        &mut self,
        activity: u32,
        statement: &ExecutedStatement,
        (rows, changed, undone): (RowsMode, &BTreeSet<TableName>, bool),
        catalog: &Catalog,
        (first, end): (i64, i64),
    ) {
        let Ok(tables) = &statement.tables else {
            return;
        };
        for name in tables.writes.iter().filter(|_| !undone) {
            let Some(table) = catalog.resolve_at(name, &statement.path, statement.time) else {
                continue;
            };
            if tables.created.contains(name) {
                let name = self.names.table(&table);
                self.writer
                    .used(activity, (&name, 0), ResourceUse::Write, true, first);
                continue;
            }
            // The commit has the changed rows. A change that it lacks may have had no effect, or
            // the rows of the table are not streamed.
            let is_missing = rows == RowsMode::On && !changed.contains(&table);
            if is_missing && changed.is_disjoint(&catalog.behind(&table)) {
                let name = self.names.table(&table);
                let sure = tables.defines;
                self.writer
                    .used(activity, (&name, 0), ResourceUse::Change, sure, end);
            }
        }
        if let Some(file) = &tables.file {
            let ident = ident_of(&file.path);
            // A file that was changed since is not the one that the statement used.
            let ident = ident.filter(|ident| {
                !file.written || (statement.since..=end + 1_000_000_000).contains(&ident.mtime)
            });
            let time = if file.written { end } else { statement.time };
            self.writer
                .file(activity, &file.path, file.written, ident.as_ref(), time);
        }
    }

    /// Records the tables that the statements of a transaction changed, where no commit tells.
    /// Without a commit, it changed them between the begin of its last statement and its end.
    pub(super) fn change_tables(
        &mut self,
        activity: u32,
        logged: &LoggedTransaction,
        catalog: &Catalog,
        (began, end): (i64, i64),
    ) {
        let mut changed: BTreeMap<TableName, bool> = BTreeMap::new();
        let done = logged.statements.iter().filter(|one| one.error.is_none());
        for (table, sure) in done.flat_map(|one| written_tables(one, catalog)) {
            *changed.entry(table).or_default() |= sure;
        }
        let has_committed = logged.has_committed();
        let tables = changed.keys().cloned().collect();
        self.use_triggers(activity, logged, tables, catalog, (began, end));
        let last = logged.statements.iter().map(|one| one.time).max();
        let first = last.unwrap_or(end).clamp(began, end);
        for (table, sure) in changed {
            let name = self.names.table(&table);
            if first < end {
                self.writer
                    .used(activity, (&name, 0), ResourceUse::Change, false, first);
            }
            let sure = sure && has_committed;
            self.writer
                .used(activity, (&name, 0), ResourceUse::Change, sure, end);
        }
    }

    /// Records the tables that the triggers of the changed tables possibly read. A server that
    /// tells which tables it opened tells of these, too.
    pub(super) fn use_triggers(
        &mut self,
        activity: u32,
        logged: &LoggedTransaction,
        changed: BTreeSet<TableName>,
        catalog: &Catalog,
        (began, end): (i64, i64),
    ) {
        let Some(statement) = logged.statements.last() else {
            return;
        };
        if logged.statements.iter().any(|one| one.opened.is_some()) {
            return;
        }
        for table in changed {
            let reads = catalog.routines.reads_of_triggers(&table);
            for table in resolved(reads, statement, catalog).keys() {
                let name = self.names.table(table);
                for time in [began, end] {
                    self.writer
                        .used(activity, (&name, 0), ResourceUse::Read, false, time);
                }
            }
        }
    }
}

/// The file as it is now.
fn ident_of(path: &str) -> Option<backstory_files::Ident> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = statx(CWD, path, AtFlags::empty(), wanted).ok()?;
    Some(backstory_files::Ident::from(&found))
}
