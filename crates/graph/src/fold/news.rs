//! The changes since the last look at a run that goes on.
//!
//! In: the events so far. Out: to the sink, the activities, entities and edges that have changed,
//! as they are by now.
//!
//! A look costs as much as the changes, and as the open descriptors of each process that did
//! something. A descriptor costs as much as the versions of its file since it was opened.
//!
//! An edge is given again when it changes. A look after an operation of a process counts the uses
//! of its open descriptors up to that operation, as a release would. They are joined with those
//! that the release gives. So nodes have other numbers than after a fold without looks.
//!
//! A process between a fork and an exec mostly becomes the program that it executes. So a look
//! leaves it to the next one, unless it goes on for longer than [`BRIEF`].
//!
//! Invariant: each use that a look gives is one after the last event, too.

use backstory_eventlog::event::{Outcome, Pid, Time};
use backstory_vocabulary::LookupsMode;
use rustc_hash::FxHashSet;

use super::{CallContext, Fold, release};
use crate::model::{EntityId, EntityKind, Relation, Sink};
use crate::object::ObjectId;
use crate::process::{Descriptor, OpenFile, ProcessState};
use crate::serial::Serial;

/// How long after its fork a process may execute a program that it then has been from the fork on.
const BRIEF: Time = 30_000_000;

/// The changes since the last look.
#[derive(Debug, Default)]
pub(super) struct FoldNews {
    /// Processes that did something.
    acted: FxHashSet<Pid>,
    uses: Vec<(Serial, EntityId, Relation)>,
    /// Versions that have got another name.
    named: Vec<(ObjectId, u32)>,
}

impl FoldNews {
    /// A process has done something.
    pub(super) fn acted(&mut self, pid: Pid) {
        self.acted.insert(pid);
    }

    /// A version has got another name.
    pub(super) fn named(&mut self, object: ObjectId, number: u32) {
        self.named.push((object, number));
    }
}

impl<S: Sink> Fold<'_, S> {
    /// The same state, which notes from now on what changes, for [`Fold::tell_news`].
    #[must_use]
    pub fn noting_news(mut self) -> Self {
        self.news = Some(Box::default());
        self
    }

    /// The sink, for a look at what it has got.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Tells the sink everything that has changed since the last time. Up to the time `now`, all
    /// events are there. True if something was left for the next time.
    pub fn tell_news(&mut self, now: Time) -> Result<bool, S::Error> {
        let Some(news) = &mut self.news else {
            return Ok(false);
        };
        let mut acted: Vec<Pid> = news.acted.drain().collect();
        let later = acted.extract_if(.., |pid| self.is_brief(*pid, now));
        let later: FxHashSet<Pid> = later.collect();
        acted.sort_unstable();
        for &pid in &acted {
            self.foresee(pid)?;
        }
        let Some(news) = &mut self.news else {
            return Ok(false);
        };
        let (mut uses, mut named) = (
            std::mem::take(&mut news.uses),
            std::mem::take(&mut news.named),
        );
        let epoch_of = |pid: &Pid| self.processes.get(pid).map(|process| process.epoch);
        let open: FxHashSet<Serial> = later.iter().filter_map(epoch_of).collect();
        let mut epochs: Vec<Serial> = acted.iter().filter_map(epoch_of).collect();
        news.uses
            .extend(uses.extract_if(.., |(epoch, ..)| open.contains(epoch)));
        let has_more = !later.is_empty();
        news.acted = later;
        epochs.extend(uses.iter().map(|(epoch, ..)| *epoch));
        epochs.sort_unstable();
        epochs.dedup();
        for epoch in epochs {
            self.tell_epoch(epoch)?;
        }
        uses.sort_unstable();
        uses.dedup();
        for (serial, entity, relation) in uses {
            // An epoch that has ended has told its edges.
            if let Some(epoch) = &mut self.epochs[serial as usize]
                && let (Some(id), Some(one)) = (epoch.id, epoch.edges.of(entity, relation))
            {
                self.sink.edge(&one.edge(id))?;
            }
        }
        named.sort_unstable();
        named.dedup();
        for (object, number) in named {
            if self.object_mut(object).kept(number).news {
                self.report(object, number)?;
            }
        }
        Ok(has_more)
    }

    /// Whether a process may still become the program that it executes next.
    fn is_brief(&self, pid: Pid, now: Time) -> bool {
        let process = self.processes.get(&pid).filter(|one| !one.ended);
        let epoch = process.and_then(|one| self.epochs[one.epoch as usize].as_ref());
        epoch.is_some_and(|epoch| {
            epoch.number == 0 && !epoch.lasting && now.saturating_sub(epoch.start) < BRIEF
        })
    }

    /// Notes that an edge is new or has changed.
    pub(super) fn used(&mut self, epoch: Serial, entity: EntityId, relation: Relation) {
        if let Some(news) = &mut self.news {
            news.uses.push((epoch, entity, relation));
        }
    }

    fn tell_epoch(&mut self, serial: Serial) -> Result<(), S::Error> {
        if self.epochs[serial as usize].is_none() {
            return Ok(());
        }
        let id = self.announce(serial)?;
        let lookups = self.header.modes.lookups == Some(LookupsMode::All);
        match &self.epochs[serial as usize] {
            Some(epoch) => self.sink.activity(&epoch.activity(id, lookups)),
            None => Ok(()),
        }
    }

    /// Counts the uses of a process's open descriptors up to its last operation.
    fn foresee(&mut self, pid: Pid) -> Result<(), S::Error> {
        let Some(process) = self.processes.get(&pid).filter(|one| !one.ended) else {
            return Ok(());
        };
        let serial = process.epoch;
        let Some(epoch) = &self.epochs[serial as usize] else {
            return Ok(());
        };
        let (recorded, last) = (epoch.recorded, epoch.last);
        let open = process.descriptors.iter().filter_map(|(fd, held)| {
            let what = held.what.clone()?;
            let is_sure = self.is_sure(process, recorded, *fd, held, &what);
            is_sure.then(|| (*fd, held.clone(), what))
        });
        let open: Vec<_> = open.collect();
        for (fd, held, what) in open {
            let call = CallContext {
                time: last,
                pid: 0,
                tid: 0,
                epoch: serial,
                via: what.via,
                outcome: Outcome::Done(0),
                ident: None,
                resolved: false,
            };
            self.can_have_moved_data(call, fd, &held, &what)?;
        }
        Ok(())
    }

    /// Whether a release of the descriptor will count what it would count now.
    ///
    /// - A recorder that starts later in the program sees the uses of most descriptors. A list can
    ///   say that the process does not have a descriptor of its parent.
    /// - The first write to an unchanged file makes a version, and is no write to the one before.
    fn is_sure(
        &self,
        process: &ProcessState,
        recorded: bool,
        fd: i32,
        held: &Descriptor,
        what: &OpenFile,
    ) -> bool {
        let target = self.object(what.target);
        let may_begin = what.writes && target.versioned() && target.now().number == 0;
        if may_begin && held.written.is_none() {
            return false;
        }
        let is_pipe = matches!(target.kind, EntityKind::Pipe | EntityKind::Socket)
            && what.source == what.target;
        let is_own = held.own && !is_pipe;
        recorded || !process.can_be_a_copy() && (release::is_standard(fd) || is_own)
    }
}
