//! Rows of databases of SQLite whose programs did not load the extension. They are found in stored
//! versions of the database and of its write-ahead log.
//!
//! In: a table, and perhaps a key. Out: the versions in which the row changed, and each change with
//! the row before and after. The worker compares ([`backstory_inspection::row_changes`]).
//!
//! Invariants: only stored contents are read, and files that are still the recorded version, within
//! [`PATIENCE`]. A content that could not be compared has a note. A process is named with certainty
//! if no other one can have made the change.

use std::time::{Duration, Instant};

use backstory_graph::model::Certainty;
use backstory_inspection::FormatReader;
use backstory_inspection::row_changes::{DatabaseFiles, RowStep};
use backstory_inspection::worker::printable;
use backstory_query::{self as query, DatabaseState, RowEvent, SqliteTable};
use backstory_store::{EntityKey, GraphStore, RunKey};
use serde_json::json;

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::paths::shown;
use crate::text::words::counted;
use crate::version_contents::VersionContents;

/// The time after which no more states are compared.
const PATIENCE: Duration = Duration::from_secs(20);

/// The changes of a row, or the versions in which a table changed.
#[derive(Debug, Default)]
pub struct FileRows {
    /// The versions of the database or its log that have the changes, the newest first.
    pub versions: Vec<EntityKey>,
    /// The changes of the row, the newest first.
    pub events: Vec<RowEvent>,
    /// A sentence for each content that could not be compared.
    pub notes: Vec<String>,
}

/// Looks for a table or a row in all recorded databases of SQLite. `run`: only changes of this run.
///
/// # Errors
/// The store fails, or several databases have the table.
pub fn find(
    current: &CurrentStore,
    table: &str,
    key: Option<&str>,
    run: Option<RunKey>,
) -> Result<FileRows, Failure> {
    let mut search = RowSearch {
        current,
        contents: VersionContents::new(current),
        reader: FormatReader::new(),
        key,
        run,
        end: Instant::now() + PATIENCE,
        notes: Vec::new(),
    };
    let mut all: Vec<(String, FileRows)> = Vec::new();
    for path in query::sqlite_databases(&current.store)? {
        let Some(meant) = SqliteTable::meant(&path, table) else {
            continue;
        };
        let found = search.of_database(&path, &meant)?;
        if !found.versions.is_empty() || !found.events.is_empty() {
            all.push((shown(&path), found));
        }
    }
    if all.len() > 1 {
        let names: Vec<String> = all.into_iter().map(|(name, _)| name).collect();
        return Err(Failure::not_found(format!(
            "table {table} can be one of several: in {}; write DATABASE/TABLE with the name of the \
             file, or sqlite://PATH/TABLE",
            names.join(", ")
        )));
    }
    let mut found = all.pop().map(|(_, found)| found).unwrap_or_default();
    found.notes = search.notes;
    Ok(found)
}

struct RowSearch<'s> {
    current: &'s CurrentStore,
    contents: VersionContents<'s>,
    reader: FormatReader,
    key: Option<&'s str>,
    run: Option<RunKey>,
    end: Instant,
    notes: Vec<String>,
}

impl RowSearch<'_> {
    fn of_database(&mut self, path: &[u8], meant: &SqliteTable) -> Result<FileRows, Failure> {
        let states = query::database_states(&self.current.store, path)?;
        let mut found = FileRows::default();
        let mut before: Option<[Vec<u8>; 3]> = None;
        for (at, state) in states.iter().enumerate() {
            if Instant::now() > self.end {
                let left = counted(states.len() - at, "newer state was", "newer states were");
                self.note(
                    path,
                    &format!("{left} not compared, because there was no time"),
                );
                break;
            }
            let after = state.contents(|version| self.contents.read(version))?;
            let older = match state.is_new {
                true => Some(Default::default()),
                false => before,
            };
            if let Some(after) = &after
                && self.run.is_none_or(|run| state.run == Some(run))
            {
                self.compare(path, meant, state, (older.as_ref(), after), &mut found)?;
            }
            if after.is_none() {
                self.note(path, "a version of it, or of its log, is not stored");
            }
            before = after;
        }
        found.versions.reverse();
        found.events.reverse();
        Ok(found)
    }

    fn compare(
        &mut self,
        path: &[u8],
        meant: &SqliteTable,
        state: &DatabaseState,
        (older, newer): (Option<&[Vec<u8>; 3]>, &[Vec<u8>; 3]),
        found: &mut FileRows,
    ) -> Result<(), Failure> {
        let rows = (Some(meant.table.as_str()), self.key);
        let is_known = older.is_some();
        let older = older.map(DatabaseFiles::of);
        let told = match self
            .reader
            .row_changes(path, older, DatabaseFiles::of(newer), rows)
        {
            Ok(told) => told,
            Err(trouble) => {
                self.note(path, &trouble.to_string());
                return Ok(());
            }
        };
        for note in &told.notes {
            self.note(path, &printable(note));
        }
        for step in told.steps {
            let of_log = state.log.filter(|_| step.transactions.is_some());
            let version = of_log.or(state.database).or(state.log);
            found.versions.extend(version);
            if let Some(event) = self.event(meant, (state, is_known), step)? {
                found.events.push(event);
            }
        }
        found.versions.dedup();
        Ok(())
    }

    /// The change of a row, as the record of a database would have it. If the state before it is
    /// unknown, the log may have transactions of other processes.
    fn event(
        &self,
        meant: &SqliteTable,
        (state, is_known): (&DatabaseState, bool),
        step: RowStep,
    ) -> Result<Option<RowEvent>, Failure> {
        let Some(change) = step.change else {
            return Ok(None);
        };
        let run = match state.run {
            Some(run) => self.current.store.run_id(run)?.unwrap_or_default(),
            None => String::new(),
        };
        let mut fact = json!({
            "row": meant.row(&change.table, &change.key),
            "operation": change.operation,
        });
        for (name, image) in [("before", change.before), ("after", change.after)] {
            if !image.is_empty() {
                fact[name] = image.into();
            }
        }
        let transaction = match step.transactions {
            Some((first, last)) if first == last => {
                json!({"number": first, "found_in": "write-ahead log"})
            }
            Some((first, last)) => {
                json!({"number": format!("{first} to {last}"), "found_in": "write-ahead log"})
            }
            None => json!({"found_in": "versions"}),
        };
        let mut clients = state.writers.clone();
        if !is_known {
            for (_, certainty) in &mut clients {
                *certainty = Certainty::Possible;
            }
        }
        Ok(Some(RowEvent {
            run,
            time: state.time,
            change: fact,
            transaction,
            clients,
            unwatched: Vec::new(),
        }))
    }

    fn note(&mut self, path: &[u8], why: &str) {
        let note = format!("{}: {why}", shown(path));
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
