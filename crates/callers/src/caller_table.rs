//! The processes that call: who sent a request?
//!
//! A request has the id of a thread. An observer finds out which process the thread belongs to, and
//! which program that process runs. The kernel's news of processes say how long that holds; without
//! them, each request is looked at.
//!
//! Invariants:
//!
//! - No two processes share an identity: an id counts only together with the start of its process.
//! - A caller without an id here is an unknown process of its own, joined with no other one. So is
//!   a caller that has ended, or that cannot be seen in time. The kernel, and processes of another
//!   pid namespace, have no id.
//! - No thread holds the table while an observer looks.

mod nfs_clients;
mod past_callers;

pub use past_callers::EndedProcesses;

use crate::observers::{introduced, seen};
use crate::operation_log::OperationLog;
use crate::process_facts::{Introduction, ProcessFacts, ProgramImage, SeenThread};
use crate::process_news::{NewsSocket, ProcessNews};
use backstory_abi::CallerIds;
use backstory_eventlog::event::UNNUMBERED;
use backstory_sys::clock::counter;
use nfs_clients::{NfsClients, NfsServer};
use past_callers::PastCallers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most threads that are known by number.
const THREADS: usize = 1 << 16;
/// Most recent execs that are remembered.
const EXECS: usize = 4096;

/// A process, as the records name it, in one of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The ids for records.
    pub ids: CallerIds,
    /// Counts the programs of all processes.
    pub epoch: u64,
}

impl Caller {
    fn new(pid: u32, tid: u32, epoch: u64) -> Caller {
        let ids = CallerIds {
            pid,
            tid,
            nr: 0,
            arch: 0,
        };
        Caller { ids, epoch }
    }
}

/// Where the mount shows a directory.
#[derive(Debug, Clone)]
pub struct PathShown {
    /// The directory.
    pub directory: Vec<u8>,
    /// The mount point.
    pub mountpoint: Vec<u8>,
}

impl PathShown {
    /// The path in the directory of a path below the mount point. Other paths stay.
    pub fn behind(&self, path: &[u8]) -> Vec<u8> {
        match path.strip_prefix(&self.mountpoint[..]) {
            Some(rest) if rest.is_empty() || rest.starts_with(b"/") => {
                [&self.directory[..], rest].concat()
            }
            _ => path.to_vec(),
        }
    }
}

#[derive(Debug)]
struct KnownProcess {
    born: u64,
    image: ProgramImage,
    epoch: u64,
    descriptor: Option<OwnedFd>,
    /// The program is the present one until news say otherwise.
    current: bool,
    /// The NFS server that the process belongs to, if these are of interest.
    server: Option<NfsServer>,
}

impl KnownProcess {
    /// Whether the process has ended. This never waits.
    fn has_ended(&self, pid: u32) -> bool {
        has_ended(self.descriptor.as_ref(), pid)
    }
}

/// Whether a process has ended, by its pidfd if there is one. This never waits.
fn has_ended(descriptor: Option<&OwnedFd>, pid: u32) -> bool {
    match descriptor {
        Some(descriptor) => {
            let mut ready = [PollFd::new(descriptor, PollFlags::IN)];
            poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0)
        }
        None => {
            Pid::from_raw(pid as i32).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
        }
    }
}

/// The callers that have been met.
pub struct CallerTable {
    known: Mutex<KnownCallers>,
    news: Option<Arc<NewsSocket>>,
}

impl CallerTable {
    /// A table that knows this process alone, which is the command of the run.
    pub fn new(log: OperationLog, shown: PathShown) -> CallerTable {
        let news = NewsSocket::open().map(Arc::new);
        let known = KnownCallers {
            log,
            shown,
            news: news.clone(),
            threads: HashMap::new(),
            processes: HashMap::new(),
            execs: HashMap::new(),
            executed: Vec::new(),
            past: PastCallers::default(),
            nfs: None,
            news_count: 0,
            forgotten: 0,
            unknown: 0,
            epochs: 0,
        };
        let table = CallerTable {
            known: Mutex::new(known),
            news,
        };
        table.identify(std::process::id());
        table
    }

    /// Readable when there are news of processes. None if the kernel tells none.
    pub fn news(&self) -> Option<&NewsSocket> {
        self.news.as_deref()
    }

    fn known(&self) -> MutexGuard<'_, KnownCallers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller of a request by this thread, which waits for the answer.
    pub fn identify(&self, thread: u32) -> Caller {
        let since = {
            let mut known = self.known();
            known.hear();
            match known.current(thread) {
                Some(caller) => return caller,
                None => known.news_count,
            }
        };
        let found = match thread {
            0 => None,
            _ => seen(thread),
        };
        let Some(found) = found else {
            return self.known().unknown();
        };
        if let Some(caller) = self.known().recognized(thread, &found, since) {
            return caller;
        }
        match introduced(found.pid) {
            Some(facts) => self.known().meet(thread, &found, *facts, since),
            None => self.known().unknown(),
        }
    }

    /// The caller of a request by this thread, if it is known without a look. The thread may be
    /// executing a program, or ending.
    pub fn remembered(&self, thread: u32) -> Option<Caller> {
        let mut known = self.known();
        known.hear();
        let pid = known.threads.get(&thread).copied().unwrap_or(thread);
        let process = known.processes.get(&pid)?;
        (!process.has_ended(pid)).then(|| Caller::new(pid, thread, process.epoch))
    }

    /// Looks at the known processes that have executed a program, before their next request. The
    /// kernel may read and write their files without a request.
    pub fn look_again(&self) {
        let executed = {
            let mut known = self.known();
            known.hear();
            std::mem::take(&mut known.executed)
        };
        for pid in executed {
            if let Some(facts) = introduced(pid) {
                self.known().renew(facts.process);
            }
        }
    }

    /// Records the processes that have ended since the last time, and forgets them.
    pub fn sweep(&self) {
        let mut known = self.known();
        known.hear();
        let ended = known
            .processes
            .iter()
            .filter(|(pid, of)| of.has_ended(**pid));
        let ended: Vec<u32> = ended.map(|(pid, _)| *pid).collect();
        ended.into_iter().for_each(|pid| known.forget(pid));
    }
}

struct KnownCallers {
    log: OperationLog,
    shown: PathShown,
    news: Option<Arc<NewsSocket>>,
    /// The process of each thread. Empty without news.
    threads: HashMap<u32, u32>,
    processes: HashMap<u32, KnownProcess>,
    /// The number of the latest message that a process has executed a program.
    execs: HashMap<u32, u64>,
    /// The known ones among them that were not looked at since.
    executed: Vec<u32>,
    /// State of the callers of past events.
    past: PastCallers,
    /// The clients of NFS servers. None if servers are processes like others.
    nfs: Option<NfsClients>,
    /// Messages that have been heard.
    news_count: u64,
    /// Execs up to this message are forgotten: each process may have had one.
    forgotten: u64,
    unknown: u32,
    epochs: u64,
}

impl KnownCallers {
    /// Takes the news. After this, what is `current` was so at the last request of its process.
    fn hear(&mut self) {
        let mut missed = false;
        while let Some(news) = self.news.as_ref().and_then(|news| news.next()) {
            self.news_count += 1;
            match news {
                ProcessNews::Executed { pid } => {
                    self.past.heard(pid);
                    if self.execs.len() >= EXECS {
                        self.forget_execs();
                    }
                    self.execs.insert(pid, self.news_count);
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.current = false;
                        self.executed.push(pid);
                    }
                }
                ProcessNews::Ended { thread } => {
                    self.threads.remove(&thread);
                }
                ProcessNews::Missed => missed = true,
            }
        }
        // The kernel drops messages, and says so once, until the socket is empty.
        if missed {
            self.forget_execs();
            self.threads.clear();
        }
    }

    fn forget_execs(&mut self) {
        self.execs.clear();
        self.forgotten = self.news_count;
    }

    /// The caller, if its program is known to be the present one.
    fn current(&self, thread: u32) -> Option<Caller> {
        let pid = *self.threads.get(&thread)?;
        let process = self.processes.get(&pid).filter(|process| process.current)?;
        Some(Caller::new(pid, thread, process.epoch))
    }

    /// The caller, if the program that was seen is the one that is known. `since` counts the news
    /// before the look.
    fn recognized(&mut self, thread: u32, found: &SeenThread, since: u64) -> Option<Caller> {
        let process = self.processes.get(&found.pid)?;
        // An image is hidden for a moment during an exec.
        let same = found.image.is_hidden() || process.image == found.image;
        if process.born != found.born || !same {
            return None;
        }
        let epoch = process.epoch;
        self.keep(thread, found.pid, since);
        Some(Caller::new(found.pid, thread, epoch))
    }

    /// Lets the next request of the thread pass without a look, unless news say otherwise.
    fn keep(&mut self, thread: u32, pid: u32, since: u64) {
        self.hear();
        let executed = self.execs.get(&pid).is_some_and(|of| *of > since);
        let sure = self.news.is_some() && !executed && self.forgotten <= since;
        if let Some(process) = self.processes.get_mut(&pid).filter(|_| sure) {
            process.current = true;
            if self.threads.len() >= THREADS {
                self.threads.clear();
            }
            self.threads.insert(thread, pid);
        }
    }

    /// Takes a process into the table, or its new program, and records it.
    fn meet(&mut self, thread: u32, found: &SeenThread, facts: Introduction, since: u64) -> Caller {
        // The thread ended between two looks, and its id went to another one.
        if facts.process.stat.born != found.born {
            return self.unknown();
        }
        let forked = facts.forked_from.is_some();
        if let Some(parent) = facts.forked_from {
            self.admit(parent, false);
        }
        let epoch = self.admit(facts.process, forked);
        self.keep(thread, found.pid, since);
        Caller::new(found.pid, thread, epoch)
    }

    /// Takes in the present program of a known process.
    fn renew(&mut self, facts: ProcessFacts) {
        let known = self.processes.get(&facts.pid);
        if known.is_some_and(|known| known.born == facts.stat.born) {
            self.admit(facts, false);
        }
    }

    fn admit(&mut self, facts: ProcessFacts, forked: bool) -> u64 {
        let (pid, stat) = (facts.pid, facts.stat);
        let known = self.processes.get(&pid).filter(|of| of.born == stat.born);
        if let Some(known) = known {
            if stat.image.is_hidden() || known.image == stat.image {
                return known.epoch;
            }
            self.record_program(&facts);
        } else {
            self.forget(pid);
            let directory = facts.directory.as_deref();
            let directory = directory.map(|path| self.shown.behind(path));
            let directory = directory.unwrap_or_default();
            self.log.born(pid, stat.parent, &directory, counter());
            if !forked {
                self.record_program(&facts);
            }
        }
        self.epochs += 1;
        let server = self.nfs.as_ref().and_then(|_| NfsServer::of(&facts));
        let process = KnownProcess {
            server,
            born: stat.born,
            image: stat.image,
            epoch: self.epochs,
            descriptor: facts.descriptor,
            current: false,
        };
        self.processes.insert(pid, process);
        self.epochs
    }

    fn record_program(&self, facts: &ProcessFacts) {
        // A thread of the kernel has no program.
        if let Some(path) = &facts.program {
            let path = self.shown.behind(path);
            self.log
                .program(facts.pid, &path, &facts.arguments, counter());
        }
    }

    /// Records that a process has ended, if it is known.
    fn forget(&mut self, pid: u32) {
        if self.processes.remove(&pid).is_some() {
            if let Some(clients) = &mut self.nfs {
                clients.forget(pid, &self.log);
            }
            self.log.gone(pid, counter());
        }
    }

    /// A process of which nothing is known.
    fn unknown(&mut self) -> Caller {
        self.unknown = (self.unknown + 1) % UNNUMBERED;
        self.epochs += 1;
        let pid = UNNUMBERED + self.unknown;
        Caller::new(pid, pid, self.epochs)
    }
}
