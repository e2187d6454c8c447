//! Commits and units of the log become records of the run.

use backstory_database::catalog::Catalog;
use backstory_database::commit::{Commit, CommitCertainty, TransactionNumber};
use backstory_database::database_watch::COMMIT;
use backstory_database::logged_transaction::ExecutedStatement;
use backstory_database::routines::Routines;
use backstory_database::sql_dialect::WrittenName;
use backstory_database::statement_secrets::without_secrets;

use crate::audit_unit::Unit;
use crate::commit_matching::{give, is_same};
use crate::database_watch::{MariadbWatch, WaitingCommit};
use crate::row_groups::CommittedGroup;
use crate::statement_text::first_words;

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
                self.gaps.left_out(group.left_out);
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
        for (group, _) in &unit.commits {
            self.gaps.left_out(group.left_out);
        }
        // It committed after its last statement began, and before its last line.
        let last = unit.logged.ended.map_or(i64::MAX, |(time, _)| time);
        let times = unit.logged.statements.iter().map(|one| one.time);
        let first = times.fold(unit.logged.began.max(session.last_end), i64::max);
        let mut makers = StatementPlaces::of(&unit.logged.statements, &self.catalog.catalog);
        let commits = unit.commits.iter();
        let commits: Vec<Commit<'_>> = commits
            .map(|(group, time)| Commit {
                makers: makers.of_changes(group),
                ..commit(group, (*time).min(last).max(first))
            })
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
        makers: Vec::new(),
    }
}

/// The statements of a unit, in order, to which the texts in its commits belong.
///
/// Invariant: a change gets no wrong statement. If a statement executes others, the binlog has the
/// texts of these, and another statement may have the same text. So such a unit has no places. The
/// same holds for one that turns the texts off. If a function or trigger changes the first row of a
/// statement, the binlog has the text of a statement in its body.
struct StatementPlaces<'u> {
    statements: &'u [ExecutedStatement],
    /// The functions and triggers, if the unit may call some.
    routines: Option<&'u Routines>,
    /// Those before have made their changes.
    next: usize,
}

impl<'u> StatementPlaces<'u> {
    fn of(statements: &'u [ExecutedStatement], catalog: &'u Catalog) -> StatementPlaces<'u> {
        let is_plain = statements.iter().all(is_plain);
        let routines = &catalog.routines;
        let calls = |one: &ExecutedStatement| {
            let Ok(tables) = &one.tables else { return true };
            let is_view = |name: &WrittenName| catalog.views_named(name).next().is_some();
            tables.functions.iter().any(|name| routines.has(name))
                || tables.writes.iter().any(|name| routines.has_trigger(name))
                || tables.reads.iter().chain(&tables.writes).any(is_view)
        };
        let may_call = !routines.is_empty() && statements.iter().any(calls);
        StatementPlaces {
            statements: if is_plain { statements } else { &[] },
            routines: may_call.then_some(routines),
            next: 0,
        }
    }

    /// The place of the statement that made each change of a group. The binlog has the text of each
    /// statement before its changes, unless `binlog_annotate_row_events` is off.
    fn of_changes(&mut self, group: &CommittedGroup) -> Vec<Option<usize>> {
        if self.statements.len() < 2 {
            return Vec::new();
        }
        let texts = group.statements.iter();
        let places: Vec<Option<usize>> = texts.map(|text| self.of_text(text)).collect();
        let changes = group.changes.iter();
        changes
            .map(|change| places.get(change.statement?).copied().flatten())
            .collect()
    }

    fn of_text(&mut self, text: &str) -> Option<usize> {
        if self
            .routines
            .is_some_and(|routines| routines.has_text(text))
        {
            return None;
        }
        let text = without_secrets(text);
        let rest = self.statements.iter().enumerate().skip(self.next);
        let mut fitting = rest.filter(|(_, one)| is_same(&one.text, &text));
        let (at, first) = fitting.next()?;
        // The log may have cut several to beginnings of this text.
        let is_cut = first.text != text;
        if is_cut && fitting.any(|(_, other)| other.text != first.text) {
            return None;
        }
        self.next = at + 1;
        Some(at)
    }
}

/// The first words of statements that execute no others.
const ALONE: [&str; 17] = [
    "BEGIN",
    "COMMIT",
    "DELETE",
    "INSERT",
    "LOAD",
    "RELEASE",
    "REPLACE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "UPDATE",
    "USE",
    "WITH",
    "XA",
];

/// True if the changes of a statement have its own text in the binlog.
fn is_plain(statement: &ExecutedStatement) -> bool {
    let (first, second) = first_words(&statement.text);
    let is_alone = match (&*first, &*second) {
        // BEGIN NOT ATOMIC is a block, and SET STATEMENT … FOR executes a statement.
        ("BEGIN", "NOT") | ("SET", "STATEMENT") => false,
        (first, _) => ALONE.contains(&first),
    };
    let text = statement.text.to_ascii_lowercase();
    is_alone && !text.contains("binlog_annotate_row_events")
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_database::routines::RoutineBody;
    use backstory_database::sql_dialect::SqlDialect;
    use backstory_database::statement_tables::StatementTables;
    use std::sync::Arc;

    fn statements(texts: &[&str]) -> Vec<ExecutedStatement> {
        let dialect = SqlDialect::MariaDb { lower_case: false };
        let statement = |text: &&str| {
            let tables = StatementTables::of(text, dialect);
            ExecutedStatement::new(without_secrets(text), tables, Vec::new())
        };
        texts.iter().map(statement).collect()
    }

    /// The places of the texts that the binlog has.
    fn places(logged: &[&str], binlog: &[&str]) -> Vec<Option<usize>> {
        let (statements, catalog) = (statements(logged), Catalog::default());
        let mut places = StatementPlaces::of(&statements, &catalog);
        binlog.iter().map(|text| places.of_text(text)).collect()
    }

    #[test]
    fn a_text_of_the_binlog_has_the_place_of_its_statement() {
        let logged = [
            "BEGIN",
            "UPDATE a SET x = 1",
            "UPDATE a SET password = 'x'",
            "UPDATE a SET x = 1",
        ];
        // The first update changed nothing.
        let binlog = [logged[2], logged[3]];
        assert_eq!(places(&logged, &binlog), [Some(2), Some(3)]);
        assert_eq!(places(&logged, &["DELETE FROM a"]), [None]);
    }

    #[test]
    fn a_unit_in_which_a_statement_executes_others_has_no_places() {
        let update = "UPDATE a SET x = 1";
        for other in [
            "CALL p()",
            "EXECUTE prepared",
            "BEGIN NOT ATOMIC UPDATE a SET x = 1; END",
            "/*!100100 CALL p() */",
            "SET STATEMENT max_statement_time = 1 FOR CALL p()",
            "SET binlog_annotate_row_events = 0",
        ] {
            assert_eq!(places(&[other, update], &[update]), [None], "{other}");
        }
    }

    #[test]
    fn a_text_that_a_function_or_trigger_has_too_has_no_place() {
        let name = |name: &str| ("bank".to_owned(), name.to_owned());
        let dialect = SqlDialect::MariaDb { lower_case: false };
        let mut routines = Routines::new(dialect, Arc::default());
        let body = "BEGIN UPDATE c SET n = n + 1; RETURN 1; END";
        routines.add(name("f"), RoutineBody::Branching(body.to_owned()));
        routines.add_trigger(name("a"), name("f"));
        let catalog = Catalog::new(routines, false);
        let (update, other) = ("UPDATE c SET n = n + 1", "UPDATE c SET n = 0");
        for (first, expected) in [
            ("SELECT f()", None),
            ("DELETE FROM a", None),
            ("DELETE FROM b", Some(1)),
        ] {
            let statements = statements(&[first, update, other]);
            let mut places = StatementPlaces::of(&statements, &catalog);
            assert_eq!(places.of_text(update), expected, "{first}");
            assert_eq!(places.of_text(other), Some(2), "{first}");
        }
    }

    #[test]
    fn a_text_that_several_cut_ones_begin_has_no_place() {
        let long = format!("UPDATE a SET x = '{}'", "y".repeat(600));
        let (short, longer) = (&long[..520], &long[..560]);
        let statement = |text: &str| {
            let tables: Result<StatementTables, String> = Ok(StatementTables::default());
            ExecutedStatement::new(text.to_owned(), tables, Vec::new())
        };
        let place = |texts: &[&str]| {
            let statements: Vec<_> = texts.iter().map(|text| statement(text)).collect();
            StatementPlaces::of(&statements, &Catalog::default()).of_text(&long)
        };
        assert_eq!(place(&[short]), Some(0));
        assert_eq!(place(&[short, longer]), None);
        assert_eq!(place(&[&*long, longer]), Some(0));
    }
}
