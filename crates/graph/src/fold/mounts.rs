//! Mounts, as far as they give files other names: `mount --bind`, and an exchanged root.
//!
//! A process that sees a directory at another path uses the files of that directory: the fold turns
//! its paths into the names outside. Processes that share a mount namespace share its binds.
//!
//! Absent: mounted file systems, which have no other name, and trees that are moved by descriptor.

use std::cell::RefCell;
use std::rc::Rc;

use backstory_eventlog::event::CWD;

use super::names::NameState;
use super::{CallContext, Fold};
use crate::model::Sink;
use crate::paths::PathId;
use crate::process::FsContext;

/// `CLONE_NEWNS`
const NEW_NAMESPACE: u32 = 0x20000;
/// `CLONE_FS`, `CLONE_NEWNS`, `CLONE_NEWUSER`: each gives the calling thread a current directory of
/// its own.
const OWN_DIRECTORY: u32 = 0x200 | NEW_NAMESPACE | 0x1000_0000;
/// `MS_REMOUNT`, `MS_UNBINDABLE`, `MS_PRIVATE`, `MS_SLAVE`, `MS_SHARED`: nothing is mounted, a
/// mount is changed.
const CHANGES: u32 = 0x20 | 0xf << 17;
/// `MS_BIND`
const BIND: u32 = 0x1000;
/// The most binds that the fold follows one after the other.
const MAX_BINDS: u32 = 16;

impl<S: Sink> Fold<'_, S> {
    /// Gives the process a mount namespace of its own, if `flags` say so. A thread that leaves the
    /// directory of the others, as it does with a namespace, gets its own.
    pub(super) fn part_namespace(&mut self, pid: u32, tid: u32, flags: u32) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if flags & OWN_DIRECTORY != 0 {
            let own = FsContext::clone(process.fs(tid));
            process.own_fs.insert(tid, Rc::new(own));
        }
        if flags & NEW_NAMESPACE != 0 {
            let own = process.binds.borrow().clone();
            process.binds = Rc::new(RefCell::new(own));
            process.own_mounts = true;
        }
    }

    /// The name that `path`, as the process sees it, has outside.
    pub(super) fn shown(&mut self, pid: u32, path: PathId) -> PathId {
        let Some(binds) = self.processes.get(&pid).map(|p| Rc::clone(&p.binds)) else {
            return path;
        };
        let binds = binds.borrow();
        let mut path = path;
        for _ in 0..MAX_BINDS {
            let bind = binds
                .iter()
                .rev()
                .find(|(at, _)| self.paths.within(path, *at));
            let Some(&(at, shows)) = bind else { break };
            path = self.paths.moved(path, at, shows);
        }
        path
    }

    /// Notes that a tree was mounted at `target`, or unmounted. Names below it lead to other files
    /// from now on.
    pub(super) fn mount(
        &mut self,
        call: CallContext,
        source: &[u8],
        target: &[u8],
        unmounted: bool,
        flags: u32,
    ) -> Result<(), S::Error> {
        if call.outcome.failed() || flags & CHANGES != 0 {
            return Ok(());
        }
        let Some(process) = self.processes.get(&call.pid) else {
            return Ok(());
        };
        let (cwd, binds) = (process.fs(call.tid).cwd.get(), Rc::clone(&process.binds));
        let root = self.top_of(call);
        let base = if target.starts_with(b"/") { root } else { cwd };
        // This is the mount point itself, not the directory that another mount shows there.
        let target = self.walk(base, root, target);
        let target = self.follow(target, true);
        let target = self.behind_descriptor(call, target);
        if unmounted {
            let mut binds = binds.borrow_mut();
            if let Some(last) = binds.iter().rposition(|(at, _)| *at == target) {
                binds.remove(last);
            }
            return Ok(());
        }
        let source = (flags & BIND != 0).then(|| self.place_of_content(call, CWD, source));
        let source = source.flatten();
        let source = source.map(|source| self.behind_descriptor(call, source));
        let source = source.filter(|source| *source != target);
        if let Some(source) = source {
            binds.borrow_mut().push((target, source));
        } else {
            self.forget_names_below(target);
        }
        Ok(())
    }

    /// The place of an open descriptor if the path is its link: `/proc/self/fd/3`. Otherwise the
    /// path itself.
    fn behind_descriptor(&mut self, call: CallContext, path: PathId) -> PathId {
        let link = self.shown(call.pid, path);
        self.place_of_process(call, link).unwrap_or(path)
    }

    /// Changes the root of the process. Its old root is shown at `put_old`.
    pub(super) fn pivot(
        &mut self,
        call: CallContext,
        new_root: &[u8],
        put_old: &[u8],
    ) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let Some(process) = self.processes.get(&call.pid) else {
            return Ok(());
        };
        let (cwd, binds) = (process.fs(call.tid).cwd.get(), Rc::clone(&process.binds));
        let root = self.top_of(call);
        let base = |path: &[u8]| if path.starts_with(b"/") { root } else { cwd };
        let (new, old) = (
            self.walk(base(new_root), root, new_root),
            self.walk(base(put_old), root, put_old),
        );
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.fs(call.tid).root.set(new);
            // The process may have come into its namespace unseen: a process that had left the old
            // namespace may have made it, as its own sibling.
            process.own_mounts = true;
        }
        if old != new {
            binds.borrow_mut().push((old, root));
        }
        Ok(())
    }

    fn forget_names_below(&mut self, place: PathId) {
        for path in self.paths.below(place) {
            if let Some(NameState::Is(object)) = self.names.remove(&path) {
                self.object_mut(object).names.retain(|&n| n != path);
            }
            self.missing.remove(&path);
        }
    }
}
