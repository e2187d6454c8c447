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
    /// When its recorder began, if a fork made it.
    began: u64,
}

/// A child that its parent has logged, and whose recorder has not begun yet.
#[derive(Debug)]
struct Unborn {
    parent: u32,
    /// The state of the parent when it forked.
    inherited: Process,
}

/// The directories of all processes.
#[derive(Debug, Default)]
pub(super) struct Paths {
    processes: FxHashMap<u32, Process>,
    unborn: FxHashMap<u32, Unborn>,
    /// There were too many unborn children, and all of them were forgotten.
    forgotten: bool,
    /// Of a command that starts without the filter: its parent, and its directory.
    command: Option<(u32, Path)>,
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

    /// The first program that this process executes starts in this directory.
    pub(super) fn expect_command(&mut self, parent: u32, directory: &[u8]) {
        self.command = Some((parent, directory.into()));
    }

    /// A process executes a program. Its current directory is `cwd`; its open descriptors are
    /// unknown.
    pub(super) fn starts(&mut self, pid: u32, cwd: Option<Vec<u8>>) {
        let process = self.process(pid);
        process.cwd = cwd.map(Path::from);
        process.descriptors.clear();
    }

    /// A process forked a child at `time`. The child has what the process had then. It may log its
    /// first operation only after the process has changed its directory.
    pub(super) fn forks(&mut self, time: u64, parent: u32, child: u32) {
        let known = self.processes.get(&child);
        if known.is_some_and(|known| known.began > time) {
            return; // the child was faster than its parent's record
        }
        if self.unborn.len() >= PROCESSES {
            self.unborn.clear();
            self.forgotten = true;
        }
        let inherited = self.processes.get(&parent).cloned().unwrap_or_default();
        self.unborn.insert(child, Unborn { parent, inherited });
    }

    /// A recorder starts. With `forked`, its process has what its parent had at the fork. Otherwise
    /// its program has been announced by [`Paths::starts`], or is the command.
    pub(super) fn begins(&mut self, time: u64, pid: u32, parent: u32, forked: bool) {
        if !forked {
            if !self.processes.contains_key(&pid)
                && let Some((_, cwd)) = self.command.take_if(|(starter, _)| *starter == parent)
            {
                self.process(pid).cwd = Some(cwd);
            }
            return;
        }
        let unborn = self.unborn.remove(&pid);
        let inherited = match unborn.filter(|unborn| unborn.parent == parent) {
            Some(unborn) => unborn.inherited,
            None if self.forgotten => Process::default(),
            // The parent has not logged the fork yet, and so nothing that it did later.
            None => self.processes.get(&parent).cloned().unwrap_or_default(),
        };
        *self.process(pid) = Process {
            began: time,
            ..inherited
        };
    }

    /// A process has ended.
    pub(super) fn ends(&mut self, pid: u32) {
        self.processes.remove(&pid);
        self.unborn.remove(&pid);
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

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: u32 = 7;
    const CHILD: u32 = 8;

    /// A process in the directory `/before`.
    fn paths() -> Paths {
        let mut paths = Paths::default();
        paths.starts(PARENT, Some(b"/before".to_vec()));
        paths
    }

    fn directory(paths: &Paths, pid: u32) -> Option<Vec<u8>> {
        let found = paths.directory(pid, None, libc::AT_FDCWD);
        found.map(|path| path.to_vec())
    }

    #[test]
    fn a_slow_child_has_the_directory_that_its_parent_had_at_the_fork() {
        let mut paths = paths();
        paths.open(PARENT, 3, b"/opened");
        paths.forks(10, PARENT, CHILD);
        paths.moves(PARENT, None, Some(b"/after"));
        paths.close(PARENT, 3, 3);
        paths.begins(30, CHILD, PARENT, true);
        assert_eq!(directory(&paths, CHILD).unwrap(), b"/before");
        assert_eq!(&paths.directory(CHILD, None, 3).unwrap()[..], b"/opened");
        assert_eq!(directory(&paths, PARENT).unwrap(), b"/after");
    }

    #[test]
    fn a_child_that_is_faster_than_its_parents_record_keeps_its_own_directory() {
        let mut paths = paths();
        paths.begins(20, CHILD, PARENT, true);
        assert_eq!(directory(&paths, CHILD).unwrap(), b"/before");
        paths.moves(CHILD, None, Some(b"/own"));
        paths.starts(CHILD, Some(b"/own".to_vec()));
        paths.forks(10, PARENT, CHILD);
        assert_eq!(directory(&paths, CHILD).unwrap(), b"/own");
        // A later process with its number has another directory.
        paths.moves(PARENT, None, Some(b"/after"));
        paths.begins(40, CHILD, PARENT, true);
        assert_eq!(directory(&paths, CHILD).unwrap(), b"/after");
    }

    #[test]
    fn a_child_of_another_process_with_the_same_number_inherits_nothing_wrong() {
        let mut paths = paths();
        paths.starts(9, Some(b"/other".to_vec()));
        // The number of a process in another pid namespace.
        paths.forks(10, 9, CHILD);
        paths.begins(20, CHILD, PARENT, true);
        assert_eq!(directory(&paths, CHILD).unwrap(), b"/before");
    }
}
