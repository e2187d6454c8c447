//! From what a program wrote to an absolute path.
//!
//! `..` is taken back to the directory it lexically names, unless what stands before it is a symbolic link (made in this run, or
//! found by [`crate::FinalState`]): then it is kept, so that the path still names what the kernel found. Links made in this run are
//! followed; for older ones identity tells that two paths are one file.

use backstory_eventlog::event::CWD;

use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::paths::{PathId, ROOT};

/// The most links that the kernel follows in a path (path_resolution(7)).
pub(super) const MAX_LINKS: u32 = 40;

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The absolute path of `path`, which starts at the directory descriptor `dir` if it is relative. `None` if that descriptor is
    /// not known, or if the call failed because it named nothing.
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
            _ => process.descriptors.get(&dir)?.location,
        };
        let magic = [b"/proc/".as_slice(), b"/dev/fd/"]
            .iter()
            .any(|m| path.starts_with(m));
        let path = self.walk(base, top, path);
        // What was not found, or not allowed, keeps the name that the program gave it.
        if magic
            && !call.outcome.failed()
            && let Some(path) = self.through_process(call, path)
        {
            return Some(path);
        }
        Some(self.shown(call.pid, path))
    }

    /// Where absolute paths start, as a call has them. The kernel's are those of our own root, unless the process has other mounts.
    pub(super) fn top_of(&self, call: CallContext) -> PathId {
        match self.processes.get(&call.pid) {
            Some(process) if process.own_mounts || !call.resolved => {
                process.fs(call.tid).root.get()
            }
            _ => ROOT,
        }
    }

    /// A path that goes through what a process has open (`/proc/self/fd/3/name`), or stands in (`/proc/self/cwd/name`).
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

    /// Where the link of a process in `/proc` leads.
    fn place_of_process(&self, call: CallContext, link: PathId) -> Option<PathId> {
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

    /// Joins `path` to `base`; never above `top`.
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

    /// What `..` after `at` leads to, or `None` if that is not known by name.
    fn before(&mut self, at: PathId) -> Option<PathId> {
        if self.paths.name(at) == b".." {
            return None;
        }
        if self.targets.contains_key(&at) {
            let followed = self.follow(at, true);
            return Some(self.paths.parent(followed));
        }
        if self.is_older_link(at) {
            return None;
        }
        Some(self.paths.parent(at))
    }

    /// `path` with links made in this run followed; the one at its end only if `last`.
    pub(super) fn follow(&mut self, path: PathId, last: bool) -> PathId {
        let mut path = path;
        for _ in 0..MAX_LINKS {
            if self.targets.is_empty() {
                break;
            }
            let Some((link, target)) = self.first_link(path, last) else {
                break;
            };
            path = self.paths.moved(path, link, target);
        }
        path
    }

    fn first_link(&self, path: PathId, last: bool) -> Option<(PathId, PathId)> {
        let mut found = None;
        let mut at = if last { path } else { self.paths.parent(path) };
        while at != ROOT {
            if let Some(&target) = self.targets.get(&at) {
                found = Some((at, target));
            }
            at = self.paths.parent(at);
        }
        found
    }

    /// The kind that follows from where a path lies: the kernel's own trees hold no files with versions.
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

    /// The descriptor that a path such as `/dev/fd/3`, `/dev/stdin` or `/proc/PID/fd/3` stands for, and whose.
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
