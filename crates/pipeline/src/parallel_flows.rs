//! Finds taken entities beside which another path passes the same information.
//!
//! Let an entity have a writer with the interval `[a, b]` and a reader with `[c, d]`. It passes
//! what the writer has at a time `t`, if `t` is at most `min(b, d)`. The reader has it at
//! `max(t, a, c)`. So a path is two times: the last departure and the first arrival. A path with
//! a later departure and an earlier arrival passes all that the other one passes.
//!
//! Invariant: an entity is reported only if each of its paths has such another path. The other path
//! is at least as certain, and no look-up unless the first one is. So lineage does not change.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{forgets, generates, informs, uses};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ActivityId, Certainty, Edge, EntityId};

/// The most pairs of a writer and a reader of one entity that are compared.
const MOST_PAIRS: usize = 64;

/// A path from one activity to another, through one entity at most.
#[derive(Debug, Clone, Copy)]
struct ParallelPath {
    departure: Time,
    arrival: Time,
    seen: bool,
    content: bool,
}

impl ParallelPath {
    /// The path through an entity. `None` if the reader was done before the writer began.
    fn through(written: &Edge, read: &Edge) -> Option<ParallelPath> {
        let (into, out) = (written.interval, read.interval);
        let seen = |edge: &Edge| edge.certainty == Certainty::Seen;
        (into.start <= out.end).then(|| ParallelPath {
            departure: into.end.min(out.end),
            arrival: into.start.max(out.start),
            seen: seen(written) && seen(read),
            content: uses(read.relation, false),
        })
    }

    /// True if this path passes all that the other one passes.
    fn covers(&self, other: &ParallelPath) -> bool {
        self.departure >= other.departure
            && self.arrival <= other.arrival
            && self.seen >= other.seen
            && self.content >= other.content
    }
}

type Paths = BTreeMap<(ActivityId, ActivityId), Vec<ParallelPath>>;

/// The entities of `candidates` without which lineage is the same.
pub(crate) fn redundant(graph: &MemorySink, candidates: &BTreeSet<EntityId>) -> BTreeSet<EntityId> {
    let mut by_entity: BTreeMap<EntityId, (Vec<&Edge>, Vec<&Edge>)> = BTreeMap::new();
    for edge in &graph.edges {
        if generates(edge.relation) {
            by_entity.entry(edge.entity).or_default().0.push(edge);
        } else if edge.relation.is_use() {
            by_entity.entry(edge.entity).or_default().1.push(edge);
        }
    }
    let mut known = Paths::new();
    for inform in graph.informs.iter().filter(|inform| informs(inform.why)) {
        known
            .entry((inform.from, inform.to))
            .or_default()
            .push(ParallelPath {
                departure: inform.time,
                arrival: inform.time,
                seen: true,
                content: true,
            });
    }
    let paths = |id: EntityId| {
        let (writes, reads) = by_entity.get(&id)?;
        (writes.len() * reads.len() <= MOST_PAIRS).then(|| paths_through(writes, reads))
    };
    for entity in graph.entities.values() {
        if !candidates.contains(&entity.id) && !forgets(entity.kind, &entity.path) {
            learn(&mut known, paths(entity.id).unwrap_or_default());
        }
    }
    let mut found = BTreeSet::new();
    for id in candidates {
        let Some(own) = paths(*id) else { continue };
        let is_covered = |(ends, path): &(_, ParallelPath)| {
            let (from, to): &(ActivityId, ActivityId) = ends;
            let others = known.get(ends);
            from == to || others.is_some_and(|all| all.iter().any(|other| other.covers(path)))
        };
        if own.iter().all(is_covered) {
            found.insert(*id);
        } else {
            learn(&mut known, own);
        }
    }
    found
}

type Between = ((ActivityId, ActivityId), ParallelPath);

fn paths_through(writes: &[&Edge], reads: &[&Edge]) -> Vec<Between> {
    let pairs = writes
        .iter()
        .flat_map(|write| reads.iter().map(move |read| (write, read)));
    pairs
        .filter_map(|(write, read)| {
            let path = ParallelPath::through(write, read)?;
            Some(((write.activity, read.activity), path))
        })
        .collect()
}

fn learn(known: &mut Paths, paths: Vec<Between>) {
    for (ends, path) in paths {
        known.entry(ends).or_default().push(path);
    }
}
