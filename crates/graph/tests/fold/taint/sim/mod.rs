//! An idealised Linux, and the log that backstory would write of it. Every byte carries the labels
//! of the initial files that it came from.
//!
//! A label is the number of an initial file. A read adds a file's labels to a process, and a write
//! adds the process's labels to a file. Only a truncation or a new file forgets labels.
//!
//! - The log of a dynamic program has every call, but only the first read and the first write of
//!   each descriptor.
//! - The log of a static program has only the calls that the guard sees, and no descriptor numbers.
//!   Its descriptors are listed from `/proc` when it is met, and before it calls exec.

mod descriptors;
mod paths;
mod processes;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::{CWD, Event, Op, Outcome, Pid, Time, Via};
use backstory_eventlog::run::RunEnd;
use backstory_files::Ident;

use crate::common::{self, After, STEP, bytes};
pub use steps::Step;

pub type Label = u32;
type Labels = BTreeSet<Label>;

/// The facts that the log contains.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Identities are taken after the run.
    pub settled: bool,
    /// The close of a written file takes its identity, as does the guard before a change.
    pub idents: bool,
    /// The file system reports times of birth.
    pub births: bool,
}

const NAMES: [&str; 7] = ["a", "b", "c", "/w/a", "/w/d/a", "/w/d/b", "../w/b"];
const DIRS: [&str; 2] = ["/w", "/w/d"];

#[derive(Debug, Clone)]
struct Inode {
    labels: Labels,
    birth: Time,
    mtime: Time,
    ctime: Time,
    names: BTreeSet<Vec<u8>>,
}

/// The file or pipe that a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum To {
    File(usize),
    Pipe(usize),
}

#[derive(Debug, Clone)]
struct SimDescriptor {
    to: To,
    reads: bool,
    writes: bool,
    cloexec: bool,
    logged_read: bool,
    logged_write: bool,
    opened_here: bool,
}

#[derive(Debug, Clone)]
struct SimProcess {
    pid: Pid,
    parent: Pid,
    epoch: u32,
    fixed: bool,
    /// Its descriptors were listed in this epoch.
    listed: bool,
    memory: Labels,
    cwd: String,
    descriptors: BTreeMap<i32, SimDescriptor>,
}

/// The world, its history and its log.
pub struct World {
    pub manner: Manner,
    pub events: Vec<Event>,
    /// The labels that each epoch had at its end.
    pub memories: BTreeMap<(Pid, u32), Labels>,
    inodes: Vec<Inode>,
    paths: BTreeMap<String, usize>,
    links: BTreeMap<String, String>,
    linked: BTreeMap<String, Time>,
    pipes: Vec<Labels>,
    processes: Vec<SimProcess>,
    directory: String,
    next_pid: Pid,
    time: Time,
}

impl World {
    pub fn run(manner: Manner, steps: &[Step]) -> World {
        let root = SimProcess {
            pid: 2,
            parent: 1,
            epoch: 1,
            fixed: false,
            listed: false,
            memory: Labels::new(),
            cwd: "/w".into(),
            descriptors: BTreeMap::new(),
        };
        let mut world = World {
            manner,
            events: Vec::new(),
            memories: BTreeMap::new(),
            inodes: Vec::new(),
            paths: BTreeMap::new(),
            links: BTreeMap::new(),
            linked: BTreeMap::new(),
            pipes: Vec::new(),
            processes: vec![root],
            directory: "/w/d".into(),
            next_pid: 3,
            time: common::START,
        };
        for (label, path) in ["/w/a", "/w/b", "/w/d/a"].into_iter().enumerate() {
            let inode = world.inode(common::START - 1000 * STEP, Labels::from([label as Label]));
            world.name(path, inode);
        }
        world.log(0, Outcome::Unknown, exec());
        world.log(
            0,
            Outcome::Done(0),
            Op::Start {
                ppid: 1,
                forked: false,
            },
        );
        for step in steps {
            world.step(step);
        }
        for process in std::mem::take(&mut world.processes) {
            world
                .memories
                .insert((process.pid, process.epoch), process.memory);
        }
        world
    }

    pub fn labels(&self) -> impl Iterator<Item = Label> + use<> {
        0..3
    }

    pub fn names_of(&self, label: Label) -> &BTreeSet<Vec<u8>> {
        &self.inodes[label as usize].names
    }

    pub fn first_name_of(&self, label: Label) -> &'static [u8] {
        [b"/w/a".as_slice(), b"/w/b", b"/w/d/a"][label as usize]
    }

    pub fn final_files(&self) -> impl Iterator<Item = (Vec<u8>, Labels)> {
        self.paths
            .iter()
            .map(|(p, &i)| (p.as_bytes().to_vec(), self.inodes[i].labels.clone()))
    }

    pub fn end(&self) -> RunEnd {
        let ended = self.time + STEP;
        RunEnd {
            exit: Some(0),
            command_ended: ended,
            ended,
            ..RunEnd::default()
        }
    }

    /// The result of `stat` for every path now.
    pub fn after(&self) -> After {
        let mut after = After::default();
        for (path, &inode) in &self.paths {
            after
                .files
                .insert(path.clone().into_bytes(), self.ident(inode));
        }
        for (path, target) in &self.links {
            let mut link = common::ident(1000 + path.len() as u64, 0, self.linked[path]);
            link.mode = 0o120_777;
            after.links.insert(path.clone().into_bytes(), link);
            if let Some(&inode) = self.paths.get(&self.resolve(target)) {
                after
                    .files
                    .insert(path.clone().into_bytes(), self.ident(inode));
            }
        }
        after
    }

    fn ident(&self, inode: usize) -> Ident {
        let i = &self.inodes[inode];
        let links = self.paths.values().filter(|&&n| n == inode).count() as u32;
        let birth = if self.manner.births { i.birth } else { 0 };
        Ident {
            mtime: i.mtime,
            ctime: i.ctime,
            nlink: links,
            ..common::ident(inode as u64 + 10, birth, 0)
        }
    }

    fn inode(&mut self, birth: Time, labels: Labels) -> usize {
        self.inodes.push(Inode {
            labels,
            birth,
            mtime: birth,
            ctime: birth,
            names: BTreeSet::new(),
        });
        self.inodes.len() - 1
    }

    fn name(&mut self, path: &str, inode: usize) {
        self.links.remove(path);
        self.paths.insert(path.into(), inode);
        self.inodes[inode].names.insert(path.as_bytes().to_vec());
    }

    fn step(&mut self, step: &Step) {
        self.time += STEP;
        let living = self.processes.len();
        match *step {
            Step::Fork(p) => self.fork(p % living),
            Step::Exec(p, fixed) => self.exec(p % living, fixed),
            Step::Exit(p) if p % living > 0 => self.exit(p % living),
            Step::Exit(_) => {}
            Step::Open(p, f, flags) => self.open(p % living, NAMES[f], flags),
            Step::Read(p, d) => self.read(p % living, d),
            Step::Write(p, d) => self.write(p % living, d),
            Step::Close(p, d) => self.close(p % living, d),
            Step::Dup(p, d) => self.dup(p % living, d),
            Step::Pipe(p) => self.pipe(p % living),
            Step::Plumb(p, kind) => self.plumb(p % living, kind),
            Step::Truncate(p, f) => self.truncate(p % living, NAMES[f]),
            Step::Rename(p, a, b) => self.rename(p % living, NAMES[a], NAMES[b]),
            Step::RenameDir(p) => self.rename_directory(p % living),
            Step::Link(p, a, b) => self.link(p % living, NAMES[a], NAMES[b]),
            Step::Symlink(p, a, b) => self.symlink(p % living, NAMES[a], NAMES[b]),
            Step::Unlink(p, f) => self.unlink(p % living, NAMES[f]),
            Step::Chdir(p, d) => self.chdir(p % living, DIRS[d]),
            Step::WholeRead(p, f) => self.whole(p % living, NAMES[f], common::RDONLY),
            Step::WholeWrite(p, f, true) => {
                self.whole(
                    p % living,
                    NAMES[f],
                    common::WRONLY | common::CREAT | common::APPEND,
                );
            }
            Step::WholeWrite(p, f, false) => self.whole(p % living, NAMES[f], common::OUT),
        }
    }

    fn log(&mut self, p: usize, outcome: Outcome, op: Op) -> &mut Event {
        let pid = self.processes[p].pid;
        self.log_pid(pid, Via::Library, outcome, op)
    }

    fn log_pid(&mut self, pid: Pid, via: Via, outcome: Outcome, op: Op) -> &mut Event {
        // Several events of one step follow each other closely, but farther apart than any clock's
        // grain.
        self.time += STEP;
        self.events
            .push(common::event(self.time, pid, via, outcome, op));
        self.events.last_mut().unwrap()
    }

    /// Logs a call that the guard sees if the program is static.
    fn call(&mut self, p: usize, op: Op, resolve: impl FnOnce(&World, Op) -> Op) -> &mut Event {
        let pid = self.processes[p].pid;
        if !self.processes[p].fixed {
            return self.log_pid(pid, Via::Library, Outcome::Done(0), op);
        }
        self.ask(p);
        let op = resolve(self, op);
        let event = self.log_pid(pid, Via::Kernel, Outcome::Predicted(0), op);
        event.resolved = true;
        event
    }
}

fn exec() -> Op {
    let path = bytes("/bin/program");
    Op::Exec {
        dir: CWD,
        path,
        flags: 0,
        args: vec![bytes("program")],
        env: None,
    }
}
