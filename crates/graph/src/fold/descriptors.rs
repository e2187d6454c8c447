//! Descriptors: what opens them, copies them and closes them, and what an epoch did through one when it lets it go.

use std::rc::Rc;

use backstory_eventlog::event::{CWD, Time, Via};
use backstory_files::Ident;

use super::entities::NamedEntity;
use super::{CallContext, Fold};
use crate::activity::{EntityUse, Serial};
use crate::model::{Certainty, EntityKind, Interval, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;
use crate::process::{Descriptor, NAMELESS, NAMELESS_MAX, OpenFile, ProcessState};

/// `O_CLOEXEC`
pub(super) const O_CLOEXEC: i32 = 0o2_000_000;
const CLOSE_RANGE_CLOEXEC: i32 = 4;
/// Standard input, output and error: libc's own buffers use them, where no recorder sees it.
const STANDARD: i32 = 2;

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// Puts a descriptor at the number that the call returned; at none if only the guard saw the call.
    pub(super) fn install_result(
        &mut self,
        call: CallContext,
        held: Descriptor,
    ) -> Result<(), S::Error> {
        match call.outcome.value() {
            Some(fd) if call.via == Via::Library && fd >= 0 => self.install(call, fd, held),
            _ => self.install_nameless(call, held),
        }
    }

    /// Puts a descriptor at number `fd`; what was there is closed.
    pub(super) fn install(
        &mut self,
        call: CallContext,
        fd: i32,
        held: Descriptor,
    ) -> Result<(), S::Error> {
        for other in self.sharers(call) {
            let theirs = self.inherited(&held, call.time);
            self.install_alone(other, fd, theirs)?;
        }
        self.install_alone(call, fd, held)
    }

    /// The others who share the caller's table of descriptors, as if they had made the call.
    fn sharers(&self, call: CallContext) -> Vec<CallContext> {
        let Some(process) = self.processes.get(&call.pid) else {
            return Vec::new();
        };
        if Rc::strong_count(&process.table) == 1 {
            return Vec::new();
        }
        let shares = |other: &&ProcessState| {
            other.pid != call.pid && Rc::ptr_eq(&other.table, &process.table)
        };
        let mut others: Vec<CallContext> = self
            .processes
            .values()
            .filter(shares)
            .map(|other| CallContext {
                pid: other.pid,
                epoch: other.epoch,
                ..call
            })
            .collect();
        others.sort_by_key(|other| other.pid);
        others
    }

    fn install_alone(
        &mut self,
        call: CallContext,
        fd: i32,
        held: Descriptor,
    ) -> Result<(), S::Error> {
        self.retain(&held);
        let old = self
            .processes
            .get_mut(&call.pid)
            .and_then(|p| p.descriptors.insert(fd, held));
        match old {
            Some(old) => self.release(call.epoch, fd, old, call.time, None),
            None => Ok(()),
        }
    }

    /// Keeps a descriptor whose number nobody saw, until the epoch ends or passes it on.
    pub(super) fn install_nameless(
        &mut self,
        call: CallContext,
        held: Descriptor,
    ) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return Ok(());
        };
        let same = |h: &Descriptor| match (&h.what, &held.what) {
            (Some(a), Some(b)) => {
                (a.source, a.target, a.reads, a.writes, a.path)
                    == (b.source, b.target, b.reads, b.writes, b.path)
            }
            _ => false,
        };
        if let Some((_, old)) = process
            .descriptors
            .range_mut(..=NAMELESS)
            .find(|(_, h)| h.own == held.own && same(h))
        {
            old.read = old.read.or(held.read);
            old.written = old.written.or(held.written);
            old.cloexec &= held.cloexec;
            return Ok(());
        }
        let oldest = process
            .descriptors
            .range(..=NAMELESS)
            .next_back()
            .map(|(&fd, _)| fd);
        let full = process.nameless_count() >= NAMELESS_MAX;
        let fd = process.nameless();
        if let Some(oldest) = oldest.filter(|_| full)
            && let Some(old) = process.descriptors.remove(&oldest)
        {
            self.release(call.epoch, oldest, old, call.time, None)?;
        }
        self.install(call, fd, held)
    }

    pub(super) fn close(&mut self, call: CallContext, fd: i32) -> Result<(), S::Error> {
        for other in self.sharers(call) {
            self.close_alone(
                CallContext {
                    ident: None,
                    ..other
                },
                fd,
            )?;
        }
        self.close_alone(call, fd)
    }

    fn close_alone(&mut self, call: CallContext, fd: i32) -> Result<(), S::Error> {
        match self
            .processes
            .get_mut(&call.pid)
            .and_then(|p| p.descriptors.remove(&fd))
        {
            Some(held) => self.release(call.epoch, fd, held, call.time, call.ident),
            None => Ok(()),
        }
    }

    pub(super) fn close_range(
        &mut self,
        call: CallContext,
        first: i32,
        last: u32,
        flags: i32,
    ) -> Result<(), S::Error> {
        if !call.ok() && call.outcome.value().is_some() {
            return Ok(());
        }
        let last = i32::try_from(last).unwrap_or(i32::MAX);
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return Ok(());
        };
        let numbers: Vec<i32> = process
            .descriptors
            .range(first.max(0)..)
            .map(|(&fd, _)| fd)
            .take_while(|&fd| fd <= last)
            .collect();
        for fd in numbers {
            if flags & CLOSE_RANGE_CLOEXEC == 0 {
                self.close(
                    CallContext {
                        ident: None,
                        ..call
                    },
                    fd,
                )?;
            } else {
                self.cloexec(call, fd, true)?;
            }
        }
        Ok(())
    }

    pub(super) fn dup(
        &mut self,
        call: CallContext,
        fd: i32,
        cloexec: bool,
    ) -> Result<(), S::Error> {
        let Some(new) = call.outcome.value().filter(|&new| new >= 0 && new != fd) else {
            return Ok(());
        };
        let Some(held) = self
            .processes
            .get(&call.pid)
            .and_then(|p| p.descriptors.get(&fd))
        else {
            // Not known where it leads; what was at the new number is closed all the same.
            return self.close(
                CallContext {
                    ident: None,
                    ..call
                },
                new,
            );
        };
        let copy = Descriptor {
            cloexec,
            since: call.time,
            read: None,
            written: None,
            listed: None,
            ..held.clone()
        };
        self.install(call, new, copy)
    }

    pub(super) fn cloexec(&mut self, call: CallContext, fd: i32, on: bool) -> Result<(), S::Error> {
        if let Some(held) = self
            .processes
            .get_mut(&call.pid)
            .and_then(|p| p.descriptors.get_mut(&fd))
        {
            held.cloexec = on;
        }
        Ok(())
    }

    /// A descriptor of something that carries no data.
    pub(super) fn carries_nothing(&mut self, call: CallContext) -> Result<(), S::Error> {
        match call.outcome.value() {
            Some(fd) if fd >= 0 => self.install(call, fd, Descriptor::empty(call.time)),
            _ => Ok(()),
        }
    }

    /// Counts a descriptor that now exists.
    pub(super) fn retain(&mut self, held: &Descriptor) {
        let Some(what) = held.what.clone() else {
            return;
        };
        self.object_mut(what.source).holders += 1;
        if what.reads {
            self.object_mut(what.source).now_mut().read = true;
        }
        let target = self.object_mut(what.target);
        target.holders += 1;
        target.writers += u32::from(what.writes);
    }

    /// An epoch lets a descriptor go: now it is known from when to when it can have used it.
    pub(super) fn release(
        &mut self,
        epoch: Serial,
        fd: i32,
        held: Descriptor,
        time: Time,
        ident: Option<Ident>,
    ) -> Result<(), S::Error> {
        let Some(what) = held.what.clone() else {
            return Ok(());
        };
        let call = CallContext {
            time,
            pid: 0,
            tid: 0,
            epoch,
            via: what.via,
            outcome: backstory_eventlog::event::Outcome::Done(0),
            ident: None,
            resolved: false,
        };
        if what.looked {
            self.release_looked(call, &held, &what)?;
        }
        if what.reads
            && let Some((start, certainty)) =
                self.can_have(epoch, fd, &held, &what, held.read, !what.writes)
        {
            let interval = Interval {
                start,
                end: time.max(start),
            };
            self.spread(
                call,
                what.source,
                held.source_from,
                held.path,
                Relation::Read,
                interval,
                certainty,
            )?;
        }
        if what.writes
            && let Some((start, certainty)) =
                self.can_have(epoch, fd, &held, &what, held.written, false)
        {
            let interval = Interval {
                start,
                end: time.max(start),
            };
            self.spread(
                call,
                what.target,
                held.target_from,
                held.path,
                Relation::Write,
                interval,
                certainty,
            )?;
        }
        self.let_go(&what, time, ident)
    }

    pub(super) fn let_go(
        &mut self,
        what: &OpenFile,
        time: Time,
        ident: Option<Ident>,
    ) -> Result<(), S::Error> {
        if let Some(ident) = ident.filter(|_| self.object(what.target).key.is_none()) {
            self.identify(what.target, ident, false);
        }
        let target = self.object_mut(what.target);
        target.holders = target.holders.saturating_sub(1);
        if what.writes {
            target.writers = target.writers.saturating_sub(1);
            if target.writers == 0 && target.versioned() {
                self.close_version(what.target, time, ident);
            }
        }
        let source = self.object_mut(what.source);
        source.holders = source.holders.saturating_sub(1);
        self.forget(what.source)?;
        self.forget(what.target)
    }

    pub(super) fn release_looked(
        &mut self,
        call: CallContext,
        held: &Descriptor,
        what: &OpenFile,
    ) -> Result<(), S::Error> {
        if let Some(listed) = held.listed {
            let interval = Interval {
                start: listed,
                end: call.time.max(listed),
            };
            let entity = self.entity_now(call, what.source, held.path)?;
            self.edge(
                call.epoch,
                entity,
                Relation::List,
                interval,
                Certainty::Seen,
                what.via,
            );
        } else if held.own {
            let entity = self.entity_now(call, what.source, held.path)?;
            let certainty = if held.doubtful {
                Certainty::Possible
            } else {
                Certainty::Seen
            };
            self.edge(
                call.epoch,
                entity,
                Relation::Stat,
                at(held.since),
                certainty,
                what.via,
            );
            if held.may_be_listed {
                let interval = Interval {
                    start: held.since,
                    end: call.time.max(held.since),
                };
                let (possible, via) = (Certainty::Possible, what.via);
                self.edge(call.epoch, entity, Relation::List, interval, possible, via);
            }
        }
        Ok(())
    }

    /// From when on data can have gone through a descriptor in one direction, and whether it is certain. `None`: it did not.
    ///
    /// An open for reading only counts as a read. Otherwise what the recorder saw counts; libc's own buffers, which it cannot see,
    /// can only be behind what the epoch opened itself or behind the standard descriptors. Without a recorder anything is possible.
    pub(super) fn can_have(
        &self,
        epoch: Serial,
        fd: i32,
        held: &Descriptor,
        what: &OpenFile,
        seen: Option<Time>,
        only: bool,
    ) -> Option<(Time, Certainty)> {
        let kind = self.object(what.source).kind;
        let stream = matches!(kind, EntityKind::Pipe | EntityKind::Socket);
        let recorded = self.epochs[epoch as usize]
            .as_ref()
            .is_some_and(|e| e.recorded);
        let hidden = (0..=STANDARD).contains(&fd) || fd <= NAMELESS || !recorded;
        if held.doubtful {
            return Some((held.since, Certainty::Possible));
        }
        if let Some(first) = seen {
            let start = if hidden || held.own && !stream {
                held.since
            } else {
                first
            };
            return Some((start, Certainty::Seen));
        }
        if held.own && !stream {
            let certainty = if only {
                Certainty::Seen
            } else {
                Certainty::Possible
            };
            return Some((held.since, certainty));
        }
        if kind == EntityKind::Device {
            return None;
        }
        (hidden || what.source != what.target && held.own)
            .then_some((held.since, Certainty::Possible))
    }

    /// Adds an edge for every version from `first` to the present one: the first for certain (if it is), the others possibly.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn spread(
        &mut self,
        call: CallContext,
        object: ObjectId,
        first: u32,
        path: PathId,
        relation: Relation,
        interval: Interval,
        certainty: Certainty,
    ) -> Result<(), S::Error> {
        let last = self.object(object).now().number;
        let writes = relation == Relation::Write;
        for number in first..=last {
            let began = self.object_mut(object).kept(number).began;
            let start = if number == first {
                interval.start
            } else {
                interval.start.max(began)
            };
            let certainty = if number == first {
                certainty
            } else {
                Certainty::Possible
            };
            // A rename gives a version another name; what was written before belongs to the name it had.
            let path = if number == first {
                path
            } else {
                crate::paths::ROOT
            };
            let used = if writes && self.object(object).linked {
                self.first_node(call, object, number, path)?
            } else {
                self.entity_used(call, object, number, path)?
            };
            self.note(used, relation, certainty);
            let entity = used.id;
            let interval = Interval {
                start,
                end: interval.end,
            };
            if let Some(epoch) = &mut self.epochs[call.epoch as usize] {
                // A write that was seen has its own edge already: closing what was opened adds no more than the time.
                let (via, opened) = (call.via, writes);
                epoch.edges.add(EntityUse {
                    entity,
                    relation,
                    interval,
                    certainty,
                    via,
                    opened,
                });
            }
            if writes {
                let version = self.object_mut(object).kept(number);
                version.writers.add(call.epoch);
                version.written |= certainty == Certainty::Seen;
            }
        }
        Ok(())
    }

    /// The node that content written through the name `path` goes to. All names of a file share what is written: it has one node.
    pub(super) fn written(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
    ) -> Result<NamedEntity, S::Error> {
        if !self.object(object).linked {
            return self.entity_now(call, object, path);
        }
        let number = self.object(object).now().number;
        self.first_node(call, object, number, path)
    }

    /// The description behind `fd` of the calling process.
    pub(super) fn descriptor(&mut self, call: CallContext, fd: i32) -> Option<&mut Descriptor> {
        self.processes.get_mut(&call.pid)?.descriptors.get_mut(&fd)
    }

    /// What `fd` leads to; the current directory for [`CWD`].
    pub(super) fn object_of_descriptor(
        &mut self,
        call: CallContext,
        fd: i32,
    ) -> Result<FoundObject, S::Error> {
        if fd == CWD {
            let process = self.processes.get(&call.pid);
            let Some(cwd) = process.map(|p| p.fs(call.tid).cwd.get()) else {
                return Ok(None);
            };
            return Ok(Some((self.lookup(cwd, call, None)?, cwd)));
        }
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(None);
        };
        let path = held.path;
        Ok(held.what.as_ref().map(|what| (what.source, path)))
    }
}

/// An object, if it is known, and the name it was found by.
pub(super) type FoundObject = Option<(ObjectId, PathId)>;

/// One moment.
pub(super) fn at(time: Time) -> Interval {
    Interval {
        start: time,
        end: time,
    }
}

impl Descriptor {
    /// A descriptor just opened; versions are set by who knows them.
    pub(super) fn opened(what: Rc<OpenFile>, since: Time, cloexec: bool) -> Descriptor {
        let path = what.path;
        Descriptor {
            what: Some(what),
            cloexec,
            since,
            own: true,
            read: None,
            written: None,
            listed: None,
            source_from: 0,
            target_from: 0,
            path,
            location: path,
            doubtful: false,
            may_be_listed: false,
        }
    }

    fn empty(since: Time) -> Descriptor {
        Descriptor {
            what: None,
            cloexec: false,
            since,
            own: true,
            read: None,
            written: None,
            listed: None,
            source_from: 0,
            target_from: 0,
            path: crate::paths::ROOT,
            location: crate::paths::ROOT,
            doubtful: false,
            may_be_listed: false,
        }
    }
}
