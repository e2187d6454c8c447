//! Descriptors that nobody saw being made: what the command inherits, and what `/proc` says of processes without a recorder.
//!
//! A list replaces what was believed of a process: what it does not name was closed. A pipe that only lists tell of was made by the
//! process that was the parent of who is found with it. An end that was given to nobody, as standard input or output, is with its
//! maker or with a child of it that nobody ever met: the maker can have read or written there.

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

/// What `/proc` adds to the name of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// A list that is being given.
#[derive(Debug)]
pub(super) struct DescriptorList {
    pid: Pid,
    /// How many are to come.
    left: i32,
    /// It is what the next exec leaves.
    exec: bool,
    /// The process is a copy of its parent, of which nothing else was seen yet.
    copy: bool,
    /// What was believed that it holds, and was not found yet.
    old: BTreeMap<i32, Descriptor>,
    /// The ends of pipes it was found with.
    pipes: Vec<(ObjectId, i32, OpenMode)>,
}

/// Who was found at the ends of a pipe that only lists tell of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PipeEndsSeen {
    /// Somebody has it, but for its maker.
    pub(super) shared: bool,
    /// It is the standard input of somebody who can't write to it.
    pub(super) reader: bool,
    /// It is an output of somebody who can't read from it.
    pub(super) writer: bool,
}

/// What was learned from lists.
#[derive(Debug, Default)]
pub(super) struct DescriptorLists {
    now: Option<DescriptorList>,
    pub(super) ends: FxHashMap<ObjectId, PipeEndsSeen>,
}

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The supervisor saw that a process holds this descriptor.
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
        // Its recorder knows better, but not what the kernel calls its channels.
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
        let copy =
            process.epoch_number == 0 && !process.forked && !process.listed && !process.command;
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

    /// Anything else that the process does, or another list, ends a list that was cut.
    pub(super) fn other_than_list(&mut self, pid: Pid) -> Result<(), S::Error> {
        match &self.lists.now {
            Some(list) if list.pid == pid => self.end_list(),
            _ => Ok(()),
        }
    }

    /// What was not on the list was closed.
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
            // Mappings are no descriptors, and which socket is which was not said.
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

    /// One entry of a list.
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

    /// What the process held, and what its parent holds.
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

    /// What the entry leads to; nothing if that is for its maker to have.
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
        // What was opened in a container is named as in there, what was handed in from outside as out here.
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

    /// A file whose name is gone, and that nobody was seen to open.
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
            // Its own pipe: what it is for is seen when somebody else is found with it.
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
        // What was logged by number has a name now.
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

/// What an entry of a list leads to, and the name it is used by.
type ListedObject = Option<(ObjectId, PathId)>;

fn is_channel(target: &[u8]) -> bool {
    target.starts_with(b"pipe:[") || target.starts_with(b"socket:[")
}
