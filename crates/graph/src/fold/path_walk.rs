//! From the path that a program wrote to an absolute path.
//!
//! - `..` leads back to the directory that the text before it names. After a symbolic link `..`
//!   stays in the path, so that the path still names the file that the kernel found. Such links
//!   were made in this run, or found by [`crate::FinalState`].
//! - Links made in this run are followed. For older links, the identity shows that two paths lead
//!   to one file.

use backstory_eventlog::event::CWD;

use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::paths::{PathId, ROOT};

impl<S: Sink> Fold<'_, S> {
    /// The absolute path of `path`, which starts at the directory descriptor `dir` if it is
    /// relative. `None` if that descriptor is not known. `None` also if the call failed because the
    /// path was empty.
    pub(super) fn place(&mut self, call: CallContext, dir: i32, path: &[u8]) -> Option<PathId> {
        if path.is_empty() && call.outcome.failed() {
            return None;
        }
        let process = self.processes.get(&call.pid)?;
        let fs = process.fs(call.tid);
        let top = self.top_of(call);
        let base = match path.first() {
            Some(b'/') => top,
            _ if dir == CWD => fs.cwd.get(),
            _ => match process.descriptors.get(&dir) {
                Some(directory) => directory.location,
                None => {
                    // The kernel's notification of an open does not have the number.
                    let may_be_nameless = process.nameless_count() > 0;
                    let succeeded = call.outcome.value().is_some_and(|value| value >= 0);
                    self.lacks_directory |= succeeded && !may_be_nameless;
                    return None;
                }
            },
        };
        let magic = [b"/proc/".as_slice(), b"/dev/fd/"]
            .iter()
            .any(|m| path.starts_with(m));
        let path = self.walk(base, top, path);
        let path = self.shown(call.pid, path);
        // A path that was not found, or not allowed, keeps the name that the program gave it.
        if magic
            && !call.outcome.failed()
            && let Some(path) = self.through_process(call, path)
        {
            return Some(path);
        }
        Some(path)
    }

    /// The directory at which the absolute paths of a call start. The kernel's paths start at the
    /// supervisor's root, unless the process has other mounts.
    pub(super) fn top_of(&self, call: CallContext) -> PathId {
        match self.processes.get(&call.pid) {
            Some(process) if process.own_mounts || !call.resolved => {
                process.fs(call.tid).root.get()
            }
            _ => ROOT,
        }
    }

    /// Follows a path that goes through a process: through a file that it has open
    /// (`/proc/self/fd/3/name`) or through its current directory (`/proc/self/cwd/name`).
    fn through_process(&mut self, call: CallContext, path: PathId) -> Option<PathId> {
        let mut at = self.paths.parent(path);
        while at != ROOT {
            if let Some(place) = self.place_of_process(call, at) {
                return Some(self.paths.moved(path, at, place));
            }
            at = self.paths.parent(at);
        }
        None
    }

    /// The target of a process's link in `/proc`.
    pub(super) fn place_of_process(&self, call: CallContext, link: PathId) -> Option<PathId> {
        if let Some((owner, fd)) = self.descriptor_by_place(call, link) {
            let held = self.processes.get(&owner)?.descriptors.get(&fd)?;
            return held.what.as_ref().map(|_| held.location);
        }
        let of = self.paths.parent(link);
        let proc = self.paths.parent(of);
        if self.paths.name(proc) != b"proc" || self.paths.parent(proc) != ROOT {
            return None;
        }
        let owner = self.owner(call, self.paths.name(of))?;
        let fs = self.processes.get(&owner)?.fs(call.tid);
        match self.paths.name(link) {
            b"cwd" => Some(fs.cwd.get()),
            b"root" => Some(fs.root.get()),
            _ => None,
        }
    }

    /// The process whose directory in `/proc` has this name.
    fn owner(&self, call: CallContext, name: &[u8]) -> Option<u32> {
        match name {
            b"self" | b"thread-self" => Some(call.pid),
            digits => std::str::from_utf8(digits).ok()?.parse().ok(),
        }
    }

    /// The absolute path, with links at the end followed.
    pub(super) fn place_of_content(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
    ) -> Option<PathId> {
        let path = self.place(call, dir, path)?;
        Some(self.follow(path, true))
    }

    /// Joins `path` to `base`. The result is never above `top`.
    pub(super) fn walk(&mut self, base: PathId, top: PathId, path: &[u8]) -> PathId {
        let mut at = base;
        for part in path.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." if at == top => {}
                b".." => match self.before(at) {
                    Some(directory) => at = directory,
                    None => at = self.paths.child(at, b".."),
                },
                name => at = self.paths.child(at, name),
            }
        }
        at
    }

    /// The directory that `..` after `at` leads to, or `None` if that is not known by name.
    fn before(&mut self, at: PathId) -> Option<PathId> {
        if self.paths.name(at) == b".." {
            return None;
        }
        if self.links.target(at).is_some() {
            let followed = self.follow(at, true);
            return Some(self.paths.parent(followed));
        }
        if self.is_older_link(at) {
            return None;
        }
        Some(self.paths.parent(at))
    }

    /// `path` with the links made in this run followed. A link at its end is followed only if
    /// `last`.
    pub(super) fn follow(&mut self, path: PathId, last: bool) -> PathId {
        self.links.follow(&mut self.paths, path, last)
    }

    /// The kind that follows from the position of a path: the kernel's own trees hold no files with
    /// versions.
    pub(super) fn kind_by_place(&self, path: PathId) -> Option<EntityKind> {
        let (mut at, mut below) = (path, ROOT);
        while at != ROOT {
            let parent = self.paths.parent(at);
            if parent == ROOT {
                break;
            }
            (below, at) = (at, parent);
        }
        match self.paths.name(at) {
            _ if at == path => None,
            b"dev" if self.paths.name(below) == b"shm" => Some(EntityKind::Memory),
            b"dev" | b"proc" | b"sys" => Some(EntityKind::Device),
            _ => None,
        }
    }

    /// The process and its descriptor that a path such as `/dev/fd/3`, `/dev/stdin` or
    /// `/proc/PID/fd/3` stands for.
    pub(super) fn descriptor_by_place(
        &self,
        call: CallContext,
        path: PathId,
    ) -> Option<(u32, i32)> {
        let name = self.paths.name(path);
        let directory = self.paths.parent(path);
        let above = self.paths.parent(directory);
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
        match (self.paths.name(above), self.paths.name(directory), name) {
            (b"", b"dev", b"stdin") => Some((call.pid, 0)),
            (b"", b"dev", b"stdout") => Some((call.pid, 1)),
            (b"", b"dev", b"stderr") => Some((call.pid, 2)),
            (b"dev", b"fd", digits) => Some((call.pid, number(digits)? as i32)),
            (owner, b"fd", digits) => {
                let proc = self.paths.parent(above);
                if self.paths.name(proc) != b"proc" || self.paths.parent(proc) != ROOT {
                    return None;
                }
                Some((self.owner(call, owner)?, number(digits)? as i32))
            }
            _ => None,
        }
    }
}
