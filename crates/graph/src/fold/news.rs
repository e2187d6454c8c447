//! The changes since the last look at a run that goes on.
//!
//! In: the events so far. Out: to the sink, the activities, entities and edges that have changed,
//! as they are by now.
//!
//! A look costs as much as the changes, and as the open descriptors of each process that did
//! something. A descriptor costs as much as the versions of its file since it was opened.
//!
//! An edge is given again when it changes. The uses of descriptors that are still open are counted
//! at each look after an operation of their process, as a release would count them. They are joined
//! with those that the release gives. So nodes have other numbers than after a fold without looks,
//! and an edge can begin earlier.

use backstory_eventlog::event::{Outcome, Pid};
use backstory_vocabulary::LookupsMode;
use rustc_hash::FxHashSet;

use super::{CallContext, Fold};
use crate::model::{EntityId, Relation, Sink};
use crate::object::ObjectId;
use crate::process::Descriptor;
use crate::serial::Serial;

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

    /// Tells the sink everything that has changed since the last time.
    pub fn tell_news(&mut self) -> Result<(), S::Error> {
        let Some(news) = &mut self.news else {
            return Ok(());
        };
        let mut acted: Vec<Pid> = news.acted.drain().collect();
        acted.sort_unstable();
        for &pid in &acted {
            self.foresee(pid)?;
        }
        let Some(news) = &mut self.news else {
            return Ok(());
        };
        let (mut uses, mut named) = (
            std::mem::take(&mut news.uses),
            std::mem::take(&mut news.named),
        );
        let present = acted.iter().filter_map(|pid| self.processes.get(pid));
        let mut epochs: Vec<Serial> = present.map(|process| process.epoch).collect();
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
        Ok(())
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

    /// Counts the uses of a process's open descriptors so far.
    fn foresee(&mut self, pid: Pid) -> Result<(), S::Error> {
        let Some(process) = self.processes.get(&pid).filter(|one| !one.ended) else {
            return Ok(());
        };
        let epoch = process.epoch;
        let open = process.descriptors.iter();
        let open: Vec<(i32, Descriptor)> = open.map(|(fd, held)| (*fd, held.clone())).collect();
        for (fd, held) in open {
            let Some(what) = held.what.clone() else {
                continue;
            };
            let call = CallContext {
                time: self.now,
                pid: 0,
                tid: 0,
                epoch,
                via: what.via,
                outcome: Outcome::Done(0),
                ident: None,
                resolved: false,
            };
            self.can_have_moved_data(call, fd, &held, &what)?;
        }
        Ok(())
    }
}
