//! The statements of a document, as they are collected.

use super::MOST;
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::JobRank;
use backstory_graph::model::{EntityKind, Informed, Relation};

/// An activity of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ActivityNumber(pub(crate) u32);

/// An entity of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntityNumber(pub(crate) u32);

/// Two moments, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// The earliest moment.
    pub(crate) start: Option<Time>,
    /// The latest one.
    pub(crate) end: Option<Time>,
}

impl Span {
    /// Takes in another span of the same thing.
    pub(crate) fn join(&mut self, other: Span) {
        self.start = self.start.into_iter().chain(other.start).min();
        self.end = self.end.into_iter().chain(other.end).max();
    }
}

/// An activity.
#[derive(Debug, Clone, Default)]
pub(crate) struct DescribedActivity {
    /// The words of its command, or its name alone.
    pub(crate) words: Vec<Vec<u8>>,
    /// The absolute path of its program.
    pub(crate) program: Option<Vec<u8>>,
    /// Its directory; empty if unknown.
    pub(crate) cwd: Vec<u8>,
    /// When it ran.
    pub(crate) span: Span,
    /// Its status as wait(2) reports it.
    pub(crate) status: Option<i32>,
    /// Its process id.
    pub(crate) pid: Option<u32>,
    /// It is no command, but something that a tool names.
    pub(crate) is_part: bool,
    /// Its attributes: names and values.
    pub(crate) notes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its place in a job of a launcher of parallel work.
    pub(crate) job_rank: Option<JobRank>,
}

/// An entity.
#[derive(Debug, Clone)]
pub(crate) struct DescribedEntity {
    /// Its absolute path, or its name.
    pub(crate) path: Box<[u8]>,
    /// Its kind.
    pub(crate) kind: EntityKind,
    /// Its version, if the document numbers versions.
    pub(crate) version: Option<u32>,
}

/// A relation of an activity and an entity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    /// The activity.
    pub(crate) activity: ActivityNumber,
    /// The entity.
    pub(crate) entity: EntityNumber,
    /// How they are related.
    pub(crate) relation: Relation,
    /// It happened. Otherwise it can have happened.
    pub(crate) is_certain: bool,
    /// When.
    pub(crate) span: Span,
}

/// An activity informed another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Informing {
    pub(crate) from: ActivityNumber,
    pub(crate) to: ActivityNumber,
    pub(crate) why: Informed,
    pub(crate) time: Option<Time>,
}

/// An entity was made from another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Derivation {
    pub(crate) entity: EntityNumber,
    pub(crate) from: EntityNumber,
    /// The activity, if the document names it.
    pub(crate) activity: Option<ActivityNumber>,
    pub(crate) time: Option<Time>,
}

/// All that a document states.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) activities: Vec<DescribedActivity>,
    pub(crate) entities: Vec<DescribedEntity>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) informings: Vec<Informing>,
    pub(crate) derivations: Vec<Derivation>,
    /// Pairs of entities that are one.
    pub(super) same: Vec<(EntityNumber, EntityNumber)>,
    /// The directory of the run, if it is known.
    pub(crate) cwd: Vec<u8>,
}

impl Description {
    /// True if the document has more than is read.
    pub(crate) fn is_full(&self) -> bool {
        let nodes = self.activities.len() + self.entities.len();
        let relations = self.flows.len() + self.informings.len() + self.derivations.len();
        nodes + relations + self.same.len() > MOST
    }

    /// Adds an activity.
    pub(crate) fn activity(&mut self, activity: DescribedActivity) -> ActivityNumber {
        self.activities.push(activity);
        ActivityNumber(self.activities.len() as u32 - 1)
    }

    /// Adds an entity.
    pub(crate) fn entity(&mut self, path: Vec<u8>, kind: EntityKind) -> EntityNumber {
        self.entities.push(DescribedEntity {
            path: path.into(),
            kind,
            version: None,
        });
        EntityNumber(self.entities.len() as u32 - 1)
    }

    /// An activity, to complete it.
    pub(crate) fn activity_mut(&mut self, number: ActivityNumber) -> &mut DescribedActivity {
        &mut self.activities[number.0 as usize]
    }

    /// An entity, to complete it.
    pub(crate) fn entity_mut(&mut self, number: EntityNumber) -> &mut DescribedEntity {
        &mut self.entities[number.0 as usize]
    }

    /// Adds a relation.
    pub(crate) fn flow(&mut self, flow: Flow) {
        self.flows.push(flow);
    }

    /// Adds a certain relation.
    pub(crate) fn happened(
        &mut self,
        activity: ActivityNumber,
        relation: Relation,
        entity: EntityNumber,
        span: Span,
    ) {
        self.flows.push(Flow {
            activity,
            entity,
            relation,
            is_certain: true,
            span,
        });
    }

    /// One activity informed another.
    pub(crate) fn inform(
        &mut self,
        from: ActivityNumber,
        to: ActivityNumber,
        why: Informed,
        time: Option<Time>,
    ) {
        if from != to {
            self.informings.push(Informing {
                from,
                to,
                why,
                time,
            });
        }
    }

    /// Drops what the document states again.
    pub(super) fn drop_repeated_informings(&mut self) {
        let mut known = std::collections::HashSet::new();
        self.informings
            .retain(|one| known.insert((one.from, one.to, one.why)));
    }

    /// One entity was made from another.
    pub(crate) fn derive(
        &mut self,
        entity: EntityNumber,
        from: EntityNumber,
        activity: Option<ActivityNumber>,
        time: Option<Time>,
    ) {
        if entity != from {
            self.derivations.push(Derivation {
                entity,
                from,
                activity,
                time,
            });
        }
    }

    /// Two entities are one.
    pub(crate) fn unite(&mut self, one: EntityNumber, other: EntityNumber) {
        if one != other {
            self.same.push((one, other));
        }
    }
}
