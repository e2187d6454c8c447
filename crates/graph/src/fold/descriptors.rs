//! Descriptors: the calls that open, copy and close them, and the edges of an epoch that lets one
//! go.

use std::rc::Rc;

use backstory_eventlog::event::{CWD, Outcome, Time};

use super::{CallContext, Fold};
use crate::model::{Interval, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;
use crate::process::{Descriptor, NAMELESS, NAMELESS_MAX, OpenFile, ProcessState};

/// `O_CLOEXEC`
pub(super) const O_CLOEXEC: i32 = 0o2_000_000;
const CLOSE_RANGE_CLOEXEC: i32 = 4;

impl<S: Sink> Fold<'_, S> {
    /// Puts a descriptor at the number that the call returned. The descriptor has no number if the
    /// observer did not see the call return: the guard only predicts that an open succeeds.
    pub(super) fn install_result(
        &mut self,
        call: CallContext,
        held: Descriptor,
    ) -> Result<(), S::Error> {
        match call.outcome {
            Outcome::Done(fd) if fd >= 0 => self.install(call, fd, held),
            _ => self.install_nameless(call, held),
        }
    }

    /// Puts a descriptor at number `fd`. A descriptor that had this number is closed.
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

    /// The other processes that share the caller's descriptor table, each as if it had made the
    /// call.
    pub(super) fn sharers(&self, call: CallContext) -> Vec<CallContext> {
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

    pub(super) fn install_alone(
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

    /// Adds a descriptor whose number was not seen. It stays until the epoch ends or passes it on.
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

    pub(super) fn close_alone(&mut self, call: CallContext, fd: i32) -> Result<(), S::Error> {
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
            // The fold does not know the file behind the old number. But the descriptor at the new
            // number is closed in any case.
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
            carried_nothing: false,
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

    /// Installs a descriptor of an object that carries no data.
    pub(super) fn carries_nothing(&mut self, call: CallContext) -> Result<(), S::Error> {
        match call.outcome.value() {
            Some(fd) if fd >= 0 => self.install(call, fd, Descriptor::empty(call.time)),
            _ => Ok(()),
        }
    }

    /// The calling process's descriptor `fd`.
    pub(super) fn descriptor(&mut self, call: CallContext, fd: i32) -> Option<&mut Descriptor> {
        self.processes.get_mut(&call.pid)?.descriptors.get_mut(&fd)
    }

    /// The object that `fd` leads to, or the current directory for [`CWD`].
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

/// An interval of one moment.
pub(super) fn at(time: Time) -> Interval {
    Interval {
        start: time,
        end: time,
    }
}

impl Descriptor {
    /// A descriptor that was just opened. The caller sets the versions.
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
            carried_nothing: false,
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
            carried_nothing: false,
        }
    }
}
