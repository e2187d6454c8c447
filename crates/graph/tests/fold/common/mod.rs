//! Builds the events of small scenes, and prints graphs as text.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};
use std::collections::BTreeMap;

use backstory_eventlog::event::{CWD, Event, Op, Outcome, Pid, Spawn, Time, Via};
use backstory_eventlog::run::{Machine, Modes, RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::FinalState;
use backstory_graph::lineage::{Follow, GraphNode, LineageSearch};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Certainty, EntityId, Informed};

pub const RDONLY: i32 = 0;
pub const WRONLY: i32 = 1;
pub const RDWR: i32 = 2;
pub const CREAT: i32 = 0o100;
pub const EXCL: i32 = 0o200;
pub const TRUNC: i32 = 0o1000;
pub const APPEND: i32 = 0o2000;
pub const CLOEXEC: i32 = 0o2_000_000;
pub const OUT: i32 = WRONLY | CREAT | TRUNC;

/// ns between two events: far enough apart for the coarse clocks of file systems.
pub const STEP: Time = 50_000_000;
pub const START: Time = 1_700_000_000_000_000_000;

pub fn header(command: &[&str]) -> RunHeader {
    RunHeader {
        id: "00000001".into(),
        name: None,
        repeats: None,
        source: None,
        database: None,
        imported: None,
        line: None,
        ssh_connection: None,
        job_rank: None,
        command: command.iter().map(|a| a.as_bytes().to_vec()).collect(),
        environment: vec![b"PATH=/bin".to_vec()],
        cwd: b"/w".to_vec(),
        descriptors: Vec::new(),
        descriptor_flags: Vec::new(),
        descriptor_files: Vec::new(),
        launcher_pid: 1,
        boot_id: "boot".into(),
        machine: Machine::default(),
        uid: 1000,
        modes: Modes {
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
        },
        started: START,
        since_boot: 0,
        arena: None,
        version: "0".into(),
    }
}

/// The state of the file system after the run.
#[derive(Debug, Clone, Default)]
pub struct After {
    pub files: BTreeMap<Vec<u8>, Ident>,
    pub links: BTreeMap<Vec<u8>, Ident>,
    /// Texts of the links.
    pub texts: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The identity of the content that was preserved at a path during the run, and when.
    pub kept: Vec<(Vec<u8>, Time, Ident)>,
}

impl FinalState for After {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        let link = self.links.get(path).filter(|_| !follow);
        Some(link.or_else(|| self.files.get(path)).copied())
    }

    fn link_text(&self, path: &[u8]) -> Option<Box<[u8]>> {
        self.texts.get(path).map(|text| text.as_slice().into())
    }

    fn preserved(&self, path: &[u8], since: Time) -> Option<(Time, Ident)> {
        let mut kept = self.kept.iter();
        let found = kept.find(|(name, at, _)| name == path && *at >= since)?;
        Some((found.1, found.2))
    }
}

pub fn ident(ino: u64, birth: Time, changed: Time) -> Ident {
    Ident {
        dev: 1,
        ino,
        size: 1,
        mtime: changed,
        ctime: changed,
        birth,
        mode: 0o100_644,
        nlink: 1,
    }
}

/// The events of a run, 50 ms apart.
pub struct Scene {
    pub header: RunHeader,
    pub events: Vec<Event>,
    pub time: Time,
    pub after: Option<After>,
    /// The file systems' clock when the command began, or 0.
    pub quiet: Time,
}

impl Scene {
    /// Process 2 runs `command`, and its recorder has started.
    pub fn new(command: &[&str]) -> Scene {
        let mut scene = Scene {
            header: header(command),
            events: Vec::new(),
            time: START,
            after: None,
            quiet: 0,
        };
        scene.exec(2, &format!("/bin/{}", command[0]), command);
        scene.start(2, 1, false);
        scene
    }

    pub fn at(&self, steps: i64) -> Time {
        START + steps * STEP
    }

    pub fn push(&mut self, pid: Pid, outcome: Outcome, op: Op) -> &mut Event {
        self.time += STEP;
        self.events
            .push(event(self.time, pid, Via::Library, outcome, op));
        self.events.last_mut().unwrap()
    }

    pub fn kernel(&mut self, pid: Pid, outcome: Outcome, op: Op) -> &mut Event {
        let event = self.push(pid, outcome, op);
        (event.via, event.resolved) = (Via::Kernel, true);
        event
    }

    pub fn done(&mut self, pid: Pid, op: Op) -> &mut Event {
        self.push(pid, Outcome::Done(0), op)
    }

    pub fn open(&mut self, pid: Pid, path: &str, flags: i32, fd: i32) -> &mut Event {
        self.push(
            pid,
            Outcome::Done(fd),
            Op::Open {
                dir: CWD,
                path: bytes(path),
                flags,
                mode: 0,
            },
        )
    }

    pub fn kernel_open(&mut self, pid: Pid, path: &str, flags: i32) -> &mut Event {
        self.kernel(
            pid,
            Outcome::Predicted(0),
            Op::Open {
                dir: CWD,
                path: bytes(path),
                flags,
                mode: 0,
            },
        )
    }

    pub fn read(&mut self, pid: Pid, fd: i32) -> &mut Event {
        self.push(pid, Outcome::Done(1), Op::Read { fd })
    }

    pub fn write(&mut self, pid: Pid, fd: i32) -> &mut Event {
        self.push(pid, Outcome::Done(1), Op::Write { fd })
    }

    pub fn close(&mut self, pid: Pid, fd: i32) -> &mut Event {
        self.done(pid, Op::Close { fd })
    }

    /// Marks an activity (`backstory_graph::nested`).
    pub fn mark(&mut self, pid: Pid, mark: &str) {
        let not_a_directory = Outcome::Done(-20);
        let path = format!("/dev/null/backstory/{mark}");
        self.open(pid, &path, RDONLY, 0).outcome = not_a_directory;
    }

    /// Opens, reads and closes a file.
    pub fn reads(&mut self, pid: Pid, path: &str) {
        self.open(pid, path, RDONLY, 9);
        self.read(pid, 9);
        self.close(pid, 9);
    }

    /// Opens a file with `flags`, writes and closes it.
    pub fn writes(&mut self, pid: Pid, path: &str, flags: i32) {
        self.open(pid, path, flags, 9);
        self.write(pid, 9);
        self.close(pid, 9);
    }

    pub fn dup2(&mut self, pid: Pid, fd: i32, new: i32) -> &mut Event {
        self.push(
            pid,
            Outcome::Done(new),
            Op::Dup {
                fd,
                cloexec: false,
                replaced: true,
            },
        )
    }

    pub fn fork(&mut self, pid: Pid, child: Pid) -> &mut Event {
        self.fork_by(pid, child, None)
    }

    pub fn fork_by(&mut self, pid: Pid, child: Pid, spawn: Option<Spawn>) -> &mut Event {
        self.push(
            pid,
            Outcome::Done(child as i32),
            Op::Fork { flags: 17, spawn },
        )
    }

    pub fn start(&mut self, pid: Pid, ppid: Pid, forked: bool) -> &mut Event {
        self.done(pid, Op::Start { ppid, forked })
    }

    pub fn exec(&mut self, pid: Pid, path: &str, argv: &[&str]) -> &mut Event {
        let args = argv.iter().map(|a| bytes(a)).collect();
        let env = Some(vec![bytes("PATH=/bin")].into());
        self.push(
            pid,
            Outcome::Unknown,
            Op::Exec {
                dir: CWD,
                path: bytes(path),
                flags: 0,
                args,
                env,
            },
        )
    }

    /// Forks `child`, which runs `argv` with a recorder.
    pub fn runs(&mut self, pid: Pid, child: Pid, argv: &[&str]) {
        self.fork(pid, child);
        self.start(child, pid, true);
        self.exec(child, &format!("/bin/{}", argv[0]), argv);
        self.start(child, pid, false);
    }

    pub fn exits(&mut self, pid: Pid, parent: Pid) {
        self.push(
            parent,
            Outcome::Done(pid as i32),
            Op::Wait {
                status: 0,
                looked: false,
            },
        );
        self.done(parent, Op::Listen { fd: -1 });
    }

    pub fn rename(&mut self, pid: Pid, from: &str, to: &str) -> &mut Event {
        self.done(
            pid,
            Op::Rename {
                from_dir: CWD,
                from: bytes(from),
                to_dir: CWD,
                to: bytes(to),
                flags: 0,
            },
        )
    }

    pub fn link(&mut self, pid: Pid, from: &str, to: &str) -> &mut Event {
        self.done(
            pid,
            Op::Link {
                from_dir: CWD,
                from: bytes(from),
                to_dir: CWD,
                to: bytes(to),
                flags: 0,
            },
        )
    }

    pub fn symlink(&mut self, pid: Pid, target: &str, path: &str) -> &mut Event {
        self.done(
            pid,
            Op::Symlink {
                target: bytes(target),
                dir: CWD,
                path: bytes(path),
            },
        )
    }

    pub fn unlink(&mut self, pid: Pid, path: &str) -> &mut Event {
        self.done(
            pid,
            Op::Unlink {
                dir: CWD,
                path: bytes(path),
                directory: false,
            },
        )
    }

    pub fn pipe(&mut self, pid: Pid, read: i32, write: i32) -> &mut Event {
        self.done(
            pid,
            Op::Pipe {
                read,
                write,
                flags: 0,
            },
        )
    }

    pub fn end(&self) -> RunEnd {
        RunEnd {
            exit: Some(0),
            command_ended: self.time + STEP,
            ended: self.time + STEP,
            quiet: self.quiet,
            ..RunEnd::default()
        }
    }

    pub fn graph(&self) -> MemorySink {
        folded(&self.header, &self.end(), &self.events, self.after.as_ref())
    }
}

/// An event of a process's first thread.
pub fn event(time: Time, pid: Pid, via: Via, outcome: Outcome, op: Op) -> Event {
    Event {
        time,
        pid,
        tid: pid,
        via,
        outcome,
        ident: None,
        resolved: false,
        op,
    }
}

/// The graph of a run. `after`: the state of the file system after the run, if it is known.
pub fn folded(
    header: &RunHeader,
    end: &RunEnd,
    events: &[Event],
    after: Option<&After>,
) -> MemorySink {
    let mut sink = MemorySink::default();
    let known: &dyn FinalState = match after {
        Some(after) => after,
        None => &(),
    };
    backstory_graph::fold(header, Some(end), events.iter().cloned(), known, &mut sink).unwrap();
    sink
}

pub fn bytes(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An entity as text: `/w/a@0`.
pub fn entity(graph: &MemorySink, id: EntityId) -> String {
    let entity = &graph.entities[&id];
    format!(
        "{}@{}",
        text(&entity.path).trim_start_matches("/w/"),
        entity.version
    )
}

/// An activity as text: `cp#1`.
pub fn activity(graph: &MemorySink, id: backstory_graph::model::ActivityId) -> String {
    let activity = &graph.activities[&id];
    let name = activity.argv.first().map_or("?".into(), |a| text(a));
    format!("{name}#{}", activity.epoch)
}

/// The graph as text, one relation a line. The programs that were executed are left out.
pub fn told(graph: &MemorySink) -> String {
    let mut lines = Vec::new();
    for edge in &graph.edges {
        if edge.relation == backstory_graph::model::Relation::Execute {
            continue;
        }
        let maybe = if edge.certainty == Certainty::Possible {
            "?"
        } else {
            ""
        };
        let (who, what) = (activity(graph, edge.activity), entity(graph, edge.entity));
        lines.push(format!("{who} {:?}{maybe} {what}", edge.relation));
    }
    for derived in &graph.derived {
        lines.push(format!(
            "{} from {}",
            entity(graph, derived.entity),
            entity(graph, derived.from)
        ));
    }
    for inform in graph.informs.iter().filter(|i| i.why != Informed::Wait) {
        lines.push(format!(
            "{} {:?} {}",
            activity(graph, inform.from),
            inform.why,
            activity(graph, inform.to)
        ));
    }
    lines.sort();
    lines.dedup();
    lines.join("\n")
}

/// The paths of the versions that the newest version of `path` came from. Programs are left out.
pub fn came_from(graph: &MemorySink, path: &str, follow: Follow) -> Vec<String> {
    let newest = graph
        .newest(path.as_bytes())
        .unwrap_or_else(|| panic!("{path} is not in the graph"));
    let reached = LineageSearch::new(graph, follow).ancestors(GraphNode::Entity(newest.id));
    let mut found: Vec<String> = reached
        .entities()
        .filter(|e| *e != newest.id)
        .map(|e| entity(graph, e))
        .collect();
    found.retain(|e| !e.starts_with("/bin/"));
    found.sort();
    found
}
