//! Finds the runs and activities behind a result.
//!
//! Within a run, the search follows reads and executions back to the activities that made the
//! files. It also goes from an activity to those that started it. Between runs it follows identity
//! only: a version that was read is the version that another run made. An input is compared with
//! the file that is now at its path, so that file is followed, too, if a run made it. A step that
//! was executed again stands in the place of its first execution, even if its result is the same.
//!
//! An activity that made something counts with everything it read: it would run again as a whole.
//! An activity that started another counts with what it had read until then.

use backstory_ordering::SmallSort;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_files::{Ident, VersionId};
use backstory_graph::lineage::uses;
use backstory_graph::model::{ActivityId, Entity, EntityId, EntityKind};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store, VersionMatch, same_version};
use backstory_workflow::paths::{is_cache, is_of_kernel, is_system};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Result;
use crate::loaded_runs::{LoadedRun, LoadedRuns};
use crate::present_files::PresentFiles;

/// The runs and activities that a result came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// The runs, oldest first.
    pub runs: BTreeSet<RunKey>,
    /// The activities.
    pub activities: HashSet<ActivityKey>,
}

impl Reached {
    /// Adds what another result came from.
    pub fn add(&mut self, other: Reached) {
        self.runs.extend(other.runs);
        self.activities.extend(other.activities);
    }
}

/// Versions of other runs, by an identity.
type Joined = Rc<Vec<EntityKey>>;

/// Searches backwards over runs. Joins are looked up once.
pub struct ReachSearch<'s> {
    store: &'s dyn Store,
    runs: &'s LoadedRuns<'s>,
    present: &'s PresentFiles,
    joins: RefCell<HashMap<VersionId, Joined>>,
    /// Each result has a search of its own, and most searches meet the same versions.
    ways: RefCell<FxHashMap<EntityKey, Way>>,
}

/// How a search goes on from a version.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// It ends here: a device, or a file of the kernel.
    ends: bool,
    /// The whole command made what it printed into this file.
    by_all: bool,
    /// Another run may have made the file.
    joins: bool,
}

/// The activities that a search has still to look at, each with the last moment that counts.
#[derive(Default)]
struct SearchQueue {
    waiting: Vec<(ActivityKey, Time)>,
    seen: FxHashSet<EntityKey>,
}

impl<'s> ReachSearch<'s> {
    /// A search over the runs of a store.
    pub fn new(
        store: &'s dyn Store,
        runs: &'s LoadedRuns<'s>,
        present: &'s PresentFiles,
    ) -> ReachSearch<'s> {
        ReachSearch {
            store,
            runs,
            present,
            joins: RefCell::default(),
            ways: RefCell::default(),
        }
    }

    /// The activities that made a version, sorted. Versions with the same makers came from the same
    /// steps. Empty if that cannot be said, because the kernel made it from other versions.
    pub fn makers(&self, version: EntityKey) -> Result<Vec<ActivityKey>> {
        let run = self.runs.get(version.run())?;
        if !run.origins(version.local()).is_empty() {
            return Ok(Vec::new());
        }
        let path = &run.recording.entity(version.local()).path;
        let whole = run
            .is_redirected(path)
            .then_some(ActivityKey::new(version.run(), ActivityId(u32::MAX)));
        let makers = run.makers(version.local()).iter();
        let makers = makers.map(|(at, _)| ActivityKey::new(version.run(), ActivityId(*at as u32)));
        let mut makers: Vec<ActivityKey> = makers.chain(whole).collect();
        makers.sort_small();
        makers.dedup();
        Ok(makers)
    }

    /// Everything behind a version.
    pub fn behind(&self, version: EntityKey) -> Result<Reached> {
        let mut until: FxHashMap<ActivityKey, Time> = FxHashMap::default();
        let mut queue = SearchQueue::default();
        self.version(version, &mut queue)?;
        while let Some((key, time)) = queue.waiting.pop() {
            let before = until.get(&key).copied();
            if before.is_some_and(|before| before >= time) {
                continue;
            }
            until.insert(key, time);
            self.activity(key, time, &mut queue)?;
        }
        let activities: HashSet<ActivityKey> = until.into_keys().collect();
        let runs = activities.iter().map(|key| key.run());
        Ok(Reached {
            runs: runs.chain([version.run()]).collect(),
            activities,
        })
    }

    fn activity(&self, key: ActivityKey, time: Time, queue: &mut SearchQueue) -> Result<()> {
        let run = self.runs.get(key.run())?;
        let recording = &run.recording;
        let at = key.local().0 as usize;
        let activity = &recording.activities[at];
        if let Some(parent) = activity.parent.filter(|parent| parent.0 as usize != at) {
            let parent = ActivityKey::new(key.run(), parent);
            queue.waiting.push((parent, activity.interval.start));
        }
        for edge in &recording.edges[at] {
            if uses(edge.relation, false) && edge.interval.start <= time {
                self.version(EntityKey::new(key.run(), edge.entity), queue)?;
            }
        }
        Ok(())
    }

    /// Follows a version to the activities that made it.
    fn version(&self, key: EntityKey, queue: &mut SearchQueue) -> Result<()> {
        let mut waiting = vec![key];
        while let Some(key) = waiting.pop() {
            if !queue.seen.insert(key) {
                continue;
            }
            let run = self.runs.get(key.run())?;
            let entity = run.recording.entity(key.local());
            let way = self.way(key, &run, entity);
            if way.ends {
                continue;
            }
            let id: EntityId = key.local();
            let all = match way.by_all {
                true => run.recording.activities.len(),
                false => 0,
            };
            let all = (0..all as u32).map(|at| ActivityKey::new(key.run(), ActivityId(at)));
            queue.waiting.extend(all.map(|maker| (maker, Time::MAX)));
            for (maker, _) in run.makers(id) {
                let maker = ActivityKey::new(key.run(), ActivityId(*maker as u32));
                queue.waiting.push((maker, Time::MAX));
            }
            let origins = run.origins(id).iter();
            waiting.extend(origins.map(|&origin| EntityKey::new(key.run(), origin)));
            if !way.joins {
                continue;
            }
            for ident in self.idents(&run, entity) {
                for &other in self.joined(&ident)?.iter().filter(|other| **other != key) {
                    if !self.is_superseded(&run, entity, other)? {
                        waiting.push(other);
                    }
                }
            }
        }
        Ok(())
    }

    fn way(&self, key: EntityKey, run: &LoadedRun, entity: &Entity) -> Way {
        if let Some(known) = self.ways.borrow().get(&key) {
            return *known;
        }
        let path = &entity.path;
        let is_file = entity.kind == EntityKind::File;
        let way = Way {
            ends: entity.kind == EntityKind::Device || is_of_kernel(path),
            by_all: run.is_redirected(path) && run.is_made(entity),
            joins: is_file && !is_system(path) && !is_cache(path),
        };
        self.ways.borrow_mut().insert(key, way);
        way
    }

    /// True if the command that made the version in an earlier run looked at it in this run, or
    /// made the file again. Compilers and builders look at their former results. To execute both
    /// commands would do the work twice, and the first time from inputs that are gone.
    fn is_superseded(&self, run: &LoadedRun, read: &Entity, other: EntityKey) -> Result<bool> {
        let there = self.runs.get(other.run())?;
        let left = run.left(&read.path).map(|left| run.makers(left.id));
        let makers = left.unwrap_or_default().iter().map(|(at, _)| *at);
        let mut here = run.users(read.id).iter().copied().chain(makers);
        let same = |at: usize, maker: usize| {
            let (one, two) = (
                &run.recording.activities[at],
                &there.recording.activities[maker],
            );
            (&one.argv, &one.cwd) == (&two.argv, &two.cwd)
        };
        let makers = there.makers(other.local());
        let earlier = other.run() < run.recording.key;
        Ok(earlier && here.any(|at| makers.iter().any(|(maker, _)| same(at, *maker))))
    }

    /// The identities under which other runs may have made a version. Its own is one, unless this
    /// run made it. The other is that of the file at its path now.
    fn idents(&self, run: &LoadedRun, version: &Entity) -> impl Iterator<Item = Ident> {
        let is_made = run.is_made(version);
        let own = version.ident.filter(|_| !is_made);
        let now = self.present.ident(&version.path).ok();
        let same = |now: &Ident| version.ident.is_some_and(|own| same_version(&own, now));
        own.into_iter()
            .chain(now.filter(|now| !(is_made && same(now))))
    }

    /// The versions with this identity that a run made.
    fn joined(&self, ident: &Ident) -> Result<Joined> {
        let by = ident.version_id();
        if let Some(known) = self.joins.borrow().get(&by) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for key in self.store.same(ident, VersionMatch::Made)? {
            if self.runs.is_undone(key.run())? {
                continue;
            }
            let run = self.runs.get(key.run())?;
            if run.is_made(run.recording.entity(key.local())) {
                found.push(key);
            }
        }
        let found = Rc::new(found);
        self.joins.borrow_mut().insert(by, found.clone());
        Ok(found)
    }
}
