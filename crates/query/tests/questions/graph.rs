//! Builds the graph of one run in a few lines.

use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};
use std::path::Path;

use backstory_eventlog::event::{Bytes, Via};
use backstory_eventlog::run::{Machine, Modes, RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::*;
use backstory_query::answer::{Lineage, Node};
use backstory_store::{Error, Home, MemoryStore, SqliteStore, Store};

/// Runs a check on every kind of store.
pub fn every_store(check: impl Fn(&mut dyn Store)) {
    check(&mut MemoryStore::default());
    let tmp = tempfile::tempdir().unwrap();
    check(&mut SqliteStore::open(&Home::open(tmp.path()).unwrap()).unwrap());
}

pub fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

pub fn ident(ino: u64, mtime: i64) -> Ident {
    Ident {
        dev: 99,
        ino,
        size: 10,
        mtime,
        ctime: mtime,
        birth: 1,
        mode: 0o100644,
        nlink: 1,
    }
}

/// A run to be appended.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub activities: Vec<Activity>,
    pub entities: Vec<Entity>,
    pub edges: Vec<Edge>,
    pub informs: Vec<Inform>,
    pub derived: Vec<Derived>,
    /// Extended records: an activity, a time, a kind and a payload.
    pub extended: Vec<(ActivityId, i64, &'static str, Vec<u8>)>,
}

impl Graph {
    /// An activity of the process `pid`, forked from `parent` at `start`. With the parent's pid, it
    /// is the next epoch of that process.
    pub fn activity(
        &mut self,
        parent: Option<ActivityId>,
        pid: u32,
        program: &str,
        start: i64,
    ) -> ActivityId {
        let id = ActivityId(self.activities.len() as u32);
        if let Some(from) = parent {
            let same = self.activities[from.0 as usize].pid == pid;
            let why = if same { Informed::Exec } else { Informed::Fork };
            self.informs.push(Inform {
                from,
                to: id,
                why,
                time: start,
            });
        }
        self.activities.push(Activity {
            id,
            parent,
            pid,
            epoch: 1,
            exec_path: Some(bytes(program)),
            argv: vec![bytes(program)],
            env_set: Vec::new(),
            env_unset: Vec::new(),
            cwd: bytes("/"),
            interval: Interval {
                start,
                end: start + 1000,
            },
            exit: Some(0),
            signal: None,
            execed: false,
            lookups_known: true,
            via: Via::Library,
        });
        id
    }

    pub fn entity(
        &mut self,
        kind: EntityKind,
        path: &str,
        version: u32,
        ident: Option<Ident>,
    ) -> EntityId {
        let id = EntityId(self.entities.len() as u32);
        let path = bytes(path);
        self.entities.push(Entity {
            id,
            kind,
            path,
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous: None,
            ident,
            last: true,
        });
        id
    }

    pub fn file(&mut self, path: &str, version: u32, ident: Option<Ident>) -> EntityId {
        self.entity(EntityKind::File, path, version, ident)
    }

    pub fn edge(
        &mut self,
        activity: ActivityId,
        entity: EntityId,
        relation: Relation,
        start: i64,
        end: i64,
    ) {
        let (interval, certainty) = (Interval { start, end }, Certainty::Seen);
        self.edges.push(Edge {
            activity,
            entity,
            relation,
            interval,
            certainty,
            via: Via::Library,
        });
    }

    pub fn derived(&mut self, activity: ActivityId, from: EntityId, entity: EntityId, time: i64) {
        self.derived.push(Derived {
            entity,
            from,
            activity,
            time,
        });
    }

    /// Makes the last edge only possible.
    pub fn only_possible(&mut self) {
        self.edges.last_mut().unwrap().certainty = Certainty::Possible;
    }

    pub fn put(&self, sink: &mut dyn Sink<Error = Error>) -> Result<(), Error> {
        self.activities.iter().try_for_each(|a| sink.activity(a))?;
        self.entities.iter().try_for_each(|e| sink.entity(e))?;
        self.edges.iter().try_for_each(|e| sink.edge(e))?;
        self.informs.iter().try_for_each(|i| sink.inform(i))?;
        self.derived.iter().try_for_each(|d| sink.derived(d))?;
        let mut extended = self.extended.iter();
        extended.try_for_each(|(activity, time, kind, payload)| {
            sink.extended(*activity, *time, kind.as_bytes(), payload)
        })
    }

    pub fn append(&self, store: &mut dyn Store, id: &str, started: i64) {
        self.append_as(store, &header(id, started));
    }

    pub fn append_as(&self, store: &mut dyn Store, header: &RunHeader) {
        self.append_until(store, header, &end());
    }

    pub fn append_until(&self, store: &mut dyn Store, header: &RunHeader, end: &RunEnd) {
        store
            .append(header, end, 5, &mut |sink| self.put(sink))
            .unwrap();
    }
}

pub fn header(id: &str, started: i64) -> RunHeader {
    let modes = Modes {
        guard: Some(GuardMode::On),
        lookups: Some(LookupsMode::Library),
        io_uring: Some(IoUringMode::Decode),
        suppress: Some(SuppressMode::On),
        contents: Some(ContentsMode::Off),
        self_contained: false,
        durability: None,
        deep: None,
        rows: None,
        byte_engine: false,
        fixed_addresses: false,
    };
    RunHeader {
        id: id.into(),
        name: None,
        repeats: None,
        source: None,
        database: None,
        imported: None,
        line: None,
        ssh_connection: None,
        job_rank: None,
        command: vec![b"make".to_vec()],
        environment: vec![b"A=1".to_vec()],
        cwd: b"/w".to_vec(),
        descriptors: Vec::new(),
        descriptor_flags: Vec::new(),
        descriptor_files: Vec::new(),
        launcher_pid: 1,
        boot_id: "boot".into(),
        machine: Machine::default(),
        uid: 1000,
        modes,
        started,
        since_boot: 0,
        arena: None,
        version: "0".into(),
    }
}

pub fn end() -> RunEnd {
    RunEnd {
        exit: Some(0),
        command_ended: 90,
        ended: 100,
        ..RunEnd::default()
    }
}

/// A path in no real file system.
pub fn nowhere(name: &str) -> String {
    format!("/nowhere-at-all/{name}")
}

/// Paths of entities and programs of activities, sorted.
pub fn names(lineage: &Lineage) -> Vec<String> {
    let mut names: Vec<String> = lineage.nodes.iter().map(name).collect();
    names.sort();
    names
}

/// The last component of a path, the name of a program.
pub fn name(node: &Node) -> String {
    let path = match node {
        Node::Entity { path, .. } => path.clone(),
        Node::Activity { exec_path, .. } => exec_path.clone().unwrap(),
    };
    let path = String::from_utf8(path.into()).unwrap();
    Path::new(&path)
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}
