//! Rows of a database of SQLite that changed, transaction by transaction.
//!
//! In: two states of a database's files. Out: the steps from one to the other. A step is one
//! transaction of the newer state's write-ahead log, or all changes that the files do not separate.
//!
//! Invariant: the steps in order lead from the older state to the newer one, and none is left out
//! without a note.

use std::time::Duration;

use backstory_inspection::row_changes::{
    DatabaseFiles, RowChange, RowChanges, RowStep, RowsWanted, TableStep,
};
use rusqlite::Connection;

use super::sqlite_content::{open, tables};
use super::sqlite_row::RowImage;
use super::sqlite_rows::{TableReader, compare};
use super::sqlite_states::DatabaseStates;
use crate::sandbox::processor_time;
use crate::{Read, UnreadableContent};

/// The processor time after which the rest of the log's transactions becomes one step. The worker
/// has 2 s. On a busy machine, other processes' time must not shorten the answer.
const LONGEST: Duration = Duration::from_millis(900);

/// The most bytes of all files. The worker also needs two whole states of the database.
pub const LARGEST: usize = 64 << 20;

/// The most changed cells of a table and step that are shown.
const SHOWN: usize = 3;

/// A state of the database, opened. `None`: there is no database.
type State = Option<Connection>;

/// The rows that changed from the older state to the newer one.
pub fn row_changes(
    wanted: &RowsWanted,
    older: DatabaseFiles<'_>,
    newer: DatabaseFiles<'_>,
) -> Read<RowChanges> {
    if older.len().saturating_add(newer.len()) > LARGEST {
        return Err(UnreadableContent(format!(
            "its files have more than {} MiB in both states, so their rows are not compared",
            LARGEST >> 20
        )));
    }
    let side = |which: &str, files| {
        DatabaseStates::read(files)
            .map_err(|error| UnreadableContent(format!("the {which} state: {error}")))
    };
    let states = side("newer", newer)?;
    let older = match wanted.has_older {
        true => Some(side("older", older)?),
        false => None,
    };
    let mut found = Steps {
        wanted,
        changes: RowChanges {
            steps: Vec::new(),
            schema: Vec::new(),
            notes: states.notes.clone(),
        },
    };
    let first_known = found.add_all(older.as_ref(), &states)?;
    match first_known {
        Some(0) => {}
        Some(number) => found.note(&format!(
            "what the first {number} transactions of its write-ahead log changed is not known: the \
             content before them is in no file"
        )),
        None => found.note("no content of the database is known"),
    }
    let is_joined = |step: &RowStep| step.transactions.is_some_and(|(first, last)| first < last);
    if !wanted.as_one && found.changes.steps.iter().any(is_joined) {
        found.note(
            "some transactions are told together: pages between them are in no file, or there was \
             no time",
        );
    }
    Ok(found.changes)
}

/// The content of the database at the end of each state, if the files have it.
pub fn whole_contents(
    older: DatabaseFiles<'_>,
    newer: DatabaseFiles<'_>,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let older = DatabaseStates::read(older).ok()?;
    let newer = DatabaseStates::read(newer).ok()?;
    let before = older.after(older.transactions(), None)?;
    let base = newer.begins_at(&older, &before).then_some(&before[..]);
    let after = newer.after(newer.transactions(), base)?;
    Some((before, after))
}

/// The steps so far.
struct Steps<'w> {
    wanted: &'w RowsWanted,
    changes: RowChanges,
}

impl Steps<'_> {
    fn note(&mut self, sentence: &str) {
        self.changes.notes.push(sentence.to_owned());
    }

    /// Adds the steps from the older state to the newer one. The result is the number of the newer
    /// log's transactions before the first known content. `None`: no content is known.
    fn add_all(
        &mut self,
        older: Option<&DatabaseStates<'_>>,
        newer: &DatabaseStates<'_>,
    ) -> Read<Option<usize>> {
        let began = processor_time();
        // Without the last content there is nothing to compare with.
        let last = older.and_then(|older| older.after(older.transactions(), None));
        let base = last
            .as_deref()
            .filter(|content| older.is_some_and(|older| newer.begins_at(older, content)));
        let first = older.map_or(0, |older| newer.in_common(older));
        let mut before: Option<(State, usize)> = match &last {
            Some(content) => Some((opened(content)?, first)),
            None => None,
        };
        let is_continued = first > 0 && before.is_some();
        let mut first_known = before.as_ref().map(|_| 0);
        let end = newer.transactions();
        for number in first + usize::from(is_continued)..=end {
            let is_late = self.wanted.as_one || processor_time() - began > LONGEST;
            let content = match is_late && number < end {
                true => None,
                false => newer.after(number, base),
            };
            let Some(content) = content else { continue };
            let after = opened(&content)?;
            if let Some((state, since)) = &before {
                let of_log = (number > 0).then_some((since + 1, number));
                self.add(of_log, state, &after)?;
            }
            first_known.get_or_insert(number);
            before = Some((after, number));
        }
        Ok(first_known)
    }

    /// Adds the step between two states, if it changed something that is wanted.
    fn add(
        &mut self,
        transactions: Option<(usize, usize)>,
        before: &State,
        after: &State,
    ) -> Read<()> {
        let mut step = RowStep {
            transactions,
            ..RowStep::default()
        };
        match (&self.wanted.table, &self.wanted.key) {
            (Some(table), Some(key)) => step.change = change(table, key, before, after)?,
            _ => step.tables = self.tables(before, after)?,
        }
        if step.change.is_some() || !step.tables.is_empty() {
            self.changes.steps.push(step);
        }
        Ok(())
    }

    /// The tables whose rows differ.
    fn tables(&mut self, before: &State, after: &State) -> Read<Vec<TableStep>> {
        let (old, new) = (readers(before)?, readers(after)?);
        let is_wanted = |table: &&TableReader| {
            let wanted = self.wanted.table.as_ref();
            wanted.is_none_or(|wanted| table.name.eq_ignore_ascii_case(wanted))
        };
        let mut steps = Vec::new();
        let mut notes = Vec::new();
        let names = new.iter().chain(&old).filter(is_wanted);
        let mut names: Vec<&str> = names.map(|table| &*table.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let find = |all: &[TableReader]| all.iter().position(|table| table.name == *name);
            let (was, is) = (find(&old), find(&new));
            let of = |state: &State, place: Option<usize>, all: &[TableReader]| match (
                state,
                place.and_then(|place| all.get(place)),
            ) {
                (Some(state), Some(table)) => table.count(state),
                _ => Ok(0),
            };
            let sentences = match (before, after, was, is) {
                (Some(before), Some(after), Some(was), Some(is)) => {
                    compare((before, &old[was]), (after, &new[is])).map(|rows| {
                        let cells = rows.cells.iter().take(SHOWN).map(|cell| {
                            format!(
                                "`{name}.{}` of {} {}: {} → {}",
                                cell.column, rows.key, cell.row, cell.from, cell.to
                            )
                        });
                        let summary = rows.summary().map(|text| format!("`{name}`: {text}"));
                        summary.into_iter().chain(cells).collect()
                    })
                }
                (_, _, None, _) => {
                    of(after, is, &new).map(|rows| told(name, "made", rows, "added"))
                }
                _ => of(before, was, &old).map(|rows| told(name, "dropped", rows, "removed")),
            };
            match sentences {
                Ok(sentences) if sentences.is_empty() => {}
                Ok(sentences) => steps.push(TableStep {
                    table: name.to_owned(),
                    sentences,
                }),
                Err(error) => notes.push(cannot(name, &error)),
            }
        }
        for note in notes {
            if !self.changes.notes.contains(&note) {
                self.note(&note);
            }
        }
        Ok(steps)
    }
}

fn told(table: &str, what: &str, rows: usize, how: &str) -> Vec<String> {
    let rows = backstory_vocabulary::counted(rows, "row", "rows");
    vec![format!("`{table}` was {what}: {rows} {how}")]
}

/// The change of one row. `None` if it is the same.
fn change(table: &str, key: &str, before: &State, after: &State) -> Read<Option<RowChange>> {
    let side = |state: &State| {
        let Some(state) = state else { return Ok(None) };
        let tables = tables(state)?;
        let found = tables
            .into_iter()
            .find(|one| one.name.eq_ignore_ascii_case(table));
        let Some(found) = found else { return Ok(None) };
        let row = found.row(state, key);
        let row = row.map_err(|error| UnreadableContent(cannot(&found.name, &error)))?;
        Ok(row.map(|row| (found.name, row)))
    };
    let (old, new) = (side(before)?, side(after)?);
    let operation = match (&old, &new) {
        (None, None) => return Ok(None),
        (Some((_, old)), Some((_, new))) if old == new => return Ok(None),
        (None, Some(_)) => "insert",
        (Some(_), Some(_)) => "update",
        (Some(_), None) => "delete",
    };
    let Some((table, row)) = new.clone().or_else(|| old.clone()) else {
        return Ok(None);
    };
    let image =
        |side: Option<(String, RowImage)>| side.map(|(_, row)| row.columns).unwrap_or_default();
    Ok(Some(RowChange {
        table,
        key: row.key,
        operation: operation.to_owned(),
        before: image(old),
        after: image(new),
    }))
}

fn cannot(table: &str, error: &rusqlite::Error) -> String {
    format!("`{table}`: its rows cannot be compared (SQLite: {error})")
}

/// Opens a state. An empty one is no database.
fn opened(content: &[u8]) -> Read<State> {
    match content {
        [] => Ok(None),
        content => open(content).map(Some),
    }
}

fn readers(state: &State) -> Read<Vec<TableReader>> {
    state.as_ref().map_or(Ok(Vec::new()), tables)
}
