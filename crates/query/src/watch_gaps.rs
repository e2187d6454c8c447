//! The gaps of the watches of a database: changes of a table that they did not record.
//!
//! In: a table, as a question means it. Out: the runs that lack changes of it, and why.
//!
//! A run counts if it watched the database of the table. Logs of earlier versions do not name the
//! database: such a run counts if it has the table.

use std::fmt;

use backstory_eventlog::calendar::utc_second;
use backstory_eventlog::event::Time;
use backstory_eventlog::reason::hides_no_row;
use backstory_eventlog::run::RunHeader;
use backstory_ordering::SmallSort;
use backstory_store::{EntityKey, RunKey, RunRecord, Store};
use backstory_vocabulary::RowsMode;

use crate::resources::{known_tables, known_versions, qualified_table, versions_of};
use crate::runs::summary;
use crate::{Error, Result};

/// The number of gaps that a message has one by one.
const FEW: usize = 3;
/// The number of recorded tables that a message about an unknown one names.
const NAMED: usize = 5;

/// A run that lacks changes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchGap {
    /// The id of the run.
    pub run: String,
    /// The begin and the end of the watch.
    pub watched: (Time, Time),
    /// Why it lacks them.
    pub why: WatchGapReason,
}

/// Why a run lacks changes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchGapReason {
    /// It used the table, and did not record rows.
    WithoutRows,
    /// Its record is not complete: one sentence each.
    Incomplete(Vec<String>),
}

impl fmt::Display for WatchGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = &self.run;
        match &self.why {
            WatchGapReason::WithoutRows => write!(
                f,
                "run {run} did not record rows (--rows off; --rows on is the default of `backstory \
                 watch`)"
            ),
            WatchGapReason::Incomplete(because) => {
                let (from, to) = (utc_second(self.watched.0), utc_second(self.watched.1));
                let because = because.join("; ");
                write!(
                    f,
                    "run {run}, from {from} to {to}, is not complete: {because}"
                )
            }
        }
    }
}

/// A line for each of the newest gaps, and one with the number of the others.
pub fn gap_lines(gaps: &[WatchGap]) -> Vec<String> {
    let mut lines: Vec<String> = gaps.iter().take(FEW).map(WatchGap::to_string).collect();
    match gaps.len().saturating_sub(FEW) {
        0 => (),
        1 => lines.push("1 older run has a gap, too".to_owned()),
        more => lines.push(format!("{more} older runs have gaps, too")),
    }
    lines
}

/// The same in one line, for an error.
pub fn gap_summary(gaps: &[WatchGap]) -> String {
    gap_lines(gaps).join("; ")
}

/// The gaps of a table that a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableGaps {
    /// Those that can hide a transaction of the table.
    Transactions,
    /// Those that can hide a change of a row.
    Changes,
    /// Those that can hide that a row was there at all.
    Rows,
}

/// The versions of a table, or of one of its rows, the newest first.
///
/// `table` is `TABLE`, `SCHEMA.TABLE`, `DATABASE/SCHEMA.TABLE` or a full name. Where a database has
/// no schemas, `DATABASE.TABLE` and `DATABASE/TABLE` mean its table. A name that no table has as it
/// is written is read as PostgreSQL reads one without quotes. `key` is the value of the key column,
/// or `COLUMN=VALUE,…`.
///
/// # Errors
///
/// [`Error::NoTable`], [`Error::OtherTables`], [`Error::NoRow`], [`Error::NoRows`] and
/// [`Error::ManyTables`].
pub fn table_versions(
    store: &dyn Store,
    table: &str,
    key: Option<&str>,
    run: Option<RunKey>,
) -> Result<Vec<EntityKey>> {
    let unknown = match known_versions(store, table, key, run) {
        Err(Error::NoTable(unknown)) => unknown,
        versions => return versions,
    };
    let gaps = match key {
        Some(_) => watch_gaps(store, table, run, TableGaps::Rows)?,
        None => Vec::new(),
    };
    if !gaps.is_empty() {
        return Err(Error::NoRows {
            row: unknown,
            gaps: gap_summary(&gaps),
        });
    }
    let is_known = key.is_some()
        && !matches!(
            known_versions(store, table, None, run),
            Err(Error::NoTable(_))
        );
    if is_known {
        return Err(Error::NoRow {
            row: unknown,
            table: table.to_owned(),
        });
    }
    let others = known_tables(store, run, NAMED + 1)?;
    Err(match others.len() {
        0 => Error::NoTable(unknown),
        many if many > NAMED => {
            Error::OtherTables(unknown, format!("{}, …", others[..NAMED].join(", ")))
        }
        _ => Error::OtherTables(unknown, others.join(", ")),
    })
}

/// The runs that lack changes of a table, the newest first. Empty if the table is unknown, or if
/// several tables have the name.
///
/// # Errors
///
/// The store fails.
pub fn watch_gaps(
    store: &dyn Store,
    table: &str,
    run: Option<RunKey>,
    asked: TableGaps,
) -> Result<Vec<WatchGap>> {
    // A run may have lost all of the table, so its name is that of any run.
    let versions = match known_versions(store, table, None, None) {
        // With several such tables, it is not known which one the run lacks.
        Err(Error::NoTable(_) | Error::ManyTables(..)) => return Ok(Vec::new()),
        versions => versions?,
    };
    match versions.first() {
        Some(first) => gaps_of(store, (&store.entity(*first)?.path, &versions), run, asked),
        None => Ok(Vec::new()),
    }
}

/// The same for the table that these versions are of, or whose row they are of.
///
/// # Errors
///
/// The store fails.
pub fn watch_gaps_of(
    store: &dyn Store,
    versions: &[EntityKey],
    run: Option<RunKey>,
    asked: TableGaps,
) -> Result<Vec<WatchGap>> {
    let Some(first) = versions.first() else {
        return Ok(Vec::new());
    };
    let name = store.entity(*first)?.path;
    let table = name.split(|byte| *byte == b'?').next().unwrap_or_default();
    let versions = versions_of(store, table, None)?;
    gaps_of(store, (table, &versions), run, asked)
}

/// The gaps of the table with this full name and these versions in all runs.
fn gaps_of(
    store: &dyn Store,
    table: (&[u8], &[EntityKey]),
    run: Option<RunKey>,
    asked: TableGaps,
) -> Result<Vec<WatchGap>> {
    let mut gaps = Vec::new();
    for record in store.runs()? {
        if record.header.source.is_none() || run.is_some_and(|run| run != record.key) {
            continue;
        }
        if let Some(why) = missing_changes(store, &record, table, asked)? {
            gaps.push(WatchGap {
                run: record.header.id,
                watched: (record.header.started, record.end.ended),
                why,
            });
        }
    }
    gaps.sort_small_by_key(|gap| std::cmp::Reverse(gap.watched.0));
    Ok(gaps)
}

/// The reason why a run lacks changes of the table with this name and these versions. `None`: it
/// lacks none.
fn missing_changes(
    store: &dyn Store,
    record: &RunRecord,
    (name, versions): (&[u8], &[EntityKey]),
    asked: TableGaps,
) -> Result<Option<WatchGapReason>> {
    let mut own = versions.iter().filter(|key| key.run() == record.key);
    if record.header.modes.rows == Some(RowsMode::Off) && asked != TableGaps::Transactions {
        // Version 0 is the table before its first change in the run.
        let least = u32::from(asked == TableGaps::Changes);
        for key in own.clone() {
            if store.entity(*key)?.version >= least {
                return Ok(Some(WatchGapReason::WithoutRows));
            }
        }
    }
    let is_of = |database: &String| {
        let rest = name.strip_prefix(database.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    };
    let is_watched = match &record.header.database {
        Some(database) => is_of(database),
        None => own.next().is_some(),
    };
    let mut because = match is_watched {
        true => summary(record).incomplete_because,
        false => Vec::new(),
    };
    let table = qualified_table(name);
    because.retain(|sentence| !is_of_another(sentence, table.as_deref()));
    if asked != TableGaps::Transactions {
        because.retain(|sentence| !hides_no_row(sentence));
    }
    Ok((!because.is_empty()).then_some(WatchGapReason::Incomplete(because)))
}

/// True for the sentence of a gap that hides rows of one table alone, which is not this one.
fn is_of_another(sentence: &str, table: Option<&str>) -> bool {
    let named = sentence.split_once(" a gap: updates of rows of ");
    let named = named.and_then(|(_, rest)| {
        let (one, rest) = rest.rsplit_once(" soon after it was created")?;
        (rest == " are unknown").then_some(one)
    });
    table.is_some() && named.is_some() && named != table
}

/// True if two runs watched the same database. In logs of earlier versions, the command of a watch
/// names it.
pub(crate) fn watched_the_same(one: &RunHeader, other: &RunHeader) -> bool {
    let is_same = match (&one.database, &other.database) {
        (Some(one), Some(other)) => one == other,
        _ => one.command == other.command,
    };
    one.source.is_some() && one.source == other.source && is_same
}
