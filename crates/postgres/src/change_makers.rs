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
//! Triggers that wait for the commit change rows after the last statement.
//!
//! Invariant: a change gets no wrong statement. The statement that made it is one of those that
//! fit, see `statement_effects`. No statement is known if a line of the log can be missing, or if a
//! statement can have made any change.

use std::collections::{HashMap, HashSet};

use backstory_database::catalog::{Catalog, TableName};
use backstory_database::commit::Commit;
use backstory_database::first_words::first_words;
use backstory_database::logged_transaction::{ExecutedStatement, LoggedTransaction};
use backstory_database::routines::can_mean;
use backstory_database::row_change::{ColumnValue, RowChange, RowImage, RowOperation, StreamTable};
use backstory_database::sql_dialect::SqlDialect;
use backstory_database::transaction_facts::LISTED;
use sqlparser::ast::Statement;

use crate::statement_effects::{StatementEffects, StatementFit};

/// Most pairs of a statement and a change that are compared. Of more, no statement is known.
const MOST: usize = 100_000;
/// The setting that says which statements are logged.
const SETTING: &str = "log_statement";

/// The place of the statement that made each change of a commit. Empty if none is known. `is_read`:
/// the lines of the log until the commit were read.
pub(crate) fn change_makers(
    logged: &LoggedTransaction,
    is_read: bool,
    catalog: &Catalog,
    commit: &Commit<'_>,
) -> Vec<Option<usize>> {
    let found = is_whole(logged, is_read).then(|| find(&logged.statements, catalog, commit));
    found.flatten().unwrap_or_default()
}

fn find(
    statements: &[ExecutedStatement],
    catalog: &Catalog,
    commit: &Commit<'_>,
) -> Option<Vec<Option<usize>>> {
    let (count, changes) = (statements.len(), commit.changes);
    let pairs = count.saturating_mul(changes.len());
    let is_comparable = (2..=LISTED).contains(&count) && commit.left_out == 0 && pairs <= MOST;
    let is_known = |name: &TableName| catalog.table(name).is_some();
    if !is_comparable || !commit.changed().iter().all(is_known) {
        return None;
    }
    let undone = undone(statements)?;
    let tells_rows = shares_tables(statements);
    let mut effects = Vec::new();
    for (one, undone) in statements.iter().zip(undone) {
        // A table may have had other triggers before a definition.
        if one.tables.as_ref().is_ok_and(|tables| tables.defines) {
            return None;
        }
        effects.push(match undone || one.error.is_some() {
            true => None,
            false => Some(StatementEffects::of(one, catalog, tells_rows)?),
        });
    }
    let at_commit = catalog.changes_at_commit()?;
    let fits = changes.iter().map(|change| {
        let table = commit.tables.get(&change.table)?;
        let name = (table.schema.clone(), table.name.clone());
        let means = |written: &[String]| can_mean(written, &name);
        let fit = |one: &Option<StatementEffects>| {
            let fit = |own: &StatementEffects| own.fit((&name, table), change, catalog, means);
            one.as_ref().map_or(StatementFit::No, fit)
        };
        let mut fits: Vec<StatementFit> = effects.iter().map(fit).collect();
        fits.push(match at_commit.has(&name, catalog) {
            true => StatementFit::AnyTimes,
            false => StatementFit::No,
        });
        Some(fits)
    });
    let fits: Vec<Vec<StatementFit>> = fits.collect::<Option<_>>()?;
    let found = makers(&fits, &former_changes(commit, catalog))?;
    let of_row = |(found, change): (Option<usize>, &RowChange)| {
        found.filter(|at| *at < count && change.operation != RowOperation::Truncate)
    };
    Some(found.into_iter().zip(changes).map(of_row).collect())
}

/// True if all statements of a transaction are known. A session can have ended before all of its
/// lines were read. A part of a transaction can have run while its session logged nothing.
fn is_whole(logged: &LoggedTransaction, is_read: bool) -> bool {
    let statements = &logged.statements;
    let word = |one: Option<&ExecutedStatement>| {
        let text = one.map_or("", |one| &*one.text);
        first_words(text, SqlDialect::Postgres).0
    };
    let begins = ["BEGIN", "START"].contains(&&*word(statements.first()));
    let ends = ["COMMIT", "END"].contains(&&*word(statements.last()));
    let is_setting = |one: &ExecutedStatement| one.text.to_ascii_lowercase().contains(SETTING);
    let is_ended = ends || logged.ended.is_some() && is_read;
    is_ended && (begins || !ends) && !statements.iter().any(is_setting)
}

/// True if several statements can have changed one table. Otherwise its name tells the statement.
fn shares_tables(statements: &[ExecutedStatement]) -> bool {
    let mut seen = HashSet::new();
    let mut tables = statements.iter().flat_map(|one| &one.tables);
    tables.any(|tables| {
        let names = tables.writes.iter().filter_map(|name| name.last());
        let is_seen: Vec<bool> = names.map(|name| !seen.insert(name)).collect();
        is_seen.contains(&true)
    })
}

/// The statements behind which a transaction went back to a savepoint before them. `None` if that
/// cannot be told.
fn undone(statements: &[ExecutedStatement]) -> Option<Vec<bool>> {
    let mut undone = vec![false; statements.len()];
    let mut savepoints: Vec<(String, usize)> = Vec::new();
    for (at, one) in statements.iter().enumerate() {
        let text = one.text.to_ascii_lowercase();
        let has = |word: &str| text.contains(word);
        if one.error.is_some() || !(has("savepoint") || has("rollback") || has("release")) {
            continue;
        }
        let place = |name: &str, savepoints: &[(String, usize)]| {
            let known = savepoints.iter().rposition(|(known, _)| known == name);
            known.map(|found| (found, savepoints[found].1))
        };
        let parsed = SqlDialect::Postgres.parse(&one.text).ok()?;
        match &parsed[..] {
            [Statement::Savepoint { name }] => {
                savepoints.push((SqlDialect::Postgres.ident(name), at));
            }
            [Statement::ReleaseSavepoint { name }] => {
                let (found, _) = place(&SqlDialect::Postgres.ident(name), &savepoints)?;
                savepoints.truncate(found);
            }
            [Statement::Rollback { savepoint, .. }] => {
                let name = SqlDialect::Postgres.ident(savepoint.as_ref()?);
                let (found, begin) = place(&name, &savepoints)?;
                undone[begin..at].fill(true);
                savepoints.truncate(found + 1);
            }
            parsed if parsed.iter().any(is_about_savepoints) => return None,
            _ => (),
        }
    }
    Some(undone)
}

fn is_about_savepoints(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::Rollback { .. }
    )
}

/// For each change the one before it of the same row, if there is one.
fn former_changes(commit: &Commit<'_>, catalog: &Catalog) -> Vec<Option<usize>> {
    let keys = commit.tables.iter();
    let keys: HashMap<u64, Vec<&String>> = keys
        .map(|(number, table)| (*number, key_of(table, catalog)))
        .collect();
    let mut newest: HashMap<(u64, Vec<&ColumnValue>), usize> = HashMap::new();
    let mut former = Vec::new();
    for (at, change) in commit.changes.iter().enumerate() {
        let keys = keys.get(&change.table).map_or(&[][..], |keys| &keys[..]);
        let (before, after) = (&change.before, &change.after);
        let key = key_in(keys, before, &None).or_else(|| key_in(keys, after, &None));
        let key = key.filter(|_| change.operation != RowOperation::Insert);
        // Another row may get its former key.
        former.push(key.and_then(|key| newest.remove(&(change.table, key))));
        if let Some(key) = key_in(keys, after, before) {
            newest.insert((change.table, key), at);
        }
    }
    former
}

/// The columns that tell a row apart from all others at each moment. A key that is checked at the
/// commit does not: in between, two rows may have it.
fn key_of<'t>(table: &'t StreamTable, catalog: &'t Catalog) -> Vec<&'t String> {
    if !table.identity.is_empty() {
        let keys = table.columns.iter().filter(|(_, is_key)| *is_key);
        return keys.map(|(column, _)| column).collect();
    }
    let known = catalog.table(&(table.schema.clone(), table.name.clone()));
    let known = known.filter(|known| known.checks_key);
    known.into_iter().flat_map(|known| &known.key).collect()
}

/// The values of a key. Those that a change left as they were may be in the `former` image alone.
/// `None` if one is unknown, or the table has no key.
fn key_in<'i>(
    keys: &[&String],
    image: &'i Option<RowImage>,
    former: &'i Option<RowImage>,
) -> Option<Vec<&'i ColumnValue>> {
    let known = |image: &'i Option<RowImage>, column: &String| {
        let mut columns = image.iter().flatten();
        let value = columns.find(|(name, _)| name == column)?;
        Some(&value.1)
    };
    let is_known = |value: &&ColumnValue| **value != ColumnValue::Unchanged;
    let value = |column: &&String| match known(image, column)? {
        ColumnValue::Unchanged => known(former, column).filter(is_known),
        value => Some(value),
    };
    let values: Option<Vec<&ColumnValue>> = keys.iter().map(value).collect();
    values.filter(|values| !values.is_empty())
}

/// The one statement that can have made each change. `fits`: by change and statement. `former`: the
/// change before it of the same row. `None` if no order of the statements explains all changes.
fn makers(fits: &[Vec<StatementFit>], former: &[Option<usize>]) -> Option<Vec<Option<usize>>> {
    let is_once = |one: usize, at: usize| fits[one][at] == StatementFit::OncePerRow;
    let is_again = |at: usize, one: usize, other: usize, bounds: &[usize]| {
        bounds[other] == at && (is_once(one, at) || is_once(other, at))
    };
    let mut first: Vec<usize> = Vec::new();
    for (one, fit) in fits.iter().enumerate() {
        let begin = first.last().copied().unwrap_or(0);
        let can = |at: &usize| {
            let again = former[one].is_some_and(|other| is_again(*at, one, other, &first));
            fit[*at] != StatementFit::No && !again
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
            fit[*at] != StatementFit::No && !again
        };
        last[one] = (0..end).rev().find(can)?;
        end = last[one] + 1;
    }
    let only = |one: usize| {
        let mut fitting = (first[one]..=last[one]).filter(|at| fits[one][*at] != StatementFit::No);
        fitting.next().filter(|_| fitting.next().is_none())
    };
    Some((0..fits.len()).map(only).collect())
}

#[cfg(test)]
mod tests;
