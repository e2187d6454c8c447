//! The rows of each view, a part at a time.
//!
//! In: a store and a [`Selection`]. Out: rows. A part is a run, a process or a version, so that no
//! more than one of them is in memory.

mod columns;
mod inspected;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{EntityId, EntityKind};
use backstory_query::{Globs, REPLY};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{RunCommands, workflow_of};

use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::inspections::Inspections;

/// The rows that a question wants of a view.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    All,
    /// Of this run.
    Run(String),
    /// With this key in the column of this name.
    Key(&'static str, i64),
    /// With this path.
    Path(Vec<u8>),
}

/// A part of a view's rows that is read at once.
#[derive(Debug)]
enum Part {
    Run(RunKey),
    Processes(RunKey),
    Process(ActivityKey),
    Files(RunKey),
    File(EntityKey),
    /// The edges of a run: one part for each process.
    EdgesOfRun(RunKey),
    EdgesOfProcess(ActivityKey),
    EdgesOfFile(EntityKey),
    Steps(RunKey),
    /// A run's derivations: one part for each process.
    DerivationsOfRun(RunKey),
    DerivationsOfProcess(ActivityKey),
    /// A run's informs: one part for each informed process.
    InformsOfRun(RunKey),
    InformsOfProcess(ActivityKey),
    Connections(RunKey),
    Peers(RunKey),
    /// The answers of inspectors about a run: one part for each version.
    FactsOfRun(RunKey),
    Facts(EntityKey),
    ChangesOfRun(RunKey),
    Changes(EntityKey),
}

pub(crate) type Row = Vec<Cell>;

/// A store, and what is known of it.
pub(crate) struct Source {
    pub(crate) store: &'static dyn Store,
    inspections: Option<&'static dyn Inspections>,
    /// The end of the answer's time, and how long it was.
    deadline: Option<(Instant, Duration)>,
    /// How many activities and entities the runs have that were asked for by key.
    counts: RefCell<HashMap<RunKey, (usize, usize)>>,
}

impl Source {
    pub(crate) fn new(
        store: &'static dyn Store,
        inspections: Option<&'static dyn Inspections>,
        time: Option<Duration>,
    ) -> Source {
        let end = |time| Some((Instant::now().checked_add(time)?, time));
        Source {
            store,
            inspections,
            deadline: time.and_then(end),
            counts: RefCell::default(),
        }
    }

    fn counts(&self, run: RunKey) -> Result<(usize, usize)> {
        if let Some(known) = self.counts.borrow().get(&run) {
            return Ok(*known);
        }
        let counts = match self.store.run_id(run)? {
            Some(_) => (
                self.store.activities(run)?.len(),
                self.store.entities(run)?.len(),
            ),
            None => (0, 0),
        };
        self.counts.borrow_mut().insert(run, counts);
        Ok(counts)
    }
}

/// The rows of a selection that are not read yet.
pub(crate) struct Rows {
    store: &'static dyn Store,
    inspections: Option<&'static dyn Inspections>,
    deadline: Option<(Instant, Duration)>,
    parts: VecDeque<Part>,
    run: Option<(RunKey, Rc<str>)>,
}

impl Rows {
    /// Nothing is read of the rows themselves.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) fn of(source: &Source, view: &str, wanted: Selection) -> Result<Rows> {
        let store = source.store;
        let per_run: fn(RunKey) -> Part = match view {
            "runs" => Part::Run,
            "processes" => Part::Processes,
            "files" => Part::Files,
            "edges" => Part::EdgesOfRun,
            "derivations" => Part::DerivationsOfRun,
            "informs" => Part::InformsOfRun,
            "connections" => Part::Connections,
            "peers" => Part::Peers,
            "facts" => Part::FactsOfRun,
            "changes" => Part::ChangesOfRun,
            _ => Part::Steps,
        };
        let parts = match (view, wanted) {
            (_, Selection::All) => store.runs_in_order()?.into_iter().map(per_run).collect(),
            (_, Selection::Run(run)) => store
                .run(&run)?
                .map(|run| per_run(run.key))
                .into_iter()
                .collect(),
            ("files" | "facts" | "changes", Selection::Path(path)) => {
                let part = match view {
                    "facts" => Part::Facts,
                    "changes" => Part::Changes,
                    _ => Part::File,
                };
                store.at_path(&path)?.into_iter().map(part).collect()
            }
            (_, Selection::Path(_)) => VecDeque::new(),
            (view, Selection::Key(column, key)) => key_part(source, view, column, key)?,
        };
        Ok(Rows {
            store,
            inspections: source.inspections,
            deadline: source.deadline,
            parts,
            run: None,
        })
    }

    /// The next rows. Empty after the last.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) fn next_part(&mut self) -> Result<VecDeque<Row>> {
        while let Some(part) = self.parts.pop_front() {
            self.check_time(&part)?;
            let rows = self.read(part)?;
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
        Ok(VecDeque::new())
    }

    fn read(&mut self, part: Part) -> Result<VecDeque<Row>> {
        let store = self.store;
        Ok(match part {
            Part::Run(run) => {
                let record = store.run_by_key(run)?;
                record.map(columns::run_row).into_iter().collect()
            }
            Part::Processes(run) => {
                let all = store.activities(run)?;
                all.iter()
                    .map(|one| self.process_row(run, one))
                    .collect::<Result<_>>()?
            }
            Part::Process(key) => {
                let one = store.activity(key)?;
                [self.process_row(key.run(), &one)?].into()
            }
            Part::Files(run) => {
                let all = store.entities(run)?;
                all.into_iter()
                    .map(|one| self.file_row(run, one))
                    .collect::<Result<_>>()?
            }
            Part::File(key) => {
                let one = store.entity(key)?;
                [self.file_row(key.run(), one)?].into()
            }
            Part::EdgesOfRun(run) => self.for_each_process(run, Part::EdgesOfProcess)?,
            Part::DerivationsOfRun(run) => {
                self.for_each_process(run, Part::DerivationsOfProcess)?
            }
            Part::InformsOfRun(run) => self.for_each_process(run, Part::InformsOfProcess)?,
            Part::DerivationsOfProcess(key) => {
                let derived = store.stream(key)?.derived.into_iter();
                derived
                    .map(|one| self.derivation_row(key.run(), one))
                    .collect::<Result<_>>()?
            }
            Part::InformsOfProcess(key) => {
                let informs = store.stream(key)?.informed_by.into_iter();
                informs
                    .map(|one| self.inform_row(key.run(), one))
                    .collect::<Result<_>>()?
            }
            Part::EdgesOfProcess(key) => {
                let edges = store.stream(key)?.edges;
                edges
                    .iter()
                    .map(|edge| self.edge_row(key.run(), edge))
                    .collect::<Result<_>>()?
            }
            Part::EdgesOfFile(key) => self.edges_of_file(key)?,
            Part::Steps(run) => self.step_rows(run)?,
            Part::Connections(run) => self.connection_rows(run)?,
            Part::Peers(run) => self.peer_rows(run)?,
            Part::FactsOfRun(run) => self.for_each_file(run, Part::Facts)?,
            Part::ChangesOfRun(run) => self.for_each_file(run, Part::Changes)?,
            Part::Facts(key) => self.fact_rows(key)?,
            Part::Changes(key) => self.change_rows(key)?,
        })
    }

    /// An inspector answers in milliseconds or seconds, and SQLite looks at the clock only between
    /// rows.
    fn check_time(&self, part: &Part) -> Result<()> {
        match (part, self.deadline) {
            (Part::Facts(_) | Part::Changes(_), Some((end, time))) if Instant::now() > end => {
                Err(Error::TooLong(time))
            }
            _ => Ok(()),
        }
    }

    /// Replaces a part by one for each regular file of the run.
    fn for_each_file(&mut self, run: RunKey, part: fn(EntityKey) -> Part) -> Result<VecDeque<Row>> {
        let files = self.store.entities(run)?.into_iter();
        let files = files.filter(|one| one.kind == EntityKind::File && one.ident.is_some());
        for one in files.rev() {
            self.parts.push_front(part(EntityKey::new(run, one.id)));
        }
        Ok(VecDeque::new())
    }

    /// Replaces a part by one for each process of the run.
    fn for_each_process(
        &mut self,
        run: RunKey,
        part: fn(ActivityKey) -> Part,
    ) -> Result<VecDeque<Row>> {
        for one in self.store.activities(run)?.into_iter().rev() {
            self.parts.push_front(part(ActivityKey::new(run, one.id)));
        }
        Ok(VecDeque::new())
    }

    /// The id of a run, once for all of its rows.
    fn run(&mut self, key: RunKey) -> Result<Cell> {
        let id = match &self.run {
            Some((known, id)) if *known == key => id.clone(),
            _ => {
                let id: Rc<str> = self.store.run_id(key)?.unwrap_or_default().into();
                self.run = Some((key, id.clone()));
                id
            }
        };
        Ok(Cell::Text(id))
    }

    fn edges_of_file(&mut self, file: EntityKey) -> Result<VecDeque<Row>> {
        let mut rows = VecDeque::new();
        for (activity, _) in self.store.touching(file)? {
            let edges = self
                .store
                .stream(ActivityKey::new(file.run(), activity))?
                .edges;
            for edge in edges.iter().filter(|edge| edge.entity == file.local()) {
                rows.push_back(self.edge_row(file.run(), edge)?);
            }
        }
        Ok(rows)
    }

    fn connection_rows(&mut self, key: RunKey) -> Result<VecDeque<Row>> {
        let ends = backstory_query::connection_ends(self.store, key).map_err(Error::query)?;
        let watched = backstory_query::watched_ends(self.store, key).map_err(Error::query)?;
        let mut rows = VecDeque::new();
        for one in &watched {
            let entities = (Some(one.requests), one.replies);
            rows.push_back(self.connection_row(key, &one.end, entities)?);
        }
        if ends.is_empty() {
            return Ok(rows);
        }
        let sockets = self.store.entities(key)?.into_iter();
        let sockets = sockets.filter(|one| one.kind == EntityKind::Socket);
        let ids: HashMap<Bytes, EntityId> = sockets.map(|one| (one.path, one.id)).collect();
        for end in &ends {
            let reply = [&end.name, REPLY].concat();
            let id = |name: &[u8]| ids.get(name).copied();
            let entities = (id(&end.name), id(&reply));
            rows.push_back(self.connection_row(key, end, entities)?);
        }
        Ok(rows)
    }

    fn peer_rows(&mut self, key: RunKey) -> Result<VecDeque<Row>> {
        let Some(id) = self.store.run_id(key)? else {
            return Ok(VecDeque::new());
        };
        let peers = backstory_query::peers(self.store, &id).map_err(Error::query)?;
        peers.iter().map(|one| self.peer_row(key, one)).collect()
    }

    fn step_rows(&mut self, key: RunKey) -> Result<VecDeque<Row>> {
        let Some(id) = self.store.run_id(key)? else {
            return Ok(VecDeque::new());
        };
        let recording = Recording::load(self.store, &id).map_err(Error::workflow)?;
        let commands = RunCommands::of(&recording, &Globs::default());
        let run = self.run(key)?;
        let steps = workflow_of(&[&commands], None).steps.into_iter();
        let row = |step: backstory_workflow::steps::Step| {
            let lines: Vec<String> = step.lines.iter().map(|line| line.command()).collect();
            vec![
                Cell::text(&step.name),
                run.clone(),
                Cell::text(&lines.join("\n")),
                Cell::of(step.lines.first(), |line| Cell::Bytes(line.cwd.clone())),
                Cell::Time(step.start),
                Cell::Time(step.end),
                Cell::Paths(step.inputs),
                Cell::Paths(step.outputs),
            ]
        };
        Ok(steps.map(row).collect())
    }
}

/// The part with a key, if the store has it. A number that a user typed may name nothing.
fn key_part(source: &Source, view: &str, column: &str, key: i64) -> Result<VecDeque<Part>> {
    let (process, file) = (ActivityKey(key as u64), EntityKey(key as u64));
    let (processes, files) = source.counts(process.run())?;
    let is_process = (process.local().0 as usize) < processes;
    let is_file = (file.local().0 as usize) < files;
    let part = match (view, column) {
        ("processes", _) if is_process => Some(Part::Process(process)),
        ("files", _) if is_file => Some(Part::File(file)),
        ("edges", "process") if is_process => Some(Part::EdgesOfProcess(process)),
        ("facts", _) if is_file => Some(Part::Facts(file)),
        ("changes", _) if is_file => Some(Part::Changes(file)),
        ("edges", "file") if is_file => Some(Part::EdgesOfFile(file)),
        _ => None,
    };
    Ok(part.into_iter().collect())
}
