//! When a transaction ran.
//!
//! In: a transaction of the log, its commits, and what is known of its session. Out: the times of
//! its begin and its end.
//!
//! Invariant: a transaction begins after the session's transaction before it. One that waited for a
//! commit in vain is recorded after later ones, which do not move it behind them.

use crate::commit::Commit;
use crate::logged_transaction::{ClientSession, LoggedTransaction};

/// From the first statement to the last commit, or to the end that the log shows. `rounding`: the
/// log's times are cut by up to so many ns.
pub(super) fn span(
    session: &mut ClientSession,
    logged: &LoggedTransaction,
    commits: &[Commit<'_>],
    rounding: i64,
) -> (i64, i64) {
    let place = logged.statements.first().map_or(0, |one| one.place);
    let is_next = place >= session.last_place;
    let last = logged
        .statements
        .last()
        .map_or(logged.began, |one| one.time);
    let ended = logged.ended.map_or(last, |(time, _)| time) + rounding;
    let committed = commits.iter().map(|commit| commit.time).max();
    let end = match committed {
        // A log with rounded times says less than the commit.
        Some(time) if rounding > 0 => time,
        Some(time) => time.max(ended),
        None => ended,
    };
    let began = match is_next {
        true => logged.began.max(session.last_end),
        false => logged.began,
    };
    let (began, end) = (began.min(end), end.max(began));
    if is_next {
        session.last_end = earliest_end(logged, end, rounding);
        session.last_place = place;
    }
    (began, end)
}

/// The earliest time at which a transaction can have ended. The session's next one may begin then.
/// Where the times of the log are those of its reading, several transactions may be read at once.
fn earliest_end(logged: &LoggedTransaction, end: i64, rounding: i64) -> i64 {
    let last = logged.statements.last().filter(|_| rounding == 0);
    last.map_or(end, |last| last.since.min(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::TransactionNumber;
    use crate::logged_transaction::ExecutedStatement;
    use crate::sql_dialect::SqlDialect;
    use crate::statement_tables::StatementTables;
    use std::collections::BTreeMap;
    use std::time::Instant;

    const ROUNDING: i64 = 999_999;
    const COMMITTED: i64 = 10_600_000;

    fn transaction(place: u64, began: i64, ended: i64) -> LoggedTransaction {
        let statement = ExecutedStatement {
            time: began,
            place,
            ..ExecutedStatement::new(String::new(), Ok(StatementTables::default()), Vec::new())
        };
        LoggedTransaction {
            ended: Some((ended, Instant::now())),
            statements: vec![statement],
            ..LoggedTransaction::begin(
                "s".to_owned(),
                "3/1".to_owned(),
                began,
                SqlDialect::Postgres,
            )
        }
    }

    /// The definition of a table, and within a millisecond a commit of its rows.
    fn making() -> (LoggedTransaction, LoggedTransaction) {
        let created = transaction(1, 9_000_000, 10_000_000);
        (created, transaction(2, 10_000_000, 11_000_000))
    }

    fn commit() -> Commit<'static> {
        Commit {
            number: TransactionNumber::Plain(733),
            time: COMMITTED,
            position: String::new(),
            changes: &[],
            left_out: 0,
            tables: BTreeMap::new(),
            makers: Vec::new(),
        }
    }

    #[test]
    fn a_transaction_begins_after_the_one_before_it() {
        let (created, filled) = making();
        let mut session = ClientSession::default();
        let first = span(&mut session, &created, &[], ROUNDING);
        assert_eq!(first, (9_000_000, 10_999_999));
        let second = span(&mut session, &filled, &[commit()], ROUNDING);
        assert_eq!(second, (COMMITTED, 10_999_999));
    }

    #[test]
    fn a_transaction_that_is_recorded_late_keeps_its_time() {
        let (created, filled) = making();
        let mut session = ClientSession::default();
        span(&mut session, &filled, &[commit()], ROUNDING);
        let late = span(&mut session, &created, &[], ROUNDING);
        assert_eq!(late, (9_000_000, 10_999_999));
        let read = transaction(3, 10_000_000, 20_000_000);
        let (began, _) = span(&mut session, &read, &[], ROUNDING);
        assert_eq!(began, COMMITTED);
    }
}
