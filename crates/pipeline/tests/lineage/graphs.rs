//! Random graphs of a few nodes, with many edges between them.

use backstory_eventlog::event::{Time, Via};
use backstory_files::Ident;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{
    Activity, ActivityId, Certainty, Derived, Edge, Entity, EntityId, EntityKind, Inform, Informed,
    Interval, Relation,
};
use proptest::prelude::*;

/// The nodes and edges of a graph as plain numbers.
#[derive(Debug, Clone)]
pub struct RandomGraph {
    entities: Vec<(u8, bool, bool)>,
    activities: Vec<u8>,
    edges: Vec<(u8, u8, u8, Time, Time, bool)>,
    informs: Vec<(u8, u8, u8, Time)>,
    derived: Vec<(u8, u8, u8, Time)>,
    taken: (Vec<bool>, Vec<bool>),
}

const LATEST: Time = 12;

pub fn any_graph() -> impl Strategy<Value = RandomGraph> {
    let entity = (0u8..12, any::<bool>(), any::<bool>());
    let edge = (
        any::<u8>(),
        any::<u8>(),
        0u8..11,
        0..LATEST,
        0..6i64,
        any::<bool>(),
    );
    let other = || (any::<u8>(), any::<u8>(), 0u8..4, 0..LATEST);
    (
        prop::collection::vec(entity, 1..8),
        prop::collection::vec(any::<u8>(), 1..7),
        prop::collection::vec(edge, 0..28),
        prop::collection::vec(other(), 0..8),
        prop::collection::vec(other(), 0..4),
        (
            prop::collection::vec(any::<bool>(), 8),
            prop::collection::vec(any::<bool>(), 8),
        ),
    )
        .prop_map(
            |(entities, activities, edges, informs, derived, taken)| RandomGraph {
                entities,
                activities,
                edges,
                informs,
                derived,
                taken,
            },
        )
}

impl RandomGraph {
    pub fn graph(&self) -> MemorySink {
        let mut graph = MemorySink::default();
        let all = (self.entities.len() as u8, self.activities.len() as u8);
        for (id, &(kind, version, last)) in (0..).zip(&self.entities) {
            let entity = self.entity(EntityId(id), kind, version, last);
            graph.entities.insert(entity.id, entity);
        }
        for (id, parent) in (0..).zip(&self.activities) {
            let activity = activity(id, u32::from(*parent));
            graph.activities.insert(activity.id, activity);
        }
        for &(activity, entity, relation, start, length, seen) in &self.edges {
            let edge = Edge {
                activity: ActivityId((activity % all.1).into()),
                entity: EntityId((entity % all.0).into()),
                relation: Relation::ALL[usize::from(relation)],
                interval: Interval {
                    start,
                    end: start + length,
                },
                certainty: if seen {
                    Certainty::Seen
                } else {
                    Certainty::Possible
                },
                via: Via::Library,
            };
            // An edge comes once.
            let is_same = |other: &&Edge| {
                (other.activity, other.entity, other.relation)
                    == (edge.activity, edge.entity, edge.relation)
            };
            if graph.edges.iter().find(is_same).is_none() {
                graph.edges.push(edge);
            }
        }
        for &(from, to, why, time) in &self.informs {
            graph.informs.push(Inform {
                from: ActivityId((from % all.1).into()),
                to: ActivityId((to % all.1).into()),
                why: Informed::ALL[usize::from(why)],
                time,
            });
        }
        for &(entity, from, activity, time) in &self.derived {
            graph.derived.push(Derived {
                entity: EntityId((entity % all.0).into()),
                from: EntityId((from % all.0).into()),
                activity: ActivityId((activity % all.1).into()),
                time,
            });
        }
        graph
    }

    fn entity(&self, id: EntityId, kind: u8, version: bool, last: bool) -> Entity {
        let forgetful = kind > 9;
        let kind = EntityKind::ALL[usize::from(kind) % 9];
        Entity {
            id,
            kind: if forgetful { EntityKind::Device } else { kind },
            path: match forgetful {
                true => b"/dev/null".as_slice().into(),
                false => format!("/f{}", id.0).into_bytes().into(),
            },
            aliases: Vec::new(),
            by_name: Vec::new(),
            version: version.into(),
            previous: None,
            ident: last.then(|| Ident {
                ino: u64::from(id.0) + 1,
                ..Ident::default()
            }),
            last,
        }
    }

    /// An earlier run made every third file.
    pub fn is_made_before(&self, entity: &Entity) -> bool {
        entity.ident.is_some_and(|ident| ident.ino % 3 == 0)
    }

    /// True if information flows into the entity from a process.
    pub fn is_written(&self, id: EntityId) -> bool {
        let graph = self.graph();
        let mut edges = graph.edges.iter();
        edges.any(|edge| edge.entity == id && backstory_graph::lineage::generates(edge.relation))
            && matches!(
                graph.entities[&id].kind,
                EntityKind::File | EntityKind::Directory | EntityKind::Symlink
            )
    }

    pub fn taken_entities(&self) -> Vec<u32> {
        chosen(self.entities.len(), &self.taken.0)
    }

    pub fn taken_activities(&self) -> Vec<u32> {
        chosen(self.activities.len(), &self.taken.1)
    }
}

fn chosen(of: usize, taken: &[bool]) -> Vec<u32> {
    (0..of as u32).filter(|id| taken[*id as usize]).collect()
}

fn activity(id: u32, parent: u32) -> Activity {
    Activity {
        id: ActivityId(id),
        parent: (id > 0).then(|| ActivityId(parent % id.max(1))),
        pid: 100 + id,
        epoch: 1,
        exec_path: Some(format!("/bin/p{id}").into_bytes().into()),
        argv: Vec::new(),
        env_set: Vec::new(),
        env_unset: Vec::new(),
        cwd: b"/".as_slice().into(),
        interval: Interval {
            start: 0,
            end: LATEST * 2,
        },
        exit: Some(0),
        signal: None,
        execed: false,
        lookups_known: true,
        via: Via::Library,
    }
}
