//! Steps to other runs: a version that one run made and another one used.

use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_eventlog::run::RunHeader;
use backstory_files::Ident;
use backstory_graph::model::{ActivityId, Certainty, Interval};
use backstory_store::{EntityKey, RunKey, VersionMatch};

use super::{Direction, Key, Neighbour, NeighbourFinder, Seen};
use crate::alike::SameContent;
use crate::answer::Flow;
use crate::version_facts::MANY;
use crate::{Result, undone};

impl NeighbourFinder<'_> {
    /// Adds the steps from a version without a maker in its run to another run that made it. The
    /// generators of the version are read if they are not given.
    pub(super) fn to_other_runs(
        &self,
        key: EntityKey,
        (seen, generators): (Seen, Option<&[ActivityId]>),
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let Some(ident) = seen.ident.filter(|_| self.run.is_none()) else {
            return Ok(());
        };
        let back = self.direction == Direction::Back;
        if self.is_made(key, generators, || Ok(seen))? == back {
            return Ok(());
        }
        let mut found = Vec::new();
        if back {
            let elsewhere = self.made_elsewhere(key, &ident)?.into_iter();
            found.extend(elsewhere.map(|other| (other, Flow::Same)));
        } else {
            for other in self.store.same(&ident, VersionMatch::Any)? {
                let wanted = other.run() != key.run() && self.is_in_scope(other);
                if wanted && !self.is_made_there(other)? {
                    found.push((other, Flow::Same));
                }
            }
        }
        let alike = match self.direction {
            Direction::Back if found.is_empty() => self.origin(key, &ident)?.into_iter().collect(),
            Direction::Back => Vec::new(),
            Direction::Forth => self.copies(key, &ident)?,
        };
        found.extend(alike.into_iter().map(|other| (other, Flow::Alike)));
        found.retain(|(other, _)| self.is_in_scope(*other));
        for (other, flow) in found {
            let shift = self
                .header(key.run())?
                .to_clock_of(&*self.header(other.run())?);
            let interval = Interval {
                start: ident.mtime.min(time),
                end: ident.mtime.max(time.min(ident.ctime)),
            };
            steps.push(Neighbour {
                from: None,
                to: Key::Entity(other),
                flow,
                certainty: Certainty::Seen,
                interval,
                time: time.saturating_add(shift),
            });
        }
        Ok(())
    }

    /// True if the version's run is not older than the scope.
    pub(super) fn is_in_scope(&self, key: EntityKey) -> bool {
        self.since.is_none_or(|since| key.run() >= since)
    }

    /// The header of a run.
    pub(super) fn header(&self, run: RunKey) -> Result<Rc<RunHeader>> {
        self.session_clients.header(run)
    }

    /// True if the outputs of a run were put back.
    fn is_undone(&self, run: RunKey) -> Result<bool> {
        // Nearly no run repeats another one, and the header is known anyway.
        if self.header(run)?.repeats.is_none() {
            return Ok(false);
        }
        if let Some(undone) = self.undone.borrow().get(&run) {
            return Ok(*undone);
        }
        let undone = match self.store.run_by_key(run)? {
            Some(record) => undone::is_undone(self.store, &record)?,
            None => false,
        };
        self.undone.borrow_mut().insert(run, undone);
        Ok(undone)
    }

    /// Versions of other runs that have no maker there, and whose content, as far as is known, came
    /// from this one.
    fn copies(&self, key: EntityKey, ident: &Ident) -> Result<Vec<EntityKey>> {
        match self.facts.same_content(ident)? {
            Some(same) => same.copies(key, || self.all_copies(&same)),
            None => Ok(Vec::new()),
        }
    }

    /// All versions with a content that have no known maker, each behind its origin.
    fn all_copies(&self, same: &SameContent) -> Result<Vec<(EntityKey, EntityKey)>> {
        let mut found = Vec::new();
        for version in same.versions() {
            for copy in self.store.same(version, VersionMatch::Any)? {
                let joined = !self.is_in_scope(copy) || self.is_made_there(copy)?;
                if joined || !self.made_elsewhere(copy, version)?.is_empty() {
                    continue;
                }
                let origin = same.origin(version, copy.run(), |other| self.made(other))?;
                found.extend(origin.map(|origin| (origin, copy)));
            }
        }
        Ok(found)
    }

    /// The origin of a content without a known maker.
    fn origin(&self, key: EntityKey, ident: &Ident) -> Result<Option<EntityKey>> {
        match self.facts.same_content(ident)? {
            Some(same) => same.origin(ident, key.run(), |other| self.made(other)),
            None => Ok(None),
        }
    }

    /// The same version in the other runs that made it.
    fn made_elsewhere(&self, key: EntityKey, ident: &Ident) -> Result<Vec<EntityKey>> {
        let made = self.made(ident)?;
        let elsewhere = made.iter().filter(|other| other.run() != key.run());
        Ok(elsewhere.copied().collect())
    }

    /// The version in all runs that made it, and whose outputs were not put back. Many runs read
    /// one header, and each of them asks for it.
    fn made(&self, ident: &Ident) -> Result<Rc<[EntityKey]>> {
        if let Some(made) = self.made.borrow().get(ident) {
            return Ok(made.clone());
        }
        self.keep_made(*ident, self.store.same(ident, VersionMatch::Made)?)
    }

    fn keep_made(&self, ident: Ident, places: Vec<EntityKey>) -> Result<Rc<[EntityKey]>> {
        let mut made = Vec::new();
        for place in places {
            if self.is_made_there(place)? && !self.is_undone(place.run())? {
                made.push(place);
            }
        }
        let made: Rc<[EntityKey]> = made.into();
        self.made.borrow_mut().insert(ident, made.clone());
        Ok(made)
    }

    /// Reads at once what the steps around these versions will ask for. They are from before their
    /// runs, so that most have no maker there.
    pub(crate) fn read_ahead(&self, idents: &[Ident]) -> Result<()> {
        if self.run.is_some() || self.direction == Direction::Forth {
            return Ok(());
        }
        let is_new = |ident: &&Ident| !self.made.borrow().contains_key(*ident);
        let new: Vec<Ident> = idents.iter().filter(is_new).copied().collect();
        if new.len() < MANY {
            return Ok(());
        }
        for (ident, places) in new.iter().zip(self.store.made_versions(&new)?) {
            self.keep_made(*ident, places)?;
        }
        self.facts.read_same(&new)
    }

    fn is_made_there(&self, key: EntityKey) -> Result<bool> {
        if let Some(made) = self.made_there.borrow().get(&key) {
            return Ok(*made);
        }
        let made = self.is_made(key, None, || self.seen(key))?;
        self.made_there.borrow_mut().insert(key, made);
        Ok(made)
    }
}
