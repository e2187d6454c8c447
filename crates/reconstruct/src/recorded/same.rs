//! Two numbers of one resource become one.
//!
//! A process copies a descriptor before a call says where it leads, or it uses the descriptor only
//! after its child has. The record then has a vague resource, and learns later which one it is.

use super::Arranging;
use crate::process::{CallObject, Made, RecordedProcess, ResultKey};
use crate::resource::ResourceId;

impl Arranging {
    /// A vague resource is this known one, in all processes.
    pub(super) fn is_same(&mut self, vague: ResourceId, known: ResourceId) {
        self.same.insert(vague, known);
        self.process.rename(vague, known);
        let since = self.vague_since.get(&vague).copied().unwrap_or(0);
        for process in self.run.processes.iter_mut().skip(since) {
            process.rename(vague, known);
        }
        let all = self.table.values_mut().chain(self.registered.values_mut());
        all.chain(self.numbers.values_mut())
            .for_each(|id| replace(id, vague, known));
    }

    /// The descriptors that a process starts with, as far as they are known by now.
    pub(super) fn resolve_table(&mut self) {
        for id in self.table.values_mut() {
            while let Some(known) = self.same.get(id) {
                *id = *known;
            }
        }
    }

    /// A child without a record of its own executed this program. The child may have moved
    /// descriptors, so those that are only numbers lead anywhere.
    pub(super) fn forget_vague(&mut self) {
        let resources = &self.run.resources;
        self.table.retain(|_, id| !resources[*id].is_vague());
        let held = &mut self.process.held;
        held.retain(|(_, id)| !resources[*id].is_vague());
    }
}

fn replace(id: &mut ResourceId, from: ResourceId, to: ResourceId) {
    if *id == from {
        *id = to;
    }
}

impl RecordedProcess {
    /// A resource of which only the number was known is this one. No call made or passed it.
    pub fn rename(&mut self, from: ResourceId, to: ResourceId) {
        let started = self.inherited.iter_mut().map(|(_, id, _)| id);
        let started = started.chain(self.held.iter_mut().map(|(_, id)| id));
        let mut is_here = false;
        for id in started.filter(|id| **id == from) {
            (*id, is_here) = (to, true);
        }
        if !is_here {
            return;
        }
        let opens = self.opens.values_mut().flatten();
        for (made, _) in opens {
            if let Made::Resource(id) = made {
                replace(id, from, to);
            }
        }
        let turns = self.turns.iter_mut().flat_map(|turn| &mut turn.ready);
        turns
            .filter_map(|(id, _)| id.as_mut())
            .chain(self.moves.values_mut())
            .for_each(|id| replace(id, from, to));
        // No call read from it: a fact comes before the first read.
        if let Some(streams) = self.streams.remove(&from) {
            self.streams
                .entry(to)
                .or_default()
                .output
                .join(streams.output);
        }
        if let Some(omitted) = self.omitted.streams.remove(&from) {
            self.omitted.streams.entry(to).or_default().join(omitted);
        }
        let of_it = |key: &&ResultKey| key.object == CallObject::Resource(from);
        let keys: Vec<_> = self.results.keys().filter(of_it).cloned().collect();
        for mut key in keys {
            let results = self.results.remove(&key).unwrap_or_default();
            key.object = CallObject::Resource(to);
            let known = self.results.entry(key).or_default();
            known.extend(results);
            known.make_contiguous().sort_by_key(|(_, time)| *time);
        }
    }
}
