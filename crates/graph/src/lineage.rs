//! Defines which nodes come from which: the time-respecting paths through a graph in memory.
//!
//! Information flows along an edge at some moment of its interval, and never back in time. So a
//! search carries a time. Backwards, it is the latest moment at which information can still have
//! mattered. Forwards, it is the earliest moment at which information can have arrived. The search
//! reaches each node once, with the best time.
//!
//! Stores answer the same question from their indexes. Their tests compare the answers with this
//! module's.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use backstory_eventlog::event::Time;

use crate::memory::MemorySink;
use crate::model::{
    ActivityId, Certainty, Derived, Edge, EntityId, EntityKind, Inform, Informed, Relation,
};

/// Which edges to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follow {
    /// Also edges that are only possible.
    pub possible: bool,
    /// Also look-ups (stat, missing, listings, links), and not only content and execution.
    pub lookups: bool,
}

impl Default for Follow {
    fn default() -> Follow {
        Follow {
            possible: true,
            lookups: false,
        }
    }
}

/// True if content flows from an activity to an entity by this relation. A removal or a change of
/// mode puts nothing into a file.
pub fn generates(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Write | Relation::Rename | Relation::Make
    )
}

/// True if a search follows this use.
pub fn uses(relation: Relation, lookups: bool) -> bool {
    matches!(relation, Relation::Read | Relation::Execute) || lookups && relation.is_use()
}

/// True if an activity passes what it knew on to another activity. An exit status or a signal is
/// recorded, but carries too little information to follow.
pub fn informs(why: Informed) -> bool {
    matches!(why, Informed::Fork | Informed::Exec)
}

/// True for a device that passes nothing from one open to another: `/dev/null`, terminals, GPUs,
/// and what `/proc` tells each process about itself. A search does not pass through such an entity:
/// no reader gets what a writer wrote. Other devices, such as disks, keep it.
pub fn forgets(kind: EntityKind, path: &[u8]) -> bool {
    kind == EntityKind::Device && (is_generic(path) || begins(path, &DRIVERS))
}

/// The devices that stand for hardware or for a driver, so that a reader wants their names: GPUs,
/// disks, cameras. Sorted, each once. Left out are the kernel's generic devices, terminals,
/// `/proc`, `/sys`, and the directories of devices.
pub fn named_devices<'p>(
    entities: impl IntoIterator<Item = (EntityKind, &'p [u8])>,
) -> Vec<&'p [u8]> {
    let is_named = |kind: EntityKind, path: &[u8]| {
        kind == EntityKind::Device
            && path.starts_with(b"/dev/")
            && !is_generic(path)
            && !begins(path, &[b"/dev/fd/", b"/dev/std"])
    };
    let mut found: Vec<&[u8]> = entities
        .into_iter()
        .filter(|(kind, path)| is_named(*kind, path))
        .map(|(_, path)| path)
        .collect();
    found.sort_unstable();
    found.dedup();
    let all = found.clone();
    found.retain(|directory| {
        let holds = |path: &&[u8]| {
            path.strip_prefix(*directory)
                .is_some_and(|rest| rest.starts_with(b"/"))
        };
        !all.iter().any(holds)
    });
    found
}

fn is_generic(path: &[u8]) -> bool {
    FORGETFUL.contains(&path) || begins(path, &FORGETFUL_BELOW)
}

fn begins(path: &[u8], known: &[&[u8]]) -> bool {
    known.iter().any(|directory| path.starts_with(directory))
}

/// The kernel's devices without a memory (`admin-guide/devices.txt`, major numbers 1 and 5).
const FORGETFUL: [&[u8]; 10] = [
    b"/dev/null",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/random",
    b"/dev/urandom",
    b"/dev/kmsg",
    b"/dev/console",
    b"/dev/ptmx",
    b"/dev/pts/ptmx",
    b"/dev/tty",
];

/// Beginnings of the paths of such devices: terminals, and a process's own directory.
const FORGETFUL_BELOW: [&[u8]; 4] = [
    b"/dev/pts/",
    b"/dev/tty",
    b"/proc/self/",
    b"/proc/thread-self/",
];

/// Beginnings of the paths of drivers' interfaces with a state for each open: the contexts of a GPU
/// are separate address spaces (`gpu/drm-uapi.rst` for `/dev/dri`). Memory that programs share on
/// purpose is passed as a descriptor, which is a link of its own.
const DRIVERS: [&[u8]; 9] = [
    b"/dev/nvidia",
    b"/dev/dri/",
    b"/dev/kfd",
    b"/dev/accel/",
    b"/dev/infiniband/",
    b"/dev/fuse",
    b"/dev/kvm",
    b"/dev/net/tun",
    b"/dev/vhost-",
];

/// An entity or an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphNode {
    /// A version of a file, a pipe, a socket …
    Entity(EntityId),
    /// An exec epoch.
    Activity(ActivityId),
}

/// The nodes that a search reached, each with its best time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Entities and activities.
    pub nodes: BTreeMap<GraphNode, Time>,
}

impl Reached {
    /// True if `node` was reached.
    pub fn contains(&self, node: GraphNode) -> bool {
        self.nodes.contains_key(&node)
    }

    /// The entities.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.nodes.keys().filter_map(|n| {
            if let GraphNode::Entity(e) = n {
                Some(*e)
            } else {
                None
            }
        })
    }

    /// The activities.
    pub fn activities(&self) -> impl Iterator<Item = ActivityId> {
        self.nodes.keys().filter_map(|n| {
            if let GraphNode::Activity(a) = n {
                Some(*a)
            } else {
                None
            }
        })
    }
}

/// A graph with its edges indexed by both ends.
#[derive(Debug)]
pub struct LineageSearch<'a> {
    follow: Follow,
    of_entity: BTreeMap<EntityId, Vec<&'a Edge>>,
    of_activity: BTreeMap<ActivityId, Vec<&'a Edge>>,
    informs: &'a [Inform],
    derived: &'a [Derived],
    /// The entities that no search passes through.
    forgetful: BTreeSet<EntityId>,
}

impl<'a> LineageSearch<'a> {
    /// Lineage over `graph`.
    pub fn new(graph: &'a MemorySink, follow: Follow) -> LineageSearch<'a> {
        let mut lineage = LineageSearch {
            follow,
            of_entity: BTreeMap::new(),
            of_activity: BTreeMap::new(),
            informs: &graph.informs,
            derived: &graph.derived,
            forgetful: graph
                .entities
                .values()
                .filter(|entity| forgets(entity.kind, &entity.path))
                .map(|entity| entity.id)
                .collect(),
        };
        for edge in graph
            .edges
            .iter()
            .filter(|e| follow.possible || e.certainty == Certainty::Seen)
        {
            lineage.of_entity.entry(edge.entity).or_default().push(edge);
            lineage
                .of_activity
                .entry(edge.activity)
                .or_default()
                .push(edge);
        }
        lineage
    }

    /// Every node from which information can have flowed into `node`, and until when.
    pub fn ancestors(&self, node: GraphNode) -> Reached {
        search(node, Time::MAX, |at, until| match at {
            GraphNode::Entity(entity) if at != node && self.forgetful.contains(&entity) => {
                Vec::new()
            }
            GraphNode::Entity(entity) => self.before_entity(entity, until),
            GraphNode::Activity(activity) => self.before_activity(activity, until),
        })
    }

    /// Every node into which information from `node` can have flowed, and since when.
    pub fn descendants(&self, node: GraphNode) -> Reached {
        // The same search in mirrored time.
        let mut reached = search(node, Time::MAX, |at, since| match at {
            GraphNode::Entity(entity) if at != node && self.forgetful.contains(&entity) => {
                Vec::new()
            }
            GraphNode::Entity(entity) => self.after_entity(entity, mirror(since)),
            GraphNode::Activity(activity) => self.after_activity(activity, mirror(since)),
        });
        reached
            .nodes
            .values_mut()
            .for_each(|time| *time = mirror(*time));
        reached
    }

    fn before_entity(&self, entity: EntityId, until: Time) -> Vec<(GraphNode, Time)> {
        let generated = self
            .edges_of_entity(entity)
            .filter(|e| generates(e.relation) && e.interval.start <= until);
        let mut found: Vec<_> = generated
            .map(|e| (GraphNode::Activity(e.activity), until.min(e.interval.end)))
            .collect();
        let derived = self
            .derived
            .iter()
            .filter(|d| d.entity == entity && d.time <= until);
        found.extend(derived.map(|d| (GraphNode::Entity(d.from), until.min(d.time))));
        found
    }

    fn before_activity(&self, activity: ActivityId, until: Time) -> Vec<(GraphNode, Time)> {
        let used = self
            .edges_of_activity(activity)
            .filter(|e| self.used(e) && e.interval.start <= until);
        let mut found: Vec<_> = used
            .map(|e| (GraphNode::Entity(e.entity), until.min(e.interval.end)))
            .collect();
        let informed = self
            .informs
            .iter()
            .filter(|i| i.to == activity && informs(i.why));
        found.extend(informed.map(|i| (GraphNode::Activity(i.from), until.min(i.time))));
        found
    }

    fn after_entity(&self, entity: EntityId, since: Time) -> Vec<(GraphNode, Time)> {
        let used = self
            .edges_of_entity(entity)
            .filter(|e| self.used(e) && e.interval.end >= since);
        let mut found: Vec<_> = used
            .map(|e| {
                (
                    GraphNode::Activity(e.activity),
                    mirror(since.max(e.interval.start)),
                )
            })
            .collect();
        let derived = self
            .derived
            .iter()
            .filter(|d| d.from == entity && d.time >= since);
        found.extend(derived.map(|d| (GraphNode::Entity(d.entity), mirror(since.max(d.time)))));
        found
    }

    fn after_activity(&self, activity: ActivityId, since: Time) -> Vec<(GraphNode, Time)> {
        let generated = self
            .edges_of_activity(activity)
            .filter(|e| generates(e.relation) && e.interval.end >= since);
        let mut found: Vec<_> = generated
            .map(|e| {
                (
                    GraphNode::Entity(e.entity),
                    mirror(since.max(e.interval.start)),
                )
            })
            .collect();
        let informed = self
            .informs
            .iter()
            .filter(|i| i.from == activity && informs(i.why) && i.time >= since);
        found.extend(informed.map(|i| (GraphNode::Activity(i.to), mirror(i.time))));
        found
    }

    fn used(&self, edge: &Edge) -> bool {
        uses(edge.relation, self.follow.lookups)
    }

    fn edges_of_entity(&self, entity: EntityId) -> impl Iterator<Item = &'a Edge> {
        self.of_entity.get(&entity).into_iter().flatten().copied()
    }

    fn edges_of_activity(&self, activity: ActivityId) -> impl Iterator<Item = &'a Edge> {
        self.of_activity
            .get(&activity)
            .into_iter()
            .flatten()
            .copied()
    }
}

/// Reverses time, so that the earliest moment becomes the greatest number.
fn mirror(time: Time) -> Time {
    !time
}

/// Visits nodes in the order of falling time, so that the first visit of a node has its best time.
fn search(
    from: GraphNode,
    time: Time,
    next: impl Fn(GraphNode, Time) -> Vec<(GraphNode, Time)>,
) -> Reached {
    let mut reached = Reached::default();
    let mut pending = BinaryHeap::from([(time, from)]);
    while let Some((time, node)) = pending.pop() {
        if reached.contains(node) {
            continue;
        }
        reached.nodes.insert(node, time);
        pending.extend(
            next(node, time)
                .into_iter()
                .map(|(node, time)| (time, node)),
        );
    }
    reached
}
