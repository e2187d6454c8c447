//! The directories that relative paths of recorded processes start from: current directories, and
//! directories that processes hold open.
//!
//! Invariant: a returned directory is the right one. If it is not known, the result is `None`.

use backstory_abi::Chunk;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most processes that are remembered. With more, all are forgotten.
const PROCESSES: usize = 100_000;

type Path = Arc<[u8]>;

/// The thread that owns a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ThreadKey {
    epoch: u64,
    tid: u32,
    /// Its process id, in the supervisor's pid namespace.
    pub(super) pid: u32,
    /// The parent of the process at its start.
    pub(super) parent: u32,
}

impl ThreadKey {
    /// The owner of the chunk with this header.
    pub(super) fn of(head: &Chunk) -> ThreadKey {
        ThreadKey {
            epoch: head.epoch,
            tid: head.tid,
            pid: if head.host_pid == 0 {
                head.pid
            } else {
                head.host_pid
            },
            parent: head.ppid,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Process {
    cwd: Option<Path>,
    descriptors: FxHashMap<i32, Path>,
}

/// The directories of all processes.
#[derive(Debug, Default)]
pub(super) struct Paths {
    processes: FxHashMap<u32, Process>,
    /// Current directories of children that share their parent's memory and log in its chunk.
    children: FxHashMap<ThreadKey, Option<Path>>,
}

impl Paths {
    fn process(&mut self, pid: u32) -> &mut Process {
        if self.processes.len() >= PROCESSES {
            self.processes.clear();
        }
        self.processes.entry(pid).or_default()
    }

    /// A process executes a program. Its current directory is `cwd`; its open descriptors are
    /// unknown.
    pub(super) fn starts(&mut self, pid: u32, cwd: Option<Vec<u8>>) {
        *self.process(pid) = Process {
            cwd: cwd.map(Path::from),
            descriptors: FxHashMap::default(),
        };
    }

    /// A recorder starts. With `forked`, its process has what its parent has. Otherwise its program
    /// has been announced by [`Paths::starts`].
    pub(super) fn begins(&mut self, pid: u32, parent: u32, forked: bool) {
        if forked {
            let inherited = self.processes.get(&parent).cloned().unwrap_or_default();
            *self.process(pid) = inherited;
        }
    }

    /// A process has ended.
    pub(super) fn ends(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// A process changes its current directory. With `child`, a child that shares the process's
    /// memory does so instead.
    pub(super) fn moves(&mut self, pid: u32, child: Option<ThreadKey>, to: Option<&[u8]>) {
        let to = to.map(Path::from);
        match child {
            Some(thread) => drop(self.children.insert(thread, to)),
            None => self.process(pid).cwd = to,
        }
    }

    /// The child that shared a thread's memory executes another program now.
    pub(super) fn child_is_gone(&mut self, thread: ThreadKey) {
        self.children.remove(&thread);
    }

    /// A descriptor leads to this path.
    pub(super) fn open(&mut self, pid: u32, fd: i32, path: &[u8]) {
        self.process(pid).descriptors.insert(fd, path.into());
    }

    /// A descriptor is duplicated.
    pub(super) fn dup(&mut self, pid: u32, from: i32, to: i32) {
        let descriptors = &mut self.process(pid).descriptors;
        match descriptors.get(&from).cloned() {
            Some(path) => drop(descriptors.insert(to, path)),
            None => drop(descriptors.remove(&to)),
        }
    }

    /// A range of descriptors is closed.
    pub(super) fn close(&mut self, pid: u32, first: i32, last: u32) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if first as u32 == last {
            process.descriptors.remove(&first);
        } else {
            process
                .descriptors
                .retain(|fd, _| !(first as u32..=last).contains(&(*fd as u32)));
        }
    }

    /// The directory from which a relative path starts.
    pub(super) fn directory(&self, pid: u32, child: Option<ThreadKey>, dir: i32) -> Option<Path> {
        let process = self.processes.get(&pid);
        if dir != libc::AT_FDCWD {
            return process?.descriptors.get(&dir).cloned();
        }
        match child.and_then(|thread| self.children.get(&thread)) {
            Some(moved) => moved.clone(),
            None => process?.cwd.clone(),
        }
    }
}
