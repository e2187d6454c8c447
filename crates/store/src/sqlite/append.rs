//! Appends a run to the SQLite store, in one transaction.
//!
//! In: the calls of a [`Sink`](backstory_graph::model::Sink). Out: rows. The steps are:
//!
//! 1. While the graph is emitted ([`emit`]): entities and activities gather in memory, since a
//!    later announcement may complete each of them. Edges are encoded as they come. When
//!    [`emit::SPILL`] entries have gathered they are written as segments.
//! 2. At the end ([`finish`]): each name gets its version, and entities and activities are written
//!    in blocks.
//!
//! So memory grows with the files and processes of a run, not with its operations.

mod emit;
mod finish;
mod texts;
mod versions;

use std::path::Path;

use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::{Activity, ByName, EntityKind};
use rusqlite::{Connection, params};

use super::column;
use super::names::{Names, Text};
use crate::appender::{Appender, Body};
use crate::codec::{reverse, stream};
use crate::{Counts, Error, Result, RunKey};

/// The greatest number of a run that fits a key.
const MOST_RUNS: i64 = i32::MAX as i64;

/// Appends a run: see [`crate::GraphStore::append`]. `made_before` says whether an earlier run made
/// a version.
pub fn append(
    conn: &Connection,
    path: &Path,
    header: &RunHeader,
    end: &RunEnd,
    log_bytes: u64,
    made_before: &dyn Fn(&Ident) -> bool,
    body: &mut Body<'_>,
) -> Result<RunKey> {
    let mut run = AppendingRun::new(conn, path, header, end, log_bytes, made_before);
    body(&mut Appender::new(&mut run))?;
    run.finish()
}

/// The use that a run made of an entity.
#[derive(Debug, Clone, Copy, Default)]
struct EntityUse {
    read: bool,
    written: bool,
    /// Its content came from this run.
    made: bool,
}

/// An entity as announced. Small, because a run has one for each of its files.
#[derive(Debug, Clone)]
struct AnnouncedEntity {
    dir: u32,
    name: Text,
    kind: EntityKind,
    /// Index of its identity among the run's identities.
    ident: Option<u32>,
    number: u32,
    previous: Option<u32>,
    last: bool,
    aliases: Option<Box<[(u32, Text)]>>,
    /// The relations by each name, if there are several names and it is known.
    by_name: Option<Box<[ByName]>>,
    part: EntityUse,
}

impl AnnouncedEntity {
    /// Its further names.
    fn aliases(&self) -> &[(u32, Text)] {
        self.aliases.as_deref().unwrap_or_default()
    }
}

/// The end of an activity's stream.
#[derive(Debug, Default)]
struct ActivityTail {
    /// The segment that is being built.
    open: Option<Box<stream::Builder>>,
    /// The newest segment that is written.
    last: Option<u32>,
}

/// A run being appended.
struct AppendingRun<'c> {
    conn: &'c Connection,
    path: &'c Path,
    header: &'c RunHeader,
    end: &'c RunEnd,
    log_bytes: u64,
    /// Set once the transaction has begun.
    number: Option<u32>,
    committed: bool,
    activities: Vec<Option<Activity>>,
    entities: Vec<Option<AnnouncedEntity>>,
    names: Names,
    idents: Vec<Ident>,
    streams: Vec<ActivityTail>,
    mentions: Vec<(Vec<reverse::Mention>, Option<u32>)>,
    pending: usize,
    segments: u32,
    extended: u32,
    edges: u64,
    written: u64,
    unknown: Vec<String>,
    made_before: &'c dyn Fn(&Ident) -> bool,
}

impl<'c> AppendingRun<'c> {
    fn new(
        conn: &'c Connection,
        path: &'c Path,
        header: &'c RunHeader,
        end: &'c RunEnd,
        log_bytes: u64,
        made_before: &'c dyn Fn(&Ident) -> bool,
    ) -> Self {
        AppendingRun {
            conn,
            path,
            header,
            end,
            log_bytes,
            number: None,
            committed: false,
            activities: Vec::new(),
            entities: Vec::new(),
            names: Names::default(),
            idents: Vec::new(),
            streams: Vec::new(),
            mentions: Vec::new(),
            pending: 0,
            segments: 0,
            extended: 0,
            edges: 0,
            written: 0,
            unknown: Vec::new(),
            made_before,
        }
    }

    /// The identity of an entity.
    fn ident(&self, known: &AnnouncedEntity) -> Option<Ident> {
        known.ident.map(|at| self.idents[at as usize])
    }

    /// The run's number. The first call begins the transaction and makes the run's row.
    fn number(&mut self) -> Result<u32> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        self.conn
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(|e| self.failed("begin a transaction", e))?;
        // From here on dropping `self` rolls back.
        self.number = Some(0);
        let taken = self.conn.query_row(
            "SELECT 1 FROM runs WHERE id = ?1",
            [&self.header.id],
            |_| Ok(()),
        );
        if taken.is_ok() {
            return Err(Error::Exists(self.header.id.clone()));
        }
        let environment = {
            let mut list = Vec::new();
            for variable in &self.header.environment {
                crate::codec::RecordWriter::bytes(&mut list, variable);
            }
            self.text(&list)?
        };
        // Most runs have the same environment, which is most of a header: it is a text, which runs
        // share.
        let header = RunHeader {
            environment: Vec::new(),
            ..self.header.clone()
        };
        let values = params![
            header.id,
            header.name,
            header.started,
            json(&header)?,
            column(environment),
            json(self.end)?,
            self.log_bytes as i64
        ];
        let insert = "INSERT INTO runs (id, name, started, header, environment, end, log_bytes) VALUES (?, ?, ?, ?, ?, ?, ?)";
        self.conn
            .prepare_cached(insert)
            .and_then(|mut s| s.execute(values))
            .map_err(|e| self.failed("add a run", e))?;
        let number = self.conn.last_insert_rowid();
        if number > MOST_RUNS {
            return Err(Error::TooMany("runs"));
        }
        self.number = Some(number as u32);
        Ok(number as u32)
    }

    fn failed(&self, doing: &'static str, error: rusqlite::Error) -> Error {
        Error::database(doing, self.path, error)
    }

    /// Completes the run's row and commits.
    fn commit(&mut self, counts: &Counts) -> Result<RunKey> {
        let number = self.number()?;
        let values = params![
            number,
            json(&self.unknown)?,
            counts.activities as i64,
            counts.entities as i64,
            counts.edges as i64,
            counts.files_read as i64,
            counts.files_written as i64,
        ];
        let update = "UPDATE runs SET unknown = ?2, activities = ?3, entities = ?4, edges = ?5, files_read = ?6, files_written = ?7 \
                      WHERE number = ?1";
        self.conn
            .execute(update, values)
            .map_err(|e| self.failed("complete a run", e))?;
        self.conn
            .execute_batch("COMMIT")
            .map_err(|e| self.failed("commit a run", e))?;
        self.committed = true;
        Ok(RunKey(number))
    }
}

impl Drop for AppendingRun<'_> {
    fn drop(&mut self) {
        if self.number.is_some() && !self.committed {
            // A failed roll-back leaves nothing to do: closing the connection rolls back, too.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(Error::source_failed)
}
