//! Descriptors that the fold did not see being made. In: the descriptors that the command inherits,
//! and the lists that `/proc` gives of processes without a recorder.
//!
//! - A list replaces what the fold believed of a process: a descriptor that is not on the list was
//!   closed.
//! - If only lists mention a pipe, the parent of the process that is found with it made it.
//! - An end of such a pipe may be found with no process as its standard input or output. Then the
//!   maker has that end, or a child of the maker that was never met. So the maker can have read or
//!   written there.

use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::{Outcome, Pid, Time, Via};
use rustc_hash::FxHashMap;

use super::inherited::OpenMode;
use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::process::{Descriptor, NAMELESS, OpenFile};

/// The text that `/proc` adds to the name of a file whose name is gone.
const DELETED: &[u8] = b" (deleted)";

/// A list of which some entries may still come.
#[derive(Debug, Clone)]
pub(super) struct DescriptorList {
    pid: Pid,
    /// How many entries are still to come.
    left: i32,
    /// The list names the descriptors that stay open over the next exec.
    exec: bool,
    /// The process is a copy of its parent and has not been seen to do anything yet.
    copy: bool,
    /// Descriptors that the fold believed to be open and that the list has not named yet.
    old: BTreeMap<i32, Descriptor>,
    /// The ends of pipes that the list names.
    pipes: Vec<(ObjectId, i32, OpenMode)>,
}

/// The processes found at the ends of a pipe that only lists mention.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PipeEndsSeen {
    /// A process other than its maker has it.
    pub(super) shared: bool,
    /// It is the standard input of a process that cannot write to it.
    pub(super) reader: bool,
    /// It is an output of a process that cannot read from it.
    pub(super) writer: bool,
}

/// The facts that come from lists.
#[derive(Debug, Clone, Default)]
pub(super) struct DescriptorLists {
    now: Option<DescriptorList>,
    pub(super) ends: FxHashMap<ObjectId, PipeEndsSeen>,
}

impl<S: Sink> Fold<'_, S> {
    /// Notes that the supervisor saw this descriptor open in a process.
    pub(super) fn hold(
        &mut self,
        call: CallContext,
        fd: i32,
        flags: Option<i32>,
        target: &[u8],
    ) -> Result<(), S::Error> {
        if fd < 0 {
            return self.list_begins(call, flags == Some(1));
        }
        let mode = OpenMode::of(flags);
        if let Some(mut list) = self.lists.now.take_if(|list| list.pid == call.pid) {
            self.listed(call, &mut list, fd, mode, target)?;
            list.left -= 1;
            let done = list.left <= 0;
            self.lists.now = Some(list);
            return if done { self.end_list() } else { Ok(()) };
        }
        // The recorder in the process knows the descriptor better than the list does. But it does
        // not know the kernel's names of channels.
        let known = self.descriptor(call, fd).and_then(|h| h.what.clone());
        if let Some(what) = known.filter(|_| is_channel(target)) {
            self.is_called(what.source, target);
        }
        Ok(())
    }

    pub(super) fn list_begins(&mut self, call: CallContext, exec: bool) -> Result<(), S::Error> {
        self.end_list()?;
        let recorded = self.epochs[call.epoch as usize]
            .as_ref()
            .is_none_or(|e| e.recorded);
        let Some(process) = self.processes.get_mut(&call.pid).filter(|_| !recorded) else {
            return Ok(());
        };
        let copy = process.can_be_a_copy();
        process.listed = true;
        let left = match call.outcome {
            Outcome::Done(count) => count,
            _ => 0,
        };
        let old = std::mem::take(&mut process.descriptors);
        let (pid, exec) = (call.pid, exec);
        self.lists.now = Some(DescriptorList {
            pid,
            left,
            exec,
            copy,
            old,
            pipes: Vec::new(),
        });
        if left <= 0 { self.end_list() } else { Ok(()) }
    }

    /// Ends a list that was cut short. Another list, or any other event of the process, shows that
    /// no further entry comes.
    pub(super) fn other_than_list(&mut self, pid: Pid) -> Result<(), S::Error> {
        match &self.lists.now {
            Some(list) if list.pid == pid => self.end_list(),
            _ => Ok(()),
        }
    }

    /// Ends the list. A descriptor that was not on it was closed.
    pub(super) fn end_list(&mut self) -> Result<(), S::Error> {
        let Some(list) = self.lists.now.take() else {
            return Ok(());
        };
        for &(pipe, fd, mode) in &list.pipes {
            let both = list
                .pipes
                .iter()
                .any(|&(p, _, m)| p == pipe && (m.reads, m.writes) != (mode.reads, mode.writes));
            let given = !both && !mode.cloexec;
            let ends = self.lists.ends.entry(pipe).or_default();
            ends.shared = true;
            ends.reader |= given && mode.reads && fd == 0;
            ends.writer |= given && mode.writes && (fd == 1 || fd == 2);
        }
        let Some(epoch) = self.processes.get(&list.pid).map(|p| p.epoch) else {
            return Ok(());
        };
        let now = self.now;
        for (fd, held) in list.old {
            let Some(what) = held.what.clone() else {
                continue;
            };
            let socket = self.object(what.source).kind == EntityKind::Socket;
            // The list does not name mappings, because they are not descriptors. It does not tell
            // which socket is which.
            if fd <= NAMELESS && (socket || what.via == Via::Library) {
                if let Some(process) = self.processes.get_mut(&list.pid) {
                    process.descriptors.insert(fd, held);
                }
            } else if list.copy || fd <= NAMELESS && !held.own {
                self.let_go(&what, now, None)?;
            } else {
                self.release(epoch, fd, held, now, None)?;
            }
        }
        Ok(())
    }

    /// Takes one entry of a list.
    pub(super) fn listed(
        &mut self,
        call: CallContext,
        list: &mut DescriptorList,
        fd: i32,
        mode: OpenMode,
        target: &[u8],
    ) -> Result<(), S::Error> {
        let Some((object, path)) = self.listed_object(call, list, fd, target)? else {
            return Ok(());
        };
        if self.lists.ends.contains_key(&object) {
            list.pipes.push((object, fd, mode));
        }
        let leads = |held: &Descriptor| {
            held.what.as_ref().is_some_and(|w| {
                w.source == object && (w.looked || (w.reads, w.writes) == (mode.reads, mode.writes))
            })
        };
        let same = list.old.get(&fd).filter(|held| leads(held)).map(|_| fd);
        let nameless = || {
            let mut candidates = list.old.range(..=NAMELESS);
            candidates
                .find(|(_, held)| held.own && leads(held))
                .map(|(&fd, _)| fd)
        };
        if let Some(mut held) = same.or_else(nameless).and_then(|at| list.old.remove(&at)) {
            held.cloexec = mode.cloexec;
            if let Some(process) = self.processes.get_mut(&call.pid) {
                process.descriptors.insert(fd, held);
            }
            return Ok(());
        }
        let socket = self
            .open_before(call, list)
            .find(|w| w.source == object && w.target != object);
        let held = match socket.cloned() {
            Some(socket) => Descriptor {
                own: false,
                ..Descriptor::opened(socket, call.time, mode.cloexec)
            },
            None => self.inherited_open(call, object, path, mode)?,
        };
        self.install(call, fd, held)
    }

    /// The files that the process had open before the list, and those that its parent has open.
    pub(super) fn open_before<'f>(
        &'f self,
        call: CallContext,
        list: &'f DescriptorList,
    ) -> impl Iterator<Item = &'f Rc<OpenFile>> {
        let parent = self.processes.get(&call.pid).map_or(0, |p| p.parent);
        let above = self
            .processes
            .get(&parent)
            .into_iter()
            .flat_map(|p| p.descriptors.values());
        list.old
            .values()
            .chain(above)
            .filter_map(|h| h.what.as_ref())
    }

    /// The object that the entry leads to. `None` if it is not known, or if it is a pipe that the
    /// process itself made: that pipe may be meant for other processes.
    pub(super) fn listed_object(
        &mut self,
        call: CallContext,
        list: &DescriptorList,
        fd: i32,
        target: &[u8],
    ) -> Result<ListedObject, S::Error> {
        if is_channel(target) {
            return self.listed_channel(call, list, fd, target);
        }
        if !target.starts_with(b"/") {
            return Ok(None);
        }
        let name = target.strip_suffix(DELETED).unwrap_or(target);
        // A file opened in a container has its name inside the container. A descriptor handed in
        // from outside has the file's name outside.
        let top = self.top_of(call);
        let inside = self.walk(top, top, name);
        let path = match self.names.contains_key(&inside) {
            true => inside,
            false => self.walk(ROOT, ROOT, name),
        };
        if name.len() == target.len() {
            return Ok(Some((self.lookup(path, call, None)?, path)));
        }
        let mut known = self.open_before(call, list);
        let found = known
            .find(|w| w.path == path || self.object(w.source).now().path == path)
            .map(|w| w.source);
        drop(known);
        Ok(Some(match found {
            Some(object) => (object, path),
            None => (self.unnamed(target, call.time), ROOT),
        }))
    }

    /// A file whose name is gone and whose open was not seen.
    pub(super) fn unnamed(&mut self, target: &[u8], time: Time) -> ObjectId {
        let kind = if target.starts_with(b"/memfd:") {
            EntityKind::Memory
        } else {
            EntityKind::File
        };
        self.named_outside(kind, target, time)
    }

    pub(super) fn listed_channel(
        &mut self,
        call: CallContext,
        list: &DescriptorList,
        fd: i32,
        target: &[u8],
    ) -> Result<ListedObject, S::Error> {
        if let Some(known) = self.called(target) {
            // The process made this pipe. Its purpose shows when another process is found with it.
            let process = self.processes.get(&call.pid).filter(|_| !list.exec);
            let own = process.is_some_and(|p| p.made.iter().any(|made| made.object == known));
            return Ok((!own).then_some((known, ROOT)));
        }
        let old = list.old.get(&fd).and_then(|h| h.what.as_deref());
        let old = old.filter(|_| !list.copy).map(|w| w.source);
        let pipe = target.starts_with(b"pipe:");
        let kind = if pipe {
            EntityKind::Pipe
        } else {
            EntityKind::Socket
        };
        // The log has this channel by its descriptor number. Now its name is known.
        if let Some(object) =
            old.filter(|&o| self.object(o).kind == kind && self.is_called(o, target))
        {
            return Ok(Some((object, ROOT)));
        }
        let maker = if list.copy {
            self.processes.get(&call.pid).map_or(0, |p| p.parent)
        } else {
            call.pid
        };
        let object = self.channel_outside(target, call.time);
        if pipe && self.made_by(maker, object, call.time) {
            self.lists.ends.entry(object).or_default();
            return self.listed_channel(call, list, fd, target);
        }
        Ok(Some((object, ROOT)))
    }
}

/// The object that an entry of a list leads to, and the name by which it is used.
type ListedObject = Option<(ObjectId, PathId)>;

fn is_channel(target: &[u8]) -> bool {
    target.starts_with(b"pipe:[") || target.starts_with(b"socket:[")
}
