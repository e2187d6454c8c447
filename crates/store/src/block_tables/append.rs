//! Appends a run, in one transaction.
//!
//! In: the calls of a [`Sink`](backstory_graph::model::Sink). Out: rows. The steps are:
//!
//! 1. While the graph is emitted ([`emit`]): entities and activities gather in memory, since a
//!    later announcement may complete each of them. Edges are encoded as they come. When
//!    [`emit::SPILL`] entries have gathered they are written as segments.
//! 2. At the end ([`finish`]): each name gets its version, renames are listed, and entities and
//!    activities are written in blocks.
//!
//! So memory grows with the files and processes of a run, not with its operations.

mod edge_lists;
mod emit;
mod finish;
mod renames;
mod texts;
mod versions;

use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::{Activity, ByName, EntityKind};

pub use edge_lists::EdgeListWriter;
pub use texts::TextWriter;

use renames::Renames;

use super::names::{Names, Text};
use super::{BlockTables, environment};
use crate::appender::{Appender, Body};
use crate::codec::{extended, reverse, stream};
use crate::{Counts, Error, Result, RunKey};

/// The greatest number of a run that fits a key.
const MOST_RUNS: u32 = i32::MAX as u32;

/// Directories, or activities, whose rows an engine may fetch at once.
const AT_ONCE: usize = if cfg!(test) { 4 } else { 512 };

/// Appends a run: see [`crate::GraphStore::append`].
pub fn append<T: BlockTables>(
    tables: &T,
    header: &RunHeader,
    end: &RunEnd,
    log_bytes: u64,
    body: &mut Body<'_>,
) -> Result<RunKey> {
    let mut run = AppendingRun::new(tables, header, end, log_bytes);
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
struct AppendingRun<'c, T: BlockTables> {
    tables: &'c T,
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
    /// Rows of lists of activities that are written.
    segments: u32,
    edge_lists: EdgeListWriter,
    texts: TextWriter,
    renames: Renames,
    /// Extended records that are not written yet.
    extended: extended::Builder,
    extended_written: u32,
    edges: u64,
    written: u64,
    unknown: Vec<String>,
}

impl<'c, T: BlockTables> AppendingRun<'c, T> {
    fn new(tables: &'c T, header: &'c RunHeader, end: &'c RunEnd, log_bytes: u64) -> Self {
        AppendingRun {
            tables,
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
            edge_lists: EdgeListWriter::default(),
            texts: TextWriter::default(),
            renames: Renames::default(),
            extended: extended::Builder::new(header.started),
            extended_written: 0,
            edges: 0,
            written: 0,
            unknown: Vec::new(),
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
        self.tables.begin()?;
        // From here on dropping `self` rolls back.
        self.number = Some(0);
        if self.tables.has_run(&self.header.id)? {
            return Err(Error::Exists(self.header.id.clone()));
        }
        let environment = environment::encode(&self.header.environment);
        let environment = self.texts.text(self.tables, &environment)?;
        // Most runs have the same environment, which is most of a header: it is a text, which runs
        // share.
        let header = RunHeader {
            environment: Vec::new(),
            ..self.header.clone()
        };
        let number = self
            .tables
            .add_run(&header, environment, self.end, self.log_bytes)?;
        if number > MOST_RUNS {
            return Err(Error::TooMany("runs"));
        }
        self.number = Some(number);
        Ok(number)
    }

    /// Completes the run's row and commits.
    fn commit(&mut self, counts: &Counts) -> Result<RunKey> {
        let number = self.number()?;
        self.tables.complete_run(number, &self.unknown, counts)?;
        self.tables.commit()?;
        self.committed = true;
        Ok(RunKey(number))
    }
}

impl<T: BlockTables> Drop for AppendingRun<'_, T> {
    fn drop(&mut self) {
        if self.number.is_some() && !self.committed {
            self.tables.roll_back();
        }
    }
}
