//! Tables that follow from the nodes and edges of a run: texts, orders, the edges of each node.
//!
//! In: nodes and edges, all at once or one after the other. Out: the tables by which [`RunGraph`]
//! answers. A new node or edge costs the same in a large graph.

use std::collections::{BTreeSet, HashMap};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Entity, EntityId, EntityKind};

use super::RunGraph;

/// The tables of a graph.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct GraphTables {
    /// The arguments of each activity's program, joined by spaces.
    pub commands: Vec<Box<[u8]>>,
    /// The file of another name that a version was renamed, linked or copied from, and when.
    pub from: HashMap<EntityId, (Time, EntityId)>,
    /// The versions of files that the run made, ordered by path.
    pub made: BTreeSet<(Bytes, EntityId)>,
    /// Of each version, whether it or one before it is older than the run.
    pub older: Vec<bool>,
    pub sockets: BTreeSet<EntityId>,
    /// The places in `edges` of the edges of each activity, and of each entity.
    pub of_activity: Vec<Vec<u32>>,
    pub of_entity: Vec<Vec<u32>>,
    /// The places in `informs` of those from each activity.
    pub informs: Vec<Vec<u32>>,
    /// The places in `derived` of those from each entity.
    pub derived: HashMap<EntityId, Vec<u32>>,
}

impl RunGraph {
    /// Derives what the rules need beside nodes and edges. To be called once all of them are here.
    pub fn complete(&mut self) {
        self.tables = GraphTables::default();
        for at in 0..self.activities.len() {
            self.learn_activity(at);
        }
        for at in 0..self.entities.len() {
            self.learn_entity(at);
        }
        self.tables.older = older(&self.entities);
        for at in 0..self.edges.len() {
            self.learn_edge(at);
        }
        for at in 0..self.informs.len() {
            self.learn_inform(at);
        }
        for at in 0..self.derived.len() {
            self.learn_derived(at);
        }
    }

    /// Derives what follows from an activity that is new or has changed.
    pub(crate) fn learn_activity(&mut self, at: usize) {
        let command = self.activities[at].argv.join(&b' ').into_boxed_slice();
        *place(&mut self.tables.commands, at) = command;
        place(&mut self.tables.of_activity, at);
        place(&mut self.tables.informs, at);
    }

    /// Derives what follows from an entity that is new or has changed. The one before it is known.
    pub(crate) fn learn_entity(&mut self, at: usize) {
        let (entity, tables) = (&self.entities[at], &mut self.tables);
        if entity.kind == EntityKind::File && entity.version > 0 {
            tables.made.insert((entity.path.clone(), entity.id));
        }
        if entity.kind == EntityKind::Socket {
            tables.sockets.insert(entity.id);
        }
        let before = entity.previous.map(|one| one.0 as usize);
        let is_older = before.is_some_and(|one| tables.older.get(one) == Some(&true));
        *place(&mut tables.older, at) = entity.version == 0 || is_older;
        place(&mut tables.of_entity, at);
    }

    /// Forgets what follows from an entity that changes now.
    pub(crate) fn unlearn_entity(&mut self, at: usize) {
        let entity = &self.entities[at];
        let known = (entity.path.clone(), entity.id);
        self.tables.made.remove(&known);
    }

    /// Derives what follows from a new edge.
    pub(crate) fn learn_edge(&mut self, at: usize) {
        let (edge, tables) = (&self.edges[at], &mut self.tables);
        // A damaged store may name nodes that it lacks.
        if let Some(edges) = tables.of_activity.get_mut(edge.activity.0 as usize) {
            edges.push(at as u32);
        }
        if let Some(edges) = tables.of_entity.get_mut(edge.entity.0 as usize) {
            edges.push(at as u32);
        }
    }

    /// Derives what follows from a fork or an exec.
    pub(crate) fn learn_inform(&mut self, at: usize) {
        let from = self.informs[at].from.0 as usize;
        if let Some(informs) = self.tables.informs.get_mut(from) {
            informs.push(at as u32);
        }
    }

    /// Derives what follows from a derivation.
    pub(crate) fn learn_derived(&mut self, at: usize) {
        let one = self.derived[at];
        let known = self.tables.derived.entry(one.from).or_default();
        known.push(at as u32);
        // A version also derives from the one that it follows under the same name.
        if self.entity(one.entity).path == self.entity(one.from).path {
            return;
        }
        // The last one counts. A store and a lake give them in different orders.
        let from = (self.tables.from.entry(one.entity)).or_insert((one.time, one.from));
        *from = (*from).max((one.time, one.from));
    }
}

/// Of each version, whether it or one before it is older than the run. Each version is looked at
/// once: a file may have very many of them.
fn older(entities: &[Entity]) -> Vec<bool> {
    let mut known: Vec<Option<bool>> = vec![None; entities.len()];
    let mut chain = Vec::new();
    for entity in entities {
        let mut at = Some(entity.id);
        let mut is_older = false;
        while let Some(one) = at {
            let place = one.0 as usize;
            if let Some(found) = known[place] {
                is_older = found;
                break;
            }
            // A damaged store may have a cycle, which ends here.
            known[place] = Some(false);
            chain.push(place);
            is_older = entities[place].version == 0;
            at = entities[place].previous.filter(|_| !is_older);
        }
        for place in chain.drain(..) {
            known[place] = Some(is_older);
        }
    }
    known.into_iter().map(|one| one == Some(true)).collect()
}

/// The place in a table, which grows up to there.
fn place<T: Default>(table: &mut Vec<T>, at: usize) -> &mut T {
    if table.len() <= at {
        table.resize_with(at + 1, T::default);
    }
    &mut table[at]
}

#[cfg(test)]
mod tests {
    use super::super::tests::version;
    use super::*;

    #[test]
    fn versions_in_a_cycle_are_not_older_than_the_run() {
        let mut versions = [version(0, "/f", 1), version(1, "/f", 2)];
        versions[0].previous = Some(EntityId(1));
        versions[1].previous = Some(EntityId(0));
        assert_eq!(older(&versions), [false, false]);
    }
}
