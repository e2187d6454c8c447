//! The processes that call: who sent a request?
//!
//! A request has the id of a thread. `/proc` says which process it belongs to, and which program
//! that process runs. The `stat` of a thread stays open: reading it again says whether the thread
//! still lives, and whether its process has executed another program.
//!
//! Invariants:
//!
//! - No two processes share an identity: an id counts only together with the start of its thread.
//! - A caller that has no id here (another pid namespace, the kernel itself), or that has ended, is
//!   an unknown process of its own. It is joined with no other caller.

use crate::operation_log::OperationLog;
use crate::process_facts::{
    ArgumentReader, ProgramImage, ThreadStat, link, open_stat, process_of, read_stat,
};
use backstory_abi::CallerIds;
use backstory_eventlog::event::UNNUMBERED;
use backstory_sys::clock::counter;
use std::collections::HashMap;
use std::fs::File;

/// Most threads whose `stat` stays open.
const THREADS: usize = 4096;

/// A process, as the records name it, in one of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The ids for records.
    pub(crate) ids: CallerIds,
    /// Counts the programs of all processes.
    pub(crate) epoch: u64,
}

#[derive(Debug)]
struct KnownThread {
    stat: File,
    born: u64,
    pid: u32,
}

#[derive(Debug)]
struct KnownProcess {
    born: u64,
    image: ProgramImage,
    epoch: u64,
}

/// The callers that have been met.
pub(crate) struct CallerTable {
    log: OperationLog,
    reader: ArgumentReader,
    shown: PathShown,
    threads: HashMap<u32, KnownThread>,
    processes: HashMap<u32, KnownProcess>,
    unknown: u32,
    epochs: u64,
}

/// Where the mount shows a directory.
#[derive(Debug, Clone)]
pub(crate) struct PathShown {
    /// The directory.
    pub(crate) directory: Vec<u8>,
    /// The mount point.
    pub(crate) mountpoint: Vec<u8>,
}

impl PathShown {
    /// The path in the directory of a path below the mount point. Other paths stay.
    pub(crate) fn behind(&self, path: Vec<u8>) -> Vec<u8> {
        match path.strip_prefix(&self.mountpoint[..]) {
            Some(rest) if rest.is_empty() || rest.starts_with(b"/") => {
                [&self.directory[..], rest].concat()
            }
            _ => path,
        }
    }
}

impl CallerTable {
    /// A table that knows this process alone, which is the command of the run.
    pub(crate) fn new(log: OperationLog, reader: ArgumentReader, shown: PathShown) -> CallerTable {
        let mut table = CallerTable {
            log,
            reader,
            shown,
            threads: HashMap::new(),
            processes: HashMap::new(),
            unknown: 0,
            epochs: 0,
        };
        let own = std::process::id();
        if let Some(stat) = open_stat(own).ok().as_ref().and_then(read_stat) {
            table.meet_process(own, &stat);
        }
        table
    }

    /// The caller of a request by this thread.
    pub(crate) fn identify(&mut self, thread: u32) -> Caller {
        match self.known(thread).or_else(|| self.meet(thread)) {
            Some((pid, stat)) => Caller {
                ids: CallerIds {
                    pid,
                    tid: thread,
                    nr: 0,
                    arch: 0,
                },
                epoch: self.present_epoch(pid, &stat),
            },
            None => self.unknown(),
        }
    }

    /// The same, if the program of the thread's process is known now: not during an exec, and not
    /// once the process ends.
    pub(crate) fn identify_running(&mut self, thread: u32) -> Option<Caller> {
        let stat = read_stat(&open_stat(thread).ok()?)?;
        (!stat.ended && !stat.image.is_hidden()).then(|| self.identify(thread))
    }

    /// A process of which nothing is known.
    fn unknown(&mut self) -> Caller {
        self.unknown = (self.unknown + 1) % UNNUMBERED;
        self.epochs += 1;
        let pid = UNNUMBERED + self.unknown;
        Caller {
            ids: CallerIds {
                pid,
                tid: pid,
                nr: 0,
                arch: 0,
            },
            epoch: self.epochs,
        }
    }

    fn known(&mut self, thread: u32) -> Option<(u32, ThreadStat)> {
        let known = self.threads.get(&thread)?;
        let stat = read_stat(&known.stat).filter(|stat| stat.born == known.born);
        match stat {
            Some(stat) if self.processes.contains_key(&known.pid) => Some((known.pid, stat)),
            _ => {
                self.threads.remove(&thread);
                None
            }
        }
    }

    /// Takes a thread into the table.
    fn meet(&mut self, thread: u32) -> Option<(u32, ThreadStat)> {
        if thread == 0 {
            return None;
        }
        let file = open_stat(thread).ok()?;
        let stat = read_stat(&file)?;
        let pid = process_of(thread)?;
        let first = match pid == thread {
            true => stat.clone(),
            false => read_stat(&open_stat(pid).ok()?)?,
        };
        // The thread still lives, so that all of this was said of one process.
        read_stat(&file).filter(|again| again.born == stat.born)?;
        if self
            .processes
            .get(&pid)
            .is_none_or(|known| known.born != first.born)
        {
            self.meet_process(pid, &first);
        }
        if self.threads.len() >= THREADS {
            self.sweep();
            if self.threads.len() >= THREADS {
                self.threads.clear();
            }
        }
        let born = stat.born;
        let known = KnownThread {
            stat: file,
            born,
            pid,
        };
        self.threads.insert(thread, known);
        Some((pid, stat))
    }

    /// Records a process, and its parent if both run one program: the process is then a fork.
    fn meet_process(&mut self, pid: u32, stat: &ThreadStat) {
        if self.processes.remove(&pid).is_some() {
            self.log.gone(pid, counter());
        }
        let parent = stat.parent;
        let parent_stat = open_stat(parent).ok().as_ref().and_then(read_stat);
        let forked = parent_stat
            .as_ref()
            .is_some_and(|above| above.image == stat.image && !stat.image.is_hidden());
        if let Some(above) = parent_stat.filter(|_| forked)
            && self
                .processes
                .get(&parent)
                .is_none_or(|known| known.born != above.born)
        {
            self.enter(parent, &above, false);
        }
        self.enter(pid, stat, forked);
    }

    fn enter(&mut self, pid: u32, stat: &ThreadStat, forked: bool) {
        let directory = link(pid, "cwd").map(|path| self.shown.behind(path));
        let directory = directory.unwrap_or_default();
        self.log.born(pid, stat.parent, &directory, counter());
        self.epochs += 1;
        let known = KnownProcess {
            born: stat.born,
            image: stat.image.clone(),
            epoch: self.epochs,
        };
        self.processes.insert(pid, known);
        if !forked {
            self.record_program(pid);
        }
    }

    fn record_program(&self, pid: u32) {
        // A thread of the kernel has no program.
        let Some(path) = link(pid, "exe").map(|path| self.shown.behind(path)) else {
            return;
        };
        let arguments = self.reader.arguments(pid);
        self.log.program(pid, &path, &arguments, counter());
    }

    /// The epoch of the program that the process runs now.
    fn present_epoch(&mut self, pid: u32, stat: &ThreadStat) -> u64 {
        match self.processes.get_mut(&pid) {
            Some(known) if known.image == stat.image => known.epoch,
            Some(known) => {
                self.epochs += 1;
                known.image = stat.image.clone();
                known.epoch = self.epochs;
                self.record_program(pid);
                self.epochs
            }
            None => 0,
        }
    }

    /// Records the processes that have ended since the last time, and forgets them.
    pub(crate) fn sweep(&mut self) {
        self.threads.retain(|_, known| {
            read_stat(&known.stat).is_some_and(|stat| stat.born == known.born && !stat.ended)
        });
        let log = &self.log;
        self.processes.retain(|pid, known| {
            let stat = open_stat(*pid).ok().as_ref().and_then(read_stat);
            let lives = stat.is_some_and(|stat| stat.born == known.born && !stat.ended);
            if !lives {
                log.gone(*pid, counter());
            }
            lives
        });
    }
}
