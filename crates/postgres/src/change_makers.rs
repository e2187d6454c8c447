//! Which statement of a transaction made each of its changes.
//!
//! In: the statements of the log, and the changes of the stream. Out: for each change its
//! statement, if no other one fits.
//!
//! The stream does not name statements. But both lists are in order, and the text of a statement
//! tells the kind of its changes, and mostly values of the rows. A statement changes a row once. So
//! each change has a first and a last statement that can have made it:
//!
//! ```text
//! statements   UPDATE a SET x = x + 1     UPDATE a SET y = upper(y)
//! changes      row 1, row 2               row 1, row 2
//! first        1      1                   2      2
//! last         1      1                   2      2
//! ```
//!
//! A statement with functions, or of a table with triggers, may change a row several times. A
//! transaction with more statements than its fact lists is left out.

use std::collections::{HashMap, HashSet};

use backstory_database::catalog::Catalog;
use backstory_database::commit::Commit;
use backstory_database::logged_transaction::{ExecutedStatement, LoggedTransaction};
use backstory_database::row_change::{ColumnValue, RowChange, RowImage, RowOperation, StreamTable};

use backstory_database::transaction_facts::LISTED;

use crate::statement_effects::StatementEffects;

/// Most pairs of a statement and a change that are compared. Of more, no statement is known.
const MOST: usize = 100_000;

/// Whether a statement can have made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    No,
    /// As the only change of that row.
    Once,
    /// As one of several changes of that row.
    Free,
}

/// The place of the statement that made each change of a commit. Empty if none is known.
pub(crate) fn change_makers(
    logged: &LoggedTransaction,
    catalog: &Catalog,
    commit: &Commit<'_>,
) -> Vec<Option<usize>> {
    let (statements, changes) = (&logged.statements, commit.changes);
    let undone = undone(statements);
    let may_write = |(one, undone): &(&ExecutedStatement, &bool)| {
        let tables = one.tables.as_ref();
        let writes = tables.map_or(true, |all| {
            !all.writes.is_empty() || !all.functions.is_empty()
        });
        writes && !**undone && one.error.is_none()
    };
    let writers = statements.iter().zip(&undone);
    let writers: Vec<bool> = writers.map(|pair| may_write(&pair)).collect();
    let pairs = statements.len().saturating_mul(changes.len());
    let is_long = statements.len() > LISTED || commit.left_out > 0 || pairs > MOST;
    if is_long || !shares_tables(statements, &writers) {
        return Vec::new();
    }
    let effects: Vec<Option<StatementEffects>> = statements
        .iter()
        .zip(&writers)
        .map(|(one, writes)| writes.then(|| StatementEffects::of(one, catalog)).flatten())
        .collect();
    let fit = |at: usize, change: &RowChange| {
        if !writers[at] {
            return Fit::No;
        }
        let (Some(effects), Some(table)) = (&effects[at], commit.tables.get(&change.table)) else {
            return Fit::Free;
        };
        let name = (table.schema.clone(), table.name.clone());
        match effects.fits(&name, table, change) {
            _ if effects.is_free(&name, catalog) => Fit::Free,
            true if effects.parts() > 1 => Fit::Free,
            true => Fit::Once,
            false => Fit::No,
        }
    };
    let fits: Vec<Vec<Fit>> = changes
        .iter()
        .map(|change| (0..statements.len()).map(|at| fit(at, change)).collect())
        .collect();
    let former = former_changes(commit);
    makers(&fits, &former).unwrap_or_default()
}

/// True if several statements can have changed one table. Otherwise its name tells the statement.
fn shares_tables(statements: &[ExecutedStatement], writers: &[bool]) -> bool {
    let writing = statements
        .iter()
        .zip(writers)
        .filter(|(_, writes)| **writes);
    let mut seen = HashSet::new();
    let (mut count, mut shares) = (0, false);
    for (one, _) in writing {
        count += 1;
        match &one.tables {
            Ok(tables) => {
                shares |= !tables.functions.is_empty();
                for name in &tables.writes {
                    shares |= !seen.insert(name);
                }
            }
            Err(_) => shares = true,
        }
    }
    shares && count > 1
}

/// The statements behind which a transaction went back to a savepoint before them.
fn undone(statements: &[ExecutedStatement]) -> Vec<bool> {
    let mut undone = vec![false; statements.len()];
    let mut savepoints: Vec<(String, usize)> = Vec::new();
    for (at, one) in statements.iter().enumerate() {
        let text = one.text.trim_end_matches(';').to_ascii_lowercase();
        let mut words = text.split_whitespace();
        let first = words.next();
        let name = words.next_back().unwrap_or_default();
        match first {
            Some("savepoint") => savepoints.push((name.to_owned(), at)),
            Some("rollback") if words.any(|word| word == "to") => {
                let found = savepoints.iter().rposition(|(known, _)| known == name);
                if let Some(found) = found {
                    let begin = savepoints[found].1;
                    undone[begin..at].fill(true);
                    savepoints.truncate(found + 1);
                }
            }
            _ => (),
        }
    }
    undone
}

/// For each change the one before it of the same row, if there is one.
fn former_changes(commit: &Commit<'_>) -> Vec<Option<usize>> {
    let mut newest: HashMap<(u64, Vec<&ColumnValue>), usize> = HashMap::new();
    let mut former = Vec::new();
    for (at, change) in commit.changes.iter().enumerate() {
        let table = commit.tables.get(&change.table);
        let before = key_in(table, &change.before).or_else(|| key_in(table, &change.after));
        let before = before.filter(|_| change.operation != RowOperation::Insert);
        former.push(before.and_then(|key| newest.get(&(change.table, key)).copied()));
        let after = key_in(table, &change.after).or_else(|| key_in(table, &change.before));
        if let Some(key) = after {
            newest.insert((change.table, key), at);
        }
    }
    former
}

/// The values that tell a row apart. `None` if one is unknown, or if the row has no key.
fn key_in<'i>(
    table: Option<&StreamTable>,
    image: &'i Option<RowImage>,
) -> Option<Vec<&'i ColumnValue>> {
    let (table, image) = (table?, image.as_ref()?);
    let keys = table.columns.iter().filter(|(_, is_key)| *is_key);
    let value = |column: &String| {
        let found = image.iter().find(|(name, _)| name == column);
        found
            .map(|(_, value)| value)
            .filter(|value| **value != ColumnValue::Unchanged)
    };
    let values: Option<Vec<&ColumnValue>> = keys.map(|(column, _)| value(column)).collect();
    values.filter(|values| !values.is_empty())
}

/// The one statement that can have made each change. `fits`: by change and statement. `former`: the
/// change before it of the same row. `None` if no order of the statements explains all changes.
fn makers(fits: &[Vec<Fit>], former: &[Option<usize>]) -> Option<Vec<Option<usize>>> {
    let is_again = |at: usize, one: usize, other: usize, bounds: &[usize]| {
        bounds[other] == at && (fits[one][at] == Fit::Once || fits[other][at] == Fit::Once)
    };
    let mut first: Vec<usize> = Vec::new();
    for (one, fit) in fits.iter().enumerate() {
        let begin = first.last().copied().unwrap_or(0);
        let can = |at: &usize| {
            let again = former[one].is_some_and(|other| is_again(*at, one, other, &first));
            fit[*at] != Fit::No && !again
        };
        let found = (begin..fit.len()).find(can)?;
        first.push(found);
    }
    let mut later: Vec<Option<usize>> = vec![None; fits.len()];
    for (one, other) in former.iter().enumerate() {
        if let Some(other) = other {
            later[*other] = Some(one);
        }
    }
    let mut last = vec![0; fits.len()];
    let mut end = fits.first().map_or(0, Vec::len);
    for (one, fit) in fits.iter().enumerate().rev() {
        let can = |at: &usize| {
            let again = later[one].is_some_and(|other| is_again(*at, one, other, &last));
            fit[*at] != Fit::No && !again
        };
        last[one] = (0..end).rev().find(can)?;
        end = last[one] + 1;
    }
    let only = |one: usize| {
        let mut fitting = (first[one]..=last[one]).filter(|at| fits[one][*at] != Fit::No);
        fitting.next().filter(|_| fitting.next().is_none())
    };
    Some((0..fits.len()).map(only).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Fit::{Free, No, Once};
    use backstory_database::statement_tables::StatementTables;

    fn found(fits: &[[Fit; 2]], former: &[Option<usize>]) -> Option<Vec<Option<usize>>> {
        let fits: Vec<Vec<Fit>> = fits.iter().map(|one| one.to_vec()).collect();
        makers(&fits, former)
    }

    #[test]
    fn two_changes_of_a_row_are_of_two_statements_in_their_order() {
        let both = [[Once, Once]; 4];
        let former = [None, None, Some(0), Some(1)];
        let wanted = vec![Some(0), Some(0), Some(1), Some(1)];
        assert_eq!(found(&both, &former), Some(wanted));
        // A function may change a row twice.
        let free = [[Free, Free]; 2];
        assert_eq!(found(&free, &[None, Some(0)]), Some(vec![None, None]));
    }

    #[test]
    fn a_change_that_one_statement_alone_fits_bounds_the_others() {
        let fits = [[Once, Once], [Once, No], [Once, Once]];
        let wanted = vec![Some(0), Some(0), None];
        assert_eq!(found(&fits, &[None; 3]), Some(wanted));
        assert_eq!(found(&[[No, Once], [Once, No]], &[None; 2]), None);
    }

    #[test]
    fn statements_behind_a_savepoint_that_was_gone_back_to_are_undone() {
        let statement = |text: &&str| {
            ExecutedStatement::new(
                (*text).to_owned(),
                Err::<StatementTables, _>(String::new()),
                Vec::new(),
            )
        };
        let texts = [
            "BEGIN",
            "SAVEPOINT s;",
            "DELETE FROM a",
            "ROLLBACK TO SAVEPOINT s;",
            "COMMIT",
        ];
        let statements: Vec<ExecutedStatement> = texts.iter().map(statement).collect();
        assert_eq!(undone(&statements), [false, true, true, false, false]);
    }
}
