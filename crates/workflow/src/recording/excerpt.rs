//! Reads the part of a run that an answer is about.
//!
//! In: a store, a run, and the activities and entities that count. Out: a [`Recording`] of these
//! activities and all above them. Its ids are dense and differ from the store's, so [`ExcerptIds`]
//! maps the store's ids to them.
//!
//! Absent: derivations and informs, the peers of the run, and the edges to other entities. Only
//! programs and libraries that an activity executed are always there.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Activity, ActivityId, Edge, Entity, EntityId, Relation};
use backstory_graph::standard::{self, StandardDescriptors, StandardEnd};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use rustc_hash::FxHashMap;

use super::{MarkedActivities, Recording};
use crate::Result;

/// The indexes that the activities and entities of a run have in an excerpt.
#[derive(Debug, Default)]
pub struct ExcerptIds {
    /// The index of each activity.
    pub activities: FxHashMap<ActivityId, usize>,
    /// The entity in the excerpt for each entity of the run.
    pub entities: FxHashMap<EntityId, EntityId>,
}

impl Recording {
    /// Reads `wanted` activities of a run, all activities above them, and their edges to executed
    /// files and to entities that `counts` accepts.
    ///
    /// # Errors
    ///
    /// If there is no such run or activity, or the store fails.
    pub fn excerpt(
        store: &dyn Store,
        run: RunKey,
        wanted: &[ActivityId],
        counts: &dyn Fn(EntityId) -> bool,
    ) -> Result<(Recording, ExcerptIds)> {
        let _one_state = store.reading()?;
        let id = store.run_id(run)?;
        let id = id.ok_or_else(|| backstory_query::Error::NoRun(format!("number {}", run.0)))?;
        let mut reader = ExcerptReader {
            store,
            run,
            ids: ExcerptIds::default(),
            entities: Vec::new(),
        };
        let activities = reader.with_ancestors(wanted)?;
        let mut edges = Vec::new();
        for old in activities.keys() {
            edges.push(reader.edges(*old, counts)?);
        }
        let (stored, activities): (Vec<ActivityId>, Vec<Activity>) = activities.into_iter().unzip();
        let extended = store.extended(run)?;
        let (recorded, given) = reader.descriptors(&extended)?;
        let marked = reader.marked(&extended);
        let mut recording = Recording {
            key: run,
            details: backstory_query::facts(store, &id)?,
            children: children(&activities),
            activities,
            stored,
            entities: reader.entities,
            edges,
            derived: Vec::new(),
            informs: Vec::new(),
            standard: Vec::new(),
            given,
            marked,
        };
        recording.standard = recording.inherit(&recorded);
        Ok((recording, reader.ids))
    }
}

/// The activities that each activity started, in order of time.
pub(super) fn children(activities: &[Activity]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); activities.len()];
    for (at, activity) in activities.iter().enumerate() {
        if let Some(parent) = activity.parent.map(|parent| parent.0 as usize)
            && parent < children.len()
            && parent != at
        {
            children[parent].push(at);
        }
    }
    for children in &mut children {
        children.sort_small_by_key(|&child| (activities[child].interval.start, child));
    }
    children
}

/// The standard descriptors by activity, and the files that an activity opened for its children.
type DescriptorRecords = (
    HashMap<usize, StandardDescriptors>,
    HashSet<(usize, EntityId)>,
);

/// An activity, a time, the type of a record and its payload.
type ExtendedRecord = (ActivityId, Time, Bytes, Bytes);

struct ExcerptReader<'s> {
    store: &'s dyn Store,
    run: RunKey,
    ids: ExcerptIds,
    entities: Vec<Entity>,
}

impl ExcerptReader<'_> {
    /// The wanted activities and those above them, with ids and parents of the excerpt.
    fn with_ancestors(&mut self, wanted: &[ActivityId]) -> Result<BTreeMap<ActivityId, Activity>> {
        let mut all = BTreeMap::new();
        let mut waiting = wanted.to_vec();
        while let Some(id) = waiting.pop() {
            if all.contains_key(&id) {
                continue;
            }
            let activity = self.store.activity(ActivityKey::new(self.run, id))?;
            waiting.extend(activity.parent);
            all.insert(id, activity);
        }
        self.ids.activities = (0..).zip(all.keys()).map(|(at, id)| (*id, at)).collect();
        for (at, activity) in (0..).zip(all.values_mut()) {
            let parent = activity.parent.and_then(|id| self.ids.activities.get(&id));
            activity.parent = parent.map(|&parent| ActivityId(parent as u32));
            activity.id = ActivityId(at);
        }
        Ok(all)
    }

    fn edges(
        &mut self,
        activity: ActivityId,
        counts: &dyn Fn(EntityId) -> bool,
    ) -> Result<Vec<Edge>> {
        let mut edges = self
            .store
            .stream(ActivityKey::new(self.run, activity))?
            .edges;
        edges.retain(|edge| edge.relation == Relation::Execute || counts(edge.entity));
        // Most edges of a process are not about these entities.
        edges.shrink_to_fit();
        for edge in &mut edges {
            edge.entity = self.entity(edge.entity)?;
        }
        Ok(edges)
    }

    /// The entity of the excerpt for an entity of the run.
    fn entity(&mut self, old: EntityId) -> Result<EntityId> {
        if let Some(known) = self.ids.entities.get(&old) {
            return Ok(*known);
        }
        let id = EntityId(self.entities.len() as u32);
        let mut entity = self.store.entity(EntityKey::new(self.run, old))?;
        entity.id = id;
        // The earlier version itself may not be there, but its presence is a fact.
        entity.previous = entity.previous.map(|_| id);
        self.entities.push(entity);
        self.ids.entities.insert(old, id);
        Ok(id)
    }

    /// Statements of programs about the activities.
    fn marked(&self, records: &[ExtendedRecord]) -> MarkedActivities {
        let mut marked = MarkedActivities::default();
        for (activity, _, kind, payload) in records {
            if let Some(&at) = self.ids.activities.get(activity) {
                marked.add(at, kind, payload);
            }
        }
        marked
    }

    /// The standard descriptors that were recorded, and the files that were opened for children.
    fn descriptors(&mut self, records: &[ExtendedRecord]) -> Result<DescriptorRecords> {
        let (mut recorded, mut given) = (HashMap::new(), HashSet::new());
        for (activity, _, kind, payload) in records {
            let Some(&at) = self.ids.activities.get(activity) else {
                continue;
            };
            if **kind == *standard::GIVEN {
                for entity in standard::decode_given(payload) {
                    if let Some(&entity) = self.ids.entities.get(&entity) {
                        given.insert((at, entity));
                    }
                }
            }
            if **kind == *standard::KIND
                && let Some(found) = standard::decode(payload)
            {
                let mut ends = [None; 3];
                for (end, old) in ends.iter_mut().zip(found.all()) {
                    if let Some(StandardEnd { entity, keeps }) = old {
                        let entity = self.entity(entity)?;
                        *end = Some(StandardEnd { entity, keeps });
                    }
                }
                recorded.insert(at, ends.into());
            }
        }
        Ok((recorded, given))
    }
}
