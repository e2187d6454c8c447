//! Which activities used and made each version of a run.

use backstory_graph::model::{ActivityId, Edge, EntityId, Relation};
use backstory_query::is_source;
use backstory_store::{ActivityKey, RunRecord, Store, Stream};
use rustc_hash::FxHashSet;

use super::Error;

/// The activities that did something with a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activities {
    #[default]
    Zero,
    One(ActivityId),
    Many,
}

impl Activities {
    fn and(self, another: ActivityId) -> Activities {
        match self {
            Activities::Zero => Activities::One(another),
            Activities::One(id) if id == another => self,
            _ => Activities::Many,
        }
    }

    fn join(self, others: Activities) -> Activities {
        match others {
            Activities::Zero => self,
            Activities::One(id) => self.and(id),
            Activities::Many => Activities::Many,
        }
    }
}

/// The uses of one version.
#[derive(Debug, Clone, Copy, Default)]
pub struct VersionUses {
    /// Activities that read or executed it.
    pub used: Activities,
    /// Activities that wrote it, gave it its name, read its text (a link), or derived it from
    /// another version.
    pub made: Activities,
    /// Activities that wrote its content, also under an earlier name. Zero for a content that was
    /// there before the run.
    wrote: Activities,
    /// Activities that derived another version from it.
    pub became: Activities,
}

impl VersionUses {
    /// True if an activity read the version that is not its only writer. An activity that only gave
    /// the content another name has not written it.
    pub fn is_needed(&self) -> bool {
        match self.used {
            Activities::Zero => false,
            Activities::One(_) => self.used != self.made || self.used != self.wrote,
            Activities::Many => true,
        }
    }
}

/// A version that has the content of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SameContent {
    entity: EntityId,
    from: EntityId,
}

/// The uses of all versions of a run.
#[derive(Debug)]
pub struct Uses {
    versions: Vec<VersionUses>,
    listed: FxHashSet<EntityId>,
}

impl Uses {
    /// Reads the uses of a run's versions. There are `count` of them.
    pub fn of(store: &dyn Store, run: &RunRecord, count: usize) -> Result<Uses, Error> {
        let mut uses = Uses {
            versions: vec![VersionUses::default(); count],
            listed: FxHashSet::default(),
        };
        let mut passed = Vec::new();
        for activity in store.activities(run.key)? {
            if is_source(&run.header, activity.id) {
                continue;
            }
            let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
            for edge in &stream.edges {
                uses.add(activity.id, edge);
            }
            uses.add_derived(activity.id, &stream, &mut passed);
            let lists = |edge: &&Edge| match edge.relation {
                Relation::List => true,
                // For a program without the recorder, only the open of the directory is known.
                Relation::Stat => !activity.lookups_known,
                _ => false,
            };
            let lists = stream.edges.iter().filter(lists);
            uses.listed.extend(lists.map(|edge| edge.entity));
        }
        uses.pass_on(passed);
        Ok(uses)
    }

    /// The uses of a version.
    pub fn version(&self, id: EntityId) -> VersionUses {
        let known = self.versions.get(id.0 as usize);
        known.copied().unwrap_or_default()
    }

    /// Whether an activity listed a directory, or may have done so.
    pub fn is_listed(&self, directory: EntityId) -> bool {
        self.listed.contains(&directory)
    }

    fn add(&mut self, who: ActivityId, edge: &Edge) {
        let Some(version) = self.versions.get_mut(edge.entity.0 as usize) else {
            return;
        };
        match edge.relation {
            Relation::Read | Relation::Execute => version.used = version.used.and(who),
            Relation::Write => {
                version.made = version.made.and(who);
                version.wrote = version.wrote.and(who);
            }
            Relation::Rename | Relation::Make | Relation::Link => {
                version.made = version.made.and(who);
            }
            _ => {}
        }
    }

    /// Adds the versions that an activity derived. Those that it did not write have the content of
    /// their origin: after a rename, or a use by another hard link. They are added to `passed`.
    fn add_derived(&mut self, who: ActivityId, stream: &Stream, passed: &mut Vec<SameContent>) {
        if stream.derived.is_empty() {
            return;
        }
        let writes = stream.edges.iter();
        let writes = writes.filter(|edge| edge.relation == Relation::Write);
        let wrote: FxHashSet<EntityId> = writes.map(|edge| edge.entity).collect();
        for derived in &stream.derived {
            let (entity, from) = (derived.entity, derived.from);
            if let Some(version) = self.versions.get_mut(entity.0 as usize) {
                version.made = version.made.and(who);
            }
            if let Some(version) = self.versions.get_mut(from.0 as usize) {
                version.became = version.became.and(who);
            }
            if !wrote.contains(&entity) {
                passed.push(SameContent { entity, from });
            }
        }
    }

    /// Adds the writers of a content to the versions that have it from another version.
    fn pass_on(&mut self, mut passed: Vec<SameContent>) {
        // The fold numbers a version after its origin.
        passed.sort_unstable();
        for SameContent { entity, from } in passed {
            let wrote = match from < entity {
                true => self.version(from).wrote,
                false => Activities::Many,
            };
            if let Some(version) = self.versions.get_mut(entity.0 as usize) {
                version.wrote = version.wrote.join(wrote);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_eventlog::event::Via;
    use backstory_graph::model::{Certainty, Derived, Interval};

    /// The number of an activity, its relations to versions, and the versions that it derived, each
    /// with its origin.
    type Done<'a> = (u32, &'a [(Relation, u32)], &'a [(u32, u32)]);

    /// The uses of three versions.
    fn uses(activities: &[Done<'_>]) -> Uses {
        let (start, end) = (0, 0);
        let mut uses = Uses {
            versions: vec![VersionUses::default(); 3],
            listed: FxHashSet::default(),
        };
        let mut passed = Vec::new();
        for &(who, edges, derived) in activities {
            let activity = ActivityId(who);
            let edges = edges.iter().map(|&(relation, entity)| Edge {
                activity,
                entity: EntityId(entity),
                relation,
                interval: Interval { start, end },
                certainty: Certainty::Seen,
                via: Via::Library,
            });
            let derived = derived.iter().map(|&(entity, from)| Derived {
                entity: EntityId(entity),
                from: EntityId(from),
                activity,
                time: start,
            });
            let stream = Stream {
                edges: edges.collect(),
                derived: derived.collect(),
                ..Stream::default()
            };
            for edge in &stream.edges {
                uses.add(activity, edge);
            }
            uses.add_derived(activity, &stream, &mut passed);
        }
        uses.pass_on(passed);
        uses
    }

    fn is_needed(uses: &Uses) -> [bool; 3] {
        [0, 1, 2].map(|id| uses.version(EntityId(id)).is_needed())
    }

    const WRITE: (Relation, u32) = (Relation::Write, 0);
    const READ: (Relation, u32) = (Relation::Read, 2);
    const NAMES: [(u32, u32); 2] = [(2, 1), (1, 0)];

    #[test]
    fn a_content_that_its_reader_only_gave_another_name_is_needed() {
        // A hard link: the reader derives the node of the name by which it reads.
        let another = uses(&[(7, &[READ], &NAMES), (5, &[WRITE], &[])]);
        assert_eq!(is_needed(&another), [false, false, true]);
        let rename = (Relation::Rename, 1);
        let renamed = uses(&[(5, &[WRITE], &[]), (7, &[rename, READ], &NAMES)]);
        assert_eq!(is_needed(&renamed), [false, false, true]);
        // The content was there before the run.
        let found = uses(&[(7, &[rename, READ], &NAMES)]);
        assert_eq!(is_needed(&found), [false, false, true]);
    }

    #[test]
    fn a_content_that_only_its_writer_reads_is_not_needed_by_another_name() {
        let own = uses(&[(7, &[WRITE, READ], &NAMES)]);
        assert_eq!(is_needed(&own), [false; 3]);
        // Of a content that it changes, it is the writer.
        let changed = uses(&[
            (5, &[WRITE], &[]),
            (7, &[(Relation::Write, 2), READ], &[(2, 1)]),
        ]);
        assert_eq!(is_needed(&changed), [false; 3]);
    }
}
