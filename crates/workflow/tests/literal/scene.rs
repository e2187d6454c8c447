//! A literal run, built in a few lines: activities, files and edges as the graph has them.
//!
//! In: calls that name programs, paths and times. Out: a store that holds the run, and a contents
//! directory that holds its files.
//!
//! Nothing of an ordinary scene exists on the machine. A scene in a directory ([`Scene::inside`])
//! writes its files there, so that their recorded identities are those of the disk. It panics
//! before it would write to another directory. Tests of several crates include this file.
#![allow(dead_code)]

use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use backstory_contents::{Contents, digest_of};
use backstory_eventlog::event::{Bytes, Via};
use backstory_eventlog::run::{Machine, Modes, RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::*;
use backstory_graph::standard::{self, StandardEnd};
use backstory_store::facts::{
    Availability, DirectorySnapshot, Fact, JournalPosition, JournalRecord, Listed, Package,
    SnapshotEntry,
};
use backstory_store::{MemoryStore, Store};

/// The moment at which every literal run starts: 2023-11-14 22:13:20 UTC.
pub const START: i64 = 1_700_000_000_000_000_000;

/// One run.
pub struct Scene {
    pub header: RunHeader,
    pub activities: Vec<Activity>,
    pub entities: Vec<Entity>,
    pub edges: Vec<Edge>,
    pub informs: Vec<Inform>,
    pub derived: Vec<Derived>,
    pub extended: Vec<(ActivityId, Vec<u8>, Vec<u8>)>,
    pub learned: Vec<JournalRecord>,
    pub places: Vec<SnapshotEntry>,
    /// The moment at which the run starts.
    start: i64,
    /// The directory of the machine to which the scene's files are written.
    directory: Option<PathBuf>,
    /// The indexer has stored what the files held.
    pub stored: bool,
    contents: Vec<Vec<u8>>,
}

pub fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

/// Writes a file below `directory`, and the directories above it.
fn write_below(directory: &Path, path: &Path, content: &str) {
    let below = path.strip_prefix(directory).unwrap_or(Path::new("/"));
    let plain = |part: Component| matches!(part, Component::Normal(_));
    assert!(
        below.components().all(plain),
        "{} is not below {}: the scene does not write it",
        path.display(),
        directory.display()
    );
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The identity of a file of the machine.
fn present(path: &Path) -> Ident {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let all = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ident::from(&statx(CWD, path, AtFlags::empty(), all).unwrap())
}

impl Scene {
    pub fn new(id: &str, command: &[&str]) -> Scene {
        let modes = Modes {
            guard: Some(GuardMode::On),
            lookups: Some(LookupsMode::Library),
            io_uring: Some(IoUringMode::Decode),
            suppress: Some(SuppressMode::On),
            contents: Some(ContentsMode::Lazy),
            self_contained: false,
            durability: None,
            deep: None,
            rows: None,
            byte_engine: false,
            fixed_addresses: false,
        };
        Scene {
            header: RunHeader {
                id: id.into(),
                name: None,
                repeats: None,
                source: None,
                database: None,
                imported: None,
                line: None,
                ssh_connection: None,
                job_rank: None,
                command: command
                    .iter()
                    .map(|word| word.as_bytes().to_vec())
                    .collect(),
                environment: vec![b"HOME=/home/u".to_vec(), b"PATH=/usr/bin".to_vec()],
                cwd: b"/w".to_vec(),
                descriptors: Vec::new(),
                descriptor_flags: Vec::new(),
                descriptor_files: Vec::new(),
                launcher_pid: 1,
                boot_id: "boot".into(),
                machine: Machine {
                    kernel: "6.1.0".into(),
                    distribution: "Debian GNU/Linux 12 (bookworm)".into(),
                    host: "bench".into(),
                    cpu: "a processor".into(),
                },
                uid: 1000,
                modes,
                started: START,
                since_boot: 0,
                arena: None,
                version: "0".into(),
            },
            activities: Vec::new(),
            entities: Vec::new(),
            edges: Vec::new(),
            informs: Vec::new(),
            derived: Vec::new(),
            extended: Vec::new(),
            learned: Vec::new(),
            places: Vec::new(),
            start: START,
            directory: None,
            stored: true,
            contents: Vec::new(),
        }
    }

    /// A run of now in a directory of the machine, to which its files are written.
    pub fn inside(directory: &Path, id: &str, command: &[&str]) -> Scene {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let mut scene = Scene::new(id, command);
        scene.start = now.as_nanos() as i64;
        scene.header.started = scene.start;
        scene.header.cwd = directory.as_os_str().as_bytes().to_vec();
        scene.directory = Some(directory.to_owned());
        scene
    }

    /// Milliseconds after the run's start.
    fn interval(&self, start: i64, end: i64) -> Interval {
        Interval {
            start: self.start + start * 1_000_000,
            end: self.start + end * 1_000_000,
        }
    }

    /// A program that `parent` forked and that ran from `start` to `end` (milliseconds after the
    /// run's start).
    pub fn program(
        &mut self,
        parent: Option<ActivityId>,
        program: &str,
        argv: &[&str],
        (start, end): (i64, i64),
    ) -> ActivityId {
        let id = ActivityId(self.activities.len() as u32);
        if let Some(from) = parent {
            self.informs.push(Inform {
                from,
                to: id,
                why: Informed::Fork,
                time: self.interval(start, end).start,
            });
        }
        self.activities.push(Activity {
            id,
            parent,
            pid: 100 + id.0,
            epoch: 1,
            exec_path: Some(bytes(program)),
            argv: argv.iter().map(|word| bytes(word)).collect(),
            env_set: Vec::new(),
            env_unset: Vec::new(),
            cwd: self.header.cwd.as_slice().into(),
            interval: self.interval(start, end),
            exit: Some(0),
            signal: None,
            execed: false,
            lookups_known: true,
            via: Via::Library,
        });
        let file = self.before(program, &format!("the program {program}\n"), 0o100_755);
        self.edge(id, file, Relation::Execute, (start, start));
        id
    }

    pub fn entity(&mut self, kind: EntityKind, path: &str, version: u32) -> EntityId {
        let id = EntityId(self.entities.len() as u32);
        self.entities.push(Entity {
            id,
            kind,
            path: bytes(path),
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous: None,
            ident: None,
            last: true,
        });
        id
    }

    /// A file as it was before the run; the same entity each time.
    pub fn before(&mut self, path: &str, content: &str, mode: u32) -> EntityId {
        let path = bytes(path);
        let found = self
            .entities
            .iter()
            .find(|entity| entity.path == path && entity.version == 0);
        match found {
            Some(entity) => entity.id,
            None => {
                let text = String::from_utf8_lossy(&path).into_owned();
                self.version(&text, 0, content, mode)
            }
        }
    }

    /// A version of a file with its content.
    pub fn version(&mut self, path: &str, version: u32, content: &str, mode: u32) -> EntityId {
        let id = self.entity(EntityKind::File, path, version);
        let ident = Ident {
            dev: 99,
            ino: 1000 + u64::from(id.0),
            size: content.len() as i64,
            mtime: START - 1_000_000_000 + i64::from(version) * 2_000_000_000,
            ctime: START - 1_000_000_000 + i64::from(version) * 2_000_000_000,
            birth: 1,
            mode,
            nlink: 1,
        };
        let ident = match &self.directory {
            Some(directory) => {
                write_below(directory, Path::new(path), content);
                present(Path::new(path))
            }
            None => ident,
        };
        self.entities[id.0 as usize].ident = Some(ident);
        let (digest, _) = digest_of(&mut content.as_bytes()).unwrap();
        self.contents.push(content.as_bytes().to_vec());
        self.learned.push(JournalRecord::Fact(Fact {
            ident,
            digest: Some(digest),
            availability: Availability::Stored,
        }));
        id
    }

    /// A file of the machine from before the run, as it is now. Nothing is written.
    pub fn unchanged(&mut self, path: &str) -> EntityId {
        let id = self.entity(EntityKind::File, path, 0);
        self.entities[id.0 as usize].ident = Some(present(Path::new(path)));
        id
    }

    /// A file of the machine from before the run that has another content now, or that is gone.
    /// Nothing is written.
    pub fn changed_since(&mut self, path: &str) -> EntityId {
        let id = self.entity(EntityKind::File, path, 0);
        self.entities[id.0 as usize].ident = Some(Ident {
            dev: 99,
            ino: 1000 + u64::from(id.0),
            size: 1,
            mtime: START,
            ctime: START,
            birth: 1,
            mode: 0o100_644,
            nlink: 1,
        });
        id
    }

    /// The last content is not stored, for this reason.
    pub fn missing(&mut self, why: &str) {
        if let Some(JournalRecord::Fact(fact)) = self.learned.last_mut() {
            fact.availability = Availability::Missing(why.into());
        }
    }

    /// The last learned content belongs to a package as well.
    pub fn owned_by(&mut self, manager: &str, name: &str, version: &str) {
        if let Some(JournalRecord::Fact(fact)) = self.learned.last_mut() {
            fact.availability = Availability::StoredPackage(Package {
                manager: manager.into(),
                name: name.into(),
                version: version.into(),
                verified: true,
            });
        }
    }

    pub fn edge(
        &mut self,
        activity: ActivityId,
        entity: EntityId,
        relation: Relation,
        (start, end): (i64, i64),
    ) {
        self.edges.push(Edge {
            activity,
            entity,
            relation,
            interval: self.interval(start, end),
            certainty: Certainty::Seen,
            via: Via::Library,
        });
    }

    pub fn standard(&mut self, activity: ActivityId, ends: [Option<EntityId>; 3]) {
        let standard = ends.map(|end| {
            end.map(|entity| StandardEnd {
                entity,
                keeps: false,
            })
        });
        self.extended.push((
            activity,
            standard::KIND.to_vec(),
            standard::encode(&standard.into()),
        ));
    }

    /// A directory on the way to a file.
    pub fn directory(&mut self, path: &str) {
        self.places.push(SnapshotEntry {
            path: bytes(path),
            mode: 0o040_755,
            target: None,
            mtime: 0,
            listing: None,
            looked: Vec::new(),
        });
    }

    /// A directory that the run listed, with the names of its files at the end of the run.
    pub fn listing(&mut self, path: &str, names: &[&str]) {
        self.directory(path);
        let listed = names.iter().map(|name| Listed {
            name: bytes(name),
            kind: 0o100_000,
            shared: 0,
        });
        self.places.last_mut().unwrap().listing = Some(listed.collect());
    }

    /// A store with this run, whose contents lie in `dir`.
    pub fn store(&self, dir: &Path) -> MemoryStore {
        let mut store = MemoryStore::default();
        self.append(&mut store, dir);
        store
    }

    /// Appends the run to a store whose contents lie in `dir`.
    pub fn append(&self, store: &mut dyn Store, dir: &Path) {
        let end = RunEnd {
            exit: Some(0),
            command_ended: self.start + 90_000_000,
            ended: self.start + 100_000_000,
            ..RunEnd::default()
        };
        store
            .append(&self.header, &end, 5, &mut |sink| {
                self.activities.iter().try_for_each(|a| sink.activity(a))?;
                self.entities.iter().try_for_each(|e| sink.entity(e))?;
                self.edges.iter().try_for_each(|e| sink.edge(e))?;
                self.informs.iter().try_for_each(|i| sink.inform(i))?;
                self.derived.iter().try_for_each(|d| sink.derived(d))?;
                self.extended
                    .iter()
                    .try_for_each(|(activity, kind, payload)| {
                        sink.extended(*activity, START, kind, payload)
                    })
            })
            .unwrap();
        if !self.stored {
            return;
        }
        let mut learned = self.learned.clone();
        learned.push(JournalRecord::Run(DirectorySnapshot {
            run: self.header.id.clone(),
            entries: self.places.clone(),
        }));
        store
            .learn(&learned, JournalPosition::default(), false)
            .unwrap();
        let contents = Contents::create(dir).unwrap();
        for content in &self.contents {
            contents.put(&mut content.as_slice()).unwrap();
        }
        contents.sync().unwrap();
    }
}
