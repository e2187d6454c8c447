//! Sinks that hold a graph in memory, or drop it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use backstory_eventlog::event::Time;

use crate::model::{Activity, ActivityId, Derived, Edge, Entity, EntityId, Inform, Sink};

/// A graph as plain collections, for tests and small runs. It checks the guarantees that a sink
/// has: a node is announced before an edge names it, and an edge comes once.
#[derive(Debug, Default)]
pub struct MemorySink {
    /// Activities, as last announced.
    pub activities: BTreeMap<ActivityId, Activity>,
    /// Entities, as last announced.
    pub entities: BTreeMap<EntityId, Entity>,
    /// Edges in the order in which they came.
    pub edges: Vec<Edge>,
    /// Edges from activity to activity.
    pub informs: Vec<Inform>,
    /// Edges from version to version.
    pub derived: Vec<Derived>,
    /// Extended records.
    pub extended: Vec<(ActivityId, Time, Vec<u8>, Vec<u8>)>,
    /// Reasons why the graph is not complete.
    pub unknown: Vec<String>,
}

impl MemorySink {
    /// The newest version whose path or alias is `path`.
    pub fn newest(&self, path: &[u8]) -> Option<&Entity> {
        let named = |e: &&Entity| &*e.path == path || e.aliases.iter().any(|a| &**a == path);
        let is_version = |e: &&Entity| e.kind != crate::model::EntityKind::Missing;
        self.entities
            .values()
            .filter(is_version)
            .filter(named)
            .max_by_key(|e| (e.last, e.id))
    }
}

impl Sink for MemorySink {
    type Error = Infallible;

    fn activity(&mut self, activity: &Activity) -> Result<(), Infallible> {
        debug_assert!(
            activity.id.0 as usize <= self.activities.len(),
            "ids are dense"
        );
        self.activities.insert(activity.id, activity.clone());
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<(), Infallible> {
        debug_assert!(entity.id.0 as usize <= self.entities.len(), "ids are dense");
        self.entities.insert(entity.id, entity.clone());
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Infallible> {
        debug_assert!(
            self.activities.contains_key(&edge.activity),
            "announced before"
        );
        debug_assert!(self.entities.contains_key(&edge.entity), "announced before");
        self.edges.push(*edge);
        Ok(())
    }

    fn inform(&mut self, inform: &Inform) -> Result<(), Infallible> {
        debug_assert!(
            self.activities.contains_key(&inform.from) && self.activities.contains_key(&inform.to)
        );
        self.informs.push(*inform);
        Ok(())
    }

    fn derived(&mut self, derived: &Derived) -> Result<(), Infallible> {
        debug_assert!(
            self.entities.contains_key(&derived.entity)
                && self.entities.contains_key(&derived.from)
        );
        self.derived.push(*derived);
        Ok(())
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<(), Infallible> {
        self.extended
            .push((activity, time, kind.to_vec(), payload.to_vec()));
        Ok(())
    }

    fn unknown(&mut self, reason: &str) -> Result<(), Infallible> {
        self.unknown.push(reason.to_owned());
        Ok(())
    }
}

/// A sink that drops everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl Sink for NullSink {
    type Error = Infallible;

    fn activity(&mut self, _: &Activity) -> Result<(), Infallible> {
        Ok(())
    }

    fn entity(&mut self, _: &Entity) -> Result<(), Infallible> {
        Ok(())
    }

    fn edge(&mut self, _: &Edge) -> Result<(), Infallible> {
        Ok(())
    }

    fn inform(&mut self, _: &Inform) -> Result<(), Infallible> {
        Ok(())
    }

    fn derived(&mut self, _: &Derived) -> Result<(), Infallible> {
        Ok(())
    }

    fn extended(&mut self, _: ActivityId, _: Time, _: &[u8], _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn unknown(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
}
