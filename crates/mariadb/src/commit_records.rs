//! Commits and units of the log become records of the run.

use backstory_database::commit::{Commit, CommitCertainty, TransactionNumber};
use backstory_database::database_watch::COMMIT;

use crate::audit_sessions::Unit;
use crate::commit_matching::give;
use crate::database_watch::{MariadbWatch, WaitingCommit};
use crate::row_groups::CommittedGroup;

impl MariadbWatch {
    /// Gives commits to the units of their statements.
    pub(crate) fn give_commits(&mut self, all: bool) {
        for waiting in std::mem::take(&mut self.commits) {
            let WaitingCommit {
                group,
                time,
                arrived,
            } = waiting;
            let units = &mut self.table.units;
            let Some(group) = give(units, group, time, self.settings.dialect) else {
                continue;
            };
            let is_ours = |group: &CommittedGroup| {
                let mut tables = group.tables.values();
                tables.any(|table| table.schema == self.target.database)
            };
            if !all && arrived.elapsed() < COMMIT {
                self.commits.push_back(WaitingCommit {
                    group,
                    time,
                    arrived,
                });
            } else if is_ours(&group) {
                self.without_statements += 1;
                let commit = commit(&group, time);
                self.recorder
                    .record_alone(&commit, &mut [], &self.catalog.catalog);
            }
        }
    }

    /// Records a unit of the log, with its commits.
    pub(crate) fn record(&mut self, unit: Unit) {
        let session = self.table.session(unit.connection);
        let Some(session) = session.filter(|_| unit.is_ours) else {
            return;
        };
        // It committed after its last statement began, and before its last line.
        let last = unit.logged.ended.map_or(i64::MAX, |(time, _)| time);
        let times = unit.logged.statements.iter().map(|one| one.time);
        let first = times.fold(unit.logged.began.max(session.last_end), i64::max);
        let commits = unit.commits.iter();
        let commits: Vec<Commit<'_>> = commits
            .map(|(group, time)| commit(group, (*time).min(last).max(first)))
            .collect();
        let certainty = match (commits.is_empty(), unit.by_statement) {
            (true, _) => CommitCertainty::Alone,
            (false, true) => CommitCertainty::Statement,
            (false, false) => CommitCertainty::Number,
        };
        let catalog = &self.catalog.catalog;
        self.recorder
            .record(&unit.logged, session, &commits, certainty, catalog);
    }
}

fn commit(group: &CommittedGroup, time: i64) -> Commit<'_> {
    Commit {
        number: TransactionNumber::Composed(group.number.clone()),
        time,
        position: group.position.clone(),
        changes: &group.changes,
        left_out: group.left_out,
        tables: group.tables.clone(),
    }
}
