//! Which logged transaction a committed one is.
//!
//! The replication stream has the number of a transaction, and no session. The log has the session,
//! and the number only on lines that the server writes after the transaction's first change. A
//! transaction of several statements has such a line, a single statement has none, unless
//! `auto_explain` writes one. Then the time and the changed tables decide. If several transactions
//! fit, the answer has them all.

use std::collections::{BTreeSet, HashMap};

use crate::catalog::{Catalog, TableName};
use crate::row_decoder::CommittedTransaction;
use crate::sessions::{ClientSession, LoggedTransaction, SessionTable};

/// The log's times have a resolution of a millisecond, and are taken before the commit's.
const SLACK: i64 = 2_000_000;

/// The logged transactions that a committed one can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransactionMatch {
    /// It is this one, because a line of the log has its number.
    Number(u64),
    /// It is this one: no other fits.
    Time(u64),
    /// It is one of these.
    Several(Vec<u64>),
    /// The log has none that fits.
    Unknown,
}

/// Finds the logged transactions that a committed one can be.
pub(crate) fn matching(
    table: &SessionTable,
    catalog: &Catalog,
    commit: &CommittedTransaction,
    changed: &BTreeSet<TableName>,
) -> TransactionMatch {
    let numbered = table
        .transactions
        .iter()
        .find(|(_, one)| one.id == Some(commit.id));
    if let Some((key, _)) = numbered {
        return TransactionMatch::Number(*key);
    }
    let mut fitting: Vec<u64> = table
        .transactions
        .iter()
        .filter(|(_, one)| one.id.is_none() && overlaps(one, commit.time))
        .filter(|(_, one)| may_change(one, &table.sessions, catalog, changed))
        .map(|(key, _)| *key)
        .collect();
    fitting.sort_unstable();
    match fitting[..] {
        [] => TransactionMatch::Unknown,
        [only] => TransactionMatch::Time(only),
        _ => TransactionMatch::Several(fitting),
    }
}

fn overlaps(one: &LoggedTransaction, time: i64) -> bool {
    one.began <= time + SLACK && one.ended.is_none_or(|(end, _)| end + SLACK >= time)
}

/// True if the statements of a transaction can have changed all of these tables.
fn may_change(
    one: &LoggedTransaction,
    sessions: &HashMap<String, ClientSession>,
    catalog: &Catalog,
    changed: &BTreeSet<TableName>,
) -> bool {
    let user = sessions
        .get(&one.session)
        .map_or("", |session| &*session.user);
    let mut named = BTreeSet::new();
    for statement in &one.statements {
        let Ok(tables) = &statement.tables else {
            return true;
        };
        if tables.calls {
            return true;
        }
        for name in &tables.writes {
            match catalog.resolve(name, user) {
                Some(table) => named.extend(catalog.behind(&table)),
                // A table that is newer than the catalog.
                None => return true,
            }
        }
    }
    // A trigger or a foreign key changes other tables, too.
    named.iter().any(|table| changed.contains(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::ExecutedStatement;
    use crate::statement_tables::StatementTables;
    use std::time::Instant;

    fn transaction(text: &str, began: i64, ended: i64, id: Option<u32>) -> LoggedTransaction {
        let statement = ExecutedStatement {
            time: began,
            text: text.to_owned(),
            parameters: None,
            tables: StatementTables::of(text),
            error: None,
        };
        LoggedTransaction {
            session: "s".to_owned(),
            virtual_id: "3/1".to_owned(),
            id,
            began,
            ended: Some((ended, Instant::now())),
            statements: vec![statement],
        }
    }

    fn found(transactions: Vec<LoggedTransaction>) -> TransactionMatch {
        let table = SessionTable {
            transactions: (1..).zip(transactions).collect(),
            ..SessionTable::default()
        };
        let commit = CommittedTransaction {
            id: 742,
            time: 50_000_000,
            position: 0,
            changes: Vec::new(),
            left_out: 0,
        };
        let changed = BTreeSet::from([("public".to_owned(), "a".to_owned())]);
        matching(&table, &Catalog::default(), &commit, &changed)
    }

    const WRITE: &str = "UPDATE a SET x = 1";

    #[test]
    fn a_number_decides_whatever_the_times_are() {
        let numbered = transaction(WRITE, 0, 1, Some(742));
        let other = transaction(WRITE, 49_000_000, 51_000_000, None);
        assert_eq!(found(vec![other, numbered]), TransactionMatch::Number(2));
    }

    #[test]
    fn without_a_number_the_only_writer_of_that_time_is_taken() {
        let early = transaction(WRITE, 0, 1_000_000, None);
        let reader = transaction("SELECT x FROM a", 49_000_000, 51_000_000, None);
        let writer = transaction(WRITE, 49_000_000, 51_000_000, None);
        assert_eq!(
            found(vec![early, reader, writer]),
            TransactionMatch::Time(3)
        );
    }

    #[test]
    fn two_writers_of_that_time_are_both_possible() {
        let one = || transaction(WRITE, 49_000_000, 51_000_000, None);
        assert_eq!(
            found(vec![one(), one()]),
            TransactionMatch::Several(vec![1, 2])
        );
        assert_eq!(found(Vec::new()), TransactionMatch::Unknown);
    }
}
