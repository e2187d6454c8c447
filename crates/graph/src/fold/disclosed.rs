//! The statements of a program about its own work ([`crate::marks`]): activities, things and their
//! uses, attributes.
//!
//! A program may lie. So nothing here changes a file, a process or a connection: names of things
//! are the program's own, and its activities are inside its process. A program may also flood: of
//! a run, the first [`MOST`] statements count.
//!
//! A use of a part is a use of its thing, too. Parts may overlap, and a thing may be written as a
//! whole. So content that came into the thing in any way can have reached every part.
//!
//! Activities with a handle may overlap. All of them share the memory of their process. An activity
//! that reads a thing leaves it in the memory, and one that writes a thing may have used all that
//! the memory had. So content that one activity read can have reached all that is written later.

use backstory_eventlog::Reason;
use backstory_eventlog::event::{Bytes, Outcome, Pid, ResourceAccess};
use rustc_hash::FxHashMap;

use super::{CallContext, Fold};
use crate::marks::{ATTRIBUTE, DERIVATION, Mark, Statement};
use crate::model::Sink;
use crate::serial::Serial;

/// The most statements of a run.
pub const MOST: usize = 250_000;

/// The first number of an activity with a handle. Sources and stand-ins count from a quarter below.
const FIRST: Pid = 0x6000_0000;

/// The state of the statements so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Disclosed {
    statements: usize,
    /// The number of each open activity with a handle, by process and handle.
    open: FxHashMap<(Pid, Bytes), Pid>,
    begun: Pid,
}

impl<S: Sink> Fold<'_, S> {
    /// Folds a mark that a process made.
    pub(super) fn disclosed(&mut self, call: CallContext, mark: Mark) -> Result<(), S::Error> {
        let Some(process) = self.speaker(call, mark.parent) else {
            return Ok(());
        };
        // The call itself failed, as every mark does.
        let call = CallContext {
            outcome: Outcome::Done(0),
            ident: None,
            ..process
        };
        if !self.has_room()? {
            return Ok(());
        }
        match mark.handle {
            Some(handle) => self.stated_by_handle(call, handle, mark.around, mark.statement),
            None => match mark.statement {
                Statement::Begin(words) => self.begin_nested(call, words),
                Statement::Next(words) => self.next_nested(call, words),
                Statement::End => self.end_nested(call).map(|_| ()),
                other => self.stated(call, other),
            },
        }
    }

    /// The process that a mark is about: the caller, or its parent if the mark names that.
    fn speaker(&self, call: CallContext, parent: Option<Pid>) -> Option<CallContext> {
        let own = self.processes.get(&call.pid)?;
        let Some(pid) = parent else {
            return Some(call);
        };
        let parent = self.processes.get(&pid)?;
        (own.parent == pid && !parent.ended).then_some(CallContext {
            pid,
            tid: pid,
            epoch: parent.epoch,
            ..call
        })
    }

    /// Counts a statement. False if the run has had too many.
    pub(super) fn has_room(&mut self) -> Result<bool, S::Error> {
        self.disclosed.statements += 1;
        if self.disclosed.statements == MOST + 1 {
            let most = MOST as u64;
            self.sink
                .unknown(&Reason::TooManyStatements { most }.to_string())?;
        }
        Ok(self.disclosed.statements <= MOST)
    }

    /// Folds a statement about an activity with a handle. One that is not open is ignored.
    fn stated_by_handle(
        &mut self,
        call: CallContext,
        handle: Bytes,
        around: Option<Bytes>,
        statement: Statement,
    ) -> Result<(), S::Error> {
        match statement {
            Statement::Begin(words) | Statement::Next(words) => {
                self.end_by_handle(call, &handle)?;
                self.begin_by_handle(call, handle, around, words)
            }
            Statement::End => self.end_by_handle(call, &handle),
            other => {
                let Some(own) = self.of_handle(call, &handle) else {
                    return Ok(());
                };
                let process = call.epoch;
                let (reads, writes) = match &other {
                    Statement::Use(ResourceAccess::Read, _)
                    | Statement::UsePart(ResourceAccess::Read, ..) => (true, false),
                    Statement::Use(..) | Statement::UsePart(..) => (false, true),
                    Statement::Derive(..) => (true, true),
                    _ => (false, false),
                };
                if writes {
                    self.share_memory(call, process, own.epoch)?;
                }
                self.stated(own, other)?;
                if reads {
                    self.share_memory(call, own.epoch, process)?;
                }
                Ok(())
            }
        }
    }

    fn begin_by_handle(
        &mut self,
        call: CallContext,
        handle: Bytes,
        around: Option<Bytes>,
        words: Vec<Bytes>,
    ) -> Result<(), S::Error> {
        let around = around.and_then(|one| self.disclosed.open.get(&(call.pid, one)).copied());
        let number = FIRST + self.disclosed.begun;
        self.disclosed.begun += 1;
        self.disclosed.open.insert((call.pid, handle), number);
        let own = CallContext {
            pid: number,
            tid: number,
            ..call
        };
        let directory = self.processes[&call.pid].fs(call.tid).cwd.get();
        let cwd = self.paths.bytes(directory).into();
        self.begin_work(own, Some(around.unwrap_or(call.pid)), words, cwd)?;
        let own = self.processes[&number].epoch;
        self.share_memory(call, call.epoch, own)
    }

    fn end_by_handle(&mut self, call: CallContext, handle: &Bytes) -> Result<(), S::Error> {
        let Some(own) = self.of_handle(call, handle) else {
            return Ok(());
        };
        self.disclosed.open.remove(&(call.pid, handle.clone()));
        self.end_process(own.pid, call.time)?;
        self.bury(own.pid)
    }

    fn of_handle(&self, call: CallContext, handle: &Bytes) -> Option<CallContext> {
        let number = *self.disclosed.open.get(&(call.pid, handle.clone()))?;
        let epoch = self.processes.get(&number)?.epoch;
        Some(CallContext {
            pid: number,
            tid: number,
            epoch,
            ..call
        })
    }

    /// Passes the memory of the process `call.pid` from one of its activities to another.
    fn share_memory(
        &mut self,
        call: CallContext,
        from: Serial,
        to: Serial,
    ) -> Result<(), S::Error> {
        let began = self.epochs[from as usize].as_ref().map(|one| one.start);
        self.announce(from)?;
        self.announce(to)?;
        let call = CallContext {
            epoch: from,
            ..call
        };
        self.pass_memory(call, to, began.unwrap_or(call.time))
    }

    /// Folds a statement about the activity `call.epoch`.
    fn stated(&mut self, call: CallContext, statement: Statement) -> Result<(), S::Error> {
        match statement {
            Statement::Use(access, name) => self.resource(call, 0, access, name),
            Statement::UsePart(access, name, part) => {
                let part = part.name(&name);
                self.resource(call, 0, of_whole(access), name)?;
                self.resource(call, 0, access, part.into())
            }
            Statement::Derive(new, old) => {
                self.resource(call, 0, ResourceAccess::Read, old.clone())?;
                self.resource(call, 0, ResourceAccess::Write, new.clone())?;
                self.told(call, DERIVATION, &[&*new, b"\0", &*old].concat())
            }
            Statement::Note(key, value) => {
                self.told(call, ATTRIBUTE, &[&*key, b"\0", &*value].concat())
            }
            Statement::Record(kind, payload) => self.told(call, &kind, &payload),
            Statement::Connect(name) => {
                self.connect_by_ssh(call, name);
                Ok(())
            }
            Statement::Unrecorded(machine, why) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (machine, why) = (text(&machine), text(&why));
                self.sink
                    .unknown(&Reason::RemoteUnrecorded { machine, why }.to_string())
            }
            Statement::Begin(_) | Statement::Next(_) | Statement::End => Ok(()),
        }
    }

    fn told(&mut self, call: CallContext, kind: &[u8], payload: &[u8]) -> Result<(), S::Error> {
        let activity = self.announce(call.epoch)?;
        self.sink.extended(activity, call.time, kind, payload)
    }
}

/// The use of a thing of which a part was used: a new part changes the thing.
fn of_whole(access: ResourceAccess) -> ResourceAccess {
    match access {
        ResourceAccess::Read => ResourceAccess::Read,
        _ => ResourceAccess::Change,
    }
}
