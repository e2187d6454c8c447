//! The operations of one activity, found by the entity that they led to.

use backstory_graph::lineage::generates;
use backstory_graph::model::{Certainty, Derived, Edge, EntityId};
use backstory_store::Stream;

use super::Direction;

/// The operations of an activity that can be followed, indexed by entity. The lists are sorted,
/// because most are short and quickly searched.
pub(super) struct ActivityIndex {
    pub(super) stream: Stream,
    /// Generating edges backwards, using edges forwards.
    edges: Vec<(EntityId, u32)>,
    /// Derivations: by the new version backwards, by the old one forwards.
    derived: Vec<(EntityId, u32)>,
    /// Entities that it made.
    pub(super) made: Vec<EntityId>,
    /// Entities that it possibly made: it could write to them.
    pub(super) perhaps_made: Vec<EntityId>,
    /// Versions derived while it ran. They were made, too, unless one is only another name of a
    /// file from before the run.
    pub(super) derived_to: Vec<EntityId>,
}

impl ActivityIndex {
    pub(super) fn new(stream: Stream, direction: Direction) -> ActivityIndex {
        let (mut edges, mut made, mut perhaps_made) = (Vec::new(), Vec::new(), Vec::new());
        for (at, edge) in (0..).zip(&stream.edges) {
            if edge.relation.is_use() == (direction == Direction::Forth) {
                edges.push((edge.entity, at));
            }
            if generates(edge.relation) {
                match edge.certainty {
                    Certainty::Seen => made.push(edge.entity),
                    Certainty::Possible => perhaps_made.push(edge.entity),
                }
            }
        }
        let end = |derived: &Derived| match direction {
            Direction::Back => derived.entity,
            Direction::Forth => derived.from,
        };
        let mut derived: Vec<(EntityId, u32)> = (0..)
            .zip(&stream.derived)
            .map(|(at, derived)| (end(derived), at))
            .collect();
        let mut derived_to: Vec<EntityId> = stream
            .derived
            .iter()
            .map(|derived| derived.entity)
            .collect();
        // Edges of one entity keep the order of the stream.
        edges.sort_unstable();
        derived.sort_unstable();
        made.sort_unstable();
        perhaps_made.sort_unstable();
        derived_to.sort_unstable();
        ActivityIndex {
            stream,
            edges,
            derived,
            made,
            perhaps_made,
            derived_to,
        }
    }

    pub(super) fn edges_of(&self, entity: EntityId) -> impl Iterator<Item = &Edge> {
        places(&self.edges, entity).map(|at| &self.stream.edges[at])
    }

    pub(super) fn derived_of(&self, entity: EntityId) -> impl Iterator<Item = &Derived> {
        places(&self.derived, entity).map(|at| &self.stream.derived[at])
    }
}

/// The positions that a sorted list has for an entity.
fn places(list: &[(EntityId, u32)], entity: EntityId) -> impl Iterator<Item = usize> {
    let from = list.partition_point(|(other, _)| *other < entity);
    let here = list[from..]
        .iter()
        .take_while(move |(other, _)| *other == entity);
    here.map(|(_, at)| *at as usize)
}
