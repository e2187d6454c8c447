//! The influence of a result: everything that it can depend on, over all runs.
//!
//! In: the version of a file. Out: [`Influences`], the activities that the version depends on, each
//! with the last moment that counts. `docs/influence.md` states the model: what an activity gives
//! out depends on all that it took in before. The search goes
//!
//! - from a version to the activities that gave it out, and to the versions that it derives from;
//! - from an activity to the one that started it, until the start;
//! - to what it took in: files and channels, other processes' statuses and signals;
//! - from a file that a run found to the run that makes it now ([`PresentMakers`]).
//!
//! Invariant: the search leaves out only what a rule of [`crate::reductions`] proves to carry
//! nothing.

use std::cell::RefCell;
use std::collections::{BTreeSet, hash_map::Entry};

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{forgets, uses};
use backstory_graph::model::{ActivityId, EntityId, Informed};
use backstory_store::{ActivityKey, EntityKey, RunKey};
use backstory_workflow::paths::is_of_kernel;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Result;
use crate::loaded_runs::{CountedUse, LoadedRun, LoadedRuns, Taking};
use crate::present_makers::PresentMakers;
use crate::reductions;
use crate::repetition::repetition;
use crate::shell_flow::{Given, Range};

/// The activities that a result depends on.
#[derive(Debug, Clone, Default)]
pub struct Influences {
    /// The activities, each with the last moment at which what it took in counts.
    pub until: FxHashMap<ActivityKey, Time>,
    /// The result, and the versions that other runs found and a run made.
    pub results: BTreeSet<EntityKey>,
    /// The runs of the activities and of the result.
    pub runs: BTreeSet<RunKey>,
    /// Files that a program copied: of what it took in later, only these count.
    copied: FxHashSet<(ActivityKey, EntityId)>,
    /// Shells of which some statements count only. All of another activity counts.
    given: FxHashMap<ActivityKey, Given>,
}

impl Influences {
    /// True if the result depends on what an activity took in.
    pub fn counts(&self, key: ActivityKey, taking: &Taking) -> bool {
        let until = self.until.get(&key);
        let is_before = until.is_some_and(|until| taking.start <= *until);
        is_before && self.leads(key, taking.by, false)
            || self.copied.contains(&(key, taking.entity))
    }

    /// True if what counts of an activity can depend on what some of its statements took in.
    fn leads(&self, key: ActivityKey, by: Option<Range>, is_status: bool) -> bool {
        let given = self.given.get(&key);
        given.is_none_or(|given| given.flow.leads(by, &given.by, is_status))
    }

    /// The part of an activity that counts, for a search that goes on from there.
    pub fn reached(&self, key: ActivityKey) -> Option<Reached> {
        let until = *self.until.get(&key)?;
        let by = self.given.get(&key).cloned();
        Some(Reached { key, until, by })
    }

    /// Notes that an activity counts. False if all of that counted already.
    fn reach(&mut self, one: Reached) -> bool {
        let Reached { key, until, by } = one;
        let Some(known) = self.until.get_mut(&key) else {
            self.until.insert(key, until);
            self.runs.insert(key.run());
            self.given.extend(by.map(|by| (key, by)));
            return true;
        };
        let is_later = *known < until;
        *known = (*known).max(until);
        let grows = match (self.given.get_mut(&key), by) {
            (None, _) => false,
            (Some(_), None) => self.given.remove(&key).is_some(),
            (Some(known), Some(given)) => {
                let count = known.by.len();
                known.by.extend(given.by);
                known.by.len() > count
            }
        };
        is_later || grows
    }
}

/// An activity that counts.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The activity.
    pub key: ActivityKey,
    /// The last moment that counts.
    pub until: Time,
    /// The statements of a shell that count. `None`: all.
    pub by: Option<Given>,
}

/// How much of what an activity took in counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything.
    All,
    /// Everything within the runs of the versions.
    Run,
    /// Only content: what was read from files and channels.
    Content,
}

/// The nodes that a search has still to visit, each with the last moment that counts.
#[derive(Default)]
struct SearchQueue {
    activities: Vec<Reached>,
    versions: Vec<(EntityKey, Time, bool)>,
    seen: FxHashMap<EntityKey, Time>,
    /// Activities whose success is no matter of the search.
    steps: FxHashSet<ActivityKey>,
}

impl SearchQueue {
    fn activity(&mut self, run: RunKey, at: usize, until: Time) {
        self.statements(run, at, until, None);
    }

    /// Adds some statements of a shell. `None`: all.
    fn statements(&mut self, run: RunKey, at: usize, until: Time, by: Option<Given>) {
        let key = ActivityKey::new(run, ActivityId(at as u32));
        self.activities.push(Reached { key, until, by });
    }

    fn version(&mut self, run: RunKey, entity: EntityId, until: Time) {
        let key = EntityKey::new(run, entity);
        self.versions.push((key, until, false));
    }

    /// Notes a visit. False if an earlier visit counted as much.
    fn visit(&mut self, key: EntityKey, until: Time) -> bool {
        match self.seen.entry(key) {
            Entry::Occupied(mut known) if *known.get() < until => {
                known.insert(until);
                true
            }
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(until);
                true
            }
        }
    }
}

/// Searches backwards over runs.
pub struct InfluenceSearch<'s> {
    /// The runs.
    pub runs: &'s LoadedRuns<'s>,
    makers: &'s PresentMakers<'s>,
    /// The later executions that stand for activities.
    repetitions: RefCell<FxHashMap<ActivityKey, Option<ActivityKey>>>,
}

impl<'s> InfluenceSearch<'s> {
    /// A search over the runs of a store.
    pub fn new(runs: &'s LoadedRuns<'s>, makers: &'s PresentMakers<'s>) -> InfluenceSearch<'s> {
        InfluenceSearch {
            runs,
            makers,
            repetitions: RefCell::default(),
        }
    }

    /// The activities that gave out a version, each until when, sorted. Versions with the same ones
    /// depend on the same. Empty if that cannot be said, because the kernel made the version from
    /// other versions.
    pub fn givers(&self, version: EntityKey) -> Result<Vec<(ActivityKey, Time)>> {
        let run = self.runs.get(version.run())?;
        let path = &run.recording.entity(version.local()).path;
        if !run.origins(version.local()).is_empty() || run.is_redirected(path) {
            return Ok(Vec::new());
        }
        let givers = run.makers(version.local()).iter();
        let givers = givers.chain(run.mode_changes(version.local()));
        let givers = givers.map(|&(at, interval)| {
            let key = ActivityKey::new(version.run(), ActivityId(at as u32));
            (key, interval.end)
        });
        let mut givers: Vec<_> = givers.collect();
        givers.sort_unstable();
        givers.dedup();
        Ok(givers)
    }

    /// The activities and versions that a version depends on.
    pub fn of(&self, version: EntityKey, extent: Extent) -> Result<Influences> {
        self.of_all([version], extent)
    }

    /// The activities and versions that at least one of these versions depends on.
    pub fn of_all(
        &self,
        versions: impl IntoIterator<Item = EntityKey>,
        extent: Extent,
    ) -> Result<Influences> {
        let mut found = Influences::default();
        let mut queue = SearchQueue::default();
        for version in versions {
            found.runs.insert(version.run());
            queue.versions.push((version, Time::MAX, true));
        }
        self.search(queue, extent, found)
    }

    /// All that activities depend on, each until a moment. `steps`: activities that are executed
    /// again on their own if they are stale. If such a one now fails, the rest is not executed, so
    /// its former success decides nothing.
    pub fn of_activities(
        &self,
        activities: Vec<Reached>,
        steps: FxHashSet<ActivityKey>,
    ) -> Result<Influences> {
        let queue = SearchQueue {
            activities,
            steps,
            ..SearchQueue::default()
        };
        self.search(queue, Extent::All, Influences::default())
    }

    fn search(
        &self,
        mut queue: SearchQueue,
        extent: Extent,
        mut found: Influences,
    ) -> Result<Influences> {
        loop {
            if let Some((key, until, is_result)) = queue.versions.pop() {
                if queue.visit(key, until) {
                    self.version((key, until, is_result), extent, &mut queue, &mut found)?;
                }
            } else if let Some(one) = queue.activities.pop() {
                let (key, until) = (one.key, one.until);
                if found.reach(one) {
                    self.activity((key, until), extent, &mut queue, &found)?;
                }
            } else {
                return Ok(found);
            }
        }
    }

    /// Goes on from a version to what gave it out.
    fn version(
        &self,
        (key, until, is_result): (EntityKey, Time, bool),
        extent: Extent,
        queue: &mut SearchQueue,
        found: &mut Influences,
    ) -> Result<()> {
        let run = self.runs.get(key.run())?;
        let entity = run.recording.entity(key.local());
        if forgets(entity.kind, &entity.path) || is_of_kernel(&entity.path) {
            return Ok(());
        }
        let leaves = extent != Extent::Run && !is_result;
        if leaves && let Some(now) = self.makers.of(&run, entity)? {
            found.runs.insert(now.run());
            queue.versions.push((now, Time::MAX, true));
            return Ok(());
        }
        if is_result {
            found.results.insert(key);
        }
        if run.is_redirected(&entity.path) && run.is_made(entity) {
            let all = 0..run.recording.activities.len();
            all.for_each(|at| queue.activity(key.run(), at, Time::MAX));
        }
        let changes = run.mode_changes(entity.id);
        // A program that held the file open for its children decided which of them ran.
        for &(at, interval) in run.makers(entity.id).iter().chain(changes) {
            if interval.start > until {
                continue;
            }
            // A program that copies files puts the content of one into one.
            let (start, end) = (interval.start, until.min(interval.end));
            let last = match run.copied_from(at, entity) {
                Some(files) => {
                    let by = ActivityKey::new(key.run(), ActivityId(at as u32));
                    for file in files {
                        found.copied.insert((by, file));
                        queue.version(key.run(), file, until);
                    }
                    run.recording.activities[at].interval.start
                }
                None => interval.end,
            };
            let by = run.flow(at).map(|flow| Given {
                by: flow.made(&run.recording, entity, start, end),
                flow,
            });
            queue.statements(key.run(), at, until.min(last), by);
        }
        for &(at, time) in run.movers(entity.id) {
            queue.activity(key.run(), at, until.min(time));
        }
        for derived in run.sources_of(entity.id) {
            if derived.time <= until {
                let origin = run.recording.entity(derived.from);
                // A file that was moved is the result. One that was copied is still at its place.
                let left = run.left(&origin.path);
                let is_gone = left.is_none_or(|left| left.id != origin.id);
                let is_result = is_result && run.is_made(origin) && is_gone;
                let from = EntityKey::new(key.run(), derived.from);
                queue
                    .versions
                    .push((from, until.min(derived.time), is_result));
            }
        }
        Ok(())
    }

    /// Goes on from an activity to all that it took in until a moment.
    fn activity(
        &self,
        (key, until): (ActivityKey, Time),
        extent: Extent,
        queue: &mut SearchQueue,
        found: &Influences,
    ) -> Result<()> {
        let run = &*self.runs.get(key.run())?;
        let recording = &run.recording;
        let at = key.local().0 as usize;
        if extent != Extent::Content {
            starter(run, at, until, queue);
        }
        for CountedUse {
            edge,
            taking,
            names,
        } in reductions::counted_uses(run, at).iter()
        {
            if edge.interval.start > until || !found.leads(key, taking.by, false) {
                continue;
            }
            if extent == Extent::Content && !uses(edge.relation, false) {
                continue;
            }
            let last = until.min(edge.interval.end);
            queue.version(key.run(), edge.entity, last);
            // The names in a directory depend on the activities that gave or took them.
            for &(at, time) in names.iter().filter(|(_, time)| *time <= last) {
                self.go_on(run, at, time, queue)?;
            }
        }
        let heard = run.heard(at).iter();
        let flow = run.flow(at);
        for heard in heard.filter(|_| extent != Extent::Content) {
            let by = flow.as_ref();
            let by = by.and_then(|flow| flow.heard(recording, heard.from));
            if !found.leads(key, by, true) {
                continue;
            }
            let from = ActivityKey::new(key.run(), ActivityId(heard.from as u32));
            let is_success = recording.activities[heard.from].exit == Some(0);
            if heard.why == Informed::Wait && is_success && queue.steps.contains(&from) {
                continue;
            }
            let present = self.makers.present();
            if heard.time <= until && reductions::hears(run, at, heard, until, present) {
                let end = match heard.why {
                    Informed::Wait => Time::MAX,
                    _ => heard.time,
                };
                self.go_on(run, heard.from, end, queue)?;
            }
        }
        for other in reductions::sharers(run, at) {
            queue.activity(key.run(), other, until);
        }
        Ok(())
    }

    /// The later execution that stands for an activity. It is looked for once.
    fn repetition(&self, run: &LoadedRun, at: usize) -> Result<Option<ActivityKey>> {
        let key = ActivityKey::new(run.recording.key, ActivityId(at as u32));
        if let Some(known) = self.repetitions.borrow().get(&key) {
            return Ok(*known);
        }
        let found = repetition(self.runs, self.makers, run, at)?;
        self.repetitions.borrow_mut().insert(key, found);
        Ok(found)
    }

    /// Goes on to an activity whose status, signal or names were taken in.
    fn go_on(
        &self,
        run: &LoadedRun,
        from: usize,
        end: Time,
        queue: &mut SearchQueue,
    ) -> Result<()> {
        let this = run.recording.key;
        let Some(later) = self.repetition(run, from)? else {
            let flow = run.flow(from).filter(|_| end != Time::MAX);
            let by = flow.map(|flow| Given {
                by: flow.during(end, end),
                flow,
            });
            queue.statements(this, from, end, by);
            return Ok(());
        };
        queue.activity(later.run(), later.local().0 as usize, Time::MAX);
        // Its words still are those that the shell computed.
        starter(run, from, Time::MAX, queue);
        Ok(())
    }
}

/// Goes on to the activity that started one, until the start.
fn starter(run: &LoadedRun, at: usize, until: Time, queue: &mut SearchQueue) {
    let activity = &run.recording.activities[at];
    let parent = activity.parent.map(|parent| parent.0 as usize);
    let Some(parent) = parent.filter(|parent| *parent != at) else {
        return;
    };
    let by = run.flow(parent).and_then(|flow| {
        let by = flow.child(at)?;
        Some(Given { flow, by })
    });
    let until = until.min(activity.interval.start);
    queue.statements(run.recording.key, parent, until, by);
}
