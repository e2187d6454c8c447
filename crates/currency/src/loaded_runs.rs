//! The runs of a judgement, each read once, with what the judgement looks up in them.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::lineage::generates;
use backstory_graph::model::{Entity, EntityId, EntityKind};
use backstory_query::{self as query, Globs};
use backstory_store::{RunKey, Store};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::RunCommands;

use crate::Result;
use crate::file_state::CLOCK_LAG;

/// Reads runs. Each is read once.
pub struct LoadedRuns<'s> {
    store: &'s dyn Store,
    runs: RefCell<HashMap<RunKey, Rc<LoadedRun>>>,
    undone: RefCell<HashMap<RunKey, bool>>,
}

impl<'s> LoadedRuns<'s> {
    /// No run has been read yet.
    pub fn new(store: &'s dyn Store) -> LoadedRuns<'s> {
        LoadedRuns {
            store,
            runs: RefCell::default(),
            undone: RefCell::default(),
        }
    }

    /// True if the outputs of a run were put back: the file that is there is an older version.
    pub fn is_undone(&self, key: RunKey) -> Result<bool> {
        if let Some(undone) = self.undone.borrow().get(&key) {
            return Ok(*undone);
        }
        let undone = match self.store.run_by_key(key)? {
            Some(record) => query::is_undone(self.store, &record)?,
            None => false,
        };
        self.undone.borrow_mut().insert(key, undone);
        Ok(undone)
    }

    /// The run with this number.
    pub fn get(&self, key: RunKey) -> Result<Rc<LoadedRun>> {
        if let Some(run) = self.runs.borrow().get(&key) {
            return Ok(run.clone());
        }
        let run = Rc::new(LoadedRun::load(self.store, key)?);
        self.runs.borrow_mut().insert(key, run.clone());
        Ok(run)
    }
}

/// One run.
pub struct LoadedRun {
    /// The run itself.
    pub recording: Recording,
    /// The end of the run and [`CLOCK_LAG`]: the file system's clock may lag behind.
    pub ended: Time,
    /// The names in the directories that the run listed, at its end.
    pub listings: HashMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// Paths of the command's standard output and errors, if they led to files that were empty when
    /// the command began: the caller wrote `> FILE`. The descriptor's number comes with each.
    pub redirected: Vec<(u32, Bytes)>,
    commands: OnceCell<RunCommands>,
    makers: HashMap<EntityId, Vec<(usize, Time)>>,
    origins: HashMap<EntityId, Vec<EntityId>>,
    left: HashMap<Bytes, EntityId>,
    before: OnceCell<HashMap<Bytes, EntityId>>,
    users: OnceCell<HashMap<EntityId, Vec<usize>>>,
}

impl LoadedRun {
    fn load(store: &dyn Store, key: RunKey) -> Result<LoadedRun> {
        let id = store.run_id(key)?;
        let id = id.ok_or_else(|| query::Error::NoRun(format!("number {}", key.0)))?;
        let recording = Recording::load(store, &id)?;
        let mut makers: HashMap<EntityId, Vec<(usize, Time)>> = HashMap::new();
        for (at, edges) in recording.edges.iter().enumerate() {
            for edge in edges.iter().filter(|edge| generates(edge.relation)) {
                let makers = makers.entry(edge.entity).or_default();
                makers.push((at, edge.interval.start));
            }
        }
        let mut origins: HashMap<EntityId, Vec<EntityId>> = HashMap::new();
        for derived in &recording.derived {
            origins
                .entry(derived.entity)
                .or_default()
                .push(derived.from);
        }
        let summary = &recording.details.summary;
        Ok(LoadedRun {
            ended: summary.ended.unwrap_or(summary.started) + CLOCK_LAG,
            listings: listings(store, &id)?,
            redirected: redirected(store, &recording)?,
            commands: OnceCell::new(),
            left: left(&recording.entities),
            before: OnceCell::new(),
            users: OnceCell::new(),
            makers,
            origins,
            recording,
        })
    }

    /// The run's commands.
    pub fn commands(&self) -> Result<&RunCommands> {
        if let Some(commands) = self.commands.get() {
            return Ok(commands);
        }
        let every = Globs::new::<String>(&[])?;
        Ok(self
            .commands
            .get_or_init(|| RunCommands::of(&self.recording, &every)))
    }

    /// The activities that made a version, each with the begin of the operation.
    pub fn makers(&self, entity: EntityId) -> &[(usize, Time)] {
        self.makers.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// The activities that touched a version.
    pub fn users(&self, entity: EntityId) -> &[usize] {
        let users = self.users.get_or_init(|| {
            let mut users: HashMap<EntityId, Vec<usize>> = HashMap::new();
            for (at, edges) in self.recording.edges.iter().enumerate() {
                for edge in edges {
                    users.entry(edge.entity).or_default().push(at);
                }
            }
            users
        });
        users.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// The versions that the kernel made this version from.
    pub fn origins(&self, entity: EntityId) -> &[EntityId] {
        self.origins.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// The newest version that the run made of the file at a path. The file system held it at the
    /// end of the run if it is marked as the last one; otherwise the run removed it.
    pub fn left(&self, path: &[u8]) -> Option<&Entity> {
        self.left.get(path).map(|&id| self.recording.entity(id))
    }

    /// True if the caller redirected the command's output to this file.
    pub fn is_redirected(&self, path: &[u8]) -> bool {
        self.redirected.iter().any(|(_, file)| **file == *path)
    }

    /// The newest version from before the run of the file at a path, if the run named it.
    pub fn before(&self, path: &[u8]) -> Option<&Entity> {
        let by_path = self.before.get_or_init(|| {
            let entities = self.recording.entities.iter();
            let before = entities.filter(|entity| entity.version == 0);
            let before = before.filter(|entity| entity.kind == EntityKind::File);
            before
                .map(|entity| (entity.path.clone(), entity.id))
                .collect()
        });
        by_path.get(path).map(|&id| self.recording.entity(id))
    }

    /// True if the run itself gave the version its content.
    pub fn is_made(&self, entity: &Entity) -> bool {
        entity.version > 0 || !self.makers(entity.id).is_empty()
    }
}

fn left(entities: &[Entity]) -> HashMap<Bytes, EntityId> {
    let mut left: HashMap<Bytes, &Entity> = HashMap::new();
    for entity in entities.iter().filter(|entity| entity.version > 0) {
        let one = left.entry(entity.path.clone()).or_insert(entity);
        if (entity.last, entity.version) > (one.last, one.version) {
            *one = entity;
        }
    }
    let ids = left.into_iter().map(|(path, entity)| (path, entity.id));
    ids.collect()
}

fn listings(store: &dyn Store, run: &str) -> Result<HashMap<Vec<u8>, BTreeSet<Vec<u8>>>> {
    let snapshot = store.directory_snapshot(run)?;
    let entries = snapshot
        .map(|snapshot| snapshot.entries)
        .unwrap_or_default();
    let known = entries.into_iter().filter_map(|entry| {
        let names = entry.listing?.into_iter().map(|entry| entry.name.to_vec());
        Some((entry.path.to_vec(), names.collect()))
    });
    Ok(known.collect())
}

fn redirected(store: &dyn Store, recording: &Recording) -> Result<Vec<(u32, Bytes)>> {
    let Some(record) = store.run_by_key(recording.key)? else {
        return Ok(Vec::new());
    };
    let header = record.header;
    let was_empty = |number: u32| {
        let mut all = header.descriptors.iter().zip(&header.descriptor_files);
        all.any(|((fd, _), file)| {
            i64::from(*fd) == i64::from(number) && file.is_some_and(|file| file.size == 0)
        })
    };
    let root = recording.roots().next();
    let ends = root.map(|root| recording.standard[root].all());
    let ends = (0..).zip(ends.into_iter().flatten()).skip(1);
    let files = ends.filter_map(|(number, end)| {
        let entity = recording.entity(end?.entity);
        let is_file = entity.kind == EntityKind::File;
        (is_file && entity.path.starts_with(b"/") && was_empty(number))
            .then(|| (number, entity.path.clone()))
    });
    Ok(files.collect())
}
