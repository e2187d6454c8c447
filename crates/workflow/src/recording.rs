//! One run of the store, in memory.
//!
//! In: a store and a run's id. Out: a [`Recording`], from which steps and views are made. The ids
//! of activities and entities are dense, and are indexes here.

use backstory_ordering::SmallSort;
use std::collections::{HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_eventlog::job_rank::JobRank;
use backstory_graph::described_rank;
use backstory_graph::marks::{self, Notes};
use backstory_graph::model::{
    Activity, ActivityId, Derived, Edge, Entity, EntityId, Inform, Relation,
};
use backstory_graph::nested;
use backstory_graph::standard::{self, StandardDescriptors};
use backstory_query::answer::RunDetails;
use backstory_store::{ActivityKey, RunKey, Store};

use crate::Result;

mod excerpt;

pub use excerpt::ExcerptIds;

/// One run.
#[derive(Debug)]
pub struct Recording {
    /// Its number in the store.
    pub key: RunKey,
    /// Command, end, machine and environment.
    pub details: RunDetails,
    /// Activities, by id.
    pub activities: Vec<Activity>,
    /// The ids in the store of an excerpt's activities. A whole run has those of the store.
    stored: Vec<ActivityId>,
    /// Entities, by id. `last` is also set for a version that the run left and a later run replaced
    /// before its identity was taken.
    pub entities: Vec<Entity>,
    /// The edges of each activity, by its id.
    pub edges: Vec<Vec<Edge>>,
    /// Derivations of versions from versions, sorted by activity.
    pub derived: Vec<Derived>,
    /// Forks, execs, waits and signals between activities.
    pub informs: Vec<Inform>,
    /// The activities that each activity started, by its id, in order of time.
    pub children: Vec<Vec<usize>>,
    /// The standard input, output and errors that each activity began with, by its id.
    pub standard: Vec<StandardDescriptors>,
    /// Files that an activity opened for its children without a write of its own that was seen.
    pub given: HashSet<(usize, EntityId)>,
    /// Statements of programs about their activities.
    pub marked: MarkedActivities,
}

/// Statements of programs about their activities ([`backstory_graph::marks`]), by activity.
#[derive(Debug, Clone, Default)]
pub struct MarkedActivities {
    all: HashMap<usize, bool>,
    functions: HashSet<usize>,
    notes: HashMap<usize, Notes>,
    ranks: HashMap<usize, JobRank>,
}

impl MarkedActivities {
    /// Takes in an extended record of an activity.
    pub(crate) fn add(&mut self, activity: usize, kind: &[u8], payload: &[u8]) {
        if kind == nested::KIND {
            let is_function = payload == nested::FUNCTION;
            let is_named = is_function || payload == nested::NESTED;
            self.all.insert(activity, is_named);
            if is_function {
                self.functions.insert(activity);
            }
        } else if [marks::ATTRIBUTE, marks::JUDGEMENT].contains(&kind)
            || marks::is_record_type(kind)
        {
            self.notes.entry(activity).or_default().add(kind, payload);
        } else if let Some(rank) = described_rank::decode(kind, payload) {
            self.ranks.insert(activity, rank);
        }
    }

    /// Attributes and extended records that the program gave the activity. Most have none.
    pub fn notes(&self, activity: usize) -> Notes {
        self.notes.get(&activity).cloned().unwrap_or_default()
    }

    /// True if the activity is a part of its process's work: no program began with it.
    pub fn contains(&self, activity: usize) -> bool {
        self.all.contains_key(&activity)
    }

    /// True if the activity is a call of a function.
    pub fn is_function(&self, activity: usize) -> bool {
        self.functions.contains(&activity)
    }

    /// True if the program gave the activity a name.
    pub fn is_named(&self, activity: usize) -> bool {
        self.all.get(&activity) == Some(&true)
    }
}

impl Recording {
    /// Reads a run.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the store fails.
    pub fn load(store: &dyn Store, run: &str) -> Result<Recording> {
        Recording::load_edges(store, run, |_| true)
    }

    /// Reads a run without its look-ups of single paths, which no step depends on. They are most of
    /// the edges of a build.
    ///
    /// # Errors
    ///
    /// Those of [`Recording::load`].
    pub fn without_lookups(store: &dyn Store, run: &str) -> Result<Recording> {
        use Relation::{Link, Missing, Stat};
        let is_lookup = |edge: &Edge| matches!(edge.relation, Stat | Missing | Link);
        Recording::load_edges(store, run, |edge| !is_lookup(edge))
    }

    fn load_edges(
        store: &dyn Store,
        run: &str,
        wanted: impl Fn(&Edge) -> bool,
    ) -> Result<Recording> {
        let details = backstory_query::details(store, run)?;
        let record = store
            .run(run)?
            .ok_or_else(|| backstory_query::Error::NoRun(run.to_owned()))?;
        let key = record.key;
        let activities = store.activities(key)?;
        let mut entities = store.entities(key)?;
        let (mut edges, mut derived, mut informs) = (Vec::new(), Vec::new(), Vec::new());
        for activity in &activities {
            let mut stream = store.stream(ActivityKey::new(key, activity.id))?;
            stream.edges.retain(&wanted);
            stream.edges.shrink_to_fit();
            edges.push(stream.edges);
            derived.extend(stream.derived);
            informs.extend(stream.informed_by);
        }
        derived.sort_small_by_key(|derived: &Derived| derived.activity);
        let away = edges
            .iter()
            .flatten()
            .filter(|edge| edge.relation == Relation::Delete);
        let away: HashSet<u32> = away.map(|edge| edge.entity.0).collect();
        let left = backstory_query::replaced(&entities, |id| away.contains(&id));
        entities
            .iter_mut()
            .filter(|entity| left.contains(&entity.id.0))
            .for_each(|entity| entity.last = true);
        let children = excerpt::children(&activities);
        let mut recorded = HashMap::new();
        let mut given = HashSet::new();
        let mut marked = MarkedActivities::default();
        for (activity, _, kind, payload) in store.extended(key)? {
            marked.add(activity.0 as usize, &kind, &payload);
            if &*kind == standard::GIVEN {
                given.extend(
                    standard::decode_given(&payload).map(|entity| (activity.0 as usize, entity)),
                );
            }
            if &*kind == standard::KIND
                && let Some(standard) = standard::decode(&payload)
            {
                recorded.insert(activity.0 as usize, standard);
            }
        }
        let mut recording = Recording {
            key,
            details,
            activities,
            stored: Vec::new(),
            entities,
            edges,
            derived,
            informs,
            children,
            standard: Vec::new(),
            given,
            marked,
        };
        recording.standard = recording.inherit(&recorded);
        Ok(recording)
    }

    /// Fills in the standard descriptors: an activity without a record of its own has those of its
    /// parent.
    ///
    /// A parent may have a higher number than its child, so the walk goes from the roots.
    fn inherit(&self, recorded: &HashMap<usize, StandardDescriptors>) -> Vec<StandardDescriptors> {
        let mut all = vec![StandardDescriptors::default(); self.activities.len()];
        let mut waiting: Vec<(usize, StandardDescriptors)> = self
            .roots()
            .map(|root| (root, StandardDescriptors::default()))
            .collect();
        while let Some((at, inherited)) = waiting.pop() {
            all[at] = recorded.get(&at).copied().unwrap_or(inherited);
            waiting.extend(self.children[at].iter().map(|&child| (child, all[at])));
        }
        all
    }

    /// Activities that no activity of the run started.
    pub fn roots(&self) -> impl Iterator<Item = usize> {
        let count = self.activities.len();
        (0..count).filter(move |&at| match self.activities[at].parent {
            Some(parent) => parent.0 as usize >= count || parent.0 as usize == at,
            None => true,
        })
    }

    /// The parent of `at`, its parent, and so on up to a root.
    pub fn ancestors(&self, at: usize) -> impl Iterator<Item = usize> {
        let above = move |&at: &usize| {
            let parent = self.activities[at].parent?.0 as usize;
            (parent < self.activities.len() && parent != at).then_some(parent)
        };
        // The limit ends the walk even if damaged data has a cycle of parents.
        std::iter::successors(above(&at), above).take(self.activities.len())
    }

    /// `at` and all activities below it.
    pub fn subtree(&self, at: usize) -> Vec<usize> {
        let mut all = vec![at];
        let mut next = 0;
        while let Some(&at) = all.get(next) {
            all.extend(&self.children[at]);
            next += 1;
        }
        all
    }

    /// The derivations that an activity made.
    pub fn derived_by(&self, at: usize) -> &[Derived] {
        let of = |derived: &Derived| derived.activity.0 as usize;
        let first = self.derived.partition_point(|derived| of(derived) < at);
        let after = self.derived.partition_point(|derived| of(derived) <= at);
        &self.derived[first..after]
    }

    /// The program that a forked process executed.
    pub fn became(&self, at: usize) -> Option<usize> {
        let activity = &self.activities[at];
        let same = |child: &&usize| {
            self.activities[**child].pid == activity.pid && !self.marked.contains(**child)
        };
        let next = self.children[at].iter().find(same);
        next.copied().filter(|_| activity.execed)
    }

    /// The entity with this id.
    pub fn entity(&self, id: EntityId) -> &Entity {
        &self.entities[id.0 as usize]
    }

    /// The key in the store of the activity with this id.
    pub fn activity_key(&self, at: usize) -> ActivityKey {
        let stored = self.stored.get(at).copied();
        ActivityKey::new(self.key, stored.unwrap_or(self.activities[at].id))
    }

    /// The current directory of its command.
    pub fn cwd(&self) -> &[u8] {
        &self.details.summary.cwd
    }

    /// The place of an activity in a job of a launcher of parallel work. The activity, or the
    /// nearest one above it, began with this place. Otherwise the place is that of the run.
    pub fn job_rank(&self, at: usize) -> Option<JobRank> {
        let mut line = std::iter::once(at).chain(self.ancestors(at));
        let found = line.find_map(|at| {
            let stated = self.marked.ranks.get(&at).cloned();
            backstory_query::rank_of(&self.activities[at]).or(stated)
        });
        found.or_else(|| self.details.summary.job_rank.clone())
    }

    /// The difference between an activity's environment and the run's: `NAME=value` of variables
    /// that are set, names of variables that are removed.
    pub fn environment(&self, at: usize) -> (Vec<Bytes>, Vec<Bytes>) {
        let run: HashMap<&[u8], &[u8]> = self
            .details
            .environment
            .iter()
            .filter_map(|v| split(v))
            .collect();
        let mut line: Vec<usize> = std::iter::once(at).chain(self.ancestors(at)).collect();
        line.reverse();
        let mut now: HashMap<&[u8], Option<&[u8]>> = HashMap::new();
        for at in line {
            let activity = &self.activities[at];
            for name in &activity.env_unset {
                now.insert(name, None);
            }
            for (name, value) in activity.env_set.iter().filter_map(|v| split(v)) {
                now.insert(name, Some(value));
            }
        }
        let (mut set, mut gone) = (Vec::new(), Vec::new());
        for (name, value) in now {
            match value {
                Some(value) if run.get(name) != Some(&value) => {
                    set.push([name, b"=", value].concat().into())
                }
                None if run.contains_key(name) => gone.push(name.into()),
                _ => {}
            }
        }
        set.sort_small();
        gone.sort_small();
        (set, gone)
    }
}

/// `NAME=value` at its first equals sign.
pub fn split(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = pair.iter().position(|&byte| byte == b'=')?;
    Some((&pair[..at], &pair[at + 1..]))
}
