//! Appending a run: collects what the graph emits and writes it in one transaction.
//!
//! Entities and activities are kept until the end, because each may be completed by a later announcement; edges are encoded
//! as they come and written whenever [`SPILL`] of them have gathered. So memory grows with the files and processes of a
//! run, not with its operations.

use std::path::Path;

use backstory_eventlog::event::Time;
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::{
    Activity, ActivityId, ByName, Derived, Edge, Entity, EntityId, EntityKind, Inform, Informed,
    Relation, Sink,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::column;
use super::names::{Names, Text};
use crate::appender::{Appender, Body};
use crate::codec::members::BLOCK;
use crate::codec::{activity, reverse, stream};
use crate::{Counts, Error, Result, RunKey};

/// Entries that may gather before they are written. Few in tests, so that lists of several segments are ordinary there.
const SPILL: usize = if cfg!(test) { 16 } else { 1 << 20 };

/// Runs whose numbers still fit a key.
const MOST_RUNS: i64 = i32::MAX as i64;

/// Appends a run; see [`crate::Store::append`]. `made_before`: whether a run that is there already made this version.
pub fn append(
    conn: &Connection,
    path: &Path,
    header: &RunHeader,
    end: &RunEnd,
    log_bytes: u64,
    made_before: &dyn Fn(&Ident) -> bool,
    body: &mut Body<'_>,
) -> Result<RunKey> {
    let mut run = Run::new(conn, path, header, end, log_bytes, made_before);
    body(&mut Appender::new(&mut run))?;
    run.finish()
}

/// What an entity was to its run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    pub read: bool,
    pub written: bool,
    /// Its content came from this run.
    pub made: bool,
}

/// An entity as announced, its names split. Small, because there is one for each file of a run.
#[derive(Debug, Clone)]
pub struct Known {
    pub dir: u32,
    pub name: Text,
    pub kind: EntityKind,
    /// Where among the run's identities its own is.
    pub ident: Option<u32>,
    pub number: u32,
    pub previous: Option<u32>,
    pub last: bool,
    pub aliases: Option<Box<[(u32, Text)]>>,
    /// What was done by each name, if there are several and it is known.
    pub by_name: Option<Box<[ByName]>>,
    pub part: Part,
}

impl Known {
    /// Its further names.
    pub fn aliases(&self) -> &[(u32, Text)] {
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
pub struct Run<'c> {
    pub conn: &'c Connection,
    pub path: &'c Path,
    pub header: &'c RunHeader,
    end: &'c RunEnd,
    log_bytes: u64,
    /// Set once the transaction has begun.
    pub number: Option<u32>,
    committed: bool,
    pub activities: Vec<Option<Activity>>,
    pub entities: Vec<Option<Known>>,
    pub names: Names,
    idents: Vec<Ident>,
    streams: Vec<ActivityTail>,
    mentions: Vec<(Vec<reverse::Mention>, Option<u32>)>,
    pending: usize,
    segments: u32,
    extended: u32,
    pub edges: u64,
    pub written: u64,
    unknown: Vec<String>,
    made_before: &'c dyn Fn(&Ident) -> bool,
}

impl<'c> Run<'c> {
    fn new(
        conn: &'c Connection,
        path: &'c Path,
        header: &'c RunHeader,
        end: &'c RunEnd,
        log_bytes: u64,
        made_before: &'c dyn Fn(&Ident) -> bool,
    ) -> Self {
        Run {
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
    pub fn ident(&self, known: &Known) -> Option<Ident> {
        known.ident.map(|at| self.idents[at as usize])
    }

    /// Keeps an identity, in place of the one that was kept before.
    fn keep_ident(&mut self, before: Option<u32>, ident: Option<Ident>) -> Result<Option<u32>> {
        let Some(ident) = ident else { return Ok(None) };
        if let Some(before) = before {
            self.idents[before as usize] = ident;
            return Ok(Some(before));
        }
        let at = u32::try_from(self.idents.len()).map_err(|_| Error::TooMany("identities"))?;
        self.idents.push(ident);
        Ok(Some(at))
    }

    /// The run's number. The first call begins the transaction and makes the run's row.
    pub fn number(&mut self) -> Result<u32> {
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
        // The environment is most of a header, and the same in most runs: it is kept as a text of its own.
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

    pub fn failed(&self, doing: &'static str, error: rusqlite::Error) -> Error {
        Error::database(doing, self.path, error)
    }

    /// Keeps a text once; tells its id. Texts whose ids collide are kept under the next free ones.
    pub fn text(&self, bytes: &[u8]) -> Result<u64> {
        let mut id = activity::text_id(bytes);
        loop {
            match self.is_text(id, bytes)? {
                Some(true) => return Ok(id),
                Some(false) => id += 1,
                None => break,
            }
        }
        let insert = "INSERT INTO texts (id, bytes) VALUES (?, ?)";
        let done = self
            .conn
            .prepare_cached(insert)
            .and_then(|mut s| s.execute(params![column(id), bytes]));
        done.map_err(|e| self.failed("add a text", e))?;
        Ok(id)
    }

    /// Whether `id` is of this text; none if it is of no text.
    fn is_text(&self, id: u64, bytes: &[u8]) -> Result<Option<bool>> {
        let fail = |e| self.failed("look for a text", e);
        let mut select = self
            .conn
            .prepare_cached("SELECT bytes FROM texts WHERE id = ?1")
            .map_err(fail)?;
        let found = select.query_row([column(id)], |row| Ok(row.get_ref(0)?.as_blob()? == bytes));
        found.optional().map_err(fail)
    }

    fn unannounced(&self, what: &'static str, id: u32) -> Error {
        Error::Unannounced {
            run: self.header.id.clone(),
            what,
            id: u64::from(id),
        }
    }

    fn announced(&mut self, id: ActivityId) -> Result<&mut stream::Builder> {
        if !matches!(self.activities.get(id.0 as usize), Some(Some(_))) {
            return Err(self.unannounced("activity", id.0));
        }
        let open = &mut self.streams[id.0 as usize].open;
        let new = || Box::new(stream::Builder::new(id, self.header.started));
        Ok(open.get_or_insert_with(new))
    }

    fn known(&mut self, id: EntityId) -> Result<&mut Known> {
        if !matches!(self.entities.get(id.0 as usize), Some(Some(_))) {
            return Err(self.unannounced("entity", id.0));
        }
        match &mut self.entities[id.0 as usize] {
            Some(known) => Ok(known),
            None => Err(Error::Damaged("entity")),
        }
    }

    fn mention(&mut self, entity: EntityId, activity: ActivityId, generated: bool) {
        let mention = ((entity.0 % BLOCK) as u8, activity.0, generated);
        let list = &mut self.mentions[(entity.0 / BLOCK) as usize].0;
        // One activity's relations with one entity tend to come in a row.
        if list.last() != Some(&mention) {
            list.push(mention);
        }
        self.pending += 1;
    }

    fn spill_if_full(&mut self) -> Result<()> {
        if self.pending >= SPILL {
            self.spill()
        } else {
            Ok(())
        }
    }

    /// Writes all lists gathered so far, each pointing back to the one before it.
    pub fn spill(&mut self) -> Result<()> {
        let number = self.number()?;
        for id in 0..self.streams.len() {
            if let Some(full) = self.streams[id].open.take() {
                let segment = full.finish(self.streams[id].last);
                self.streams[id].last = Some(self.segment(number, &segment)?);
            }
        }
        for block in 0..self.mentions.len() {
            if !self.mentions[block].0.is_empty() {
                let mut full = std::mem::take(&mut self.mentions[block].0);
                let segment = reverse::encode(&mut full, self.mentions[block].1);
                self.mentions[block].1 = Some(self.segment(number, &segment)?);
            }
        }
        self.pending = 0;
        Ok(())
    }

    fn segment(&mut self, run: u32, segment: &[u8]) -> Result<u32> {
        let id = self.segments;
        self.segments = id
            .checked_add(1)
            .filter(|n| *n < u32::MAX)
            .ok_or(Error::TooMany("lists of edges in one run"))?;
        let values = params![i64::from(run) << 32 | i64::from(id), segment];
        let insert = "INSERT INTO segments (id, block) VALUES (?, ?)";
        self.conn
            .prepare_cached(insert)
            .and_then(|mut s| s.execute(values))
            .map_err(|e| self.failed("add edges", e))?;
        Ok(id)
    }

    /// Where the newest list of an activity's edges is.
    pub fn stream_tail(&self, activity: usize) -> Option<u32> {
        self.streams[activity].last
    }

    /// Where the newest list of the activities of a block's entities is.
    pub fn reverse_tail(&self, block: usize) -> Option<u32> {
        self.mentions[block].1
    }

    /// Completes the run's row and commits.
    pub fn commit(&mut self, counts: &Counts) -> Result<RunKey> {
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

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if self.number.is_some() && !self.committed {
            // A failed roll-back leaves nothing to do: closing the connection rolls back, too.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }
}

impl Sink for Run<'_> {
    type Error = Error;

    fn activity(&mut self, activity: &Activity) -> Result<()> {
        let id = activity.id.0 as usize;
        while self.activities.len() <= id {
            self.activities.push(None);
            self.streams.push(ActivityTail::default());
        }
        self.activities[id] = Some(activity.clone());
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<()> {
        let id = entity.id.0 as usize;
        if self.entities.len() <= id {
            self.entities.resize(id + 1, None);
            self.mentions
                .resize_with(id / BLOCK as usize + 1, Default::default);
        }
        let before = self.entities[id].take();
        let part = before.as_ref().map(|known| known.part).unwrap_or_default();
        let told = before.as_ref().map(|known| (known.dir, known.name));
        let (dir, name) = self.names.intern(&entity.path, told)?;
        let mut aliases = None;
        if !entity.aliases.is_empty() {
            let split = entity
                .aliases
                .iter()
                .map(|alias| self.names.intern(alias, None));
            aliases = Some(split.collect::<Result<_>>()?);
        }
        let ident = self.keep_ident(before.and_then(|known| known.ident), entity.ident)?;
        self.entities[id] = Some(Known {
            dir,
            name,
            kind: entity.kind,
            ident,
            number: entity.version,
            previous: entity.previous.map(|p| p.0),
            last: entity.last,
            aliases,
            by_name: (!entity.by_name.is_empty()).then(|| entity.by_name.as_slice().into()),
            part,
        });
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        let part = &mut self.known(edge.entity)?.part;
        match edge.relation {
            Relation::Read | Relation::Execute => part.read = true,
            Relation::Write | Relation::Make | Relation::Rename => {
                (part.written, part.made) = (true, true)
            }
            Relation::Delete => part.written = true,
            _ => {}
        }
        self.announced(edge.activity)?.edge(edge);
        self.edges += 1;
        self.mention(edge.entity, edge.activity, !edge.relation.is_use());
        self.spill_if_full()
    }

    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.announced(inform.from)?.informs(inform);
        self.announced(inform.to)?.informed_by(inform);
        self.edges += u64::from(!matches!(inform.why, Informed::Exec));
        self.pending += 2;
        self.spill_if_full()
    }

    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.known(derived.from)?;
        self.known(derived.entity)?.part.made = true;
        self.announced(derived.activity)?.derived(derived);
        self.edges += 1;
        self.mention(derived.entity, derived.activity, true);
        self.mention(derived.from, derived.activity, false);
        self.spill_if_full()
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        self.announced(activity)?;
        let number = self.number()?;
        let id = i64::from(number) << 32 | i64::from(self.extended);
        self.extended = self
            .extended
            .checked_add(1)
            .ok_or(Error::TooMany("extended records in one run"))?;
        let insert =
            "INSERT INTO extended (id, activity, time, kind, payload) VALUES (?, ?, ?, ?, ?)";
        let values = params![id, activity.0, time, kind, payload];
        let done = self
            .conn
            .prepare_cached(insert)
            .and_then(|mut s| s.execute(values));
        done.map(drop)
            .map_err(|e| self.failed("add an extended record", e))
    }

    fn unknown(&mut self, reason: &str) -> Result<()> {
        if !self.unknown.iter().any(|known| known == reason) {
            self.unknown.push(reason.to_owned());
        }
        Ok(())
    }

    fn made_before(&self, ident: &Ident) -> bool {
        (self.made_before)(ident)
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(Error::source_failed)
}
