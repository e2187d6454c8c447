//! Descriptors that nobody saw being made: what the command inherits, and what `/proc` says of processes without a recorder.
//!
//! A list replaces what was believed of a process: what it does not name was closed. A pipe that only lists tell of was made by the
//! process that was the parent of who is found with it. An end that was given to nobody, as standard input or output, is with its
//! maker or with a child of it that nobody ever met: the maker can have read or written there.

use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::{Outcome, Pid, Time, Via};
use backstory_files::Ident;
use rustc_hash::FxHashMap;

use super::descriptors::{O_CLOEXEC, at};
use super::opening::{O_ACCMODE, O_PATH, O_RDONLY, O_WRONLY};
use super::{CallContext, Fold};
use crate::activity::Serial;
use crate::model::{Certainty, EntityKind, Interval, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::process::{Descriptor, NAMELESS, OpenFile, UnseenPipe};

/// What `/proc` adds to the name of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// A list that is being given.
#[derive(Debug)]
struct DescriptorList {
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
struct PipeEndsSeen {
    /// Somebody has it, but for its maker.
    shared: bool,
    /// It is the standard input of somebody who can't write to it.
    reader: bool,
    /// It is an output of somebody who can't read from it.
    writer: bool,
}

/// What was learned from lists.
#[derive(Debug, Default)]
pub(super) struct DescriptorLists {
    now: Option<DescriptorList>,
    ends: FxHashMap<ObjectId, PipeEndsSeen>,
}

/// How a descriptor is open.
#[derive(Debug, Clone, Copy)]
struct OpenMode {
    reads: bool,
    writes: bool,
    /// Only a place: nothing goes through it.
    place: bool,
    cloexec: bool,
}

impl OpenMode {
    fn of(flags: Option<i32>) -> OpenMode {
        let access = flags.map(|f| f & O_ACCMODE);
        OpenMode {
            reads: access != Some(O_WRONLY),
            writes: access != Some(O_RDONLY),
            place: flags.is_some_and(|f| f & O_PATH != 0),
            cloexec: flags.is_some_and(|f| f & O_CLOEXEC != 0),
        }
    }
}

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The descriptors the command inherits.
    pub(super) fn inherit_from_header(&mut self, call: CallContext) -> Result<(), S::Error> {
        let header = self.header;
        for (index, (fd, text)) in header.descriptors.iter().enumerate() {
            let (object, path) = if text.starts_with(b"/") {
                let path = self.walk(ROOT, ROOT, text);
                (self.lookup(path, call, None)?, path)
            } else {
                (self.channel_outside(text, call.time), ROOT)
            };
            let flags = header
                .descriptor_flags
                .get(index)
                .copied()
                .filter(|&f| f >= 0);
            let mut mode = OpenMode::of(flags);
            if flags.is_none() {
                // How it was opened is not known, but what for is, mostly: 0 to read, 1 and 2 to write.
                (mode.reads, mode.writes) = (*fd != 1 && *fd != 2, *fd != 0);
            }
            self.object_mut(object).inherited = self.inherited_file(index);
            let held = self.inherited_open(
                CallContext {
                    via: Via::Library,
                    ..call
                },
                object,
                path,
                mode,
            )?;
            self.install(call, *fd, held)?;
        }
        Ok(())
    }

    /// The file behind an inherited descriptor, before the command and at the end, if its name still leads to it.
    fn inherited_file(&self, index: usize) -> Option<(Ident, Ident)> {
        let at = |files: &[Option<Ident>]| files.get(index).copied().flatten();
        let before = at(&self.header.descriptor_files)?;
        let after = at(&self.end?.descriptor_files)?;
        (crate::object::key(&before) == crate::object::key(&after)).then_some((before, after))
    }

    /// A descriptor that was opened by somebody else, some time before.
    fn inherited_open(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
        mode: OpenMode,
    ) -> Result<Descriptor, S::Error> {
        let held = self.object(object);
        let looked = mode.place || held.kind == EntityKind::Directory;
        let before = held.now().number;
        let writes = mode.writes && !looked;
        if writes && !held.untouched() && !held.unchanged_since(call.time, super::SLACK) {
            self.begin_write(call, object, path, false)?;
        }
        let description = OpenFile {
            source: object,
            target: object,
            reads: mode.reads && !looked,
            writes,
            keeps: false,
            path,
            via: call.via,
            looked,
        };
        let mut held = Descriptor::opened(Rc::new(description), call.time, mode.cloexec);
        held.own = false;
        (held.source_from, held.target_from) = (before, self.object(object).now().number);
        Ok(held)
    }

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

    fn list_begins(&mut self, call: CallContext, exec: bool) -> Result<(), S::Error> {
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
    fn end_list(&mut self) -> Result<(), S::Error> {
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
    fn listed(
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
    fn open_before<'f>(
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
    fn listed_object(
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
    fn unnamed(&mut self, target: &[u8], time: Time) -> ObjectId {
        let kind = if target.starts_with(b"/memfd:") {
            EntityKind::Memory
        } else {
            EntityKind::File
        };
        self.named_outside(kind, target, time)
    }

    fn listed_channel(
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

    /// Notes who made a pipe. False if that is not known, or a recorder saw what else it did.
    fn made_by(&mut self, maker: Pid, object: ObjectId, since: Time) -> bool {
        let Some(process) = self.processes.get_mut(&maker).filter(|p| !p.ended) else {
            return false;
        };
        let epoch = process.epoch;
        if self.epochs[epoch as usize]
            .as_ref()
            .is_none_or(|e| e.recorded)
        {
            return false;
        }
        process.made.push(UnseenPipe {
            object,
            since,
            epoch,
        });
        true
    }

    /// Pipes that were made where nobody saw it: the ends at which nobody was found were its maker's to use.
    pub(super) fn own_pipes(&mut self, made: Vec<UnseenPipe>, time: Time) -> Result<(), S::Error> {
        for UnseenPipe {
            object,
            since,
            epoch,
        } in made
        {
            let ends = self.lists.ends.get(&object).copied().unwrap_or_default();
            if self.epochs[epoch as usize].is_none() || !ends.shared {
                continue;
            }
            for (relation, given) in [
                (Relation::Read, ends.reader),
                (Relation::Write, ends.writer),
            ] {
                if !given {
                    self.can_have_used(epoch, object, relation, since, time)?;
                }
            }
        }
        Ok(())
    }

    fn can_have_used(
        &mut self,
        epoch: Serial,
        object: ObjectId,
        relation: Relation,
        since: Time,
        time: Time,
    ) -> Result<(), S::Error> {
        let call = CallContext {
            time,
            pid: 0,
            tid: 0,
            epoch,
            via: Via::Kernel,
            outcome: Outcome::Unknown,
            ident: None,
            resolved: true,
        };
        let entity = self.entity_now(call, object, ROOT)?;
        let interval = Interval {
            end: time.max(since),
            ..at(since)
        };
        self.edge(
            epoch,
            entity,
            relation,
            interval,
            Certainty::Possible,
            Via::Kernel,
        );
        Ok(())
    }
}

/// What an entry of a list leads to, and the name it is used by.
type ListedObject = Option<(ObjectId, PathId)>;

fn is_channel(target: &[u8]) -> bool {
    target.starts_with(b"pipe:[") || target.starts_with(b"socket:[")
}
