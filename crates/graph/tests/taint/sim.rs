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

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::{CWD, Event, Op, Outcome, Pid, Time, Via};
use backstory_eventlog::run::RunEnd;
use backstory_files::Ident;
use proptest::prelude::*;

use crate::common::{self, After, STEP, bytes};

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

/// An operation that a process may do. Numbers are reduced to the number of files and processes.
#[derive(Debug, Clone)]
pub enum Step {
    Fork(usize),
    Exec(usize, bool),
    Exit(usize),
    Open(usize, usize, i32),
    Read(usize, usize),
    Write(usize, usize),
    Close(usize, usize),
    Dup(usize, usize),
    Pipe(usize),
    /// A static program makes a pipe between two children, or between itself and one.
    Plumb(usize, usize),
    Truncate(usize, usize),
    Rename(usize, usize, usize),
    RenameDir(usize),
    Link(usize, usize, usize),
    Symlink(usize, usize, usize),
    Unlink(usize, usize),
    Chdir(usize, usize),
    /// Opens, reads all and closes in one step.
    WholeRead(usize, usize),
    /// Opens (appending if true), writes and closes in one step.
    WholeWrite(usize, usize, bool),
}

const MODES: [i32; 7] = [
    common::RDONLY,
    common::OUT,
    common::WRONLY,
    common::RDWR,
    common::RDWR | common::CREAT,
    common::WRONLY | common::CREAT | common::APPEND,
    common::RDWR | common::CREAT | common::TRUNC,
];

impl Step {
    pub fn any() -> impl Strategy<Value = Step> {
        let (p, f, d) = (0..4_usize, 0..NAMES.len(), 0..6_usize);
        prop_oneof![
            2 => p.clone().prop_map(Step::Fork),
            1 => (p.clone(), prop::bool::weighted(0.5)).prop_map(|(p, s)| Step::Exec(p, s)),
            1 => p.clone().prop_map(Step::Exit),
            6 => (p.clone(), f.clone(), prop::sample::select(&MODES[..]), any::<bool>())
                .prop_map(|(p, f, m, c)| Step::Open(p, f, if c { m | common::CLOEXEC } else { m })),
            6 => (p.clone(), d.clone()).prop_map(|(p, d)| Step::Read(p, d)),
            6 => (p.clone(), d.clone()).prop_map(|(p, d)| Step::Write(p, d)),
            3 => (p.clone(), d.clone()).prop_map(|(p, d)| Step::Close(p, d)),
            1 => (p.clone(), d).prop_map(|(p, d)| Step::Dup(p, d)),
            1 => p.clone().prop_map(Step::Pipe),
            2 => (p.clone(), 0..3_usize).prop_map(|(p, k)| Step::Plumb(p, k)),
            1 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::Truncate(p, f)),
            2 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Rename(p, a, b)),
            1 => p.clone().prop_map(Step::RenameDir),
            1 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Link(p, a, b)),
            1 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Symlink(p, a, b)),
            1 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::Unlink(p, f)),
            1 => (p, 0..2_usize).prop_map(|(p, d)| Step::Chdir(p, d)),
        ]
    }

    /// Steps that leave no file open, so that the log says exactly which data flowed.
    pub fn whole() -> impl Strategy<Value = Step> {
        let (p, f) = (0..4_usize, 0..NAMES.len());
        prop_oneof![
            1 => p.clone().prop_map(Step::Fork),
            1 => p.clone().prop_map(|p| Step::Exec(p, false)),
            1 => p.clone().prop_map(Step::Exit),
            4 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::WholeRead(p, f)),
            4 => (p.clone(), f.clone(), any::<bool>()).prop_map(|(p, f, a)| Step::WholeWrite(p, f, a)),
            1 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Rename(p, a, b)),
            1 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::Unlink(p, f)),
            1 => (p, 0..2_usize).prop_map(|(p, d)| Step::Chdir(p, d)),
        ]
    }
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
        let time = self.time;
        self.events.push(Event {
            time,
            pid,
            tid: pid,
            via,
            outcome,
            ident: None,
            resolved: false,
            op,
        });
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

    /// Lists the descriptors of a process without a recorder, the first time that the guard sees
    /// it.
    fn ask(&mut self, p: usize) {
        if self.processes[p].fixed && !self.processes[p].listed {
            self.processes[p].listed = true;
            self.list(p, false);
        }
    }

    /// Logs the descriptors that `/proc` lists for a process.
    fn list(&mut self, p: usize, exec: bool) {
        let pid = self.processes[p].pid;
        let held: Vec<(i32, SimDescriptor)> = self.processes[p]
            .descriptors
            .iter()
            .filter(|(_, d)| !exec || !d.cloexec)
            .map(|(&fd, d)| (fd, d.clone()))
            .collect();
        let mut entries = vec![(-1, i32::from(exec), String::new(), held.len() as i32)];
        for (fd, d) in held {
            let access = match (d.reads, d.writes) {
                (true, false) => common::RDONLY,
                (false, _) => common::WRONLY,
                _ => common::RDWR,
            };
            let flags = if d.cloexec {
                access | common::CLOEXEC
            } else {
                access
            };
            entries.push((fd, flags, self.target(d.to), 0));
        }
        for (fd, flags, target, result) in entries {
            let flags = Some(flags);
            let target = bytes(&target);
            self.log_pid(
                pid,
                Via::Kernel,
                Outcome::Done(result),
                Op::HeldDescriptor { fd, flags, target },
            );
        }
    }

    fn target(&self, to: To) -> String {
        match to {
            To::Pipe(pipe) => format!("pipe:[{pipe}]"),
            To::File(inode) => match self.paths.iter().find(|(_, i)| **i == inode) {
                Some((path, _)) => path.clone(),
                None => {
                    let name = self.inodes[inode].names.last().unwrap();
                    format!("{} (deleted)", common::text(name))
                }
            },
        }
    }

    fn fork(&mut self, p: usize) {
        self.fork_with(p, |_| {});
    }

    fn fork_with(&mut self, p: usize, change: impl FnOnce(&mut SimProcess)) {
        if self.processes.len() > 5 {
            return;
        }
        self.ask(p);
        let pid = self.next_pid;
        self.next_pid += 1;
        let parent = self.processes[p].clone();
        let mut child = SimProcess {
            pid,
            parent: parent.pid,
            epoch: 0,
            ..parent.clone()
        };
        for d in child.descriptors.values_mut() {
            (d.logged_read, d.logged_write, d.opened_here) = (false, false, false);
        }
        change(&mut child);
        child.listed = parent.fixed;
        self.processes.push(child);
        if parent.fixed {
            let born = Op::Born {
                parent: parent.pid,
                exe: bytes(""),
                cwd: bytes(&parent.cwd),
            };
            self.log_pid(pid, Via::Kernel, Outcome::Done(0), born);
            self.list(self.processes.len() - 1, false);
        } else {
            self.log(
                p,
                Outcome::Done(pid as i32),
                Op::Fork {
                    flags: 17,
                    spawn: None,
                },
            );
            let child = self.processes.len() - 1;
            self.log(
                child,
                Outcome::Done(0),
                Op::Start {
                    ppid: parent.pid,
                    forked: true,
                },
            );
        }
    }

    fn exec(&mut self, p: usize, fixed: bool) {
        let via = if self.processes[p].fixed {
            Via::Kernel
        } else {
            Via::Library
        };
        let pid = self.processes[p].pid;
        if self.processes[p].fixed {
            self.list(p, true);
        }
        self.log_pid(pid, via, Outcome::Unknown, exec());
        let process = &mut self.processes[p];
        process.listed = process.fixed;
        let (key, memory) = ((process.pid, process.epoch), process.memory.clone());
        process.epoch += 1;
        process.fixed = fixed;
        process.descriptors.retain(|_, d| !d.cloexec);
        for d in process.descriptors.values_mut() {
            (d.logged_read, d.logged_write, d.opened_here) = (false, false, false);
        }
        let parent = process.parent;
        self.memories.insert(key, memory);
        if !fixed {
            self.log(
                p,
                Outcome::Done(0),
                Op::Start {
                    ppid: parent,
                    forked: false,
                },
            );
        }
    }

    fn exit(&mut self, p: usize) {
        let process = self.processes.remove(p);
        self.memories
            .insert((process.pid, process.epoch), process.memory);
        self.log_pid(
            process.pid,
            Via::Kernel,
            Outcome::Done(0),
            Op::Gone { status: Some(0) },
        );
    }

    /// The absolute path of a name, without following links.
    fn absolute(&self, p: usize, name: &str) -> String {
        let joined = if name.starts_with('/') {
            name.into()
        } else {
            format!("{}/{name}", self.processes[p].cwd)
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in joined.split('/').filter(|c| !c.is_empty()) {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        format!("/{}", parts.join("/"))
    }

    fn resolve(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..8 {
            match self.links.get(&path) {
                Some(target) => path.clone_from(target),
                None => break,
            }
        }
        path
    }

    fn directory_of(path: &str) -> &str {
        path.rsplit_once('/').map_or("/", |(d, _)| d)
    }

    fn exists_directory(&self, path: &str) -> bool {
        let directory = World::directory_of(path);
        directory == "/w" || directory == self.directory
    }

    fn open(&mut self, p: usize, name: &str, flags: i32) {
        let named = self.absolute(p, name);
        let path = self.resolve(&named);
        let found = self.paths.get(&path).copied();
        if self.links.contains_key(&path) {
            return;
        }
        if found.is_none() && (flags & common::CREAT == 0 || !self.exists_directory(&path)) {
            let fixed = self.processes[p].fixed;
            let open = Op::Open {
                dir: CWD,
                path: bytes(if fixed { &named } else { name }),
                flags,
                mode: 0,
            };
            let event = self.call(p, open, |_, op| op);
            event.outcome = if fixed {
                Outcome::Predicted(-2)
            } else {
                Outcome::Done(-2)
            };
            return;
        }
        let fd = (3..)
            .find(|fd| !self.processes[p].descriptors.contains_key(fd))
            .unwrap();
        let before = found.filter(|_| flags & 3 != 0).map(|i| self.ident(i));
        let fixed = self.processes[p].fixed;
        let open = Op::Open {
            dir: CWD,
            path: bytes(if fixed { &named } else { name }),
            flags,
            mode: 0,
        };
        let idents = self.manner.idents;
        let event = self.call(p, open, |_, op| op);
        event.outcome = if fixed {
            Outcome::Predicted(0)
        } else {
            Outcome::Done(fd)
        };
        if idents {
            event.ident = before;
        }
        let time = self.time;
        let inode = found.unwrap_or_else(|| {
            let made = self.inode(time, Labels::new());
            self.name(&path, made);
            made
        });
        if flags & common::TRUNC != 0 && flags & 3 != 0 {
            self.inodes[inode].labels.clear();
            (self.inodes[inode].mtime, self.inodes[inode].ctime) = (time, time);
        }
        let mode = flags & 3;
        let descriptor = SimDescriptor {
            to: To::File(inode),
            reads: mode != common::WRONLY,
            writes: mode != common::RDONLY,
            cloexec: flags & common::CLOEXEC != 0,
            logged_read: false,
            logged_write: false,
            opened_here: true,
        };
        self.processes[p].descriptors.insert(fd, descriptor);
    }

    fn pick(&self, p: usize, d: usize) -> Option<i32> {
        let numbers: Vec<i32> = self.processes[p].descriptors.keys().copied().collect();
        (!numbers.is_empty()).then(|| numbers[d % numbers.len()])
    }

    fn read(&mut self, p: usize, d: usize) {
        let Some(fd) = self.pick(p, d) else { return };
        let held = self.processes[p].descriptors[&fd].clone();
        if !held.reads {
            return;
        }
        if !held.logged_read && !self.processes[p].fixed {
            self.log(p, Outcome::Done(1), Op::Read { fd });
        }
        let labels = match held.to {
            To::File(inode) => self.inodes[inode].labels.clone(),
            To::Pipe(pipe) => self.pipes[pipe].clone(),
        };
        let process = &mut self.processes[p];
        process.memory.extend(labels);
        process.descriptors.get_mut(&fd).unwrap().logged_read = true;
    }

    fn write(&mut self, p: usize, d: usize) {
        let Some(fd) = self.pick(p, d) else { return };
        let held = self.processes[p].descriptors[&fd].clone();
        if !held.writes {
            return;
        }
        if !held.logged_write && !self.processes[p].fixed {
            self.log(p, Outcome::Done(1), Op::Write { fd });
        }
        self.processes[p]
            .descriptors
            .get_mut(&fd)
            .unwrap()
            .logged_write = true;
        let labels = self.processes[p].memory.clone();
        match held.to {
            To::File(inode) => self.change(inode, labels),
            To::Pipe(pipe) => self.pipes[pipe].extend(labels),
        }
    }

    fn change(&mut self, inode: usize, labels: Labels) {
        let inode = &mut self.inodes[inode];
        inode.labels.extend(labels);
        (inode.mtime, inode.ctime) = (self.time, self.time);
    }

    fn close(&mut self, p: usize, d: usize) {
        if let Some(fd) = self.pick(p, d) {
            self.close_number(p, fd);
        }
    }

    fn close_number(&mut self, p: usize, fd: i32) {
        let Some(held) = self.processes[p].descriptors.remove(&fd) else {
            return;
        };
        if self.processes[p].fixed {
            return;
        }
        let ident = match held.to {
            To::File(inode) if held.writes && held.opened_here && self.manner.idents => {
                Some(self.ident(inode))
            }
            _ => None,
        };
        self.log(p, Outcome::Done(0), Op::Close { fd }).ident = ident;
    }

    fn dup(&mut self, p: usize, d: usize) {
        let Some(fd) = self.pick(p, d) else { return };
        let new = (3..)
            .find(|fd| !self.processes[p].descriptors.contains_key(fd))
            .unwrap();
        let mut copy = self.processes[p].descriptors[&fd].clone();
        (copy.logged_read, copy.logged_write, copy.cloexec) = (false, false, false);
        self.processes[p].descriptors.insert(new, copy);
        if !self.processes[p].fixed {
            self.log(
                p,
                Outcome::Done(new),
                Op::Dup {
                    fd,
                    cloexec: false,
                    replaced: false,
                },
            );
        }
    }

    fn pipe(&mut self, p: usize) {
        // Data that a static program passes to itself does not matter.
        if self.processes[p].fixed {
            return;
        }
        self.pipes.push(Labels::new());
        let to = To::Pipe(self.pipes.len() - 1);
        let mut numbers = Vec::new();
        for (reads, writes) in [(true, false), (false, true)] {
            let fd = (3..)
                .find(|fd| !self.processes[p].descriptors.contains_key(fd))
                .unwrap();
            let end = SimDescriptor {
                to,
                reads,
                writes,
                cloexec: false,
                logged_read: false,
                logged_write: false,
                opened_here: false,
            };
            self.processes[p].descriptors.insert(fd, end);
            numbers.push(fd);
        }
        self.log(
            p,
            Outcome::Done(0),
            Op::Pipe {
                read: numbers[0],
                write: numbers[1],
                flags: 0,
            },
        );
    }

    /// Makes a pipe whose creation is not seen. It is found with the processes that got an end of
    /// it.
    fn plumb(&mut self, p: usize, kind: usize) {
        if !self.processes[p].fixed || self.processes.len() > 4 {
            return;
        }
        self.pipes.push(Labels::new());
        let to = To::Pipe(self.pipes.len() - 1);
        let end = |reads: bool| SimDescriptor {
            to,
            reads,
            writes: !reads,
            cloexec: false,
            logged_read: false,
            logged_write: false,
            opened_here: false,
        };
        if kind != 2 {
            self.fork_with(p, |child| {
                child.descriptors.insert(1, end(false));
            });
        }
        if kind != 1 {
            self.fork_with(p, |child| {
                child.descriptors.insert(0, end(true));
            });
        }
        if kind > 0 {
            let own = (3..)
                .find(|fd| !self.processes[p].descriptors.contains_key(fd))
                .unwrap();
            self.processes[p].descriptors.insert(own, end(kind == 1));
        }
    }

    fn truncate(&mut self, p: usize, name: &str) {
        let named = self.absolute(p, name);
        let path = self.resolve(&named);
        let Some(&inode) = self.paths.get(&path) else {
            return;
        };
        let shown = if self.processes[p].fixed {
            named
        } else {
            name.into()
        };
        self.call(
            p,
            Op::Truncate {
                fd: -1,
                path: bytes(&shown),
            },
            |_, op| op,
        );
        // The file is cut to some length, and the rest of its content stays.
        self.change(inode, Labels::new());
    }

    fn shown(&self, p: usize, name: &str) -> Box<[u8]> {
        if self.processes[p].fixed {
            bytes(&self.absolute(p, name))
        } else {
            bytes(name)
        }
    }

    fn rename(&mut self, p: usize, from: &str, to: &str) {
        let (old, new) = (self.absolute(p, from), self.absolute(p, to));
        if old == new || !self.exists_directory(&new) {
            return;
        }
        let (from, to) = (self.shown(p, from), self.shown(p, to));
        let rename = Op::Rename {
            from_dir: CWD,
            from,
            to_dir: CWD,
            to,
            flags: 0,
        };
        if let Some(inode) = self.paths.get(&old).copied() {
            if self.paths.get(&new) == Some(&inode) {
                return;
            }
            self.call(p, rename, |_, op| op);
            self.paths.remove(&old);
            self.name(&new, inode);
            // A process that gives a file its name decides which file is found there. That counts
            // as a flow.
            let labels = self.processes[p].memory.clone();
            self.inodes[inode].labels.extend(labels);
            self.inodes[inode].ctime = self.time;
        } else if let Some(target) = self.links.get(&old).cloned() {
            self.call(p, rename, |_, op| op);
            self.links.remove(&old);
            self.paths.remove(&new);
            self.linked.insert(new.clone(), self.time);
            self.links.insert(new, target);
        }
    }

    fn rename_directory(&mut self, p: usize) {
        let new = if self.directory == "/w/d" {
            "/w/e"
        } else {
            "/w/d"
        };
        let old = std::mem::replace(&mut self.directory, new.into());
        let rename = Op::Rename {
            from_dir: CWD,
            from: bytes(&old),
            to_dir: CWD,
            to: bytes(new),
            flags: 0,
        };
        self.call(p, rename, |_, op| op);
        let moved = |path: &str| {
            path.strip_prefix(&format!("{old}/"))
                .map(|rest| format!("{new}/{rest}"))
        };
        for (path, inode) in std::mem::take(&mut self.paths) {
            self.name(&moved(&path).unwrap_or(path), inode);
        }
        for (path, target) in std::mem::take(&mut self.links) {
            let time = self.linked[&path];
            let path = moved(&path).unwrap_or(path);
            self.linked.insert(path.clone(), time);
            self.links.insert(path, target);
        }
        for process in &mut self.processes {
            if process.cwd == old {
                process.cwd = new.into();
            }
        }
    }

    fn link(&mut self, p: usize, from: &str, to: &str) {
        let (old, new) = (self.absolute(p, from), self.absolute(p, to));
        let Some(&inode) = self.paths.get(&old) else {
            return;
        };
        if self.paths.contains_key(&new)
            || self.links.contains_key(&new)
            || !self.exists_directory(&new)
        {
            return;
        }
        let (from, to) = (self.shown(p, from), self.shown(p, to));
        self.call(
            p,
            Op::Link {
                from_dir: CWD,
                from,
                to_dir: CWD,
                to,
                flags: 0,
            },
            |_, op| op,
        );
        self.name(&new, inode);
        self.inodes[inode].ctime = self.time;
    }

    fn symlink(&mut self, p: usize, target: &str, path: &str) {
        let (target, path_now) = (self.absolute(p, target), self.absolute(p, path));
        let taken = self.paths.contains_key(&path_now) || self.links.contains_key(&path_now);
        if taken || target == path_now || !self.exists_directory(&path_now) {
            return;
        }
        let path = self.shown(p, path);
        self.call(
            p,
            Op::Symlink {
                target: bytes(&target),
                dir: CWD,
                path,
            },
            |_, op| op,
        );
        self.linked.insert(path_now.clone(), self.time);
        self.links.insert(path_now, target);
    }

    fn unlink(&mut self, p: usize, name: &str) {
        let path = self.absolute(p, name);
        if !self.paths.contains_key(&path) && !self.links.contains_key(&path) {
            return;
        }
        let shown = self.shown(p, name);
        self.call(
            p,
            Op::Unlink {
                dir: CWD,
                path: shown,
                directory: false,
            },
            |_, op| op,
        );
        self.links.remove(&path);
        if let Some(inode) = self.paths.remove(&path) {
            self.inodes[inode].ctime = self.time;
        }
    }

    fn chdir(&mut self, p: usize, directory: &str) {
        if directory != "/w" && directory != self.directory {
            return;
        }
        self.call(
            p,
            Op::Chdir {
                fd: -1,
                path: bytes(directory),
                now: bytes(directory),
            },
            |_, op| op,
        );
        self.processes[p].cwd = directory.into();
    }

    fn whole(&mut self, p: usize, name: &str, flags: i32) {
        let before: BTreeSet<i32> = self.processes[p].descriptors.keys().copied().collect();
        self.open(p, name, flags);
        let new = self.processes[p]
            .descriptors
            .keys()
            .copied()
            .find(|fd| !before.contains(fd));
        let Some(fd) = new else { return };
        let at = self.processes[p]
            .descriptors
            .keys()
            .position(|&n| n == fd)
            .unwrap();
        self.read(p, at);
        self.write(p, at);
        self.close_number(p, fd);
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
