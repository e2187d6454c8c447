//! Made-up builds of C projects, after the pattern of real ones.
//!
//! Every compiler loads the same libraries and reads some of the same headers. It looks for headers
//! in vain in other directories, and writes an object that the archiver reads.

use std::time::{Duration, Instant};

use backstory_eventlog::event::Via;
use backstory_eventlog::run::{Machine, Modes, RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::*;
use backstory_store::{Error, GraphStore, SqliteStore};
use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};

use crate::report::processor_time;

pub const PROJECTS: u64 = 10;
pub const LIBRARIES: u64 = 15;
pub const UNITS: u64 = 10;
const SECOND: i64 = 1_000_000_000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Mostly small, sometimes large, like the gaps between system calls.
    fn gap(&mut self) -> i64 {
        let scale = 1 << (9 + self.next() % 8);
        (self.next() % scale) as i64 + 300
    }
}

/// One build of a project, emitted like a fold: edges when an activity ends, entities when first
/// named.
struct Build<'a> {
    sink: &'a mut dyn Sink<Error = Error>,
    random: Random,
    project: u64,
    now: i64,
    activities: u32,
    entities: u32,
    known: std::collections::HashMap<String, EntityId>,
    edges: u64,
}

impl Build<'_> {
    fn activity(&mut self, parent: Option<ActivityId>, argv: &[&str]) -> ActivityId {
        let id = ActivityId(self.activities);
        self.activities += 1;
        self.now += 400_000;
        let activity = Activity {
            id,
            parent,
            pid: 1000 + id.0,
            epoch: 1,
            exec_path: Some(argv[0].as_bytes().into()),
            argv: argv.iter().map(|a| a.as_bytes().into()).collect(),
            env_set: Vec::new(),
            env_unset: Vec::new(),
            cwd: format!("/home/user/src/project{}", self.project)
                .into_bytes()
                .into(),
            interval: Interval {
                start: self.now,
                end: self.now + 50_000_000,
            },
            exit: Some(0),
            signal: None,
            execed: false,
            lookups_known: true,
            via: Via::Library,
        };
        self.sink.activity(&activity).unwrap();
        if let Some(from) = parent {
            let inform = Inform {
                from,
                to: id,
                why: Informed::Fork,
                time: self.now,
            };
            self.sink.inform(&inform).unwrap();
            self.edges += 1;
        }
        id
    }

    fn entity(
        &mut self,
        path: &str,
        kind: EntityKind,
        version: u32,
        ident: Option<Ident>,
    ) -> EntityId {
        if let Some(id) = self.known.get(path) {
            return *id;
        }
        let id = EntityId(self.entities);
        self.entities += 1;
        let bytes = path.as_bytes().into();
        let entity = Entity {
            id,
            kind,
            path: bytes,
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous: None,
            ident,
            last: version > 0,
        };
        self.sink.entity(&entity).unwrap();
        self.known.insert(path.to_owned(), id);
        id
    }

    fn edge(&mut self, activity: ActivityId, entity: EntityId, relation: Relation) {
        self.now += self.random.gap();
        let lasts = if matches!(relation, Relation::Read | Relation::Write) {
            self.random.gap()
        } else {
            0
        };
        let interval = Interval {
            start: self.now,
            end: self.now + lasts,
        };
        let (certainty, via) = (Certainty::Seen, Via::Library);
        self.sink
            .edge(&Edge {
                activity,
                entity,
                relation,
                interval,
                certainty,
                via,
            })
            .unwrap();
        self.edges += 1;
    }

    /// A file of the system or of the sources: the same in every build.
    fn old(&mut self, path: &str) -> EntityId {
        if let Some(id) = self.known.get(path) {
            return *id;
        }
        let hash = path.bytes().fold(7u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        let unpacked = 1_700_000_000 * SECOND + (hash % 1_000_000_007) as i64;
        let ident = Ident {
            dev: 2049,
            ino: 1_000_000 + hash % 300_000,
            size: (hash >> 20) as i64 % 60_000,
            mtime: 1_690_000_000 * SECOND + (hash % 9) as i64 * 1000 * SECOND,
            ctime: unpacked,
            birth: unpacked - 4_000,
            mode: 0o100644,
            nlink: 1,
        };
        self.entity(path, EntityKind::File, 0, Some(ident))
    }

    fn made(&mut self, path: &str) -> EntityId {
        let ident = Ident {
            dev: 2049,
            ino: 5_000_000 + self.random.next() % 40_000,
            size: (self.random.next() % 100_000) as i64,
            mtime: self.now,
            ctime: self.now + 3_000,
            birth: self.now - 2_000_000,
            mode: 0o100644,
            nlink: 1,
        };
        self.entity(path, EntityKind::File, 1, Some(ident))
    }

    fn missing(&mut self, path: &str) -> EntityId {
        self.entity(path, EntityKind::Missing, 0, None)
    }

    /// The first operations of every program.
    fn start(&mut self, activity: ActivityId, program: &str) {
        let program = self.old(program);
        self.edge(activity, program, Relation::Execute);
        for library in [
            "ld-linux-x86-64.so.2",
            "libc.so.6",
            "libm.so.6",
            "libz.so.1",
            "libgmp.so.10",
            "libzstd.so.1",
        ] {
            let library = self.old(&format!("/usr/lib/x86_64-linux-gnu/{library}"));
            self.edge(activity, library, Relation::Execute);
        }
        for path in ["/etc/ld.so.cache", "/usr/lib/locale/locale-archive"] {
            let read = self.old(path);
            self.edge(activity, read, Relation::Read);
        }
        let preload = self.missing("/etc/ld.so.preload");
        self.edge(activity, preload, Relation::Missing);
    }

    fn compile(&mut self, make: ActivityId, unit: u64) -> String {
        let root = format!("/home/user/src/project{}", self.project);
        let (source, object) = (
            format!("{root}/src/unit{unit}.c"),
            format!("{root}/build/unit{unit}.o"),
        );
        let gcc = self.activity(
            Some(make),
            &[
                "/usr/bin/gcc",
                "-O2",
                "-Wall",
                "-Iinclude",
                "-c",
                &source,
                "-o",
                &object,
            ],
        );
        self.start(gcc, "/usr/bin/gcc");
        let text = format!("/tmp/cc{:06x}.s", self.random.next() & 0xff_ffff);
        let cc1 = self.activity(
            Some(gcc),
            &[
                "/usr/libexec/gcc/x86_64-linux-gnu/12/cc1",
                "-quiet",
                "-O2",
                &source,
                "-o",
                &text,
            ],
        );
        self.start(cc1, "/usr/libexec/gcc/x86_64-linux-gnu/12/cc1");
        let read = self.old(&source);
        self.edge(cc1, read, Relation::Read);
        for _ in 0..110 {
            let header = self.random.next() % 400;
            let dir = ["", "sys/", "bits/", "linux/"][header as usize % 4];
            let name = format!("header{header}.h");
            if header.is_multiple_of(3) {
                let missed = self.missing(&format!("{root}/include/{dir}{name}"));
                self.edge(cc1, missed, Relation::Missing);
                let missed = self.missing(&format!(
                    "/usr/lib/gcc/x86_64-linux-gnu/12/include/{dir}{name}"
                ));
                self.edge(cc1, missed, Relation::Missing);
            }
            let header = self.old(&format!("/usr/include/{dir}{name}"));
            self.edge(cc1, header, Relation::Read);
            if self.random.next().is_multiple_of(3) {
                self.edge(cc1, header, Relation::Stat);
            }
        }
        let out = self.made(&text);
        self.edge(cc1, out, Relation::Write);
        let assembler = self.activity(Some(gcc), &["/usr/bin/as", "--64", "-o", &object, &text]);
        self.start(assembler, "/usr/bin/as");
        self.edge(assembler, out, Relation::Read);
        let object_file = self.made(&object);
        self.edge(assembler, object_file, Relation::Write);
        self.edge(gcc, out, Relation::Delete);
        object
    }

    fn run(&mut self) {
        let root = format!("/home/user/src/project{}", self.project);
        let make = self.activity(None, &["/usr/bin/make", "-j4"]);
        self.start(make, "/usr/bin/make");
        let makefile = self.old(&format!("{root}/Makefile"));
        self.edge(make, makefile, Relation::Read);
        for library in 0..LIBRARIES {
            let objects: Vec<_> = (0..UNITS)
                .map(|unit| self.compile(make, library * UNITS + unit))
                .collect();
            let archive = format!("{root}/build/lib{library}.a");
            let ar = self.activity(Some(make), &["/usr/bin/ar", "rc", &archive]);
            self.start(ar, "/usr/bin/ar");
            for object in objects {
                let object = self.made(&object);
                self.edge(ar, object, Relation::Read);
            }
            let archive = self.made(&archive);
            self.edge(ar, archive, Relation::Write);
        }
    }
}

fn header(run: u64, started: i64) -> RunHeader {
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
        id: format!("run{run:05}"),
        name: None,
        repeats: None,
        source: None,
        database: None,
        imported: None,
        line: None,
        ssh_connection: None,
        job_rank: None,
        command: vec![b"make".to_vec()],
        environment: vec![vec![b'A'; 60]; 40],
        cwd: b"/home/user/src".to_vec(),
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

/// The cost of appending builds to a store, without making the builds up.
#[derive(Debug, Default)]
pub struct Filled {
    /// How many edges the builds have.
    pub edges: u64,
    /// Processor time of all threads.
    pub processor: Duration,
    /// Elapsed time.
    pub elapsed: Duration,
}

/// Appends builds until the store has `edges`.
pub fn fill(store: &mut dyn GraphStore, edges: u64) -> Filled {
    let (mut filled, mut run) = (Filled::default(), 0);
    while filled.edges < edges {
        let started = 1_750_000_000 * SECOND + run as i64 * 600 * SECOND;
        let end = RunEnd {
            exit: Some(0),
            ..RunEnd::default()
        };
        let build = |sink: &mut dyn Sink<Error = Error>| {
            let random = Random(0x9e37_79b9 + run * 77);
            let known = Default::default();
            let (project, now) = (run % PROJECTS, started);
            let mut build = Build {
                sink,
                random,
                project,
                now,
                activities: 0,
                entities: 0,
                known,
                edges: 0,
            };
            build.run();
            build.edges
        };
        let (clock, begun) = (processor_time(), Instant::now());
        let alone = build(&mut Nothing);
        let (alone_took, alone_elapsed) = (processor_time() - clock, begun.elapsed());
        let (clock, begun) = (processor_time(), Instant::now());
        store
            .append(&header(run, started), &end, 0, &mut |sink| {
                build(sink);
                Ok(())
            })
            .unwrap();
        filled.processor += (processor_time() - clock).saturating_sub(alone_took);
        filled.elapsed += begun.elapsed().saturating_sub(alone_elapsed);
        filled.edges += alone;
        run += 1;
    }
    filled
}

/// Appends so many runs of a small script: a shell starts `cat`, which reads one file and writes
/// another anew.
pub fn fill_small(store: &mut SqliteStore, runs: u64) {
    for run in 0..runs {
        let started = 1_750_000_000 * SECOND + run as i64 * 60 * SECOND;
        let end = RunEnd {
            exit: Some(i32::from(run % 100 == 99)),
            ..RunEnd::default()
        };
        let header = header(run, started);
        let append = store.append(&header, &end, 0, &mut |sink| {
            let mut build = Build {
                sink,
                random: Random(0x9e37_79b9 + run * 77),
                project: 0,
                now: started,
                activities: 0,
                entities: 0,
                known: Default::default(),
                edges: 0,
            };
            let shell = build.activity(None, &["/bin/sh", "-c", "cat in > out"]);
            build.start(shell, "/bin/sh");
            let cat = build.activity(Some(shell), &["/bin/cat", "in"]);
            build.start(cat, "/bin/cat");
            let read = build.old("/home/user/src/in");
            build.edge(cat, read, Relation::Read);
            let written = build.made("/home/user/src/out");
            build.edge(cat, written, Relation::Write);
            Ok(())
        });
        append.unwrap();
    }
}

struct Nothing;

impl Sink for Nothing {
    type Error = Error;
    fn activity(&mut self, _: &Activity) -> Result<(), Error> {
        Ok(())
    }
    fn entity(&mut self, _: &Entity) -> Result<(), Error> {
        Ok(())
    }
    fn edge(&mut self, _: &Edge) -> Result<(), Error> {
        Ok(())
    }
    fn inform(&mut self, _: &Inform) -> Result<(), Error> {
        Ok(())
    }
    fn derived(&mut self, _: &Derived) -> Result<(), Error> {
        Ok(())
    }
    fn extended(&mut self, _: ActivityId, _: i64, _: &[u8], _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
    fn unknown(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}
